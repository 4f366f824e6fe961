//! Which processes reach each other.

use std::collections::BTreeSet;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr};

use verbs_api::LinkLayer;
#[cfg(target_os = "linux")]
use verbs_sim::Network;

use crate::setting::Given;

/// The processes that reach each other.
#[derive(Clone, Debug, PartialEq)]
pub struct Fabric {
    which: Which,
    link_layer: LinkLayer,
    /// Where it was set, if it was.
    place: Option<String>,
}

#[derive(Clone, Debug, PartialEq)]
enum Which {
    Private,
    Named(String),
    Addresses(Vec<IpAddr>),
}

/// What a fabric depends on.
pub(crate) struct SetUp {
    pub(crate) is_iwarp: bool,
    pub(crate) link_layer: LinkLayer,
    /// Some GIDs were set.
    pub(crate) has_gids: bool,
    /// Ports of all devices together.
    pub(crate) ports: usize,
}

/// All processes that give no name.
const DEFAULT: &str = "default";
/// The name of a device ends within the 64 bytes of its C array. That of a fabric has the same
/// limit.
const LONGEST_NAME: usize = 63;
/// What [`is_plain`] asks for, in words.
pub(crate) const NAME_RULE: &str = "a name is 1 to 63 letters, digits, '_', '-', '.'";

/// The addresses in a list of nothing else.
pub(crate) fn addresses(text: &str) -> Option<Vec<IpAddr>> {
    let address = |part: &str| part.trim().parse::<IpAddr>().ok();
    text.split(',')
        .map(|part| address(part).map(|address| address.to_canonical()))
        .collect()
}

/// Whether a schedule decides which thread of this process goes on (`verbsim exec --schedule`).
#[cfg(target_os = "linux")]
pub fn is_scheduled() -> bool {
    std::env::var_os("VERBS_SCHEDULE_CLOCK").is_some()
}

/// Whether the name of a fabric or a device has no other characters than it may have, nor too many.
pub(crate) fn is_plain(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    name.len() <= LONGEST_NAME && name.chars().all(is_plain)
}

fn is_of_one(address: IpAddr) -> bool {
    let is_broadcast = address == IpAddr::V4(Ipv4Addr::BROADCAST);
    !address.is_unspecified() && !address.is_multicast() && !is_broadcast
}

impl Fabric {
    /// Without other processes.
    pub const PRIVATE: Self = Self {
        which: Which::Private,
        link_layer: LinkLayer::Ethernet,
        place: None,
    };

    pub(crate) fn read(given: Option<Given<String>>, set_up: &SetUp) -> Result<Self, String> {
        let Some(given) = given else {
            let is_private = set_up.is_iwarp || set_up.has_gids || !cfg!(target_os = "linux");
            let which = if is_private {
                Which::Private
            } else {
                Which::Named(DEFAULT.to_owned())
            };
            return Ok(Self {
                which,
                link_layer: set_up.link_layer,
                place: None,
            });
        };
        let text = &given.value;
        let which = match addresses(text) {
            _ if text == "private" => Which::Private,
            Some(addresses) => Which::Addresses(addresses),
            None => Which::Named(text.clone()),
        };
        let refuse = |why: String| Err(given.refuse(text, why));
        match &which {
            Which::Private => {}
            _ if !cfg!(target_os = "linux") => {
                return refuse("other processes are reached on Linux alone".to_owned());
            }
            _ if set_up.is_iwarp => {
                return refuse("devices of siw reach no other process".to_owned());
            }
            _ if set_up.has_gids => {
                return refuse("its GIDs are its addresses, and gids are set".to_owned());
            }
            Which::Named(name) if !is_plain(name) => {
                let others = "else allowed are addresses, and private";
                return refuse(format!("{NAME_RULE}; {others}"));
            }
            Which::Addresses(_) if set_up.link_layer == LinkLayer::InfiniBand => {
                let why =
                    "InfiniBand has LIDs for the processes of this machine alone: give a name";
                return refuse(why.to_owned());
            }
            Which::Addresses(all) if all.len() != set_up.ports => {
                let (have, need) = (all.len(), set_up.ports);
                return refuse(format!(
                    "{need} ports need as many addresses, and there are {have}"
                ));
            }
            // What was meant as an address would be a fabric of its own.
            Which::Named(name) if name.chars().all(|c| c.is_ascii_digit() || c == '.') => {
                return refuse("that is not an address, and a name needs a letter".to_owned());
            }
            Which::Addresses(all) => {
                if let Some(bad) = all.iter().find(|address| !is_of_one(**address)) {
                    return refuse(format!("{bad} is not the address of one interface"));
                }
                let mut seen = BTreeSet::new();
                if let Some(twice) = all.iter().find(|address| !seen.insert(**address)) {
                    return refuse(format!("{twice} is there twice: a port has its own"));
                }
            }
            Which::Named(_) => {}
        }
        Ok(Self {
            which,
            link_layer: set_up.link_layer,
            place: Some(given.place),
        })
    }

    /// Whether no other process is reached.
    pub fn is_private(&self) -> bool {
        self.which == Which::Private
    }

    /// Whether this is the default, because no fabric was asked for.
    pub fn is_default(&self) -> bool {
        self.place.is_none()
    }

    /// Tries whether addresses can be taken.
    ///
    /// # Errors
    /// Where the fabric was set, and why they cannot.
    #[cfg(target_os = "linux")]
    pub fn check(&self) -> Result<(), String> {
        let Some(network) = self.network() else {
            return Ok(());
        };
        let place = self
            .place
            .as_ref()
            .map(|place| format!("{place} is {self}: "));
        network
            .check()
            .map_err(|error| format!("{}{error}", place.unwrap_or_default()))
    }

    /// The network that a simulation is on, if it is not private. Each link layer has its own.
    #[cfg(target_os = "linux")]
    pub(crate) fn network(&self) -> Option<Network> {
        let network = match &self.which {
            Which::Private => return None,
            Which::Named(name) if self.link_layer == LinkLayer::InfiniBand => {
                Network::loopback(&format!("{name} of InfiniBand"))
            }
            Which::Named(name) => Network::loopback(name),
            Which::Addresses(addresses) => Network::addresses(addresses),
        };
        Some(network.spins(!is_scheduled()))
    }
}

impl fmt::Display for Fabric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.which {
            Which::Private => f.write_str("private"),
            Which::Named(name) => f.write_str(name),
            Which::Addresses(addresses) => {
                let all: Vec<_> = addresses.iter().map(IpAddr::to_string).collect();
                f.write_str(&all.join(","))
            }
        }
    }
}
