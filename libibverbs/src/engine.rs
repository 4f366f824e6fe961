//! The engine of a process: the simulator in real time, and its configuration.

use std::sync::OnceLock;

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

/// The engine. It starts when a program first uses the library, and its thread for timers when a
/// device is first opened.
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

#[cold]
fn start() -> &'static Engine {
    match ENGINE.store(Engine::new(config())) {
        Ok(engine) => {
            (at_start().started)(engine);
            engine
        }
        Err(first) => first,
    }
}

impl Engine {
    fn new(config: &'static Config) -> Self {
        // The file has had its header since the library was loaded.
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
