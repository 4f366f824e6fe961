//! Settings, and their sources: environment variables and a file.

use std::collections::BTreeMap;
use std::env;
use std::ffi::{OsStr, OsString};
use std::fmt::Display;

/// A setting: an option of `verbsim exec`, a variable and a key of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Name of its option, without the dashes, such as `link-layer`.
    pub name: &'static str,
    /// Placeholder of its value in usage messages, such as `N`.
    pub value: &'static str,
    /// Its help text, in a line, with its default.
    pub help: &'static str,
    /// The kind of its value.
    pub kind: Kind,
}

/// The kind of value that a setting has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Not a file.
    Plain,
    /// A file, unless it is one of these words.
    File(&'static [&'static str]),
    /// A file to write, or `-` for the standard error, which is also the default of an option
    /// without a value.
    Output,
    /// `on` or `off` (or `true` and `false`). An option without a value means `on`.
    Switch,
}

/// Every setting. Each is also a key of the file, except `config`.
pub const SETTINGS: &[Setting] = &[
    Setting {
        name: "devices",
        value: "N",
        help: "Number of devices [default: 2, or the number of names]",
        kind: Kind::Plain,
    },
    Setting {
        name: "names",
        value: "NAME,...",
        help: "Names of the devices [default: sim0, sim1, ...]",
        kind: Kind::Plain,
    },
    Setting {
        name: "ports",
        value: "N",
        help: "Ports of each device, all active [default: 1]",
        kind: Kind::Plain,
    },
    Setting {
        name: "link-layer",
        value: "NAME",
        help: "Link layer of the ports: ethernet (RoCE version 2) or infiniband [default: ethernet]",
        kind: Kind::Plain,
    },
    Setting {
        name: "fabric",
        value: "NAME",
        help: "Processes reach each other if they give the same name, or addresses of their machines; `private` \
               reaches none [default: all processes of this machine that give no name]",
        kind: Kind::Plain,
    },
    Setting {
        name: "patience",
        value: "SECONDS",
        help: "How long a queue pair waits for a process of this machine that is stopped or has no processor; 0: only \
               as long as its own timeout and retries take [default: 30]",
        kind: Kind::Plain,
    },
    Setting {
        name: "gids",
        value: "PLACE=GID,...",
        help: "Entries of GID tables, such as sim0/1/0=fe80::1: device, port from 1, index from 0",
        kind: Kind::Plain,
    },
    Setting {
        name: "profile",
        value: "NAME",
        help: "Driver that the devices behave like, or `spec` or `adversarial` [default: spec]",
        kind: Kind::Plain,
    },
    Setting {
        name: "limits",
        value: "NAME=N,...",
        help: "Lower limits than those of the profile, such as max_qp=16,max_cqe=255 [default: the profile's]",
        kind: Kind::Plain,
    },
    Setting {
        name: "seed",
        value: "N",
        help: "Seed of everything random [default: 0, except for keys, which are random]",
        kind: Kind::Plain,
    },
    Setting {
        name: "faults",
        value: "FILE",
        help: "File of fault rules, `standard` or `harsh` for a built-in plan, or `none`; see `verbsim help faults` [default: none]",
        kind: Kind::File(&["standard", "harsh", "none"]),
    },
    Setting {
        name: "trace",
        value: "FILE",
        help: "Write the trace to this file when the program ends; - is its standard error",
        kind: Kind::File(&["-"]),
    },
    Setting {
        name: "pcap",
        value: "FILE",
        help: "Write every packet to this file, for Wireshark; processes of one run share it",
        kind: Kind::File(&[]),
    },
    Setting {
        name: "diagnose",
        value: "FILE",
        help: "When the program ends, report its mistakes to this file [default: standard error]",
        kind: Kind::Output,
    },
    Setting {
        name: "diagnose-format",
        value: "NAME",
        help: "Format of the diagnosis: text; json, one object per line (see `verbsim help json`); or junit, github or \
               sarif, one document at the end of the run, from `verbsim exec` only (see `verbsim help ci`) \
               [default: text]",
        kind: Kind::Plain,
    },
    Setting {
        name: "suppressions",
        value: "FILE",
        help: "File of findings to suppress: in each line a class, such as VS-CQ-04, or a class and a place, such as \
               VS-ARM-05:old_client.c:*",
        kind: Kind::File(&[]),
    },
    Setting {
        name: "halt-on-error",
        value: "on|off",
        help: "Abort the program (SIGABRT) at the first definite mistake. Implies --diagnose",
        kind: Kind::Switch,
    },
    Setting {
        name: "backtrace",
        value: "on|off",
        help: "Report the call stack of every place, not only of refused calls; each verb then costs a few \
               microseconds. Implies --diagnose [default: off]",
        kind: Kind::Switch,
    },
    Setting {
        name: "memory",
        value: "on|off",
        help: "Also report where the program changes, unmaps, deregisters or posts again memory that the device \
               uses; the program runs slower [default: off]",
        kind: Kind::Switch,
    },
    Setting {
        name: "config",
        value: "FILE",
        help: "TOML file with these options as keys",
        kind: Kind::File(&[]),
    },
];

/// Variables that other parts of the project read.
const OF_OTHERS: &[&str] = &[
    "LIBRARY",
    "VERDICT",
    "LIBIBVERBS",
    "LIBRDMACM",
    "DEVICE",
    "ADDRESS",
    "REPORTS",
    "REPLAY",
    "BLESS",
    "TEST_PRINT_TRACE",
    "VM_CACHE",
    "VM_MIRROR",
];

const PREFIX: &str = "VERBSIM_";

impl Setting {
    /// The setting of this name.
    ///
    /// # Panics
    /// If there is no such setting.
    pub fn named(name: &str) -> &'static Self {
        let found = SETTINGS.iter().find(|setting| setting.name == name);
        found.expect("one of `SETTINGS`")
    }

    /// The variable, such as `VERBSIM_LINK_LAYER`.
    pub fn variable(&self) -> String {
        format!("{PREFIX}{}", self.key().to_uppercase())
    }

    /// The key in the file, such as `link_layer`.
    pub fn key(&self) -> String {
        self.name.replace('-', "_")
    }
}

/// The variables whose names begin with `VERBSIM_`. An empty one counts as not set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Variables(BTreeMap<String, OsString>);

impl Variables {
    /// The variables of this process.
    pub fn of_process() -> Self {
        let all =
            env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value)));
        Self::from_iter(all)
    }

    /// The value of a setting, if its variable is set.
    pub fn get(&self, setting: &Setting) -> Option<&OsStr> {
        self.0.get(&setting.variable()).map(OsString::as_os_str)
    }

    /// Sets a setting. A previous value is replaced.
    pub fn set(&mut self, setting: &Setting, value: impl Into<OsString>) {
        self.0.insert(setting.variable(), value.into());
    }

    /// All variables, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &OsStr)> {
        self.0
            .iter()
            .map(|(name, value)| (&**name, value.as_os_str()))
    }

    /// Refuses a variable that is not known, because it is probably misspelled.
    pub(crate) fn check_known(&self) -> Result<(), String> {
        let is_known = |name: &str| {
            OF_OTHERS.contains(&name) || SETTINGS.iter().any(|of| of.key().to_uppercase() == name)
        };
        let unknown = self.0.keys().find(|name| !is_known(&name[PREFIX.len()..]));
        match unknown {
            Some(name) => Err(format!(
                "{name} is not a variable of verbsim; settings are {}",
                listed(SETTINGS.iter().map(Setting::variable))
            )),
            None => Ok(()),
        }
    }
}

impl FromIterator<(String, OsString)> for Variables {
    fn from_iter<T: IntoIterator<Item = (String, OsString)>>(all: T) -> Self {
        let own = all.into_iter();
        Self(
            own.filter(|(name, value)| name.starts_with(PREFIX) && !value.is_empty())
                .collect(),
        )
    }
}

fn listed(names: impl Iterator<Item = String>) -> String {
    names.collect::<Vec<_>>().join(", ")
}

/// The sources of settings.
pub(crate) struct Sources<'a> {
    pub(crate) variables: &'a Variables,
    pub(crate) file: toml::Table,
    /// For messages.
    pub(crate) file_name: String,
}

/// The value of a setting, and where it was given.
pub(crate) struct Given<T> {
    pub(crate) place: String,
    pub(crate) value: T,
}

/// A value that can be written as text, and in a file.
pub(crate) trait Value: Sized {
    /// The error for text that is not such a value.
    const WANTED: &'static str;

    fn of_text(text: &str) -> Option<Self>;

    fn of_toml(value: &toml::Value) -> Option<Self>;
}

impl Sources<'_> {
    /// Refuses keys of the file that are not settings.
    pub(crate) fn check_keys(&self) -> Result<(), String> {
        let keys = || {
            SETTINGS
                .iter()
                .map(Setting::key)
                .filter(|key| key != "config")
        };
        match self.file.keys().find(|key| !keys().any(|of| of == **key)) {
            Some(key) => Err(format!(
                "{key} in {} is not a setting; there are {}",
                self.file_name,
                listed(keys())
            )),
            None => Ok(()),
        }
    }

    /// The value of a setting: from its variable, or else from the file.
    pub(crate) fn get<T: Value>(&self, name: &str) -> Result<Option<Given<T>>, String> {
        let setting = Setting::named(name);
        if let Some(given) = self.variables.get(setting) {
            let place = setting.place();
            let value = given.to_str().and_then(|text| T::of_text(text.trim()));
            return match value {
                Some(value) => Ok(Some(Given { place, value })),
                None => Err(format!("{place} is {}: {}", given.display(), T::WANTED)),
            };
        }
        let place = format!("{} in {}", setting.key(), self.file_name);
        let Some(written) = self.file.get(&setting.key()) else {
            return Ok(None);
        };
        match T::of_toml(written) {
            Some(value) => Ok(Some(Given { place, value })),
            None => Err(format!("{place} is {written}: {}", T::WANTED)),
        }
    }
}

impl Setting {
    /// Where it is set, for messages: the variable, and the option of `verbsim exec` that sets it.
    pub(crate) fn place(&self) -> String {
        format!("{} (--{})", self.variable(), self.name)
    }
}

impl<T> Given<T> {
    /// The error that refuses a value.
    pub(crate) fn refuse(&self, value: impl Display, problem: impl Display) -> String {
        format!("{} is {value}: {problem}", self.place)
    }
}

impl Given<u64> {
    /// Its value, if it is in the range from `least` to `most`.
    pub(crate) fn within(&self, least: u64, most: u64) -> Result<u64, String> {
        if (least..=most).contains(&self.value) {
            return Ok(self.value);
        }
        Err(self.refuse(self.value, format!("allowed are {least} to {most}")))
    }
}

impl Value for String {
    const WANTED: &'static str = "it must be a text";

    fn of_text(text: &str) -> Option<Self> {
        Some(text.to_owned())
    }

    fn of_toml(value: &toml::Value) -> Option<Self> {
        value.as_str().map(str::to_owned)
    }
}

impl Value for u64 {
    const WANTED: &'static str = "it must be a number, from 0";

    fn of_text(text: &str) -> Option<Self> {
        text.parse().ok()
    }

    fn of_toml(value: &toml::Value) -> Option<Self> {
        value.as_integer().and_then(|number| number.try_into().ok())
    }
}

impl Value for bool {
    const WANTED: &'static str = "it must be on or off, in a file true or false";

    /// The spellings that are usual in variables.
    fn of_text(text: &str) -> Option<Self> {
        match text {
            "on" | "true" | "1" => Some(true),
            "off" | "false" | "0" => Some(false),
            _ => None,
        }
    }

    fn of_toml(value: &toml::Value) -> Option<Self> {
        value.as_bool()
    }
}

impl Value for Vec<String> {
    const WANTED: &'static str = "it must be a list of texts";

    /// `sim0,sim1`
    fn of_text(text: &str) -> Option<Self> {
        Some(text.split(',').map(|part| part.trim().to_owned()).collect())
    }

    fn of_toml(value: &toml::Value) -> Option<Self> {
        value.as_array()?.iter().map(String::of_toml).collect()
    }
}

impl Value for BTreeMap<String, u64> {
    const WANTED: &'static str = "it is written NAME=NUMBER,..., in a file { NAME = NUMBER, ... }";

    /// `max_qp=16,max_cqe=255`
    fn of_text(text: &str) -> Option<Self> {
        let pair = |part: &str| {
            let (name, value) = part.split_once('=')?;
            Some((name.trim().to_owned(), value.trim().parse().ok()?))
        };
        text.split(',').map(pair).collect()
    }

    fn of_toml(value: &toml::Value) -> Option<Self> {
        let pair = |(name, value): (&String, _)| Some((name.clone(), u64::of_toml(value)?));
        value.as_table()?.iter().map(pair).collect()
    }
}
