//! CQ events, and acknowledgements of events of both kinds.

use std::collections::BTreeSet;

use verbs_api::{CompChannel, Context, Cq, CqEvent, CqInit, Element, Handle};

use super::map::Map;

/// What is known of the CQs with a channel, and of events that were read.
#[derive(Debug, Default)]
pub(crate) struct Events {
    cqs: Map<Cq, Notified>,
    /// Events that were read and not acknowledged.
    unacknowledged: Map<Element, u64>,
}

#[derive(Clone, Copy, Debug)]
struct Notified {
    channel: Option<CompChannel>,
    cq_context: u64,
    /// The most events that its arms allow.
    allowed: u64,
    read: u64,
    /// It was armed, and nothing can have completed since.
    surely_armed: bool,
}

/// How an arm is taken back that failed.
pub(crate) struct BeforeArm(Cq, Option<Notified>);

impl Events {
    pub(crate) fn made(&mut self, cq: Cq, init: &CqInit) {
        let notified = Notified {
            channel: init.channel,
            cq_context: init.cq_context,
            allowed: 0,
            read: 0,
            surely_armed: false,
        };
        self.cqs.insert(cq, notified);
    }

    /// A CQ will be armed; `idle` if nothing is outstanding that could complete on it.
    pub(crate) fn arm(&mut self, cq: Cq, idle: bool) -> BeforeArm {
        let before = self.cqs.get(&cq).copied();
        if let Some(notified) = self.cqs.get_mut(&cq) {
            notified.allowed += u64::from(!notified.surely_armed);
            notified.surely_armed = idle;
        }
        BeforeArm(cq, before)
    }

    /// It was not.
    pub(crate) fn take_back(&mut self, BeforeArm(cq, before): BeforeArm) {
        if let Some(before) = before {
            self.cqs.insert(cq, before);
        }
    }

    /// Work was posted that can complete on a CQ.
    pub(crate) fn busy(&mut self, cq: Cq) {
        if let Some(notified) = self.cqs.get_mut(&cq) {
            notified.surely_armed = false;
        }
    }

    /// The channels that have a CQ.
    pub(crate) fn channels(&self) -> BTreeSet<CompChannel> {
        let all = self.cqs.values();
        all.filter_map(|notified| notified.channel).collect()
    }

    /// An event was read: what is wrong with it.
    pub(crate) fn read(&mut self, channel: CompChannel, event: &CqEvent) -> Result<(), String> {
        let CqEvent { cq, cq_context, .. } = *event;
        let Some(notified) = self.cqs.get_mut(&cq) else {
            return Err(format!(
                "{channel} gave an event of {cq}, which is not there"
            ));
        };
        *self.unacknowledged.or_default(Element::Cq(cq)) += 1;
        notified.read += 1;
        if notified.channel != Some(channel) {
            return Err(format!(
                "{channel} gave an event of {cq}, which is not attached to it"
            ));
        }
        if notified.cq_context != cq_context {
            return Err(format!(
                "the event of {cq} has context {cq_context:#x}, not {:#x}",
                notified.cq_context
            ));
        }
        if notified.read > notified.allowed {
            return Err(format!(
                "{channel} gave event {} of {cq}, whose arms allow {}",
                notified.read, notified.allowed
            ));
        }
        Ok(())
    }

    /// An asynchronous event was read.
    pub(crate) fn read_async(&mut self, element: Element) {
        if context_of(element).is_some() {
            *self.unacknowledged.or_default(element) += 1;
        }
    }

    /// Events were acknowledged: what is wrong with that.
    pub(crate) fn acknowledged(&mut self, element: Element, n: u64) -> Result<(), String> {
        if context_of(element).is_none() {
            return Ok(());
        }
        let left = self.unacknowledged.or_default(element);
        match left.checked_sub(n) {
            Some(rest) => {
                *left = rest;
                Ok(())
            }
            None => Err(format!(
                "{n} events of {element} were acknowledged; {left} were read and not acknowledged yet"
            )),
        }
    }

    /// An object was destroyed: the invariant that this breaks, if any.
    pub(crate) fn gone(&mut self, element: Element) -> Result<(), String> {
        if let Element::Cq(cq) = element {
            self.cqs.remove(&cq);
        }
        match self.unacknowledged.remove(&element) {
            Some(left) if left > 0 => Err(format!(
                "{element} was destroyed while {left} of its events were read and not acknowledged"
            )),
            _ => Ok(()),
        }
    }

    /// A context was closed, with all its objects.
    pub(crate) fn closed(&mut self, context: Context) {
        self.cqs.retain(|cq, _| cq.context() != context);
        self.unacknowledged
            .retain(|element, _| context_of(*element) != Some(context));
    }
}

/// The context of an object with events of its own. Devices and ports have none that keep it from
/// being destroyed.
fn context_of(element: Element) -> Option<Context> {
    match element {
        Element::Cq(cq) => Some(cq.context()),
        Element::Qp(qp) => Some(qp.context()),
        Element::Srq(srq) => Some(srq.context()),
        _ => None,
    }
}
