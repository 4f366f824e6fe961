//! Which sizes there are, and that they are real.

use verbs_api::{CqInit, ErrorKind};

use super::refused::refused;
use crate::cq_create::{SIZES, expect_size, largest_size, sizes_above_the_limit};
use crate::cq_ovr::{Queue, SmallCq};
use crate::failure::{check, check_eq, in_case};
use crate::{OfRule, Result, Setup, expect_err, wr_ids};

scenario!(empty_cq_takes_any_size: "CQ-RESIZE-02", "CQ-RESIZE-08"; needs RESIZE_CQ);
fn empty_cq_takes_any_size(setup: &Setup<'_>) -> Result {
    for size in SIZES {
        let cq = setup.create_cq(setup.ctx_a(), &CqInit::new(1))?;
        setup.resize_cq(cq, size).rule("CQ-RESIZE-02")?;
        expect_size(setup, cq, size, "CQ-RESIZE-08")?;
    }
    let cq = setup.create_cq(setup.ctx_a(), &CqInit::new(1))?;
    for size in SIZES {
        setup.resize_cq(cq, size).rule("CQ-RESIZE-02")?;
        expect_size(setup, cq, size, "CQ-RESIZE-08")?;
    }
    Ok(())
}

scenario!(limits_of_the_size_are_inclusive:
    "CQ-RESIZE-11", "CQ-RESIZE-14", "CQ-RESIZE-13", "CQ-RESIZE-26"; needs RESIZE_CQ);
fn limits_of_the_size_are_inclusive(setup: &Setup<'_>) -> Result {
    let cq = setup.create_cq(setup.ctx_a(), &CqInit::new(16))?;
    let mut invalid = sizes_above_the_limit(setup)?;
    invalid.extend([0, -1, i32::MIN]);
    for size in invalid {
        refused(setup, cq, size, ErrorKind::Invalid, "CQ-RESIZE-14")?;
    }
    setup.resize_cq(cq, 1).rule("CQ-RESIZE-11")?;
    let max = largest_size(setup)?;
    match setup.resize_cq(cq, max) {
        Ok(()) => expect_size(setup, cq, max, "CQ-RESIZE-11"),
        error => expect_err(error, ErrorKind::NoMemory, "CQ-RESIZE-11").map(drop),
    }
}

scenario!(larger_cq_holds_more_completions: "CQ-RESIZE-01"; needs RESIZE_CQ);
fn larger_cq_holds_more_completions(setup: &Setup<'_>) -> Result {
    for queue in Queue::BOTH {
        let small = SmallCq::new(setup, queue, 4)?;
        let before = small.cqe()?;
        let count = before + 12;
        setup
            .resize_cq(small.cq, count as i32)
            .rule("CQ-RESIZE-01")?;
        small.fill(0..count).rule("CQ-RESIZE-01")?;
        setup.no_async_event(small.end.context, "CQ-RESIZE-01")?;
        let got = setup.successes(small.cq, count as usize);
        let got = wr_ids(&got.rule("CQ-RESIZE-01")?);
        check_eq!("CQ-RESIZE-01", got, (0..count).collect::<Vec<_>>());
    }
    Ok(())
}

scenario!(size_told_is_the_capacity: "CQ-RESIZE-12"; needs RESIZE_CQ);
fn size_told_is_the_capacity(setup: &Setup<'_>) -> Result {
    let changes = [(Queue::Send, 4, 9), (Queue::Recv, 31, 6)];
    for (queue, from, to) in changes {
        let case = format!("{queue:?} CQ, {from} to {to}");
        in_case(&case, holds_what_it_tells(setup, queue, from, to))?;
    }
    Ok(())
}

fn holds_what_it_tells(setup: &Setup<'_>, queue: Queue, from: i32, to: i32) -> Result {
    let small = SmallCq::new(setup, queue, from)?;
    setup.resize_cq(small.cq, to).rule("CQ-RESIZE-12")?;
    let cqe = small.cqe()?;
    check!(
        "CQ-RESIZE-12",
        cqe >= to as u64,
        format!("at least {to}"),
        "{cqe}"
    );
    small.fill(0..cqe)?;
    setup.no_async_event(small.end.context, "CQ-RESIZE-12")?;
    setup
        .successes(small.cq, cqe as usize)
        .rule("CQ-RESIZE-12")?;
    small.overrun("CQ-RESIZE-12")?;
    Ok(())
}

scenario!(example_of_2000_entries: "CQ-RESIZE-17"; needs RESIZE_CQ);
fn example_of_2000_entries(setup: &Setup<'_>) -> Result {
    if largest_size(setup)? < 2000 {
        return Ok(());
    }
    for before in [16, 1999, 2000] {
        let cq = setup.create_cq(setup.ctx_a(), &CqInit::new(before))?;
        setup.resize_cq(cq, 2000).rule("CQ-RESIZE-17")?;
        let cqe = setup.query_cq(cq)?.cqe;
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
fn smaller_size_is_taken_or_left(setup: &Setup<'_>) -> Result {
    for size in [63, 33, 32, 31, 8, 2, 1] {
        let cq = setup.create_cq(setup.ctx_a(), &CqInit::new(64))?;
        let before = setup.query_cq(cq)?.cqe;
        setup.resize_cq(cq, size).rule("CQ-RESIZE-09")?;
        let cqe = setup.query_cq(cq)?.cqe;
        let between = (size as u32..=before).contains(&cqe);
        check!(
            "CQ-RESIZE-09",
            between,
            format!("{size} to {before}"),
            "{cqe}"
        );
        match setup.behavior()?.shrink {
            Some(true) => expect_size(setup, cq, size, "CQ-RESIZE-21")?,
            Some(false) => check_eq!("CQ-RESIZE-21", cqe, before),
            None => {}
        }
    }
    Ok(())
}

scenario!(present_size_changes_nothing: "CQ-RESIZE-28"; needs RESIZE_CQ);
fn present_size_changes_nothing(setup: &Setup<'_>) -> Result {
    for size in SIZES {
        let cq = setup.create_cq(setup.ctx_a(), &CqInit::new(size))?;
        let before = setup.query_cq(cq)?;
        let same = setup.resize_cq(cq, before.cqe as i32);
        same.rule("CQ-RESIZE-28")?;
        check_eq!("CQ-RESIZE-28", setup.query_cq(cq)?, before);
    }
    Ok(())
}

scenario!(shrunk_to_what_is_there_overruns_with_the_next: "CQ-RESIZE-07"; needs RESIZE_CQ);
fn shrunk_to_what_is_there_overruns_with_the_next(setup: &Setup<'_>) -> Result {
    for queue in Queue::BOTH {
        let small = SmallCq::new(setup, queue, 16)?;
        small.fill(0..5)?;
        setup.resize_cq(small.cq, 5).rule("CQ-RESIZE-07")?;
        let cqe = small.cqe()?;
        small.fill(5..cqe)?;
        setup.no_async_event(small.end.context, "CQ-RESIZE-07")?;
        small.push_all(cqe..small.too_many()?)?;
        small.cq_err("CQ-RESIZE-07")?;
    }
    Ok(())
}
