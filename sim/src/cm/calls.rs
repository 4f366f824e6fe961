//! The calls of a program on connections.

use core::net::{IpAddr, SocketAddr};

use verbs_api::cm::{CmId, ConnParam, RDMA_MAX_INIT_DEPTH, RDMA_MAX_RESP_RES, private_data};
use verbs_api::{AsyncEventType, Cause, ErrorKind};
use verbs_roce::mad::{CmMessage, Dreq, IpCm, Rejected, Rtu, service_id};

use super::Manager;
use super::bind::unspecified;
use super::conn::{Conn, Phase, Waiting};
use super::host::{Exchange, Host, Peer, Reads};
use super::id::{State, wrong_state};
use super::message::{self, reason, sidr};
use crate::address::ip_of;
use crate::device::{Refusal, Result, in_range, invalid};

/// The limit of waiting requests, as in Linux.
const MAX_BACKLOG: usize = 1024;

/// Code of the timeout of queue pairs: 2.1 s, as in Linux.
const ACK_TIMEOUT: u8 = 19;

impl Manager {
    /// `rdma_listen`
    pub(crate) fn listen(&mut self, host: Host<'_>, id: CmId, backlog: i32) -> Result<()> {
        let index = self.ids.find(id)?;
        match self.ids.at(index).state {
            State::Idle => {
                let any = unspecified(SocketAddr::from(([0, 0, 0, 0], 0)));
                self.ids.bind(host, index, any, false)?;
            }
            State::Bound => {
                let of = self.ids.at(index);
                if let Some(local) = of.local {
                    self.ids.check_port(of, local, true)?;
                }
            }
            state => return Err(wrong_state(id, state)),
        }
        self.ids.set_state(index, State::Listening);
        let of = self.ids.at_mut(index);
        // A listener no longer shares its address.
        of.reuse_addr = false;
        // All other values stand for the limit, as in Linux.
        of.backlog = match usize::try_from(backlog) {
            Ok(backlog @ 1..=MAX_BACKLOG) => backlog,
            _ => MAX_BACKLOG,
        };
        Ok(())
    }

    /// `rdma_connect`. If the request `is_held`, it leaves with [`release`](Self::release).
    pub(crate) fn connect(
        &mut self,
        host: Host<'_>,
        id: CmId,
        param: &ConnParam<'_>,
        is_held: bool,
    ) -> Result<()> {
        let index = self.ids.find(id)?;
        let of = self.ids.at(index);
        let known = (of.local.zip(of.peer), of.port.zip(of.to));
        let (State::RouteResolved, (Some((src, dst)), Some((local, peer)))) = (of.state, known)
        else {
            return Err(wrong_state(id, of.state));
        };
        let (is_datagram, limits) = (of.ps.is_datagram(), host.reads(local.id.node));
        let (phase, room) = if is_datagram {
            (Phase::SidrReqSent, private_data::SIDR_REQ)
        } else {
            (Phase::ReqSent, private_data::REQ)
        };
        check_length(param.private_data, room)?;
        // Datagrams have no reads.
        if !is_datagram {
            check_reads(param, limits)?;
        }
        let service_id = service_id(u32::from(of.ps) as u16, dst.port());
        // A TCP connection is refused before a message of iWARP leaves.
        if host.is_iwarp() && !self.is_listened(host, peer, service_id, dst.ip()) {
            let text = format!("no program listens at {dst}");
            return Err(Refusal::new(
                ErrorKind::ConnectionRefused,
                Cause::Text(text.into()),
            ));
        }
        let (own_qp, tos, ack_timeout) = (of.qp, of.tos, of.ack_timeout);
        let ece = of.ece.request(host);
        let initiator_depth = or_most(param.initiator_depth, limits.initiator);
        let conn = Conn {
            phase,
            ours: self.numbers.next(),
            exchange: Exchange {
                local,
                peer,
                transaction: self.ids.random.any(),
            },
            service_id,
            qpn: own_qp.map_or(param.qp_num, |own| own.qp_num),
            rq_psn: self.ids.random.any() as u32 & 0x00ff_ffff,
            responder_resources: or_most(param.responder_resources, limits.responder),
            initiator_depth,
            asked_depth: Some(initiator_depth),
            retry_count: param.retry_count & 7,
            rnr_retry_count: param.rnr_retry_count & 7,
            path_mtu: u32::from(host.mtu(local.id)) as u8,
            ack_timeout: ack_timeout.unwrap_or(ACK_TIMEOUT),
            ece,
            is_held,
            ..Conn::default()
        };
        let ends = IpCm {
            version: 0,
            source_port: src.port(),
            source: src.ip(),
            destination: dst.ip(),
        };
        let message = if is_datagram {
            message::sidr_req(&conn, &ends, param.private_data)
        } else {
            let has_srq = own_qp.map_or(param.srq != 0, |own| own.has_srq);
            let guid = host.guid(local.id.node);
            message::req(&conn, guid, &ends, param, has_srq, tos)
        };
        self.set_conn(index, conn);
        self.ids.at_mut(index).state = State::Connected;
        self.send_and_wait(index, message);
        Ok(())
    }

    /// Whether an id listens for a service where a peer is.
    fn is_listened(&self, host: Host<'_>, peer: Peer, service_id: u64, address: IpAddr) -> bool {
        let there = host.port_at(ip_of(peer.gid)).map(|local| Exchange {
            local,
            ..Exchange::default()
        });
        there.is_none_or(|there| self.ids.listener(there, service_id, address).is_some())
    }

    /// Whether the request of an id is held.
    pub(crate) fn is_held(&self, id: CmId) -> bool {
        let index = self.ids.find(id).ok();
        let conn = index.and_then(|index| self.ids.at(index).conn.as_ref());
        conn.is_some_and(|conn| conn.is_held && conn.waiting.is_some())
    }

    /// Sends a request that is held: to this address, where the listener is, or where the id's
    /// address leads.
    pub(crate) fn release(&mut self, host: Host<'_>, id: CmId, target: Option<IpAddr>) {
        let Ok(index) = self.ids.find(id) else { return };
        let of = self.ids.at_mut(index);
        let path = target.and_then(|target| host.path(of.port, target));
        let Some(conn) = of.conn.as_mut().filter(|conn| conn.is_held) else {
            return;
        };
        conn.is_held = false;
        if let Some((_, to)) = path {
            of.to = Some(to);
            conn.exchange.peer = to;
            if let Some(Waiting {
                message: CmMessage::Req(req),
                ..
            }) = &mut conn.waiting
            {
                req.primary.remote_gid = to.gid.0;
            }
        }
        if let Some(waiting) = conn.waiting.clone() {
            self.send(index, waiting.message);
        }
    }

    /// The checks of `rdma_accept`. Returns the room for private data.
    pub(crate) fn check_accept(
        &self,
        host: Host<'_>,
        id: CmId,
        param: &ConnParam<'_>,
    ) -> Result<usize> {
        let of = self.ids.at(self.ids.find(id)?);
        let conn = of.conn.as_ref().filter(|_| of.state == State::Connected);
        let phase = conn.map(|conn| (conn.phase, conn.exchange.local.id.node));
        let (room, node) = match phase {
            Some((Phase::ReqReceived, node)) => (private_data::REP, node),
            Some((Phase::SidrReqReceived, node)) => (private_data::SIDR_REP, node),
            _ => return Err(wrong_state(id, of.state)),
        };
        if !of.ps.is_datagram() {
            check_reads(param, host.reads(node))?;
        }
        Ok(room)
    }

    /// Sets the limits of reads for the queue pair of a request, before it is moved to RTR.
    pub(crate) fn settle_reads(&mut self, host: Host<'_>, id: CmId, param: &ConnParam<'_>) {
        let Ok(index) = self.ids.find(id) else {
            return;
        };
        let Some(conn) = &mut self.ids.at_mut(index).conn else {
            return;
        };
        let limits = host.reads(conn.exchange.local.id.node);
        let settle = |given: u8, asked: u8, most: u8| match given {
            // The program leaves the value to the request.
            RDMA_MAX_RESP_RES => asked.min(most),
            given => given,
        };
        let (given, asked) = (param.responder_resources, conn.responder_resources);
        conn.responder_resources = settle(given, asked, limits.responder);
        let (given, asked) = (param.initiator_depth, conn.initiator_depth);
        conn.initiator_depth = settle(given, asked, limits.initiator);
    }

    /// `rdma_accept`, once the queue pair is ready.
    pub(crate) fn accept(&mut self, host: Host<'_>, id: CmId, param: &ConnParam<'_>) -> Result<()> {
        let room = self.check_accept(host, id, param)?;
        let index = self.ids.find(id)?;
        if let Err(error) = check_length(param.private_data, room) {
            // Linux checks the length only after it has changed the id, so the request is refused.
            self.refuse(index, reason::CONSUMER, &[]);
            return Err(error);
        }
        let rq_psn = self.ids.random.any() as u32 & 0x00ff_ffff;
        let of = self.ids.at_mut(index);
        let (own_qp, ece) = (of.qp, of.ece.answer(host));
        let Some(conn) = &mut of.conn else {
            return Ok(());
        };
        conn.ece = ece;
        conn.qpn = own_qp.map_or(param.qp_num, |own| own.qp_num);
        // A request for datagrams has one answer, and no connection.
        if conn.phase == Phase::SidrReqReceived {
            let (request_id, service_id, qpn) = (conn.theirs, conn.service_id, conn.qpn);
            let own = param.private_data;
            let message = message::sidr_rep(request_id, service_id, sidr::VALID, qpn, own);
            self.send(index, message);
            self.close(index);
            return Ok(());
        }
        // The program may have set the queue pair to RTR before, with the number chosen then.
        if conn.rq_psn == 0 {
            conn.rq_psn = rq_psn;
        }
        conn.phase = Phase::RepSent;
        let has_srq = own_qp.map_or(param.srq != 0, |own| own.has_srq);
        let guid = host.guid(conn.exchange.local.id.node);
        let message = message::rep(conn, guid, param, has_srq);
        self.send_and_wait(index, message);
        Ok(())
    }

    /// `rdma_reject`
    pub(crate) fn reject(&mut self, id: CmId, private_data: &[u8]) -> Result<()> {
        self.reject_for(id, reason::CONSUMER, private_data)
    }

    /// `rdma_reject_ece`
    pub(crate) fn reject_ece(&mut self, id: CmId, private_data: &[u8]) -> Result<()> {
        self.reject_for(id, reason::VENDOR_OPTION, private_data)
    }

    fn reject_for(&mut self, id: CmId, reason: u16, private_data: &[u8]) -> Result<()> {
        let index = self.ids.find(id)?;
        let of = self.ids.at(index);
        let room = match of.phase() {
            Some(Phase::ReqReceived | Phase::ReqSent | Phase::RepSent | Phase::RepReceived) => {
                private_data::REJ
            }
            Some(Phase::SidrReqReceived) => private_data::SIDR_REP,
            _ => return Err(wrong_state(id, of.state)),
        };
        check_length(private_data, room)?;
        self.refuse(index, reason, private_data);
        Ok(())
    }

    /// Refuses a request of the other side, or withdraws one of this side.
    fn refuse(&mut self, index: u32, reason: u16, private_data: &[u8]) {
        let Some(conn) = &self.ids.at(index).conn else {
            return;
        };
        let message = match conn.phase {
            Phase::SidrReqReceived => {
                let (request_id, service_id) = (conn.theirs, conn.service_id);
                message::sidr_rep(request_id, service_id, sidr::REJECTED, 0, private_data)
            }
            phase => {
                let rejected = match phase {
                    Phase::ReqReceived | Phase::ReqSent => Rejected::Req,
                    _ => Rejected::Rep,
                };
                message::rej(conn.ours, conn.theirs, rejected, reason, private_data)
            }
        };
        self.send(index, message);
        self.stop_waiting(index);
        self.close(index);
    }

    /// `rdma_establish`
    pub(crate) fn establish(&mut self, id: CmId) -> Result<()> {
        let index = self.ids.find(id)?;
        let of = self.ids.at(index);
        if of.phase() != Some(Phase::RepReceived) {
            return Err(wrong_state(id, of.state));
        }
        self.set_phase(index, Phase::Established);
        self.say_ready(index);
        Ok(())
    }

    /// Sends the message that this side is ready.
    pub(super) fn say_ready(&mut self, index: u32) {
        if let Some(conn) = &self.ids.at(index).conn {
            let message = CmMessage::Rtu(Rtu {
                local_comm_id: conn.ours,
                remote_comm_id: conn.theirs,
                ..Rtu::default()
            });
            self.send(index, message);
        }
    }

    /// `rdma_notify`
    pub(crate) fn notify(&mut self, id: CmId, event: AsyncEventType) -> Result<()> {
        let index = self.ids.find(id)?;
        let of = self.ids.at(index);
        match (event, of.phase()) {
            (AsyncEventType::CommEst, Some(Phase::RepSent)) => self.established(index),
            (AsyncEventType::CommEst, Some(Phase::Established)) => {
                let text = format!("{id} is established already");
                return Err(Refusal::new(IS_CONNECTED, Cause::Text(text.into())));
            }
            (_, None) | (AsyncEventType::CommEst, _) => {
                return Err(wrong_state(id, of.state));
            }
            (AsyncEventType::PathMig, _) => {}
            _ => {
                let problem = "is not an event of a connection";
                return Err(invalid("event", problem));
            }
        }
        Ok(())
    }

    /// Refuses to end a connection that never began.
    pub(crate) fn check_connected(&self, id: CmId) -> Result<()> {
        let of = self.ids.at(self.ids.find(id)?);
        match (&of.conn, of.state) {
            // No messages come for a listener, so the call has no effect.
            (Some(_), _) | (None, State::Listening) => Ok(()),
            (None, State::Removed) => Err(Refusal::new(NO_SUCH_DEVICE, Cause::Unspecified)),
            (None, state) => Err(wrong_state(id, state)),
        }
    }

    /// `rdma_disconnect`, once the queue pair has stopped.
    pub(crate) fn disconnect(&mut self, id: CmId) -> Result<()> {
        self.check_connected(id)?;
        let index = self.ids.find(id)?;
        match self.ids.at(index).phase() {
            Some(Phase::Established) => self.ask_to_end(index),
            Some(Phase::DreqReceived) => {
                self.agree_to_end(index);
                self.enter_timewait(index, 0);
            }
            _ => {}
        }
        Ok(())
    }

    /// Asks the other side to end the connection too.
    pub(super) fn ask_to_end(&mut self, index: u32) {
        if let Some(conn) = &mut self.ids.at_mut(index).conn {
            conn.phase = Phase::DreqSent;
            let message = CmMessage::Dreq(Dreq {
                local_comm_id: conn.ours,
                remote_comm_id: conn.theirs,
                remote_qpn: conn.remote_qpn,
                ..Dreq::default()
            });
            self.send_and_wait(index, message);
        }
    }

    /// Answers the request to end a connection.
    fn agree_to_end(&mut self, index: u32) {
        if let Some(conn) = &self.ids.at(index).conn {
            self.send(index, message::drep(conn.ours, conn.theirs));
        }
    }

    /// Ends the connections of all ids before their process ends.
    pub(crate) fn end_all(&mut self) {
        for index in self.ids.table.indices(|id| id.conn.is_some()) {
            self.end(index);
        }
    }

    /// Ends the connection of an id before the id is destroyed.
    pub(super) fn end(&mut self, index: u32) {
        match self.ids.at(index).phase() {
            Some(Phase::ReqSent) => self.refuse(index, reason::TIMEOUT, &[]),
            Some(
                Phase::ReqReceived | Phase::RepSent | Phase::RepReceived | Phase::SidrReqReceived,
            ) => self.refuse(index, reason::CONSUMER, &[]),
            Some(Phase::Established) => self.ask_to_end(index),
            Some(Phase::DreqReceived) => self.agree_to_end(index),
            // A request that waits for datagrams needs no answer.
            _ => {}
        }
        self.forget_conn(index);
    }
}

/// `EISCONN`
const IS_CONNECTED: ErrorKind = ErrorKind::Os(106);

/// `ENXIO`
const NO_SUCH_DEVICE: ErrorKind = ErrorKind::Os(6);

fn or_most(given: u8, most: u8) -> u8 {
    match given {
        // The value stands for the maximum of the device.
        RDMA_MAX_INIT_DEPTH => most,
        given => given,
    }
}

fn check_length(private_data: &[u8], room: usize) -> Result<()> {
    let (length, room) = (private_data.len() as i64, room as i64);
    in_range("private_data_len", length, 0, room)
}

/// Refuses more reads than the device supports.
fn check_reads(param: &ConnParam<'_>, limits: Reads) -> Result<()> {
    let responder = ("responder_resources", param.responder_resources);
    let initiator = ("initiator_depth", param.initiator_depth);
    for ((what, given), most) in [(responder, limits.responder), (initiator, limits.initiator)] {
        if given != RDMA_MAX_RESP_RES {
            in_range(what, given.into(), 0, most.into())?;
        }
    }
    Ok(())
}
