//! What is done when the program ends: what still waits to leave for other processes is sent, and the trace is
//! written, and what the program did wrong. A child after `fork` writes what it did itself. If a signal ends the
//! program, `interrupted` writes the same. Nothing is written after `_exit`: `verbsim exec` then has what was recorded
//! before (`verdict`).

use std::sync::OnceLock;
use std::sync::atomic::Ordering;

use verbs_api::lab::Lab;
use verbs_settings::{Config, DiagnoseFormat};
use verbs_sim::{Diagnosis, Finding, Stuck};

use crate::engine::{Engine, running};
use crate::output::{Output, say};
use crate::{batch, interrupted, json, place, stuck, verdict};

static OUTPUTS: OnceLock<Outputs> = OnceLock::new();

/// Where the trace and the diagnosis go.
struct Outputs {
    trace: Option<Output>,
    diagnosis: Option<Output>,
}

/// Does it then, if there is something to do. Files are opened now.
pub(crate) fn register(config: &Config) {
    OUTPUTS.get_or_init(|| Outputs {
        trace: config.trace().map(Output::open),
        diagnosis: config.diagnose().map(Output::open),
    });
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
    write_once(engine, End::ByItself);
    interrupted::wait_if_ending();
}

/// How the program ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    ByItself,
    /// In the middle of whatever its threads do.
    BySignal,
    /// At a mistake.
    Halted,
}

/// Writes everything, unless that was done. If another thread does, waits for it.
pub(crate) fn write_once(engine: &Engine, end: End) {
    engine.is_ending.store(true, Ordering::Relaxed);
    engine.written.call_once(|| write_all(engine, end));
}

fn write_all(engine: &Engine, end: End) {
    let Some(outputs) = OUTPUTS.get() else { return };
    if let Some(to) = &outputs.trace {
        let trace = engine.sim.trace();
        let lines: String = trace.iter().map(|record| format!("{record}\n")).collect();
        if let Err(why) = to.write(&lines) {
            verdict::unwritten(&format!("the trace: {why}"));
        }
    }
    if let (Some(path), Some(pcap)) = (engine.config.pcap(), &engine.pcap)
        && let Err(error) = pcap.finish()
    {
        verdict::unwritten(&format!("the packets: {}: {error}", path.display()));
    }
    if let Some(to) = &outputs.diagnosis {
        let (diagnosis, suppressed) = diagnosis(engine, end);
        match to.write(&text(engine, &diagnosis, to.is_stderr())) {
            Ok(()) => verdict::ended(engine, &diagnosis),
            Err(why) => verdict::unwritten(&format!("the diagnosis: {why}")),
        }
        if suppressed > 0 && to.is_stderr() {
            say_suppressed(suppressed);
        }
    }
}

/// What was found so far, in a program that goes on, but for what is suppressed.
pub(crate) fn so_far(engine: &Engine) -> Vec<Finding> {
    let mut mistakes = Diagnosis::so_far(&engine.sim).mistakes;
    mistakes.retain(|finding| !is_suppressed(engine, finding));
    mistakes
}

/// What was found but for what is suppressed, and how much that is.
fn diagnosis(engine: &Engine, end: End) -> (Diagnosis, usize) {
    let stuck = match end {
        End::ByItself => None,
        End::BySignal => Some(stuck::now()),
        End::Halted => Some(Vec::new()),
    };
    let mut diagnosis = Stuck::diagnose(&engine.sim, batch::unposted(), stuck.as_deref());
    let found = diagnosis.findings().count();
    let is_said = |finding: &Finding| !is_suppressed(engine, finding);
    diagnosis.mistakes.retain(is_said);
    diagnosis.leftovers.retain(is_said);
    let suppressed = found - diagnosis.findings().count();
    (diagnosis, suppressed)
}

/// Whether the program's author knows of it.
pub(crate) fn is_suppressed(engine: &Engine, finding: &Finding) -> bool {
    let place = || finding.site.map(place::name);
    engine.config.suppressions().cover(finding.class(), place)
}

fn say_suppressed(count: usize) {
    let what = match count {
        1 => "1 finding was".to_owned(),
        _ => format!("{count} findings were"),
    };
    say(format_args!("{what} suppressed"));
}

/// Nothing after a program without mistakes.
fn text(engine: &Engine, diagnosis: &Diagnosis, with_heading: bool) -> String {
    let lines = lines(engine, diagnosis);
    let is_text = engine.config.diagnose_format() == DiagnoseFormat::Text;
    if is_text && with_heading && !diagnosis.is_empty() {
        return format!("verbsim: what the program did wrong or left undone:\n{lines}");
    }
    lines
}

/// The findings, in the format that was asked for.
pub(crate) fn lines(engine: &Engine, diagnosis: &Diagnosis) -> String {
    match engine.config.diagnose_format() {
        DiagnoseFormat::Json => {
            let findings = diagnosis.findings();
            findings
                .map(|finding| json::line(engine, finding))
                .collect()
        }
        _ => diagnosis.with_names(engine),
    }
}
