//! Queues: what was posted, and what of it each CQ may still give.

use std::collections::BTreeSet;

use smallvec::{SmallVec, smallvec};
use verbs_api::{Context, Cq, CqFlags, Handle, Qp, QpInit, QpState, QpType, Sge, Srq, Wc};

use super::domains::Domain;
use super::map::Map;
use super::memory::Device;
use super::polled::Polled;
use super::work::{Flow, Found, Over, Pool, What, Work};

/// All CQs, QPs and SRQs.
#[derive(Debug, Default)]
pub(crate) struct Queues {
    cqs: Map<Cq, CqBook>,
    qps: Map<Qp, QpBook>,
    srqs: Map<Srq, SrqBook>,
    /// Counts rounds of all QPs.
    rounds: u64,
    posted: u64,
    /// A device has died: its work stays where it is.
    some_died: bool,
}

#[derive(Debug)]
struct CqBook {
    /// Entries it has at least.
    size: usize,
    /// More was outstanding than it has entries: completions may have been lost.
    lossy: bool,
    /// It loses them without an error.
    overwrites: bool,
    /// Completions that an open iteration has come to. They still have their places.
    held: usize,
    /// The last of them has not been read yet.
    unread: bool,
    /// By QP number.
    flows: Map<u32, Flow>,
    /// Work in all flows.
    outstanding: usize,
    srqs: BTreeSet<Srq>,
    /// Some of the work belongs to QPs that were reset or destroyed.
    has_ended: bool,
}

#[derive(Clone, Copy, Debug)]
struct QpBook {
    number: u32,
    qp_type: QpType,
    sq_sig_all: bool,
    send_cq: Option<Cq>,
    recv_cq: Option<Cq>,
    /// The domain of an XRC target.
    domain: Option<Domain>,
    /// Where its peer is.
    peer: Option<Device>,
    epoch: u32,
    round: u64,
    in_reset: bool,
    /// It could send at some time since it was in RESET.
    was_ready: bool,
    /// It is in RTS.
    sends: bool,
    /// Its sends may.
    waits_for_ever: bool,
    /// Sends up to this number have had enough time to complete.
    settled: u64,
    /// Brought to ERR at the end: all its work must complete.
    flushed: bool,
}

#[derive(Debug, Default)]
struct SrqBook {
    pool: Pool,
    /// Where its receives may complete.
    cqs: BTreeSet<Cq>,
    /// The domain of an XRC SRQ.
    domain: Option<Domain>,
    /// A QP of UC has taken receives of it.
    unreliable: bool,
}

/// What a completion means.
#[derive(Debug)]
pub(crate) struct Completed {
    pub(crate) found: Found,
    /// Receives of an SRQ that it was of.
    pub(crate) shared: Option<Work>,
    /// Others may have been lost.
    pub(crate) lossy: bool,
    /// The QPs that it can be of, and how often they were reset.
    pub(crate) owners: SmallVec<[(Qp, u32); 1]>,
    /// Work that is over.
    pub(crate) over: Over,
}

impl Queues {
    pub(crate) fn made_cq(&mut self, cq: Cq, cqe: i32, flags: CqFlags) {
        let book = CqBook {
            size: usize::try_from(cqe).unwrap_or(0),
            lossy: false,
            overwrites: flags.contains(CqFlags::IGNORE_OVERRUN),
            held: 0,
            unread: false,
            flows: Map::default(),
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

    /// A CQ was destroyed, and its unpolled completions with it; the work that is over.
    pub(crate) fn gone_cq(&mut self, cq: Cq) -> Over {
        let flows = self.cqs.remove(&cq).map(|book| book.flows);
        let flows = flows.into_iter().flat_map(Map::into_values);
        flows.flat_map(Flow::into_work).collect()
    }

    /// An SRQ was made; one of XRC in a domain, with a CQ.
    pub(crate) fn made_srq(&mut self, srq: Srq, xrc: Option<(Domain, Cq)>) {
        self.srqs.insert(srq, SrqBook::default());
        let Some((domain, cq)) = xrc else { return };
        if let Some(book) = self.srqs.get_mut(&srq) {
            book.domain = Some(domain);
        }
        let all = self.qps.iter();
        let targets = all.filter(|(_, book)| book.domain == Some(domain));
        let targets: Vec<(Qp, u32)> = targets.map(|(qp, book)| (*qp, book.number)).collect();
        self.attach(srq, cq, &targets);
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
        let receives = init.qp_type != QpType::XrcSend;
        let book = QpBook {
            sq_sig_all: init.sq_sig_all,
            send_cq: Some(init.send_cq),
            recv_cq: receives.then_some(init.recv_cq),
            ..self.new_book(number, init.qp_type)
        };
        for cq in book.cqs() {
            if let Some(cq) = self.cqs.get_mut(&cq) {
                cq.flows.or_default(number).own(qp);
            }
        }
        self.qps.insert(qp, book);
        if let (Some(srq), Some(cq)) = (init.srq, book.recv_cq) {
            if let Some(srq) = self.srqs.get_mut(&srq) {
                srq.unreliable |= init.qp_type == QpType::Uc;
            }
            self.attach(srq, cq, &[(qp, number)]);
        }
    }

    /// A QP of XRC_RECV was made, or opened once more: one handle of it.
    pub(crate) fn made_target(&mut self, qp: Qp, number: u32, domain: Domain) {
        let book = QpBook {
            domain: Some(domain),
            ..self.new_book(number, QpType::XrcRecv)
        };
        self.qps.insert(qp, book);
        let all = self.srqs.iter();
        let of_domain = all.filter(|(_, book)| book.domain == Some(domain));
        let places = of_domain.flat_map(|(srq, book)| book.cqs.iter().map(|cq| (*srq, *cq)));
        for (srq, cq) in places.collect::<Vec<_>>() {
            self.attach(srq, cq, &[(qp, number)]);
        }
    }

    fn new_book(&mut self, number: u32, qp_type: QpType) -> QpBook {
        QpBook {
            number,
            qp_type,
            sq_sig_all: false,
            send_cq: None,
            recv_cq: None,
            domain: None,
            peer: None,
            epoch: 0,
            round: self.next_round(),
            sends: false,
            waits_for_ever: false,
            settled: 0,
            in_reset: true,
            was_ready: false,
            flushed: false,
        }
    }

    /// Receives of an SRQ complete on a CQ with the numbers of these QPs.
    fn attach(&mut self, srq: Srq, cq: Cq, qps: &[(Qp, u32)]) {
        let (Some(srq_book), Some(book)) = (self.srqs.get_mut(&srq), self.cqs.get_mut(&cq)) else {
            return;
        };
        srq_book.cqs.insert(cq);
        book.srqs.insert(srq);
        for (qp, number) in qps {
            let flow = book.flows.or_default(*number);
            flow.own(*qp);
            flow.srqs.insert(srq);
        }
        self.look_for_loss(cq);
    }

    /// A QP has named a peer on this device.
    pub(crate) fn connected(&mut self, qp: Qp, peer: Option<Device>) {
        if let Some(book) = self.qps.get_mut(&qp) {
            book.peer = peer;
        }
    }

    /// Where the peer of a QP is.
    pub(crate) fn peer(&self, qp: Qp) -> Option<Device> {
        self.qps.get(&qp)?.peer
    }

    /// A QP was destroyed; its completions may still be there.
    pub(crate) fn gone_qp(&mut self, qp: Qp) {
        self.end(qp);
        if let Some(book) = self.qps.remove(&qp) {
            for cq in cqs_of(&mut self.cqs, qp, &book) {
                let flow = cq.flows.or_default(book.number);
                flow.owners.retain(|owner| *owner != qp);
            }
        }
    }

    /// A QP has gone to a state. Returns whether it can send for the first time since it was in
    /// RESET.
    pub(crate) fn changed(&mut self, qp: Qp, state: QpState) -> bool {
        let round = self.next_round();
        let Some(book) = self.qps.get_mut(&qp) else {
            return false;
        };
        let is_new = state == QpState::Rts && !book.was_ready;
        book.was_ready = state != QpState::Reset && (book.was_ready || is_new);
        book.in_reset = state == QpState::Reset;
        book.settled = 0;
        book.sends = state == QpState::Rts;
        match state {
            QpState::Reset => {
                (book.round, book.epoch) = (round, book.epoch + 1);
                book.peer = None;
                self.end(qp);
            }
            QpState::Rts => book.round = round,
            _ => {}
        }
        is_new
    }

    /// Sends of a QP may wait forever: it never retries (TMR-02), must not read, does not flush
    /// work that is posted in ERR (QP-STATE-21), or does not continue with the work that it held in
    /// SQD (QP-STATE-10).
    pub(crate) fn waits_for_ever(&mut self, qp: Qp) {
        if let Some(book) = self.qps.get_mut(&qp) {
            book.waits_for_ever = true;
        }
    }

    /// How much was posted.
    pub(crate) fn posted(&self) -> u64 {
        self.posted
    }

    /// All work up to number `posted` has come to rest.
    pub(crate) fn settled(&mut self, posted: u64) {
        let sending = |book: &&mut QpBook| book.sends && !book.waits_for_ever;
        for book in self.qps.values_mut().filter(sending) {
            book.settled = posted;
        }
    }

    /// A device has died.
    pub(crate) fn died(&mut self) {
        self.some_died = true;
    }

    /// A CQ was seen empty: a send of it that should have completed, since nothing was under way.
    pub(crate) fn stuck(&self, cq: Cq) -> Option<String> {
        let book = self.cqs.get(&cq).filter(|_| !self.some_died)?;
        let may_wait = |work: &Work| {
            let qp = work.qp.and_then(|qp| self.qps.get(&qp));
            let settled = qp.is_some_and(|qp| work.number <= qp.settled);
            work.what == What::Recv || !settled
        };
        let mut flows = book.flows.values();
        let work = flows.find_map(|flow| flow.missing(book.lossy, may_wait))?;
        let (work, qp) = (work.show(), work.qp?);
        Some(format!(
            "{work} of {qp} has not completed on {cq}, though nothing is under way"
        ))
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
            What::Send(_) => (book.send_cq?, work.signaled || book.sq_sig_all),
            What::Recv => (book.recv_cq?, true),
        };
        self.posted += 1;
        let work = Work {
            number: self.posted,
            round: book.round,
            epoch: book.epoch,
            signaled,
            unreliable: book.qp_type == QpType::Uc,
            ..work
        };
        let cq_book = self.cqs.get_mut(&cq)?;
        cq_book.flows.or_default(book.number).push(work);
        cq_book.outstanding += 1;
        cq_book.look_for_loss(&self.srqs);
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

    /// An iteration has come to a completion, the first or another.
    pub(crate) fn came(&mut self, cq: Cq) {
        if let Some(book) = self.cqs.get_mut(&cq) {
            (book.held, book.unread) = (book.held + 1, true);
        }
    }

    /// Whether there is a completion that an iteration has come to and that was not read before.
    pub(crate) fn is_unread(&self, cq: Cq) -> bool {
        self.cqs.get(&cq).is_some_and(|book| book.unread)
    }

    /// It was read now.
    pub(crate) fn was_read(&mut self, cq: Cq) {
        if let Some(book) = self.cqs.get_mut(&cq) {
            book.unread = false;
        }
    }

    /// An iteration was ended.
    pub(crate) fn iterated(&mut self, cq: Cq) {
        if let Some(book) = self.cqs.get_mut(&cq) {
            (book.held, book.unread) = (0, false);
        }
    }

    /// The CQs over which an iteration is open.
    pub(crate) fn iterations(&self) -> Vec<Cq> {
        let all = self.cqs.iter();
        all.filter(|(_, book)| book.held > 0)
            .map(|(cq, _)| *cq)
            .collect()
    }

    /// A completion was polled: what it is of, or what is wrong with it.
    ///
    /// Where its QP is not known it can be of any that has such work. Then each of them may have
    /// lost it to the others, and that is all that is given up.
    pub(crate) fn complete(&mut self, cq: Cq, polled: &Polled) -> Result<Completed, String> {
        let wc = &polled.wc;
        let Some(book) = self.cqs.get_mut(&cq) else {
            return Err(format!("{cq} is not there, and gave {polled}"));
        };
        let lossy = book.lossy;
        let mut numbers: SmallVec<[u32; 1]> = match polled.qp_num() {
            Some(number) => smallvec![number],
            None => book.flows.keys().copied().collect(),
        };
        if !numbers.iter().any(|number| book.flows.contains_key(number)) {
            return Err(format!(
                "{cq} gave {polled}, and no queue pair of that number completes on it"
            ));
        }
        let may_be_recv = !is_surely_send(wc);
        let has = |srq: &&Srq| {
            let book = self.srqs.get(srq);
            may_be_recv && book.is_some_and(|book| book.pool.has(wc.wr_id))
        };
        let flows = numbers.iter().filter_map(|number| book.flows.get(number));
        let srqs: BTreeSet<Srq> = flows
            .flat_map(|flow| flow.srqs.iter().filter(has).copied())
            .collect();
        if numbers.len() > 1 {
            numbers.retain(|number| {
                let flow = book.flows.get(number);
                flow.is_some_and(|flow| flow.fits(wc, lossy) || !flow.srqs.is_disjoint(&srqs))
            });
        }
        let elsewhere = numbers.len() > 1 || !srqs.is_empty();
        let (mut found, mut over, mut owners) = (None, Over::new(), SmallVec::new());
        for number in &numbers {
            let Some(flow) = book.flows.get_mut(number) else {
                continue;
            };
            found = flow.complete(wc, lossy, elsewhere, &mut over).or(found);
            let with_epoch = |qp: &Qp| Some((*qp, self.qps.get(qp)?.epoch));
            owners.extend(flow.owners.iter().filter_map(with_epoch));
        }
        book.outstanding -= over.len();
        let (found, shared) = match (found, srqs.len()) {
            (Some(found), _) => (found, None),
            (None, 0) => {
                let expected = book.expected(&numbers);
                return Err(format!("{cq} gave {polled}, but {expected}"));
            }
            (None, 1) => {
                let srq = srqs.first().and_then(|srq| self.srqs.get_mut(srq));
                (Found::Shared, srq.and_then(|srq| srq.take(wc.wr_id)))
            }
            (None, _) => (Found::Unclear, None),
        };
        Ok(Completed {
            found,
            shared,
            lossy,
            owners,
            over,
        })
    }

    /// A poll has emptied a CQ; the work that is over.
    pub(crate) fn seen_empty(&mut self, cq: Cq) -> Over {
        let mut over = Over::new();
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
        let book = self.cqs.get(&cq);
        book.is_none_or(|book| book.outstanding(&self.srqs) == 0)
    }

    /// A CQ reports an overrun: the invariant that this breaks, if any.
    pub(crate) fn overran(&self, cq: Cq) -> Result<(), String> {
        match self.cqs.get(&cq) {
            Some(book) if book.overwrites => Err(format!(
                "{cq} reports an overrun; it was created to ignore overruns"
            )),
            Some(book) if !book.lossy => Err(format!(
                "{cq} reports an overrun; it has {} entries, and never was more than that \
                 outstanding (now {})",
                book.size,
                book.places(&self.srqs)
            )),
            _ => Ok(()),
        }
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
        // Other contexts may have SRQs that its targets gave messages to.
        for qp in self.qps_of(context) {
            self.gone_qp(qp);
        }
        self.cqs.retain(|cq, _| cq.context() != context);
        self.qps.retain(|qp, _| qp.context() != context);
        self.srqs.retain(|srq, _| srq.context() != context);
    }

    pub(crate) fn is_rc(&self, qp: Qp) -> bool {
        let book = self.qps.get(&qp);
        book.is_some_and(|book| book.qp_type == QpType::Rc)
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
        for cq in cqs_of(&mut self.cqs, qp, &book) {
            cq.has_ended = true;
            cq.flows.or_default(book.number).end(qp);
        }
    }

    fn look_for_loss(&mut self, cq: Cq) {
        if let Some(book) = self.cqs.get_mut(&cq) {
            book.look_for_loss(&self.srqs);
        }
    }
}

impl CqBook {
    /// Work that may complete here.
    fn outstanding(&self, srqs: &Map<Srq, SrqBook>) -> usize {
        let pools = self.srqs.iter().filter_map(|srq| srqs.get(srq));
        self.outstanding + pools.map(|book| book.pool.len()).sum::<usize>()
    }

    /// The places that may be taken.
    fn places(&self, srqs: &Map<Srq, SrqBook>) -> usize {
        self.outstanding(srqs) + self.held - usize::from(self.unread)
    }

    fn look_for_loss(&mut self, srqs: &Map<Srq, SrqBook>) {
        self.lossy |= self.places(srqs) > self.size;
    }

    /// What these QP numbers are expected to give next, in words.
    fn expected(&self, numbers: &[u32]) -> String {
        let flows = numbers.iter().filter_map(|number| self.flows.get(number));
        match flows.collect::<Vec<_>>()[..] {
            [flow] if flow.srqs.is_empty() => flow.expected(),
            [flow] => format!("{}, and no SRQ of it has such a receive", flow.expected()),
            _ => "no queue pair has such work".to_string(),
        }
    }
}

impl SrqBook {
    fn take(&mut self, wr_id: u64) -> Option<Work> {
        let work = self.pool.take(wr_id)?;
        let unreliable = self.unreliable;
        Some(Work { unreliable, ..work })
    }
}

impl QpBook {
    /// The CQs that it was made with.
    fn cqs(&self) -> impl Iterator<Item = Cq> + use<> {
        self.send_cq.into_iter().chain(self.recv_cq)
    }
}

/// The CQs that get completions of a QP.
fn cqs_of<'a>(
    cqs: &'a mut Map<Cq, CqBook>,
    qp: Qp,
    book: &QpBook,
) -> impl Iterator<Item = &'a mut CqBook> {
    let number = book.number;
    cqs.values_mut().filter(move |cq| {
        let flow = cq.flows.get(&number);
        flow.is_some_and(|flow| flow.owners.contains(&qp))
    })
}

fn is_surely_send(wc: &Wc) -> bool {
    wc.status == verbs_api::WcStatus::Success && !wc.opcode.is_recv()
}
