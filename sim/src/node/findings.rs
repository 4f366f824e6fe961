//! What a program left undone on a node.

use std::collections::BTreeMap;

use verbs_api::table::Table;
use verbs_api::{ArmState, AsyncEventType, Context, Element, Handle, Object, QpState, Verb};

use super::cq::Cq;
use super::qp::Qp;
use super::{InContext, Node};
use crate::diagnosis::{Problem, counted};

impl Node {
    /// All that is known but for what failed.
    pub(crate) fn problems(&self) -> Vec<Problem> {
        let mut problems: Vec<_> = self.history.problems().collect();
        for (_, cq) in self.cqs.iter() {
            problems.extend(self.completions_left(cq));
        }
        for (_, channel) in self.channels.iter() {
            problems.extend(channel.events_left());
        }
        problems.extend(self.unread_async());
        problems.extend(self.unacknowledged());
        problems.extend(self.history.left.iter().cloned());
        problems.extend(self.objects_left(|_| true, false));
        let contexts = self.contexts.len();
        problems.extend((contexts > 0).then_some(Problem::NotClosed { contexts }));
        problems
    }

    /// A context is about to be closed: what it still has (DEV-03).
    pub(super) fn note_left(&mut self, context: Context) {
        let left = self.objects_left(|of| of == context, true);
        self.history.left(left);
    }

    fn completions_left(&self, cq: &Cq) -> Option<Problem> {
        let report = cq.report();
        if report.unpolled == 0 {
            return None;
        }
        let (cq, unpolled) = (report.cq, report.unpolled);
        Some(if self.sleeps_over(cq.index()) {
            let armed = report.armed;
            Problem::LostWakeup {
                cq,
                armed,
                unpolled,
            }
        } else {
            Problem::Unpolled { cq, unpolled }
        })
    }

    /// It is armed for an event, completions that would have made one wait in it, and no event tells of
    /// them.
    fn sleeps_over(&self, index: u32) -> bool {
        let cq = self.cqs.at(index);
        let told = |channel: u32| self.channels.at(channel).tells_of(index);
        let waits = match cq.report().armed {
            ArmState::Off => false,
            ArmState::Solicited => cq.has_solicited(),
            ArmState::Next => true,
        };
        waits
            && cq.channel.is_some_and(|channel| !told(channel))
            && self.moderated.get(index).is_none()
    }

    fn unread_async(&self) -> Vec<Problem> {
        let mut counts: BTreeMap<(String, u32), u32> = BTreeMap::new();
        let unread = self.contexts.iter().flat_map(|(_, open)| &open.events);
        for event in unread.filter(|event| is_error(event.event_type)) {
            let of = match event.element {
                Element::Qp(qp) => match self.find_qp(Verb::GetAsyncEvent, qp) {
                    Ok(index) => name_of(self.qps.at(index)),
                    Err(_) => qp.to_string(),
                },
                other => other.to_string(),
            };
            *counts.entry((of, event.event_type.into())).or_default() += 1;
        }
        let counts = counts.into_iter();
        let problem = |((of, event_type), events): ((String, u32), u32)| Problem::UnreadAsync {
            event_type: event_type.into(),
            of,
            events,
        };
        counts.map(problem).collect()
    }

    fn unacknowledged(&self) -> impl Iterator<Item = Problem> {
        let cqs = self.cqs.iter().map(|(_, cq)| {
            let events = cq.events_unacked + cq.async_unacked;
            (cq.handle.to_string(), events)
        });
        let qps = self.qps.iter();
        let qps = qps.map(|(_, qp)| (name_of(qp), qp.async_unacked));
        let srqs = self.srqs.iter();
        let srqs = srqs.map(|(_, srq)| (srq.handle.to_string(), srq.async_unacked));
        let all = cqs.chain(qps).chain(srqs).filter(|(_, events)| *events > 0);
        all.map(|(of, events)| Problem::Unacknowledged { of, events })
    }

    /// The objects of the contexts that are asked for, users before what they use.
    fn objects_left(&self, of: impl Fn(Context) -> bool + Copy, closed: bool) -> Vec<Problem> {
        let hidden = |pd: u32| self.pds.at(pd).hidden;
        let all = [
            (Object::Qp, names(&self.qps, of, |_, qp| Some(standing(qp)))),
            (
                Object::Srq,
                names(&self.srqs, of, |_, srq| {
                    let receives = counted(srq.iter().count() as u64, "receive", "receives");
                    Some(format!("{} ({receives} outstanding)", srq.handle))
                }),
            ),
            (Object::Mw, names(&self.mws, of, |at, _| numbered("mw", at))),
            (Object::Ah, names(&self.ahs, of, |at, _| numbered("ah", at))),
            (
                Object::Mr,
                names(&self.mrs, of, |at, mr| {
                    let (lkey, length) = (mr.attr().lkey, mr.attr().length);
                    let text = format!("mr#{at} (lkey {lkey:#x}, {length} bytes)");
                    (!hidden(mr.pd())).then_some(text)
                }),
            ),
            (
                Object::Cq,
                names(&self.cqs, of, |_, cq| Some(cq.handle.to_string())),
            ),
            (
                Object::CompChannel,
                names(&self.channels, of, |at, _| numbered("channel", at)),
            ),
            (Object::Xrcd, self.xrc.names(of)),
            (
                Object::Pd,
                names(&self.pds, of, |at, pd| {
                    numbered("pd", at).filter(|_| !pd.hidden)
                }),
            ),
        ];
        let problem = |(kind, names)| not_destroyed(kind, names, closed);
        all.into_iter().filter_map(problem).collect()
    }
}

fn not_destroyed(kind: Object, names: Vec<String>, closed: bool) -> Option<Problem> {
    (!names.is_empty()).then_some(Problem::NotDestroyed {
        kind,
        names,
        closed,
    })
}

/// The names of the objects of contexts, but for those that have none.
pub(super) fn names<T: InContext>(
    table: &Table<T>,
    of: impl Fn(Context) -> bool,
    name: impl Fn(u32, &T) -> Option<String>,
) -> Vec<String> {
    let objects = table.iter().filter(|(_, object)| of(object.context()));
    objects
        .filter_map(|(at, object)| name(at, object))
        .collect()
}

fn numbered(kind: &str, at: u32) -> Option<String> {
    Some(format!("{kind}#{at}"))
}

fn name_of(qp: &Qp) -> String {
    format!("qp {:#x}", qp.qp_num)
}

/// A QP with its state, unless it was never used, and what is outstanding.
fn standing(qp: &Qp) -> String {
    let state = qp.attr.qp_state;
    let mut text = name_of(qp);
    if state != QpState::Reset {
        text += &format!(" in {state}");
    }
    let outstanding = [
        (qp.sq.undone(), "send", "sends"),
        (qp.rq.undone(), "receive", "receives"),
    ];
    let waiting = outstanding.into_iter().filter(|(count, ..)| *count > 0);
    let waiting: Vec<_> = waiting
        .map(|(count, one, many)| counted(count, one, many))
        .collect();
    if !waiting.is_empty() {
        text += &format!(" ({} outstanding)", waiting.join(", "));
    }
    text
}

/// Whether an event tells of something that went wrong.
fn is_error(event: AsyncEventType) -> bool {
    use AsyncEventType as E;
    matches!(
        event,
        E::CqErr
            | E::QpFatal
            | E::QpReqErr
            | E::QpAccessErr
            | E::SrqErr
            | E::DeviceFatal
            | E::PortErr
    )
}
