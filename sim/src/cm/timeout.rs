//! Timeouts of the connection manager.

use verbs_api::ErrorKind;
use verbs_api::cm::CmEventType;

use super::Manager;
use super::conn::Phase;
use super::events::status_of;
use super::id::State;

impl Manager {
    /// Fires all timers that are due.
    pub(crate) fn handle_timeout(&mut self) {
        while let Some((at, index)) = self.timers.first()
            && at <= self.now
        {
            self.timers.set(index, None);
            self.timeout(index);
        }
    }

    fn timeout(&mut self, index: u32) {
        if self.ids.at(index).state == State::Resolving {
            return self.give_up_resolving(index);
        }
        let Some(conn) = &mut self.ids.at_mut(index).conn else {
            return;
        };
        // Datagrams may be lost, so the peer is given up only after several retries.
        if let Some(waiting) = &mut conn.waiting
            && waiting.retries_left > 0
        {
            waiting.retries_left -= 1;
            let mad = waiting.mad.clone();
            self.send(index, mad);
            return self.timers.set(index, Some(self.now.after(self.timeout)));
        }
        conn.waiting = None;
        let timed_out = status_of(ErrorKind::TimedOut);
        match conn.phase {
            Phase::ReqSent | Phase::RepSent | Phase::SidrReqSent => {
                conn.phase = Phase::Idle;
                self.forget_numbers(index);
                self.raise(index, CmEventType::Unreachable, timed_out);
            }
            // The connection ends even without an answer.
            Phase::DreqSent => {
                self.enter_timewait(index);
                self.disconnected(index, timed_out);
            }
            Phase::Timewait => {
                conn.phase = Phase::Idle;
                self.forget_numbers(index);
                self.raise(index, CmEventType::TimewaitExit, 0);
            }
            _ => {}
        }
    }

    /// Ends a connection. The program gets one event, even if both sides disconnect.
    pub(super) fn disconnected(&mut self, index: u32, status: i32) {
        let id = self.ids.at_mut(index);
        if id.state == State::Connected {
            id.state = State::Disconnected;
            self.raise(index, CmEventType::Disconnected, status);
        }
    }
}
