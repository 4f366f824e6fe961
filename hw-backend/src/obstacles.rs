//! Reasons why no device is found, or why it cannot be used.

use std::fs;
use std::path::Path;

use rustix::process::{Resource, getrlimit};

use verbs_abi::library;

use crate::devices::is_simulated;

/// Bytes of locked memory that the conformance suite needs at the same time.
const LOCKED_MEMORY: u64 = 8 << 20;

/// The known obstacles to using RDMA devices on this machine, a sentence each.
pub fn obstacles() -> Vec<String> {
    let mut found = Vec::new();
    if let Err(reason) = library::open_libibverbs() {
        found.push(format!(
            "{reason} (it is of the packages libibverbs1 and ibverbs-providers on Debian and Ubuntu, of \
             libibverbs on Fedora; {} names another)",
            library::VARIABLE
        ));
    }
    if is_simulated(None) {
        return found;
    }
    let devices = names_in("/sys/class/infiniband");
    if devices.is_empty() {
        found.push(
            "the kernel has no RDMA device (/sys/class/infiniband is empty or missing): there is \
             no adapter, or its driver is not loaded; soft-RoCE needs none: `modprobe rdma_rxe`, \
             then `rdma link add rxe0 type rxe netdev eth0`"
                .to_owned(),
        );
        return found;
    }
    let files = names_in("/sys/class/infiniband_verbs");
    let files: Vec<_> = files
        .iter()
        .filter(|name| name.starts_with("uverbs"))
        .collect();
    if files.is_empty() {
        found.push("the kernel module ib_uverbs is not loaded: `modprobe ib_uverbs`".to_owned());
    }
    for name in files {
        let path = Path::new("/dev/infiniband").join(name);
        if let Err(error) = fs::OpenOptions::new().read(true).write(true).open(&path) {
            found.push(format!("{} cannot be opened: {error}", path.display()));
        }
    }
    found.extend(locked_memory());
    found
}

/// The sentence that the suite needs more memory than the process may lock.
pub fn locked_memory() -> Option<String> {
    let limit = getrlimit(Resource::Memlock).current?;
    let is_enough = limit >= LOCKED_MEMORY || rustix::process::geteuid().is_root();
    (!is_enough).then(|| {
        format!(
            "the limit of locked memory is {} KiB, the suite needs {} KiB: `ulimit -l {1}`",
            limit / 1024,
            LOCKED_MEMORY / 1024
        )
    })
}

fn names_in(dir: &str) -> Vec<String> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let mut names: Vec<_> = entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}
