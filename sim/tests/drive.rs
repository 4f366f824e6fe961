//! Several parties on one thread, as closures: `verbs_api::drive`.

mod side;

use core::time::Duration;

use side::{Side, sim};
use verbs_api::lab::{Fault, Lab, PacketFilter};
use verbs_api::{ErrorKind, Result, Wait, drive};
use verbs_sim::Mode;

/// Sends the messages that its peer answers, one after the other.
struct Client {
    side: Side,
    left: u64,
}

impl Client {
    fn turn(&mut self) -> Result<bool> {
        for wc in self.side.cq.poll()? {
            if wc.ok()?.opcode.is_recv() {
                self.left -= 1;
                self.ask()?;
            }
        }
        Ok(self.left == 0)
    }

    fn ask(&self) -> Result<()> {
        if self.left > 0 {
            self.side.expect(0)?;
            self.side.send(0)?;
        }
        Ok(())
    }
}

/// Answers messages. Returns whether these were all.
fn answer(side: &Side, left: &mut u64) -> Result<bool> {
    for wc in side.cq.poll()? {
        if wc.ok()?.opcode.is_recv() {
            *left -= 1;
            side.expect(0)?;
            side.send(0)?;
        }
    }
    Ok(*left == 0)
}

/// Runs both for some rounds. Returns how long it took.
fn run(mode: Mode, lost: Option<u64>, rounds: u64) -> Result<Duration> {
    let sim = sim(mode);
    let [near, far] = Side::pair(&sim)?;
    if let Some(nth) = lost {
        sim.inject(Fault::drop(PacketFilter::EVERY.from(1)).nth(nth))?;
    }
    far.expect(0)?;
    let mut client = Client {
        side: near,
        left: rounds,
    };
    client.ask()?;
    let mut left = rounds;
    let client = &mut || client.turn();
    let server = &mut || answer(&far, &mut left);
    drive(&*sim, &mut [("client", client), ("server", server)])?;
    Ok(sim.now())
}

#[test]
fn parties_take_turns_in_each_mode() -> Result<()> {
    // A message and its answer take a microsecond each.
    let stepped = run(Mode::Stepped, None, 5)?;
    assert_eq!(stepped, Duration::from_micros(10));
    assert_eq!(run(Mode::Inline, None, 5)?, Duration::ZERO);
    run(Mode::RealTime, None, 5).map(drop)
}

#[test]
fn a_lost_packet_is_sent_again_when_no_party_has_anything_to_do() -> Result<()> {
    for mode in [Mode::Stepped, Mode::Inline] {
        for lost in 1..=4 {
            let took = run(mode, Some(lost), 5)?;
            // One timeout of 67 ms.
            assert!(
                took < Duration::from_millis(70),
                "{mode:?}, {lost}: {took:?}"
            );
        }
    }
    run(Mode::RealTime, Some(2), 5).map(drop)
}

#[test]
fn parties_that_wait_for_each_other_are_named() -> Result<()> {
    let sim = sim(Mode::Stepped);
    let [near, far] = Side::pair(&sim)?;
    let is_there = |side: &Side| Ok(side.cq.poll()?.next().is_some());
    let mut parties: [verbs_api::Party<'_>; 3] = [
        ("done", &mut || Ok(true)),
        ("client", &mut || is_there(&near)),
        ("server", &mut || is_there(&far)),
    ];
    let error = drive(&*sim, &mut parties).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Stalled);
    let text = "nothing is left to happen, and these parties are not done: client, server";
    assert!(error.to_string().contains(text), "{error}");
    // Waits move the clock again.
    near.send(0)?;
    far.expect(0)?;
    assert!(near.cq.wait(Wait::Forever)?.is_some());
    Ok(())
}

/// The receiver is never ready, and the sender tries forever.
#[test]
fn a_run_in_which_only_timers_fire_ends_at_the_horizon() -> Result<()> {
    let sim = sim(Mode::Stepped);
    let [near, _far] = Side::pair(&sim)?;
    near.send(0)?;
    let client = &mut || Ok(near.cq.poll()?.next().is_some());
    let error = drive(&*sim, &mut [("client", client)]).unwrap_err();
    assert!(error.to_string().contains("timers still run"), "{error}");
    assert!(sim.now() <= sim.horizon());
    Ok(())
}

#[test]
fn the_first_error_ends_the_run_and_a_wait_is_one() -> Result<()> {
    let sim = sim(Mode::Stepped);
    let [near, _far] = Side::pair(&sim)?;
    let mut others = 0;
    let waits = &mut || Ok(near.channel.get_event(Wait::Forever)?.is_some());
    let other = &mut || {
        others += 1;
        Ok(false)
    };
    let error = drive(&*sim, &mut [("waits", waits), ("other", other)]).unwrap_err();
    assert_eq!((error.kind(), others), (ErrorKind::Usage, 0));
    Ok(())
}
