//! The threads that wait in verbs, and the condition of each wait.
//!
//! A thread that sleeps has a condition variable of its own, so that a wakeup reaches the threads
//! that wait for it and no others, however many there are.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use verbs_api::site::Site;
use verbs_api::table::{Id, Table};
use verbs_api::{CmChannel, CmId, CompChannel, Context, Cq, Element};

use crate::device::Wakeup;
use crate::displayed::displayed;
use crate::sync::{CHECKED, Condvar};
use crate::time::Time;

displayed! {
    /// The condition that a wait ends on.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) enum WaitFor {
        /// An event on a channel.
        Event(channel: CompChannel) = "an event on {channel}";
        /// An edge of a channel's descriptor: an event after those already seen.
        Edge(channel: CompChannel) = "an edge of {channel}";
        /// An asynchronous event.
        AsyncEvent(context: Context) = "an asynchronous event";
        /// An event of rdma_cm.
        CmEvent(channel: CmChannel) = "an event on {channel}";
        /// The acknowledgement of events about an object.
        Acknowledgement(element: Element) = "events to be acknowledged";
        /// The acknowledgement of events of rdma_cm.
        CmAcknowledgement(id: CmId) = "events to be acknowledged";
        /// The end of a batch on a queue pair with this number, which another thread began at this
        /// site.
        Batch { qp_num: u32, begun_at: Option<Site> } = "the end of a batch on qp {qp_num:#x}";
        /// The end of another thread's iteration over a CQ.
        Iteration(cq: Cq) = "the end of an iteration over {cq}";
    }
}

impl WaitFor {
    /// Whether only another thread of the program can end the wait.
    pub(crate) fn needs_other_thread(self) -> bool {
        matches!(self, Self::Acknowledgement(_) | Self::CmAcknowledgement(_))
    }

    /// The futures by which a task waits for it.
    pub(crate) fn futures(self) -> &'static str {
        match self {
            Self::Event(_) | Self::Edge(_) => {
                "`Cq::next`, or `CompChannel::next` and `CompChannel::next_event`"
            }
            Self::AsyncEvent(_) => "`Context::next_async_event`",
            Self::CmEvent(_) => {
                "`Listener::next_request`, `Resolving::until_resolved`, `CmId::next_event` and the like"
            }
            _ => "none, but without a second thread nothing ends it",
        }
    }

    /// What ends the wait, apart from [`Wakeup::Anything`].
    pub(crate) fn ended_by(self) -> Wakeup {
        match self {
            Self::Event(channel) => Wakeup::Event(channel),
            Self::Edge(channel) => Wakeup::Edge(channel),
            Self::AsyncEvent(context) => Wakeup::AsyncEvent(context),
            Self::CmEvent(channel) => Wakeup::CmEvent(channel),
            Self::Acknowledgement(element) => Wakeup::Acknowledged(element),
            Self::CmAcknowledgement(id) => Wakeup::CmAcknowledged(id),
            Self::Batch { .. } | Self::Iteration(_) => Wakeup::Anything,
        }
    }
}

/// A thread that waits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waiting {
    /// The call that waits.
    pub(crate) call: &'static str,
    pub(crate) wait_for: WaitFor,
    /// The index of the node, or the number of nodes for the connection manager.
    pub(crate) place: u32,
    pub(crate) since: Time,
    pub(crate) site: Option<Site>,
    /// Whether it is known to be the program's main thread. Other threads may wait for events that
    /// need not come.
    pub(crate) is_main: bool,
}

/// All threads that wait.
#[derive(Default)]
pub(crate) struct Waits {
    table: Table<Wait>,
    /// Those that sleep and were not woken, by what wakes them, the first to sleep first.
    asleep: BTreeMap<Wakeup, VecDeque<u32>>,
}

struct Wait {
    waiting: Waiting,
    sleeper: Option<Sleeper>,
}

struct Sleeper {
    wakeup: Arc<Condvar>,
    /// When the sleep ends by the clock of the simulation.
    end: Option<Time>,
    /// Whether the simulation knows the thread.
    is_known: bool,
}

impl Waits {
    /// Adds a thread that waits in a layer over the verbs.
    pub(crate) fn insert(&mut self, waiting: Waiting) -> Id {
        let sleeper = None;
        self.table.insert(|_| Wait { waiting, sleeper })
    }

    pub(crate) fn waiting_mut(&mut self, wait: Id) -> &mut Waiting {
        &mut self.table.at_mut(wait.index).waiting
    }

    /// Adds a thread that sleeps, until `end` at most. Returns what it must wait on, without
    /// releasing the lock before.
    pub(crate) fn sleep(
        &mut self,
        waiting: Waiting,
        end: Option<Time>,
        is_known: bool,
    ) -> (Id, Arc<Condvar>) {
        let wakeup = Arc::new(Condvar::new());
        let sleeper = Some(Sleeper {
            wakeup: wakeup.clone(),
            end,
            is_known,
        });
        let wait = self.table.insert(|_| Wait { waiting, sleeper });
        let asleep = self.asleep.entry(waiting.wait_for.ended_by()).or_default();
        asleep.push_back(wait.index);
        (wait, wakeup)
    }

    /// Removes a thread. Returns whether it was still asleep: not woken.
    pub(crate) fn remove(&mut self, wait: Id) -> bool {
        let was_asleep = self.wakes_up(wait.index);
        self.table.remove(wait.index);
        was_asleep
    }

    pub(crate) fn waiting(&self, wait: Id) -> &Waiting {
        &self.table.at(wait.index).waiting
    }

    /// Whether a thread sleeps and has not been woken.
    pub(crate) fn is_asleep(&self, wait: Id) -> bool {
        let wakeup = self.waiting(wait).wait_for.ended_by();
        let asleep = self.asleep.get(&wakeup);
        asleep.is_some_and(|asleep| asleep.contains(&wait.index))
    }

    /// Whether a thread that the simulation does not know sleeps, or does not know yet that it is
    /// woken.
    pub(crate) fn has_unknown(&self) -> bool {
        let mut waits = self.table.iter();
        waits.any(|(_, wait)| {
            wait.sleeper
                .as_ref()
                .is_some_and(|sleeper| !sleeper.is_known)
        })
    }

    /// When the first sleep ends by the clock of the simulation.
    pub(crate) fn first_end(&self) -> Option<Time> {
        self.ends().map(|(end, _)| end).min()
    }

    /// Wakes the threads whose sleep ends by this time. Returns how many of them are known.
    pub(crate) fn wake_late(&mut self, now: Time) -> u32 {
        let late: Vec<u32> = self
            .ends()
            .filter(|(end, _)| *end <= now)
            .map(|(_, index)| index)
            .collect();
        let woken = late.into_iter().map(|index| {
            self.wakes_up(index);
            self.notify(index)
        });
        woken.sum()
    }

    /// The sleeps that end by the clock of the simulation, with their indices.
    fn ends(&self) -> impl Iterator<Item = (Time, u32)> {
        let asleep = self.asleep.values().flatten();
        asleep.filter_map(|index| {
            let sleeper = self.table.at(*index).sleeper.as_ref()?;
            Some((sleeper.end?, *index))
        })
    }

    /// A thread no longer sleeps. Returns whether it did.
    fn wakes_up(&mut self, index: u32) -> bool {
        let wakeup = self.table.at(index).waiting.wait_for.ended_by();
        let Some(asleep) = self.asleep.get_mut(&wakeup) else {
            return false;
        };
        let place = asleep.iter().position(|other| *other == index);
        let was_asleep = place.and_then(|place| asleep.remove(place)).is_some();
        if asleep.is_empty() {
            self.asleep.remove(&wakeup);
        }
        was_asleep
    }

    /// Wakes the threads that wait for this. Returns how many of them are known.
    pub(crate) fn wake(&mut self, wakeup: Wakeup) -> u32 {
        match wakeup {
            Wakeup::Event(channel) => self.wake_one(wakeup) + self.wake_all(Wakeup::Edge(channel)),
            Wakeup::AsyncEvent(_) | Wakeup::CmEvent(_) => self.wake_one(wakeup),
            Wakeup::Edge(_) | Wakeup::Acknowledged(_) | Wakeup::CmAcknowledged(_) => {
                self.wake_all(wakeup)
            }
            Wakeup::Anything => {
                let mut woken = 0;
                while let Some((wakeup, _)) = self.asleep.first_key_value() {
                    woken += self.wake_all(*wakeup);
                }
                woken
            }
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Waiting> {
        self.table.iter().map(|(_, wait)| &wait.waiting)
    }

    /// Wakes the thread that sleeps longest. A checker chooses which thread reads an event.
    fn wake_one(&mut self, wakeup: Wakeup) -> u32 {
        if CHECKED {
            return self.wake_all(wakeup);
        }
        let Some(asleep) = self.asleep.get_mut(&wakeup) else {
            return 0;
        };
        let first = asleep.pop_front();
        if asleep.is_empty() {
            self.asleep.remove(&wakeup);
        }
        first.map_or(0, |index| self.notify(index))
    }

    fn wake_all(&mut self, wakeup: Wakeup) -> u32 {
        let asleep = self.asleep.remove(&wakeup).unwrap_or_default();
        asleep.into_iter().map(|index| self.notify(index)).sum()
    }

    fn notify(&self, index: u32) -> u32 {
        let sleeper = self.table.at(index).sleeper.as_ref();
        sleeper.map_or(0, |sleeper| {
            sleeper.wakeup.notify_all();
            sleeper.is_known.into()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A thread that sleeps until `wait_for`.
    fn sleep(waits: &mut Waits, wait_for: WaitFor) -> Id {
        let waiting = Waiting {
            call: "a call",
            wait_for,
            place: 0,
            since: Time::ZERO,
            site: None,
            is_main: false,
        };
        waits.sleep(waiting, None, true).0
    }

    /// An event wakes one of the threads that can read it; what all of them can see wakes all. No
    /// other thread is woken (CHAN-33).
    #[test]
    fn a_wakeup_reaches_only_threads_that_wait_for_it() {
        let channel = |index| CompChannel::from_parts(Context::default(), index, 0);
        let mut waits = Waits::default();
        for index in 0..64 {
            sleep(&mut waits, WaitFor::Event(channel(index)));
        }
        let more = [
            WaitFor::Event(channel(7)),
            WaitFor::Edge(channel(7)),
            WaitFor::Edge(channel(7)),
        ];
        let [_, edge, _] = more.map(|wait_for| sleep(&mut waits, wait_for));
        let counts = [7, 7, 7, 64].map(|index| waits.wake(Wakeup::Event(channel(index))));
        assert_eq!(counts, [3, 1, 0, 0]);
        assert!(!waits.remove(edge), "woken already");
        let late = sleep(&mut waits, WaitFor::Event(channel(8)));
        assert!(waits.remove(late), "not woken");
        assert_eq!(waits.wake(Wakeup::Anything), 63);
        assert_eq!(waits.wake(Wakeup::Anything), 0);
    }
}
