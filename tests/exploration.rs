//! `verbsim explore` and `verbsim replay`, as one starts them.

mod explored;

use std::fs;

use explored::{Ended, explore, file, replay, verbsim};

/// A plan under which every scenario that polls fails.
const NO_POLL: &str =
    "[[rule]]\nkind = \"call\"\nverb = \"ibv_poll_cq\"\nerror = \"EIO\"\nnth = 2\n";

const SCENARIO: &str = "cq_poll.completions_come_in_posting_order";

#[test]
fn random_programs_break_no_invariant_under_the_standard_plan() {
    let ended = explore(&["--seeds", "0..300"]);
    assert_eq!(ended.status, 0, "{}", ended.output);
    let last = ended.output.lines().last().unwrap();
    assert!(
        last.starts_with("program/spec: 300 seeds, no failure, "),
        "{last}"
    );
    assert!(last.ends_with(" seeds/s"), "{last}");
}

#[test]
fn random_programs_break_no_invariant_on_any_profile() {
    for profile in ["rxe", "mlx5", "adversarial"] {
        let ended = explore(&["--seeds", "0..100", "--profile", profile]);
        assert_eq!(ended.status, 0, "{}", ended.output);
    }
}

/// WC-25, QP-FLUSH-03: behind a completion that a rule strikes all is flushed, whichever it is.
#[test]
fn random_programs_break_no_invariant_under_rules_for_completions() {
    let statuses = ["LOC_PROT_ERR", "RETRY_EXC_ERR", "GENERAL_ERR"];
    let whens = [
        "nth = 1",
        "nth = 2",
        "nth = 5",
        "nth = 10",
        "per_million = 100000",
    ];
    let plan = file("plan.toml");
    let holds = |rule: &str, profile: &str| {
        fs::write(&plan, format!("[[rule]]\nkind = \"completion\"\n{rule}\n")).unwrap();
        let faults = plan.to_str().unwrap();
        let ended = explore(&["--seeds", "0..50", "--faults", faults, "--profile", profile]);
        assert_eq!(ended.status, 0, "{rule}: {}", ended.output);
    };
    for when in whens {
        for status in statuses {
            holds(&format!("status = \"{status}\"\n{when}"), "spec");
        }
        for profile in ["rxe", "siw", "mlx5", "adversarial"] {
            holds(&format!("status = \"LOC_PROT_ERR\"\n{when}"), profile);
        }
    }
    // The example of docs/faults.md.
    holds(
        "status = \"LOC_PROT_ERR\"\nnode = 1\nqpn = 2\nnth = 10",
        "spec",
    );
    fs::remove_file(plan).unwrap();
}

#[test]
fn scenarios_pass_under_any_seed() {
    let ended = explore(&[
        "--scenario",
        "cq_poll.",
        "--profile",
        "adversarial",
        "--seeds",
        "0..5",
    ]);
    assert_eq!(ended.status, 0, "{}", ended.output);
    assert!(ended.output.lines().count() > 5, "{}", ended.output);
}

/// A scenario that fails, under a plan of one's own.
fn failing() -> (Ended, std::path::PathBuf) {
    let plan = file("plan.toml");
    fs::write(&plan, NO_POLL).unwrap();
    let found = explore(&[
        "--scenario",
        SCENARIO,
        "--faults",
        plan.to_str().unwrap(),
        "--seeds",
        "7..9",
    ]);
    assert_eq!(found.status, 1, "{}", found.output);
    (found, plan)
}

#[test]
fn failure_comes_back_with_the_same_trace() {
    let (found, plan) = failing();
    let replayed = replay(&found);
    assert_eq!(replayed.status, 1, "{}", replayed.output);
    assert!(!found.trace.is_empty());
    assert_eq!(found.trace, replayed.trace);
    fs::remove_file(plan).unwrap();
}

#[test]
fn replay_that_makes_no_sense_is_refused_with_what_differs() {
    let (found, plan) = failing();
    let words = found.replay.unwrap();
    let [word, _, path] = &words[..] else {
        panic!("{words:?}")
    };
    let (version, rest) = word.split_once(':').unwrap();
    let other_version = format!("0.0.0:{rest}");
    let other_seed = word.replace(":7:", ":x:");
    let unknown = word.replace(SCENARIO, "no.such_scenario");
    for (replay, faults, expected) in [
        (
            other_version.as_str(),
            path.as_str(),
            format!("version 0.0.0, but this is {version}"),
        ),
        (
            &other_seed,
            path,
            "the seed of a replay is a number".to_string(),
        ),
        (&unknown, path, "no.such_scenario".to_string()),
        (word, "standard", "fault plan".to_string()),
        (
            "nonsense",
            path,
            "VERSION:SUBJECT:SEED:PLAN:FAULTS".to_string(),
        ),
        (word, "no-such-file", "no-such-file".to_string()),
    ] {
        let ended = verbsim(&["replay", replay, "--faults", faults]);
        assert_eq!(ended.status, 2, "{}", ended.output);
        assert!(
            ended.output.contains(&expected),
            "{expected}: {}",
            ended.output
        );
    }
    fs::remove_file(plan).unwrap();
}

#[test]
fn command_lines_that_make_no_sense_are_refused_with_what_is_allowed() {
    for (args, expected) in [
        (&["--seeds", "5..5"][..], "has no seed"),
        (&["--seeds", "a..b"], "0..2000"),
        (&["--shard", "3/2"], "K from 1 to N"),
        (&["--seeds", "0..1", "--shard", "2/2"], "has none"),
        (&["--jobs", "0"], "--jobs"),
        (&["--profile", "nobody"], "adversarial"),
        (&["--scenario", "nothing_like_it"], "verbsim list"),
        (&["--faults", "no-such-file"], "no-such-file"),
    ] {
        let ended = explore(args);
        assert_eq!(ended.status, 2, "{args:?}: {}", ended.output);
        assert!(
            ended.output.contains(expected),
            "{args:?}: {}",
            ended.output
        );
    }
}
