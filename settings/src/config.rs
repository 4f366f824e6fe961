//! Checks the settings and makes simulations from them: the devices, and what to write at the end.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::fs::OpenOptions;
use std::net::Ipv6Addr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use verbs_api::lab::{Fault, Lab};
use verbs_api::profile::{DeviceLimits, Profile};
use verbs_api::{Capabilities, Gid, LinkLayer, Verb, Verbs};
use verbs_faults::Plan;
use verbs_sim::{Mode, Pcap, Sim, SimConfig, Suppressions};

use crate::fabric::{self, Fabric, NAME_RULE, SetUp, is_plain};
use crate::format::DiagnoseFormat;
use crate::setting::{Given, Setting, Sources, Variables};
use crate::suppressions;

/// The settings, checked, from which simulations can be made.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    names: Vec<String>,
    ports: u8,
    link_layer: LinkLayer,
    gids: Vec<GidEntry>,
    fabric: Fabric,
    patience: Duration,
    profile: Profile,
    limits: DeviceLimits,
    /// The seed, if it was given.
    seed: Option<u64>,
    faults: Plan,
    trace: Option<String>,
    diagnose: Option<String>,
    diagnose_format: DiagnoseFormat,
    suppressions: Suppressions,
    halts_on_error: bool,
    backtraces: bool,
    pcap: Option<PathBuf>,
    memory: bool,
}

/// An entry of a GID table.
#[derive(Clone, Debug, PartialEq)]
struct GidEntry {
    /// Which device, from 0.
    device: usize,
    port: u8,
    index: u32,
    gid: Gid,
}

impl Config {
    /// Reads the variables, and the file that one of them names.
    ///
    /// # Errors
    /// For a setting with an invalid value: where it was set, the value, and what is allowed. For
    /// an unknown variable or key, or a file that cannot be read: the reason.
    pub fn read(variables: &Variables) -> Result<Self, String> {
        variables.check_known()?;
        let (file, file_name) = match variables.get(Setting::named("config")) {
            Some(path) => (file(path)?, path.display().to_string()),
            None => Default::default(),
        };
        let from = Sources {
            variables,
            file,
            file_name,
        };
        from.check_keys()?;
        Self::from_sources(&from)
    }

    fn from_sources(from: &Sources<'_>) -> Result<Self, String> {
        let ports = match from.get::<u64>("ports")? {
            Some(ports) => ports.within(1, 250)? as u8,
            None => 1,
        };
        let fabric = from.get::<String>("fabric")?;
        let devices = match fabric
            .as_ref()
            .and_then(|given| fabric::addresses(&given.value))
        {
            Some(addresses) => addresses.len().div_ceil(ports.into()) as u64,
            None => 2,
        };
        let names = device_names(from.get("names")?, from.get("devices")?, devices)?;
        let link_layer = match from.get::<String>("link-layer")? {
            Some(given) => {
                link_layer(&given.value).map_err(|why| given.refuse(&given.value, why))?
            }
            None => LinkLayer::Ethernet,
        };
        if link_layer == LinkLayer::InfiniBand && names.len() * usize::from(ports) > 0xbfff {
            return Err("link-layer: infiniband has LIDs for 49151 ports in all".to_owned());
        }
        let gids = match from.get::<Vec<String>>("gids")? {
            Some(gids) => {
                let entry = |text: &String| {
                    entry(text, &names, ports).map_err(|problem| gids.refuse(text, problem))
                };
                gids.value.iter().map(entry).collect::<Result<_, _>>()?
            }
            None => Vec::new(),
        };
        let profile = profile(from.get("profile")?)?;
        let is_iwarp = profile.lacks.contains(Capabilities::IWARP_LACKS);
        let is_roce = link_layer == LinkLayer::Ethernet && !is_iwarp;
        let set_up = SetUp {
            is_iwarp,
            link_layer,
            has_gids: !gids.is_empty(),
            ports: names.len() * usize::from(ports),
        };
        let halts_on_error = from.get("halt-on-error")?.is_some_and(|given| given.value);
        let backtraces = from.get("backtrace")?.is_some_and(|given| given.value);
        let config = Self {
            fabric: Fabric::read(fabric, &set_up)?,
            patience: Duration::from_secs(from.get("patience")?.map_or(30, |given| given.value)),
            names,
            ports,
            link_layer,
            gids,
            profile,
            limits: limits(&profile, from.get("limits")?)?,
            seed: from.get("seed")?.map(|seed| seed.value),
            faults: faults(from.get("faults")?)?,
            trace: output(from.get("trace")?)?,
            diagnose: output(from.get("diagnose")?)?
                .or_else(|| (halts_on_error || backtraces).then(|| "-".to_owned())),
            diagnose_format: DiagnoseFormat::given(from.get("diagnose-format")?)?,
            suppressions: suppressions::given(from.get("suppressions")?)?,
            halts_on_error,
            backtraces,
            pcap: pcap(from.get("pcap")?, is_roce)?,
            memory: from.get("memory")?.is_some_and(|given| given.value),
        };
        config.simulation(Mode::Stepped, &Fabric::PRIVATE, 0, None)?;
        Ok(config)
    }

    /// Names of the devices; at least one.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The configuration of the devices.
    pub fn profile(&self) -> Profile {
        self.profile
    }

    /// The file for the trace, written at the end; `-` for the standard error.
    pub fn trace(&self) -> Option<&str> {
        self.trace.as_deref()
    }

    /// The file for all packets.
    pub fn pcap(&self) -> Option<&Path> {
        self.pcap.as_deref()
    }

    /// The file for the diagnosis, written at the end; `-` for the standard error.
    pub fn diagnose(&self) -> Option<&str> {
        self.diagnose.as_deref()
    }

    /// Whether the diagnosis reports changes of memory while the device uses it.
    pub fn memory(&self) -> bool {
        self.memory
    }

    /// The format of the diagnosis.
    pub fn diagnose_format(&self) -> DiagnoseFormat {
        self.diagnose_format
    }

    /// The suppressed findings.
    pub fn suppressions(&self) -> &Suppressions {
        &self.suppressions
    }

    /// Whether the program ends at the first definite mistake. Implies a diagnosis.
    pub fn halts_on_error(&self) -> bool {
        self.halts_on_error
    }

    /// Whether each place has its call stack. Implies a diagnosis.
    pub fn backtraces(&self) -> bool {
        self.backtraces
    }

    /// The seed of everything random, if one was given.
    pub fn seed(&self) -> Option<u64> {
        self.seed
    }

    /// The other processes on the fabric.
    pub fn fabric(&self) -> &Fabric {
        &self.fabric
    }

    /// A simulation with the GIDs in their tables and the fault rules in force. Without a seed,
    /// keys and QP numbers are drawn from `drawn`, and everything else is as with seed 0. Packets
    /// go to `pcap`. A fabric with other processes needs [`Mode::RealTime`].
    ///
    /// # Errors
    /// None for a configuration from [`read`](Self::read), which has tried it.
    pub fn simulation(
        &self,
        mode: Mode,
        #[cfg_attr(
            not(target_os = "linux"),
            expect(unused_variables, reason = "packets leave the process on Linux only")
        )]
        fabric: &Fabric,
        drawn: u64,
        pcap: Option<Pcap>,
    ) -> Result<Sim, String> {
        let mut sim = SimConfig::new()
            .nodes(self.names.len() as u32)
            .ports(self.ports)
            .link_layer(self.link_layer)
            .seed(self.seed.unwrap_or(0))
            .scatter(self.seed.unwrap_or(drawn))
            .profile(self.profile)
            .limits(self.limits)
            .trace(self.trace.is_some())
            .check_memory(self.memory)
            // No caller can ask for the list.
            .firings(false)
            .mode(mode);
        if let Some(pcap) = pcap {
            sim = sim.pcap(pcap);
        }
        #[cfg(target_os = "linux")]
        if let Some(network) = fabric.network() {
            sim = sim.network(network).patience(self.patience);
        }
        let sim = Sim::new(sim);
        for GidEntry {
            device,
            port,
            index,
            gid,
        } in &self.gids
        {
            let set = sim
                .open_device(&format!("sim{device}"))
                .and_then(|context| {
                    sim.set_gid(context, *port, *index, *gid)?;
                    sim.close_device(context)
                });
            set.map_err(|error| format!("gids: {gid} of {}: {error}", self.names[*device]))?;
        }
        for (rule, number) in self.faults.rules().iter().zip(1..) {
            let injected = sim.inject(rule.clone());
            injected.map_err(|error| format!("faults: rule {number}: {error}"))?;
        }
        Ok(sim)
    }
}

fn file(path: &OsStr) -> Result<toml::Table, String> {
    let wrong = |problem: String| {
        let (place, name) = (Setting::named("config").place(), path.display());
        format!("{place} is {name}: {}", problem.trim_end())
    };
    let text = fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
    text.parse()
        .map_err(|error: toml::de::Error| wrong(error.to_string()))
}

fn device_names(
    names: Option<Given<Vec<String>>>,
    devices: Option<Given<u64>>,
    default: u64,
) -> Result<Vec<String>, String> {
    const MOST: u64 = 0xffff;
    let devices = match &devices {
        Some(devices) => Some((devices.within(1, MOST)?, &devices.place)),
        None => None,
    };
    let Some(given) = names else {
        let count = devices.map_or(default, |(count, _)| count);
        return Ok((0..count).map(|number| format!("sim{number}")).collect());
    };
    let names = &given.value;
    let all = names.join(",");
    if let Some((count, place)) = devices
        && count != names.len() as u64
    {
        return Err(given.refuse(all, format!("{place} is {count}, which is another number")));
    }
    if names.is_empty() || names.len() as u64 > MOST {
        return Err(given.refuse(all, format!("allowed are 1 to {MOST} names")));
    }
    for (at, name) in names.iter().enumerate() {
        if name.is_empty() || !is_plain(name) {
            return Err(given.refuse(all, format!("{name:?} is not a name: {NAME_RULE}")));
        }
        if names[..at].contains(name) {
            return Err(given.refuse(all, format!("two devices are called {name}")));
        }
    }
    Ok(given.value)
}

/// The link layer of this name: `ethernet` or `infiniband`.
///
/// # Errors
/// The link layers that exist.
pub fn link_layer(name: &str) -> Result<LinkLayer, &'static str> {
    match name {
        "ethernet" => Ok(LinkLayer::Ethernet),
        "infiniband" => Ok(LinkLayer::InfiniBand),
        _ => Err("allowed are ethernet, infiniband"),
    }
}

fn profile(given: Option<Given<String>>) -> Result<Profile, String> {
    let Some(given) = given else {
        return Ok(Profile::SPEC);
    };
    Profile::named(&given.value).map_err(|unknown| given.refuse(&given.value, unknown.to_string()))
}

fn limits(
    profile: &Profile,
    given: Option<Given<BTreeMap<String, u64>>>,
) -> Result<DeviceLimits, String> {
    let mut limits = profile.limits;
    if let Some(given) = given {
        for (name, value) in &given.value {
            let lowered = limits.lower(name, *value);
            lowered.map_err(|error| given.refuse(format!("{name}={value}"), error))?;
        }
    }
    Ok(limits)
}

fn faults(given: Option<Given<String>>) -> Result<Plan, String> {
    let Some(given) = given else {
        return Ok(Plan::default());
    };
    let name = &given.value;
    let plan = Plan::named(name).map_err(|error| match error.line {
        Some(_) => given.refuse(name, error),
        // What could not be read has been named.
        None => given.refuse(name, error.problem),
    })?;
    check_calls(&plan).map_err(|problem| given.refuse(name, problem))?;
    Ok(plan)
}

/// Checks that a program in C can make the calls that a plan lets fail, and sees their failure.
///
/// # Errors
/// The first rule that names another verb.
pub fn check_calls(plan: &Plan) -> Result<(), String> {
    for (rule, number) in plan.rules().iter().zip(1..) {
        if let Fault::Call { verb, .. } = rule
            && !can_fail(*verb)
        {
            return Err(format!("rule {number}: {verb} is not a call that can fail"));
        }
    }
    Ok(())
}

/// Whether a program in C can call this verb, and sees its failure.
fn can_fail(verb: Verb) -> bool {
    let is_void = matches!(
        verb,
        Verb::GetDeviceList
            | Verb::ReadWc
            | Verb::EndPoll
            | Verb::AckCqEvents
            | Verb::AckAsyncEvent
    );
    verb.name().starts_with("ibv_") && !is_void
}

/// Checks that a file can be written, or is `-`.
fn output(given: Option<Given<String>>) -> Result<Option<String>, String> {
    let Some(given) = given else { return Ok(None) };
    let path = &given.value;
    if path != "-" {
        let file = OpenOptions::new().create(true).append(true).open(path);
        file.map_err(|error| given.refuse(path, error))?;
    }
    Ok(Some(given.value))
}

/// Opens the file of packets and writes its header.
fn pcap(given: Option<Given<String>>, is_roce: bool) -> Result<Option<PathBuf>, String> {
    let Some(given) = given else { return Ok(None) };
    let path = PathBuf::from(&given.value);
    if !is_roce {
        return Err(given.refuse(&given.value, "packets are written of RoCEv2 alone"));
    }
    Pcap::prepare(&path).map_err(|error| given.refuse(&given.value, error))?;
    Ok(Some(path))
}

/// `sim0/1/0=fe80::1`
fn entry(text: &str, names: &[String], ports: u8) -> Result<GidEntry, String> {
    let wrong = |problem: &str| format!("{problem}; an entry is device/port/index=address");
    let (place, address) = text.split_once('=').ok_or_else(|| wrong("it has no '='"))?;
    let parts: Vec<_> = place.split('/').collect();
    let [device, port, index] = parts[..] else {
        return Err(wrong("there are not three parts before '='"));
    };
    let device = names.iter().position(|name| name == device);
    let port = port.parse().ok().filter(|port| (1..=ports).contains(port));
    let index = index.parse().ok();
    let address: Option<Ipv6Addr> = address.parse().ok();
    let gid = address.map(|address| Gid(address.octets()));
    let no_port = || wrong(&format!("there are ports 1 to {ports}"));
    Ok(GidEntry {
        device: device.ok_or_else(|| wrong("there is no such device"))?,
        port: port.ok_or_else(no_port)?,
        index: index.ok_or_else(|| wrong("the index is not a number"))?,
        gid: gid.ok_or_else(|| wrong("the address is none of IPv6"))?,
    })
}

#[cfg(test)]
mod tests;
