//! How the devices are set up: by environment variables, or a file that `VERBSIM_CONFIG` names.
//!
//! | variable | in the file | default | what |
//! |---|---|---|---|
//! | `VERBSIM_DEVICES` | `devices = 2` | 2 | how many devices |
//! | `VERBSIM_NAMES` | `names = ["a", "b"]` | `sim0`, `sim1`, ... | their names; then there are so many |
//! | `VERBSIM_PORTS` | `ports = 1` | 1 | ports of each, all active |
//! | `VERBSIM_GIDS` | `gids = ["sim0/1/0=fe80::1"]` | a link-local one and one of IPv4 | entries of GID tables: device, port, index |
//! | `VERBSIM_PROFILE` | `profile = "spec"` | `spec` | how they answer where they have a choice |
//! | `VERBSIM_SEED` | `seed = 0` | 0 | seed of everything random |
//! | `VERBSIM_TRACE` | `trace = "-"` | none | where the trace goes when the program ends: a file, or `-` for stderr |
//!
//! Lists in variables have commas. A variable wins over the file.

use std::net::Ipv6Addr;
use std::{env, fs};

use serde::Deserialize;
use verbs_api::{Gid, Profile};

/// What the variables and the file say.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Config {
    /// Names of the devices; at least one.
    pub(crate) names: Vec<String>,
    pub(crate) ports: u8,
    pub(crate) gids: Vec<GidEntry>,
    pub(crate) profile: Profile,
    pub(crate) seed: u64,
    pub(crate) trace: Option<String>,
}

/// An entry of a GID table.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct GidEntry {
    /// Which device, from 0.
    pub(crate) device: usize,
    pub(crate) port: u8,
    pub(crate) index: u32,
    pub(crate) gid: Gid,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    devices: Option<u32>,
    names: Option<Vec<String>>,
    ports: Option<u8>,
    gids: Option<Vec<String>>,
    profile: Option<String>,
    seed: Option<u64>,
    trace: Option<String>,
}

/// Every variable but that of the file.
const VARIABLES: [&str; 7] = [
    "VERBSIM_DEVICES",
    "VERBSIM_NAMES",
    "VERBSIM_PORTS",
    "VERBSIM_GIDS",
    "VERBSIM_PROFILE",
    "VERBSIM_SEED",
    "VERBSIM_TRACE",
];

/// The name of a device has an end within its 64 bytes.
const LONGEST_NAME: usize = 63;

impl Config {
    /// That of this process.
    pub(crate) fn of_process() -> Result<Self, String> {
        let file = match env::var_os("VERBSIM_CONFIG") {
            None => Written::default(),
            Some(path) => {
                let of_file = |problem: String| {
                    format!("VERBSIM_CONFIG: {}: {problem}", path.to_string_lossy())
                };
                let text = fs::read_to_string(&path).map_err(|error| of_file(error.to_string()))?;
                toml::from_str(&text).map_err(|error| of_file(error.to_string()))?
            }
        };
        Self::new(file, |name| {
            env::var(name).ok().filter(|value| !value.is_empty())
        })
    }

    fn new(file: Written, variable: impl Fn(&str) -> Option<String>) -> Result<Self, String> {
        let [devices, names, ports, gids, profile, seed, trace] =
            VARIABLES.map(|name| (name, variable(name)));
        let devices = number(devices)?.or(file.devices.map(u64::from));
        let names = list(names).or(file.names);
        let names = match (names, devices) {
            (Some(names), Some(devices)) if names.len() as u64 != devices => {
                let count = names.len();
                return Err(format!("{devices} devices are to have {count} names"));
            }
            (Some(names), _) => names,
            (None, devices) => {
                let devices = within("devices", devices.unwrap_or(2), 1, 0xffff)?;
                (0..devices).map(|number| format!("sim{number}")).collect()
            }
        };
        check_names(&names)?;
        let ports = number(ports)?.or(file.ports.map(u64::from));
        let ports = within("ports", ports.unwrap_or(1), 1, 250)? as u8;
        let profile = profile.1.or(file.profile);
        let profile = profile.map_or(Ok(Profile::SPEC), |name| Profile::named(&name));
        let profile = profile.map_err(|unknown| unknown.to_string())?;
        let gids = list(gids).or(file.gids).unwrap_or_default();
        let gids: Result<_, _> = gids.iter().map(|text| entry(text, &names, ports)).collect();
        Ok(Self {
            gids: gids?,
            names,
            ports,
            profile,
            seed: number(seed)?.or(file.seed).unwrap_or(0),
            trace: trace.1.or(file.trace),
        })
    }
}

fn number((name, value): (&str, Option<String>)) -> Result<Option<u64>, String> {
    let parse = |value: String| {
        let parsed = value.trim().parse();
        parsed.map_err(|_| format!("{name} is {value}, which is no number"))
    };
    value.map(parse).transpose()
}

fn list((_, value): (&str, Option<String>)) -> Option<Vec<String>> {
    value.map(|value| {
        value
            .split(',')
            .map(|part| part.trim().to_owned())
            .collect()
    })
}

fn within(what: &str, value: u64, min: u64, max: u64) -> Result<u64, String> {
    if value < min || value > max {
        return Err(format!("{what} is {value}, allowed are {min} to {max}"));
    }
    Ok(value)
}

fn check_names(names: &[String]) -> Result<(), String> {
    within("the number of names", names.len() as u64, 1, 0xffff)?;
    for (at, name) in names.iter().enumerate() {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
        if name.is_empty() || name.len() > LONGEST_NAME || !name.chars().all(is_plain) {
            return Err(format!(
                "{name:?} is no name of a device: 1 to {LONGEST_NAME} letters, digits, '_', '-', '.'"
            ));
        }
        if names[..at].contains(name) {
            return Err(format!("two devices are called {name}"));
        }
    }
    Ok(())
}

/// `sim0/1/0=fe80::1`
fn entry(text: &str, names: &[String], ports: u8) -> Result<GidEntry, String> {
    let wrong =
        |problem: &str| format!("GID {text}: {problem}; it is written device/port/index=address");
    let (place, address) = text.split_once('=').ok_or_else(|| wrong("no '='"))?;
    let parts: Vec<_> = place.split('/').collect();
    let [device, port, index] = parts[..] else {
        return Err(wrong("not three parts before '='"));
    };
    let device = names.iter().position(|name| name == device);
    let port = port.parse().ok().filter(|port| (1..=ports).contains(port));
    let address: Option<Ipv6Addr> = address.parse().ok();
    Ok(GidEntry {
        device: device.ok_or_else(|| wrong("no such device"))?,
        port: port.ok_or_else(|| wrong("no such port"))?,
        index: index.parse().map_err(|_| wrong("the index is no number"))?,
        gid: Gid(address.ok_or_else(|| wrong("no address of IPv6"))?.octets()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(file: &str, variables: &[(&str, &str)]) -> Result<Config, String> {
        let file = toml::from_str(file).map_err(|error| error.to_string())?;
        let variable = |name: &str| {
            assert!(VARIABLES.contains(&name));
            let found = variables.iter().find(|(of, _)| *of == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        Config::new(file, variable)
    }

    #[test]
    fn variables_win_over_the_file_and_the_file_over_the_defaults() {
        let default = config("", &[]).unwrap();
        assert_eq!(
            (default.names.len(), default.ports, default.seed),
            (2, 1, 0)
        );
        let file = "names = [\"a\", \"b\", \"c\"]\nseed = 3\nports = 2";
        let both = config(file, &[("VERBSIM_SEED", "4"), ("VERBSIM_PROFILE", "rxe")]).unwrap();
        assert_eq!((both.names.len(), both.ports, both.seed), (3, 2, 4));
        assert_eq!(both.profile, Profile::RXE);
        let gids = config(
            "",
            &[("VERBSIM_GIDS", "sim1/1/0=fe80::1, sim0/1/1=::ffff:10.0.0.1")],
        );
        assert_eq!(gids.unwrap().gids[0].device, 1);
    }

    #[test]
    fn what_makes_no_sense_is_named() {
        for (file, variables, named) in [
            ("color = 1", &[][..], "color"),
            ("devices = 0", &[], "devices is 0"),
            (
                "devices = 1\nnames = [\"a\", \"b\"]",
                &[],
                "1 devices are to have 2 names",
            ),
            ("names = [\"a\", \"a\"]", &[], "two devices are called a"),
            ("names = [\"a/b\"]", &[], "a/b"),
            ("ports = 251", &[], "ports is 251"),
            ("profile = \"fast\"", &[], "fast"),
            ("gids = [\"sim7/1/0=fe80::1\"]", &[], "no such device"),
            ("gids = [\"sim0/2/0=fe80::1\"]", &[], "no such port"),
            ("gids = [\"sim0/1/0=xyz\"]", &[], "no address"),
            ("", &[("VERBSIM_SEED", "x")], "VERBSIM_SEED is x"),
        ] {
            let error = config(file, variables).unwrap_err();
            assert!(error.contains(named), "{error}");
        }
    }
}
