//! Parameters of connections: checks and defaults.

use verbs_api::cm::{ConnParam, RDMA_MAX_INIT_DEPTH, RDMA_MAX_RESP_RES};
use verbs_api::{Result, Verb};

use super::host::Reads;
use crate::cm::refused::in_range;

/// Code of the timeout of queue pairs: 2.1 s, as in Linux.
pub(super) const ACK_TIMEOUT: u8 = 19;

pub(super) fn or_most(given: u8, most: u8) -> u8 {
    match given {
        // The value stands for the maximum of the device.
        RDMA_MAX_INIT_DEPTH => most,
        given => given,
    }
}

pub(super) fn check_private_data(verb: Verb, param: &ConnParam<'_>, room: usize) -> Result<()> {
    check_length(verb, param.private_data, room)
}

pub(super) fn check_length(verb: Verb, private_data: &[u8], room: usize) -> Result<()> {
    let (length, room) = (private_data.len() as i64, room as i64);
    in_range(verb, "private_data_len", length, 0, room)
}

/// Refuses more reads than the device supports.
pub(super) fn check_reads(verb: Verb, param: &ConnParam<'_>, limits: Reads) -> Result<()> {
    for (what, given, most) in [
        (
            "responder_resources",
            param.responder_resources,
            limits.responder,
        ),
        ("initiator_depth", param.initiator_depth, limits.initiator),
    ] {
        if given != RDMA_MAX_RESP_RES {
            in_range(verb, what, given.into(), 0, most.into())?;
        }
    }
    Ok(())
}
