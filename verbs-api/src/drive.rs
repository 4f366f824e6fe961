//! Several parties on one thread, without futures.

use std::thread;

use crate::error::{Cause, Error, ErrorKind, Result, Verb};
use crate::lab::Lab;
use crate::verbs::Verbs;

/// A party of [`drive`]: its name, and a closure that does what can be done without waiting. The
/// closure returns whether the party is done, and is then not called again.
pub type Party<'p> = (&'p str, &'p mut dyn FnMut() -> Result<bool>);

/// Runs several parties on one thread, in turns, until all are done.
///
/// In virtual time the clock moves when no party has anything to do: when each has had a turn, and
/// none of them has read, posted or changed anything. Then the next packet arrives, or the next
/// timer fires. Nothing else moves the clock, so no timer fires while a party can read a completion
/// or an event. In real time, as on a device, the parties take turns all the time.
///
/// ```no_run
/// use verbs_api::owned::{Qp, SendWr};
/// use verbs_api::{Result, Verbs, drive};
///
/// # fn f(verbs: &dyn Verbs, client: &Qp, server: &Qp) -> Result<()> {
/// client.post_send(SendWr::send(0, &[]))?;
/// let has_completed = |qp: &Qp| Ok(qp.send_cq().poll()?.next().is_some());
/// drive(
///     verbs,
///     &mut [
///         ("client", &mut || has_completed(client)),
///         ("server", &mut || has_completed(server)),
///     ],
/// )
/// # }
/// ```
///
/// A party that waits for a time of its own, and not for the device, needs an executor, such as
/// that of `verbs_sim::rt`. One that changes something in each turn keeps time from passing.
///
/// # Errors
/// The first error of a party. In virtual time `Stalled` if nothing is left to happen, or nothing
/// but timers within the [horizon](Lab::horizon): it names the parties that are not done. In the
/// simulator's stepped mode a verb that may wait fails with `Usage`, because it would hold up the
/// other parties; so does a `drive` within another one or within an executor.
pub fn drive(verbs: &dyn Verbs, parties: &mut [Party<'_>]) -> Result<()> {
    let lab = verbs.lab();
    let _hold = lab.map(Hold::new).transpose()?;
    let mut is_done = vec![false; parties.len()];
    let mut active_at = lab.map(Lab::now).unwrap_or_default();
    loop {
        let before = lab.map(Lab::activity);
        let mut has_ended = false;
        for ((_, turn), is_done) in parties.iter_mut().zip(&mut is_done) {
            if !*is_done {
                *is_done = turn()?;
                has_ended |= *is_done;
            }
        }
        if is_done.iter().all(|is_done| *is_done) {
            return Ok(());
        }
        let Some(lab) = lab else {
            thread::yield_now();
            continue;
        };
        if has_ended || before != Some(lab.activity()) {
            active_at = lab.now();
            continue;
        }
        let limit = active_at.saturating_add(lab.horizon());
        match lab.step(limit.saturating_sub(lab.now())) {
            Ok(true) => {}
            Ok(false) => return Err(stalled(lab, parties, &is_done)),
            // Time is real, and goes on alone.
            Err(error) if error.kind() == ErrorKind::NotSupported => thread::yield_now(),
            Err(error) => return Err(error),
        }
    }
}

fn stalled(lab: &dyn Lab, parties: &[Party<'_>], is_done: &[bool]) -> Error {
    let waiting = parties
        .iter()
        .zip(is_done)
        .filter(|(_, is_done)| !**is_done);
    let names: Vec<_> = waiting.map(|((name, _), _)| *name).collect();
    let why = match lab.next_due() {
        None => "nothing is left to happen",
        Some(_) => "the horizon is reached while timers still run",
    };
    let text = format!(
        "{why}, and these parties are not done: {}",
        names.join(", ")
    );
    Error::new(Verb::Lab, ErrorKind::Stalled, Cause::Text(text.into()))
}

/// The clock of a simulation, which only [`drive`] moves until this is dropped.
struct Hold<'l>(Option<&'l dyn Lab>);

impl<'l> Hold<'l> {
    fn new(lab: &'l dyn Lab) -> Result<Self> {
        match lab.hold_clock(true) {
            Ok(()) => Ok(Self(Some(lab))),
            // Polls and waits do not move it anyway.
            Err(error) if error.kind() == ErrorKind::NotSupported => Ok(Self(None)),
            Err(error) => Err(error),
        }
    }
}

impl Drop for Hold<'_> {
    fn drop(&mut self) {
        if let Some(lab) = self.0 {
            // Only a second hold is refused.
            let _ = lab.hold_clock(false);
        }
    }
}
