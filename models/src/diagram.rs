//! A counterexample as a sequence diagram: threads and device side by side.

use core::fmt;

use verbs_api::Verb;
use verbs_api::lab::TraceEvent;
use verbs_sim::{Step, What};

use crate::error::ModelError;
use crate::harness::{BODY, Execution, FAILED, START};

/// An execution in which a model failed.
///
/// It prints what failed, the mistake that this points to, and a sequence diagram: a column for each thread
/// and one for the device, with time going down. `>>` marks the fatal step, the last thing that the thread
/// did before it failed.
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
    is_call: bool,
    fatal: bool,
}

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
        let (lane, text, is_call) = match &step.what {
            What::Note(note) => {
                let message = note.strip_prefix(FAILED);
                if message.is_some_and(|message| self.says(lane, message)) {
                    return;
                }
                (lane, note.clone(), false)
            }
            What::Record(record) => match &record.event {
                TraceEvent::Call { call } => (lane, call.clone(), true),
                TraceEvent::Return { value } => return self.add_return(lane, value),
                TraceEvent::Sent(_) | TraceEvent::Received(_) => return,
                event => (device, event.to_string().trim_start().to_owned(), false),
            },
        };
        let fatal = false;
        self.rows.push(Row {
            lane,
            text,
            is_call,
            fatal,
        });
    }

    /// On the line of the call, if nothing came in between.
    fn add_return(&mut self, lane: usize, value: &str) {
        match self.rows.last_mut() {
            Some(last) if last.is_call && last.lane == lane => {
                last.text = format!("{} = {value}", last.text);
            }
            _ => self.rows.push(Row {
                lane,
                text: format!("= {value}"),
                is_call: false,
                fatal: false,
            }),
        }
    }

    /// Whether the last row of a lane has these words.
    fn says(&self, lane: usize, words: &str) -> bool {
        let last = self.rows.iter().rfind(|row| row.lane == lane);
        last.is_some_and(|row| row.text.contains(words))
    }

    fn mark(&mut self) {
        let (thread, _) = self.failure();
        let lane = self.lanes.iter().position(|name| name == thread);
        let last = |row: &&mut Row| row.is_call && Some(row.lane) == lane;
        if let Some(row) = self.rows.iter_mut().rev().find(last) {
            row.fatal = true;
        }
    }

    /// Adds what the steps tell of a CQ that was armed too late.
    fn explain(&mut self) {
        for (_, failure) in &mut self.failures {
            let Some(cq) = failure.armed_late else {
                continue;
            };
            let call = |row: &Row, verb: Verb| row.text.starts_with(&format!("{verb}({cq},"));
            let armed = self
                .rows
                .iter()
                .rposition(|row| call(row, Verb::ReqNotifyCq));
            let Some(armed) = armed else { continue };
            let polled = self.rows[armed..].iter().any(|row| call(row, Verb::PollCq));
            failure.polled_after_arming(polled);
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
