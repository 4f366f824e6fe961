//! Where on the devices of this machine to work: a port that is active, and a GID that is set.

use verbs_api::{
    Context, Gid, GidEntry, GidType, LinkLayer, PortAttr, PortState, Transport, Verbs,
};
use verbs_scenarios::Place;

/// The port and GID to work with on all of these devices, those that are given or the first that
/// serve, and the link layer there.
///
/// # Errors
/// Says in a sentence what is in the way, and which ports or GIDs would do.
pub(super) fn choose(
    machine: &dyn Verbs,
    devices: &[&str],
    port: Option<u8>,
    gid_index: Option<u8>,
) -> Result<(Place, LinkLayer), String> {
    let seen = devices.iter().map(|device| Ports::of(machine, device));
    let seen = seen.collect::<Result<Vec<_>, _>>()?;
    let port_num = port_of(&seen, port)?;
    let tables = seen.iter().map(|ports| Gids::of(machine, ports, port_num));
    let sgid_index = index_of(&tables.collect::<Vec<_>>(), gid_index)?;
    let link_layer = seen[0].ports[usize::from(port_num) - 1].link_layer;
    Ok((
        Place {
            port_num,
            sgid_index,
            ..Place::default()
        },
        link_layer,
    ))
}

/// The ports of a device.
struct Ports<'d> {
    device: &'d str,
    context: Context,
    is_iwarp: bool,
    ports: Vec<PortAttr>,
}

impl<'d> Ports<'d> {
    fn of(machine: &dyn Verbs, device: &'d str) -> Result<Self, String> {
        let all = || {
            let devices = machine.devices()?;
            let is_iwarp = |info: &verbs_api::DeviceInfo| {
                info.name == device && info.transport == Transport::Iwarp
            };
            let context = machine.open_device(device)?;
            let count = machine.query_device(context)?.phys_port_cnt;
            let ports = (1..=count).map(|port| machine.query_port(context, port));
            Ok(Self {
                device,
                context,
                is_iwarp: devices.iter().any(is_iwarp),
                ports: ports.collect::<verbs_api::Result<_>>()?,
            })
        };
        all().map_err(|error: verbs_api::Error| format!("{device}: {error}"))
    }

    fn active(&self) -> impl Iterator<Item = u8> {
        let ports = (1..).zip(&self.ports);
        let active = ports.filter(|(_, port)| port.state == PortState::Active);
        active.map(|(number, _)| number)
    }

    /// What is wrong with a port, if anything.
    fn check(&self, number: u8) -> Result<(), String> {
        let Self { device, ports, .. } = self;
        let port = number
            .checked_sub(1)
            .and_then(|at| ports.get(usize::from(at)));
        let count = ports.len();
        let port =
            port.ok_or_else(|| format!("{device} has no port {number}, but 1 to {count}"))?;
        let is_infiniband = port.link_layer == LinkLayer::InfiniBand;
        if port.state != PortState::Active {
            let state = port.state;
            let cause = match state {
                PortState::Init if is_infiniband => ": no subnet manager has set it up",
                _ => "",
            };
            let others = self.active().map(u32::from).collect::<Vec<_>>();
            let others = others_in_words(&others, "ACTIVE", "--port");
            return Err(format!(
                "port {number} of {device} is {state}{cause}{others}"
            ));
        }
        if is_infiniband && port.lid == 0 {
            return Err(format!(
                "port {number} of {device} has LID 0: no subnet manager has given it one"
            ));
        }
        Ok(())
    }
}

/// The port that is given, or the first that is active on all devices.
fn port_of(seen: &[Ports<'_>], given: Option<u8>) -> Result<u8, String> {
    let is_active = |number: &u8| {
        seen.iter()
            .all(|of| of.active().any(|port| port == *number))
    };
    let first = seen[0].active().find(is_active);
    // Where none is, the first shows why.
    let chosen = given.or(first).unwrap_or(1);
    seen.iter().try_for_each(|ports| ports.check(chosen))?;
    Ok(chosen)
}

/// The GIDs of a port that are set, by index. Their types are not known to every library.
struct Gids<'d> {
    device: &'d str,
    port: u8,
    len: u32,
    /// Devices of RoCE use GIDs of version 2. Those of InfiniBand have one type, and those of iWARP
    /// use none.
    needs: Option<GidType>,
    may_be_empty: bool,
    set: Vec<(u32, Option<GidType>)>,
}

/// More than any device has, whatever its driver says.
const MANY_GIDS: usize = 1 << 16;

impl<'d> Gids<'d> {
    fn of(machine: &dyn Verbs, ports: &Ports<'d>, port: u8) -> Self {
        let (context, attr) = (ports.context, &ports.ports[usize::from(port) - 1]);
        let is_roce = attr.link_layer == LinkLayer::Ethernet && !ports.is_iwarp;
        let room = ports.ports.iter().map(|port| port.gid_tbl_len as usize);
        let room = room.sum::<usize>().min(MANY_GIDS);
        let mut entries = vec![GidEntry::default(); room];
        let set = match machine.query_gid_table(context, &mut entries) {
            Ok(count) => {
                let of_port = |entry: &&GidEntry| entry.port_num == u32::from(port);
                let entries = entries.iter().take(count).filter(of_port);
                entries
                    .map(|entry| (entry.gid_index, Some(entry.gid_type)))
                    .collect()
            }
            Err(_) => {
                let gid = |index: &u32| machine.query_gid(context, port, *index);
                let is_set = |index: &u32| gid(index).is_ok_and(|gid| gid != Gid::default());
                (0..attr.gid_tbl_len)
                    .filter(is_set)
                    .map(|index| (index, None))
                    .collect()
            }
        };
        Self {
            device: ports.device,
            port,
            len: attr.gid_tbl_len,
            needs: is_roce.then_some(GidType::RoceV2),
            may_be_empty: ports.is_iwarp,
            set,
        }
    }

    /// Whether a connection can start at a GID. If it is `given`, of whatever version of RoCE.
    fn serves(&self, index: u32, given: bool) -> bool {
        let any = given || self.needs.is_none();
        let fits = |of: Option<GidType>| any || of.is_none() || of == self.needs;
        self.may_be_empty || self.set.iter().any(|(at, of)| *at == index && fits(*of))
    }

    fn check(&self, index: u8, is_given: bool) -> Result<(), String> {
        let Self {
            device, port, len, ..
        } = self;
        if u32::from(index) >= *len {
            let last = len.saturating_sub(1);
            return Err(format!(
                "port {port} of {device} has no GID {index}, but 0 to {last}"
            ));
        }
        if self.serves(index.into(), is_given) {
            return Ok(());
        }
        let set: Vec<_> = self.set.iter().map(|(index, _)| *index).collect();
        let others = others_in_words(&set, "set", "--gid-index");
        Err(if is_given {
            format!("GID {index} of port {port} of {device} is empty{others}")
        } else {
            format!("no GID of RoCE version 2 of port {port} of {device} is set{others}")
        })
    }
}

/// The index that is given, or the first that serves on all devices.
fn index_of(tables: &[Gids<'_>], given: Option<u8>) -> Result<u8, String> {
    let all_have = |index: &u8| tables.iter().all(|of| of.serves((*index).into(), false));
    let first = (0..=u8::MAX).find(all_have);
    let chosen = given.or(first).unwrap_or(0);
    let is_given = given.is_some();
    tables
        .iter()
        .try_for_each(|of| of.check(chosen, is_given))?;
    Ok(chosen)
}

/// `; 1 and 3 are set: --gid-index 1`
fn others_in_words(others: &[u32], are: &str, option: &str) -> String {
    let Some(first) = others.first() else {
        return format!("; none is {are}");
    };
    let mut shown: Vec<_> = others.iter().take(8).map(u32::to_string).collect();
    if others.len() > shown.len() {
        shown.push(format!("{} more", others.len() - shown.len()));
    }
    let list = match &shown[..] {
        [rest @ .., last] if !rest.is_empty() => format!("{} and {last} are", rest.join(", ")),
        _ => format!("{first} is"),
    };
    format!("; {list} {are}: {option} {first}")
}

#[cfg(test)]
mod tests {
    use verbs_api::lab::Lab;
    use verbs_api::profile::Profile;
    use verbs_sim::{Sim, SimConfig};

    use super::*;

    const BOTH: [&str; 2] = ["sim0", "sim1"];

    fn indices(sim: &Sim) -> Vec<(u32, GidType)> {
        let context = sim.open_device("sim0").unwrap();
        let mut entries = [GidEntry::default(); 64];
        let count = sim.query_gid_table(context, &mut entries).unwrap();
        let of = |entry: &GidEntry| (entry.gid_index, entry.gid_type);
        entries[..count].iter().map(of).collect()
    }

    fn empty(sim: &Sim, device: &str, index: u32) {
        let context = sim.open_device(device).unwrap();
        sim.set_gid(context, 1, index, Gid::default()).unwrap();
    }

    fn chosen(sim: &Sim, port: Option<u8>, index: Option<u8>) -> Result<(u8, u8), String> {
        let (place, _) = choose(sim, &BOTH, port, index)?;
        Ok((place.port_num, place.sgid_index))
    }

    #[test]
    fn first_gid_of_version_2_that_is_set_on_both_sides_is_chosen() {
        for profile in Profile::ALL {
            let sim = Sim::new(SimConfig::new().profile(*profile));
            let is_v2 = |of: &&(u32, GidType)| of.1 == GidType::RoceV2;
            let all = indices(&sim);
            let mut of_v2 = all.iter().filter(is_v2).map(|of| of.0 as u8);
            let first = of_v2.next().unwrap_or(0);
            assert_eq!(chosen(&sim, None, None), Ok((1, first)), "{profile}");
        }
        let sim = Sim::new(SimConfig::new());
        assert_eq!(indices(&sim).len(), 2, "the rest is about them");
        empty(&sim, "sim1", 0);
        assert_eq!(chosen(&sim, None, None), Ok((1, 1)));
        let said = chosen(&sim, None, Some(0)).unwrap_err();
        assert_eq!(
            said,
            "GID 0 of port 1 of sim1 is empty; 1 is set: --gid-index 1"
        );
        empty(&sim, "sim1", 1);
        let said = chosen(&sim, None, None).unwrap_err();
        assert!(said.ends_with("of sim1 is set; none is set"), "{said}");
        let said = chosen(&sim, None, Some(7)).unwrap_err();
        assert!(
            said.starts_with("port 1 of sim0 has no GID 7, but 0 to "),
            "{said}"
        );
    }

    #[test]
    fn port_that_does_not_work_is_named_with_those_that_do() {
        let sim = Sim::new(SimConfig::new());
        let said = chosen(&sim, Some(2), None).unwrap_err();
        assert_eq!(said, "sim0 has no port 2, but 1 to 1");
        let context = sim.open_device("sim1").unwrap();
        sim.set_port(context, 1, false).unwrap();
        for given in [None, Some(1)] {
            let said = chosen(&sim, given, None).unwrap_err();
            assert_eq!(said, "port 1 of sim1 is DOWN; none is ACTIVE");
        }
    }

    #[test]
    fn infiniband_has_one_type_of_gid() {
        let sim = Sim::new(SimConfig::new().link_layer(LinkLayer::InfiniBand));
        let (place, link_layer) = choose(&sim, &BOTH, None, None).unwrap();
        assert_eq!(
            (place, link_layer),
            (Place::default(), LinkLayer::InfiniBand)
        );
    }

    #[test]
    fn long_tables_are_shown_in_part() {
        let all: Vec<u32> = (1..12).collect();
        assert_eq!(
            others_in_words(&all, "set", "--gid-index"),
            "; 1, 2, 3, 4, 5, 6, 7, 8 and 3 more are set: --gid-index 1"
        );
    }
}
