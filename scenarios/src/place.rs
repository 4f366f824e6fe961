//! Where on its devices the setup works.

use verbs_api::{AhAttr, Context, Gid, Pd, RcParams};

use crate::failure::{Failure, Result};
use crate::setup::Setup;
use crate::timeout;

/// The ports that the setup uses, the same on both sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The port. Default: 1.
    pub port_num: u8,
    /// Index in its GID table. Default: 0.
    pub sgid_index: u8,
    /// Q_Key of the UD queue pairs that the setup makes, below `0x8000_0000`. Runs on one network
    /// that have different ones do not hear each other. Default: `0x1111_1111`.
    pub qkey: u32,
}

impl Default for Place {
    fn default() -> Self {
        Self {
            port_num: 1,
            sgid_index: 0,
            qkey: 0x1111_1111,
        }
    }
}

impl Setup<'_> {
    /// The port it works on.
    pub fn port(&self) -> u8 {
        self.place().port_num
    }

    /// The Q_Key of its UD queue pairs.
    pub fn qkey(&self) -> u32 {
        self.place().qkey
    }

    /// The way to the port of a context.
    pub fn route_to(&self, context: Context) -> verbs_api::Result<AhAttr> {
        let Place {
            port_num,
            sgid_index,
            ..
        } = self.place();
        let dgid = self.query_gid(context, port_num, sgid_index.into())?;
        Ok(AhAttr {
            // 0 where there are none.
            dlid: self.query_port(context, port_num)?.lid,
            ..AhAttr::global(port_num, sgid_index, dgid)
        })
    }

    /// The ways from the port of side A to that of side B: one from each of the first GIDs of A
    /// that have a network behind them. Tries them with address handles of `pd`, which is of side
    /// A.
    pub fn ways(&self, pd: Pd) -> Result<Vec<AhAttr>> {
        let port_num = self.port();
        let [a, b] = [self.ctx_a(), self.ctx_b()];
        let dlid = self.query_port(b, port_num)?.lid;
        let mut ways = Vec::new();
        for index in 0..self.query_port(a, port_num)?.gid_tbl_len.min(8) {
            let [from, to] = [a, b].map(|side| self.query_gid(side, port_num, index));
            let (from, to) = (from?, to?);
            if [from, to].contains(&Gid::default()) {
                continue;
            }
            let way = AhAttr {
                dlid,
                ..AhAttr::global(port_num, index as u8, to)
            };
            if let Ok(ah) = self.create_ah(pd, &way) {
                self.destroy_ah(ah)?;
                ways.push(way);
            }
        }
        let none = || Failure::assertion("a GID to send from", "none");
        if ways.is_empty() {
            Err(none())
        } else {
            Ok(ways)
        }
    }

    /// The parameters of connections on this port.
    pub fn rc_params(&self) -> RcParams {
        self.here(RcParams::default())
    }

    /// These parameters on this port, with a timeout that is not over before an answer can come.
    pub fn here(&self, params: RcParams) -> RcParams {
        RcParams {
            port_num: self.place().port_num,
            sgid_index: self.place().sgid_index,
            timeout: self.timeout(params.timeout),
            ..params
        }
    }

    /// The code of this timeout of a connection, or of a longer one that is not over before an
    /// answer can come.
    pub fn timeout(&self, code: u8) -> u8 {
        timeout::at_least(self.bounds.round_trip, code)
    }
}
