//! The files of the devices: what Linux shows below `/sys/class/infiniband` and `/dev/infiniband`.
//!
//! Programs read there what verbs do not say (a NUMA node), and more. The tree is a directory of
//! this process ([`trees`]), since a port has an address of its own in each process. A device gets
//! its files when the program opens it, or when it looks for the files of any device; until it is
//! open it has no address yet, and its GIDs are zero. They are what verbs say at that time.

mod files;

use std::ffi::{CStr, CString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::{io, process};

use nix::sys::resource::{Resource, getrlimit};
use verbs_api::Context;
use verbs_api::sync::Mutex;
use verbs_settings::{Config, Fabric, trees};
use verbs_sim::{Mode, Sim};

use crate::engine::{self, Engine, engine};

/// What the files of a device are read from.
struct Source<'a> {
    sim: &'a Sim,
    context: Context,
    /// The GIDs are those of this process.
    has_gids: bool,
}

/// The tree of a process.
struct Tree {
    process: u32,
    root: CString,
    devices: Mutex<Vec<Device>>,
}

/// What a device has in the tree.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Device {
    Absent,
    Closed,
    /// With its GIDs.
    Opened,
}

/// Null before the first use in this process.
static TREE: AtomicPtr<Tree> = AtomicPtr::new(null_mut());

/// The number of a device file, such as that of `/dev/infiniband/uverbs0`.
pub(crate) fn device_number(path: &[u8]) -> Option<(u32, u32)> {
    let name = path.strip_prefix(b"/dev/infiniband/")?;
    if name == b"rdma_cm" {
        return Some(files::RDMA_CM);
    }
    let digits = std::str::from_utf8(name.strip_prefix(b"uverbs")?).ok()?;
    digits.parse().ok().map(files::uverbs)
}

/// The directory of a device (`ibdev_path`), and that of its device file (`dev_path`).
pub(crate) fn paths(config: &Config, number: usize) -> [String; 2] {
    /// The structure has 256 bytes for each, with the 0 at its end.
    const LONGEST: usize = 255;
    let below = |root: &Path| {
        let device = root.join(files::device(config, number));
        let name = &config.names()[number];
        [
            format!("{}/infiniband/{name}", device.display()),
            format!("{}/infiniband_verbs/uverbs{number}", device.display()),
        ]
    };
    let real = below(&trees::own());
    if real.iter().all(|path| path.len() <= LONGEST) {
        real
    } else {
        // A preloaded library leads from there to the real ones.
        below(Path::new("/"))
    }
}

/// The tree, with files of all devices. `None` if it cannot be made.
pub(crate) fn root() -> Option<&'static CStr> {
    let engine = engine();
    let tree = tree(engine)?;
    let mut devices = tree.devices.lock();
    if devices.contains(&Device::Absent) {
        // What is not open has no address, and to open it would take one.
        let config = engine.config;
        let private = config.simulation(Mode::Stepped, &Fabric::PRIVATE, 0, None);
        let sim = private.expect("one could be made when the library was loaded");
        for number in 0..config.names().len() {
            if devices[number] == Device::Absent {
                let context = verbs_api::Verbs::open_device(&sim, &format!("sim{number}")).ok()?;
                let source = Source {
                    sim: &sim,
                    context,
                    has_gids: config.fabric().is_private(),
                };
                tree.write(config, number, &source).ok()?;
                devices[number] = Device::Closed;
            }
        }
    }
    Some(&tree.root)
}

/// A device has been opened: it has its addresses now.
pub(crate) fn opened(number: usize, context: Context) {
    let engine = engine();
    let Some(tree) = tree(engine) else { return };
    let mut devices = tree.devices.lock();
    if devices[number] != Device::Opened {
        let source = Source {
            sim: engine::unobserved(),
            context,
            has_gids: true,
        };
        if tree.write(engine.config, number, &source).is_ok() {
            devices[number] = Device::Opened;
        }
    }
}

/// A path will be read: if it is in the tree, all devices get their files.
pub(crate) fn prepare(path: &Path) {
    if path.starts_with(trees::own()) {
        root();
    }
}

/// The tree is the parent's.
pub(crate) fn after_fork() {
    TREE.store(null_mut(), Ordering::Relaxed);
}

/// The tree of this process, made at its first use. `None` where no file can be written: a signal
/// would end a process that exceeds its limit for files.
fn tree(engine: &Engine) -> Option<&'static Tree> {
    /// No file of the tree is longer.
    const LONGEST_FILE: u64 = 4096;
    let (limit, _) = getrlimit(Resource::RLIMIT_FSIZE).ok()?;
    if limit < LONGEST_FILE {
        return None;
    }
    // SAFETY: null, or a tree that was made whole before, and is never freed.
    if let Some(tree) = unsafe { TREE.load(Ordering::Acquire).as_ref() } {
        return Some(tree);
    }
    let root = trees::own();
    trees::make(&root).ok()?;
    files::write_common(&root).ok()?;
    let tree = Box::into_raw(Box::new(Tree {
        process: process::id(),
        root: CString::new(root.as_os_str().as_bytes()).ok()?,
        devices: Mutex::new(vec![Device::Absent; engine.config.names().len()]),
    }));
    let (made, seen) = (Ordering::Release, Ordering::Acquire);
    match TREE.compare_exchange(null_mut(), tree, made, seen) {
        Ok(_) => {
            // Miri has no `atexit`.
            if !cfg!(miri) {
                // SAFETY: the function is of the right type and stays, as the library does.
                unsafe { libc::atexit(at_exit) };
            }
            // SAFETY: never freed from now on.
            Some(unsafe { &*tree })
        }
        Err(first) => {
            // SAFETY: no other thread has seen it.
            drop(unsafe { Box::from_raw(tree) });
            // SAFETY: a tree that another thread has made whole, and that is never freed.
            unsafe { first.as_ref() }
        }
    }
}

extern "C" fn at_exit() {
    // SAFETY: as in `tree`.
    if let Some(tree) = unsafe { TREE.load(Ordering::Acquire).as_ref() }
        && tree.process == process::id()
    {
        trees::remove(&tree.root());
    }
}

impl Tree {
    fn root(&self) -> PathBuf {
        PathBuf::from(std::ffi::OsStr::from_bytes(self.root.to_bytes()))
    }

    /// # Errors
    /// A file cannot be written.
    fn write(&self, config: &Config, number: usize, source: &Source<'_>) -> io::Result<()> {
        files::write_device(&self.root(), config, number, source)
    }
}
