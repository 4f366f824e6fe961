//! Queues: what was posted, and what of it each CQ may still give.

use std::collections::{BTreeMap, BTreeSet};

use verbs_api::{Context, Cq, Handle, Qp, QpInit, QpState, QpType, Sge, Srq, Wc};

use super::work::{Flow, Found, Pool, What, Work};

/// All CQs, QPs and SRQs.
#[derive(Debug, Default)]
pub(crate) struct Queues {
    cqs: BTreeMap<Cq, CqBook>,
    qps: BTreeMap<Qp, QpBook>,
    srqs: BTreeMap<Srq, SrqBook>,
    /// Counts rounds of all QPs.
    rounds: u64,
    posted: u64,
}

#[derive(Debug)]
struct CqBook {
    /// Entries it has at least.
    size: usize,
    /// More was outstanding than it has entries: completions may have been lost.
    lossy: bool,
    /// By QP number.
    flows: BTreeMap<u32, Flow>,
    /// Work in all flows.
    outstanding: usize,
    srqs: BTreeSet<Srq>,
    /// Some of the work belongs to QPs that were reset or are gone.
    has_ended: bool,
}

#[derive(Clone, Copy, Debug)]
struct QpBook {
    number: u32,
    init: QpInit,
    epoch: u32,
    round: u64,
    in_reset: bool,
    /// Brought to ERR at the end: all its work must complete.
    flushed: bool,
}

#[derive(Debug, Default)]
struct SrqBook {
    pool: Pool,
    /// Where its receives may complete.
    cqs: BTreeSet<Cq>,
}

/// What a completion means.
#[derive(Debug)]
pub(crate) struct Completed {
    pub(crate) found: Found,
    /// Receives of an SRQ that it was of.
    pub(crate) shared: Option<Work>,
    /// Others may have been lost.
    pub(crate) lossy: bool,
    /// The QP that has the number now, if there is just one, and how often it was reset.
    pub(crate) owner: Option<(Qp, u32)>,
    /// Work that is over.
    pub(crate) over: Vec<Work>,
}

impl Queues {
    pub(crate) fn made_cq(&mut self, cq: Cq, cqe: i32) {
        let book = CqBook {
            size: usize::try_from(cqe).unwrap_or(0),
            lossy: false,
            flows: BTreeMap::new(),
            outstanding: 0,
            srqs: BTreeSet::new(),
            has_ended: false,
        };
        self.cqs.insert(cq, book);
    }

    /// A CQ got another size.
    pub(crate) fn resized(&mut self, cq: Cq, cqe: i32) {
        if let Some(book) = self.cqs.get_mut(&cq) {
            book.size = usize::try_from(cqe).unwrap_or(0);
        }
        self.look_for_loss(cq);
    }

    /// A CQ is gone, and its unpolled completions with it; the work that is over.
    pub(crate) fn gone_cq(&mut self, cq: Cq) -> Vec<Work> {
        let flows = self.cqs.remove(&cq).map(|book| book.flows);
        let flows = flows.into_iter().flat_map(BTreeMap::into_values);
        flows.flat_map(Flow::into_work).collect()
    }

    pub(crate) fn made_srq(&mut self, srq: Srq) {
        self.srqs.insert(srq, SrqBook::default());
    }

    pub(crate) fn gone_srq(&mut self, srq: Srq) {
        // Those that were taken may still complete.
        if let Some(book) = self.srqs.get_mut(&srq)
            && book.pool.len() == 0
        {
            self.srqs.remove(&srq);
        }
    }

    pub(crate) fn made_qp(&mut self, qp: Qp, number: u32, init: &QpInit) {
        let book = QpBook {
            number,
            init: *init,
            epoch: 0,
            round: self.next_round(),
            in_reset: true,
            flushed: false,
        };
        self.qps.insert(qp, book);
        for cq in [init.send_cq, init.recv_cq] {
            let Some(cq) = self.cqs.get_mut(&cq) else {
                continue;
            };
            cq.flows.entry(number).or_default().owners.insert(qp);
        }
        if let Some(srq) = init.srq
            && let Some(book) = self.srqs.get_mut(&srq)
            && let Some(cq) = self.cqs.get_mut(&init.recv_cq)
        {
            book.cqs.insert(init.recv_cq);
            cq.srqs.insert(srq);
            cq.flows.entry(number).or_default().srqs.insert(srq);
        }
    }

    /// A QP is gone; its completions may still be there.
    pub(crate) fn gone_qp(&mut self, qp: Qp) {
        self.end(qp);
        if let Some(book) = self.qps.remove(&qp) {
            for flow in flows_of(&mut self.cqs, &book) {
                flow.owners.remove(&qp);
            }
        }
    }

    /// A QP has gone to a state.
    pub(crate) fn changed(&mut self, qp: Qp, state: QpState) {
        let round = self.next_round();
        let Some(book) = self.qps.get_mut(&qp) else {
            return;
        };
        book.in_reset = state == QpState::Reset;
        match state {
            QpState::Reset => {
                (book.round, book.epoch) = (round, book.epoch + 1);
                self.end(qp);
            }
            QpState::Rts => book.round = round,
            _ => {}
        }
    }

    /// Brought to ERR at the end.
    pub(crate) fn flushed(&mut self, qp: Qp) {
        if let Some(book) = self.qps.get_mut(&qp) {
            book.flushed = true;
        }
    }

    /// The QPs that may hold work.
    pub(crate) fn qps_with_work(&self) -> Vec<Qp> {
        let all = self.qps.iter();
        all.filter(|(_, book)| !book.in_reset)
            .map(|(qp, _)| *qp)
            .collect()
    }

    pub(crate) fn cqs(&self) -> Vec<Cq> {
        self.cqs.keys().copied().collect()
    }

    /// Work was posted on a QP; the CQ that it completes on.
    pub(crate) fn post(&mut self, qp: Qp, work: Work) -> Option<Cq> {
        let book = self.qps.get(&qp)?;
        let (cq, signaled) = match work.what {
            What::Send(_) => (book.init.send_cq, work.signaled || book.init.sq_sig_all),
            What::Recv => (book.init.recv_cq, true),
        };
        self.posted += 1;
        let work = Work {
            number: self.posted,
            round: book.round,
            epoch: book.epoch,
            signaled,
            ..work
        };
        let cq_book = self.cqs.get_mut(&cq)?;
        cq_book.flows.entry(book.number).or_default().push(work);
        cq_book.outstanding += 1;
        self.look_for_loss(cq);
        Some(cq)
    }

    /// A receive was posted to an SRQ; the CQs that it may complete on.
    pub(crate) fn post_shared(&mut self, srq: Srq, work: Work) -> Vec<Cq> {
        self.posted += 1;
        let number = self.posted;
        let Some(book) = self.srqs.get_mut(&srq) else {
            return Vec::new();
        };
        book.pool.push(Work { number, ..work });
        let cqs: Vec<Cq> = book.cqs.iter().copied().collect();
        for cq in &cqs {
            self.look_for_loss(*cq);
        }
        cqs
    }

    /// A completion was polled: what it is of, or what is wrong with it.
    pub(crate) fn complete(&mut self, cq: Cq, wc: &Wc) -> Result<Completed, String> {
        let Some(book) = self.cqs.get_mut(&cq) else {
            return Err(format!("{cq} is not there, and gave {wc}"));
        };
        let lossy = book.lossy;
        let Some(flow) = book.flows.get_mut(&wc.qp_num) else {
            return Err(format!(
                "{cq} gave {wc}, and no queue pair of that number completes on it"
            ));
        };
        let srqs = &mut self.srqs;
        let has = |srq: &&Srq| srqs.get(srq).is_some_and(|book| book.pool.has(wc.wr_id));
        let srq = flow.srqs.iter().find(has).copied();
        let may_be_recv = !is_surely_send(wc);
        let mut over = Vec::new();
        let Some(found) = flow.complete(wc, lossy, srq.is_some() && may_be_recv, &mut over) else {
            let shared = match flow.srqs.is_empty() {
                true => "",
                false => ", and no SRQ of it has such a receive",
            };
            return Err(format!("{cq} gave {wc}, but {}{shared}", flow.expected(),));
        };
        book.outstanding -= over.len();
        let mut owners = flow.owners.iter();
        let owner = owners.next().filter(|_| owners.next().is_none());
        let owner = owner.and_then(|qp| Some((*qp, self.qps.get(qp)?.epoch)));
        let shared = match found {
            Found::Shared => srq.and_then(|srq| srqs.get_mut(&srq)?.pool.take(wc.wr_id)),
            _ => None,
        };
        Ok(Completed {
            found,
            shared,
            lossy,
            owner,
            over,
        })
    }

    /// A poll has emptied a CQ; the work that is over.
    pub(crate) fn seen_empty(&mut self, cq: Cq) -> Vec<Work> {
        let mut over = Vec::new();
        if let Some(book) = self.cqs.get_mut(&cq)
            && book.has_ended
        {
            book.has_ended = false;
            for flow in book.flows.values_mut() {
                flow.seen_empty(&mut over);
            }
            book.flows
                .retain(|_, flow| flow.len() > 0 || !flow.owners.is_empty());
            book.outstanding -= over.len();
        }
        over
    }

    /// Nothing is outstanding that could complete on a CQ.
    pub(crate) fn is_idle(&self, cq: Cq) -> bool {
        self.outstanding(cq) == 0
    }

    /// Completions of a CQ may have been lost, since more was outstanding than it has entries.
    pub(crate) fn may_have_overrun(&self, cq: Cq) -> bool {
        self.cqs.get(&cq).is_none_or(|book| book.lossy)
    }

    /// How much is outstanding on a CQ, and how many entries it has at least.
    pub(crate) fn load(&self, cq: Cq) -> (usize, usize) {
        let size = self.cqs.get(&cq).map_or(0, |book| book.size);
        (self.outstanding(cq), size)
    }

    /// Work of QPs that were brought to ERR that should have completed and has not. `exempt` says
    /// which a device may keep.
    pub(crate) fn missing(&self, exempt: impl Fn(&Work) -> bool) -> Option<String> {
        let must_end = |work: &Work| {
            let book = work.qp.and_then(|qp| self.qps.get(&qp));
            book.is_some_and(|book| book.flushed) && !exempt(work)
        };
        self.cqs.iter().find_map(|(cq, book)| {
            let mut flows = book.flows.values();
            let work = flows.find_map(|flow| flow.missing(book.lossy, |work| !must_end(work)))?;
            let qp = work.qp?;
            Some(format!(
                "{} of {qp} has not completed on {cq}, though {qp} is in ERR and nothing is under way",
                work.show()
            ))
        })
    }

    /// A poll failed, so that not all completions could be had.
    pub(crate) fn lose(&mut self, cq: Cq) {
        if let Some(book) = self.cqs.get_mut(&cq) {
            book.lossy = true;
        }
    }

    /// What outstanding work may write, and in which context.
    pub(crate) fn writes(&self) -> impl Iterator<Item = (Context, Sge)> {
        let lanes = self.cqs.iter().flat_map(|(cq, book)| {
            let work = book.flows.values().flat_map(Flow::work);
            work.flat_map(|work| &work.writes)
                .map(|sge| (cq.context(), *sge))
        });
        let pools = self.srqs.iter().flat_map(|(srq, book)| {
            let work = book.pool.work();
            work.flat_map(|work| &work.writes)
                .map(|sge| (srq.context(), *sge))
        });
        lanes.chain(pools)
    }

    pub(crate) fn closed(&mut self, context: Context) {
        self.cqs.retain(|cq, _| cq.context() != context);
        self.qps.retain(|qp, _| qp.context() != context);
        self.srqs.retain(|srq, _| srq.context() != context);
    }

    pub(crate) fn is_rc(&self, qp: Qp) -> bool {
        let book = self.qps.get(&qp);
        book.is_some_and(|book| book.init.qp_type == QpType::Rc)
    }

    /// The QPs of a context.
    pub(crate) fn qps_of(&self, context: Context) -> Vec<Qp> {
        let all = self.qps.keys();
        all.filter(|qp| qp.context() == context).copied().collect()
    }

    fn next_round(&mut self) -> u64 {
        self.rounds += 1;
        self.rounds
    }

    /// What a QP holds does not complete any more.
    fn end(&mut self, qp: Qp) {
        let Some(book) = self.qps.get(&qp).copied() else {
            return;
        };
        for flow in flows_of(&mut self.cqs, &book) {
            flow.end(qp);
        }
        for cq in [book.init.send_cq, book.init.recv_cq] {
            if let Some(cq) = self.cqs.get_mut(&cq) {
                cq.has_ended = true;
            }
        }
    }

    fn outstanding(&self, cq: Cq) -> usize {
        let Some(book) = self.cqs.get(&cq) else {
            return 0;
        };
        let pools = book.srqs.iter().filter_map(|srq| self.srqs.get(srq));
        book.outstanding + pools.map(|book| book.pool.len()).sum::<usize>()
    }

    fn look_for_loss(&mut self, cq: Cq) {
        let outstanding = self.outstanding(cq);
        if let Some(book) = self.cqs.get_mut(&cq) {
            book.lossy |= outstanding > book.size;
        }
    }
}

/// The flows that a QP has a part in.
fn flows_of<'a>(
    cqs: &'a mut BTreeMap<Cq, CqBook>,
    qp: &QpBook,
) -> impl Iterator<Item = &'a mut Flow> {
    let (number, init) = (qp.number, qp.init);
    let of = move |cq: &Cq| *cq == init.send_cq || *cq == init.recv_cq;
    let of_qp = cqs.iter_mut().filter(move |(cq, _)| of(cq));
    of_qp.filter_map(move |(_, book)| book.flows.get_mut(&number))
}

fn is_surely_send(wc: &Wc) -> bool {
    wc.status == verbs_api::WcStatus::Success && !wc.opcode.is_recv()
}
