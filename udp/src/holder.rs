//! Who has the port, where an address cannot be bound.

use std::fs;
use std::net::IpAddr;
use std::os::unix::fs::MetadataExt;

use crate::table::rows;

/// How often the kernel's table is read until it names a holder, because it may lack a line.
const READINGS: usize = 8;

/// The holder of the port on an address, in words, as far as this process can find out.
pub fn holder(address: IpAddr) -> String {
    let mut readings = (0..READINGS).filter_map(|_| rows(address));
    let rows = readings.find(|rows| !rows.is_empty()).unwrap_or_default();
    let names = rows.into_iter().map(|row| named(row.inode));
    match names.collect::<Vec<_>>() {
        names if names.is_empty() => "another socket".to_owned(),
        names => names.join(", "),
    }
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
