//! A counterexample as a sequence diagram: threads and device side by side.

use core::fmt;

use verbs_api::Verb;
use verbs_api::lab::TraceEvent;
use verbs_sim::{Step, What};

use crate::error::ModelError;
use crate::harness::{BODY, Execution, FAILED, START};

/// An execution in which a model failed.
///
/// It prints what failed, the mistake that this points to, and a sequence diagram: a column for
/// each thread and one for the device, with time going down. `>>` marks the fatal step: the call
/// whose error the thread failed with, such as the wait that nothing ended; without such an error
/// the last call before the thread took its objects apart. Where several devices take part, objects
/// have the device's name in front: `sim1.cq#0`.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Counterexample {
    execution: u64,
    failures: Vec<(String, ModelError)>,
    lanes: Vec<String>,
    rows: Vec<Row>,
}

/// Something that happened.
#[derive(Clone, Debug)]
struct Row {
    lane: usize,
    text: String,
    what: Kind,
    /// The number of the device, unless it is a note.
    node: Option<u32>,
    fatal: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Call,
    /// On a line of its own.
    Return,
    Other,
}

/// What an error says of a wait that nothing can end.
const ENDLESS: &str = ": stalled: ";

/// Columns are not wider than this; what is longer goes on below.
const WIDTH: usize = 44;

impl Counterexample {
    pub(crate) fn new(execution: u64, of: Execution) -> Self {
        let mut lanes = vec![BODY.to_owned()];
        lanes.extend(of.threads);
        lanes.push("device".to_owned());
        let mut this = Self {
            execution,
            failures: of.failures,
            lanes,
            rows: Vec::new(),
        };
        let is_start = |step: &Step| matches!(&step.what, What::Note(note) if note == START);
        let start = of.steps.iter().position(is_start).map_or(0, |at| at + 1);
        for step in &of.steps[start..] {
            this.add(step);
        }
        this.mark();
        this.explain();
        this.tell_devices_apart();
        this.drop_empty_lanes();
        this
    }

    /// What failed first, and in which thread.
    pub fn failure(&self) -> (&str, &ModelError) {
        let own = self.failures.iter().find(|(_, failure)| !failure.follows);
        let (thread, failure) = own.unwrap_or(&self.failures[0]);
        (thread, failure)
    }

    /// Which execution of the search it was, from 1.
    pub fn execution(&self) -> u64 {
        self.execution
    }

    fn add(&mut self, step: &Step) {
        let device = self.lanes.len() - 1;
        let lane = self.lanes.iter().position(|name| *name == step.thread);
        let lane = lane.filter(|lane| *lane < device).unwrap_or(0);
        let (lane, text, what, node) = match &step.what {
            What::Note(note) => {
                let message = note.strip_prefix(FAILED);
                if message.is_some_and(|message| self.says(lane, message)) {
                    return;
                }
                (lane, note.clone(), Kind::Other, None)
            }
            What::Record(record) => {
                let node = Some(record.node);
                match &record.event {
                    TraceEvent::Call { call } => (lane, call.clone(), Kind::Call, node),
                    TraceEvent::Return { value } => {
                        return self.add_return(lane, value, record.node);
                    }
                    TraceEvent::Sent(_) | TraceEvent::Received(_) => return,
                    event => {
                        let text = event.to_string().trim_start().to_owned();
                        (device, text, Kind::Other, node)
                    }
                }
            }
        };
        self.rows.push(Row {
            lane,
            text,
            what,
            node,
            fatal: false,
        });
    }

    /// On the line of the call, if nothing came in between.
    fn add_return(&mut self, lane: usize, value: &str, node: u32) {
        match self.rows.last_mut() {
            Some(last) if last.what == Kind::Call && last.lane == lane => {
                last.text = format!("{} = {value}", last.text);
            }
            _ => self.rows.push(Row {
                lane,
                text: format!("= {value}"),
                what: Kind::Return,
                node: Some(node),
                fatal: false,
            }),
        }
    }

    /// Whether a row of a lane has these words.
    fn says(&self, lane: usize, words: &str) -> bool {
        let mut own = self.rows.iter().filter(|row| row.lane == lane);
        own.any(|row| row.text.contains(words))
    }

    fn mark(&mut self) {
        let (thread, failure) = self.failure();
        if let Some(row) = self.last_call(thread, failure) {
            self.rows[row].fatal = true;
        }
    }

    /// The call that a thread failed with. If no call has that error, the wait that was never
    /// woken. Otherwise the last call before the thread destroyed its objects.
    fn last_call(&self, thread: &str, failure: &ModelError) -> Option<usize> {
        let lane = self.lane(thread)?;
        let is_own = |row: &Row| row.what == Kind::Call && row.lane == lane;
        let goes_on = |row: &Row| is_own(row) && !row.takes_apart();
        let rows = &self.rows;
        self.failed_call(thread, failure)
            .or_else(|| self.call_with(lane, |error| error.contains(ENDLESS)))
            .or_else(|| rows.iter().rposition(goes_on))
            .or_else(|| rows.iter().rposition(is_own))
    }

    /// The call of a thread that returned the error it failed with.
    fn failed_call(&self, thread: &str, failure: &ModelError) -> Option<usize> {
        self.call_with(self.lane(thread)?, |error| failure.has(error))
    }

    /// The last call of a lane that returned such an error.
    fn call_with(&self, lane: usize, is_it: impl Fn(&str) -> bool) -> Option<usize> {
        let is_own = |row: &Row| row.lane == lane;
        let failed = |row: &Row| is_own(row) && row.error().is_some_and(&is_it);
        let failed = self.rows.iter().rposition(failed)?;
        let is_call = |row: &Row| is_own(row) && row.what == Kind::Call;
        self.rows[..=failed].iter().rposition(is_call)
    }

    fn lane(&self, thread: &str) -> Option<usize> {
        self.lanes.iter().position(|name| name == thread)
    }

    /// Adds what the steps show about a CQ that was armed too late.
    fn explain(&mut self) {
        let nodes = self.nodes_of_failures();
        for ((_, failure), node) in self.failures.iter_mut().zip(nodes) {
            let Some(cq) = failure.armed_late else {
                continue;
            };
            let call = |row: &Row, verb: Verb| {
                row.node == node && row.text.starts_with(&format!("{verb}({cq},"))
            };
            let armed = self
                .rows
                .iter()
                .rposition(|row| call(row, Verb::ReqNotifyCq));
            let Some(armed) = armed else { continue };
            let polled = self.rows[armed..].iter().any(|row| call(row, Verb::PollCq));
            failure.polled_after_arming(polled);
        }
    }

    /// The device whose call failed, for each failure.
    fn nodes_of_failures(&self) -> Vec<Option<u32>> {
        let failures = self.failures.iter();
        let node = |(thread, failure): &(String, ModelError)| {
            let row = self.failed_call(thread, failure)?;
            self.rows[row].node
        };
        failures.map(node).collect()
    }

    /// Each device numbers its own objects: if there are several devices, adds their names.
    fn tell_devices_apart(&mut self) {
        let mut nodes = self.rows.iter().filter_map(|row| row.node);
        let Some(first) = nodes.next() else { return };
        if nodes.all(|node| node == first) {
            return;
        }
        let of_failures = self.nodes_of_failures();
        for ((_, failure), node) in self.failures.iter_mut().zip(of_failures) {
            if let Some(node) = node {
                failure.reword(|words| with_device(words, node));
            }
        }
        for row in &mut self.rows {
            if let Some(node) = row.node {
                row.text = with_device(&row.text, node);
            }
        }
    }

    fn drop_empty_lanes(&mut self) {
        for lane in (0..self.lanes.len()).rev() {
            if self.rows.iter().all(|row| row.lane != lane) {
                self.lanes.remove(lane);
                for row in &mut self.rows {
                    row.lane -= usize::from(row.lane > lane);
                }
            }
        }
    }

    fn write_diagram(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = |lane: usize| {
            let own = self.rows.iter().filter(|row| row.lane == lane);
            let longest = own.map(|row| row.text.chars().count()).max().unwrap_or(0);
            longest.max(self.lanes[lane].len()).min(WIDTH)
        };
        let widths: Vec<usize> = (0..self.lanes.len()).map(width).collect();
        let line = |f: &mut fmt::Formatter<'_>, mark: &str, lane: usize, text: &str| {
            let before: usize = widths[..lane].iter().map(|width| width + 2).sum();
            writeln!(f, "{mark:2} {:before$}{text}", "")
        };
        let names = self.lanes.iter().zip(&widths);
        let names: String = names
            .map(|(name, width)| format!("{name:width$}  "))
            .collect();
        line(f, "", 0, names.trim_end())?;
        for row in &self.rows {
            for (at, text) in wrap(&row.text, WIDTH).iter().enumerate() {
                let mark = if row.fatal && at == 0 { ">>" } else { "" };
                line(f, mark, row.lane, text)?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for Counterexample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (thread, failure) = self.failure();
        writeln!(
            f,
            "{thread} fails in execution {}: {failure}",
            self.execution
        )?;
        if self.rows.is_empty() {
            return write!(
                f,
                "(no steps are known: the model did not do the same again)"
            );
        }
        writeln!(f)?;
        self.write_diagram(f)
    }
}

impl Row {
    /// The error that a call returned.
    fn error(&self) -> Option<&str> {
        let value = match self.what {
            Kind::Call => self.text.split_once(" = ")?.1,
            Kind::Return => self.text.strip_prefix("= ")?,
            Kind::Other => return None,
        };
        // Errors begin with the verb.
        let (verb, _) = value.split_once(": ")?;
        (!verb.contains(' ')).then_some(value)
    }

    /// Whether it destroys something.
    fn takes_apart(&self) -> bool {
        let verbs = ["ibv_destroy_", "ibv_dealloc_", "ibv_dereg_", "ibv_close_"];
        verbs.iter().any(|verb| self.text.starts_with(verb))
    }
}

/// With the name of a device in front of each object, as in `sim1.cq#0`.
fn with_device(text: &str, node: u32) -> String {
    let mut parts = text.split('#').peekable();
    let mut named = String::new();
    while let Some(part) = parts.next() {
        let is_object = parts
            .peek()
            .is_some_and(|next| next.starts_with(|c: char| c.is_ascii_digit()));
        let start = part
            .trim_end_matches(|c: char| c.is_ascii_alphabetic() || c == '_')
            .len();
        if is_object && start < part.len() {
            named += &format!("{}sim{node}.{}", &part[..start], &part[start..])
        } else {
            named += part
        }
        if parts.peek().is_some() {
            named.push('#');
        }
    }
    named
}

/// Lines of at most `width` characters, broken at spaces where there are some.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let last = lines.len() - 1;
        if lines[last].is_empty() {
            lines[last] = word.to_owned();
        } else if lines[last].chars().count() + 1 + word.chars().count() <= width {
            lines[last] = format!("{} {word}", lines[last]);
        } else {
            lines.push(format!("  {word}"));
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_object_gets_the_name_of_its_device() {
        for (text, named) in [
            ("ibv_poll_cq(cq#0, 4) = 1", "ibv_poll_cq(sim1.cq#0, 4) = 1"),
            (
                "channel#10 event of cq#2",
                "sim1.channel#10 event of sim1.cq#2",
            ),
            ("# of 7 #1", "# of 7 #1"),
            ("nothing", "nothing"),
        ] {
            assert_eq!(with_device(text, 1), named);
        }
    }
}
