//! The same program on two backends.

use core::fmt;
use core::time::Duration;

use verbs_api::Verbs;

use super::call::Call;
use super::outcome::{Outcome, Region, Seen};
use super::run::{Conditions, run_under};
use super::{Pace, Program};

/// The first thing that came out differently.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Of what: the call, or what was looked at after the program.
    pub of: String,
    /// What came of it on the device.
    pub device: String,
    /// What came of it on the simulator.
    pub simulator: String,
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
/// A device that was only too slow for [`quiet`](Conditions::quiet) gets more time, twice; only what
/// is left then is a difference.
///
/// # Errors
/// The difference.
///
/// # Panics
/// If the program's work may meet: its outcome is then nobody's fault.
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
        };
        (difference.device != difference.simulator).then_some(difference)
    };
    let calls = program.calls.iter().zip(&device.seen).zip(&simulator.seen);
    for (number, ((call, device), simulator)) in calls.enumerate() {
        if device != simulator {
            let of = format!("call {number}, {}", name(call));
            return differ(of, device.to_string(), simulator.to_string());
        }
    }
    // The same objects are left, since all calls went the same way.
    for ((cq, device), (_, simulator)) in device.completions.iter().zip(&simulator.completions) {
        let [device, simulator] =
            [device, simulator].map(|list| Seen::Completions(list.clone()).to_string());
        let difference = differ(format!("left on cq {cq}"), device, simulator);
        if difference.is_some() {
            return difference;
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
        let difference = differ(of, format!("{device:?}"), format!("{simulator:?}"));
        if difference.is_some() {
            return difference;
        }
    }
    let async_events = device.async_events.iter().zip(&simulator.async_events);
    for ((context, device), (_, simulator)) in async_events {
        let [device, simulator] = [device, simulator].map(|list| {
            // Objects that fail together are told of in any order.
            let mut all: Vec<_> = list.iter().map(Seen::to_string).collect();
            all.sort();
            all.join(", ")
        });
        let of = format!("asynchronous events left on context {context}");
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

/// The first bytes of a region that differ, where both are defined.
fn bytes_differ(device: &Region, simulator: &Region) -> Option<Difference> {
    let is_defined = |at: usize| {
        let mut all = device.undefined.iter().chain(&simulator.undefined);
        !all.any(|(start, end)| (*start as usize..*end as usize).contains(&at))
    };
    let mut pairs = device.bytes.iter().zip(&simulator.bytes).enumerate();
    let (at, (in_device, in_simulator)) = pairs.find(|(at, (a, b))| a != b && is_defined(*at))?;
    Some(Difference {
        of: format!("byte {at} of mr {}", device.mr),
        device: format!("{in_device:#04x}"),
        simulator: format!("{in_simulator:#04x}"),
    })
}

/// What a call is called.
fn name(call: &Call) -> String {
    let text = format!("{call:?}");
    let end = text.find(' ').unwrap_or(text.len());
    text[..end].to_string()
}
