//! Who has the port, where an address cannot be bound.

use std::fs;
use std::net::IpAddr;
use std::os::unix::fs::MetadataExt;

use crate::PORT;

/// How often the kernel's table is read until it names a holder. It is read in pieces, and lacks a
/// line where a socket before it has gone between two pieces.
const READINGS: usize = 8;

/// Who has the port on an address, in words, as far as this process may know.
pub fn holder(address: IpAddr) -> String {
    let mut readings = (0..READINGS).filter_map(|_| holders(address));
    let holders = readings.find(|holders| !holders.is_empty());
    let names = holders.unwrap_or_default().into_iter().map(named);
    match names.collect::<Vec<_>>() {
        names if names.is_empty() => "another socket".to_owned(),
        names => names.join(", "),
    }
}

/// The inodes of sockets with the port on this address, or on every address; 0 if it is the
/// kernel's own, as that of soft-RoCE.
fn holders(address: IpAddr) -> Option<Vec<u64>> {
    let (file, own) = match address {
        IpAddr::V4(address) => ("/proc/net/udp", hex(&address.octets())),
        IpAddr::V6(address) => ("/proc/net/udp6", hex(&address.octets())),
    };
    let text = fs::read_to_string(file).ok()?;
    let of_line = |line: &str| {
        let fields: Vec<_> = line.split_whitespace().collect();
        let (place, port) = fields.get(1)?.split_once(':')?;
        let is_there = place == own || place.bytes().all(|digit| digit == b'0');
        let inode = fields.get(9)?.parse().ok()?;
        (is_there && u16::from_str_radix(port, 16) == Ok(PORT)).then_some(inode)
    };
    Some(text.lines().filter_map(of_line).collect())
}

/// As the kernel prints addresses: words of the machine.
fn hex(octets: &[u8]) -> String {
    let word = |word: &[u8]| {
        format!(
            "{:08X}",
            u32::from_ne_bytes(word.try_into().unwrap_or_default())
        )
    };
    octets.chunks(4).map(word).collect()
}

fn named(inode: u64) -> String {
    if inode == 0 {
        return "the kernel, whose soft-RoCE (rdma_rxe) takes it on every address".to_owned();
    }
    let Some(process) = process_with(inode) else {
        return "a process of somebody else".to_owned();
    };
    let name = fs::read_to_string(format!("/proc/{process}/comm")).unwrap_or_default();
    format!("process {process} ({})", name.trim())
}

/// The process that has a socket open.
fn process_with(inode: u64) -> Option<u32> {
    let mut processes = fs::read_dir("/proc").ok()?.flatten();
    processes.find_map(|process| {
        let number = process.file_name().to_str()?.parse().ok()?;
        let mut files = fs::read_dir(process.path().join("fd")).ok()?.flatten();
        let is_it =
            |file: fs::DirEntry| fs::metadata(file.path()).is_ok_and(|of| of.ino() == inode);
        files.any(is_it).then_some(number)
    })
}
