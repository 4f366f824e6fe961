//! The files of the devices: what Linux shows below `/sys/class/infiniband` and `/dev/infiniband`.
//!
//! Programs read there what verbs do not report, such as a NUMA node. The tree is a directory of
//! this process ([`trees`]), since a port has another address in each process. A device gets its
//! files when the program opens it, or when it looks for the files of any device. Until the device
//! is open it has no address, and its GIDs are zero. The files have the values that verbs have at
//! that time.
//!
//! This folder names the engine and the conversions of `query`.

mod files;
pub(crate) mod paths;

use std::path::{Path, PathBuf};
use std::process;

use nix::sys::resource::{Resource, getrlimit};
use verbs_api::sync::Mutex;
use verbs_api::{Context, Verbs};
use verbs_settings::{Fabric, trees};
use verbs_sim::Mode;

use self::files::{Source, write_device};
use crate::base::per_process::PerProcess;
use crate::engine::{config, unobserved};

/// The tree of a process.
struct Tree {
    process: u32,
    root: PathBuf,
    devices: Mutex<Vec<Device>>,
}

/// The state of a device in the tree.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Device {
    Absent,
    Closed,
    /// With its GIDs.
    Opened,
}

static TREE: PerProcess<Tree> = PerProcess::new();

/// The tree, with files of all devices. `None` if it cannot be made.
pub(crate) fn root() -> Option<&'static Path> {
    let tree = tree()?;
    let mut devices = tree.devices.lock();
    if devices.contains(&Device::Absent) {
        // A device that is not open has no address, and opening it would take one. So another
        // simulator, which no process can reach, has the attributes.
        let config = config();
        let private = config.simulation(Mode::Stepped, &Fabric::PRIVATE, 0, None);
        let sim = private.expect("one could be made when the library was loaded");
        for number in 0..config.names().len() {
            if devices[number] == Device::Absent {
                let context = sim.open_device(&format!("sim{number}")).ok()?;
                let source = Source {
                    sim: &sim,
                    context,
                    has_gids: config.fabric().is_private(),
                };
                write_device(&tree.root, config, number, &source).ok()?;
                devices[number] = Device::Closed;
            }
        }
    }
    Some(&tree.root)
}

/// Writes the files of a device that has been opened: it has its addresses now.
pub(crate) fn opened(number: usize, context: Context) {
    let Some(tree) = tree() else { return };
    let mut devices = tree.devices.lock();
    // Another context of the device has written them.
    if devices[number] != Device::Opened {
        let source = Source {
            sim: unobserved(),
            context,
            has_gids: true,
        };
        if write_device(&tree.root, config(), number, &source).is_ok() {
            devices[number] = Device::Opened;
        }
    }
}

/// Writes the files of all devices if a path that will be read is in the tree.
pub(crate) fn prepare(path: &Path) {
    if path.starts_with(trees::own()) {
        root();
    }
}

/// The tree of this process, made at its first use. `None` where no file can be written: a signal
/// would end a process that exceeds its limit for files.
fn tree() -> Option<&'static Tree> {
    /// No file of the tree is longer.
    const LONGEST_FILE: u64 = 4096;
    let (limit, _) = getrlimit(Resource::RLIMIT_FSIZE).ok()?;
    if limit < LONGEST_FILE {
        return None;
    }
    if let Some(tree) = TREE.get() {
        return Some(tree);
    }
    let root = trees::own();
    trees::make(&root).ok()?;
    files::write_common(&root).ok()?;
    let tree = Tree {
        process: process::id(),
        root,
        devices: Mutex::new(vec![Device::Absent; config().names().len()]),
    };
    match TREE.store(tree) {
        Ok(tree) => {
            // Miri has no `atexit`.
            if !cfg!(miri) {
                // SAFETY: the function is of the right type and stays, as the library does.
                unsafe { libc::atexit(at_exit) };
            }
            Some(tree)
        }
        Err(first) => Some(first),
    }
}

extern "C" fn at_exit() {
    // A child that was forked without handlers has the tree of its parent.
    if let Some(tree) = TREE.get().filter(|tree| tree.process == process::id()) {
        trees::remove(&tree.root);
    }
}
