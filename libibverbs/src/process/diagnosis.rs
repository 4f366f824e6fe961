//! Writing the trace and the diagnosis, once, when the process ends. Nothing is written after
//! `_exit`: `verbsim exec` then has the facts that were recorded before (`record`).

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Once, OnceLock};

use verbs_api::lab::Lab;
use verbs_settings::{Config, DiagnoseFormat};
use verbs_sim::{BlockedThread, Certainty, Diagnosis, Finding};

use super::{json, place, stuck};
use crate::base::output::{Output, say};
use crate::base::per_process::PerProcess;
use crate::base::record;
use crate::engine::{Engine, config, engine, sim};
use crate::verbs::qp;

static OUTPUTS: OnceLock<Outputs> = OnceLock::new();

/// The files of the trace and of the diagnosis.
struct Outputs {
    trace: Option<Output>,
    diagnosis: Option<Output>,
}

/// How far the process has written.
struct Writing {
    has_begun: AtomicBool,
    /// Is poisoned by a panic, so that no second attempt appends to the files.
    all: Once,
}

impl Default for Writing {
    fn default() -> Self {
        Self {
            has_begun: AtomicBool::new(false),
            all: Once::new(),
        }
    }
}

static WRITING: PerProcess<Writing> = PerProcess::new();

/// Opens the files. By the end the process may not be able to.
pub(super) fn open(config: &Config) {
    OUTPUTS.get_or_init(|| Outputs {
        trace: config.trace().map(Output::open),
        diagnosis: config.diagnose().map(Output::open),
    });
}

/// Whether there is something to write at the end.
pub(super) fn has_output(config: &Config) -> bool {
    let outputs = [config.trace(), config.diagnose()];
    outputs.iter().any(Option::is_some) || config.pcap().is_some()
}

/// How the process ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    ByItself,
    /// Whatever its threads were doing.
    BySignal,
    /// At a mistake.
    Halted,
}

/// Writes everything, unless that was done. Waits for another thread that does.
pub(super) fn write_once(engine: &Engine, end: End) {
    let writing = WRITING.get_or_default();
    writing.has_begun.store(true, Ordering::Relaxed);
    writing.all.call_once(|| write_all(engine, end));
}

/// Whether the process has begun to write.
pub(super) fn is_written() -> bool {
    WRITING.get_or_default().has_begun.load(Ordering::Relaxed)
}

fn write_all(engine: &Engine, end: End) {
    let Some(outputs) = OUTPUTS.get() else { return };
    if let Some(to) = &outputs.trace {
        let trace = engine.sim.trace();
        let lines: String = trace.iter().map(|record| format!("{record}\n")).collect();
        if let Err(why) = to.write(&lines) {
            record::unwritten(&format!("the trace: {why}"));
        }
    }
    if let (Some(path), Some(pcap)) = (engine.config.pcap(), &engine.pcap)
        && let Err(error) = pcap.finish()
    {
        record::unwritten(&format!("the packets: {}: {error}", path.display()));
    }
    if let Some(to) = &outputs.diagnosis {
        let (diagnosis, suppressed) = diagnosis(end);
        match to.write(&text(&diagnosis, to.is_stderr())) {
            Ok(()) => record_end(&diagnosis),
            Err(why) => record::unwritten(&format!("the diagnosis: {why}")),
        }
        match suppressed {
            // A file has only the diagnosis.
            _ if !to.is_stderr() => {}
            0 => {}
            1 => say("1 finding was suppressed"),
            _ => say(format_args!("{suppressed} findings were suppressed")),
        }
    }
}

/// Records that the process ends, with the numbers of errors and warnings.
fn record_end(diagnosis: &Diagnosis) {
    let is_certain = |finding: &&Finding| finding.certainty == Certainty::Certain;
    let all = diagnosis.findings().count();
    let errors = diagnosis.findings().filter(is_certain).count();
    record::ended(errors, all - errors);
}

/// The findings so far, without those that are suppressed, in a program that continues.
pub(super) fn so_far() -> Vec<Finding> {
    let mut mistakes = Diagnosis::so_far(sim()).mistakes;
    mistakes.retain(|finding| !is_suppressed(finding));
    mistakes
}

/// The diagnosis without suppressed findings, and their number.
fn diagnosis(end: End) -> (Diagnosis, usize) {
    let stuck = match end {
        End::ByItself => None,
        End::BySignal => Some(stuck::now()),
        // A halt is not a hang, so waits are not reported.
        End::Halted => Some(Vec::new()),
    };
    let mut diagnosis = BlockedThread::diagnose(sim(), qp::unposted(), stuck.as_deref());
    let found = diagnosis.findings().count();
    let is_said = |finding: &Finding| !is_suppressed(finding);
    diagnosis.mistakes.retain(is_said);
    diagnosis.leftovers.retain(is_said);
    let suppressed = found - diagnosis.findings().count();
    (diagnosis, suppressed)
}

/// Whether the configuration suppresses a finding.
pub(super) fn is_suppressed(finding: &Finding) -> bool {
    let place = || finding.site.map(place::name);
    config().suppressions().cover(finding.class(), place)
}

/// The text of a diagnosis, which is empty for a program without mistakes.
fn text(diagnosis: &Diagnosis, with_heading: bool) -> String {
    let lines = lines(diagnosis);
    if config().diagnose_format() == DiagnoseFormat::Text && with_heading && !diagnosis.is_empty() {
        return format!("verbsim: what the program did wrong or left undone:\n{lines}");
    }
    lines
}

/// The findings, in the format of the configuration.
pub(super) fn lines(diagnosis: &Diagnosis) -> String {
    match config().diagnose_format() {
        DiagnoseFormat::Json => {
            let findings = diagnosis.findings();
            findings.map(json::line).collect()
        }
        _ => diagnosis.with_names(engine()),
    }
}
