//! The findings so far, and the mark since which each exists.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, Ordering};

use verbs_api::sync::Mutex;
use verbs_sim::{Annotation, Class, Finding};

use crate::base::per_process::PerProcess;
use crate::c::{Refusal, Result};
use crate::engine::running;
use crate::process::{diagnosis, json};

/// The findings that were seen, as lines of JSON, each with the last mark before it was first seen.
/// A finding that has changed, such as by its count, is new.
static SEEN: PerProcess<Mutex<Lines>> = PerProcess::new();

type Lines = BTreeMap<String, Vec<i64>>;

struct Found {
    finding: Finding,
    /// In JSON.
    line: String,
    /// The last mark before it was first seen.
    first: i64,
}

/// The number of marks. A child after `fork` continues from it, so all its findings are later than
/// its parent's marks.
static MARKS: AtomicI64 = AtomicI64::new(0);

/// Writes a mark into the trace. Returns its number, from 1.
///
/// It does not wake a library that sleeps, which has neither a trace nor findings yet.
pub(super) fn mark(text: &str) -> i64 {
    if let Some(engine) = running() {
        let seen = &mut *SEEN.get_or_default().lock();
        look(seen);
        // A record of the trace is a line.
        let text = format!("verbsim_mark {}", text.replace(char::is_control, " "));
        Annotation { node: 0, text }.note(&engine.sim);
        return MARKS.fetch_add(1, Ordering::Relaxed) + 1;
    }
    MARKS.fetch_add(1, Ordering::Relaxed) + 1
}

/// The findings since a mark, a line of JSON each.
pub(super) fn lines(since: i64) -> Result<String> {
    Ok(found(since)?.into_iter().map(|found| found.line).collect())
}

/// The number of findings since a mark, of a level or a class, or of any.
pub(super) fn count(what: Option<&str>, since: i64) -> Result<i64> {
    let is_of: Box<dyn Fn(&Finding) -> bool> = match what {
        None => Box::new(|_| true),
        Some(level @ ("error" | "warning")) => {
            Box::new(move |finding| json::level(finding.certainty) == level)
        }
        Some(name) => {
            let class: Class = name.parse().map_err(|_| {
                let allowed = "error, warning, or a class (`verbsim classes` lists them)";
                Refusal::invalid(format!("what is {name}: allowed are NULL, {allowed}"))
            })?;
            Box::new(move |finding| finding.class() == class)
        }
    };
    let found = found(since)?;
    let found = found.iter().filter(|found| is_of(&found.finding));
    Ok(found.count() as i64)
}

fn found(since: i64) -> Result<Vec<Found>> {
    let marks = MARKS.load(Ordering::Relaxed);
    // A mark of another process or a wrong number would silently count nothing.
    if !(0..=marks).contains(&since) {
        let what = format!("there is no mark {since}; the last one is {marks}");
        return Err(Refusal::invalid(what));
    }
    if running().is_none() {
        return Ok(Vec::new());
    }
    let mut found = look(&mut SEEN.get_or_default().lock());
    found.retain(|found| found.first >= since);
    Ok(found)
}

/// The findings now. Those that no longer exist are forgotten.
fn look(seen: &mut Lines) -> Vec<Found> {
    let marks = MARKS.load(Ordering::Relaxed);
    let before = std::mem::take(seen);
    let see = |finding| {
        let line = json::line(&finding);
        let alike = seen.entry(line.clone()).or_default();
        let first = before
            .get(&line)
            .and_then(|alike_before| alike_before.get(alike.len()));
        let first = first.copied().unwrap_or(marks);
        alike.push(first);
        Found {
            finding,
            line,
            first,
        }
    };
    diagnosis::so_far().into_iter().map(see).collect()
}
