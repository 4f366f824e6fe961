//! How far a run of the suite is, which may be asked at any time: also while a scenario hangs.

use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use verbs_scenarios::Scenario;
use verbs_scenarios::report::{BackendInfo, Entry, Facts, Report, Run};
use verbsim::workers::Watch;

use crate::interrupt;
use crate::output::note;
use crate::progress::Progress;

/// After this time, and again after each such time, a log names what still runs.
const SLOW: Duration = Duration::from_secs(60);

/// From one look at what runs to the next.
const LOOK: Duration = Duration::from_secs(1);

/// What was done so far, and what is under way.
pub(crate) struct Board(Mutex<State>);

#[derive(Default)]
struct State {
    done: Vec<Run>,
    now: Option<Now>,
    running: Vec<Running>,
}

/// The run under way.
struct Now {
    info: BackendInfo,
    facts: Facts,
    entries: Vec<Entry>,
    progress: Progress,
}

/// A scenario under way.
#[derive(Debug)]
struct Running {
    id: &'static str,
    since: Instant,
    /// When a log names it next.
    named: Instant,
}

impl Board {
    /// An empty one, with a thread that names what runs for long.
    pub(crate) fn new() -> Arc<Self> {
        let board = Arc::new(Self(Mutex::new(State::default())));
        let watched = Arc::downgrade(&board);
        thread::spawn(move || {
            while let Some(board) = watched.upgrade() {
                let slow = board.state().slow(Instant::now());
                slow.iter().for_each(note);
                drop(board);
                thread::sleep(LOOK);
            }
        });
        board
    }

    /// A run of this many scenarios begins.
    pub(crate) fn begin(&self, info: BackendInfo, facts: Facts, scenarios: usize) {
        let progress = Progress::new(scenarios as u64, "scenarios", "{pos}/{len} {wide_msg}");
        let entries = Vec::with_capacity(scenarios);
        self.state().now = Some(Now {
            info,
            facts,
            entries,
            progress,
        });
    }

    /// The run that has begun has ended.
    pub(crate) fn end(&self) {
        let mut state = self.state();
        let now = state.now.take();
        state.done.extend(now.map(Now::run));
    }

    /// The run that has begun could not start.
    pub(crate) fn forget(&self) {
        self.state().now = None;
    }

    /// What was done so far.
    pub(crate) fn report(&self) -> Report {
        self.end();
        Report::new(self.state().done.clone())
    }

    /// What a run that is to end still waits for, in words.
    pub(crate) fn waits_for(&self) -> String {
        let now = Instant::now();
        let state = self.state();
        let each = state.running.iter().map(|running| running.at(now));
        match each.collect::<Vec<_>>()[..] {
            [] => "nothing".to_owned(),
            ref each => each.join(", "),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Watch for Board {
    fn starts(&self, scenario: &'static Scenario) -> ControlFlow<()> {
        interrupt::go_on()?;
        let mut state = self.state();
        if let Some(now) = &state.now {
            now.progress.message(scenario.id);
            now.progress.advance();
        }
        let since = Instant::now();
        state.running.push(Running {
            id: scenario.id,
            since,
            named: since + SLOW,
        });
        ControlFlow::Continue(())
    }

    fn ended(&self, entry: Entry) {
        let mut state = self.state();
        state.running.retain(|running| running.id != entry.id);
        if let Some(now) = &mut state.now {
            now.entries.push(entry);
        }
    }
}

impl State {
    /// The lines about what has run for long, each due now for the first time.
    fn slow(&mut self, now: Instant) -> Vec<String> {
        let due = |running: &mut Running| {
            (running.named <= now).then(|| {
                running.named += SLOW;
                format!("verbsim: scenario {}", running.at(now))
            })
        };
        self.running.iter_mut().filter_map(due).collect()
    }
}

impl Now {
    /// The run as far as it is, in the order of the suite.
    fn run(mut self) -> Run {
        let place = |entry: &Entry| verbs_scenarios::all().position(|of| of.id == entry.id);
        self.entries.sort_by_cached_key(place);
        Run::new(self.info, self.facts, self.entries)
    }
}

impl Running {
    fn at(&self, now: Instant) -> String {
        let seconds = now.saturating_duration_since(self.since).as_secs();
        format!("{} has run for {seconds} s", self.id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_runs_for_long_is_named_once_a_minute() {
        let since = Instant::now();
        let mut state = State::default();
        for (id, later) in [("cm.slow", 0), ("cm.quick", 50)] {
            let since = since + Duration::from_secs(later);
            let named = since + SLOW;
            state.running.push(Running { id, since, named });
        }
        let at = |state: &mut State, second| state.slow(since + Duration::from_secs(second));
        assert!((0..60).all(|second| at(&mut state, second).is_empty()));
        assert_eq!(
            at(&mut state, 61),
            ["verbsim: scenario cm.slow has run for 61 s"]
        );
        assert!((62..110).all(|second| at(&mut state, second).is_empty()));
        assert_eq!(
            at(&mut state, 119),
            ["verbsim: scenario cm.quick has run for 69 s"]
        );
        assert_eq!(
            at(&mut state, 120),
            ["verbsim: scenario cm.slow has run for 120 s"]
        );
    }
}
