//! Why mutants survive: the files in `mutants/survivors`, one for each source.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::Result;
use crate::mutant::{Key, Mutant};

/// The kind of a survivor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Class {
    /// It behaves like the original. The reason names the line that makes it so.
    Equivalent,
    /// It only takes longer, or more memory.
    Cost,
    /// It changes a value that the specification leaves undefined, or a choice it leaves open.
    Undefined,
    /// No call through the interface reaches it.
    Unreachable,
    /// It only changes a text: the trace, a diagnosis, the message of an error.
    Text,
    /// Only test controls show it: faults, limits, the clock, checkers of models.
    Laboratory,
    /// Other tests notice it. The reason says why no scenario does.
    Tests,
    /// Nothing notices it.
    Hole,
}

impl Class {
    /// Whether mutants of this class could be noticed.
    pub(crate) fn counts(self) -> bool {
        matches!(self, Self::Tests | Self::Hole)
    }

    /// The class of all mutants of a place, which need no reason of their own.
    pub(crate) fn of_place(mutant: &Mutant) -> Option<Self> {
        let Key {
            file,
            function,
            text,
        } = &mutant.key;
        let is_in = |places: &[&str]| {
            let of_function = |place: &&str| *place == format!("{file} {function}");
            places.contains(&&file[..]) || places.iter().any(of_function)
        };
        match () {
            () if mutant.is_text || file.starts_with(DIAGNOSIS) || is_in(TEXTS) => Some(Self::Text),
            // The number of a work request in the trace, in errors and in the diagnosis.
            () if text.starts_with("label: ") => Some(Self::Text),
            // The places in the program and its use of a CQ, which only the diagnosis reads.
            () if OF_DIAGNOSES.iter().any(|part| text.contains(part)) => Some(Self::Text),
            // Only an option makes the simulator notice unmapped memory.
            () if [
                "check_memory",
                "checks_m",
                "unmapped",
                "self.checks(",
                "sum::",
            ]
            .iter()
            .any(|of| text.contains(of)) =>
            {
                Some(Self::Laboratory)
            }
            () if file == "sim/src/memory/mod.rs"
                && ["length: ", "offset: "]
                    .iter()
                    .any(|of| text.starts_with(of)) =>
            {
                Some(Self::Laboratory)
            }
            // The next poll takes the lock although the CQ is empty.
            () if text == "without self.show(index);" || text.contains("cqs.polled(") => {
                Some(Self::Cost)
            }
            () if is_in(UNREACHED) => Some(Self::Laboratory),
            // The cached paths of the fast path are valid for an epoch.
            () if text.contains("self.direct.") => Some(Self::Laboratory),
            () => None,
        }
    }
}

/// The folder of the diagnosis, which only makes texts.
const DIAGNOSIS: &str = "sim/src/diagnosis/";

/// Parts of other code that only a diagnosis reads.
const OF_DIAGNOSES: &[&str] = &[
    "site",
    "usage",
    "was_left",
    "read_at",
    "since: ",
    "waits.",
    "note_refus",
    "note_other_",
    "note_short",
    "call: verb",
    "note_seen",
    "note_armed",
    "note_endless",
    "note_post",
    "note_read",
    "has_read",
    "has_seen_failure",
    "is_observed()",
    "let Err(error) = &",
    "shown.set(handle, false)",
    "compare(fabric",
    "modified.is_ok()",
    "posts_in_error",
    "was_reset",
    "is_harmed",
];

/// Sources and functions that only make texts.
const TEXTS: &[&str] = &[
    "sim/src/cm/pending.rs",
    "sim/src/device/why.rs",
    "sim/src/qp/recovery.rs",
    "sim/src/qp/unfinished.rs",
    "sim/src/qp/why.rs",
    "sim/src/verbs/trace_args.rs",
    "sim/src/verbs/diagnose.rs",
    "sim/src/verbs/layer.rs",
    "sim/src/fabric/fates.rs",
    "sim/src/fabric/waits.rs",
    "sim/src/verbs/watch.rs",
    "sim/src/network/gateway.rs note_unread",
    "sim/src/network/verbs.rs note_unread",
    "sim/src/cm/event_channel.rs Channels::has_event",
    "sim/src/cm/ids.rs Ids::unacknowledged",
    "sim/src/device/contexts.rs Base::last_read",
    "sim/src/device/contexts.rs Base::made_at",
    "sim/src/device/cq.rs Cq::event_read_at",
    "sim/src/device/cq.rs Cq::note_unpolled",
    "sim/src/device/cq.rs Cqs::seen",
    "sim/src/device/cq_ex.rs Cqs::iteration_begun_at",
    "sim/src/device/key.rs Regions::gone",
    "sim/src/device/key.rs Regions::remember",
    "sim/src/qp/loss.rs Qp::note_unanswered",
    "sim/src/qp/loss.rs Qp::is_harmed",
    "sim/src/qp/post.rs full",
    "sim/src/qp/mod.rs Qp::reached",
    "sim/src/qp/mod.rs Qp::has_seen_failure",
    "sim/src/qp/mod.rs Qp::note_post_in_error",
    "sim/src/qp/queue.rs WorkQueue<W>::unpolled",
    "sim/src/device/contexts.rs Base::unread_async",
    "sim/src/device/cq.rs Cqs::polled",
    "sim/src/verbs/call.rs note_refused",
    "sim/src/node/poll.rs Node::note_seen",
    "sim/src/verbs/call.rs Error::refusal",
    "sim/src/verbs/call.rs PostError::refusal",
    "sim/src/verbs/call.rs ReregError::refusal",
    "sim/src/verbs/cm/mod.rs Sim::in_steps",
    "sim/src/device/base.rs Base::note_dropped",
    "sim/src/qp/responder.rs Responder::has_taken",
    "sim/src/qp/responder.rs Responder::waits_for",
    "sim/src/device/cq.rs Cqs::overrun_at",
    "sim/src/device/cq.rs shown",
    "sim/src/device/channel.rs CompChannel::seen",
    "sim/src/device/cq.rs Cq::report",
    "sim/src/device/cq.rs Cqs::channel_report",
    "sim/src/device/cq.rs Cqs::note_lost",
    "sim/src/device/cq.rs note_injected",
    "sim/src/device/notify.rs Notify::state",
];

/// Sources and functions that the suite does not reach: test controls, checkers of models, real
/// time and the network. The fast path belongs to them, since the suite almost always observes
/// packets. A test compares both paths (`direct/equivalence`).
const UNREACHED: &[&str] = &[
    "sim/src/memory/checksum.rs",
    "sim/src/device/unmapped.rs",
    "sim/src/memory/process.rs",
    "sim/src/qp/sum.rs",
    "sim/src/qp/queue.rs WorkQueue<W>::between",
    "sim/src/device/region.rs Mr::offset_of",
    "sim/src/memory/mod.rs Memory::check_mapping",
    "sim/src/memory/mod.rs Memory::checks",
    "sim/src/qp/responder.rs Refusal::lost",
    "sim/src/node/owner.rs Node::deregistered_early",
    "sim/src/direct/conditions.rs",
    "sim/src/direct/datagram.rs",
    "sim/src/direct/fast_path.rs",
    "sim/src/fabric/faults.rs Fabric::inform_nodes",
    "sim/src/fabric/mod.rs Fabric::expected",
    "sim/src/verbs/call.rs Sim::post_packets",
    "sim/src/verbs/call.rs Sim::post_sends",
    "sim/src/fabric/deadlines.rs",
    "sim/src/sync.rs",
    "sim/src/time/timers.rs Timers::earliest",
    "sim/src/time/timers.rs Timers::take_sooner",
    "sim/src/device/access.rs Domains::remote_span",
    "sim/src/device/access.rs Regions::span",
    "sim/src/device/access.rs Regions::spans",
    "sim/src/device/cq.rs Cq::has_room",
    "sim/src/device/cq.rs Cqs::add_success",
    "sim/src/device/cq.rs Cqs::has_room",
    "sim/src/device/region.rs Mr::any_span",
    "sim/src/device/region.rs Mr::span",
    "sim/src/memory/mod.rs Memory::span_of",
    "sim/src/memory/mod.rs Memory::whole",
    "sim/src/memory/span.rs move_bytes",
    "sim/src/memory/span.rs move_parts",
    "sim/src/memory/span.rs Gathered::spans",
    "sim/src/memory/span.rs Span::part",
    "sim/src/qp/receives.rs Receives::has_taken",
    "sim/src/qp/requester.rs Requester::record_sent",
    "sim/src/qp/requester.rs Requester::is_at_rest",
    "sim/src/qp/requester.rs Requester::next_psn",
    "sim/src/qp/responder.rs Responder::expects",
    "sim/src/qp/responder.rs Responder::is_between_messages",
    "sim/src/qp/responder.rs Responder::advance_rq_psn",
    "sim/src/config.rs",
    "sim/src/trigger.rs",
    "sim/src/fabric/delay_queue.rs",
    "sim/src/network/mod.rs",
    "sim/src/address.rs group_of",
    "sim/src/packet/mod.rs PortId::is_outside",
    "sim/src/packet/mod.rs Route::leads_outside",
    "sim/src/qp/number.rs",
    "sim/src/qp/common.rs Common::count_listener",
    "sim/src/qp/common.rs Common::is_connected_outside",
    "sim/src/qp/common.rs Common::listens",
    "sim/src/qp/transmit.rs Requester::is_part_held_back",
    "sim/src/qp/transmit.rs Requester::reads_under_way",
    "sim/src/qp/transmit.rs part",
    "sim/src/qp/transmit.rs request",
    "sim/src/node/demux.rs missing",
    "sim/src/network/outgoing.rs",
    "sim/src/fabric/outage.rs",
    "sim/src/packet/pcap.rs",
    "sim/src/fabric/rules.rs",
    "sim/src/device/lab.rs",
    "sim/src/device/limits.rs",
    "sim/src/network/gateway.rs",
    "sim/src/network/service.rs",
    "sim/src/runtime/clock.rs",
    "sim/src/network/names.rs",
    "sim/src/fabric/recorder.rs",
    "sim/src/runtime/idle.rs",
    "sim/src/network/polling.rs",
    "sim/src/network/verbs.rs",
    "sim/src/verbs/lab.rs",
    "sim/src/verbs/model.rs",
    "sim/src/network/receiver.rs",
    "sim/src/runtime/roster.rs",
    "sim/src/network/sockets.rs",
    "sim/src/runtime/timer_thread.rs",
    "sim/src/device/channel.rs Cqs::events_queued",
    "sim/src/device/event_queue.rs waited_for_and_queued",
];

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Equivalent => "equivalent",
            Self::Cost => "cost",
            Self::Undefined => "undefined",
            Self::Unreachable => "unreachable",
            Self::Text => "text",
            Self::Laboratory => "laboratory",
            Self::Tests => "tests",
            Self::Hole => "hole",
        })
    }
}

/// Why a mutant survives.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Reason {
    pub(crate) class: Class,
    pub(crate) because: String,
}

/// The contents of the file of a source.
#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Reasons {
    survivors: Vec<Group>,
}

/// Mutants of one function that survive for one reason.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Group {
    function: String,
    class: Class,
    because: String,
    mutants: Vec<String>,
}

/// Reads all reasons.
///
/// # Errors
/// If a file cannot be read, names a mutant twice, or gives no reason.
pub(crate) fn read(dir: &Path) -> Result<BTreeMap<Key, Reason>> {
    let mut all = BTreeMap::new();
    for path in files(dir)? {
        let file = path.strip_prefix(dir)?.with_extension("rs");
        let reasons: Reasons = toml::from_str(&fs::read_to_string(&path)?)
            .map_err(|error| format!("{}: {error}", path.display()))?;
        for Group {
            function,
            class,
            because,
            mutants,
        } in reasons.survivors
        {
            for text in mutants {
                let (file, function) = (file.display().to_string(), function.clone());
                let key = Key {
                    file,
                    function,
                    text,
                };
                let reason = Reason {
                    class,
                    because: because.clone(),
                };
                if reason.because.is_empty() {
                    return Err(format!("no reason is given: {key}").into());
                }
                if let Some(twice) = all.insert(key.clone(), reason) {
                    return Err(format!("said twice, {}: {key}", twice.class).into());
                }
            }
        }
    }
    Ok(all)
}

/// Writes a file for each source, and removes the existing files.
pub(crate) fn write(dir: &Path, reasons: &BTreeMap<Key, Reason>) -> Result<()> {
    let mut by_file: BTreeMap<&str, BTreeMap<(&str, &Reason), Vec<String>>> = BTreeMap::new();
    for (key, reason) in reasons {
        let groups = by_file.entry(&key.file).or_default();
        groups
            .entry((&key.function, reason))
            .or_default()
            .push(key.text.clone());
    }
    for path in files(dir)? {
        fs::remove_file(path)?;
    }
    for (file, groups) in by_file {
        let group = |((function, reason), mutants): ((&str, &Reason), Vec<String>)| Group {
            function: function.to_owned(),
            class: reason.class,
            because: reason.because.clone(),
            mutants,
        };
        let survivors = groups.into_iter().map(group).collect();
        let path = dir.join(file).with_extension("toml");
        fs::create_dir_all(path.parent().expect("it is below the folder"))?;
        fs::write(path, toml::to_string_pretty(&Reasons { survivors })?)?;
    }
    Ok(())
}

fn files(dir: &Path) -> Result<Vec<PathBuf>> {
    let mut all = Vec::new();
    let mut left = vec![dir.to_owned()];
    while let Some(dir) = left.pop() {
        if !dir.is_dir() {
            continue;
        }
        for entry in fs::read_dir(dir)? {
            let path = entry?.path();
            if path.is_dir() {
                left.push(path);
            } else {
                all.push(path);
            }
        }
    }
    all.retain(|path| {
        path.extension()
            .is_some_and(|extension| extension == "toml")
    });
    Ok(all)
}
