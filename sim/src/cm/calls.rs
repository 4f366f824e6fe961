//! The calls of a program on connections.

use core::net::SocketAddr;

use verbs_api::cm::{CmEventType, CmId, ConnParam, RDMA_UDP_QKEY, private_data};
use verbs_api::{AsyncEventType, Cause, Error, ErrorKind, Result, Verb};
use verbs_roce::mad::{CmMad, Rejected};

use super::bind::unspecified;
use super::conn::{Conn, Phase, Waiting};
use super::host::Host;
use super::id::{State, wrong_state};
use super::message::{self, Ends, MAX_RETRIES, reason, sidr};
use super::params::{ACK_TIMEOUT, check_length, check_private_data, check_reads, or_most};
use super::{Manager, Outgoing};

/// After this time no packet of an ended connection is in flight, as in Linux.
const TIMEWAIT: core::time::Duration = core::time::Duration::from_millis(1600);

/// The limit of waiting requests, as in Linux.
const MAX_BACKLOG: usize = 1024;

impl Manager {
    /// `rdma_listen`
    pub(crate) fn listen(&mut self, host: &dyn Host, id: CmId, backlog: i32) -> Result<()> {
        let verb = Verb::CmListen;
        let index = self.ids.find(verb, id)?;
        match self.ids.at(index).state {
            State::Idle => {
                let any = unspecified(SocketAddr::from(([0, 0, 0, 0], 0)));
                self.ids.bind(host, verb, index, any, false)?;
            }
            State::Bound => {
                let of = self.ids.at(index);
                if let Some(local) = of.local {
                    self.ids.check_port(verb, of, local)?;
                }
            }
            state => return Err(wrong_state(verb, id, state)),
        }
        let of = self.ids.at_mut(index);
        // A listener no longer shares its address.
        (of.state, of.reuse_addr) = (State::Listening, false);
        // All other values stand for the limit, as in Linux.
        of.backlog = match usize::try_from(backlog) {
            Ok(backlog @ 1..=MAX_BACKLOG) => backlog,
            _ => MAX_BACKLOG,
        };
        self.ids.listening += 1;
        Ok(())
    }

    /// `rdma_connect`
    pub(crate) fn connect(
        &mut self,
        host: &dyn Host,
        id: CmId,
        param: &ConnParam<'_>,
    ) -> Result<()> {
        let verb = Verb::CmConnect;
        let index = self.ids.find(verb, id)?;
        let of = self.ids.at(index);
        let known = (of.local.zip(of.peer), of.port.zip(of.to));
        let (State::RouteResolved, (Some((src, dst)), Some((from, to)))) = (of.state, known) else {
            return Err(wrong_state(verb, id, of.state));
        };
        let ends = Ends { src, dst };
        let (ps, is_datagram) = (of.ps, of.ps.is_datagram());
        let room = if is_datagram {
            private_data::SIDR_REQ
        } else {
            private_data::REQ
        };
        check_private_data(verb, param, room)?;
        let limits = host.reads(from.id.node);
        if !is_datagram {
            check_reads(verb, param, limits)?;
        }
        let (own_qp, tos, ack_timeout) = (of.qp, of.tos, of.ack_timeout);
        let mut conn = Conn::new(self.numbers.next(), self.ids.random.any(), from, to);
        conn.service_id = message::service_id(ps, dst.port());
        conn.qpn = own_qp.map_or(param.qp_num, |own| own.qp_num);
        conn.rq_psn = self.ids.random.any() as u32 & 0x00ff_ffff;
        conn.responder_resources = or_most(param.responder_resources, limits.responder);
        conn.initiator_depth = or_most(param.initiator_depth, limits.initiator);
        conn.retry_count = param.retry_count & 7;
        conn.rnr_retry_count = param.rnr_retry_count & 7;
        conn.path_mtu = u32::from(host.mtu(from.id)) as u8;
        conn.ack_timeout = ack_timeout.unwrap_or(ACK_TIMEOUT);
        let has_srq = own_qp.map_or(param.srq != 0, |own| own.has_srq);
        let (phase, message) = if is_datagram {
            let message = message::sidr_req(&conn, ends, param.private_data);
            (Phase::SidrReqSent, message)
        } else {
            let guid = host.guid(from.id.node);
            let message = message::req(&conn, guid, ends, param, has_srq, tos);
            (Phase::ReqSent, message)
        };
        conn.phase = phase;
        let mad = conn.mad(message);
        self.set_conn(index, conn);
        self.ids.at_mut(index).state = State::Connected;
        self.send_and_wait(index, mad);
        Ok(())
    }

    /// `rdma_accept`, once the queue pair is ready.
    pub(crate) fn accept(
        &mut self,
        host: &dyn Host,
        id: CmId,
        param: &ConnParam<'_>,
    ) -> Result<()> {
        let verb = Verb::CmAccept;
        let room = self.ids.check_accept(host, id, param)?;
        let index = self.ids.find(verb, id)?;
        if let Err(error) = check_private_data(verb, param, room) {
            // Linux checks the length only after it has changed the id, so the request is refused.
            self.refuse(index, reason::CONSUMER, &[]);
            return Err(error);
        }
        let rq_psn = self.ids.random.any() as u32 & 0x00ff_ffff;
        let of = self.ids.at_mut(index);
        let own_qp = of.qp;
        let Some(conn) = &mut of.conn else {
            return Ok(());
        };
        conn.qpn = own_qp.map_or(param.qp_num, |own| own.qp_num);
        // A request for datagrams has one answer, and no connection.
        if conn.phase == Phase::SidrReqReceived {
            conn.phase = Phase::Idle;
            let message = message::sidr_rep(
                conn.theirs,
                conn.service_id,
                sidr::VALID,
                conn.qpn,
                RDMA_UDP_QKEY,
                param.private_data,
            );
            let mad = conn.mad(message);
            self.send(index, mad);
            self.forget_numbers(index);
            return Ok(());
        }
        // The program may have set the queue pair to RTR before, with the number chosen then.
        if conn.rq_psn == 0 {
            conn.rq_psn = rq_psn;
        }
        conn.phase = Phase::RepSent;
        let has_srq = own_qp.map_or(param.srq != 0, |own| own.has_srq);
        let guid = host.guid(conn.from.id.node);
        let mad = conn.mad(message::rep(conn, guid, param, has_srq));
        self.send_and_wait(index, mad);
        Ok(())
    }

    /// `rdma_reject`
    pub(crate) fn reject(&mut self, id: CmId, private_data: &[u8]) -> Result<()> {
        let verb = Verb::CmReject;
        let index = self.ids.find(verb, id)?;
        let of = self.ids.at(index);
        let phase = of.conn.as_ref().map(|conn| conn.phase);
        let room = match phase {
            Some(Phase::ReqReceived | Phase::ReqSent | Phase::RepSent | Phase::RepReceived) => {
                private_data::REJ
            }
            Some(Phase::SidrReqReceived) => private_data::SIDR_REP,
            _ => return Err(wrong_state(verb, id, of.state)),
        };
        check_length(verb, private_data, room)?;
        self.refuse(index, reason::CONSUMER, private_data);
        Ok(())
    }

    /// Refuses a request of the other side, or withdraws one of this side.
    fn refuse(&mut self, index: u32, reason: u16, private_data: &[u8]) {
        let Some(conn) = &mut self.ids.at_mut(index).conn else {
            return;
        };
        let phase = core::mem::replace(&mut conn.phase, Phase::Idle);
        let message = match phase {
            Phase::SidrReqReceived => {
                let (request_id, service_id) = (conn.theirs, conn.service_id);
                message::sidr_rep(request_id, service_id, sidr::REJECTED, 0, 0, private_data)
            }
            _ => {
                let rejected = match phase {
                    Phase::ReqReceived | Phase::ReqSent => Rejected::Req,
                    _ => Rejected::Rep,
                };
                message::rej(conn.ours, conn.theirs, rejected, reason, private_data)
            }
        };
        let mad = conn.mad(message);
        self.send(index, mad);
        self.stop_waiting(index);
        self.forget_numbers(index);
    }

    /// `rdma_establish`
    pub(crate) fn establish(&mut self, id: CmId) -> Result<()> {
        let verb = Verb::CmEstablish;
        let index = self.ids.find(verb, id)?;
        let of = self.ids.at_mut(index);
        let conn = of.conn.as_mut();
        let Some(conn) = conn.filter(|conn| conn.phase == Phase::RepReceived) else {
            return Err(wrong_state(verb, id, of.state));
        };
        conn.phase = Phase::Established;
        let mad = conn.mad(message::rtu(conn));
        self.send(index, mad);
        Ok(())
    }

    /// `rdma_notify`
    pub(crate) fn notify(&mut self, id: CmId, event: AsyncEventType) -> Result<()> {
        let verb = Verb::CmNotify;
        let index = self.ids.find(verb, id)?;
        let of = self.ids.at(index);
        let phase = of.conn.as_ref().map(|conn| conn.phase);
        match (event, phase) {
            (AsyncEventType::CommEst, Some(Phase::RepSent)) => {
                self.established(index);
                Ok(())
            }
            (AsyncEventType::CommEst, Some(Phase::Established)) => {
                let text = format!("{id} is established already");
                Err(Error::new(verb, IS_CONNECTED, Cause::Text(text.into())))
            }
            (AsyncEventType::CommEst, Some(_)) => Err(wrong_state(verb, id, of.state)),
            (AsyncEventType::PathMig, Some(_)) => Ok(()),
            (_, Some(_)) => Err(crate::cm::invalid(
                verb,
                "event",
                "is none that a connection is told of",
            )),
            (_, None) => Err(wrong_state(verb, id, of.state)),
        }
    }

    /// `rdma_disconnect`, once the queue pair has stopped.
    pub(crate) fn disconnect(&mut self, id: CmId) -> Result<()> {
        let verb = Verb::CmDisconnect;
        self.ids.check_connected(verb, id)?;
        let index = self.ids.find(verb, id)?;
        let Some(conn) = &mut self.ids.at_mut(index).conn else {
            return Ok(());
        };
        match conn.phase {
            Phase::Established => self.ask_to_end(index),
            Phase::DreqReceived => {
                let mad = conn.mad(message::drep(conn.ours, conn.theirs));
                self.send(index, mad);
                self.enter_timewait(index);
            }
            _ => {}
        }
        Ok(())
    }

    /// Asks the other side to end the connection too.
    pub(super) fn ask_to_end(&mut self, index: u32) {
        if let Some(conn) = &mut self.ids.at_mut(index).conn {
            conn.phase = Phase::DreqSent;
            let mad = conn.mad(message::dreq(conn));
            self.send_and_wait(index, mad);
        }
    }

    /// Ends the connections of all ids before their process ends.
    pub(crate) fn end_all(&mut self) {
        for index in self.ids.indices(|id| id.conn.is_some()) {
            self.end(index);
        }
    }

    /// Ends the connection of an id before the id is destroyed.
    pub(super) fn end(&mut self, index: u32) {
        let phase = self.ids.at(index).conn.as_ref().map(|conn| conn.phase);
        match phase {
            Some(Phase::ReqSent) => self.refuse(index, reason::TIMEOUT, &[]),
            Some(
                Phase::ReqReceived | Phase::RepSent | Phase::RepReceived | Phase::SidrReqReceived,
            ) => self.refuse(index, reason::CONSUMER, &[]),
            Some(Phase::Established) => self.ask_to_end(index),
            Some(Phase::DreqReceived) => {
                if let Some(conn) = &self.ids.at(index).conn {
                    let mad = conn.mad(message::drep(conn.ours, conn.theirs));
                    self.send(index, mad);
                }
            }
            // A request that waits for datagrams needs no answer.
            _ => {}
        }
        self.forget_conn(index);
    }

    /// Marks a connection as established.
    pub(super) fn established(&mut self, index: u32) {
        self.stop_waiting(index);
        if let Some(conn) = &mut self.ids.at_mut(index).conn {
            conn.phase = Phase::Established;
        }
        self.raise(index, CmEventType::Established, 0);
    }

    pub(super) fn enter_timewait(&mut self, index: u32) {
        self.stop_waiting(index);
        self.timers.set(index, Some(self.now.after(TIMEWAIT)));
        if let Some(conn) = &mut self.ids.at_mut(index).conn {
            conn.phase = Phase::Timewait;
        }
    }

    /// Sends a message of an id's connection.
    pub(super) fn send(&mut self, index: u32, mad: CmMad) {
        if let Some(conn) = &self.ids.at(index).conn {
            let (from, to) = (conn.from, conn.to);
            self.egress.push(Outgoing { from, to, mad });
        }
    }

    /// Sends a message of an id's connection, and repeats it until it is answered.
    fn send_and_wait(&mut self, index: u32, mad: CmMad) {
        self.send(index, mad.clone());
        if let Some(conn) = &mut self.ids.at_mut(index).conn {
            let retries_left = MAX_RETRIES;
            conn.waiting = Some(Waiting { mad, retries_left });
        }
        self.timers.set(index, Some(self.now.after(self.timeout)));
    }

    /// Notes that the last message was answered.
    pub(super) fn stop_waiting(&mut self, index: u32) {
        if let Some(conn) = &mut self.ids.at_mut(index).conn {
            conn.waiting = None;
        }
        self.timers.set(index, None);
    }
}

/// `EISCONN`
const IS_CONNECTED: ErrorKind = ErrorKind::Os(106);
