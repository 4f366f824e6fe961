//! The workflows of this repository run `./check` and nothing else, and leave out no part of it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use saphyr::{LoadableYamlNode, Yaml};

/// The most minutes that the parts of one job may take.
const MOST: u32 = 30;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The parts that a list of `check` names.
fn parts_of(list: &str) -> Vec<String> {
    let script = fs::read_to_string(root().join("check")).unwrap();
    let list = format!("\n{list}=(");
    let (_, rest) = script.split_once(&list).unwrap();
    let (names, _) = rest.split_once(')').unwrap();
    names.split_whitespace().map(str::to_owned).collect()
}

/// The parts of a run of `check` without arguments.
fn standard_parts() -> Vec<String> {
    [parts_of("busy"), parts_of("waiting")].concat()
}

/// The minutes of each part, from the table of TESTING.md.
fn minutes() -> BTreeMap<String, u32> {
    let page = fs::read_to_string(root().join("TESTING.md")).unwrap();
    let row = |line: &str| {
        let (part, rest) = line.strip_prefix("| `")?.split_once("` | ")?;
        let minutes = rest.trim_end_matches(" |").rsplit_once(" | ")?.1;
        Some((part.to_owned(), minutes.parse().ok()?))
    };
    page.lines().filter_map(row).collect()
}

fn workflows() -> Vec<PathBuf> {
    let folder = fs::read_dir(root().join(".github/workflows")).unwrap();
    let mut files: Vec<_> = folder.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

/// The commands of each job of a workflow; a job with a matrix is one for each of its `parts`.
fn jobs(workflow: &Path) -> Vec<Vec<String>> {
    let text = fs::read_to_string(workflow).unwrap();
    let workflow = Yaml::load_from_str(&text).unwrap().remove(0);
    let mut jobs = Vec::new();
    for (_, job) in workflow["jobs"].as_mapping().unwrap() {
        let steps = job["steps"].as_sequence().unwrap();
        let commands = steps
            .iter()
            .filter_map(|step| step.as_mapping_get("run"))
            .flat_map(|run| run.as_str().unwrap().lines());
        let commands: Vec<_> = commands.collect();
        let values = job.as_mapping_get("strategy").map(|strategy| {
            let parts = strategy["matrix"]["parts"].as_sequence().unwrap();
            parts.iter().map(|parts| parts.as_str().unwrap()).collect()
        });
        for value in values.unwrap_or_else(|| vec![""]) {
            let command = |command: &&str| command.replace("${{ matrix.parts }}", value);
            jobs.push(commands.iter().map(command).collect());
        }
    }
    jobs
}

/// The parts that a command runs.
///
/// # Errors
/// Another command than `./check PART...`.
fn parts(command: &str) -> Result<Vec<String>, String> {
    let all = [standard_parts(), parts_of("long")].concat();
    let parts = command.strip_prefix("./check ").unwrap_or_default();
    let parts: Vec<_> = parts.split_whitespace().map(str::to_owned).collect();
    if parts.is_empty() || parts.iter().any(|part| !all.contains(part)) {
        return Err(format!(
            "no call of ./check with parts that exist: {command}"
        ));
    }
    Ok(parts)
}

#[test]
fn each_part_is_in_one_job_and_jobs_run_nothing_else() {
    let mut left = standard_parts();
    let minutes = minutes();
    let minutes_of = |part: &String| {
        let found = minutes.get(part).copied();
        found.unwrap_or_else(|| panic!("TESTING.md has no minutes of {part}"))
    };
    for job in workflows().iter().flat_map(|workflow| jobs(workflow)) {
        let commands = job.iter().map(|command| parts(command));
        let of_job = commands.collect::<Result<Vec<_>, _>>().unwrap().concat();
        let total: u32 = of_job.iter().map(minutes_of).sum();
        assert!(total < MOST, "{of_job:?} take {total} minutes");
        for part in of_job {
            let at = left.iter().position(|name| *name == part);
            left.remove(at.unwrap_or_else(|| panic!("{part} is in two jobs")));
        }
    }
    assert!(left.is_empty(), "in no job: {left:?}");
}

#[test]
fn another_command_is_found() {
    for command in [
        "cargo test",
        "./check",
        "./check nothing",
        "./check lint; true",
    ] {
        assert!(parts(command).is_err(), "{command}");
    }
    assert_eq!(parts("./check lint docs").unwrap(), ["lint", "docs"]);
}
