//! The contents of the files, in the formats of Linux (`drivers/infiniband/core/sysfs.c`).

use std::ffi::CStr;
use std::fmt::{Display, Write};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::{fs, io};

use verbs_abi::ibv_port_attr;
use verbs_api::{Context, Gid, GidType, LinkLayer, Transport, Verbs};
use verbs_settings::Config;
use verbs_sim::Sim;

use super::paths::{address, device, uverbs};
use crate::verbs::query;

/// The simulator whose values the files of a device have.
pub(super) struct Source<'a> {
    pub(super) sim: &'a Sim,
    pub(super) context: Context,
    /// Whether its GIDs are those of this process.
    pub(super) has_gids: bool,
}

/// Writes the files that do not depend on a device.
pub(super) fn write_common(root: &Path) -> io::Result<()> {
    fs::create_dir_all(root.join("sys/class/infiniband"))?;
    // `ibstat` asks for the second; no device takes management datagrams of programs.
    for (class, version) in [("infiniband_verbs", 6), ("infiniband_mad", 5)] {
        let class = root.join("sys/class").join(class);
        fs::create_dir_all(&class)?;
        put(&class, "abi_version", version)?;
    }
    let dev = root.join("dev/infiniband");
    fs::create_dir_all(&dev)?;
    fs::write(dev.join("rdma_cm"), "")
}

/// Writes all files of a device.
pub(super) fn write_device(
    root: &Path,
    config: &Config,
    number: usize,
    source: &Source<'_>,
) -> io::Result<()> {
    let Source { sim, context, .. } = *source;
    let name = &config.names()[number];
    let attr = query::attributes(sim, context).map_err(io::Error::other)?;
    let is_rnic = sim.devices().is_ok_and(|all| {
        all.iter()
            .any(|device| device.transport == Transport::Iwarp)
    });
    let path = device(config, number);
    let pci = root.join(&path);
    let infiniband = pci.join("infiniband").join(name);
    let verbs = pci.join(format!("infiniband_verbs/uverbs{number}"));
    fs::create_dir_all(&infiniband)?;
    fs::create_dir_all(&verbs)?;

    let (major, minor) = uverbs(number as u32);
    let version = attr.fw_ver.map(|byte| byte as u8);
    let version = CStr::from_bytes_until_nul(&version).unwrap_or_default();
    let guid = |guid: u64| groups(&guid.to_ne_bytes());
    let board = format!("verbsim {}", config.profile());
    let node_type = if is_rnic { "4: RNIC" } else { "1: CA" };
    let files = [
        (&pci, "vendor", format!("{:#06x}", attr.vendor_id)),
        (&pci, "device", format!("{:#06x}", attr.vendor_part_id)),
        (&pci, "class", "0x020000".to_owned()),
        // Every machine has this node.
        (&pci, "numa_node", "0".to_owned()),
        (&verbs, "ibdev", name.clone()),
        (&verbs, "abi_version", "1".to_owned()),
        (&verbs, "dev", format!("{major}:{minor}")),
        (&infiniband, "node_type", node_type.to_owned()),
        (&infiniband, "node_guid", guid(attr.node_guid)),
        (&infiniband, "sys_image_guid", guid(attr.sys_image_guid)),
        (&infiniband, "node_desc", "verbsim".to_owned()),
        (&infiniband, "hca_type", "verbsim".to_owned()),
        (&infiniband, "board_id", board),
        (&infiniband, "hw_rev", format!("{:x}", attr.hw_ver)),
        (&infiniband, "fw_ver", version.to_string_lossy().into()),
    ];
    for (dir, file, line) in files {
        put(dir, file, line)?;
    }
    for (file, of_node) in [("local_cpus", "cpumap"), ("local_cpulist", "cpulist")] {
        // A kernel without NUMA has no files of nodes.
        let cpus = fs::read_to_string(Path::new("/sys/devices/system/node/node0").join(of_node));
        if let Ok(cpus) = cpus {
            put(&pci, file, cpus.trim_end())?;
        }
    }
    for port in 1..=attr.phys_port_cnt {
        write_port(&infiniband.join(format!("ports/{port}")), port, source)?;
    }

    let class = root.join("sys/class");
    let above = format!("../../../{}", address(number));
    link(&above, &infiniband.join("device"))?;
    link(&above, &verbs.join("device"))?;
    let below = format!("../../{}", path.strip_prefix("sys/").unwrap_or(&path));
    for file in [
        format!("infiniband/{name}"),
        format!("infiniband_verbs/uverbs{number}"),
    ] {
        link(&format!("{below}/{file}"), &class.join(&file))?;
    }
    fs::write(root.join(format!("dev/infiniband/uverbs{number}")), "")
}

fn write_port(dir: &Path, port: u8, source: &Source<'_>) -> io::Result<()> {
    let Source { sim, context, .. } = *source;
    let found = sim.query_port(context, port).map_err(io::Error::other)?;
    let attr = query::port_attr(&found);
    for below in ["gids", "gid_attrs/types", "gid_attrs/ndevs", "pkeys"] {
        fs::create_dir_all(dir.join(below))?;
    }
    let link_layer = match found.link_layer {
        LinkLayer::InfiniBand => "InfiniBand",
        _ => "Ethernet",
    };
    let phys_state = phys_state(attr.phys_state);
    let files = [
        ("state", format!("{}: {}", attr.state, state(attr.state))),
        ("phys_state", format!("{}: {phys_state}", attr.phys_state)),
        ("link_layer", link_layer.to_owned()),
        ("rate", rate(&attr)),
        ("lid", format!("{:#x}", attr.lid)),
        ("lid_mask_count", attr.lmc.to_string()),
        ("sm_lid", format!("{:#x}", attr.sm_lid)),
        ("sm_sl", attr.sm_sl.to_string()),
        ("cap_mask", format!("{:#010x}", attr.port_cap_flags)),
    ];
    for (file, line) in files {
        put(dir, file, line)?;
    }
    for index in 0..found.pkey_tbl_len {
        let key = sim
            .query_pkey(context, port, index)
            .map_err(io::Error::other)?;
        put(dir, &format!("pkeys/{index}"), format_args!("{key:#06x}"))?;
    }
    for index in 0..found.gid_tbl_len {
        let entry = sim
            .query_gid_ex(context, port, index)
            .ok()
            .filter(|_| source.has_gids);
        let Gid(bytes) = entry.as_ref().map_or(Gid([0; 16]), |entry| entry.gid);
        put(dir, &format!("gids/{index}"), groups(&bytes))?;
        // In Linux, reading the type of an entry without a GID fails. Here the file is missing.
        let Some(entry) = entry else { continue };
        let of_type = match entry.gid_type {
            GidType::RoceV2 => "RoCE v2",
            _ => "IB/RoCE v1",
        };
        put(dir, &format!("gid_attrs/types/{index}"), of_type)?;
        if let Some(name) = interface(query::gid_entry(&entry).ndev_ifindex) {
            put(dir, &format!("gid_attrs/ndevs/{index}"), name)?;
        }
    }
    Ok(())
}

/// Writes a line in one step, because another thread may read the file.
fn put(dir: &Path, file: &str, line: impl Display) -> io::Result<()> {
    let new = dir.join(".new");
    fs::write(&new, format!("{line}\n"))?;
    fs::rename(new, dir.join(file))
}

/// Makes a link, unless it exists.
fn link(to: &str, at: &Path) -> io::Result<()> {
    match symlink(to, at) {
        // The files of a device are written again when it is opened.
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

/// Pairs of bytes, such as `fe80:0000:0000:0000:0002:c9ff:fe00:0001`.
fn groups(bytes: &[u8]) -> String {
    let mut text = String::new();
    for (at, pair) in bytes.chunks(2).enumerate() {
        let colon = if at > 0 { ":" } else { "" };
        let _ = write!(text, "{colon}{:02x}{:02x}", pair[0], pair[1]);
    }
    text
}

fn state(number: u32) -> &'static str {
    const NAMES: [&str; 6] = ["NOP", "DOWN", "INIT", "ARMED", "ACTIVE", "ACTIVE_DEFER"];
    NAMES.get(number as usize).unwrap_or(&"UNKNOWN")
}

fn phys_state(number: u8) -> &'static str {
    const NAMES: [&str; 8] = [
        "<unknown>",
        "Sleep",
        "Polling",
        "Disabled",
        "PortConfigurationTraining",
        "LinkUp",
        "LinkErrorRecovery",
        "Phy Test",
    ];
    NAMES.get(usize::from(number)).unwrap_or(&"<unknown>")
}

/// The rate of a port, such as `100 Gb/sec (4X EDR)`.
fn rate(attr: &ibv_port_attr) -> String {
    let (width, speed, name) = query::lanes(attr);
    let tenths = width * speed;
    let half = if tenths % 10 == 0 { "" } else { ".5" };
    format!("{}{half} Gb/sec ({width}X {name})", tenths / 10)
}

/// The name of a network interface of the machine.
fn interface(index: u32) -> Option<String> {
    let mut name = [0; libc::IF_NAMESIZE];
    // SAFETY: the buffer has room for a name.
    let found = unsafe { libc::if_indextoname(index, name.as_mut_ptr()) };
    if index == 0 || found.is_null() {
        return None;
    }
    // SAFETY: the call has written a name that ends with 0.
    let name = unsafe { CStr::from_ptr(name.as_ptr()) };
    Some(name.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_written_as_linux_writes_them() {
        for (width, speed, text) in [
            (2, 32, "100 Gb/sec (4X EDR)"),
            (1, 1, "2.5 Gb/sec (1X SDR)"),
            (2, 1, "10 Gb/sec (4X SDR)"),
            (4, 128, "800 Gb/sec (8X NDR)"),
        ] {
            let attr = ibv_port_attr {
                active_width: width,
                active_speed: speed,
                ..ibv_port_attr::default()
            };
            assert_eq!(rate(&attr), text);
        }
    }

    #[test]
    fn every_device_has_an_address_of_its_own() {
        let addresses: std::collections::BTreeSet<_> = (0..0xffff).map(address).collect();
        assert_eq!(addresses.len(), 0xffff);
        assert_eq!(address(33), "0000:01:01.0");
    }
}
