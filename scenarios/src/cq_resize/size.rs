//! Which sizes there are, and that they are real.

use verbs_api::{CqInit, ErrorKind};

use super::refused::refused;
use crate::cq_create::{SIZES, expect_size, largest_size, sizes_above_the_limit};
use crate::cq_ovr::{Queue, SmallCq};
use crate::failure::{check, check_eq, in_case};
use crate::{Bench, OfRule, Result, expect_err, wr_ids};

scenario!(empty_cq_takes_any_size: "CQ-RESIZE-02", "CQ-RESIZE-08"; needs RESIZE_CQ);
fn empty_cq_takes_any_size(bench: &Bench<'_>) -> Result {
    for size in SIZES {
        let cq = bench.create_cq(bench.ctx_a(), &CqInit::new(1))?;
        bench.resize_cq(cq, size).rule("CQ-RESIZE-02")?;
        expect_size(bench, cq, size, "CQ-RESIZE-08")?;
    }
    let cq = bench.create_cq(bench.ctx_a(), &CqInit::new(1))?;
    for size in SIZES {
        bench.resize_cq(cq, size).rule("CQ-RESIZE-02")?;
        expect_size(bench, cq, size, "CQ-RESIZE-08")?;
    }
    Ok(())
}

scenario!(limits_of_the_size_are_inclusive:
    "CQ-RESIZE-11", "CQ-RESIZE-14", "CQ-RESIZE-13", "CQ-RESIZE-26"; needs RESIZE_CQ);
fn limits_of_the_size_are_inclusive(bench: &Bench<'_>) -> Result {
    let cq = bench.create_cq(bench.ctx_a(), &CqInit::new(16))?;
    let mut invalid = sizes_above_the_limit(bench)?;
    invalid.extend([0, -1, i32::MIN]);
    for size in invalid {
        refused(bench, cq, size, ErrorKind::Invalid, "CQ-RESIZE-14")?;
    }
    bench.resize_cq(cq, 1).rule("CQ-RESIZE-11")?;
    let max = largest_size(bench)?;
    match bench.resize_cq(cq, max) {
        Ok(()) => expect_size(bench, cq, max, "CQ-RESIZE-11"),
        error => expect_err(error, ErrorKind::NoMemory, "CQ-RESIZE-11").map(drop),
    }
}

scenario!(larger_cq_holds_more_completions: "CQ-RESIZE-01"; needs RESIZE_CQ);
fn larger_cq_holds_more_completions(bench: &Bench<'_>) -> Result {
    for queue in Queue::BOTH {
        let small = SmallCq::new(bench, queue, 4)?;
        let before = small.cqe()?;
        let count = before + 12;
        bench
            .resize_cq(small.cq, count as i32)
            .rule("CQ-RESIZE-01")?;
        small.fill(0..count).rule("CQ-RESIZE-01")?;
        bench.no_async_event(small.end.context, "CQ-RESIZE-01")?;
        let got = bench.successes(small.cq, count as usize);
        let got = wr_ids(&got.rule("CQ-RESIZE-01")?);
        check_eq!("CQ-RESIZE-01", got, (0..count).collect::<Vec<_>>());
    }
    Ok(())
}

scenario!(size_told_is_the_capacity: "CQ-RESIZE-12"; needs RESIZE_CQ);
fn size_told_is_the_capacity(bench: &Bench<'_>) -> Result {
    let changes = [(Queue::Send, 4, 9), (Queue::Recv, 31, 6)];
    for (queue, from, to) in changes {
        let case = format!("{queue:?} CQ, {from} to {to}");
        in_case(&case, holds_what_it_tells(bench, queue, from, to))?;
    }
    Ok(())
}

fn holds_what_it_tells(bench: &Bench<'_>, queue: Queue, from: i32, to: i32) -> Result {
    let small = SmallCq::new(bench, queue, from)?;
    bench.resize_cq(small.cq, to).rule("CQ-RESIZE-12")?;
    let cqe = small.cqe()?;
    check!(
        "CQ-RESIZE-12",
        cqe >= to as u64,
        format!("at least {to}"),
        "{cqe}"
    );
    small.fill(0..cqe)?;
    bench.no_async_event(small.end.context, "CQ-RESIZE-12")?;
    bench
        .successes(small.cq, cqe as usize)
        .rule("CQ-RESIZE-12")?;
    small.overrun("CQ-RESIZE-12")?;
    Ok(())
}

scenario!(example_of_2000_entries: "CQ-RESIZE-17"; needs RESIZE_CQ);
fn example_of_2000_entries(bench: &Bench<'_>) -> Result {
    if largest_size(bench)? < 2000 {
        return Ok(());
    }
    for before in [16, 1999, 2000] {
        let cq = bench.create_cq(bench.ctx_a(), &CqInit::new(before))?;
        bench.resize_cq(cq, 2000).rule("CQ-RESIZE-17")?;
        let cqe = bench.query_cq(cq)?.cqe;
        check!(
            "CQ-RESIZE-17",
            cqe >= 2000,
            "at least 2000 entries",
            "{cqe}"
        );
    }
    Ok(())
}

scenario!(smaller_size_is_taken_or_left: "CQ-RESIZE-09", "CQ-RESIZE-21"; needs RESIZE_CQ);
fn smaller_size_is_taken_or_left(bench: &Bench<'_>) -> Result {
    for size in [63, 33, 32, 31, 8, 2, 1] {
        let cq = bench.create_cq(bench.ctx_a(), &CqInit::new(64))?;
        let before = bench.query_cq(cq)?.cqe;
        bench.resize_cq(cq, size).rule("CQ-RESIZE-09")?;
        let cqe = bench.query_cq(cq)?.cqe;
        let between = (size as u32..=before).contains(&cqe);
        check!(
            "CQ-RESIZE-09",
            between,
            format!("{size} to {before}"),
            "{cqe}"
        );
        match bench.behavior()?.shrink {
            Some(true) => expect_size(bench, cq, size, "CQ-RESIZE-21")?,
            Some(false) => check_eq!("CQ-RESIZE-21", cqe, before),
            None => {}
        }
    }
    Ok(())
}

scenario!(present_size_changes_nothing: "CQ-RESIZE-28"; needs RESIZE_CQ);
fn present_size_changes_nothing(bench: &Bench<'_>) -> Result {
    for size in SIZES {
        let cq = bench.create_cq(bench.ctx_a(), &CqInit::new(size))?;
        let before = bench.query_cq(cq)?;
        let same = bench.resize_cq(cq, before.cqe as i32);
        same.rule("CQ-RESIZE-28")?;
        check_eq!("CQ-RESIZE-28", bench.query_cq(cq)?, before);
    }
    Ok(())
}

scenario!(shrunk_to_what_is_there_overruns_with_the_next: "CQ-RESIZE-07"; needs RESIZE_CQ);
fn shrunk_to_what_is_there_overruns_with_the_next(bench: &Bench<'_>) -> Result {
    for queue in Queue::BOTH {
        let small = SmallCq::new(bench, queue, 16)?;
        small.fill(0..5)?;
        bench.resize_cq(small.cq, 5).rule("CQ-RESIZE-07")?;
        let cqe = small.cqe()?;
        small.fill(5..cqe)?;
        bench.no_async_event(small.end.context, "CQ-RESIZE-07")?;
        small.push_all(cqe..small.too_many()?)?;
        small.cq_err("CQ-RESIZE-07")?;
    }
    Ok(())
}
