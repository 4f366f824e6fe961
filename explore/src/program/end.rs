//! The end of a program: what is left is looked at, and destroyed.

use core::fmt;

use verbs_api::{ErrorKind, QpAttrMask, Result, Wait};

use super::objects::{DmMade, Memory, MrMade};
use super::outcome::{Region, Seen};
use super::run::{MANY, Runner};
use super::work::are_undefined;

impl Runner<'_> {
    pub(super) fn end(&mut self) {
        let took = self.settle();
        self.outcome.took.push(took);
        self.left_completions();
        self.left_events();
        self.left_states();
        self.lost_completions();
        self.destroy_queues();
        self.left_bytes();
        self.destroy_the_rest();
    }

    fn left_completions(&mut self) {
        for (number, cq) in self.objects.cqs.live() {
            let expected = self.conditions.expected;
            let expected = expected.and_then(|e| {
                let same = e.completions.get(self.outcome.completions.len());
                same.map(|(_, list)| list.len())
            });
            let mut all = Vec::new();
            // A dead CQ gives an error instead.
            while let Ok(list) = self.poll(cq, MANY, expected.unwrap_or(0).min(MANY)) {
                all.extend_from_slice(&list);
                if list.len() < MANY {
                    break;
                }
            }
            self.outcome.completions.push((number, all));
        }
    }

    fn left_events(&mut self) {
        for (number, channel) in self.objects.channels.live() {
            let mut all = Vec::new();
            while let Ok(Seen::Event(cq)) = self.get_event(channel, Wait::Poll) {
                all.push(cq);
            }
            self.outcome.events.push((number, all));
        }
        for (number, context) in self.objects.contexts.live() {
            let mut all = Vec::new();
            while let Ok(event) = self.get_async_event(context, Wait::Poll) {
                all.push(event);
            }
            self.outcome.async_events.push((number, all));
        }
    }

    /// What failed leaves its memory undefined, but an overrun may lose the completion of it.
    fn lost_completions(&mut self) {
        if self.outcome.overrun().is_empty() {
            return;
        }
        let lost = self.posted.iter().filter(|(_, work)| !work.is_done);
        let bytes = lost.flat_map(|(_, work)| &work.bytes).copied();
        are_undefined(&mut self.undefined, bytes);
    }

    fn left_states(&mut self) {
        for (number, made) in self.objects.qps.live() {
            let state = self.verbs.query_qp(made.qp, QpAttrMask::STATE);
            let state = state.map_or_else(
                |error| Seen::Refused(error.kind()),
                |query| Seen::State(query.attr.qp_state),
            );
            self.outcome.states.push((number, state));
        }
    }

    fn destroy_queues(&mut self) {
        for (context, event) in std::mem::take(&mut self.objects.unacked_async) {
            let acked = self.verbs.ack_async_event(context, &event);
            self.check(format_args!("an asynchronous event"), acked);
        }
        for (number, made) in self.objects.qps.live() {
            let destroyed = self.verbs.destroy_qp(made.qp, Wait::Poll);
            self.check(format_args!("qp {number}"), destroyed);
        }
        for (number, ah) in self.objects.ahs.live() {
            let destroyed = self.verbs.destroy_ah(ah);
            self.check(format_args!("ah {number}"), destroyed);
        }
        for (number, srq) in self.objects.srqs.live() {
            let destroyed = self.verbs.destroy_srq(srq, Wait::Poll);
            self.check(format_args!("srq {number}"), destroyed);
        }
        let took = self.settle();
        self.outcome.took.push(took);
    }

    fn left_bytes(&mut self) {
        for (number, made) in self.objects.mrs.live() {
            // The bytes of a region of device memory are left there.
            let (Memory::Of(mr), _) = made.memory() else {
                continue;
            };
            let mut bytes = vec![0; usize::try_from(made.attr.length).expect("of this machine")];
            let read = self.verbs.read_mr(mr, 0, &mut bytes);
            // The program has unmapped them.
            if matches!(&read, Err(error) if error.kind() == ErrorKind::Fault) {
                continue;
            }
            self.left_of(format!("mr {number}"), Memory::Of(mr), bytes, read);
        }
        for (number, DmMade { dm, length }) in self.objects.dms.live() {
            let mut bytes = vec![0; length as usize];
            let read = self.verbs.copy_from_dm(dm, 0, &mut bytes);
            self.left_of(format!("dm {number}"), Memory::Device(dm), bytes, read);
        }
    }

    fn left_of(&mut self, of: String, memory: Memory, mut bytes: Vec<u8>, read: Result<()>) {
        self.check(format_args!("the bytes of {of}"), read);
        self.blank(memory, 0, &mut bytes);
        let undefined = self.undefined_of(memory).collect();
        self.outcome.regions.push(Region {
            of,
            bytes,
            undefined,
        });
    }

    fn destroy_the_rest(&mut self) {
        let verbs = self.verbs;
        for (number, MrMade { mr, .. }) in self.objects.mrs.live() {
            self.check(format_args!("mr {number}"), verbs.dereg_mr(mr));
        }
        for (number, DmMade { dm, .. }) in self.objects.dms.live() {
            self.check(format_args!("dm {number}"), verbs.free_dm(dm));
        }
        for (number, cq) in self.objects.cqs.live() {
            let events = self.objects.unacked.remove(&cq).unwrap_or(0);
            if events > 0 {
                let acked = verbs.ack_cq_events(cq, events);
                self.check(format_args!("events of cq {number}"), acked);
            }
            let destroyed = verbs.destroy_cq(cq, Wait::Poll);
            self.check(format_args!("cq {number}"), destroyed);
        }
        for (number, channel) in self.objects.channels.live() {
            let destroyed = verbs.destroy_comp_channel(channel);
            self.check(format_args!("channel {number}"), destroyed);
        }
        // A parent domain goes before what it was made of.
        for (number, pd) in self.objects.pds.live().into_iter().rev() {
            self.check(format_args!("pd {number}"), verbs.dealloc_pd(pd));
        }
        for (number, td) in self.objects.tds.live() {
            self.check(format_args!("td {number}"), verbs.dealloc_td(td));
        }
        for (number, context) in self.objects.contexts.live() {
            let closed = verbs.close_device(context);
            self.check(format_args!("context {number}"), closed);
        }
    }

    fn check(&mut self, what: fmt::Arguments<'_>, result: Result<()>) {
        if let Err(error) = result {
            self.fault(what, &error);
        }
    }
}
