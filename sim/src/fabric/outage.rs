//! Ports that go down and come up at the times of fault rules.

use verbs_api::lab::FaultId;

use crate::packet::PortId;
use crate::time::Time;
use crate::trigger::Trigger;

/// The rules in force.
#[derive(Default)]
pub(super) struct Outages {
    /// Rules in the order in which they were added.
    all: Vec<Outage>,
    /// When the next port changes.
    pub(super) next: Option<Time>,
}

/// A port that is down for a time.
struct Outage {
    port: PortId,
    down_at: Time,
    up_at: Option<Time>,
    state: State,
    trigger: Trigger,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Before,
    Down,
    Over,
}

impl Outage {
    fn next(&self) -> Option<Time> {
        match self.state {
            State::Before => Some(self.down_at),
            State::Down => self.up_at,
            State::Over => None,
        }
    }
}

impl Outages {
    pub(super) fn add(
        &mut self,
        port: PortId,
        down_at: Time,
        up_at: Option<Time>,
        trigger: Trigger,
    ) {
        self.all.push(Outage {
            port,
            down_at,
            up_at,
            state: State::Before,
            trigger,
        });
        self.find_next();
    }

    fn find_next(&mut self) {
        self.next = self.all.iter().filter_map(Outage::next).min();
    }

    /// Takes the next change: the port, and whether it comes up.
    pub(super) fn take(&mut self) -> Option<(PortId, bool)> {
        let next = self.next?;
        let mut due = self.all.iter_mut().filter(|one| one.next() == Some(next));
        let outage = due.next()?;
        let up = outage.state == State::Down;
        // Going down and up is one strike.
        if !up {
            outage.trigger.strikes(true);
        }
        outage.state = if up { State::Over } else { State::Down };
        let port = outage.port;
        self.find_next();
        Some((port, up))
    }

    /// Removes a rule, if it is here. Returns the port if the rule currently holds it down.
    pub(super) fn remove(&mut self, id: FaultId) -> Option<PortId> {
        let position = self.all.iter().position(|one| one.trigger.id == id)?;
        let outage = self.all.remove(position);
        self.find_next();
        (outage.state == State::Down).then_some(outage.port)
    }
}
