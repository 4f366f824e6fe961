//! Work that was posted and has not been seen to end.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use smallvec::{SmallVec, smallvec};
use verbs_api::{MwBind, Qp, RecvWr, SendFlags, SendWr, Sge, Srq, Wc, WcOpcode, WcStatus};

use super::atomics::Add;

/// A work request.
#[derive(Clone, Debug)]
pub(crate) struct Work {
    /// Counts all work.
    pub(crate) number: u64,
    /// On which QP; of an SRQ it is not known before it completes.
    pub(crate) qp: Option<Qp>,
    pub(crate) wr_id: u64,
    /// What is shown for it.
    pub(super) label: u64,
    pub(crate) what: What,
    /// The times of the QP that it belongs to: another one from each reset and each return from an
    /// error on. Numbers count over all QPs.
    pub(crate) round: u64,
    /// How often its QP had been reset.
    pub(crate) epoch: u32,
    /// It makes a completion if it succeeds.
    pub(crate) signaled: bool,
    /// It may not be there at all: the device refused it, but may have queued it.
    pub(crate) maybe: bool,
    /// Its QP was reset or destroyed: it does not complete any more, but may have.
    pub(crate) ended: bool,
    /// A UC receive: it may have begun to take messages that never came to their end (UC-04).
    pub(crate) unreliable: bool,
    /// Local memory that it may write.
    pub(crate) writes: SmallVec<[Sge; 2]>,
    /// What it adds, where that can be followed.
    pub(crate) add: Option<Add>,
}

/// Work that is over.
pub(crate) type Over = SmallVec<[Work; 1]>;

/// What a work request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    Recv,
    /// A send that completes with this opcode.
    Send(WcOpcode),
}

impl Work {
    pub(crate) fn send(qp: Qp, wr: &SendWr<'_>) -> Self {
        let what = What::Send(wr.op.wc_opcode());
        let writes = if wr.op.reads() { wr.sg_list } else { &[] };
        Self {
            signaled: wr.flags.contains(SendFlags::SIGNALED),
            ..Self::new(Some(qp), wr.wr_id, wr.label(), what, writes)
        }
    }

    pub(crate) fn bind(qp: Qp, bind: &MwBind) -> Self {
        let what = What::Send(WcOpcode::BindMw);
        Self {
            signaled: bind.flags.contains(SendFlags::SIGNALED),
            ..Self::new(Some(qp), bind.wr_id, bind.label(), what, &[])
        }
    }

    pub(crate) fn recv(qp: Option<Qp>, wr: &RecvWr<'_>) -> Self {
        Self::new(qp, wr.wr_id, wr.label(), What::Recv, wr.sg_list)
    }

    fn new(qp: Option<Qp>, wr_id: u64, label: u64, what: What, writes: &[Sge]) -> Self {
        Self {
            number: 0,
            qp,
            wr_id,
            label,
            what,
            round: 0,
            epoch: 0,
            signaled: true,
            maybe: false,
            ended: false,
            unreliable: false,
            writes: writes.into(),
            add: None,
        }
    }

    /// Whether a completion can be of it, if work of the round `failed` has failed before it.
    fn fits(&self, wc: &Wc, failed: Option<u64>) -> bool {
        let after_failure = failed == Some(self.round);
        self.wr_id == wc.wr_id
            && match wc.status {
                WcStatus::Success => {
                    let opcode = match self.what {
                        What::Recv => wc.opcode.is_recv(),
                        What::Send(opcode) => opcode == wc.opcode,
                    };
                    opcode && self.signaled && !after_failure
                }
                WcStatus::WrFlushErr => true,
                // Only the first has a status of its own.
                _ => !after_failure,
            }
    }

    /// Whether completions of later work can come without one of it. `lossy` is a CQ that may have
    /// lost some.
    fn can_be_missing(&self, lossy: bool, failed: Option<u64>) -> bool {
        // Some devices report a failed bind only if it is signaled (MW-24).
        let bind = self.what == What::Send(WcOpcode::BindMw);
        let silent = !self.signaled && (bind || failed != Some(self.round));
        self.is_optional(lossy) || silent
    }

    /// Whether it need not complete at all.
    fn is_optional(&self, lossy: bool) -> bool {
        self.ended || self.maybe || lossy
    }

    /// In words.
    pub(crate) fn show(&self) -> String {
        let signaled = if self.signaled { "" } else { "unsignaled " };
        let what = match self.what {
            What::Recv => "receive".to_string(),
            What::Send(opcode) => opcode.to_string(),
        };
        format!("{signaled}{what} wr_id {:#x}", self.label)
    }
}

/// Work of one kind in the order of posting, from the oldest that may still complete.
#[derive(Debug, Default)]
pub(crate) struct Lane {
    first: u64,
    work: VecDeque<Work>,
}

impl Lane {
    fn end(&self) -> u64 {
        self.first + self.work.len() as u64
    }

    fn get(&self, at: u64) -> Option<&Work> {
        let index = usize::try_from(at.checked_sub(self.first)?).ok()?;
        self.work.get(index)
    }

    fn from(&self, at: u64) -> impl Iterator<Item = (u64, &Work)> {
        (at..self.end()).filter_map(|at| Some((at, self.get(at)?)))
    }
}

/// What a CQ gets of one QP number: of the QP that has it, and of those that had it before.
#[derive(Debug)]
pub(crate) struct Flow {
    /// Sends, and receives that are not of an SRQ.
    lanes: [Lane; 2],
    /// How far both may be. An error does not say of which lane it is, so there can be several.
    states: States,
    /// There were too many ways to understand what was polled.
    given_up: bool,
    /// The SRQs that its QPs have.
    pub(crate) srqs: BTreeSet<Srq>,
    /// The QPs that have the number now.
    pub(crate) owners: SmallVec<[Qp; 1]>,
}

/// How far a flow is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct State {
    /// The next work of each lane.
    at: [u64; 2],
    /// The round of each in which work has failed.
    failed: [Option<u64>; 2],
}

type States = SmallVec<[State; 1]>;

/// What a completion is of.
#[derive(Debug)]
pub(crate) enum Found {
    /// The work of this number, of a QP that had been reset so often.
    Work {
        number: u64,
        qp: Option<Qp>,
        epoch: u32,
    },
    /// A receive of an SRQ.
    Shared,
    /// It is not clear which.
    Unclear,
}

pub(crate) const SEND: usize = 0;
pub(crate) const RECV: usize = 1;

impl Default for Flow {
    fn default() -> Self {
        Self {
            lanes: Default::default(),
            states: smallvec![State::default()],
            given_up: false,
            srqs: BTreeSet::new(),
            owners: SmallVec::new(),
        }
    }
}

impl Flow {
    pub(crate) fn push(&mut self, work: Work) {
        let lane = match work.what {
            What::Send(_) => SEND,
            What::Recv => RECV,
        };
        self.lanes[lane].work.push_back(work);
    }

    pub(crate) fn len(&self) -> usize {
        self.lanes.iter().map(|lane| lane.work.len()).sum()
    }

    pub(crate) fn work(&self) -> impl Iterator<Item = &Work> {
        self.lanes.iter().flat_map(|lane| &lane.work)
    }

    pub(crate) fn into_work(self) -> impl Iterator<Item = Work> {
        self.lanes.into_iter().flat_map(|lane| lane.work)
    }

    /// A QP has the number.
    pub(crate) fn own(&mut self, qp: Qp) {
        if !self.owners.contains(&qp) {
            self.owners.push(qp);
        }
    }

    /// The QP was reset or destroyed.
    pub(crate) fn end(&mut self, qp: Qp) {
        for work in self.lanes.iter_mut().flat_map(|lane| &mut lane.work) {
            work.ended |= work.qp == Some(qp);
        }
    }

    /// A completion was polled. `elsewhere` says whether it can also be of work that is not in this
    /// flow. Returns `None` if it cannot be of any work of this one. Work that is now over goes to
    /// `over`.
    pub(crate) fn complete(
        &mut self,
        wc: &Wc,
        lossy: bool,
        elsewhere: bool,
        over: &mut Over,
    ) -> Option<Found> {
        if self.given_up {
            return Some(Found::Unclear);
        }
        let (mut next, mut found) = self.ways(wc, lossy);
        if next.is_empty() {
            return None;
        }
        found.sort_unstable();
        found.dedup();
        if elsewhere {
            next.extend_from_slice(&self.states);
        }
        next.sort_unstable();
        next.dedup();
        self.given_up = next.len() > MOST_STATES;
        self.states = next;
        let is_clear = !elsewhere && found.len() == 1;
        let clear = found.first().filter(|_| is_clear);
        let clear = clear.and_then(|(lane, at)| self.lanes[*lane].get(*at));
        let found = clear.map_or(Found::Unclear, |work| Found::Work {
            number: work.number,
            qp: work.qp,
            epoch: work.epoch,
        });
        self.drop_what_is_over(over);
        Some(found)
    }

    /// Whether a completion can be of work of this flow.
    pub(crate) fn fits(&self, wc: &Wc, lossy: bool) -> bool {
        self.given_up || !self.ways(wc, lossy).0.is_empty()
    }

    /// The ways to understand a completion: how far the flow is then, and which work it is of, by
    /// its lane and its place there.
    fn ways(&self, wc: &Wc, lossy: bool) -> (States, SmallVec<[(usize, u64); 1]>) {
        let mut next = States::new();
        let mut found = SmallVec::new();
        for state in &self.states {
            for (lane, of) in self.lanes.iter().enumerate() {
                let failed = state.failed[lane];
                let mut fitting = 0;
                for (at, work) in of.from(state.at[lane]) {
                    let can_be_missing = work.can_be_missing(lossy, failed);
                    if work.fits(wc, failed) {
                        fitting += 1;
                        found.push((lane, at));
                        // Whatever comes after this one can also come after the first.
                        if fitting == 1 || !work.is_optional(lossy) {
                            let mut state = *state;
                            state.at[lane] = at + 1;
                            if wc.status != WcStatus::Success {
                                state.failed[lane] = Some(work.round);
                            }
                            next.push(state);
                        }
                    }
                    if !can_be_missing || lossy && fitting > 1 {
                        break;
                    }
                }
            }
        }
        (next, found)
    }

    /// The CQ was seen empty: no completion of work that had ended before comes any more.
    pub(crate) fn seen_empty(&mut self, over: &mut Over) {
        for state in &mut self.states {
            for (lane, of) in self.lanes.iter().enumerate() {
                while of.get(state.at[lane]).is_some_and(|work| work.ended) {
                    state.at[lane] += 1;
                }
            }
        }
        self.states.sort_unstable();
        self.states.dedup();
        self.drop_what_is_over(over);
    }

    /// The oldest work that has to complete and has not, in whatever way the completions so far are
    /// understood.
    pub(crate) fn missing(&self, lossy: bool, exempt: impl Fn(&Work) -> bool) -> Option<&Work> {
        let mut missing = None;
        if self.given_up {
            return missing;
        }
        for state in &self.states {
            let lanes = self.lanes.iter().enumerate();
            let mut of_state = lanes.flat_map(|(lane, of)| {
                let must = move |work: &Work| !work.can_be_missing(lossy, state.failed[lane]);
                of.from(state.at[lane])
                    .map(|(_, work)| work)
                    .filter(move |work| must(work))
            });
            missing = Some(of_state.find(|work| !exempt(work))?);
        }
        missing
    }

    /// What is expected next, in words.
    pub(crate) fn expected(&self) -> String {
        let state = self.states.first().copied().unwrap_or_default();
        let next = |lane: usize| {
            let work = self.lanes[lane].get(state.at[lane])?;
            let failed = match state.failed[lane] {
                Some(round) if round == work.round => ", to be flushed",
                _ => "",
            };
            Some(format!("{}{failed}", work.show()))
        };
        let next: Vec<String> = [SEND, RECV].into_iter().filter_map(next).collect();
        if next.is_empty() {
            "nothing is outstanding".to_string()
        } else {
            format!("next are {}", next.join(" and "))
        }
    }

    fn drop_what_is_over(&mut self, over: &mut Over) {
        for (lane, of) in self.lanes.iter_mut().enumerate() {
            let least = self.states.iter().map(|state| state.at[lane]).min();
            while of.first < least.unwrap_or(0) {
                over.extend(of.work.pop_front());
                of.first += 1;
            }
        }
    }
}

/// The receives of an SRQ, which complete in any order.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    by_wr_id: BTreeMap<u64, VecDeque<Work>>,
    len: usize,
}

impl Pool {
    pub(crate) fn push(&mut self, work: Work) {
        self.by_wr_id.entry(work.wr_id).or_default().push_back(work);
        self.len += 1;
    }

    pub(crate) fn has(&self, wr_id: u64) -> bool {
        self.by_wr_id.contains_key(&wr_id)
    }

    pub(crate) fn take(&mut self, wr_id: u64) -> Option<Work> {
        let same = self.by_wr_id.get_mut(&wr_id)?;
        let work = same.pop_front();
        if same.is_empty() {
            self.by_wr_id.remove(&wr_id);
        }
        self.len -= 1;
        work
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn work(&self) -> impl Iterator<Item = &Work> {
        self.by_wr_id.values().flatten()
    }
}

/// Ways to understand what was polled: a program with more cannot tell its own work apart.
const MOST_STATES: usize = 256;
