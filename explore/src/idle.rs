//! Polls that find nothing, as lines of a trace.

use verbs_api::lab::{TraceEvent, TraceRecord};

/// Polls that found nothing. The trace of the simulator leaves them out, since there may be a
/// million in a row. Here those in a row are counted.
#[derive(Debug, Default)]
pub(crate) struct Idle(Vec<Polls>);

/// The same poll again and again, while nothing else happened.
#[derive(Debug)]
struct Polls {
    /// How many records the trace had then.
    after: usize,
    first: TraceRecord,
    times: u64,
}

impl Idle {
    /// One more, when the trace had `after` records.
    pub(crate) fn add(&mut self, after: usize, record: TraceRecord) {
        let row = self.0.iter_mut().rev();
        let mut row = row.take_while(|polls| polls.after == after);
        let is_same = |polls: &&mut Polls| {
            (polls.first.node, &polls.first.event) == (record.node, &record.event)
        };
        match row.find(is_same) {
            Some(polls) => polls.times += 1,
            None => self.0.push(Polls {
                after,
                first: record,
                times: 1,
            }),
        }
    }

    /// The trace with a record for each poll that was repeated. A single one says nothing.
    pub(crate) fn shown_in(&self, trace: Vec<TraceRecord>) -> Vec<TraceRecord> {
        let mut repeated = self.0.iter().filter(|polls| polls.times > 1).peekable();
        let mut shown = Vec::with_capacity(trace.len());
        for (at, record) in trace.into_iter().enumerate() {
            while let Some(polls) = repeated.next_if(|polls| polls.after <= at) {
                shown.push(polls.record());
            }
            shown.push(record);
        }
        shown.extend(repeated.map(Polls::record));
        shown
    }
}

impl Polls {
    fn record(&self) -> TraceRecord {
        let (first, times) = (&self.first, self.times);
        let call = format!("{}, {times} times", first.event);
        TraceRecord::new(first.at, first.node, TraceEvent::Call { call })
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use super::*;

    fn call(call: &str) -> TraceRecord {
        let call = call.to_owned();
        TraceRecord::new(Duration::ZERO, 0, TraceEvent::Call { call })
    }

    #[test]
    fn polls_in_a_row_are_one_record_for_each_cq() {
        let mut idle = Idle::default();
        for (after, polled) in [(1, "a"), (1, "b"), (1, "a"), (1, "b"), (1, "a"), (2, "a")] {
            idle.add(after, call(polled));
        }
        let shown = idle.shown_in(vec![call("first"), call("second")]);
        let shown: Vec<_> = shown
            .iter()
            .map(|record| record.event.to_string())
            .collect();
        assert_eq!(shown, ["first", "a, 3 times", "b, 2 times", "second"]);
    }
}
