//! Prints what the search of each model takes: the rows of the table in `docs/model-checking.md`,
//! as far as the checker of this build has them. `models/table` prints the whole.

use std::time::{Duration, Instant};

use verbs_api::{Arm, Cq, Error, Verbs, Wait, Wc};
use verbs_models::library::{Verdict, models};
use verbs_models::{CHECKER, Checker, Harness, Outcome, Report, Search};

fn main() {
    header();
    for (peers, each, bound) in [
        (1, 1, None),
        (1, 2, None),
        (1, 3, None),
        (1, 4, None),
        (1, 6, Some(3)),
        (2, 1, None),
        (2, 2, Some(2)),
        (2, 2, Some(3)),
        (3, 1, Some(2)),
    ] {
        let search = match bound {
            Some(bound) => Search::new().preemptions(bound),
            None => Search::new(),
        };
        let bound = bound.map_or("none".to_owned(), |bound: u32| bound.to_string());
        let about = (peers + 1, u64::from(peers) * each, bound);
        let title = format!("a right loop, peers: {peers}");
        row(&title, about, || {
            search.run(move |harness| scaled(harness, peers, each))
        });
    }
    for model in models() {
        let title = match model.verdict {
            Verdict::Holds => format!("`{}`", model.id),
            Verdict::Fails(_) => format!("`{}`, wrong", model.id),
        };
        let bound = model
            .search
            .bound()
            .map_or("none".to_owned(), |bound| bound.to_string());
        let about = (model.threads, u64::from(model.completions), bound);
        row(&title, about, || model.search.run(model.body));
    }
}

fn header() {
    if CHECKER != Checker::Shuttle {
        println!(
            "| model | threads | completions | bound on preemptions | loom: executions | loom: time |"
        );
        println!("|---|---|---|---|---|---|");
    } else {
        println!("shuttle: executions | shuttle: time |");
        println!("---|---|");
    }
}

fn row(
    title: &str,
    (threads, completions, bound): (u32, u64, String),
    search: impl FnOnce() -> Report,
) {
    let started = Instant::now();
    let report = search();
    let (executions, time) = (report.executions, seconds(started.elapsed()));
    if CHECKER != Checker::Shuttle {
        print!("| {title} | {threads} | {completions} | {bound} | ");
    }
    println!("{executions} | {time} |");
}

fn seconds(time: Duration) -> String {
    match time.as_secs_f64() {
        short if short < 0.01 => "< 0.01 s".to_owned(),
        time => format!("{time:.2} s"),
    }
}

/// A loop, and peers that send `each` messages.
fn scaled(harness: &Harness, peers: u32, each: u64) -> Outcome {
    let total = u64::from(peers) * each;
    let cq = harness.cq(total as i32)?;
    // Before the first thread: what comes after is interleaved with it.
    let links: Result<Vec<_>, _> = (0..peers).map(|_| harness.link(cq, each)).collect();
    harness.spawn("loop", move |harness| consume(harness, cq, total as usize));
    for (peer, link) in links?.into_iter().enumerate() {
        harness.spawn(&format!("peer{peer}"), move |harness| {
            (0..each).try_for_each(|wr_id| link.send(harness, wr_id))
        });
    }
    Ok(())
}

fn consume(harness: &Harness, cq: Cq, mut left: usize) -> Result<(), Error> {
    let verbs = harness.sim();
    loop {
        verbs.req_notify_cq(cq, Arm::NEXT)?;
        left -= verbs.poll_cq(cq, &mut [Wc::default(); 16])?;
        if left == 0 {
            return Ok(());
        }
        let event = verbs.get_cq_event(harness.channel(), Wait::Forever)?;
        verbs.ack_cq_events(event.cq, 1)?;
    }
}
