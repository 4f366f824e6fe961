//! The memory of other threads.

use std::io::{IoSlice, IoSliceMut};

use nix::sys::uio::{RemoteIoVec, process_vm_readv, process_vm_writev};
use nix::unistd::Pid;

/// Reads `length` bytes. `None` if not all of them can be read, or the address is 0.
pub(crate) fn read(tid: i32, at: u64, length: usize) -> Option<Vec<u8>> {
    if at == 0 {
        return None;
    }
    let mut bytes = vec![0; length];
    let remote = [RemoteIoVec {
        base: at as usize,
        len: length,
    }];
    let count = process_vm_readv(
        Pid::from_raw(tid),
        &mut [IoSliceMut::new(&mut bytes)],
        &remote,
    );
    (count == Ok(length)).then_some(bytes)
}

/// Whether the kernel allows to read the memory of a process, here at an address that it has.
pub(crate) fn check(pid: i32, at: usize) -> nix::Result<()> {
    let remote = [RemoteIoVec { base: at, len: 1 }];
    process_vm_readv(
        Pid::from_raw(pid),
        &mut [IoSliceMut::new(&mut [0])],
        &remote,
    )
    .map(drop)
}

/// Writes bytes. Returns whether all could be written.
pub(crate) fn write(tid: i32, at: u64, bytes: &[u8]) -> bool {
    let remote = [RemoteIoVec {
        base: at as usize,
        len: bytes.len(),
    }];
    let count = process_vm_writev(Pid::from_raw(tid), &[IoSlice::new(bytes)], &remote);
    count == Ok(bytes.len())
}

pub(crate) fn u64_at(tid: i32, at: u64) -> Option<u64> {
    let bytes = read(tid, at, 8)?;
    Some(u64::from_ne_bytes(bytes.try_into().ok()?))
}

pub(crate) fn u32_at(tid: i32, at: u64) -> Option<u32> {
    let bytes = read(tid, at, 4)?;
    Some(u32::from_ne_bytes(bytes.try_into().ok()?))
}
