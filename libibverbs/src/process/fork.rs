//! Forking: a child after `fork` makes an engine of its own.

use std::os::fd::AsRawFd;

use crate::base::{per_process, pin, record};
use crate::c::symbols;
use crate::engine::{of_parent, running};

pub(super) fn register() {
    // Miri has no `pthread_atfork`.
    if cfg!(miri) {
        return;
    }
    // SAFETY: the last function may run in a child of a process with threads. It releases a lock of
    // this thread, uses atomics, tries a lock, and closes descriptors.
    unsafe {
        libc::pthread_atfork(
            Some(symbols::before_fork),
            Some(symbols::after_fork),
            Some(in_child),
        )
    };
}

/// Leaves objects, locks and descriptors to the parent: its other threads, which may have been using
/// them, do not exist here.
unsafe extern "C" fn in_child() {
    symbols::after_fork();
    record::after_fork();
    pin::after_fork();
    let had_engine = running().is_some();
    per_process::after_fork();
    if let (true, Some(parent)) = (had_engine, of_parent()) {
        parent.sim.each_network_descriptor(|fd| {
            // SAFETY: it is the library's, and this process uses no object of the parent.
            unsafe { libc::close(fd.as_raw_fd()) };
        });
    }
}
