//! The engine of a process: the simulator in real time, and its configuration.

use std::fmt::{self, Display};
use std::panic::resume_unwind;
use std::sync::OnceLock;
use std::{io, thread};

use nix::sys::epoll::{Epoll, EpollCreateFlags};
use nix::sys::signal::{SigSet, SigmaskHow};
use verbs_settings::{Config, Fabric};
use verbs_sim::{Mode, Pcap, Sim, SimConfig};

use crate::base::output::{Output, say};
use crate::base::per_process::PerProcess;

/// The simulator, with its configuration.
pub(crate) struct Engine {
    pub(crate) sim: Sim,
    /// The file of packets.
    pub(crate) pcap: Option<Pcap>,
    pub(crate) config: &'static Config,
}

/// The functions that the process runs around the start of the engine.
pub(crate) struct Start {
    /// Reads the configuration. Called once.
    pub(crate) load: fn() -> Config,
    pub(crate) started: fn(&'static Engine),
}

static START: OnceLock<Start> = OnceLock::new();
static CONFIG: OnceLock<Config> = OnceLock::new();
static ENGINE: PerProcess<Engine> = PerProcess::new();

/// Sets what happens around the start, which is above this file. Called when the library is loaded.
pub(crate) fn prepare(start: Start) {
    let _ = START.set(start);
}

fn at_start() -> &'static Start {
    START.get().expect("it was set when the library was loaded")
}

/// The configuration, which is read at the first use.
pub(crate) fn config() -> &'static Config {
    CONFIG.get_or_init(at_start().load)
}

/// The engine. It starts, with its thread for timers, when a program first uses the library.
///
/// If it cannot start, the call unwinds with [`NotStarted`], and returns the errno value. The next
/// call tries again.
#[inline]
pub(crate) fn engine() -> &'static Engine {
    running().unwrap_or_else(start)
}

/// The engine, if it has started in this process.
#[inline]
pub(crate) fn running() -> Option<&'static Engine> {
    ENGINE.get()
}

/// The engine of the parent, in a child after `fork`.
pub(crate) fn of_parent() -> Option<&'static Engine> {
    ENGINE.of_parent()
}

/// The simulator of the engine.
#[inline]
pub(crate) fn sim() -> &'static Sim {
    &engine().sim
}

/// The simulator for the library's own needs: fault rules do not count these calls, and the trace
/// does not have them.
pub(crate) fn unobserved() -> &'static Sim {
    sim().unobserved()
}

/// The reason why the engine cannot start: the process may not have a further thread or descriptor.
#[derive(Debug)]
pub(crate) struct NotStarted {
    missing: &'static str,
    pub(crate) error: io::Error,
}

impl Display for NotStarted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { missing, error } = self;
        write!(f, "the devices need {missing}: {error}")
    }
}

/// Takes what the simulator takes when it starts, and gives it back: the simulator panics without
/// it.
fn can_start(fabric: &Fabric) -> Result<(), NotStarted> {
    let missing = |missing| move |error| NotStarted { missing, error };
    // Signals are for the program's own threads.
    let before = SigSet::all().thread_swap_mask(SigmaskHow::SIG_SETMASK);
    let thread = thread::Builder::new().spawn(|| ());
    let _ = before.and_then(|before| before.thread_set_mask());
    let _ = thread.map_err(missing("a thread"))?.join();
    if !fabric.is_private() {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).map_err(io::Error::from);
        let both = epoll.and_then(|epoll| epoll.0.try_clone());
        drop(both.map_err(missing("two descriptors"))?);
    }
    Ok(())
}

#[cold]
fn start() -> &'static Engine {
    let config = config();
    let fabric = usable(config.fabric());
    if let Err(why) = can_start(fabric) {
        // No message of a panic is printed.
        resume_unwind(Box::new(why));
    }
    match ENGINE.store(Engine::new(config, fabric)) {
        Ok(engine) => {
            (at_start().started)(engine);
            engine
        }
        Err(first) => first,
    }
}

impl Engine {
    fn new(config: &'static Config, fabric: &Fabric) -> Self {
        // The file has had its header since the library was loaded.
        let packets = config
            .pcap()
            .map(|path| Output::open(&path.to_string_lossy()));
        let pcap = packets.map(Pcap::resume);
        let sim = config.simulation(Mode::RealTime, fabric, drawn(), pcap);
        let sim = sim.expect("one could be made when the library was loaded");
        if config.memory() && !SimConfig::can_check_mapping() {
            say(
                "memory that is not mapped any more is not found: the system does not permit process_vm_readv",
            );
        }
        Self { sim, pcap, config }
    }

    /// The name by which the program opens a device.
    pub(crate) fn name_of(&self, node: u32) -> &'static str {
        &self.config.names()[node as usize]
    }
}

/// A number that hardly any other process has. The process id is not enough: the first process of
/// every container has id 1.
fn drawn() -> u64 {
    let mut bytes = [0; 8];
    // SAFETY: the call fills this many bytes, unless it fails.
    let filled = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) };
    if filled == bytes.len() as isize {
        return u64::from_ne_bytes(bytes);
    }
    // The kernel is older than the call.
    std::process::id().into()
}

/// The fabric, or a private one if the default cannot be used. A program that did not ask for a
/// fabric can still run.
fn usable(fabric: &Fabric) -> &Fabric {
    match fabric.check() {
        Err(why) if fabric.is_default() => {
            say(format_args!(
                "other processes are not reached (as with --fabric private): {why}"
            ));
            &Fabric::PRIVATE
        }
        _ => fabric,
    }
}
