//! The messages of a connection.

use verbs_api::cm::{ConnParam, RDMA_UDP_QKEY};
use verbs_roce::mad::{
    CmMessage, Drep, IpCm, Path, PrivateData, Rej, Rejected, Rep, Req, SidrRep, SidrReq,
};

use super::conn::Conn;
use super::id::PKEY;

/// Code of the time that the other side has for an answer: 4.3 s, as in Linux.
const RESPONSE_TIMEOUT: u8 = 20;
/// The number of retries of a message.
pub(super) const MAX_RETRIES: u8 = 15;
/// Code of the time until an acknowledgement may be sent.
const TARGET_ACK_DELAY: u8 = 15;
const NO_LID: u16 = 0xffff;
const HOP_LIMIT: u8 = 64;

/// Reasons to refuse a connection.
pub(super) mod reason {
    pub(crate) const TIMEOUT: u16 = 4;
    pub(crate) const UNSUPPORTED: u16 = 5;
    pub(crate) const INVALID_SERVICE_ID: u16 = 8;
    pub(crate) const STALE_CONNECTION: u16 = 10;
    pub(crate) const CONSUMER: u16 = 28;
    pub(crate) const VENDOR_OPTION: u16 = 35;
}

/// States of an answer to a request for datagrams.
pub(super) mod sidr {
    pub(crate) const VALID: u8 = 0;
    pub(crate) const UNSUPPORTED: u8 = 1;
    pub(crate) const REJECTED: u8 = 2;
}

/// Private data: the addresses of both ends, then that of the program.
fn with_addresses<const N: usize>(ends: &IpCm, own: &[u8]) -> PrivateData<N> {
    let bytes = [&ends.write()[..], own].concat();
    PrivateData::new(&bytes).unwrap_or_default()
}

fn path(conn: &Conn, tos: u8) -> Path {
    // Ethernet has no LIDs, and the field then has the permissive one.
    let lid = |lid| if lid == 0 { NO_LID } else { lid };
    Path {
        local_lid: lid(conn.exchange.local.lid),
        remote_lid: lid(conn.exchange.peer.lid),
        local_gid: conn.exchange.local.gid.0,
        remote_gid: conn.exchange.peer.gid.0,
        traffic_class: tos,
        hop_limit: HOP_LIMIT,
        local_ack_timeout: conn.ack_timeout,
        ..Path::default()
    }
}

/// A request for a connection.
pub(super) fn req(
    conn: &Conn,
    guid: u64,
    ends: &IpCm,
    param: &ConnParam<'_>,
    has_srq: bool,
    tos: u8,
) -> CmMessage {
    CmMessage::Req(Box::new(Req {
        local_comm_id: conn.ours,
        ece: conn.ece,
        service_id: conn.service_id,
        ca_guid: guid,
        qpn: conn.qpn,
        responder_resources: conn.responder_resources,
        initiator_depth: conn.initiator_depth,
        remote_cm_response_timeout: RESPONSE_TIMEOUT,
        flow_control: param.flow_control != 0,
        starting_psn: conn.rq_psn,
        local_cm_response_timeout: RESPONSE_TIMEOUT,
        retry_count: conn.retry_count,
        pkey: PKEY,
        path_mtu: conn.path_mtu,
        rnr_retry_count: conn.rnr_retry_count,
        max_cm_retries: MAX_RETRIES,
        srq: has_srq,
        primary: path(conn, tos),
        private_data: with_addresses(ends, param.private_data),
        ..Req::default()
    }))
}

/// The acceptance of a connection.
pub(super) fn rep(conn: &Conn, guid: u64, param: &ConnParam<'_>, has_srq: bool) -> CmMessage {
    CmMessage::Rep(Rep {
        local_comm_id: conn.ours,
        remote_comm_id: conn.theirs,
        qpn: conn.qpn,
        ece: conn.ece,
        starting_psn: conn.rq_psn,
        responder_resources: conn.responder_resources,
        initiator_depth: conn.initiator_depth,
        target_ack_delay: TARGET_ACK_DELAY,
        flow_control: param.flow_control != 0,
        rnr_retry_count: param.rnr_retry_count,
        srq: has_srq,
        ca_guid: guid,
        private_data: PrivateData::new(param.private_data).unwrap_or_default(),
        ..Rep::default()
    })
}

/// The refusal of a connection.
pub(super) fn rej(
    ours: u32,
    theirs: u32,
    rejected: Rejected,
    reason: u16,
    private_data: &[u8],
) -> CmMessage {
    CmMessage::Rej(Rej {
        local_comm_id: ours,
        remote_comm_id: theirs,
        rejected,
        reason,
        private_data: PrivateData::new(private_data).unwrap_or_default(),
        ..Rej::default()
    })
}

/// The answer to the request to end a connection.
pub(super) fn drep(ours: u32, theirs: u32) -> CmMessage {
    CmMessage::Drep(Drep {
        local_comm_id: ours,
        remote_comm_id: theirs,
        ..Drep::default()
    })
}

/// A request for a datagram queue pair.
pub(super) fn sidr_req(conn: &Conn, ends: &IpCm, private_data: &[u8]) -> CmMessage {
    CmMessage::SidrReq(SidrReq {
        request_id: conn.ours,
        pkey: PKEY,
        service_id: conn.service_id,
        private_data: with_addresses(ends, private_data),
    })
}

/// The answer to a request for a datagram queue pair.
pub(super) fn sidr_rep(
    request_id: u32,
    service_id: u64,
    status: u8,
    qpn: u32,
    private_data: &[u8],
) -> CmMessage {
    CmMessage::SidrRep(SidrRep {
        request_id,
        status,
        qpn,
        service_id,
        // A refusal names no queue pair.
        qkey: match status {
            sidr::VALID => RDMA_UDP_QKEY,
            _ => 0,
        },
        private_data: PrivateData::new(private_data).unwrap_or_default(),
        ..SidrRep::default()
    })
}
