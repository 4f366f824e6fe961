//! A connection, or a request for datagrams: its phase, its negotiated parameters, its messages and
//! its timeouts.

use core::time::Duration;

use verbs_api::ErrorKind;
use verbs_api::cm::CmEventType;
use verbs_roce::mad::{CmMessage, Ece};

use super::Manager;
use super::event_channel::status_of;
use super::host::{Exchange, Host};
use super::id::{Id, State};
use super::message::MAX_RETRIES;
use crate::device::Ender;
use crate::displayed::displayed;

/// After this time no packet of an ended connection is in flight, as in Linux.
const TIMEWAIT: Duration = Duration::from_millis(1600);

/// A connection.
#[derive(Clone, Debug, Default)]
pub(super) struct Conn {
    pub(super) phase: Phase,
    /// The local communication id, or the id of a request for datagrams; `theirs` is that of the
    /// other side.
    pub(super) ours: u32,
    pub(super) theirs: u32,
    pub(super) exchange: Exchange,
    pub(super) service_id: u64,
    /// The local queue pair.
    pub(super) qpn: u32,
    /// The remote queue pair.
    pub(super) remote_qpn: u32,
    /// The first sequence number of requests of the other side, chosen here.
    pub(super) rq_psn: u32,
    /// The first sequence number of requests of this side, chosen there.
    pub(super) sq_psn: u32,
    pub(super) responder_resources: u8,
    pub(super) initiator_depth: u8,
    /// The `initiator_depth` that this side has asked for, if it is the client.
    pub(super) asked_depth: Option<u8>,
    pub(super) retry_count: u8,
    pub(super) rnr_retry_count: u8,
    /// Code of the path MTU.
    pub(super) path_mtu: u8,
    /// Code of the queue pair's timeout.
    pub(super) ack_timeout: u8,
    /// The options that its request or its answer carries.
    pub(super) ece: Ece,
    /// Its messages do not leave, because the listener exists and has not said its address.
    pub(super) is_held: bool,
    /// The message that is repeated until it is answered.
    pub(super) waiting: Option<Waiting>,
}

/// A message that waits for its answer.
#[derive(Clone, Debug)]
pub(super) struct Waiting {
    pub(super) message: CmMessage,
    /// The number of retries left.
    pub(super) retries_left: u8,
}

displayed! {
    /// The phase of a connection. Its text is the step that is outstanding.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub(super) enum Phase {
        /// No messages yet, or no further messages.
        #[default]
        Idle = "its connection is over";
        ReqSent = "the other side has not answered the request for a connection";
        ReqReceived = "the request was read, and is neither accepted nor rejected";
        RepSent = "the other side has not confirmed that its request was accepted";
        RepReceived = "the request was accepted, and rdma_establish was not called";
        Established = "it is connected, and no side disconnects";
        DreqSent = "the other side has not answered rdma_disconnect";
        DreqReceived = "the other side has disconnected, and rdma_disconnect was not called";
        /// No further messages, but packets may be in flight.
        Timewait = "its connection is over";
        SidrReqSent = "the other side has not answered the request for a connection";
        SidrReqReceived = "the request was read, and is neither accepted nor rejected";
    }
}

impl Manager {
    /// Fires all timers that are due.
    pub(crate) fn handle_timeout(&mut self, host: Host<'_>) {
        while let Some((at, index)) = self.timers.first()
            && at <= self.now
        {
            self.timers.set(index, None);
            self.timeout(host, index);
        }
    }

    fn timeout(&mut self, host: Host<'_>, index: u32) {
        let timed_out = status_of(ErrorKind::TimedOut);
        if self.ids.at(index).state == State::Resolving {
            self.ids.at_mut(index).state = State::Bound;
            return self.raise(index, CmEventType::AddrError, timed_out);
        }
        let Some(conn) = &mut self.ids.at_mut(index).conn else {
            return;
        };
        // Datagrams may be lost, so the peer is given up only after several retries.
        if let Some(waiting) = &mut conn.waiting
            && waiting.retries_left > 0
        {
            waiting.retries_left -= 1;
            let message = waiting.message.clone();
            self.send(index, message);
            return self.timers.set(index, Some(self.now.after(self.timeout)));
        }
        conn.waiting = None;
        match conn.phase {
            Phase::ReqSent | Phase::RepSent | Phase::SidrReqSent => {
                self.close(index);
                self.raise(index, CmEventType::Unreachable, timed_out);
            }
            // The connection ends even without an answer.
            Phase::DreqSent => self.enter_timewait(index, timed_out),
            Phase::Timewait => {
                self.close(index);
                // TCP waits without the program.
                if !host.is_iwarp() {
                    self.raise(index, CmEventType::TimewaitExit, 0);
                }
            }
            _ => {}
        }
    }

    /// Tells the program that a connection ends. It gets one event, even if both sides disconnect.
    pub(super) fn disconnected(&mut self, index: u32, status: i32) {
        let id = self.ids.at_mut(index);
        if id.state == State::Connected {
            id.state = State::Disconnected;
            self.raise(index, CmEventType::Disconnected, status);
        }
    }

    /// A queue pair has ended its connection, on a device whose errors do. Both sides get their
    /// event at once.
    pub(crate) fn qp_ended(&mut self, node: u32, qp_num: u32, by: Ender) {
        let is_of = |id: &Id| {
            let has_it = id.conn.as_ref().is_some_and(|conn| conn.qpn == qp_num);
            let phase = matches!(id.phase(), Some(Phase::Established | Phase::DreqReceived));
            has_it && phase && id.port.is_some_and(|local| local.id.node == node)
        };
        for index in self.ids.table.indices(is_of) {
            match by {
                Ender::Own => {
                    self.ask_to_end(index);
                    self.disconnected(index, 0);
                }
                Ender::Peer => self.enter_timewait(index, 0),
            }
        }
    }

    /// Marks a connection as established.
    pub(super) fn established(&mut self, index: u32) {
        self.stop_waiting(index);
        self.set_phase(index, Phase::Established);
        self.raise(index, CmEventType::Established, 0);
    }

    /// Ends a connection whose packets may still be in flight.
    pub(super) fn enter_timewait(&mut self, index: u32, status: i32) {
        self.stop_waiting(index);
        self.timers.set(index, Some(self.now.after(TIMEWAIT)));
        self.set_phase(index, Phase::Timewait);
        self.disconnected(index, status);
    }

    /// Ends the messages of a connection: later ones no longer find it.
    pub(super) fn close(&mut self, index: u32) {
        self.set_phase(index, Phase::Idle);
        self.forget_numbers(index);
    }

    pub(super) fn set_phase(&mut self, index: u32, phase: Phase) {
        if let Some(conn) = &mut self.ids.at_mut(index).conn {
            conn.phase = phase;
        }
    }

    /// Sends a message of an id's connection, unless they are held.
    pub(super) fn send(&mut self, index: u32, message: CmMessage) {
        if let Some(conn) = &self.ids.at(index).conn
            && !conn.is_held
        {
            self.egress.push((conn.exchange, message));
        }
    }

    /// Sends a message of an id's connection, and repeats it until it is answered.
    pub(super) fn send_and_wait(&mut self, index: u32, message: CmMessage) {
        self.send(index, message.clone());
        if let Some(conn) = &mut self.ids.at_mut(index).conn {
            let retries_left = MAX_RETRIES;
            conn.waiting = Some(Waiting {
                message,
                retries_left,
            });
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
