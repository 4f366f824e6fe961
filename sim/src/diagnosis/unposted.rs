//! Work that a program has built and not posted.

use verbs_api::Qp;
use verbs_api::site::Site;

use super::Problem;

/// A batch that was begun in a layer over the verbs (`ibv_wr_start`), and neither completed nor aborted: its work is not
/// posted.
#[derive(Clone, Debug)]
pub struct Unposted {
    /// The queue pair.
    pub qp: Qp,
    /// Its number.
    pub qp_num: u32,
    /// How many work requests it has.
    pub requests: usize,
    /// Where it was begun.
    pub begun_at: Option<Site>,
    /// It would have been ended by now, if ever: its queue pair is gone, or its thread ends the program.
    pub is_certain: bool,
}

impl Unposted {
    pub(crate) fn problem(&self) -> Problem {
        let Self {
            qp_num, requests, ..
        } = *self;
        Problem::Unposted { qp_num, requests }
    }
}
