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
        (
            "explore --faults nofile",
            "--faults nofile: No such file or directory (os error 2); a plan is a file, `standard`, `harsh` or `none`",
        ),
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

/// The options of `run` that are for one backend, each with a value that it takes.
const OF_SIM: &[&str] = &[
    "--profile rxe",
    "--link-layer ethernet",
    "--seed 0",
    "--wire",
    "--pcap /nonexistent/file",
];
const OF_HW: &[&str] = &[
    "--device mlx5_0",
    "--peer-device mlx5_0",
    "--port 1",
    "--gid-index 0",
    "--may-crash-kernel",
    "--deviations /nonexistent/file",
    "--in-process",
    "--jobs 2",
];

/// With a value that is the default too: who gives one believes that it counts.
#[test]
fn options_of_one_backend_are_refused_for_the_other() {
    let cases = [("sim", OF_HW, "hw"), ("hw", OF_SIM, "sim")];
    for (backend, options, other) in cases {
        for option in options {
            let name = option.split(' ').next().unwrap();
            let wanted = format!("{name} is for --backend {other}, and the backend is {backend}");
            let arguments = format!("run --backend {backend} {option} --filter CQ-ARM-17");
            let mut lines = vec![arguments.clone()];
            if backend == "sim" {
                lines.push(arguments.replace(" --backend sim", ""));
            }
            for line in lines {
                let output = verbsim(&line);
                assert_eq!(output.status.code(), Some(2), "{line}: {}", said(&output));
                assert!(said(&output).contains(&wanted), "{line}: {}", said(&output));
            }
        }
    }
}

/// An option that is new is in the table above, or is for both backends.
#[test]
fn each_option_of_a_run_is_for_one_backend_or_for_both() {
    let both = [
        "--backend",
        "--filter",
        "--format",
        "--out",
        "--help",
        "--version",
    ];
    let help = said(&verbsim("run --help"));
    let lines = help.lines().map(str::trim_start);
    let words = lines.filter(|line| line.starts_with('-')).flat_map(|line| {
        let words = line.split([' ', ',']).take(3);
        words.filter(|word| word.starts_with("--"))
    });
    let of_one = |name: &str| {
        let mut all = OF_SIM.iter().chain(OF_HW);
        all.any(|option| option.split(' ').next() == Some(name))
    };
    let mut count = 0;
    for name in words {
        assert!(both.contains(&name) || of_one(name), "{name} in {help}");
        count += usize::from(of_one(name));
    }
    assert_eq!(count, OF_SIM.len() + OF_HW.len(), "{help}");
}

#[test]
#[cfg(target_os = "linux")]
fn options_of_a_diagnosis_are_refused_where_there_is_none() {
    let options = [
        "--allow-unused",
        "--diagnose-format json",
        "--suppressions /dev/null",
    ];
    for option in options {
        let output = verbsim(&format!("exec {option} -- true"));
        let name = option.split(' ').next().unwrap();
        assert_eq!(output.status.code(), Some(2), "{option}: {}", said(&output));
        let wanted = format!("{name} is for a diagnosis, and nothing asks for one");
        assert!(said(&output).contains(&wanted), "{}", said(&output));
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
        "error: a definite mistake",
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
fn an_unverified_rule_says_what_was_looked_for() {
    let rules = verbs_scenarios::rules();
    let unverified = || rules.iter().filter(|rule| rule.unverified.is_some());
    let table = said(&verbsim("rules"));
    let count = unverified().count();
    assert_eq!(table.matches("unverified: ").count(), count);
    assert!(
        table.ends_with(&format!("; {count} unverified\n")),
        "{table}"
    );
    let rule = unverified().next().expect("there is one");
    let looked_for = rule.unverified.as_deref().unwrap();
    let explained = said(&verbsim(&format!("explain {}", rule.id)));
    assert!(explained.contains(looked_for), "{explained}");
    let listed = said(&verbsim("rules --format json"));
    let listed: serde_json::Value = serde_json::from_str(&listed).unwrap();
    let listed = listed.as_array().unwrap();
    let found = listed.iter().find(|entry| entry["id"] == rule.id).unwrap();
    assert_eq!(found["source"], rule.source);
    assert_eq!(found["unverified"], looked_for);
}

#[test]
fn one_thing_is_no_plural() {
    let output = said(&verbsim("explore --seeds 7"));
    assert!(
        output.contains("fired in 1 of 1 seed") || output.contains("fired in 0 of 1 seed"),
        "{output}"
    );
    assert!(output.contains(": 1 seed, no failure"), "{output}");
    let one = "run --profile mlx5 --filter ";
    let known = verbs_scenarios::deviations::of_profile("mlx5");
    let output = said(&verbsim(&format!("{one}{}", known[0].scenarios[0])));
    assert!(output.contains("1 known deviation\n"), "{output}");
}

#[test]
fn an_installed_program_has_its_documents() {
    let list = said(&verbsim("help"));
    for topic in ["ci", "faults", "json", "modes", "testing-rust", "drop-in"] {
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
    // Other programs have them at the top.
    let elsewhere = said(&verbsim("completions bash"));
    assert!(elsewhere.contains("verbsim generate"), "{elsewhere}");
    let folder = concat!(env!("CARGO_TARGET_TMPDIR"), "/man");
    assert!(verbsim(&format!("generate man {folder}")).status.success());
    let page = std::fs::read_to_string(format!("{folder}/verbsim-explore.1")).unwrap();
    assert!(page.contains("shard"), "{page}");
}

#[test]
fn the_header_of_c_is_written_to_a_folder() {
    let folder = concat!(env!("CARGO_TARGET_TMPDIR"), "/include");
    assert!(
        verbsim(&format!("generate header {folder}"))
            .status
            .success()
    );
    let header = std::fs::read_to_string(format!("{folder}/verbsim.h")).unwrap();
    assert_eq!(header, include_str!("../include/verbsim.h"));
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
        .split_once("\ninterrupted in program/spec; resume with --seeds ")
        .unwrap();
    let (next, _) = rest.split_once("..1000000000").unwrap();
    let done = next.parse::<u64>().unwrap() - 5;
    assert!(
        said.contains(&format!("program/spec: {done} seed")),
        "{said}"
    );
}

/// Runs a command on a terminal of this width, and returns the lines that it writes there.
#[cfg(target_os = "linux")]
fn on_a_terminal(columns: u16, arguments: &str) -> Vec<String> {
    use std::fs::File;
    use std::io::Read;

    use nix::pty::{Winsize, openpty};

    let size = Winsize {
        ws_row: 50,
        ws_col: columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    let pty = openpty(Some(&size), None).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_verbsim"));
    command
        .args(arguments.split_whitespace())
        .env("NO_COLOR", "1")
        .stdin(pty.slave.try_clone().unwrap())
        .stdout(pty.slave);
    let mut child = command.spawn().unwrap();
    // It has the other end of the terminal.
    drop(command);
    let mut bytes = Vec::new();
    // A terminal without an other end is an error.
    let end = File::from(pty.master).read_to_end(&mut bytes);
    assert!(end.is_ok() || end.is_err_and(|error| error.raw_os_error() == Some(5)));
    assert!(child.wait().unwrap().success(), "{arguments}");
    let text = String::from_utf8(bytes).unwrap();
    text.lines().map(str::to_owned).collect()
}

#[test]
#[cfg(target_os = "linux")]
fn a_terminal_whose_width_is_unknown_is_as_wide_as_a_page() {
    for arguments in ["run --filter CQ-ARM-17", "rules", "devices --backend sim"] {
        let unknown = on_a_terminal(0, arguments);
        assert_eq!(unknown, on_a_terminal(100, arguments), "{arguments}");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn text_wraps_between_words_on_a_terminal() {
    for arguments in [
        "explain CQ-ARM-17",
        "explain CQ-ARM",
        "explain VS-ARM-01",
        "explain VS-ARM",
        "devices --backend sim --verbose",
    ] {
        let wide = said(&verbsim(arguments));
        let words: Vec<_> = wide.split_whitespace().collect();
        let narrow = on_a_terminal(72, arguments);
        for line in &narrow {
            assert!(line.chars().count() <= 72, "{arguments}: {line}");
        }
        let wrapped: Vec<_> = narrow
            .iter()
            .flat_map(|line| line.split_whitespace())
            .collect();
        assert_eq!(wrapped, words, "{arguments}");
    }
}

/// The page that people read, whatever the driver chooses.
#[test]
fn devices_are_a_short_page_that_has_the_choices_only_where_asked() {
    let page = said(&verbsim("devices --backend sim"));
    let lines: Vec<_> = page.lines().collect();
    assert!(lines.len() <= 20, "{page}");
    for line in &lines {
        assert!(line.chars().count() <= 100, "{line}");
    }
    for part in [
        "sim0  sim, driver sim, ib\n",
        "  port 1    ACTIVE",
        "    GID 0   fe80::",
    ] {
        assert!(page.contains(part), "{page}");
    }
    assert!(
        page.contains("behavior  as spec (--verbose shows its "),
        "{page}"
    );
    let verbose = said(&verbsim("devices --backend sim --verbose"));
    assert!(!page.contains("arm_sees_unpolled="), "{page}");
    assert!(verbose.contains("arm_sees_unpolled=no"), "{verbose}");
}

/// `exec --help` and the guide name the same statuses.
#[test]
fn the_exit_statuses_of_exec_are_in_its_help_and_in_the_guide() {
    let help = said(&verbsim("exec --help"));
    let (_, statuses) = help.split_once("Exit status:\n").expect(&help);
    let lines = statuses.lines().filter_map(|line| line.strip_prefix("  "));
    let of_help = lines.filter(|line| line.starts_with(char::is_alphanumeric));
    let guide = include_str!("../docs/drop-in.md");
    let (_, table) = guide
        .split_once("| exit status | meaning |\n|---|---|\n")
        .unwrap();
    let rows = table.lines().take_while(|line| line.starts_with('|'));
    let of_guide = rows.map(|row| row.trim_start_matches("| "));
    let number = |line: &str| {
        let first = line.split_whitespace().next().unwrap_or_default();
        first.trim_matches(',').to_owned()
    };
    let of_help: Vec<_> = of_help.map(number).collect();
    let of_guide: Vec<_> = of_guide.map(number).collect();
    assert_eq!(of_help, of_guide);
    assert_eq!(of_help, ["the", "128", "99", "124", "1", "126", "127", "2"]);
}

#[test]
fn each_command_with_statuses_of_its_own_names_them() {
    for command in ["run", "explore", "replay", "compare", "exec", "doctor"] {
        let help = said(&verbsim(&format!("{command} --help")));
        assert!(help.contains("Exit status:"), "{command}: {help}");
    }
}
