//! Which queue pair or SRQ a completion of a CQ belongs to.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::ledger::{self, Clock, Queue, Released};
use super::shared::{self, Shared};
use crate::cq::{Wc, WcStatus};
use crate::table::Table;

/// What completes its work on a CQ.
#[derive(Default)]
pub(super) struct Sources {
    queues: Table<Known>,
    /// The SRQs whose completions come here: by the number of a QP and which SRQ it is; with the
    /// queue of the QP.
    shared: BTreeMap<(u32, u32), (u32, Arc<Shared>)>,
    /// The XRC SRQs whose completions come here, whatever queue pair took the receive.
    xrc: BTreeMap<u32, Arc<Shared>>,
    /// What is to be forgotten when no completion from before a time of the context can come any
    /// more.
    retired: BTreeMap<u64, Retired>,
}

/// A queue whose completions come to the CQ.
struct Known {
    queue: Arc<Queue>,
    /// Which SRQ its QP takes receives from, if it is a receive queue.
    shared: Option<u32>,
    /// When something of it was retired.
    retired: Option<u64>,
}

#[derive(Clone, Copy)]
pub(super) enum Retired {
    /// The QP of this queue was reset: numbers before this one are forgotten.
    Reset(u32, u32),
    /// The QP of this queue was destroyed.
    Destroyed(u32),
    /// This XRC SRQ was destroyed.
    Xrc(u32),
}

impl Sources {
    pub(super) fn add_queue(&mut self, qp_num: u32, qp_context: u64, clock: Clock) -> Arc<Queue> {
        let id = self.queues.insert(|id| Known {
            queue: Arc::new(Queue::new(id.index, qp_num, qp_context, clock)),
            shared: None,
            retired: None,
        });
        self.queues.at(id.index).queue.clone()
    }

    /// Gives a completion the program's own number of the work; its own value of the QP.
    pub(super) fn settle(&mut self, wc: &mut Wc, released: &mut Released) -> u64 {
        let (queue, posted) = match shared::parts(wc.wr_id) {
            Some((key, number)) => {
                let of_qp = self.shared.get(&(wc.qp_num, key));
                let queue = of_qp.and_then(|(index, _)| self.queue(*index));
                let shared = of_qp.map(|(_, shared)| shared).or(self.xrc.get(&key));
                (
                    queue,
                    shared.and_then(|shared| shared.complete(number, released)),
                )
            }
            None => {
                let (index, number) = ledger::parts(wc.wr_id);
                let queue = self.queue(index);
                let queue = queue.filter(|queue| queue.qp_num() == wc.qp_num);
                (
                    queue,
                    queue.and_then(|queue| queue.complete(number, released)),
                )
            }
        };
        let qp_context = queue.map_or(0, |queue| queue.qp_context());
        let Some((posted, at)) = posted else {
            return 0;
        };
        self.forget_before(at);
        wc.wr_id = posted.wr_id;
        if wc.status != WcStatus::Success {
            wc.opcode = posted.opcode;
        }
        qp_context
    }

    fn queue(&self, index: u32) -> Option<&Queue> {
        self.queues.peek(index).map(|known| &*known.queue)
    }

    /// The QP of a queue takes its receives from an SRQ.
    pub(super) fn add_shared(&mut self, queue: &Queue, shared: &Arc<Shared>) {
        let of = (queue.index(), shared.clone());
        self.queues.at_mut(queue.index()).shared = Some(shared.key());
        self.shared.insert((queue.qp_num(), shared.key()), of);
    }

    /// An XRC SRQ completes its receives here.
    pub(super) fn add_xrc(&mut self, shared: &Arc<Shared>) {
        self.xrc.insert(shared.key(), shared.clone());
    }

    /// Forgets something in time. Its remaining completions are in the CQ already, before those of
    /// work posted later.
    pub(super) fn retire(&mut self, what: Retired, at: u64) {
        if let Retired::Reset(index, _) | Retired::Destroyed(index) = what {
            let known = self.queues.at_mut(index);
            if let Some(earlier) = known.retired.replace(at) {
                self.retired.remove(&earlier);
            }
            if known.shared.is_none() && known.queue.is_settled() {
                return self.forget(what);
            }
        }
        self.retired.insert(at, what);
    }

    /// The CQ was found empty: what is left of QPs that are gone has had its time.
    pub(super) fn was_found_empty(&mut self) {
        self.forget_before(u64::MAX);
    }

    /// No completion from before this time can come any more.
    fn forget_before(&mut self, time: u64) {
        while let Some(first) = self.retired.first_entry()
            && *first.key() < time
        {
            let what = first.remove();
            self.forget(what);
        }
    }

    fn forget(&mut self, what: Retired) {
        match what {
            Retired::Reset(index, number) => {
                let known = self.queues.at_mut(index);
                known.retired = None;
                known.queue.forget_before(number);
            }
            Retired::Destroyed(index) => {
                let known = self.queues.remove(index);
                let key = known.shared.map(|shared| (known.queue.qp_num(), shared));
                // Another QP may have its number by now.
                if let Some(key) = key
                    && self.shared.get(&key).is_some_and(|(of, _)| *of == index)
                {
                    self.shared.remove(&key);
                }
            }
            Retired::Xrc(key) => {
                self.xrc.remove(&key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::ledger::{Holds, Posted};
    use super::*;
    use crate::cq::WcOpcode;

    fn sources(queues: u32, clock: &Clock) -> Sources {
        let mut sources = Sources::default();
        for qp_num in 0..queues {
            sources.add_queue(qp_num, 100 + u64::from(qp_num), clock.clone());
        }
        sources
    }

    /// Posts on a queue; what its completion will say.
    fn post(sources: &Sources, index: u32) -> Wc {
        let queue = &sources.queues.at(index).queue;
        let posted = Posted {
            wr_id: 7,
            opcode: WcOpcode::Send,
        };
        let mut wr_id = 0;
        let list = [(posted, Holds::new())].into_iter();
        queue
            .post(list, |first| {
                wr_id = first.wr_id(0);
                Ok(())
            })
            .unwrap();
        Wc {
            wr_id,
            qp_num: queue.qp_num(),
            ..Wc::default()
        }
    }

    /// What is kept of a QP that is gone is forgotten, or a program that makes many would grow: at
    /// once where nothing is expected, else when the CQ is found empty.
    #[test]
    fn queues_of_qps_that_are_gone_are_forgotten_when_the_cq_is_empty() {
        let clock = Clock::default();
        let mut sources = sources(4, &clock);
        for index in 0..3 {
            post(&sources, index);
        }
        sources.retire(Retired::Destroyed(0), clock.pass());
        sources.retire(Retired::Reset(2, 1), clock.pass());
        sources.retire(Retired::Destroyed(3), clock.pass());
        assert!(sources.queues.peek(3).is_none(), "nothing was posted on it");
        assert!(sources.queues.peek(0).is_some());
        sources.was_found_empty();
        assert!(sources.queues.peek(0).is_none());
        assert_eq!(sources.queues.len(), 2);
        assert!(sources.retired.is_empty());
        assert!(sources.queues.at(2).queue.is_settled());
        assert!(!sources.queues.at(1).queue.is_settled());
    }

    /// Also of a CQ that is never empty: the completion of what was posted after a QP was destroyed
    /// comes behind all of that QP.
    #[test]
    fn queues_of_qps_that_are_gone_are_forgotten_when_later_work_completes() {
        let clock = Clock::default();
        let mut sources = sources(3, &clock);
        let released = &mut Released::new();
        let (mut of_gone, mut before) = (post(&sources, 0), post(&sources, 1));
        post(&sources, 0);
        post(&sources, 2);
        sources.retire(Retired::Destroyed(0), clock.pass());
        let mut after = post(&sources, 1);
        sources.retire(Retired::Destroyed(2), clock.pass());
        assert_eq!(sources.settle(&mut before, released), 101);
        assert_eq!(sources.settle(&mut of_gone, released), 100);
        assert_eq!(of_gone.wr_id, 7, "it was in the CQ when its QP went");
        sources.settle(&mut after, released);
        assert!(sources.queues.peek(0).is_none());
        assert!(
            sources.queues.peek(2).is_some(),
            "it went after that was posted"
        );
        assert_eq!(sources.retired.len(), 1);
    }
}
