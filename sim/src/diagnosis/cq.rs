//! CQs that have overrun or may overrun, and unpolled completions.

use verbs_api::site::Site;
use verbs_api::{Cq, WcStatus};

use super::fact::CqSeen;
use super::journal::{Fresh, Journal, MOST};
use super::problem::{Noted, problems};
use super::words::{counted, place_named, waiting};
use super::{Class, words};

problems! {
    /// Completions were lost because a CQ was full.
    Overrun {
        /// The CQ.
        cq: Cq,
        /// The number of completions it can hold.
        cqe: u32,
        /// The number of lost completions.
        lost: u64,
        /// The numbers of the queue pairs whose completions were lost, at most eight.
        qps: Vec<u32>,
    }
    is Class::Overrun,
    |names| {
        let qps: Vec<_> = qps.iter().map(|qp| format!("qp {qp:#x}")).collect();
        format!(
            "{}, of {}, has overrun: {} lost, of {}",
            names.cq(*cq),
            counted(*cqe, "entry", "entries"),
            counted(*lost, "completion was", "completions were"),
            qps.join(", "),
        )
    };

    /// More completions may be added to a CQ than it has room for.
    SmallCq {
        /// The CQ.
        cq: Cq,
        /// The number of completions it can hold.
        cqe: u32,
        /// The number of completions in it.
        unpolled: u32,
        /// The number of outstanding work requests that complete in it.
        outstanding: u64,
    }
    is Class::SmallCq,
    |names| format!(
        "{}, of {}, holds {}, and {} may yet complete in it",
        names.cq(*cq),
        counted(*cqe, "entry", "entries"),
        counted(*unpolled, "completion", "completions"),
        counted(*outstanding, "work request", "work requests"),
    );

    /// No completion of a CQ was ever polled.
    NeverPolled {
        /// The CQ.
        cq: Cq,
        /// The number of waiting completions that are not flushes.
        unpolled: u32,
    }
    is Class::NeverPolled,
    |names| format!("{} was never polled: {} in it", names.cq(*cq), waiting(*unpolled));

    /// Completions wait in a CQ.
    Unpolled {
        /// The CQ.
        cq: Cq,
        /// The number of waiting completions.
        unpolled: u32,
    }
    is Class::Unpolled,
    |names| {
        let completions = counted(*unpolled, "completion", "completions");
        format!("{completions} of {} not polled", names.cq(*cq))
    };

    /// A completion from before the RESET of a queue pair was polled after new work was posted.
    /// The place is that of the poll.
    Outlived {
        /// Number of the QP.
        qp_num: u32,
        /// The program's number for the completed work.
        wr_id: u64,
        /// Whether it is a receive.
        is_receive: bool,
        /// The status of the completion.
        status: WcStatus,
        /// Where the queue pair was moved to RESET, if that is known.
        reset_at: Option<Site>,
    }
    is Class::Outlived,
    |names| {
        let kind = if *is_receive { "receive" } else { "send" };
        let reset_at = place_named(reset_at.map(|site| ("at", site)), names);
        format!(
            "the completion of {kind} {wr_id:#x} ({status}) was polled after new work was posted, and is from before the RESET of qp {qp_num:#x}{reset_at}"
        )
    };
}

impl Journal {
    /// Records findings about a CQ that is destroyed. Its overrun is the better finding, if there
    /// is one.
    pub(crate) fn cq_goes(&mut self, seen: &CqSeen) {
        if self.has_overrun(seen.cq) {
            return;
        }
        // After a failure a program may stop without polling the rest.
        let found = seen.lost_wakeup().filter(|_| seen.goes_on());
        let found = found.or_else(|| seen.other_polled(true));
        let found = found.or_else(|| seen.never_polled(None));
        for Noted { problem, site, .. } in seen.unread().into_iter().chain(found) {
            self.note(problem, site);
        }
    }

    /// Records that a completion of a queue pair is lost because its CQ is full.
    pub(crate) fn lost(&mut self, cq: Cq, cqe: u32, qp_num: u32, made_at: Option<Site>) {
        // Further CQs are not recorded, so that memory has a limit.
        if self.overruns.len() == MOST && !self.has_overrun(cq) {
            return;
        }
        let (overrun, _) = self.overruns.entry(cq).or_insert_with(|| {
            self.news.add(Fresh::Overrun(cq));
            let (lost, qps) = (0, Vec::new());
            (Overrun { cq, cqe, lost, qps }, made_at)
        });
        (overrun.cqe, overrun.lost) = (cqe, overrun.lost + 1);
        // A finding prints no more numbers than this.
        if overrun.qps.len() < words::MOST && !overrun.qps.contains(&qp_num) {
            overrun.qps.push(qp_num);
        }
    }

    /// Completions that were lost.
    pub(super) fn overruns(&self) -> impl Iterator<Item = Noted> {
        let overruns = self.overruns.values();
        overruns.map(|(overrun, made_at)| Noted::at(overrun.clone(), *made_at))
    }
}

impl CqSeen {
    /// The best finding about the contents of the CQ at the end. `posted_at` is where the oldest
    /// unpolled work was posted.
    pub(super) fn at_the_end(&self, posted_at: Option<Site>) -> Option<Noted> {
        let (cq, unpolled) = (self.cq, self.unpolled);
        let posted_at = posted_at.or(self.usage.unpolled_at);
        let rest = Noted::at(Unpolled { cq, unpolled }, posted_at);
        // The most specific finding wins, since the others are its consequences.
        let found = self.asleep().filter(|_| self.goes_on());
        let found = found.or_else(|| self.other_polled(false));
        let found = found.or_else(|| self.not_armed_again());
        let found = found.or_else(|| self.never_polled(posted_at));
        found.or_else(|| (unpolled > 0).then_some(rest))
    }

    /// Whether its outstanding work may exceed its room.
    pub(super) fn too_small(&self, outstanding: u64) -> Option<Noted> {
        let problem = SmallCq {
            cq: self.cq,
            cqe: self.cqe,
            unpolled: self.unpolled,
            outstanding,
        };
        (u64::from(self.unpolled) + outstanding > self.cqe.into())
            .then(|| Noted::at(problem, self.made_at))
    }

    /// Work has completed in a CQ that was never polled. An unread event of it is the better
    /// finding.
    fn never_polled(&self, posted_at: Option<Site>) -> Option<Noted> {
        let (cq, unpolled) = (self.cq, self.successes);
        let posted_at = self.usage.unpolled_at.or(posted_at);
        (unpolled > 0 && !self.usage.was_polled && self.unread().is_none())
            .then(|| Noted::at(NeverPolled { cq, unpolled }, posted_at))
    }
}
