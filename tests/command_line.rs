//! What the program says to people: help, tables, misspelt names, Ctrl-C.

use std::process::{Command, Output};

fn verbsim(arguments: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_verbsim"));
    command.args(arguments.split_whitespace()).output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

#[test]
fn a_misspelt_name_is_answered_with_the_one_that_is_meant() {
    for (arguments, meant) in [
        ("explain CQ-ARM-71", "did you mean CQ-ARM-17?"),
        ("explain VS-AMR-01", "did you mean VS-ARM-01?"),
        (
            "run --filter request_is_one_sot",
            "did you mean cq_arm.request_is_one_shot?",
        ),
        (
            "explore --scenario uc.there_are_no_raeds",
            "did you mean uc.there_are_no_reads?",
        ),
        ("help fautls", "did you mean faults?"),
        ("help explroe", "did you mean explore?"),
    ] {
        let output = verbsim(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments}");
        assert!(
            said(&output).contains(meant),
            "{arguments}: {}",
            said(&output)
        );
    }
    let output = verbsim("explain nothing-of-the-kind");
    let all = "see `verbsim rules`, `verbsim classes` and `verbsim list`";
    assert!(said(&output).contains(all));
}

#[test]
fn wrong_values_are_refused_in_words() {
    for (arguments, words) in [
        ("explore --jobs 0", "the number of jobs is 1 or more"),
        ("explore --jobs x", "the number of jobs is 1 or more"),
        ("explore --seeds 5..5", "5..5 has no seed"),
        ("exec --timeout 0 -- true", "a time is a number above 0"),
        ("exec --timeout 5d -- true", "a time is a number above 0"),
    ] {
        let output = verbsim(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments}");
        assert!(
            said(&output).contains(words),
            "{arguments}: {}",
            said(&output)
        );
    }
}

#[test]
fn a_group_of_rules_is_explained() {
    let output = said(&verbsim("explain cq-arm"));
    assert!(output.starts_with("CQ-ARM-01 "), "{output}");
    assert!(output.contains("\nCQ-ARM-17 "));
    let json = said(&verbsim("explain CQ-ARM --format json"));
    assert!(json.contains("\"kind\": \"group\""), "{json}");
}

#[test]
fn a_class_of_mistakes_is_explained() {
    let output = said(&verbsim("explain vs-arm-01"));
    for part in [
        "VS-ARM-01\n",
        "error: it is wrong",
        "CQ-ARM-30 ",
        "poll once more",
        "a model checker tries every order",
    ] {
        assert!(output.contains(part), "{output}");
    }
    let json = said(&verbsim("explain VS-ARM-01 --format json"));
    for part in [
        "\"kind\": \"class\"",
        "\"level\": \"error\"",
        "\"says\": \"",
    ] {
        assert!(json.contains(part), "{json}");
    }
    let group = said(&verbsim("explain vs-arm"));
    assert!(
        group.contains("VS-ARM-04 warning: ") && !group.contains("VS-CQ-01"),
        "{group}"
    );
    let all = said(&verbsim("explain VS"));
    assert!(
        all.contains("VS-ARM-01") && all.contains("VS-NET-01"),
        "{all}"
    );
    let json = said(&verbsim("explain VS --format json"));
    assert!(json.contains("\"kind\": \"classes\""), "{json}");
}

#[test]
fn classes_of_mistakes_are_listed() {
    let table = said(&verbsim("classes"));
    assert!(table.contains("VS-ARM-01") && table.contains("CQ-ARM-30"));
    let json = said(&verbsim("classes --format json"));
    assert!(json.contains("\"name\": \"VS-ARM-01\""), "{json}");
    let markdown = said(&verbsim("classes --markdown"));
    assert!(
        markdown.contains("| `VS-ARM-01` | error | `CQ-ARM-30` |"),
        "{markdown}"
    );
}

#[test]
fn rules_fit_on_a_page_where_there_is_no_terminal() {
    let output = said(&verbsim("rules"));
    let widest = output
        .lines()
        .max_by_key(|line| line.chars().count())
        .unwrap();
    assert!(widest.chars().count() <= 100, "{widest}");
    let first = output.lines().next().unwrap();
    let rule = &verbs_scenarios::rules()[0];
    let words = rule.rule.split_whitespace().next().unwrap();
    assert!(
        first.contains(&rule.id) && first.contains(words),
        "the sentence comes first: {first}"
    );
}

#[test]
fn one_thing_is_no_plural() {
    let output = said(&verbsim("explore --seeds 7"));
    assert!(
        output.contains("struck in 1 of 1 seed") || output.contains("struck in 0 of 1 seed"),
        "{output}"
    );
    assert!(output.contains(": 1 seed, no failure"), "{output}");
    let one = "run --profile mlx5 --filter ";
    let known = verbs_scenarios::deviations::of_profile("mlx5");
    let output = said(&verbsim(&format!("{one}{}", known[0].scenario)));
    assert!(output.contains("1 known deviation\n"), "{output}");
}

#[test]
fn an_installed_program_has_its_documents() {
    let list = said(&verbsim("help"));
    for topic in ["faults", "json", "modes", "testing-rust", "drop-in"] {
        assert!(list.contains(topic), "{list}");
        let output = verbsim(&format!("help {topic}"));
        assert!(
            output.status.success() && said(&output).starts_with("# "),
            "{topic}"
        );
    }
    let run = said(&verbsim("help run"));
    assert!(
        run.contains("--filter") && run.contains("Exit status:"),
        "{run}"
    );
}

#[test]
fn completions_and_man_pages_are_made() {
    for shell in ["bash", "zsh", "fish"] {
        let output = verbsim(&format!("generate completions {shell}"));
        assert!(
            output.status.success() && said(&output).contains("shard"),
            "{shell}"
        );
    }
    let folder = concat!(env!("CARGO_TARGET_TMPDIR"), "/man");
    assert!(verbsim(&format!("generate man {folder}")).status.success());
    let page = std::fs::read_to_string(format!("{folder}/verbsim-explore.1")).unwrap();
    assert!(page.contains("shard"), "{page}");
}

/// Status 130, how far it came, and how to go on.
#[test]
#[cfg(target_os = "linux")]
fn ctrl_c_in_an_exploration_says_how_to_go_on() {
    use std::process::Stdio;

    use nix::sys::signal::{Signal, kill};
    use nix::unistd::Pid;

    let child = Command::new(env!("CARGO_BIN_EXE_verbsim"))
        .args(["explore", "--seeds", "5..1000000000", "--jobs", "2"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let listens = || {
        let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
        let mut caught = status
            .lines()
            .filter_map(|line| line.strip_prefix("SigCgt:"));
        let caught = u64::from_str_radix(caught.next().unwrap().trim(), 16).unwrap();
        caught & 1 << (Signal::SIGINT as u64 - 1) != 0
    };
    while !listens() {
        std::thread::yield_now();
    }
    kill(Pid::from_raw(child.id() as i32), Signal::SIGINT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    let said = said(&output);
    let (_, rest) = said
        .split_once("interrupted in program/spec; --seeds ")
        .unwrap();
    let (next, _) = rest.split_once("..1000000000 goes on").unwrap();
    let done = next.parse::<u64>().unwrap() - 5;
    assert!(
        said.contains(&format!("program/spec: {done} seed")),
        "{said}"
    );
}
