//! A device of this machine.

use std::env;
use std::fs;
use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;

use crossbeam::channel;
use serde::Deserialize;
use verbs_api::{LinkLayer, Verbs};
use verbs_scenarios::report::{BackendInfo, FailureReport, Outcome};
use verbs_scenarios::{
    Attempt, Backend, Bounds, Deviation, FailureKind, Fixture, Negative, Place, Scenario,
    deviations, rule,
};

use super::{DevicePlace, OfHardware, checked, machine, place, word};

/// A device of this machine, and the one of the other side.
#[derive(Clone, Debug)]
pub struct Hardware {
    devices: [String; 2],
    driver: String,
    link_layer: LinkLayer,
    /// The devices are the simulator's, behind libibverbs; the driver is the name of a profile.
    simulated: bool,
    /// Scenarios with hazards run in this process too.
    in_process: bool,
    may_crash_kernel: bool,
    place: Place,
    /// Files with deviations of the user, and what they have.
    files: Vec<PathBuf>,
    own: Vec<Deviation>,
}

/// How many of the longest waits a process with a scenario that has hazards may take.
const LONGEST_WAITS: u32 = 4;

impl Hardware {
    /// The device of this machine that is meant.
    ///
    /// # Errors
    /// Says which devices there are, or what is wrong with the one.
    pub fn chosen(options: &OfHardware) -> Result<Self, String> {
        let DevicePlace {
            device,
            peer_device,
            port,
            gid_index,
        } = &options.at;
        let own = own(&options.deviations)?;
        let none = || {
            let why = machine::obstacles().join("; ");
            format!("this machine has no RDMA device: {why}")
        };
        let machine = machine::verbs(None).ok_or_else(none)?;
        let there = machine.devices().map_err(|error| error.to_string())?;
        let names: Vec<&str> = there.iter().map(|info| info.name.as_str()).collect();
        let first = names.first().ok_or_else(none)?;
        let device = device.clone().unwrap_or_else(|| (*first).to_string());
        let peer = peer_device.clone().unwrap_or_else(|| device.clone());
        for name in [&device, &peer] {
            if !names.contains(&name.as_str()) {
                return Err(format!(
                    "no device is called {name}; there are {}",
                    names.join(", ")
                ));
            }
        }
        let driver = there.iter().find(|info| info.name == device);
        let driver = driver.map_or_else(String::new, |info| info.driver.clone());
        let mut both = vec![&device[..], &peer[..]];
        both.dedup();
        let (place, link_layer) = place::choose(machine.as_ref(), &both, *port, *gid_index)?;
        let simulated = machine::is_simulated(Some(&device));
        if let Some(text) = machine::locked_memory().filter(|_| !simulated) {
            // A standard error that is closed or full does not stop the run.
            let _ = writeln!(io::stderr(), "note: {text}");
        }
        Ok(Self {
            simulated,
            devices: [device, peer],
            driver,
            link_layer,
            in_process: options.in_process,
            may_crash_kernel: options.may_crash_kernel,
            place,
            own,
            files: options.deviations.clone(),
        })
    }

    /// The device, and the one of the other side.
    pub fn devices(&self) -> &[String] {
        &self.devices
    }

    /// Its driver.
    pub fn driver(&self) -> &str {
        &self.driver
    }

    fn kernel(&self) -> String {
        if self.simulated {
            return deviations::OF_PROFILES.to_owned();
        }
        machine::kernel()
    }

    /// The command line of one scenario.
    fn arguments(&self, scenario: &Scenario) -> Vec<String> {
        let [device, peer] = &self.devices;
        let Place {
            port_num,
            sgid_index,
        } = self.place;
        let id = scenario.id;
        let line = format!(
            "run --backend hw --device {device} --peer-device {peer} --port {port_num} \
             --gid-index {sgid_index} --filter {id}"
        );
        let crash = self.may_crash_kernel.then_some("--may-crash-kernel");
        let files = self.files.iter().map(|file| file.display().to_string());
        let files = files.flat_map(|file| ["--deviations".to_string(), file]);
        let line = line.split(' ').chain(crash).map(str::to_string);
        line.chain(files).collect()
    }

    fn failure(&self, scenario: &Scenario, kind: FailureKind, seen: String) -> Attempt {
        let failure = FailureReport {
            kind,
            rule: None,
            expected: "the process with the scenario ends and reports".to_string(),
            seen,
            ends: true,
            trace: Vec::new(),
            replay: self.replay(scenario),
        };
        Attempt {
            ended_by: Some(failure),
            ..Attempt::default()
        }
    }
}

impl Backend for Hardware {
    fn info(&self) -> BackendInfo {
        BackendInfo {
            version: env!("CARGO_PKG_VERSION").to_string(),
            backend: "hw".to_string(),
            device: self.devices[0].clone(),
            driver: self.driver.clone(),
            kernel: Some(self.kernel()),
            rdma_core: machine::rdma_core(),
            link_layer: word(self.link_layer),
            profile: self.driver.clone(),
            seed: 0,
        }
    }

    fn start(&self, _threads: bool) -> verbs_api::Result<Fixture> {
        Ok(checked(only(&self.devices)))
    }

    fn is_timed(&self) -> bool {
        true
    }

    fn may_crash_kernel(&self) -> bool {
        self.may_crash_kernel
    }

    fn place(&self) -> Place {
        self.place
    }

    fn deviations(&self) -> Vec<Deviation> {
        let kernel = self.kernel();
        let recorded = if self.simulated {
            deviations::of_profile(&self.driver)
        } else {
            deviations::of_driver(&self.driver, &kernel)
        };
        // The first that explains a failure gives the reason.
        let own = self.own.iter().filter(|own| own.holds_on(&kernel)).cloned();
        own.chain(recorded).collect()
    }

    fn isolated(&self, scenario: &Scenario, bounds: Bounds) -> Option<Attempt> {
        if self.in_process {
            return None;
        }
        let program = env::current_exe().ok()?;
        let mut child = Command::new(program)
            .args(self.arguments(scenario))
            .args(["--format", "json", "--in-process"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        let mut stdout = child.stdout.take()?;
        let (done, report) = channel::bounded(1);
        let reader = thread::spawn(move || {
            let mut text = String::new();
            // What cannot be read is judged below like a report that is not there.
            let _ = stdout.read_to_string(&mut text);
            let _ = done.send(text);
        });
        let deadline = bounds.positive * LONGEST_WAITS;
        let Ok(text) = report.recv_timeout(deadline) else {
            // Not waited for: one that is stuck in the kernel does not even end when killed.
            let _ = child.kill();
            let seen = format!("nothing after {} s; it was killed", deadline.as_secs());
            return Some(self.failure(scenario, FailureKind::Hang, seen));
        };
        let status = child.wait().ok()?;
        let _ = reader.join();
        Some(match serde_json::from_str::<Report>(&text) {
            Ok(report) => report.attempt(self.replay(scenario)),
            Err(_) => self.failure(scenario, FailureKind::Crash, format!("no report; {status}")),
        })
    }

    fn replay(&self, scenario: &Scenario) -> String {
        format!("verbsim {}", self.arguments(scenario).join(" "))
    }
}

/// The deviations in these files.
fn own(files: &[PathBuf]) -> Result<Vec<Deviation>, String> {
    let mut all = Vec::new();
    for file in files {
        let name = file.display().to_string();
        let text = fs::read_to_string(file).map_err(|error| format!("{name}: {error}"))?;
        all.extend(deviations::parse(&name, &text)?);
    }
    Ok(all)
}

/// These devices of the machine, which has them.
pub fn only(devices: &[String]) -> Box<dyn Verbs> {
    machine::verbs(Some(devices)).expect("a device was found")
}

/// What is read of the report of a process with one scenario.
#[derive(Deserialize)]
struct Report {
    runs: [OneRun; 1],
}

#[derive(Deserialize)]
struct OneRun {
    scenarios: [Entry; 1],
}

#[derive(Deserialize)]
struct Entry {
    outcome: Outcome,
    reason: Option<String>,
    negative: Option<Negative>,
    failure: Option<Failed>,
}

#[derive(Deserialize)]
struct Failed {
    kind: FailureKind,
    rule: Option<String>,
    expected: String,
    seen: String,
    ends: bool,
}

impl Report {
    fn attempt(self, replay: String) -> Attempt {
        let [OneRun { scenarios: [entry] }] = self.runs;
        let Entry {
            outcome,
            reason,
            negative,
            failure,
        } = entry;
        let failure = failure.map(|failed| FailureReport {
            kind: failed.kind,
            rule: failed
                .rule
                .and_then(|id| rule(&id))
                .map(|rule| rule.id.as_str()),
            expected: failed.expected,
            seen: failed.seen,
            ends: failed.ends,
            trace: Vec::new(),
            replay,
        });
        // Whether it ended the scenario was judged there.
        Attempt {
            negative,
            noted: failure.into_iter().collect(),
            ended_by: None,
            skipped: reason.filter(|_| outcome == Outcome::Skipped),
        }
    }
}
