//! Messages of the other side.

use core::net::SocketAddr;
use core::time::Duration;

use verbs_api::AhAttr;
use verbs_api::cm::{CmEventType, CmParam, ConnData, UdData, private_data};
use verbs_roce::mad::{
    CmMad, CmMessage, Dreq, IP_CM, IpCm, Mra, Rej, Rejected, Rep, Req, SidrRep, SidrReq,
};

use super::conn::{Conn, Phase};
use super::host::Host;
use super::id::State;
use super::message::{self, reason, sidr};
use super::numbers::normal;
use super::{Arrival, Manager, Outgoing};

impl Manager {
    /// A message came. What makes no sense is ignored, as the network may have changed it.
    pub(crate) fn receive(&mut self, host: &dyn Host, arrival: Arrival, mad: &CmMad) {
        match &mad.message {
            CmMessage::Req(req) => self.on_req(host, arrival, mad.transaction, req),
            CmMessage::Mra(mra) => self.on_mra(arrival, mra),
            CmMessage::Rej(rej) => self.on_rej(arrival, rej),
            CmMessage::Rep(rep) => self.on_rep(arrival, rep),
            CmMessage::Rtu(rtu) => {
                if let Some((index, Phase::RepSent)) = self.conn_of(arrival, rtu.remote_comm_id) {
                    self.established(index);
                }
            }
            CmMessage::Dreq(dreq) => self.on_dreq(arrival, mad.transaction, dreq),
            CmMessage::Drep(drep) => {
                let conn = self.conn_of(arrival, drep.remote_comm_id);
                if let Some((index, Phase::DreqSent | Phase::DreqReceived)) = conn {
                    self.enter_timewait(index);
                    self.disconnected(index, 0);
                }
            }
            CmMessage::SidrReq(req) => self.on_sidr_req(arrival, mad.transaction, req),
            CmMessage::SidrRep(rep) => self.on_sidr_rep(arrival, rep),
        }
    }

    /// The id that this side calls a connection with this peer by, and how far that is.
    fn conn_of(&self, arrival: Arrival, ours: u32) -> Option<(u32, Phase)> {
        let index = self.numbers.by_ours(ours)?;
        let conn = self.ids.at(index).conn.as_ref()?;
        (normal(conn.to) == normal(arrival.from)).then_some((index, conn.phase))
    }

    fn on_req(&mut self, host: &dyn Host, arrival: Arrival, transaction: u64, req: &Req) {
        let Arrival { to, from } = arrival;
        if let Some(index) = self.numbers.by_theirs(from, req.local_comm_id) {
            // It was repeated: so the answer was lost.
            return self.repeat(index, Phase::RepSent);
        }
        let refuse = |why: u16| Outgoing {
            from: to,
            to: from,
            mad: CmMad {
                transaction,
                message: message::rej((0, req.local_comm_id), Rejected::Req, why, &[]),
            },
        };
        if let Some(old) = self.numbers.by_qp(from, req.qpn) {
            self.egress.push(refuse(reason::STALE_CONNECTION));
            let conn = self.ids.at(old).conn.as_ref();
            if conn.is_some_and(|conn| conn.phase == Phase::Established) {
                self.ask_to_end(old);
            }
            return;
        }
        let ends = IpCm::read(&req.private_data[..]);
        let ends = ends
            .ok()
            .filter(|ends| ends.version == 0 && req.transport == 0);
        let Some(ends) = ends else {
            return self.egress.push(refuse(reason::UNSUPPORTED));
        };
        let Some(listener) = self.ids.listener(arrival, req.service_id, ends.destination) else {
            return self.egress.push(refuse(reason::INVALID_SERVICE_ID));
        };
        if self.ids.at(listener).is_full() {
            // It will be asked for again.
            return;
        }
        let mut conn = Conn::new(self.numbers.next(), transaction, to, from);
        conn.phase = Phase::ReqReceived;
        conn.theirs = req.local_comm_id;
        conn.service_id = req.service_id;
        conn.remote_qpn = req.qpn;
        conn.rq_psn = self.ids.random.any() as u32 & 0x00ff_ffff;
        conn.sq_psn = req.starting_psn;
        conn.responder_resources = req.initiator_depth;
        conn.initiator_depth = req.responder_resources;
        conn.retry_count = req.retry_count;
        conn.rnr_retry_count = req.rnr_retry_count;
        conn.path_mtu = req.path_mtu.min(u32::from(host.mtu(to.id)) as u8);
        conn.ack_timeout = req.primary.local_ack_timeout;
        let mut data = ConnData::default();
        data.private_data = req.private_data[IP_CM..].to_vec();
        data.responder_resources = req.initiator_depth;
        data.initiator_depth = req.responder_resources;
        data.flow_control = req.flow_control.into();
        data.retry_count = req.retry_count;
        data.rnr_retry_count = req.rnr_retry_count;
        (data.srq, data.qp_num) = (req.srq.into(), req.qpn);
        let tos = req.primary.traffic_class;
        self.take_request(listener, (conn, tos), &ends, CmParam::Conn(data));
    }

    /// Makes the id of a request.
    fn take_request(
        &mut self,
        listener: u32,
        (conn, tos): (Conn, u8),
        ends: &IpCm,
        param: CmParam,
    ) {
        let of = self.ids.at(listener);
        let (channel, context, ps) = (of.channel, of.context, of.ps);
        let local = of.local.map_or(0, |local| local.port());
        let child = self.add(channel, context, ps);
        let index = verbs_api::Handle::index(child);
        let id = self.ids.at_mut(index);
        (id.state, id.tos) = (State::Connected, tos);
        id.local = Some(SocketAddr::new(ends.destination, local));
        id.peer = Some(SocketAddr::new(ends.source, ends.source_port));
        (id.port, id.to) = (Some(conn.from), Some(conn.to));
        id.num_paths = u32::from(!ps.is_datagram());
        self.set_conn(index, conn);
        self.raise_request(listener, index, param);
    }

    fn on_rep(&mut self, arrival: Arrival, rep: &Rep) {
        let index = match self.conn_of(arrival, rep.remote_comm_id) {
            Some((index, Phase::ReqSent)) => index,
            Some((index, Phase::Established)) => return self.say_ready(index),
            _ => return,
        };
        self.stop_waiting(index);
        if let Some(conn) = &mut self.ids.at_mut(index).conn {
            conn.phase = Phase::RepReceived;
            conn.theirs = rep.local_comm_id;
            conn.remote_qpn = rep.qpn;
            conn.sq_psn = rep.starting_psn;
            conn.responder_resources = rep.initiator_depth;
            conn.initiator_depth = rep.responder_resources;
            conn.rnr_retry_count = rep.rnr_retry_count;
            self.numbers.add(index, conn);
        }
        let mut data = ConnData::default();
        data.private_data = rep.private_data.to_vec();
        data.responder_resources = rep.initiator_depth;
        data.initiator_depth = rep.responder_resources;
        data.flow_control = rep.flow_control.into();
        data.rnr_retry_count = rep.rnr_retry_count;
        (data.srq, data.qp_num) = (rep.srq.into(), rep.qpn);
        self.raise_with(index, CmEventType::ConnectResponse, 0, CmParam::Conn(data));
    }

    /// Says again that this side is ready.
    fn say_ready(&mut self, index: u32) {
        if let Some(conn) = &self.ids.at(index).conn {
            let mad = conn.mad(message::rtu(conn));
            self.send(index, mad);
        }
    }

    /// Sends again what waits for an answer, in this phase.
    fn repeat(&mut self, index: u32, phase: Phase) {
        let conn = self.ids.at(index).conn.as_ref();
        let conn = conn.filter(|conn| conn.phase == phase);
        if let Some(waiting) = conn.and_then(|conn| conn.waiting.clone()) {
            self.send(index, waiting.mad);
        }
    }

    fn on_rej(&mut self, arrival: Arrival, rej: &Rej) {
        let by_theirs = || {
            let index = self.numbers.by_theirs(arrival.from, rej.local_comm_id)?;
            let conn = self.ids.at(index).conn.as_ref()?;
            Some((index, conn.phase))
        };
        let Some((index, phase)) = self.conn_of(arrival, rej.remote_comm_id).or_else(by_theirs)
        else {
            return;
        };
        match phase {
            // The program learns of it when it answers.
            Phase::ReqReceived => {
                if let Some(conn) = &mut self.ids.at_mut(index).conn {
                    conn.phase = Phase::Idle;
                }
                self.forget_numbers(index);
            }
            Phase::ReqSent | Phase::RepSent | Phase::RepReceived => {
                self.stop_waiting(index);
                if let Some(conn) = &mut self.ids.at_mut(index).conn {
                    conn.phase = Phase::Idle;
                }
                self.forget_numbers(index);
                let mut data = ConnData::default();
                data.private_data = rej.private_data.to_vec();
                let status = i32::from(rej.reason);
                self.raise_with(index, CmEventType::Rejected, status, CmParam::Conn(data));
            }
            Phase::DreqSent => {
                self.enter_timewait(index);
                self.disconnected(index, 0);
            }
            _ => {}
        }
    }

    /// The other side asks for more time.
    fn on_mra(&mut self, arrival: Arrival, mra: &Mra) {
        let conn = self.conn_of(arrival, mra.remote_comm_id);
        if let Some((index, Phase::ReqSent | Phase::RepSent | Phase::SidrReqSent)) = conn {
            let service = Duration::from_nanos(4096 << mra.service_timeout);
            let at = self.now.after(self.timeout + service);
            self.timers.set(index, Some(at));
        }
    }

    fn on_dreq(&mut self, arrival: Arrival, transaction: u64, dreq: &Dreq) {
        let found = self.conn_of(arrival, dreq.remote_comm_id);
        match found {
            Some((index, Phase::RepSent | Phase::Established | Phase::DreqSent)) => {
                self.stop_waiting(index);
                if let Some(conn) = &mut self.ids.at_mut(index).conn {
                    conn.phase = Phase::DreqReceived;
                    conn.transaction = transaction;
                }
                self.disconnected(index, 0);
            }
            Some((_, Phase::DreqReceived | Phase::RepReceived | Phase::ReqSent)) => {}
            // The answer was lost, or this side does not know of it any more.
            _ => self.egress.push(Outgoing {
                from: arrival.to,
                to: arrival.from,
                mad: CmMad {
                    transaction,
                    message: message::drep(dreq.remote_comm_id, dreq.local_comm_id),
                },
            }),
        }
    }

    fn on_sidr_req(&mut self, arrival: Arrival, transaction: u64, req: &SidrReq) {
        let Arrival { to, from } = arrival;
        if self.numbers.by_theirs(from, req.request_id).is_some() {
            return;
        }
        let refuse = |status: u8| Outgoing {
            from: to,
            to: from,
            mad: CmMad {
                transaction,
                message: message::sidr_rep((req.request_id, req.service_id), status, (0, 0), &[]),
            },
        };
        let ends = IpCm::read(&req.private_data[..]).ok();
        let found = ends.filter(|ends| ends.version == 0).and_then(|ends| {
            let listener = self
                .ids
                .listener(arrival, req.service_id, ends.destination)?;
            Some((listener, ends))
        });
        let Some((listener, ends)) = found else {
            return self.egress.push(refuse(sidr::UNSUPPORTED));
        };
        if self.ids.at(listener).is_full() {
            return self.egress.push(refuse(sidr::REJECTED));
        }
        let mut conn = Conn::new(self.numbers.next(), transaction, to, from);
        conn.phase = Phase::SidrReqReceived;
        (conn.theirs, conn.service_id) = (req.request_id, req.service_id);
        let mut data = UdData::default();
        data.private_data = req.private_data[IP_CM..].to_vec();
        self.take_request(listener, (conn, 0), &ends, CmParam::Ud(data));
    }

    fn on_sidr_rep(&mut self, arrival: Arrival, rep: &SidrRep) {
        let Some((index, Phase::SidrReqSent)) = self.conn_of(arrival, rep.request_id) else {
            return;
        };
        self.stop_waiting(index);
        let Some(conn) = &mut self.ids.at_mut(index).conn else {
            return;
        };
        conn.phase = Phase::Idle;
        let (from, to) = (conn.from, conn.to);
        self.forget_numbers(index);
        let mut data = UdData::default();
        data.private_data = rep.private_data.to_vec();
        if rep.status != sidr::VALID {
            let (event, status) = (CmEventType::Unreachable, rep.status.into());
            return self.raise_with(index, event, status, CmParam::Ud(data));
        }
        data.ah_attr = AhAttr {
            dlid: to.lid,
            ..AhAttr::global(from.id.port, from.gid_index, to.gid)
        };
        (data.qp_num, data.qkey) = (rep.qpn, rep.qkey);
        self.raise_with(index, CmEventType::Established, 0, CmParam::Ud(data));
    }
}

const _: () = assert!(private_data::REQ + IP_CM == 92);
