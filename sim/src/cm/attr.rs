//! The attributes to which a connection sets its queue pair.

use verbs_api::cm::{CmId, RDMA_UDP_QKEY};
use verbs_api::{Access, Mtu, QpAttr, QpAttrMask, QpState};

use super::conn::{Conn, Phase};
use super::host::Host;
use super::id::{Id, State, wrong_state};
use super::ids::Ids;
use crate::device::Result;
use crate::diagnosis::{CmArgument, CmOrigin};

impl Ids {
    /// `rdma_init_qp_attr`
    pub(crate) fn init_qp_attr(
        &self,
        host: Host<'_>,
        id: CmId,
        state: QpState,
    ) -> Result<(QpAttr, QpAttrMask)> {
        let of = self.at(self.find(id)?);
        let Some(local) = of.port.filter(|_| of.state != State::Listening) else {
            return Err(wrong_state(id, of.state));
        };
        let mut attr = QpAttr {
            qp_state: state,
            port_num: local.id.port,
            ..QpAttr::default()
        };
        let init = QpAttrMask::STATE | QpAttrMask::PKEY_INDEX | QpAttrMask::PORT;
        if of.ps.is_datagram() {
            attr.qkey = RDMA_UDP_QKEY;
            return Ok((attr, init | QpAttrMask::QKEY));
        }
        let Some(conn) = &of.conn else {
            // Without a connection no peer is known, so only INIT's attributes are.
            return Ok((attr, init | QpAttrMask::ACCESS_FLAGS));
        };
        let mask = match state {
            QpState::Init => {
                attr.qp_access_flags = access(conn, host.flushes(local.id.node));
                init | QpAttrMask::ACCESS_FLAGS
            }
            QpState::Rtr if knows_peer(conn) => {
                set_rtr(&mut attr, of, conn);
                QpAttrMask::STATE
                    | QpAttrMask::AV
                    | QpAttrMask::PATH_MTU
                    | QpAttrMask::DEST_QPN
                    | QpAttrMask::RQ_PSN
                    | QpAttrMask::MAX_DEST_RD_ATOMIC
                    | QpAttrMask::MIN_RNR_TIMER
            }
            QpState::Rts if knows_peer(conn) => {
                attr.sq_psn = conn.sq_psn;
                attr.timeout = conn.ack_timeout;
                attr.retry_cnt = conn.retry_count;
                attr.rnr_retry = conn.rnr_retry_count;
                attr.max_rd_atomic = conn.initiator_depth;
                QpAttrMask::STATE
                    | QpAttrMask::SQ_PSN
                    | QpAttrMask::TIMEOUT
                    | QpAttrMask::RETRY_CNT
                    | QpAttrMask::RNR_RETRY
                    | QpAttrMask::MAX_QP_RD_ATOMIC
            }
            _ => return Err(wrong_state(id, of.state)),
        };
        Ok((attr, mask))
    }

    /// What the attributes of a connection are from.
    #[cfg_attr(any(), mutants::skip)] // texts
    pub(crate) fn origin(&self, id: CmId) -> Option<CmOrigin> {
        let conn = self.at(self.find(id).ok()?).conn.as_ref()?;
        let (depth, rnr_retry) = match conn.asked_depth {
            Some(0) => (CmArgument::Depth, CmArgument::RnrRetryOfServer),
            Some(_) => (CmArgument::ResourcesOfPeer, CmArgument::RnrRetryOfServer),
            None => (CmArgument::DepthOfServer, CmArgument::RnrRetryOfClient),
        };
        Some(CmOrigin { depth, rnr_retry })
    }
}

/// Peers of a connection may write, and may read if they asked for resources. Then they may also do
/// the `flushes` that the device has (MPE-13).
fn access(conn: &Conn, flushes: Access) -> Access {
    let reads = Access::REMOTE_READ | Access::REMOTE_ATOMIC;
    match conn.responder_resources {
        0 => Access::REMOTE_WRITE,
        _ => Access::REMOTE_WRITE | reads | flushes,
    }
}

fn knows_peer(conn: &Conn) -> bool {
    matches!(
        conn.phase,
        Phase::ReqReceived | Phase::RepSent | Phase::RepReceived | Phase::Established
    )
}

fn set_rtr(attr: &mut QpAttr, id: &Id, conn: &Conn) {
    let mut av = conn.exchange.local.ah_attr(conn.exchange.peer);
    if let Some(grh) = &mut av.grh {
        grh.traffic_class = id.tos;
    }
    attr.ah_attr = Some(av);
    attr.path_mtu = Mtu::from(u32::from(conn.path_mtu));
    attr.dest_qp_num = conn.remote_qpn;
    attr.rq_psn = conn.rq_psn;
    attr.max_dest_rd_atomic = conn.responder_resources;
}
