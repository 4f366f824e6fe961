//! Running scenarios and judging how they end.

use std::any::Any;
use std::fmt;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;
use std::time::{Duration, Instant};

use crossbeam::channel::{self, RecvTimeoutError};
use verbs_api::{Capabilities, Verbs};

use crate::asked::{Asked, ask};
use crate::claim::{Rules, recorded};
use crate::deviations::Deviation;
use crate::failure::{Failure, Result};
use crate::fixture::Fixture;
use crate::known::knowing;
use crate::place::Place;
use crate::report::{BackendInfo, Entry, Facts, FailureReport, Outcome, Run};
use crate::round_trip;
use crate::scenario::Scenario;
use crate::setup::{Bounds, Negative, Setup};

/// Something the suite can run against.
pub trait Backend: Sync {
    /// What it is, for the report.
    fn info(&self) -> BackendInfo;

    /// Devices with nothing on them. With `threads`, its verbs may be called from
    /// several threads.
    fn start(&self, threads: bool) -> verbs_api::Result<Fixture>;

    /// The same, of devices that also lack these. Default: `None`, devices are as they are.
    fn lacking(&self, _lacks: Capabilities) -> Option<Box<dyn Backend + '_>> {
        None
    }

    /// What its devices lack, where that is known beforehand: if one lacks more, the scenarios that
    /// need it fail. Default: `None`, they are [asked](crate::asked), and these scenarios are
    /// skipped.
    fn lacks(&self) -> Option<Capabilities> {
        None
    }

    /// The command that runs one scenario again, with the same seed, profile and link layer.
    fn replay(&self, scenario: &Scenario) -> String;

    /// Recorded deviations of its device. Default: none.
    fn deviations(&self) -> Vec<Deviation> {
        Vec::new()
    }

    /// Whether the report has the time that each scenario took. Default: no, because a simulated
    /// device takes no time, and two reports of it are the same.
    fn is_timed(&self) -> bool {
        false
    }

    /// Whether scenarios may run that are recorded to crash the kernel of its driver. Default: no.
    fn may_crash_kernel(&self) -> bool {
        false
    }

    /// Where on its devices to work. Default: that of [`Place`].
    fn place(&self) -> Place {
        Place::default()
    }

    /// How long to wait if the backend is not a simulator. Default: that of [`Bounds`].
    fn bounds(&self) -> Bounds {
        Bounds::default()
    }
}

/// The result of running a scenario once.
#[derive(Clone, Debug, Default, PartialEq)]
struct Attempt {
    /// How sure it is that nothing happened.
    negative: Option<Negative>,
    /// Events of the port that were not the scenario's.
    passed_over: Vec<String>,
    /// Failures after which the scenario continued, because a deviation is recorded for them, and
    /// those from the end of its [`Fixture`].
    noted: Vec<FailureReport>,
    /// The failure that ended it.
    ended_by: Option<FailureReport>,
    /// Why it could not go on, which is not a failure: the device refused what it does not have.
    skipped: Option<String>,
}

/// Runs scenarios of a backend, one at a time.
pub struct Runner<'b> {
    backend: &'b dyn Backend,
    asked: Asked,
    deviations: Vec<Deviation>,
    bounds: Bounds,
}

impl<'b> Runner<'b> {
    /// Asks the devices what they have, and a real one how long a message takes.
    ///
    /// # Errors
    /// If the backend cannot start.
    pub fn new(backend: &'b dyn Backend) -> verbs_api::Result<Self> {
        let deviations = backend.deviations();
        let asked = asked(backend, &deviations)?;
        let bounds = backend.bounds();
        let is_real = !asked.has.contains(Capabilities::LAB);
        Ok(Self {
            bounds: if is_real {
                round_trip::within(bounds, backend, asked.has)?
            } else {
                bounds
            },
            backend,
            asked,
            deviations,
        })
    }

    /// Runs a scenario on fresh devices, in this process.
    pub fn run(&self, scenario: &'static Scenario) -> Entry {
        let begun = self.backend.is_timed().then(Instant::now);
        let mut entry = self.judge(scenario);
        if entry.outcome != Outcome::Skipped {
            entry.seconds = begun.map(|begun| begun.elapsed().as_secs_f64());
        }
        entry
    }

    fn judge(&self, scenario: &'static Scenario) -> Entry {
        let Self { backend, asked, .. } = self;
        let entry = Entry::new(scenario);
        let skipped = |reason| Entry {
            outcome: Outcome::Skipped,
            reason: Some(reason),
            ..entry.clone()
        };
        let missing = scenario.needs.difference(asked.has);
        let lost = missing.difference(backend.lacks().unwrap_or(missing));
        if !lost.is_empty() {
            let failure = Failure::assertion(format!("a device with {lost}"), "it has lost it");
            return Entry {
                outcome: Outcome::Failed,
                failure: Some(report(*backend, scenario, failure, Vec::new())),
                ..entry
            };
        }
        if !missing.is_empty() {
            return skipped(asked.missing(missing));
        }
        let too_much = scenario.lacks.difference(asked.lacks);
        let lacking = if too_much.is_empty() {
            None
        } else {
            match backend.lacking(too_much) {
                Some(lacking) => Some(lacking),
                None => return skipped(format!("for devices without {too_much}")),
            }
        };
        let backend = lacking.as_deref().unwrap_or(*backend);
        let known = of_scenario(&self.deviations, scenario);
        if let Some(deviation) = known.iter().find(|deviation| deviation.crashes_kernel)
            && !backend.may_crash_kernel()
        {
            return skipped(format!("would crash the kernel: {}", deviation.reason));
        }
        let bounds = shortened(self.bounds, &known);
        // A simulator that lacks more is not asked again.
        let asked = backend.lacks().is_none().then_some(asked);
        let (attempt, named) = recorded(|| attempt(backend, scenario, bounds, &known, asked));
        Entry {
            named,
            ..entry.of(attempt, &known)
        }
    }
}

impl fmt::Debug for Runner<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let info = self.backend.info();
        f.debug_tuple("Runner").field(&info).finish()
    }
}

/// A scenario that did not end by itself, because its process did not or could not start: judged
/// like one that ended with this failure.
pub fn lost(backend: &dyn Backend, scenario: &'static Scenario, failure: Failure) -> Entry {
    let deviations = backend.deviations();
    let failure = report(backend, scenario, failure, Vec::new());
    let attempt = Attempt {
        ended_by: Some(failure),
        ..Attempt::default()
    };
    Entry::new(scenario).of(attempt, &of_scenario(&deviations, scenario))
}

/// The longest single waits of a scenario on a device of which nothing is measured.
pub fn bounds(backend: &dyn Backend, scenario: &Scenario) -> Bounds {
    let deviations = backend.deviations();
    let known = of_scenario(&deviations, scenario);
    shortened(backend.bounds(), &known)
}

/// Runs scenarios in their order, each on fresh devices. `before` is called before each, and may
/// break the run off: that scenario and those behind it are not in the [`Run`].
///
/// # Errors
/// If the backend cannot start.
pub fn run(
    backend: &dyn Backend,
    scenarios: &[&'static Scenario],
    mut before: impl FnMut(&'static Scenario) -> ControlFlow<()>,
) -> verbs_api::Result<Run> {
    let facts = Facts::of(backend)?;
    let runner = Runner::new(backend)?;
    let mut entries = Vec::with_capacity(scenarios.len());
    for scenario in scenarios {
        if before(scenario).is_break() {
            break;
        }
        entries.push(runner.run(scenario));
    }
    Ok(Run::new(backend.info(), facts, entries))
}

/// Runs one scenario on devices that are there. An error says what is wrong, unless a deviation is
/// recorded for it.
///
/// For a simulator and a scenario without threads: the seed of the simulator decides the run.
pub fn run_in(verbs: &dyn Verbs, scenario: &Scenario, known: &[Deviation]) -> Result {
    let body = || {
        let (bounds, place) = (Bounds::default(), Place::default());
        let setup = Setup::new(verbs, scenario.needs, bounds, place)?;
        (scenario.body)(&setup)
    };
    let known = of_scenario(known, scenario);
    let (result, _) = knowing(&known, || no_panic(body));
    result.or_else(|failure| {
        let explains = |of: &&Deviation| of.explains(failure.rule, &failure.seen);
        if known.iter().any(explains) {
            Ok(())
        } else {
            Err(failure)
        }
    })
}

/// The scenarios that `pattern` means: the one with that id, else those that check the rule with
/// that id, else those whose id contains it.
pub fn select(pattern: &str) -> Vec<&'static Scenario> {
    let pick = |wanted: &dyn Fn(&Scenario) -> bool| -> Vec<&'static Scenario> {
        crate::all().filter(|scenario| wanted(scenario)).collect()
    };
    let rule = crate::rules()
        .iter()
        .find(|rule| rule.id.eq_ignore_ascii_case(pattern));
    let tries: [&dyn Fn(&Scenario) -> bool; 3] = [
        &|scenario| scenario.id == pattern,
        &|scenario| rule.is_some_and(|rule| scenario.checks(rule)),
        &|scenario| scenario.id.contains(pattern),
    ];
    let mut found = tries.into_iter().map(pick);
    found.find(|some| !some.is_empty()).unwrap_or_default()
}

/// What both sides of a setup have.
fn asked(backend: &dyn Backend, deviations: &[Deviation]) -> verbs_api::Result<Asked> {
    if backend.lacks().is_some() {
        return capabilities(backend).map(Asked::known);
    }
    let crashes = |id: &str| {
        let mut of_it = deviations.iter().filter(|known| known.is_of(id));
        of_it.any(|known| known.crashes_kernel) && !backend.may_crash_kernel()
    };
    let fixture = backend.start(false)?;
    let verbs = fixture.verbs();
    let mut devices = verbs.devices()?;
    devices.truncate(2);
    devices.dedup_by(|second, first| second.name == first.name);
    let port = backend.place().port_num;
    let mut answers = devices
        .iter()
        .map(|device| ask(verbs, &device.name, port, &crashes));
    let first = answers
        .next()
        .unwrap_or(Ok(Asked::known(Capabilities::all())));
    answers.try_fold(first?, |both, other| Ok(both.and(other?)))
}

/// What both sides of a setup can do, with and without threads.
fn capabilities(backend: &dyn Backend) -> verbs_api::Result<Capabilities> {
    let mut all = Capabilities::empty();
    for threads in [false, true] {
        let fixture = backend.start(threads)?;
        let verbs = fixture.verbs();
        let mut both = Capabilities::all();
        for device in verbs.devices()?.iter().take(2) {
            let context = verbs.open_device(&device.name)?;
            both &= verbs.capabilities(context)?;
            verbs.close_device(context)?;
        }
        all |= both;
    }
    Ok(all)
}

/// What is known not to come need not be waited for long.
fn shortened(bounds: Bounds, known: &[&Deviation]) -> Bounds {
    let longest = if known.is_empty() {
        bounds.positive
    } else {
        KNOWN_TO_DEVIATE
    };
    Bounds {
        positive: bounds.positive.min(longest),
        ..bounds
    }
}

impl Entry {
    /// The entry of a scenario that has not run.
    pub(crate) fn new(scenario: &'static Scenario) -> Self {
        Self {
            id: scenario.id,
            rules: scenario.rules,
            outcome: Outcome::Passed,
            reason: None,
            seconds: None,
            failure: None,
            negative: None,
            passed_over: Vec::new(),
            named: Rules::new(),
            noted: Vec::new(),
            ended_by: None,
        }
    }

    /// With what this attempt comes to.
    fn of(self, attempt: Attempt, known: &[&Deviation]) -> Self {
        let (outcome, reason, failure) = verdict(&attempt, known);
        Self {
            outcome,
            reason,
            failure: failure.cloned(),
            negative: attempt.negative,
            passed_over: attempt.passed_over,
            noted: attempt.noted,
            ended_by: attempt.ended_by,
            ..self
        }
    }
}

/// What is known of this scenario.
fn of_scenario<'d>(known: &'d [Deviation], scenario: &Scenario) -> Vec<&'d Deviation> {
    let of = known.iter().filter(|known| known.is_of(scenario.id));
    of.collect()
}

/// What an attempt comes to, in the light of what is known of the device: how it ended, why, and
/// the failure that shows it. Each failure needs a deviation that explains it, and one that ended
/// the scenario a deviation that says why it cannot go on.
fn verdict<'a>(
    attempt: &'a Attempt,
    known: &[&Deviation],
) -> (Outcome, Option<String>, Option<&'a FailureReport>) {
    let Attempt {
        noted, ended_by, ..
    } = attempt;
    let explanation = |(failure, ended): (&FailureReport, bool)| {
        let explains = |of: &&&Deviation| {
            of.explains(failure.rule, &failure.seen) && (of.is_the_end() || !ended)
        };
        let deviation = known.iter().find(explains);
        deviation.map(|deviation| format!("{} ({})", deviation.reason, deviation.source))
    };
    let went_on = noted.iter().map(|failure| (failure, false));
    let mut failures = went_on.chain(ended_by.iter().map(|failure| (failure, true)));
    let is_unknown = |failure: &(&FailureReport, bool)| explanation(*failure).is_none();
    if let Some((unknown, _)) = failures.clone().find(is_unknown) {
        return (Outcome::Failed, None, Some(unknown));
    }
    if let Some(reason) = &attempt.skipped {
        return (Outcome::Skipped, Some(reason.clone()), None);
    }
    if let Some(first) = failures.next() {
        return (Outcome::KnownDeviation, explanation(first), Some(first.0));
    }
    let Some(deviation) = known.iter().find(|deviation| !deviation.sometimes) else {
        return (Outcome::Passed, None, None);
    };
    let reason = format!("expected {}: {}", deviation.symptom, deviation.reason);
    (Outcome::UnexpectedPass, Some(reason), None)
}

/// Runs the body on fresh devices.
fn attempt(
    backend: &dyn Backend,
    scenario: &'static Scenario,
    bounds: Bounds,
    known: &[&Deviation],
    asked: Option<&Asked>,
) -> Attempt {
    let threads = scenario.needs.contains(Capabilities::THREADS);
    let fixture = match no_panic(|| Ok(backend.start(threads)?)) {
        Ok(fixture) => fixture,
        Err(failure) => {
            return Attempt {
                ended_by: Some(report(backend, scenario, failure, Vec::new())),
                ..Attempt::default()
            };
        }
    };
    let verbs = fixture.verbs();
    let (mut negative, mut skipped, mut passed_over) = (None, None, Vec::new());
    let mut body = || {
        let setup = Setup::new(verbs, scenario.needs, bounds, backend.place())?;
        let setup = asked.into_iter().fold(setup, Setup::asked);
        let result = (scenario.body)(&setup);
        negative = setup.negative();
        passed_over = setup.passed_over();
        result.or_else(|failure| {
            let explains = |of: &&Deviation| of.explains(failure.rule, &failure.seen);
            if !known.iter().any(explains) {
                skipped = setup.refused(&failure);
            }
            skipped.as_ref().map(drop).ok_or(failure)
        })
    };
    let run = || {
        no_panic(|| {
            if threads {
                watched(verbs, &mut body)
            } else {
                body()
            }
        })
    };
    let (own, noted) = knowing(known, run);
    // Before the end adds to it.
    let trace = no_panic(|| Ok(tail(verbs))).unwrap_or_default();
    let at_end = no_panic(|| fixture.end()).map_err(|failure| Failure {
        goes_on: true,
        ..failure
    });
    let in_full = |failure| report(backend, scenario, failure, trace.clone());
    Attempt {
        negative,
        passed_over,
        noted: noted.into_iter().chain(at_end.err()).map(in_full).collect(),
        ended_by: own.err().map(in_full),
        skipped,
    }
}

/// Runs a body with threads. After [`WATCH`], waiting threads get an error and the scenario has
/// failed: a lost wake-up must not be a run that never ends.
fn watched(verbs: &dyn Verbs, body: impl FnOnce() -> Result) -> Result {
    thread::scope(|scope| {
        let (done, watch) = channel::bounded::<()>(0);
        let watch = scope.spawn(move || {
            let late = watch.recv_timeout(WATCH) == Err(RecvTimeoutError::Timeout);
            if late && let Some(lab) = verbs.lab() {
                lab.close();
            }
            late
        });
        let result = body();
        drop(done);
        let late = watch.join().expect("it does not panic");
        result.and_then(|()| {
            if late {
                Err(Failure::hang(
                    format!("an end within {WATCH:?}"),
                    "it had to be woken",
                ))
            } else {
                Ok(())
            }
        })
    })
}

fn report(
    backend: &dyn Backend,
    scenario: &Scenario,
    failure: Failure,
    trace: Vec<String>,
) -> FailureReport {
    FailureReport {
        kind: failure.kind,
        rule: failure.rule,
        expected: failure.expected,
        seen: failure.seen,
        ends: !failure.goes_on,
        trace,
        replay: backend.replay(scenario),
    }
}

/// The last records of the trace, in words.
fn tail(verbs: &dyn Verbs) -> Vec<String> {
    let trace = verbs.lab().map_or_else(Vec::new, |lab| lab.trace());
    let skip = trace.len().saturating_sub(TRACE_TAIL);
    trace[skip..].iter().map(ToString::to_string).collect()
}

fn no_panic<T>(f: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(f))
        .unwrap_or_else(|panic| Err(Failure::crash("no panic", message(panic.as_ref()))))
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    text.unwrap_or("a panic without a message").to_string()
}

/// Records of the trace that a failure shows.
const TRACE_TAIL: usize = 40;

/// How long to wait for what a deviation says may not come.
const KNOWN_TO_DEVIATE: Duration = Duration::from_secs(2);

/// How long a scenario with threads may take.
const WATCH: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::FailureKind;

    fn failure(seen: &str) -> FailureReport {
        FailureReport {
            kind: FailureKind::Assertion,
            rule: Some("CQ-ARM-13"),
            expected: String::new(),
            seen: seen.to_string(),
            ends: false,
            trace: Vec::new(),
            replay: String::new(),
        }
    }

    fn deviation() -> Deviation {
        Deviation {
            symptom: "an event".to_string(),
            reason: "it merges".to_string(),
            source: "its manual".to_string(),
            ..Deviation::default()
        }
    }

    fn outcome(noted: &[&FailureReport], known: &[&Deviation]) -> Outcome {
        let attempt = Attempt {
            noted: noted.iter().map(|failure| (*failure).clone()).collect(),
            ..Attempt::default()
        };
        verdict(&attempt, known).0
    }

    #[test]
    fn a_deviation_explains_its_own_symptom_and_rule_only() {
        let (same, other) = (failure("an event of cq#0"), failure("ENOMEM"));
        let deviation = deviation();
        assert_eq!(outcome(&[], &[]), Outcome::Passed);
        assert_eq!(outcome(&[&same], &[]), Outcome::Failed);
        assert_eq!(outcome(&[], &[&deviation]), Outcome::UnexpectedPass);
        assert_eq!(outcome(&[&other], &[&deviation]), Outcome::Failed);
        for (rule, expected) in [
            ("CQ-ARM-13", Outcome::KnownDeviation),
            ("CQ-ARM-12", Outcome::Failed),
        ] {
            let of_rule = Deviation {
                rule: Some(rule.to_string()),
                ..deviation.clone()
            };
            assert_eq!(outcome(&[&same], &[&of_rule]), expected);
        }
        let at_times = Deviation {
            sometimes: true,
            ..deviation.clone()
        };
        assert_eq!(outcome(&[], &[&at_times]), Outcome::Passed);
        let attempt = Attempt {
            noted: vec![same.clone()],
            ..Attempt::default()
        };
        let known = verdict(&attempt, &[&deviation]);
        let reason = Some("it merges (its manual)".to_string());
        assert_eq!(known, (Outcome::KnownDeviation, reason, Some(&same)));
        // An explanation of one failure does not explain another one.
        assert_eq!(outcome(&[&same, &other], &[&deviation]), Outcome::Failed);
    }

    #[test]
    fn a_scenario_that_cannot_go_on_needs_a_deviation_that_says_why() {
        let attempt = Attempt {
            ended_by: Some(failure("an event of cq#0")),
            ..Attempt::default()
        };
        let goes_on = deviation();
        assert_eq!(verdict(&attempt, &[&goes_on]).0, Outcome::Failed);
        let ends = Deviation {
            ends: Some("there is nothing to look at".to_string()),
            ..goes_on
        };
        assert_eq!(verdict(&attempt, &[&ends]).0, Outcome::KnownDeviation);
    }

    #[test]
    fn a_panic_is_a_crash_with_its_message() {
        let failure = no_panic(|| -> Result { panic!("no cq {}", 7) }).unwrap_err();
        assert_eq!(failure.kind, FailureKind::Crash);
        assert_eq!(failure.seen, "no cq 7");
    }

    #[test]
    fn a_pattern_is_an_id_a_rule_or_a_part_of_an_id() {
        let first = crate::all().next().unwrap();
        assert_eq!(select(first.id).len(), 1);
        assert!(
            select(&first.rules[0].to_ascii_lowercase())
                .iter()
                .any(|s| s.id == first.id)
        );
        assert!(select("cq_arm.").iter().all(|s| s.group() == "cq_arm"));
        assert!(select("no such scenario").is_empty());
    }
}
