//! A device of this machine.

use std::env;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, Write};
use std::num::NonZero;

use verbs_api::{LinkLayer, PortState, Verbs};
use verbs_scenarios::report::BackendInfo;
use verbs_scenarios::{Backend, Deviation, Fixture, Place, Scenario, deviations};

use super::{DevicePlace, OfHardware, checked, machine, word};
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
        let place = Place {
            port_num: *port,
            sgid_index: *gid_index,
            qkey: drawn() & !CONTROLLED,
        };
        let link_layer = check_place(machine.as_ref(), &device, place)?;
        check_place(machine.as_ref(), &peer, place)?;
        let simulated = machine::is_simulated(Some(&device));
        if let Some(text) = machine::locked_memory().filter(|_| !simulated && !options.worker) {
            // A standard error that is closed or full does not stop the run.
            let _ = writeln!(io::stderr(), "note: {text}");
        }
        Ok(Self {
            simulated,
            devices: [device, peer],
            driver,
            link_layer,
            may_crash_kernel: options.may_crash_kernel,
            place,
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
        line.split(' ').chain(crash).map(str::to_string).collect()
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
            link_layer: word(self.link_layer),
            profile: self.driver.clone(),
            seed: 0,
        }
    }

    fn start(&self, _threads: bool) -> verbs_api::Result<Fixture> {
        Ok(checked(only(&self.devices)))
    }

    fn may_crash_kernel(&self) -> bool {
        self.may_crash_kernel
    }

    fn place(&self) -> Place {
        self.place
    }

    fn deviations(&self) -> Vec<Deviation> {
        if self.simulated {
            return deviations::of_profile(&self.driver);
        }
        deviations::of_driver(&self.driver, &self.kernel())
    }

    fn replay(&self, scenario: &Scenario) -> String {
        let arguments = self.arguments().join(" ");
        format!("verbsim {arguments} --filter {}", scenario.id)
    }
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

/// The link layer there, if the suite can work there, before it tries.
fn check_place(machine: &dyn Verbs, device: &str, place: Place) -> Result<LinkLayer, String> {
    let Place {
        port_num,
        sgid_index,
        ..
    } = place;
    let in_words = |error: verbs_api::Error| format!("{device}: {error}");
    let context = machine.open_device(device).map_err(in_words)?;
    let ports = machine
        .query_device(context)
        .map_err(in_words)?
        .phys_port_cnt;
    if port_num == 0 || port_num > ports {
        return Err(format!("{device} has no port {port_num}, but 1 to {ports}"));
    }
    let port = machine.query_port(context, port_num).map_err(in_words)?;
    if port.state != PortState::Active {
        return Err(format!("port {port_num} of {device} is {}", port.state));
    }
    if u32::from(sgid_index) >= port.gid_tbl_len {
        let last = port.gid_tbl_len.saturating_sub(1);
        return Err(format!(
            "port {port_num} of {device} has no GID {sgid_index}, but 0 to {last}"
        ));
    }
    Ok(port.link_layer)
}
