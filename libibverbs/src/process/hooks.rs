//! The functions that the system calls: when the library is loaded, when the process forks, and
//! when it ends by `exit`.

use std::fs::File;
use std::os::fd::AsRawFd;

use verbs_settings::{Config, Variables};
use verbs_sim::Guarded;

use super::diagnosis::{self, End, has_output, write_once};
use super::{report, signals};
use crate::base::output::say;
use crate::base::{per_process, pin, record};
use crate::c::{caller, schedule, symbols};
use crate::engine::{self, Engine, Start, of_parent, prepare, running};

/// Reads the configuration when the library is loaded, so that its mistakes are reported before the
/// program begins. A library that is only preloaded waits until the program needs it.
#[used]
// SAFETY: the section holds functions of this type, which the loader calls once.
#[unsafe(link_section = ".init_array")]
static AT_LOAD: extern "C" fn() = {
    extern "C" fn at_load() {
        schedule::load();
        prepare(Start {
            load: configure,
            started,
        });
        #[cfg(not(test))]
        if super::preload::at_load() {
            return;
        }
        engine::config();
    }
    at_load
};

/// Reads the configuration, and gets ready for the end of the process. A process with a wrong
/// configuration ends with status 2.
fn configure() -> Config {
    match Config::read(&Variables::of_process()).and_then(written_here) {
        Ok(config) => {
            record::loaded();
            make_room();
            register_exit(&config);
            caller::register(&config);
            register_fork();
            config
        }
        Err(problem) => {
            say(problem);
            // SAFETY: ends the process, which has used no device.
            unsafe { libc::_exit(2) }
        }
    }
}

/// Makes room for the high descriptors of the simulator. Once the process has several threads, the
/// kernel takes milliseconds for that.
fn make_room() {
    // Miri has no files.
    if cfg!(miri) {
        return;
    }
    // Without room a descriptor keeps its low number.
    let _ = File::open("/dev/null").and_then(Guarded::raise);
}

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

fn started(engine: &'static Engine) {
    signals::watch(engine.config);
    report::watch(engine);
}

/// A child makes its own engine.
fn register_fork() {
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

/// Leaves objects, locks and descriptors to the parent. Its other threads, which may have been
/// using them, do not exist here.
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

/// Opens the output files, and registers a function for the end of the process if it has work.
fn register_exit(config: &Config) {
    diagnosis::open(config);
    let is_needed = has_output(config) || !config.fabric().is_private();
    // Miri has no `atexit`.
    if is_needed && !cfg!(miri) {
        // SAFETY: the function is of the right type and stays, as the library does.
        unsafe { libc::atexit(at_exit) };
    }
}

/// Sends the packets that still wait to leave for other processes, and writes the trace and the
/// diagnosis.
extern "C" fn at_exit() {
    let Some(engine) = running() else { return };
    engine.sim.send_waiting();
    write_once(engine, End::ByItself);
    signals::wait_if_ending();
}
