//! Scenarios in processes of their own, whatever these do. The processes are shells that act as
//! workers: what each does with a scenario is in a file.
#![cfg(unix)]

use std::fs;
use std::num::NonZero;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use verbs_api::profile::Profile;
use verbs_scenarios::report::{BackendInfo, Entry, Outcome};
use verbs_scenarios::{Backend, Bounds, FailureKind, Fixture, Runner, Scenario, bounds};
use verbsim::backend::Simulator;
use verbsim::workers::{Watch, Workers};

/// The simulator, which waits for what hangs no longer than this.
struct Impatient;

const PATIENCE: Duration = Duration::from_millis(240);

/// The number of its longest waits that a scenario with hazards may take.
const WAITS: u32 = 12;

impl Backend for Impatient {
    fn info(&self) -> BackendInfo {
        simulator().info()
    }

    fn start(&self, threads: bool) -> verbs_api::Result<Fixture> {
        simulator().start(threads)
    }

    fn replay(&self, scenario: &Scenario) -> String {
        simulator().replay(scenario)
    }

    fn bounds(&self) -> Bounds {
        Bounds {
            positive: PATIENCE / WAITS,
            ..Bounds::default()
        }
    }
}

fn simulator() -> Simulator {
    Simulator::new(Profile::SPEC, 0)
}

/// What was seen of a run.
#[derive(Default)]
struct Seen {
    running: Vec<&'static Scenario>,
    entries: Vec<Entry>,
}

#[derive(Default)]
struct Watched {
    seen: Mutex<Seen>,
    /// After this many the run is to break off.
    limit: Option<usize>,
}

impl Watch for Watched {
    fn starts(&self, scenario: &'static Scenario) -> ControlFlow<()> {
        let mut seen = self.seen.lock().unwrap();
        if self.limit == Some(seen.entries.len()) {
            return ControlFlow::Break(());
        }
        let running = &mut seen.running;
        running.push(scenario);
        let is_alone = running.iter().all(|of| of.alone.is_none()) || running.len() == 1;
        assert!(is_alone, "{running:?}");
        ControlFlow::Continue(())
    }

    fn ended(&self, entry: Entry) {
        let mut seen = self.seen.lock().unwrap();
        seen.running.retain(|scenario| scenario.id != entry.id);
        seen.entries.push(entry);
    }
}

/// A folder for the files of a test.
fn folder(test: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("workers-{test}"));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// Shells that do with each scenario what its file says. Each adds a line to the file `starts`.
fn shells(folder: &Path, jobs: usize) -> Workers {
    let script = "cd \"$0\"; echo >>starts; . ./start; while read -r id; do . \"./$id\"; done";
    let folder = folder.to_str().unwrap().to_owned();
    Workers {
        program: "sh".into(),
        arguments: vec!["-c".to_owned(), script.to_owned(), folder],
        jobs: NonZero::new(jobs).unwrap(),
    }
}

/// A folder whose shells start, and report that these scenarios passed.
fn passing(test: &str, scenarios: &[&'static Scenario]) -> PathBuf {
    let folder = folder(test);
    fs::write(folder.join("start"), "echo ready\n").unwrap();
    let [sample] = scenarios[..1] else {
        panic!("no scenario")
    };
    let line = Runner::new(&simulator()).unwrap().run(sample).to_line();
    assert!(line.contains("\"passed\""), "{line}");
    for scenario in scenarios {
        let line = line.replace(sample.id, scenario.id);
        fs::write(folder.join(scenario.id), format!("echo '{line}'\n")).unwrap();
    }
    folder
}

fn starts(folder: &Path) -> usize {
    let starts = fs::read_to_string(folder.join("starts")).unwrap();
    starts.lines().count()
}

/// Scenarios that may hang.
fn hazardous(count: usize) -> Vec<&'static Scenario> {
    let all = verbs_scenarios::all().filter(|scenario| !scenario.hazards.is_empty());
    all.take(count).collect()
}

#[test]
fn a_process_that_hangs_or_crashes_costs_the_result_of_its_scenario_alone() {
    let scenarios = hazardous(11);
    let folder = passing("kinds", &scenarios);
    let pass = |place: usize| fs::read_to_string(folder.join(scenarios[place].id)).unwrap();
    let noise = format!("printf 'driver: no '; echo; {}", pass(3));
    // By place: what the shell does, and what is seen.
    let kinds = [
        (
            1,
            "echo bye >&2; kill -KILL $$".to_owned(),
            "no report; signal: 9 (SIGKILL); bye",
        ),
        (3, noise, ""),
        (4, "exit 3".to_owned(), "no report; exit status: 3"),
        (
            6,
            "echo stuck >&2; read -r never".to_owned(),
            "nothing after 240ms; it was killed; stuck",
        ),
        // An answer for another scenario does not count.
        (8, pass(0), "nothing after 240ms; it was killed"),
        (
            9,
            "echo noise; exec >&-; exit 0".to_owned(),
            "no report; exit status: 0",
        ),
    ];
    for (place, does, _) in &kinds {
        fs::write(folder.join(scenarios[*place].id), does).unwrap();
    }
    let watched = Watched::default();
    let ran = shells(&folder, 1).run(&Impatient, &scenarios, &watched);
    ran.unwrap();
    let entries = watched.seen.into_inner().unwrap().entries;
    assert_eq!(entries.len(), scenarios.len());
    for (place, entry) in entries.iter().enumerate() {
        assert_eq!(entry.id, scenarios[place].id, "they run in their order");
        let kind = kinds.iter().find(|(of, ..)| *of == place);
        let expected = kind.map_or("", |(.., expected)| expected);
        let seen = entry.failure.as_ref().map_or("", |failure| &failure.seen);
        assert_eq!(seen, expected, "{place}");
        let outcome = if expected.is_empty() {
            Outcome::Passed
        } else {
            Outcome::Failed
        };
        assert_eq!(entry.outcome, outcome, "{place}");
        if let Some(failure) = &entry.failure {
            let hangs = expected.contains("killed");
            let kind = if hangs {
                FailureKind::Hang
            } else {
                FailureKind::Crash
            };
            assert_eq!((failure.kind, failure.rule), (kind, None), "{place}");
            assert_eq!(entry.ended_by.as_ref(), Some(failure), "{place}");
        }
    }
    assert_eq!(
        starts(&folder),
        1 + kinds.len() - 1,
        "after each that is lost a new one"
    );
}

#[test]
fn a_process_that_cannot_start_says_why() {
    let scenarios = hazardous(3);
    let folder = passing("start", &scenarios);
    fs::write(folder.join("start"), "echo error: no device >&2; exit 2\n").unwrap();
    let refused = shells(&folder, 2).run(&Impatient, &scenarios, &Watched::default());
    assert_eq!(refused.unwrap_err(), "exit status: 2; error: no device");
    // The second and the third cannot.
    let start = "if [ $(wc -l <starts) -gt 2 ]; then echo busy >&2; exit 2; fi; echo ready\n";
    fs::write(folder.join("start"), start).unwrap();
    fs::write(folder.join(scenarios[0].id), "exit 1").unwrap();
    let watched = Watched::default();
    shells(&folder, 1)
        .run(&Impatient, &scenarios, &watched)
        .unwrap();
    let entries = watched.seen.into_inner().unwrap().entries;
    for entry in &entries[1..] {
        let failure = entry.failure.as_ref().unwrap();
        assert_eq!(failure.seen, "could not start: exit status: 2; busy");
        assert_eq!(
            failure.kind,
            FailureKind::Assertion,
            "the device did nothing"
        );
    }
    assert_eq!(entries.len(), 3);
}

#[test]
fn several_processes_run_each_scenario_once_and_some_alone() {
    let all: Vec<_> = verbs_scenarios::all().collect();
    assert!(all.iter().any(|scenario| scenario.alone.is_some()));
    let folder = passing("jobs", &all);
    let watched = Watched::default();
    shells(&folder, 3).run(&Impatient, &all, &watched).unwrap();
    let entries = watched.seen.into_inner().unwrap().entries;
    let mut ids: Vec<_> = entries.iter().map(|entry| entry.id).collect();
    ids.sort_unstable();
    let mut expected: Vec<_> = all.iter().map(|scenario| scenario.id).collect();
    expected.sort_unstable();
    assert_eq!(ids, expected);
    assert!(
        starts(&folder) <= 4,
        "three, and one for those that run alone"
    );
}

#[test]
fn a_run_that_is_broken_off_starts_nothing_more() {
    let scenarios = hazardous(5);
    let folder = passing("break", &scenarios);
    let watched = Watched {
        limit: Some(2),
        ..Watched::default()
    };
    shells(&folder, 1)
        .run(&Impatient, &scenarios, &watched)
        .unwrap();
    let seen = watched.seen.into_inner().unwrap();
    assert_eq!((seen.entries.len(), seen.running.len()), (2, 0));
}

/// Otherwise the shells above would have to be silent for minutes.
#[test]
fn what_is_known_to_hang_is_waited_for_as_long_as_its_backend_says() {
    let [scenario] = hazardous(1)[..] else {
        panic!("no scenario")
    };
    assert_eq!(bounds(&Impatient, scenario).positive * WAITS, PATIENCE);
}
