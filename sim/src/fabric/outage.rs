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
pub(super) struct Outage {
    pub(super) port: PortId,
    /// When the port goes down. `None` once it has.
    pub(super) down_at: Option<Time>,
    /// When the port comes up, which ends the outage. `None` if it never does.
    pub(super) up_at: Option<Time>,
    pub(super) trigger: Trigger,
}

impl Outage {
    fn next(&self) -> Option<Time> {
        self.down_at.or(self.up_at)
    }
}

impl Outages {
    pub(super) fn add(&mut self, outage: Outage) {
        self.all.push(outage);
        self.find_next();
    }

    fn find_next(&mut self) {
        self.next = self.all.iter().filter_map(Outage::next).min();
    }

    /// Takes the next change: the port, and whether it comes up.
    pub(super) fn take(&mut self) -> Option<(PortId, bool)> {
        let next = self.next?;
        let mut all = self.all.iter();
        let index = all.position(|one| one.next() == Some(next))?;
        let outage = &mut self.all[index];
        let (port, comes_up) = (outage.port, outage.down_at.take().is_none());
        if comes_up {
            self.all.remove(index);
        } else {
            // Going down and up is one firing.
            outage.trigger.fires(true);
        }
        self.find_next();
        Some((port, comes_up))
    }

    /// Removes a rule, if it is here. Returns the port if the rule currently holds it down.
    pub(super) fn remove(&mut self, id: FaultId) -> Option<PortId> {
        let position = self.all.iter().position(|one| one.trigger.id == id)?;
        let outage = self.all.remove(position);
        self.find_next();
        outage.down_at.is_none().then_some(outage.port)
    }
}
