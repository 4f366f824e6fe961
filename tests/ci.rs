//! The examples of `docs/ci.md` are right: the commands of each job are read out of the YAML on the
//! page, and run in a copy of the project `tests/ci`.
//!
//! Steps that install something are not run: the program is on the path, and the packages are those
//! of the machine.
#![cfg(target_os = "linux")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use saphyr::{LoadableYamlNode, Yaml};

/// A job, for one value of its matrix.
#[derive(Debug, PartialEq)]
struct Job {
    name: String,
    script: String,
    variables: Vec<(&'static str, String)>,
    /// The files that it uploads.
    uploads: Vec<String>,
}

#[test]
#[ignore = "wants cc, libibverbs-dev, python3-pyverbs and the drop-in: `./check libibverbs` runs it"]
fn each_job_of_the_examples_does_what_it_says() {
    let jobs = [github(&example(".github/workflows/rdma.yml"))]
        .into_iter()
        .chain([gitlab(&example(".gitlab-ci.yml"))]);
    for (system, jobs) in ["github", "gitlab"].into_iter().zip(jobs) {
        for (number, job) in jobs.iter().enumerate() {
            let dir = project(&format!("{system}-{number}-{}", job.name));
            run(&dir, job);
        }
    }
}

#[test]
fn both_examples_have_the_same_jobs() {
    let names = |jobs: Vec<Job>| jobs.into_iter().map(|job| job.name).collect::<Vec<_>>();
    let github = github(&example(".github/workflows/rdma.yml"));
    let one_each = ["rust", "c", "python", "conformance"];
    let expected = [&one_each[..], &["explore"; 4]].concat();
    let shards = github[4..].iter().map(|job| job.script.as_str());
    for (number, script) in shards.enumerate() {
        let shard = format!(" --shard {}/4 ", number + 1);
        assert!(script.contains(&shard), "{script}");
    }
    assert_eq!(names(github), expected);
    assert_eq!(names(gitlab(&example(".gitlab-ci.yml"))), expected);
}

/// The block that follows the paragraph with this path.
fn example(path: &str) -> Yaml<'static> {
    let page = include_str!("../docs/ci.md");
    let (_, rest) = page
        .split_once(&format!("\n`{path}`:\n\n```yaml\n"))
        .unwrap();
    let (text, _) = rest.split_once("\n```\n").unwrap();
    Yaml::load_from_str(text).unwrap().remove(0)
}

/// The jobs of a workflow of GitHub Actions.
fn github(workflow: &Yaml<'static>) -> Vec<Job> {
    let mut jobs = Vec::new();
    for (name, job) in workflow["jobs"].as_mapping().unwrap() {
        let steps = job["steps"].as_sequence().unwrap();
        let installs = |step: &&Yaml<'_>| {
            let name = step.as_mapping_get("name").and_then(Yaml::as_str);
            name.is_some_and(|name| name.starts_with("Install "))
        };
        let steps = || steps.iter().filter(|step| !installs(step));
        let script = steps().filter_map(|step| step.as_mapping_get("run"));
        let script: Vec<_> = script.map(text).collect();
        let with = steps().filter_map(|step| step.as_mapping_get("with"));
        let uploads = with.filter_map(|with| {
            let sarif = with.as_mapping_get("sarif_file");
            sarif.or_else(|| with.as_mapping_get("path"))
        });
        let uploads: Vec<_> = uploads.map(text).collect();
        let shards = job.as_mapping_get("strategy").map(|strategy| {
            let shards = strategy["matrix"]["shard"].as_sequence().unwrap();
            shards
                .iter()
                .map(|shard| shard.as_integer().unwrap())
                .collect()
        });
        for shard in shards.unwrap_or_else(|| vec![0]) {
            let script = script.join("\n");
            jobs.push(Job {
                name: text(name),
                script: script.replace("${{ matrix.shard }}", &shard.to_string()),
                variables: Vec::new(),
                uploads: uploads.clone(),
            });
        }
    }
    jobs
}

/// The jobs of a pipeline of GitLab.
fn gitlab(pipeline: &Yaml<'static>) -> Vec<Job> {
    let mut jobs = Vec::new();
    for (name, job) in pipeline.as_mapping().unwrap() {
        if name.as_str() == Some("default") {
            continue;
        }
        let script = job["script"].as_sequence().unwrap().iter().map(text);
        let script: Vec<_> = script.collect();
        let total = job.as_mapping_get("parallel").and_then(Yaml::as_integer);
        for index in 1..=total.unwrap_or(1) {
            jobs.push(Job {
                name: text(name),
                script: script.join("\n"),
                variables: vec![
                    ("CI_NODE_INDEX", index.to_string()),
                    ("CI_NODE_TOTAL", total.unwrap_or(1).to_string()),
                ],
                uploads: vec![text(&job["artifacts"]["reports"]["junit"])],
            });
        }
    }
    jobs
}

fn text(of: &Yaml<'_>) -> String {
    of.as_str().unwrap().to_owned()
}

/// A copy of the project.
fn project(name: &str) -> PathBuf {
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ci");
    // Not below the workspace, to which it would belong.
    let dir = env::temp_dir().join("verbsim-ci").join(name);
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir_all(dir.join("tests")).unwrap();
    for file in [
        "Cargo.toml",
        "device.rs",
        "tests/device.rs",
        "client.c",
        "client.py",
    ] {
        fs::copy(from.join(file), dir.join(file)).unwrap();
    }
    dir
}

/// Runs a job as the systems do: it ends at the first command that fails.
fn run(dir: &Path, job: &Job) {
    let program = Path::new(env!("CARGO_BIN_EXE_verbsim")).parent().unwrap();
    let path = env::var("PATH").unwrap();
    let output = Command::new("bash")
        .args(["-e", "-o", "pipefail", "-c", &job.script])
        .current_dir(dir)
        .env("PATH", format!("{}:{path}", program.display()))
        .env_remove("CARGO_TARGET_DIR")
        .envs(job.variables.iter().cloned())
        .output()
        .unwrap();
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    assert!(output.status.success(), "{job:?}: {said}");
    for file in &job.uploads {
        let size = fs::metadata(dir.join(file)).map_or(0, |found| found.len());
        assert!(size > 0, "{job:?} wrote no {file}: {said}");
    }
}
