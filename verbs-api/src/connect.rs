//! Connecting queue pairs by their attributes.

use crate::ah::AhAttr;
use crate::device::Gid;
use crate::error::Result;
use crate::handle::{Handle, Qp};
use crate::qp::{QpAttr, QpAttrMask as M, QpModify, QpState, QpType};
use crate::rc::RcParams;
use crate::site::{Site, Standing};
use crate::verbs::Verbs;

/// The facts that a peer needs to connect with a QP: its address, its number, and its first PSN.
///
/// Peers in different processes exchange these by any means they have, as 26 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Endpoint {
    /// GID of the port.
    pub gid: Gid,
    /// LID of the port; 0 on Ethernet.
    pub lid: u16,
    /// QP number.
    pub qp_num: u32,
    /// First PSN that the QP sends, 24 bits.
    pub psn: u32,
}

impl Endpoint {
    /// Length of the serialised form.
    pub const BYTES: usize = 26;

    /// The fields in order, in network byte order.
    pub fn to_bytes(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..16].copy_from_slice(&self.gid.0);
        bytes[16..18].copy_from_slice(&self.lid.to_be_bytes());
        bytes[18..22].copy_from_slice(&self.qp_num.to_be_bytes());
        bytes[22..].copy_from_slice(&self.psn.to_be_bytes());
        bytes
    }

    /// Reads what [`to_bytes`](Self::to_bytes) gave. Any bytes are an endpoint; only connecting
    /// shows whether it exists.
    pub fn from_bytes(bytes: [u8; Self::BYTES]) -> Self {
        let part = |start: usize| bytes[start..start + 4].try_into().expect("four bytes");
        Self {
            gid: Gid(bytes[..16].try_into().expect("sixteen bytes")),
            lid: u16::from_be_bytes([bytes[16], bytes[17]]),
            qp_num: u32::from_be_bytes(part(18)),
            psn: u32::from_be_bytes(part(22)),
        }
    }
}

/// The endpoint of a QP, with port, GID index and PSN (`psn_a`) of `params`.
#[track_caller]
pub fn endpoint(verbs: &dyn Verbs, qp: Qp, params: &RcParams) -> Result<Endpoint> {
    let _standing = Standing::at(Site::here());
    let (context, port) = (qp.context(), params.port_num);
    Ok(Endpoint {
        gid: verbs.query_gid(context, port, u32::from(params.sgid_index))?,
        lid: verbs.query_port(context, port)?.lid,
        qp_num: verbs.qp_num(qp)?,
        psn: params.psn_a,
    })
}

/// Brings an RC, UC or XRC QP from RESET to RTS, connected with `peer`. Its own first PSN is
/// `psn_a` of `params`; `psn_b` is not used, as the peer's is in its endpoint. Not on iWARP, which
/// connects by rdma_cm.
#[track_caller]
pub fn to_endpoint(verbs: &dyn Verbs, qp: Qp, peer: &Endpoint, params: &RcParams) -> Result<()> {
    to_state(verbs, qp, peer, params, QpState::Rts)
}

/// Connects like [`to_endpoint`], but only as far as `state`: INIT, RTR or RTS.
#[track_caller]
pub fn to_state(
    verbs: &dyn Verbs,
    qp: Qp,
    peer: &Endpoint,
    params: &RcParams,
    state: QpState,
) -> Result<()> {
    let _standing = Standing::at(Site::here());
    let qp_type = verbs.query_qp(qp, M::STATE)?.init.qp_type;
    let attr = attributes(peer, params.psn_a, params);
    for step_to in [QpState::Init, QpState::Rtr, QpState::Rts] {
        step(verbs, qp, qp_type, &attr, step_to)?;
        if step_to == state {
            break;
        }
    }
    Ok(())
}

/// Connects two RC or UC QPs, or an XRC_SEND QP and an XRC_RECV QP, in RESET by attributes: RESET
/// to INIT to RTR to RTS on both.
///
/// What [`Verbs::connect_rc`] does on transports that need no connection manager.
#[track_caller]
pub fn by_attributes(verbs: &dyn Verbs, a: Qp, b: Qp, params: &RcParams) -> Result<()> {
    let _standing = Standing::at(Site::here());
    let of_b = RcParams {
        psn_a: params.psn_b,
        ..*params
    };
    let mut moves = Vec::with_capacity(2);
    for (qp, params, peer, of_peer) in [(a, params, b, &of_b), (b, &of_b, a, params)] {
        let attr = attributes(&endpoint(verbs, peer, of_peer)?, params.psn_a, params);
        moves.push((qp, verbs.query_qp(qp, M::STATE)?.init.qp_type, attr));
    }
    for state in [QpState::Init, QpState::Rtr, QpState::Rts] {
        for (qp, qp_type, attr) in &moves {
            step(verbs, *qp, *qp_type, attr, state)?;
        }
    }
    Ok(())
}

/// All attributes of a connection with `peer`.
fn attributes(peer: &Endpoint, sq_psn: u32, params: &RcParams) -> QpAttr {
    let ah_attr = AhAttr {
        dlid: peer.lid,
        ..AhAttr::global(params.port_num, params.sgid_index, peer.gid)
    };
    QpAttr {
        path_mtu: params.path_mtu,
        rq_psn: peer.psn,
        sq_psn,
        dest_qp_num: peer.qp_num,
        qp_access_flags: params.access,
        ah_attr: Some(ah_attr),
        pkey_index: params.pkey_index,
        max_rd_atomic: params.max_rd_atomic,
        max_dest_rd_atomic: params.max_rd_atomic,
        min_rnr_timer: params.min_rnr_timer,
        port_num: params.port_num,
        timeout: params.timeout,
        retry_cnt: params.retry_cnt,
        rnr_retry: params.rnr_retry,
        ..QpAttr::default()
    }
}

/// One transition on the way to RTS.
fn step(verbs: &dyn Verbs, qp: Qp, qp_type: QpType, attr: &QpAttr, state: QpState) -> Result<()> {
    let attr = QpAttr {
        qp_state: state,
        ..*attr
    };
    verbs.modify_qp(qp, &attr, M::STATE | required(qp_type, state))
}

/// Brings a UD QP from RESET to RTS on this port with P_Key index 0 and this Q_Key.
#[track_caller]
pub fn ud_to_rts(verbs: &dyn Verbs, qp: Qp, port_num: u8, qkey: u32) -> Result<()> {
    let _standing = Standing::at(Site::here());
    let to_init = QpModify::to(QpState::Init)
        .set(M::PKEY_INDEX, |attr| attr.pkey_index = 0)
        .set(M::PORT, |attr| attr.port_num = port_num)
        .set(M::QKEY, |attr| attr.qkey = qkey);
    let to_rts = QpModify::to(QpState::Rts).set(M::SQ_PSN, |attr| attr.sq_psn = 0);
    for modify in [to_init, QpModify::to(QpState::Rtr), to_rts] {
        verbs.modify_qp(qp, &modify.attr, modify.mask)?;
    }
    Ok(())
}

/// The attributes that a connected QP requires on its way to `state`, by the transition table.
fn required(qp_type: QpType, state: QpState) -> M {
    let from = match state {
        QpState::Init => QpState::Reset,
        QpState::Rtr => QpState::Init,
        _ => QpState::Rtr,
    };
    crate::transition::attributes(qp_type, from, state).map_or(M::empty(), |a| a.required)
}
