//! The one engine of a process: the simulator in real time, and its devices.

use std::ffi::c_char;
use std::io::{self, Write};
use std::process;
use std::sync::OnceLock;

use verbs_api::{Transport, Verbs};
use verbs_sim::{Mode, Sim};

use crate::at_exit;
use crate::c;
use crate::config::Config;

/// The simulator, and what programs see of its devices.
pub(crate) struct Engine {
    pub(crate) sim: Sim,
    pub(crate) config: Config,
    devices: Box<[c::Device]>,
    /// Of all devices.
    pub(crate) transport: Transport,
    /// A child after `fork` has a copy, in which nothing moves.
    process: u32,
}

// SAFETY: the devices are never written, and the pointers in them are null.
unsafe impl Sync for Engine {}
// SAFETY: as above.
unsafe impl Send for Engine {}

static CONFIG: OnceLock<Config> = OnceLock::new();
static ENGINE: OnceLock<Engine> = OnceLock::new();

/// Reads the configuration when the library is loaded, so that what is wrong with it is said before
/// the program begins.
#[used]
// SAFETY: the section holds functions of this type, which the loader calls once.
#[unsafe(link_section = ".init_array")]
static AT_LOAD: extern "C" fn() = {
    extern "C" fn at_load() {
        match Config::of_process() {
            Ok(config) => {
                at_exit::register(&config);
                let _ = CONFIG.set(config);
            }
            Err(problem) => {
                // Nobody may be there to read it.
                let _ = writeln!(io::stderr(), "verbsim: {problem}");
                // SAFETY: ends the process; nothing of it has begun.
                unsafe { libc::_exit(2) }
            }
        }
    }
    at_load
};

/// The engine. It starts, with its thread for timers, when a program first asks for devices.
pub(crate) fn engine() -> &'static Engine {
    ENGINE.get_or_init(|| {
        let config = CONFIG.get().cloned();
        let config = config.or_else(|| Config::of_process().ok());
        Engine::new(config.expect("the configuration was good when the library was loaded"))
    })
}

/// The engine for what the library needs for itself: no fault rule counts that, and it is not in the trace.
pub(crate) fn unobserved() -> &'static Sim {
    engine().sim.unobserved()
}

/// The engine, if it has started, and in this process.
pub(crate) fn running() -> Option<&'static Engine> {
    ENGINE
        .get()
        .filter(|engine| engine.process == process::id())
}

impl Engine {
    fn new(config: Config) -> Self {
        let sim = config.simulation(Mode::RealTime);
        let sim = sim.expect("one could be made when the library was loaded");
        let transport = sim.devices().map_or(Transport::Ib, |all| all[0].transport);
        let (node_type, transport_type) = match transport {
            Transport::Iwarp => (IBV_NODE_RNIC, IBV_TRANSPORT_IWARP),
            _ => (IBV_NODE_CA, IBV_TRANSPORT_IB),
        };
        let device = |(number, name): (usize, &String)| c::Device {
            device: c::ibv_device {
                ops: [0; 2],
                node_type,
                transport_type,
                name: text(name),
                dev_name: text(&format!("uverbs{number}")),
                dev_path: text(&format!("/sys/devices/virtual/verbsim/uverbs{number}")),
                ibdev_path: text(&format!("{IBDEV_PATH}{}/{name}", config.profile)),
            },
            nobodys: [0; 8],
        };
        let devices = config.names.iter().enumerate().map(device).collect();
        Self {
            sim,
            devices,
            transport,
            config,
            process: process::id(),
        }
    }

    /// What programs point to, in the order of the devices.
    pub(crate) fn devices(&self) -> impl Iterator<Item = *mut c::ibv_device> {
        self.devices
            .iter()
            .map(|device| (&raw const device.device).cast_mut())
    }

    /// Which device a program points to, from 0.
    pub(crate) fn device(&self, device: *const c::ibv_device) -> Option<usize> {
        self.devices().position(|of| std::ptr::eq(of, device))
    }
}

/// `IBV_NODE_CA`
const IBV_NODE_CA: i32 = 1;
/// `IBV_NODE_RNIC`
const IBV_NODE_RNIC: i32 = 4;
/// `IBV_TRANSPORT_IB`
const IBV_TRANSPORT_IB: i32 = 0;
/// `IBV_TRANSPORT_IWARP`
const IBV_TRANSPORT_IWARP: i32 = 1;

/// Where a device of the kernel would stand in sysfs; profile and name follow.
pub(crate) const IBDEV_PATH: &str = "/sys/devices/virtual/verbsim/";

/// A text of C with an end, cut where it is too long.
pub(crate) fn text<const N: usize>(text: &str) -> [c_char; N] {
    let mut bytes = [0; N];
    for (to, from) in bytes[..N - 1].iter_mut().zip(text.bytes()) {
        *to = from as c_char;
    }
    bytes
}
