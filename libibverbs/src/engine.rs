//! The engine of a process: the simulator in real time, its devices, and all objects made of it.

use std::collections::BTreeMap;
use std::os::fd::AsRawFd;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use std::sync::{Once, OnceLock};

use verbs_abi::{
    IBV_NODE_CA, IBV_NODE_RNIC, IBV_TRANSPORT_IB, IBV_TRANSPORT_IWARP, ibv_device, text,
    verbs_device,
};
use verbs_api::sync::Mutex;
use verbs_api::{Transport, Verbs};
use verbs_settings::{Config, Fabric, Variables};
use verbs_sim::{Mode, Pcap, Sim, SimConfig};

use crate::dm::Dm;
use crate::object::{Holding, Objects};
use crate::output::{Output, say};
use crate::qp::Qp;
use crate::{
    at_exit, caller, cm, context, control, interrupted, pin, place, report, sysfs, verdict,
};

/// The simulator, and what programs see of its devices.
pub(crate) struct Engine {
    pub(crate) sim: Sim,
    /// Where its packets are written to.
    pub(crate) pcap: Option<Pcap>,
    pub(crate) config: &'static Config,
    devices: &'static [verbs_device],
    pub(crate) objects: Objects,
    pub(crate) cm: cm::State,
    /// Contexts that are not closed.
    pub(crate) contexts: Mutex<context::Open>,
    /// Device memories that are not freed, by their contexts and ids.
    pub(crate) dms: Mutex<BTreeMap<verbs_api::Context, BTreeMap<u64, Holding<Dm>>>>,
    /// Queue pairs of XRC_RECV by their handles, for events: the engine keeps no value for these.
    pub(crate) xrc_targets: Mutex<BTreeMap<verbs_api::Qp, Holding<Qp>>>,
    /// What is taken of the device memory, by device.
    pub(crate) device_memory: Mutex<Vec<usize>>,
    /// Where the program has called from.
    pub(crate) known: place::Known,
    /// What there is to write at its end was written.
    pub(crate) written: Once,
    /// That has begun.
    pub(crate) is_ending: AtomicBool,
    /// A context has been opened.
    pub(crate) is_used: AtomicBool,
    /// The process, or a parent that it was forked from, has had a queue pair.
    pub(crate) has_queue_pair: AtomicBool,
    /// The mistakes that were recorded when they happened.
    pub(crate) recorded: report::Recorded,
    /// What the program has put in force itself.
    pub(crate) faults: control::Faults,
    /// The findings that it has seen.
    pub(crate) seen: control::Seen,
}

// SAFETY: the devices are never written, and the pointers in them are null. All else can be shared.
unsafe impl Sync for Engine {}
// SAFETY: as above.
unsafe impl Send for Engine {}

static CONFIG: OnceLock<Config> = OnceLock::new();
/// Null before the first use of the library, and so in a child after `fork`, which would find the locks of
/// its parent's as they were, and no thread for timers.
static ENGINE: AtomicPtr<Engine> = AtomicPtr::new(null_mut());
/// That of the parent, in a child after `fork`.
static OF_PARENT: AtomicPtr<Engine> = AtomicPtr::new(null_mut());

/// Reads the configuration when the library is loaded, so that what is wrong with it is said before
/// the program begins. A library that is only preloaded waits until the program needs it.
#[used]
// SAFETY: the section holds functions of this type, which the loader calls once.
#[unsafe(link_section = ".init_array")]
static AT_LOAD: extern "C" fn() = {
    extern "C" fn at_load() {
        #[cfg(not(test))]
        if crate::preload::at_load() {
            return;
        }
        load();
    }
    at_load
};

/// Refuses a configuration whose diagnosis one process cannot write.
fn written_here(config: Config) -> Result<Config, String> {
    if config.diagnose_format().is_document() {
        return Err(
            "VERBSIM_DIAGNOSE_FORMAT (--diagnose-format): junit, github and sarif are documents about all processes of a \
             run: start the program with `verbsim exec`, or choose text or json"
                .to_owned(),
        );
    }
    Ok(config)
}

/// Reads the configuration, once. A process with a wrong one ends with status 2.
pub(crate) fn load() -> &'static Config {
    let read = || Config::read(&Variables::of_process()).and_then(written_here);
    CONFIG.get_or_init(|| match read() {
        Ok(config) => {
            verdict::loaded();
            at_exit::register(&config);
            caller::register(&config);
            // Miri has no `pthread_atfork`.
            if !cfg!(miri) {
                // SAFETY: the last may run in a child of a process with threads: it releases a lock of
                // this thread, reads what never changes, tries a lock, and closes descriptors.
                unsafe {
                    libc::pthread_atfork(
                        Some(place::before_fork),
                        Some(place::after_fork),
                        Some(leave_to_parent),
                    )
                };
            }
            config
        }
        Err(problem) => {
            say(problem);
            // SAFETY: ends the process; it has used no device.
            unsafe { libc::_exit(2) }
        }
    })
}

/// What there is after `fork` is the parent's.
unsafe extern "C" fn leave_to_parent() {
    place::after_fork();
    verdict::after_fork();
    pin::after_fork();
    sysfs::after_fork();
    let engine = ENGINE.swap(null_mut(), Ordering::Relaxed);
    // SAFETY: null, or an engine that was made whole before, and is never freed.
    if let Some(of_parent) = unsafe { engine.as_ref() } {
        of_parent.sim.each_network_descriptor(|fd| {
            // SAFETY: it is the library's, and nothing of this process uses what the parent has made.
            unsafe { libc::close(fd.as_raw_fd()) };
        });
        OF_PARENT.store(engine, Ordering::Relaxed);
    }
}

/// The engine. It starts, with its thread for timers, when a program first uses the library.
#[inline]
pub(crate) fn engine() -> &'static Engine {
    running().unwrap_or_else(start)
}

/// The engine, if it has started in this process.
#[inline]
pub(crate) fn running() -> Option<&'static Engine> {
    // SAFETY: null, or an engine that was made whole before, and is never freed.
    unsafe { ENGINE.load(Ordering::Acquire).as_ref() }
}

/// That of the parent, in a child after `fork` that has not made one of its own, and after.
pub(crate) fn of_parent() -> Option<&'static Engine> {
    // SAFETY: as in `running`.
    unsafe { OF_PARENT.load(Ordering::Relaxed).as_ref() }
}

#[cold]
fn start() -> &'static Engine {
    let config = load();
    let parent = of_parent();
    let new = Box::into_raw(Box::new(Engine::new(config, parent)));
    let (made, seen) = (Ordering::Release, Ordering::Acquire);
    match ENGINE.compare_exchange(null_mut(), new, made, seen) {
        Ok(_) => {
            interrupted::watch(config);
            // SAFETY: never freed from now on.
            let engine = unsafe { &*new };
            report::watch(engine);
            engine
        }
        Err(first) => {
            // SAFETY: nobody else has seen it.
            drop(unsafe { Box::from_raw(new) });
            // SAFETY: as in `running`.
            unsafe { &*first }
        }
    }
}

/// The engine for what the library needs for itself: no fault rule counts that, and it is not in the trace.
pub(crate) fn unobserved() -> &'static Sim {
    engine().sim.unobserved()
}

/// A number that no other process has, most likely: by its id alone each first process of a container would have
/// the same.
fn drawn() -> u64 {
    let mut bytes = [0; 8];
    // SAFETY: there is room for so many bytes, which the call fills unless it fails.
    let filled = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) };
    if filled == bytes.len() as isize {
        return u64::from_ne_bytes(bytes);
    }
    // An old kernel.
    std::process::id().into()
}

/// The fabric, or a private one if nobody asked for it, and it cannot be.
fn usable(fabric: &Fabric) -> &Fabric {
    match fabric.check() {
        Err(why) if fabric.is_default() => {
            say(format_args!(
                "other processes are not reached (--fabric private says so): {why}"
            ));
            &Fabric::PRIVATE
        }
        _ => fabric,
    }
}

impl Engine {
    /// A child has the devices of its parent, which may have looked for them before.
    fn new(config: &'static Config, parent: Option<&Self>) -> Self {
        // The file has its header since the library was loaded.
        let packets = config
            .pcap()
            .map(|path| Output::open(&path.to_string_lossy()));
        let pcap = packets.map(Pcap::resume);
        let sim = config.simulation(Mode::RealTime, usable(config.fabric()), drawn(), pcap);
        let sim = sim.expect("one could be made when the library was loaded");
        if config.memory() && !SimConfig::can_check_mapping() {
            say(
                "memory that is not mapped any more is not found: the system does not permit process_vm_readv",
            );
        }
        let transport = sim.devices().map_or(Transport::Ib, |all| all[0].transport);
        let devices = parent.map_or_else(|| devices(config, transport), |parent| parent.devices);
        Self {
            sim,
            pcap,
            config,
            devices,
            objects: Objects::default(),
            cm: cm::State::default(),
            contexts: Mutex::default(),
            dms: Mutex::default(),
            xrc_targets: Mutex::default(),
            device_memory: Mutex::default(),
            known: place::Known::default(),
            written: Once::new(),
            is_ending: AtomicBool::new(false),
            is_used: AtomicBool::new(false),
            has_queue_pair: AtomicBool::new(false),
            recorded: report::Recorded::default(),
            faults: control::Faults::default(),
            seen: control::Seen::default(),
        }
    }

    /// What the program calls a device.
    pub(crate) fn name_of(&self, node: u32) -> &'static str {
        &self.config.names()[node as usize]
    }

    /// What programs point to, in the order of the devices.
    pub(crate) fn devices(&self) -> impl Iterator<Item = *mut ibv_device> {
        self.devices
            .iter()
            .map(|device| (&raw const device.device).cast_mut())
    }

    /// Which device a program points to, from 0.
    pub(crate) fn device(&self, device: *const ibv_device) -> Option<usize> {
        self.devices().position(|of| std::ptr::eq(of, device))
    }
}

/// They are never freed, since programs keep pointers to them.
fn devices(config: &Config, transport: Transport) -> &'static [verbs_device] {
    let (node_type, transport_type) = match transport {
        Transport::Iwarp => (IBV_NODE_RNIC, IBV_TRANSPORT_IWARP),
        _ => (IBV_NODE_CA, IBV_TRANSPORT_IB),
    };
    let device = |(number, name): (usize, &String)| {
        let [ibdev_path, dev_path] = sysfs::paths(config, number);
        verbs_device {
            device: ibv_device {
                ops: [0; 2],
                node_type,
                transport_type,
                name: text(name),
                dev_name: text(&format!("uverbs{number}")),
                dev_path: text(&dev_path),
                ibdev_path: text(&ibdev_path),
            },
            of_driver: [0; 8],
        }
    };
    Vec::leak(config.names().iter().enumerate().map(device).collect())
}
