//! What is done when the program ends: what still waits to leave for other processes is sent, and the trace is
//! written, and what the program did wrong. A child after `fork` writes what it did itself. If a signal ends the
//! program, `interrupted` writes the same. Nothing is written after `_exit`.

use std::fs::OpenOptions;
use std::io::{self, Write};

use verbs_api::lab::Lab;
use verbs_settings::Config;
use verbs_sim::Diagnosis;

use crate::engine::{Engine, running};
use crate::{interrupted, place, verdict};

/// Does it then, if there is something to do.
pub(crate) fn register(config: &Config) {
    let is_needed = has_output(config) || !config.fabric().is_private();
    // Miri has no `atexit`.
    if is_needed && !cfg!(miri) {
        // SAFETY: the function is of the right type and stays, as the library does.
        unsafe { libc::atexit(at_exit) };
    }
}

/// There is something to write at the end.
pub(crate) fn has_output(config: &Config) -> bool {
    let outputs = [config.trace(), config.diagnose()];
    outputs.iter().any(Option::is_some) || config.pcap().is_some()
}

extern "C" fn at_exit() {
    let Some(engine) = running() else { return };
    engine.sim.send_waiting();
    write_once(engine);
    interrupted::wait_if_ending();
}

/// Writes everything, unless that was done. If another thread does, waits for it.
pub(crate) fn write_once(engine: &Engine) {
    engine.written.call_once(|| write_all(engine));
}

fn write_all(engine: &Engine) {
    if let Some(to) = engine.config.trace() {
        let trace = engine.sim.trace();
        let lines: String = trace.iter().map(|record| format!("{record}\n")).collect();
        write("trace", to, &lines);
    }
    if let (Some(path), Some(pcap)) = (engine.config.pcap(), &engine.pcap)
        && let Err(error) = pcap.finish()
    {
        let _ = writeln!(
            io::stderr(),
            "verbsim: the packets: {}: {error}",
            path.display()
        );
    }
    if let Some(to) = engine.config.diagnose() {
        let diagnosis = engine.sim.diagnose();
        write("diagnosis", to, &text(engine, &diagnosis, to == "-"));
        verdict::ended(engine, &diagnosis);
    }
}

/// Nothing after a program without mistakes.
fn text(engine: &Engine, diagnosis: &Diagnosis, with_heading: bool) -> String {
    let names = engine.config.names();
    let lines = diagnosis.with_names(|node| names[node as usize].clone(), place::name);
    if with_heading && !diagnosis.is_empty() {
        return format!("verbsim: what the program did wrong or left undone:\n{lines}");
    }
    lines
}

fn write(what: &str, to: &str, text: &str) {
    let result = match to {
        "-" => io::stderr().write_all(text.as_bytes()),
        // Behind what other processes of the same run have written.
        path => OpenOptions::new()
            .create(true)
            .append(true)
            .open(path)
            .and_then(|mut file| file.write_all(text.as_bytes())),
    };
    if let Err(error) = result {
        // Nobody may be there to read it.
        let _ = writeln!(io::stderr(), "verbsim: the {what}: {to}: {error}");
    }
}
