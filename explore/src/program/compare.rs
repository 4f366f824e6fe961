//! The same program on two backends.

use core::fmt;
use core::time::Duration;

use verbs_api::Verbs;

use super::call::{Call, Number};
use super::outcome::{Completion, Outcome, Region, Seen};
use super::run::{Conditions, run_under};
use super::{Pace, Program};

/// The first thing that came out differently.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Difference {
    /// The call, or the state that was read after the program.
    pub of: String,
    /// Its outcome on the device.
    pub device: String,
    /// Its outcome on the simulator.
    pub simulator: String,
    /// Where the device has some of the simulator's completions, and in their order: the others.
    pub lacks: Vec<String>,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.of)?;
        writeln!(f, "  device     {}", self.device)?;
        write!(f, "  simulator  {}", self.simulator)
    }
}

/// Runs a program on the simulator and then on a device, and says where they come apart first. The
/// simulator has the profile of the device's driver, as many nodes as there are devices, and runs
/// nothing else.
///
/// A device that was only too slow for [`quiet`](Conditions::quiet) gets more time, twice; only
/// what is left then is a difference.
///
/// # Errors
/// The difference.
///
/// # Panics
/// If work of the program may race, so that its outcome is open.
pub fn compare(
    program: &Program,
    device: &dyn Verbs,
    simulator: &dyn Verbs,
    conditions: &Conditions<'_>,
) -> Result<(), Difference> {
    assert_eq!(
        program.pace,
        Pace::Settled,
        "work that meets can end in any order"
    );
    let expected = run_under(program, simulator, conditions);
    let mut quiet = conditions.quiet;
    let mut last = None;
    for _ in 0..ATTEMPTS {
        let conditions = Conditions {
            expected: Some(&expected),
            quiet,
            ..*conditions
        };
        let seen = run_under(program, device, &conditions);
        last = first_difference(program, &seen, &expected);
        if last.is_none() {
            break;
        }
        quiet = (quiet * 10).max(Duration::from_millis(2));
    }
    last.map_or(Ok(()), Err)
}

/// How often a program is tried, each time with more time.
const ATTEMPTS: u32 = 3;

fn first_difference(
    program: &Program,
    device: &Outcome,
    simulator: &Outcome,
) -> Option<Difference> {
    let differ = |of: String, device: String, simulator: String| {
        let difference = Difference {
            of,
            device,
            simulator,
            lacks: Vec::new(),
        };
        (difference.device != difference.simulator).then_some(difference)
    };
    let in_error = &simulator.in_error;
    let overrun = simulator.overrun();
    let kept_others = |cq: Number, device: &[Completion], simulator: &[Completion]| {
        let is_open = overrun.contains(&cq) && device.len() == simulator.len();
        if is_open { OVERRUN } else { "" }
    };
    let calls = program.calls.iter().zip(&device.seen).zip(&simulator.seen);
    for (number, ((call, device), simulator)) in calls.enumerate() {
        if device != simulator {
            let at = u32::try_from(number).expect("programs are short");
            let to = if in_error.contains(&at) { IN_ERROR } else { "" };
            let mut of = format!("call {number}, {}{to}", name(call));
            let mut lacking = Vec::new();
            if let (Seen::Completions(device), Seen::Completions(simulator)) = (device, simulator) {
                lacking = lacks(device, simulator, in_error);
                if let Call::Poll { cq, .. } = call {
                    of += kept_others(*cq, device, simulator);
                }
            }
            return Some(Difference {
                of,
                device: device.to_string(),
                simulator: simulator.to_string(),
                lacks: lacking,
            });
        }
    }
    // The same objects are left, since all calls went the same way.
    for ((cq, device), (_, simulator)) in device.completions.iter().zip(&simulator.completions) {
        let lacks = lacks(device, simulator, in_error);
        let of = format!("left on cq {cq}{}", kept_others(*cq, device, simulator));
        let [device, simulator] =
            [device, simulator].map(|list| Seen::Completions(list.clone()).to_string());
        let difference = differ(of, device, simulator);
        if let Some(difference) = difference {
            return Some(Difference {
                lacks,
                ..difference
            });
        }
    }
    for ((qp, device), (_, simulator)) in device.states.iter().zip(&simulator.states) {
        let (device, simulator) = (device.to_string(), simulator.to_string());
        let difference = differ(format!("state of qp {qp}"), device, simulator);
        if difference.is_some() {
            return difference;
        }
    }
    for ((channel, device), (_, simulator)) in device.events.iter().zip(&simulator.events) {
        let of = format!("events left on channel {channel}");
        // Completions of one moment come in any order.
        let [device, simulator] = [device, simulator].map(|cqs| {
            let mut cqs = cqs.clone();
            cqs.sort_unstable();
            format!("{cqs:?}")
        });
        let difference = differ(of, device, simulator);
        if difference.is_some() {
            return difference;
        }
    }
    let async_events = device.async_events.iter().zip(&simulator.async_events);
    for ((context, device), (_, simulator)) in async_events {
        let [device, simulator] = [device, simulator].map(|list| {
            // Objects that fail together are reported in any order.
            let mut all: Vec<_> = list.iter().map(Seen::to_string).collect();
            all.sort();
            all.join(", ")
        });
        let mut of = format!("asynchronous events left on context {context}");
        if !in_error.is_empty() {
            of = format!("{of}, after sends{IN_ERROR}");
        }
        let difference = differ(of, device, simulator);
        if difference.is_some() {
            return difference;
        }
    }
    for (device, simulator) in device.regions.iter().zip(&simulator.regions) {
        let difference = bytes_differ(device, simulator);
        if difference.is_some() {
            return difference;
        }
    }
    differ(
        "after the program".to_string(),
        device.faults.join("; "),
        simulator.faults.join("; "),
    )
}

/// What the device lacks of the simulator's completions, if it has nothing else.
fn lacks(device: &[Completion], simulator: &[Completion], in_error: &[u32]) -> Vec<String> {
    let mut of_device = device.iter().peekable();
    let lacking = simulator
        .iter()
        .filter(|completion| of_device.next_if_eq(completion).is_none());
    let text = |completion: &Completion| {
        let of = if in_error.contains(&completion.wr_id.call) {
            IN_ERROR
        } else {
            ""
        };
        format!("{completion}{of}")
    };
    let lacking: Vec<_> = lacking.map(text).collect();
    match of_device.next() {
        None => lacking,
        Some(_) => Vec::new(),
    }
}

/// The remark about a send to a queue pair in ERR.
const IN_ERROR: &str = ", to a qp in ERR";

/// The remark about as many completions of a CQ that overran on the simulator, but others.
const OVERRUN: &str = ", others of a cq that overran";

/// The first bytes of a region that differ, where both are defined.
fn bytes_differ(device: &Region, simulator: &Region) -> Option<Difference> {
    let is_defined = |at: usize| {
        let mut all = device.undefined.iter().chain(&simulator.undefined);
        !all.any(|(start, end)| (*start as usize..*end as usize).contains(&at))
    };
    let mut pairs = device.bytes.iter().zip(&simulator.bytes).enumerate();
    let (at, (in_device, in_simulator)) = pairs.find(|(at, (a, b))| a != b && is_defined(*at))?;
    Some(Difference {
        of: format!("byte {at} of {}", device.of),
        device: format!("{in_device:#04x}"),
        simulator: format!("{in_simulator:#04x}"),
        lacks: Vec::new(),
    })
}

/// What a call is called.
fn name(call: &Call) -> String {
    let text = format!("{call:?}");
    let end = text.find(' ').unwrap_or(text.len());
    text[..end].to_string()
}
