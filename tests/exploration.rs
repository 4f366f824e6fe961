//! `verbsim explore` and `verbsim replay`, as one starts them.

mod explored;

use std::fs;

use explored::{Ended, explore, file, replay, verbsim};
use verbs_explore::Replay;
use verbs_faults::Plan;

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

/// WC-25, QP-FLUSH-03: behind a completion that a rule fires on all is flushed, whichever it is.
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

/// Each rule of these plans fires in more than 1 % of the seeds.
#[test]
fn random_programs_break_no_invariant_under_rules_of_each_kind() {
    for kind in ["packet", "link", "port", "call", "completion", "limit"] {
        let plan = format!("{}/tests/explored/{kind}.toml", env!("CARGO_MANIFEST_DIR"));
        let ended = explore(&["--seeds", "0..300", "--faults", &plan]);
        assert_eq!(ended.status, 0, "{kind}: {}", ended.output);
        let rules = fs::read_to_string(plan).unwrap();
        let rules = rules.matches("[[rule]]").count();
        assert_eq!(ended.output.matches(" of 300 seeds").count(), rules);
        assert!(!ended.output.contains("less than 1 %"), "{}", ended.output);
    }
}

#[test]
fn how_often_a_rule_fired_is_said() {
    let plan = file("plan.toml");
    let rules = "[[rule]]\nkind = \"call\"\nverb = \"ibv_open_device\"\nerror = \"EIO\"\n\n\
                 [[rule]]\nkind = \"packet\"\neffect = \"drop\"\nnth = 1\n";
    fs::write(&plan, rules).unwrap();
    let args = ["--seeds", "0..20", "--faults", plan.to_str().unwrap()];
    let table = explore(&args).output;
    for line in [
        "fired in 20 of 20 seeds\n",
        "fired in 0 of 20 seeds, less than 1 %\n",
    ] {
        assert!(table.contains(line), "{table}");
    }
    let json = explore(&[&args[..], &["--format", "json"]].concat()).output;
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let explored = &json["explorations"][0];
    assert_eq!(explored["subject"], "program/spec");
    let fired = |rule: usize| &explored["rules"][rule];
    assert_eq!(
        (&fired(0)["seeds"], &fired(0)["rare"]),
        (&20.into(), &false.into())
    );
    assert_eq!(
        (&fired(1)["seeds"], &fired(1)["rare"]),
        (&0.into(), &true.into())
    );
    assert_eq!(explored["failure"], serde_json::Value::Null);
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

/// The word that replays this seed of random programs under a plan.
fn word(plan: &Plan, faults: &str) -> String {
    let seeded = Replay::new("program/spec", 7, plan, None).to_string();
    let all = seeded.strip_suffix('*').unwrap();
    format!("{all}{faults}")
}

#[test]
fn replay_that_passes_says_that_there_is_no_trace() {
    let word = word(&Plan::parse("", "").unwrap(), "*");
    let ended = verbsim(&["replay", &word, "--faults", "none"]);
    assert_eq!(ended.status, 0, "{}", ended.output);
    let text = "program/spec: no failure, so there is no trace\n";
    assert_eq!(ended.output, text);
}

#[test]
fn plan_for_what_is_not_there_is_refused_with_what_is() {
    let path = file("plan.toml");
    let name = path.to_str().unwrap();
    for (rule, wrong) in [
        (
            "kind = \"packet\"\neffect = \"drop\"\nfrom = 9",
            "from is 9",
        ),
        ("kind = \"packet\"\neffect = \"drop\"\nto = 9", "to is 9"),
        ("kind = \"link\"\nnode = 4", "node is 4"),
        ("kind = \"link\"\nnode = 0\npeer = 4", "peer is 4"),
        ("kind = \"port\"\nnode = 4", "node is 4"),
        (
            "kind = \"port\"\nnode = 0\nport = 2",
            "port is 2, allowed are 1 to 1",
        ),
        (
            "kind = \"call\"\nverb = \"ibv_poll_cq\"\nerror = \"EIO\"\nnode = 4",
            "node is 4",
        ),
        (
            "kind = \"completion\"\nstatus = \"GENERAL_ERR\"\nnode = 4",
            "node is 4",
        ),
        (
            "kind = \"limit\"\nlimit = \"bytes\"\nvalue = 1\nnode = 4",
            "node is 4",
        ),
    ] {
        let rules = format!("[[rule]]\nkind = \"link\"\nnode = 3\n[[rule]]\n{rule}\n");
        fs::write(&path, &rules).unwrap();
        let word = word(&Plan::parse("", &rules).unwrap(), "*");
        for command in [&["explore"][..], &["replay", &word]] {
            let ended = verbsim(&[command, &["--faults", name]].concat());
            assert_eq!(ended.status, 2, "{}", ended.output);
            let expected = format!("error: {name}: rule 2: {wrong}");
            assert!(ended.output.starts_with(&expected), "{}", ended.output);
        }
    }
    fs::remove_file(path).unwrap();
}

#[test]
fn firing_that_cannot_be_or_never_comes_is_refused() {
    let path = file("plan.toml");
    let rules = "[[rule]]\nkind = \"packet\"\neffect = \"drop\"\nnth = 2\n\n\
                 [[rule]]\nkind = \"packet\"\neffect = \"drop\"\n\n\
                 [[rule]]\nkind = \"link\"\nnode = 3\n";
    fs::write(&path, rules).unwrap();
    let plan = Plan::parse("", rules).unwrap();
    for (faults, expected) in [
        ("0.0", "with the number of a firing"),
        ("0.1", "with the number of a firing"),
        ("1.0", "with the number of a firing"),
        ("1", "with the number of a firing"),
        ("2.1", "with the number of a firing"),
        ("3.1", "rules of the plan"),
        ("0.2,1.99999", "fault 1.99999 of the replay never came"),
    ] {
        let args = [
            "replay",
            &word(&plan, faults),
            "--faults",
            path.to_str().unwrap(),
        ];
        let ended = verbsim(&args);
        assert_eq!(ended.status, 2, "{faults}: {}", ended.output);
        assert!(
            ended.output.contains(expected),
            "{faults}: {}",
            ended.output
        );
    }
    fs::remove_file(path).unwrap();
}

#[test]
fn command_lines_that_make_no_sense_are_refused_with_what_is_allowed() {
    for (args, expected) in [
        (&["--seeds", "5..5"][..], "has no seed"),
        (&["--seeds", "a..b"], "0..2000"),
        (&["--shard", "3/2"], "K from 1 to N"),
        (&["--seeds", "0..1", "--shard", "2/2"], "has none"),
        (&["--jobs", "0"], "--jobs"),
        (&["--profile", "unknown"], "adversarial"),
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
