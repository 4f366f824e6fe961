//! From the failures in a report to records of them: `verbsim deviations`, and `run --deviations`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use verbs_scenarios::deviations;

/// An empty directory of a test.
fn directory(test: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("own-deviations-{test}"));
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir_all(&dir).unwrap();
    dir
}

/// How a command in a directory ended, and its two streams.
fn verbsim(dir: &Path, arguments: &str) -> (i32, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_verbsim"));
    let output = command
        .args(arguments.split_whitespace())
        .current_dir(dir)
        .output()
        .unwrap();
    let [stdout, stderr] =
        [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
    (output.status.code().unwrap(), stdout, stderr)
}

fn failed(id: &str, rule: Option<&str>, seen: &str, ends: bool) -> Value {
    let failure = json!({ "rule": rule, "expected": "a\nb", "seen": seen, "ends": ends });
    json!({ "id": id, "outcome": "failed", "failure": failure })
}

/// A report of these scenarios on two devices of the same driver.
fn report(schema: u32, scenarios: &[Value]) -> String {
    let run = json!({
        "driver": "mlx5",
        "kernel": "6.1.0-18",
        "rdma_core": "44.0",
        "device_attr": { "fw_ver": "16.35.2000" },
        "scenarios": scenarios,
    });
    json!({ "schema": schema, "runs": [run, run] }).to_string()
}

#[test]
fn each_failure_becomes_one_draft() {
    let dir = directory("drafts");
    let reads = "uc.there_are_no_reads";
    let passed = json!({ "id": reads, "outcome": "passed", "failure": null });
    let scenarios = [
        passed,
        failed(reads, Some("UC-06"), "key 0x1234 is invalid", false),
        failed("wc.wr_id_comes_back_in_all_its_bits", None, "\"7\"", true),
    ];
    fs::write(dir.join("report.json"), report(1, &scenarios)).unwrap();
    let (status, drafts, said) = verbsim(&dir, "deviations report.json");
    assert_eq!((status, &*said), (0, ""));
    let [first, second] = &deviations::parse("drafts", &drafts).unwrap()[..] else {
        panic!("{drafts}");
    };
    assert_eq!(first.scenarios, [reads]);
    assert_eq!(first.symptom, "is invalid");
    assert_eq!((first.rule.as_deref(), &first.ends), (Some("UC-06"), &None));
    let source = "measured: driver mlx5, firmware 16.35.2000, kernel 6.1.0-18, rdma-core 44.0";
    assert_eq!(first.source, source);
    assert_eq!((&*second.symptom, &second.rule), ("\"7\"", &None));
    let texts = [&first.reason, &second.reason, second.ends.as_ref().unwrap()];
    for text in texts {
        assert!(text.starts_with(deviations::DRAFT), "{text}");
    }
    let (status, shown, said) = verbsim(&dir, "deviations report.json --out own.toml");
    assert_eq!((status, shown, said), (0, String::new(), String::new()));
    assert_eq!(fs::read_to_string(dir.join("own.toml")).unwrap(), drafts);

    fs::write(dir.join("report.json"), report(1, &scenarios[..1])).unwrap();
    let (status, drafts, said) = verbsim(&dir, "deviations report.json");
    assert_eq!((status, &*drafts), (0, ""));
    assert_eq!(said, "note: no scenario of report.json failed\n");
}

#[test]
fn a_wrong_file_is_refused_in_words() {
    let dir = directory("refused");
    let entry = |id: &str, field: &str| {
        let fields = format!("scenarios = [\"{id}\"]\n{field} = \"s\"");
        format!("[[deviation]]\n{fields}\nreason = \"r\"\nsource = \"s\"\n")
    };
    let reads = "uc.there_are_no_reads";
    for (name, text) in [
        ("right.toml", entry(reads, "symptom")),
        ("unknown.toml", entry("uc.there_are_reads", "symptom")),
        ("field.toml", entry(reads, "symptm")),
        ("list.json", "[]".to_owned()),
        ("later.json", report(2, &[])),
    ] {
        fs::write(dir.join(name), text).unwrap();
    }
    let run = "run --backend hw --deviations right.toml --deviations";
    for (arguments, words) in [
        (
            format!("{run} unknown.toml"),
            "unknown.toml:1: no scenario is called uc.there_are_reads",
        ),
        (
            format!("{run} field.toml"),
            "field.toml:3: unknown field `symptm`",
        ),
        (format!("{run} none.toml"), "none.toml: No such file"),
        // Its processes would read it one after the other.
        (format!("{run} ."), ". is not a regular file"),
        (
            "deviations list.json".to_owned(),
            "list.json: not a report of `run`: ",
        ),
        (
            "deviations later.json".to_owned(),
            "later.json: schema 2 is of another verbsim; this one has 1",
        ),
        ("deviations none.json".to_owned(), "none.json: No such file"),
    ] {
        let (status, _, said) = verbsim(&dir, &arguments);
        assert_eq!(status, 2, "{arguments}: {said}");
        assert!(
            said.starts_with(&format!("error: {words}")),
            "{arguments}: {said}"
        );
    }
}

/// The device has a defect: each work request fails that should succeed.
#[test]
#[ignore = "wants the drop-in: `./check libibverbs` runs it"]
fn what_failed_is_known_after_a_draft_until_the_device_is_mended() {
    let dir = directory("known");
    let plan = "[[rule]]\nkind = \"completion\"\nstatus = \"LOC_QP_OP_ERR\"\n";
    fs::write(dir.join("defect.toml"), plan).unwrap();
    let run = |defect: &str, options: &str| {
        let program = env!("CARGO_BIN_EXE_verbsim");
        let run = "run --backend hw --device sim0 --filter wc. --format json --out report.json";
        let line = format!("exec {defect} -- {program} {run} {options}");
        let (status, _, _) = verbsim(&dir, &line);
        let text = fs::read_to_string(dir.join("report.json")).unwrap();
        let report: Value = serde_json::from_str(&text).unwrap();
        (status, report["runs"][0].clone())
    };
    let count = |run: &Value, outcome: &str| run["summary"][outcome].as_u64().unwrap();
    let defect = "--faults defect.toml";

    let (status, before) = run(defect, "");
    let failed = count(&before, "failed");
    assert!(status == 1 && failed > 10, "{before}");
    let seconds = |entry: &Value| entry["seconds"].as_f64().is_some_and(|s| s > 0.0);
    let did_run = |entry: &&Value| entry["outcome"] != "skipped";
    let mut scenarios = before["scenarios"].as_array().unwrap().iter();
    assert!(scenarios.clone().filter(did_run).all(seconds), "{before}");
    assert!(scenarios.any(|entry| entry["seconds"].is_null()));

    // After a failure that is known a scenario may get as far as another one.
    let (mut status, mut known) = (status, before);
    let mut options = String::new();
    for round in 0..4 {
        if status == 0 {
            break;
        }
        let draft = format!("own{round}.toml");
        let drafted = verbsim(&dir, &format!("deviations report.json --out {draft}"));
        assert_eq!(drafted.0, 0);
        options += &format!(" --deviations {draft}");
        (status, known) = run(defect, &options);
    }
    assert_eq!((status, count(&known, "failed")), (0, 0), "{known}");
    assert_eq!(count(&known, "known_deviations"), failed);
    let reasons = known["scenarios"].as_array().unwrap().iter();
    let drafts = reasons.filter_map(|entry| entry["reason"].as_str());
    let drafts = drafts.filter(|reason| reason.starts_with(deviations::DRAFT));
    assert_eq!(drafts.count() as u64, failed, "each is seen to be a draft");

    let (status, mended) = run("", &options);
    assert_eq!((status, count(&mended, "unexpected_passes")), (1, failed));
}
