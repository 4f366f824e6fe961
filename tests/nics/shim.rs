//! NICs as the program sees them: `shim.c` is a libibverbs between its hardware backend and the
//! drop-in.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use serde_json::Value;
use verbs_scenarios::Scenario;

use crate::table::Table;

/// The shim.
fn shim() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/nics/shim.c");
        let built = Path::new(env!("CARGO_TARGET_TMPDIR")).join("nicshim.so");
        let flags = "-Wall -Wextra -Werror -O1 -shared -fPIC -Wl,-Bsymbolic";
        let mut cc = Command::new("cc");
        cc.args(flags.split(' ')).arg(source).arg("-o").arg(&built);
        // Its next library is the one that `verbsim exec` puts in the place of this.
        cc.args(["-Wl,--no-as-needed", "-l:libibverbs.so.1"]);
        assert!(cc.status().unwrap().success());
        built
    })
}

/// A NIC: a name of its own, its words for the shim, and options of `exec`.
struct Nic<'n> {
    name: &'n str,
    words: String,
    exec: String,
}

impl Nic<'_> {
    /// Runs the suite on it. What `run` wrote, and the report if there is one.
    fn run(&self, options: &str) -> (Output, Option<Value>) {
        let program = env!("CARGO_BIN_EXE_verbsim");
        let report = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("nic-{}.json", self.name));
        let _ = fs::remove_file(&report);
        let mut command = Command::new(program);
        // Groups have the same addresses on each.
        command.args(["exec", "--fabric", &format!("nic-{}", self.name)]);
        command
            .args(self.exec.split_whitespace())
            .args(["--", "env"]);
        command.arg(format!("NICSHIM={}", self.words));
        command.arg(format!("VERBSIM_LIBIBVERBS={}", shim().display()));
        command.args([program, "run", "--backend", "hw", "--device", "sim0"]);
        command.args(options.split_whitespace());
        command.args(["--format", "json", "--out"]).arg(&report);
        let output = command.output().unwrap();
        let text = fs::read_to_string(&report).ok();
        let report = text.map(|text| serde_json::from_str::<Value>(&text).unwrap());
        (output, report.map(|report| report["runs"][0].clone()))
    }

    /// Runs the suite on it: nothing fails. The run.
    fn judge(&self, options: &str) -> Value {
        let start = Instant::now();
        let (output, run) = self.run(options);
        let said = String::from_utf8_lossy(&output.stderr);
        let run = run.unwrap_or_else(|| panic!("{}: {said}", self.name));
        let count = |outcome: &str| run["summary"][outcome].as_u64().unwrap();
        let [passed, failed, skipped] = ["passed", "failed", "skipped"].map(count);
        let seconds = start.elapsed().as_secs();
        println!(
            "{}: {passed} passed, {failed} failed, {skipped} skipped, {seconds} s: {} {} {options}",
            self.name, self.exec, self.words
        );
        assert!(failed == 0 && output.status.success(), "{said}");
        assert!(passed > 0, "{}: nothing was judged", self.name);
        run
    }
}

/// The whole suite, on the NIC of a table: what needs nothing that it lacks passes. Its choices are
/// those of the specification. The scenarios that passed.
fn of_driver(name: &str, text: &str) -> Vec<&'static Scenario> {
    let table = Table::read(text).unwrap();
    let limits = table.limits_in_words();
    let limits = if limits.is_empty() {
        limits
    } else {
        format!("--limits {limits}")
    };
    let nic = Nic {
        name,
        words: table.words(),
        exec: limits,
    };
    let run = nic.judge("--jobs 4");
    let entries = run["scenarios"].as_array().unwrap().iter();
    let ids = entries.filter(|entry| entry["outcome"] == "passed");
    let ids: BTreeSet<_> = ids.map(|entry| entry["id"].as_str().unwrap()).collect();
    let passed: Vec<_> = verbs_scenarios::all()
        .filter(|scenario| ids.contains(scenario.id))
        .collect();
    // Otherwise the shim does not know a word.
    let lacks = table.lacks();
    let mut wrong = passed.iter().map(|scenario| scenario.needs & lacks);
    let wrong = wrong.find(|lacking| !lacking.is_empty());
    assert_eq!(wrong, None, "{name} has it");
    passed
}

macro_rules! drivers {
    ($($name:ident),+) => { $(
        #[test]
        #[ignore = "wants a compiler for C and the drop-in: `./check nics` runs it"]
        fn $name() {
            const TABLE: &str = include_str!(concat!("drivers/", stringify!($name), ".toml"));
            of_driver(stringify!($name), TABLE);
        }
    )+ };
}

drivers! { irdma, hns }

/// Datagrams are what it has.
#[test]
#[ignore = "wants a compiler for C and the drop-in: `./check nics` runs it"]
fn efa() {
    let passed = of_driver("efa", include_str!("drivers/efa.toml"));
    let groups: BTreeSet<_> = passed.iter().map(|scenario| scenario.group()).collect();
    for group in ["ud", "ah", "wc", "cq_create", "mr"] {
        assert!(groups.contains(group), "{group}");
    }
}

/// What a table cannot say: each with the scenarios that meet it.
#[test]
#[ignore = "wants a compiler for C and the drop-in: `./check nics` runs it"]
fn circumstances() {
    const LATE: &str = concat!(
        "--faults ",
        env!("CARGO_MANIFEST_DIR"),
        "/tests/nics/late.toml"
    );
    for (name, words, exec, filter) in [
        ("late", "unknown", LATE, "refill."),
        ("late", "unknown", LATE, "CQ-ARM-26"),
        ("stray", "unknown,stray", "", "async_event."),
        ("slow", "unknown,slow=10", "", "cq_create."),
        ("rounded", "unknown,rounded", "", "qp_create."),
        ("locked", "unknown,locked=8192", "", "mr."),
        ("places", "unknown,gid_places=255", "--profile mlx5", "ah."),
        ("empty", "unknown,first_gid_is_empty", "", "ah."),
        (
            "huge",
            "unknown,max_qp=16777216,max_cq=16777216",
            "",
            "dev.",
        ),
    ] {
        let [words, exec] = [words, exec].map(str::to_owned);
        let run = Nic { name, words, exec }.judge(&format!("--jobs 4 --filter {filter}"));
        let passed_over = run["scenarios"].as_array().unwrap().iter();
        let mut passed_over = passed_over.filter(|entry| {
            let events = entry["passed_over"].as_array();
            events.is_some_and(|events| !events.is_empty())
        });
        assert_eq!(passed_over.next().is_some(), name == "stray", "{name}");
    }
}

/// Nothing of the suite has run then.
#[test]
#[ignore = "wants a compiler for C and the drop-in: `./check nics` runs it"]
fn port_that_is_down_is_refused_at_once() {
    let nic = Nic {
        name: "down",
        words: "unknown,down=1".to_owned(),
        exec: String::new(),
    };
    shim();
    let start = Instant::now();
    let (output, run) = nic.run("");
    assert!(start.elapsed() < Duration::from_secs(5), "{output:?}");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("port 1 of sim0 is DOWN"), "{said}");
    assert_eq!(run, None);
}
