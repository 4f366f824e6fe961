//! Messages from the other side.

use core::net::SocketAddr;
use core::time::Duration;

use verbs_api::cm::{CmEventType, CmParam, ConnData, UdData, private_data};
use verbs_roce::mad::{
    CmMessage, Dreq, IP_CM, IpCm, Mra, Rej, Rejected, Rep, Req, SidrRep, SidrReq,
};

use super::Manager;
use super::conn::{Conn, Phase};
use super::host::{Exchange, Host};
use super::id::State;
use super::message::{self, reason, sidr};
use super::numbers::normal;

/// The error number of a TCP connection that was reset, in Linux.
const ECONNRESET: i32 = 104;

impl Manager {
    /// Handles a message. Invalid messages are ignored, because the network may have changed them.
    pub(crate) fn receive(&mut self, host: Host<'_>, arrival: Exchange, message: &CmMessage) {
        match message {
            CmMessage::Req(req) => self.on_req(host, arrival, req),
            CmMessage::Mra(mra) => self.on_mra(arrival, mra),
            CmMessage::Rej(rej) => self.on_rej(host, arrival, rej),
            CmMessage::Rep(rep) => self.on_rep(arrival, rep),
            CmMessage::Rtu(rtu) => {
                if let Some((index, Phase::RepSent)) = self.conn_of(arrival, rtu.remote_comm_id) {
                    self.established(index);
                }
            }
            CmMessage::Dreq(dreq) => self.on_dreq(arrival, dreq),
            CmMessage::Drep(drep) => {
                let conn = self.conn_of(arrival, drep.remote_comm_id);
                if let Some((index, Phase::DreqSent | Phase::DreqReceived)) = conn {
                    self.enter_timewait(index, 0);
                }
            }
            CmMessage::SidrReq(req) => self.on_sidr_req(arrival, req),
            CmMessage::SidrRep(rep) => self.on_sidr_rep(arrival, rep),
        }
    }

    /// The id of a connection with this peer, by the local communication id, and the connection's
    /// phase.
    fn conn_of(&self, arrival: Exchange, ours: u32) -> Option<(u32, Phase)> {
        let index = self.numbers.by_ours(ours)?;
        let conn = self.ids.at(index).conn.as_ref()?;
        (normal(conn.exchange.peer) == normal(arrival.peer)).then_some((index, conn.phase))
    }

    fn on_req(&mut self, host: Host<'_>, arrival: Exchange, req: &Req) {
        let peer = arrival.peer;
        if let Some(index) = self.numbers.by_theirs(peer, req.local_comm_id) {
            // A repeated request means that the answer was lost.
            return self.repeat(index, Phase::RepSent);
        }
        let refusal = |why| message::rej(0, req.local_comm_id, Rejected::Req, why, &[]);
        if let Some(old) = self.numbers.by_qp(peer, req.qpn) {
            // The peer has reused the queue pair, so the old connection is stale.
            let stale = refusal(reason::STALE_CONNECTION);
            self.egress.push((arrival, stale));
            if self.ids.at(old).phase() == Some(Phase::Established) {
                self.ask_to_end(old);
            }
            return;
        }
        let ends = IpCm::read(&req.private_data[..]).ok();
        let Some(ends) = ends.filter(|ends| ends.version == 0 && req.transport == 0) else {
            return self.egress.push((arrival, refusal(reason::UNSUPPORTED)));
        };
        let Some(listener) = self.ids.listener(arrival, req.service_id, ends.destination) else {
            let message = refusal(reason::INVALID_SERVICE_ID);
            return self.egress.push((arrival, message));
        };
        if self.ids.at(listener).is_full() {
            // On iWARP the TCP connection is reset. Elsewhere there is no answer, so the request
            // comes again.
            if host.is_iwarp() {
                self.egress.push((arrival, refusal(reason::CONSUMER)));
            }
            return;
        }
        let conn = Conn {
            phase: Phase::ReqReceived,
            ours: self.numbers.next(),
            theirs: req.local_comm_id,
            exchange: arrival,
            service_id: req.service_id,
            remote_qpn: req.qpn,
            rq_psn: self.ids.random.any() as u32 & 0x00ff_ffff,
            sq_psn: req.starting_psn,
            // Each side provides resources for the reads that the other starts.
            responder_resources: req.initiator_depth,
            initiator_depth: req.responder_resources,
            retry_count: req.retry_count,
            rnr_retry_count: req.rnr_retry_count,
            path_mtu: req
                .path_mtu
                .min(u32::from(host.mtu(arrival.local.id)) as u8),
            ack_timeout: req.primary.local_ack_timeout,
            ..Conn::default()
        };
        let mut data = ConnData::default();
        data.private_data = req.private_data[IP_CM..].to_vec();
        data.responder_resources = req.initiator_depth;
        data.initiator_depth = req.responder_resources;
        data.flow_control = req.flow_control.into();
        data.retry_count = req.retry_count;
        data.rnr_retry_count = req.rnr_retry_count;
        (data.srq, data.qp_num) = (req.srq.into(), req.qpn);
        let tos = req.primary.traffic_class;
        let child = self.take_request(listener, conn, tos, &ends, CmParam::Conn(data));
        self.ids.at_mut(child).ece.receive(req.ece);
    }

    /// Makes the id of a request, and returns it.
    fn take_request(
        &mut self,
        listener: u32,
        conn: Conn,
        tos: u8,
        ends: &IpCm,
        param: CmParam,
    ) -> u32 {
        let of = self.ids.at(listener);
        let (channel, context, ps, handle) = (of.channel, of.context, of.ps, of.handle);
        let local = of.local.map_or(0, |local| local.port());
        let child = self.add(channel, context, ps);
        let index = verbs_api::Handle::index(child);
        let id = self.ids.at_mut(index);
        (id.state, id.tos) = (State::Connected, tos);
        id.listener = Some(handle);
        id.local = Some(SocketAddr::new(ends.destination, local));
        id.peer = Some(SocketAddr::new(ends.source, ends.source_port));
        (id.port, id.to) = (Some(conn.exchange.local), Some(conn.exchange.peer));
        id.num_paths = u32::from(!ps.is_datagram());
        self.set_conn(index, conn);
        self.raise_request(listener, index, param);
        index
    }

    fn on_rep(&mut self, arrival: Exchange, rep: &Rep) {
        let index = match self.conn_of(arrival, rep.remote_comm_id) {
            Some((index, Phase::ReqSent)) => index,
            // A repeated answer means that the last message was lost.
            Some((index, Phase::Established)) => return self.say_ready(index),
            _ => return,
        };
        self.stop_waiting(index);
        self.ids.at_mut(index).ece.receive(rep.ece);
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

    /// Repeats the message that waits for an answer in this phase.
    fn repeat(&mut self, index: u32, phase: Phase) {
        let conn = self.ids.at(index).conn.as_ref();
        let conn = conn.filter(|conn| conn.phase == phase);
        if let Some(waiting) = conn.and_then(|conn| conn.waiting.clone()) {
            self.send(index, waiting.message);
        }
    }

    fn on_rej(&mut self, host: Host<'_>, arrival: Exchange, rej: &Rej) {
        let by_theirs = || {
            let index = self.numbers.by_theirs(arrival.peer, rej.local_comm_id)?;
            Some((index, self.ids.at(index).phase()?))
        };
        let Some((index, phase)) = self.conn_of(arrival, rej.remote_comm_id).or_else(by_theirs)
        else {
            return;
        };
        match phase {
            // The program learns of it when it answers.
            Phase::ReqReceived => self.close(index),
            Phase::ReqSent | Phase::RepSent | Phase::RepReceived => {
                self.stop_waiting(index);
                self.close(index);
                let mut data = ConnData::default();
                data.private_data = rej.private_data.to_vec();
                // A refusal has no reason on iWARP: the TCP connection is reset.
                let status = if host.is_iwarp() {
                    -ECONNRESET
                } else {
                    i32::from(rej.reason)
                };
                self.raise_with(index, CmEventType::Rejected, status, CmParam::Conn(data));
            }
            Phase::DreqSent => self.enter_timewait(index, 0),
            _ => {}
        }
    }

    /// Extends the timeout at the request of the other side.
    fn on_mra(&mut self, arrival: Exchange, mra: &Mra) {
        let conn = self.conn_of(arrival, mra.remote_comm_id);
        if let Some((index, Phase::ReqSent | Phase::RepSent | Phase::SidrReqSent)) = conn {
            let service = Duration::from_nanos(4096 << mra.service_timeout);
            let at = self.now.after(self.timeout + service);
            self.timers.set(index, Some(at));
        }
    }

    fn on_dreq(&mut self, arrival: Exchange, dreq: &Dreq) {
        let found = self.conn_of(arrival, dreq.remote_comm_id);
        match found {
            Some((index, Phase::RepSent | Phase::Established | Phase::DreqSent)) => {
                self.stop_waiting(index);
                if let Some(conn) = &mut self.ids.at_mut(index).conn {
                    conn.phase = Phase::DreqReceived;
                    conn.exchange.transaction = arrival.transaction;
                }
                self.disconnected(index, 0);
            }
            Some((_, Phase::DreqReceived | Phase::RepReceived | Phase::ReqSent)) => {}
            // The answer was lost, or this side no longer knows the connection.
            _ => {
                let message = message::drep(dreq.remote_comm_id, dreq.local_comm_id);
                self.egress.push((arrival, message));
            }
        }
    }

    fn on_sidr_req(&mut self, arrival: Exchange, req: &SidrReq) {
        let (theirs, service_id) = (req.request_id, req.service_id);
        // The program has not answered the first copy of the request yet.
        if self.numbers.by_theirs(arrival.peer, theirs).is_some() {
            return;
        }
        let refusal = |status| message::sidr_rep(theirs, service_id, status, 0, &[]);
        let ends = IpCm::read(&req.private_data[..]).ok();
        let found = ends.filter(|ends| ends.version == 0).and_then(|ends| {
            let listener = self.ids.listener(arrival, service_id, ends.destination)?;
            Some((listener, ends))
        });
        let Some((listener, ends)) = found else {
            return self.egress.push((arrival, refusal(sidr::UNSUPPORTED)));
        };
        if self.ids.at(listener).is_full() {
            return self.egress.push((arrival, refusal(sidr::REJECTED)));
        }
        let conn = Conn {
            phase: Phase::SidrReqReceived,
            ours: self.numbers.next(),
            theirs,
            exchange: arrival,
            service_id,
            ..Conn::default()
        };
        let mut data = UdData::default();
        data.private_data = req.private_data[IP_CM..].to_vec();
        self.take_request(listener, conn, 0, &ends, CmParam::Ud(data));
    }

    fn on_sidr_rep(&mut self, arrival: Exchange, rep: &SidrRep) {
        let Some((index, Phase::SidrReqSent)) = self.conn_of(arrival, rep.request_id) else {
            return;
        };
        self.stop_waiting(index);
        self.close(index);
        let mut data = UdData::default();
        data.private_data = rep.private_data.to_vec();
        if rep.status != sidr::VALID {
            let (event, status) = (CmEventType::Unreachable, rep.status.into());
            return self.raise_with(index, event, status, CmParam::Ud(data));
        }
        if let Some(conn) = &self.ids.at(index).conn {
            data.ah_attr = conn.exchange.local.ah_attr(conn.exchange.peer);
        }
        (data.qp_num, data.qkey) = (rep.qpn, rep.qkey);
        self.raise_with(index, CmEventType::Established, 0, CmParam::Ud(data));
    }
}

const _: () = assert!(private_data::REQ + IP_CM == 92);
