//! Results in the formats of continuous integration: JUnit XML, annotations of GitHub Actions,
//! SARIF.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use serde_json::Value;

/// How a command ended, and what it wrote.
struct Ended {
    status: i32,
    stdout: String,
    stderr: String,
}

/// `verbsim` in a directory. Its variables do not say that this is a run of continuous integration.
fn command(dir: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_verbsim"));
    command.args(arguments).current_dir(dir);
    command
        .env_remove("GITHUB_WORKSPACE")
        .env_remove("CI_PROJECT_DIR");
    command
}

fn run(mut command: Command) -> Ended {
    let output = command.output().unwrap();
    Ended {
        status: output.status.code().unwrap(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

fn verbsim_in(dir: &Path, arguments: &[&str]) -> Ended {
    run(command(dir, arguments))
}

fn verbsim(arguments: &[&str]) -> Ended {
    verbsim_in(Path::new("."), arguments)
}

/// An empty directory of a test.
fn directory(test: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("results-{test}"));
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir_all(&dir).unwrap();
    dir.canonicalize().unwrap()
}

/// The counts of a document, of which each suite has the same attributes.
fn counts(document: &str) -> String {
    let line = document.lines().find(|line| line.contains("<testsuites "));
    let (_, counts) = line.unwrap().split_once("name=\"verbsim\" ").unwrap();
    counts.trim_end_matches('>').to_owned()
}

#[test]
fn junit_of_a_run_has_a_case_for_each_scenario() {
    let run = ["run", "--profile", "rxe", "--filter", "cq_"];
    let json = verbsim(&[&run[..], &["--format", "json"]].concat());
    let json: Value = serde_json::from_str(&json.stdout).unwrap();
    let summary = &json["runs"][0]["summary"];
    let count = |name: &str| summary[name].as_u64().unwrap();
    let [skipped, known, passed] = ["skipped", "known_deviations", "passed"].map(count);
    assert!(
        skipped > 0 && known > 0 && passed > 0,
        "the profile has all of these"
    );

    let Ended { status, stdout, .. } = verbsim(&[&run[..], &["--format", "junit"]].concat());
    assert_eq!(status, 0, "{stdout}");
    let tests = passed + skipped + known;
    let expected = format!(
        "tests=\"{tests}\" skipped=\"{}\" failures=\"0\" errors=\"0\"",
        skipped + known
    );
    assert_eq!(counts(&stdout), expected);
    for part in [
        "<testsuite name=\"sim sim0, ethernet, profile rxe, seed 0\"",
        "<testcase name=\"request_is_one_shot\" classname=\"sim0.rxe.ethernet.cq_arm\"/>",
        "<skipped message=\"known deviation: ",
        "<skipped message=\"needs cq_moderation\"/>",
    ] {
        assert!(stdout.contains(part), "{part}: {stdout}");
    }
    let again = verbsim(&[&run[..], &["--format", "junit"]].concat());
    assert_eq!(stdout, again.stdout, "it has no times");
}

/// The names of all fields of a report. A field of an object that is a field itself has that
/// one's name in front.
fn fields(value: &Value, parent: &str, names: &mut BTreeSet<String>) {
    match value {
        Value::Array(values) => values.iter().for_each(|value| fields(value, "", names)),
        Value::Object(members) => {
            for (name, value) in members {
                let prefix = if parent.is_empty() { "" } else { "." };
                names.insert(format!("{parent}{prefix}{name}"));
                fields(value, name, names);
            }
        }
        _ => {}
    }
}

/// Both ways: a name that the page has is in reports.
#[test]
fn each_field_of_a_report_is_documented() {
    let run = [
        "run",
        "--profile",
        "rxe",
        "--filter",
        "uc.",
        "--format",
        "json",
    ];
    let mut found = BTreeSet::new();
    let report = verbsim(&run).stdout;
    fields(&serde_json::from_str(&report).unwrap(), "", &mut found);
    let page = include_str!("../docs/json.md");
    let (_, page) = page
        .split_once("\n## `verbsim run --format json`\n")
        .unwrap();
    let (page, _) = page.split_once("\n## ").unwrap();
    let mut documented = BTreeSet::new();
    let mut parent = String::new();
    for line in page.lines() {
        let Some((column, _)) = line
            .strip_prefix("| ")
            .and_then(|row| row.split_once(" | "))
        else {
            continue;
        };
        match column.strip_prefix("in `") {
            Some(of) => parent = of.replace('`', "."),
            None if column == "field" => parent.clear(),
            None => {
                let names = column.split(", ").map(|name| name.trim_matches('`'));
                documented.extend(names.map(|name| format!("{parent}{name}")));
            }
        }
    }
    assert_eq!(found, documented);
}

#[test]
fn a_run_that_passes_has_no_annotations() {
    let run = [
        "run",
        "--profile",
        "rxe",
        "--filter",
        "cq_arm",
        "--format",
        "github",
    ];
    let Ended { status, stdout, .. } = verbsim(&run);
    assert_eq!(status, 0, "{stdout}");
    assert_eq!(stdout.lines().count(), 1, "{stdout}");
    assert!(stdout.starts_with("sim sim0, ethernet, profile rxe, seed 0: "));
}

#[test]
fn a_failure_of_an_exploration_is_shown_with_the_command_that_repeats_it() {
    let explore = ["explore", "--planted-defect", "--seeds", "0..1000"];
    let junit = verbsim(&[&explore[..], &["--format", "junit"]].concat());
    assert_eq!(junit.status, 1, "{}", junit.stdout);
    let expected = "tests=\"1\" skipped=\"0\" failures=\"1\" errors=\"0\"";
    assert_eq!(counts(&junit.stdout), expected);
    let case = "<testcase name=\"seeds 0..1000, shard 1/1\" classname=\"program/spec\">";
    assert!(junit.stdout.contains(case), "{}", junit.stdout);
    let github = verbsim(&[&explore[..], &["--format", "github"]].concat());
    assert_eq!(github.status, 1, "{}", github.stdout);
    let [annotation, summary] = github.stdout.lines().collect::<Vec<_>>()[..] else {
        panic!("{}", github.stdout);
    };
    assert!(annotation.starts_with("::error title=program/spec%3A seed "));
    assert!(summary.starts_with("program/spec: ") && summary.ends_with(" failed"));
    // Those who read the log see it too.
    for text in [&junit.stdout, &junit.stderr, annotation] {
        assert!(text.contains("verbsim replay ") && text.contains("invariant delivery: "));
    }

    let passes = ["explore", "--seeds", "0..3", "--format", "junit"];
    let Ended {
        status,
        stdout,
        stderr,
    } = verbsim(&passes);
    assert_eq!((status, &*stderr), (0, ""), "a short run has no progress");
    assert!(counts(&stdout).starts_with("tests=\"1\" skipped=\"0\" failures=\"0\""));
}

#[test]
fn commands_that_do_not_judge_have_no_such_formats() {
    for command in ["list", "rules", "classes", "devices"] {
        let Ended { status, stderr, .. } = verbsim(&[command, "--format", "junit"]);
        assert_eq!(status, 2, "{command}");
        assert!(
            stderr.contains("[possible values: table, json]"),
            "{command}: {stderr}"
        );
    }
}

/// What `exec` makes of what processes say. Shell scripts say it instead of the drop-in.
#[cfg(target_os = "linux")]
mod of_scripts {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    /// A directory with a library that has the mark of the drop-in.
    fn directory(test: &str) -> PathBuf {
        let dir = super::directory(test);
        let text = "#[unsafe(no_mangle)] pub static VERBSIM_DROP_IN: u8 = 1;";
        fs::write(dir.join("library.rs"), text).unwrap();
        let mut rustc = Command::new("rustc");
        rustc.args(["--edition", "2024", "--crate-type", "cdylib", "library.rs"]);
        rustc.args(["-o", "library.so"]).current_dir(&dir);
        assert!(rustc.status().unwrap().success());
        dir
    }

    /// A script that is found by `PATH`, in the directory `bin`. It writes these facts to the
    /// record of the run, and then does the rest.
    fn exec(dir: &Path, options: &[&str], facts: &[&str], rest: &str) -> Command {
        let facts: String = facts.iter().map(|fact| format!("{fact}\\n\\000")).collect();
        let say = "set -- $VERBSIM_VERDICT; printf \"$facts\" 1<>/proc/$1/fd/$2";
        let script = dir.join("bin/script");
        fs::create_dir_all(dir.join("bin")).unwrap();
        fs::write(
            &script,
            format!("#!/bin/sh\nfacts=\"{facts}\"\n{say}\n{rest}\n"),
        )
        .unwrap();
        fs::set_permissions(&script, PermissionsExt::from_mode(0o755)).unwrap();
        let library = dir.join("library.so");
        let exec = ["exec", "--library", library.to_str().unwrap()];
        let mut command = command(dir, &[&exec[..], options, &["--", "script"]].concat());
        let path = env::var("PATH").unwrap();
        let path = format!("{}:{path}", dir.join("bin").display());
        command.env("PATH", path);
        command
    }

    /// A finding without a place.
    const FINDING: &str = r#"{"process":7,"device":"sim0","class":"VS-OBJ-03","level":"error","rule":"DEV-03","sentence":"not destroyed","place":null,"sources":[],"count":1,"help":"destroy it"}"#;

    /// Names are compared from run to run, and texts have numbers of processes.
    #[test]
    fn junit_has_a_case_of_its_own_for_each_thing_under_a_name_that_stays_the_same() {
        let dir = directory("names");
        let finds = format!("printf '%s\\n' '{FINDING}' '{FINDING}' >>$VERBSIM_DIAGNOSE");
        let used = ["1 loaded $$ script", "1 opened", "1 queue_pair"];
        let two = [
            &used[..],
            &["1 ended 0 0", "2 loaded 7 a", "2 opened"],
            &["3 loaded 8 b", "3 opened"],
        ]
        .concat();
        let program = "script";
        for (options, facts, rest, names, failures) in [
            (
                &[][..],
                &two[..],
                &*finds,
                &[
                    program,
                    "VS-OBJ-03 on sim0",
                    "VS-OBJ-03 on sim0 (2)",
                    "a process ended without a diagnosis",
                    "a process ended without a diagnosis (2)",
                ][..],
                2,
            ),
            (
                &[],
                &used,
                "kill $$",
                &[
                    program,
                    "a signal ended a process before it could be diagnosed",
                ],
                1,
            ),
            (
                &[],
                &[],
                "kill $$",
                &[
                    program,
                    "a signal ended the program before it could be diagnosed",
                ],
                1,
            ),
            (
                &[],
                &[],
                "",
                &[program, "the program used no RDMA device"],
                1,
            ),
            (&["--timeout", "0.5"], &[], "sleep 100", &[program], 1),
        ] {
            let document = ["--diagnose=found.xml", "--diagnose-format", "junit"];
            run(exec(&dir, &[&document, options].concat(), facts, rest));
            let text = fs::read_to_string(dir.join("found.xml")).unwrap();
            let cases = text.split("<testcase name=\"").skip(1);
            let cases = cases.map(|case| case.split_once('"').unwrap().0);
            assert_eq!(cases.collect::<Vec<_>>(), names, "{text}");
            let (tests, failures) = (names.len(), format!("failures=\"{failures}\""));
            let counts = counts(&text);
            assert!(
                counts.starts_with(&format!("tests=\"{tests}\"")) && counts.contains(&failures),
                "{text}"
            );
        }
    }

    /// GitHub reads a command at the beginning of a line only.
    #[test]
    fn annotations_begin_a_line_of_the_standard_error() {
        let dir = directory("lines");
        let options = [
            "--diagnose",
            "--diagnose-format",
            "github",
            "--allow-unused",
        ];
        let rest = "printf unfinished >&2; exit 3";
        let ended = run(exec(&dir, &options, &[], rest));
        let annotation = "::error title=verbsim exec::the program ended with status 3";
        assert_eq!(ended.stderr, format!("unfinished\n{annotation}\n"));
        let ended = run(exec(&dir, &options, &[], ""));
        assert_eq!(ended.stderr, "", "there is nothing to begin a line for");
    }

    #[test]
    fn a_finding_without_a_place_is_in_the_file_of_the_program_that_path_has() {
        let dir = directory("path");
        let elsewhere = super::directory("path-elsewhere");
        fs::write(dir.join("script"), "not the program").unwrap();
        let options = ["--diagnose=found.sarif", "--diagnose-format", "sarif"];
        let rest = format!("echo '{FINDING}' >>$VERBSIM_DIAGNOSE");
        let absolute = format!("file://{}", dir.join("bin/script").display());
        for (current, uri) in [(&dir, "bin/script"), (&elsewhere, &absolute)] {
            let mut command = exec(&dir, &options, &[], &rest);
            let path = format!("../results-path/bin:{}", env::var("PATH").unwrap());
            command.current_dir(current).env("PATH", path);
            run(command);
            let text = fs::read_to_string(current.join("found.sarif")).unwrap();
            let document: Value = serde_json::from_str(&text).unwrap();
            let result = &document["runs"][0]["results"][0]["locations"][0];
            let file = &result["physicalLocation"]["artifactLocation"]["uri"];
            assert_eq!(file, uri);
        }
    }
}

/// What needs the drop-in.
#[cfg(target_os = "linux")]
mod on_the_drop_in {
    use super::*;

    /// With this argument a program of `tests/sanitizer` makes its mistake.
    const WRONG: &str = "wrong";

    /// Builds a program of this repository in a directory, from a copy of its source in `src`.
    fn build(dir: &Path, source: &str, copy: &str, program: &str) {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(source);
        let copy = Path::new("src").join(copy);
        fs::create_dir_all(dir.join("src")).unwrap();
        fs::copy(&source, dir.join(&copy)).unwrap();
        let mut cc = Command::new("cc");
        cc.args(["-O1", "-g", "-I"]).arg(source.parent().unwrap());
        cc.arg(copy).args(["-o", program]);
        cc.args(["-libverbs", "-lrdmacm", "-lpthread"]);
        assert!(cc.current_dir(dir).status().unwrap().success());
    }

    /// Runs a program in a directory: how it ended, and the document.
    fn exec(dir: &Path, format: &str, options: &[&str], program: &[&str]) -> (Ended, String) {
        let to = format!("--diagnose=found.{format}");
        let exec = ["exec", "--seed", "0", &to, "--diagnose-format", format];
        let ended = verbsim_in(dir, &[&exec[..], options, &["--"], program].concat());
        let document = fs::read_to_string(dir.join(format!("found.{format}"))).unwrap();
        (ended, document)
    }

    #[test]
    #[ignore = "wants cc, libibverbs-dev and the drop-in: `./check libibverbs` runs it"]
    fn a_finding_is_an_annotation_at_its_line() {
        let dir = directory("annotations");
        build(&dir, "tests/sanitizer/access.c", "access.c", "access");
        build(
            &dir,
            "tests/sanitizer/after_error.c",
            "after_error.c",
            "after_error",
        );
        let annotations =
            |options: &[&str], program: &str| exec(&dir, "github", options, &[program, WRONG]);
        let (ended, text) = annotations(&[], "./access");
        assert_eq!(ended.status, 0, "{}", ended.stderr);
        let error =
            "::error file=src/access.c,line=10,title=VS-MR-01 (MR-01)::ibv_reg_mr: EINVAL: ";
        assert!(
            text.starts_with(error) && text.lines().count() == 1,
            "{text}"
        );
        assert!(text.contains("%0A  at src/access.c:10%0A  in process "));
        let logged = "sim1: VS-MR-01: ibv_reg_mr: EINVAL: ";
        assert!(ended.stderr.starts_with(logged), "{}", ended.stderr);

        // What may be right is an error only where it fails the run.
        let (ended, text) = annotations(&["--fail-on", "error"], "./after_error");
        assert_eq!(ended.status, 0, "{}", ended.stderr);
        assert!(text.starts_with("::warning file=src/after_error.c,line=15,title=VS-QP-05 "));
        let (ended, text) = annotations(&["--fail-on", "warning"], "./after_error");
        assert_eq!(ended.status, 99, "{}", ended.stderr);
        assert!(text.starts_with("::error file=src/after_error.c,line=15,title=VS-QP-05 "));

        // In a directory that does not have the sources there is no file to show it at.
        let elsewhere = directory("elsewhere");
        let program = dir.join("access");
        let program = [program.to_str().unwrap(), WRONG];
        let (_, text) = exec(&elsewhere, "github", &[], &program);
        assert!(
            text.starts_with("::error title=VS-MR-01 (MR-01)::"),
            "{text}"
        );

        // On the standard error annotations are all there is.
        let exec = ["exec", "--diagnose", "--diagnose-format", "github", "--"];
        let program = [dir.join("access").display().to_string(), WRONG.to_owned()];
        let arguments = [&exec[..], &program.each_ref().map(|word| &word[..])].concat();
        let ended = verbsim_in(&dir, &arguments);
        let place = "::error file=src/access.c,line=10,";
        let text = ended.stderr.strip_prefix('\n').unwrap();
        assert!(text.starts_with(place) && text.lines().count() == 1);

        // A step in a subdirectory: files are named from the checkout on.
        for variable in ["GITHUB_WORKSPACE", "CI_PROJECT_DIR"] {
            let mut below = command(&dir.join("src"), &arguments);
            below.env(variable, &dir);
            let ended = run(below);
            let text = ended.stderr.trim_start();
            assert!(text.starts_with(place), "{text}");
        }
    }

    #[test]
    #[ignore = "wants cc, libibverbs-dev and the drop-in: `./check libibverbs` runs it"]
    fn junit_of_a_program_has_a_case_for_it_and_one_for_each_finding() {
        let dir = directory("junit");
        build(&dir, "tests/clients/ends/ends.c", "ends.c", "ends");
        let junit = |options: &[&str], way: &[&str]| {
            let (ended, text) = exec(&dir, "junit", options, &[&["./ends"], way].concat());
            (ended.status, counts(&text), text + &ended.stderr)
        };
        let (status, counted, said) = junit(&["--fail-on", "warning"], &["right"]);
        let clean = "tests=\"1\" skipped=\"0\" failures=\"0\" errors=\"0\"";
        assert_eq!((status, &*counted), (0, clean), "{said}");
        assert!(said.contains("<testcase name=\"./ends right\" classname=\"verbsim exec\"/>"));

        // A process that is killed has no diagnosis of its own; what it did wrong before is known.
        let (status, counted, said) = junit(&[], &["mistake", "kill"]);
        let failed = "tests=\"3\" skipped=\"1\" failures=\"2\" errors=\"0\"";
        assert_eq!((status, &*counted), (128 + 9, failed), "{said}");
        for part in [
            "signal 9 ended the program",
            "VS-OBJ-02 at ends.c:",
            "file=\"src/ends.c\"",
        ] {
            assert!(said.contains(part), "{part}: {said}");
        }
        // What is only missing does not fail a run.
        let (status, counted, said) = junit(&["--fail-on", "warning"], &["_exit"]);
        let doubtful = "tests=\"2\" skipped=\"1\" failures=\"0\" errors=\"0\"";
        assert_eq!((status, &*counted), (0, doubtful), "{said}");
        assert!(said.contains("warning: process "), "{said}");

        let (status, _, said) = junit(&["--timeout", "1s"], &["wait"]);
        assert_eq!(status, 124, "{said}");
        assert!(
            said.contains("<failure message=\"the program ran longer than --timeout, "),
            "{said}"
        );
        assert!(said.contains("<skipped message=\"warning: "), "{said}");

        let (status, counted, said) = junit(&[], &["list"]);
        let unused = "tests=\"2\" skipped=\"0\" failures=\"1\" errors=\"0\"";
        assert_eq!((status, &*counted), (99, unused), "{said}");
        assert!(said.contains("it opened no device"), "{said}");
        let (status, counted, said) = junit(&["--allow-unused"], &["list"]);
        assert_eq!((status, &*counted), (0, clean), "{said}");
    }

    #[test]
    #[ignore = "wants ibv_devinfo and the drop-in: `./check libibverbs` runs it"]
    fn a_program_that_may_have_fallen_back_is_a_warning() {
        let dir = directory("fell-back");
        for (level, status, element) in [
            (
                "error",
                0,
                "<skipped message=\"warning: devices were opened",
            ),
            ("warning", 99, "<failure message=\"devices were opened"),
        ] {
            let (ended, text) = exec(&dir, "junit", &["--fail-on", level], &["ibv_devinfo"]);
            assert_eq!(ended.status, status, "{}", ended.stderr);
            assert!(text.contains(element), "{text}");
            assert!(
                ended
                    .stderr
                    .starts_with("verbsim: warning: devices were opened")
            );
        }
    }

    #[test]
    #[ignore = "wants the drop-in: `./check libibverbs` runs it"]
    fn a_program_that_cannot_be_started_has_a_document_too() {
        let dir = directory("absent");
        for format in ["junit", "github", "sarif"] {
            let (ended, text) = exec(&dir, format, &[], &["./absent"]);
            assert_eq!(ended.status, 127, "{}", ended.stderr);
            assert!(text.contains("./absent: No such file"), "{text}");
        }
        for format in ["junit", "sarif"] {
            let exec = ["exec", "--diagnose", "--diagnose-format", format, "true"];
            let ended = verbsim(&exec);
            assert_eq!(ended.status, 2, "{}", ended.stderr);
            assert!(
                ended
                    .stderr
                    .contains("name a file for it by --diagnose=FILE")
            );
        }
        let mut alone = Command::new("ibv_devices");
        let library = env::var_os("VERBSIM_LIBRARY").unwrap();
        alone.env("LD_PRELOAD", library);
        let output = alone.env("VERBSIM_DIAGNOSE_FORMAT", "junit").output();
        let output = output.unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(
            said.contains("start the program with `verbsim exec`"),
            "{said}"
        );
    }

    #[test]
    #[ignore = "wants the drop-in: `./check libibverbs` runs it"]
    fn a_scenario_that_fails_is_a_failure_with_the_command_that_repeats_it() {
        let dir = directory("fails");
        let plan = "[[rule]]\nkind = \"completion\"\nstatus = \"LOC_QP_OP_ERR\"\n";
        fs::write(dir.join("plan.toml"), plan).unwrap();
        let fails = |format| {
            let program = env!("CARGO_BIN_EXE_verbsim");
            let exec = ["exec", "--faults", "plan.toml", "--", program, "run"];
            let run = "--backend hw --device sim0 --in-process --filter cq_arm.request_is_one_shot --format";
            let run: Vec<_> = run.split(' ').chain([format]).collect();
            let Ended { status, stdout, .. } = verbsim_in(&dir, &[&exec[..], &run].concat());
            assert_eq!(status, 1, "{stdout}");
            stdout
        };
        let junit = fails("junit");
        assert!(counts(&junit).starts_with("tests=\"1\" skipped=\"0\" failures=\"1\""));
        for property in [
            "driver\" value=\"spec",
            "device_attr.vendor_id\" value=\"16777215",
        ] {
            assert!(
                junit.contains(&format!("<property name=\"{property}\"/>")),
                "{junit}"
            );
        }
        let github = fails("github");
        assert!(github.starts_with("::error title=cq_arm.request_is_one_shot%3A assertion::"));
        for text in [junit, github] {
            for part in [
                "1 successes on cq",
                "wr_id 0x0 LOC_QP_OP_ERR",
                "verbsim run --backend hw ",
                "CQ-ARM-17",
            ] {
                assert!(text.contains(part), "{part}: {text}");
            }
        }
    }

    /// junitparser and sarif-tools, which others wrote.
    #[test]
    #[ignore = "wants cc, libibverbs-dev, the drop-in, junitparser and sarif-tools: `./check libibverbs` runs it"]
    fn second_readers_read_the_same() {
        let dir = directory("readers");
        // A path with characters that URIs escape, and a name with characters that XML escapes or
        // does not have.
        let program = "./access \u{1}\u{1b}[1m<&\u{fffe}é";
        build(&dir, "tests/sanitizer/access.c", "an access %41.c", program);
        let program = [program, WRONG];
        exec(&dir, "junit", &[], &program);
        exec(&dir, "sarif", &[], &program);
        build(&dir, "tests/sanitizer/leak.c", "leak.c", "leak");
        let run = [
            "exec",
            "--diagnose=leak.sarif",
            "--diagnose-format",
            "sarif",
            "./leak",
            WRONG,
        ];
        assert_eq!(verbsim_in(&dir, &run).status, 0);
        let run = ["run", "--profile", "rxe", "--filter", "cq_", "--format"];
        let [json, junit] =
            ["json", "junit"].map(|format| verbsim(&[&run[..], &[format]].concat()));
        fs::write(dir.join("run.json"), json.stdout).unwrap();
        fs::write(dir.join("run.junit"), junit.stdout).unwrap();
        let python = env::var("READERS").expect("the Python that has the readers");
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/readers.py");
        let read = Command::new(python).arg(script).current_dir(&dir).output();
        let read = read.unwrap();
        let said = [read.stdout, read.stderr].concat();
        assert!(read.status.success(), "{}", String::from_utf8_lossy(&said));
    }
}
