//! The kernel's table of UDP sockets.

use std::fs;
use std::net::IpAddr;

use crate::PORT;

/// A socket with the port of RoCEv2.
pub(crate) struct Row {
    /// Its inode; 0 if it is the kernel's own, as that of soft-RoCE.
    pub(crate) inode: u64,
    /// Whether it is bound to one address, and not to every one.
    is_of_address: bool,
    /// Bytes of memory that its unread datagrams take.
    unread: u64,
}

/// Whether datagrams that were sent to an address wait there: a process has the port, and has not
/// read them all. False if the table cannot be read.
pub fn has_unread(address: IpAddr) -> bool {
    let rows = rows(address).unwrap_or_default();
    rows.iter().any(|row| row.is_of_address && row.unread > 0)
}

/// The sockets with the port on this address, or on every address. `None` if the table cannot be
/// read. The kernel gives it in pieces, and it lacks a line where a socket before it has gone
/// between two pieces.
pub(crate) fn rows(address: IpAddr) -> Option<Vec<Row>> {
    let (file, own) = match address {
        IpAddr::V4(address) => ("/proc/net/udp", hex(&address.octets())),
        IpAddr::V6(address) => ("/proc/net/udp6", hex(&address.octets())),
    };
    let text = fs::read_to_string(file).ok()?;
    let of_line = |line: &str| {
        let fields: Vec<_> = line.split_whitespace().collect();
        let (place, port) = fields.get(1)?.split_once(':')?;
        let is_of_address = place == own;
        let is_there = is_of_address || place.bytes().all(|digit| digit == b'0');
        let (_, unread) = fields.get(4)?.split_once(':')?;
        let row = Row {
            inode: fields.get(9)?.parse().ok()?,
            is_of_address,
            unread: u64::from_str_radix(unread, 16).ok()?,
        };
        (is_there && u16::from_str_radix(port, 16) == Ok(PORT)).then_some(row)
    };
    Some(text.lines().filter_map(of_line).collect())
}

/// An address as the kernel prints it: in words of the machine's byte order.
fn hex(octets: &[u8]) -> String {
    let word = |word: &[u8]| {
        format!(
            "{:08X}",
            u32::from_ne_bytes(word.try_into().unwrap_or_default())
        )
    };
    octets.chunks(4).map(word).collect()
}
