//! A device of this machine.

use std::env;
use std::fs;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, Write};
use std::num::NonZero;
use std::path::PathBuf;

use verbs_api::{LinkLayer, Verbs};
use verbs_scenarios::report::BackendInfo;
use verbs_scenarios::{Backend, Deviation, Fixture, Place, Scenario, deviations};

use super::{DevicePlace, OfHardware, checked, machine, place, word};
use crate::workers::Workers;

/// A device of this machine, and the one of the other side.
#[derive(Clone, Debug)]
pub struct Hardware {
    devices: [String; 2],
    driver: String,
    link_layer: LinkLayer,
    /// The devices are the simulator's, behind libibverbs; the driver is the name of a profile.
    simulated: bool,
    may_crash_kernel: bool,
    place: Place,
    /// Files with deviations of the user.
    files: Vec<PathBuf>,
    /// Deviations of the user, then recorded ones.
    deviations: Vec<Deviation>,
}

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
        let place = Place {
            qkey: drawn() & !CONTROLLED,
            ..place
        };
        let simulated = machine::is_simulated(Some(&device));
        if let Some(text) = machine::locked_memory().filter(|_| !simulated && !options.worker) {
            // A standard error that is closed or full does not stop the run.
            let _ = writeln!(io::stderr(), "note: {text}");
        }
        let kernel = kernel(simulated);
        let recorded = if simulated {
            deviations::of_profile(&driver)
        } else {
            deviations::of_driver(&driver, &kernel)
        };
        // The first that explains a failure gives the reason.
        let own = own.into_iter().filter(|own| own.holds_on(&kernel));
        Ok(Self {
            deviations: own.chain(recorded).collect(),
            simulated,
            devices: [device, peer],
            driver,
            link_layer,
            may_crash_kernel: options.may_crash_kernel,
            place,
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

    /// Processes that run scenarios on it, `jobs` at the same time; `None` if this program is
    /// not known.
    pub fn workers(&self, jobs: NonZero<usize>) -> Option<Workers> {
        let mut arguments = self.arguments();
        arguments.push("--worker".to_owned());
        Some(Workers {
            program: env::current_exe().ok()?,
            arguments,
            jobs,
        })
    }

    /// The command line that runs the suite on it.
    fn arguments(&self) -> Vec<String> {
        let [device, peer] = &self.devices;
        let Place {
            port_num,
            sgid_index,
            ..
        } = self.place;
        let line = format!(
            "run --backend hw --device {device} --peer-device {peer} --port {port_num} \
             --gid-index {sgid_index}"
        );
        let crash = self.may_crash_kernel.then_some("--may-crash-kernel");
        let files = self.files.iter().map(|file| file.display().to_string());
        let files = files.flat_map(|file| ["--deviations".to_string(), file]);
        let line = line.split(' ').chain(crash).map(str::to_string);
        line.chain(files).collect()
    }
}

impl Backend for Hardware {
    fn info(&self) -> BackendInfo {
        BackendInfo {
            version: env!("CARGO_PKG_VERSION").to_string(),
            backend: "hw".to_string(),
            device: self.devices[0].clone(),
            driver: self.driver.clone(),
            kernel: Some(kernel(self.simulated)),
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
        self.deviations.clone()
    }

    fn replay(&self, scenario: &Scenario) -> String {
        let arguments = self.arguments().join(" ");
        format!("verbsim {arguments} --filter {}", scenario.id)
    }
}

/// The release of the kernel with the driver.
fn kernel(simulated: bool) -> String {
    if simulated {
        return deviations::OF_PROFILES.to_owned();
    }
    machine::kernel()
}

/// The deviations in these files, which each process of a run reads: a pipe would be empty then.
fn own(files: &[PathBuf]) -> Result<Vec<Deviation>, String> {
    let mut all = Vec::new();
    for file in files {
        let name = file.display().to_string();
        if fs::metadata(file).is_ok_and(|of| !of.is_file()) {
            return Err(format!(
                "{name} is not a regular file, which can be read again"
            ));
        }
        let text = fs::read_to_string(file).map_err(|error| format!("{name}: {error}"))?;
        all.extend(deviations::parse(&name, &text)?);
    }
    Ok(all)
}

/// These devices of the machine, which has them.
pub fn only(devices: &[String]) -> Box<dyn Verbs> {
    machine::verbs(Some(devices)).expect("a device was found")
}

/// The bit of a Q_Key that not every process may use.
const CONTROLLED: u32 = 1 << 31;

/// A number that other processes hardly draw.
fn drawn() -> u32 {
    // Each has keys of its own, which the system draws.
    RandomState::new().build_hasher().finish() as u32
}
