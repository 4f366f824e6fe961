//! A network that a run has for itself.

use std::{fs, io};

use nix::sched::{CloneFlags, unshare};
use nix::unistd::{getgid, getuid};

use crate::sys;

/// Gives this process, and those that it starts from now on, a network with nothing but a loopback
/// interface: two runs at once never meet, and use the same addresses and ports. Other processes
/// keep theirs. See network_namespaces(7).
///
/// The process must have one thread.
///
/// # Errors
/// If neither this process nor user namespaces may do that, as in most containers. Nothing has
/// changed then.
pub fn isolate() -> io::Result<()> {
    // Some systems let a process make the namespaces, and then refuse what makes them useful.
    sys::try_in_copy(enter)?;
    enter()
}

fn enter() -> io::Result<()> {
    if unshare(CloneFlags::CLONE_NEWNET).is_ok() {
        return sys::start_loopback();
    }
    let [user, group] = [getuid().as_raw(), getgid().as_raw()];
    unshare(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNET)?;
    // Each process keeps its user and group.
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("{user} {user} 1"))?;
    fs::write("/proc/self/gid_map", format!("{group} {group} 1"))?;
    sys::start_loopback()?;
    // The program loses the capabilities of the new namespace when it starts. With them this
    // process would be out of its reach, and so would the files that it reads here.
    sys::drop_capabilities()
}
