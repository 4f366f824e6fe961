//! Completion queues.

use std::collections::VecDeque;
use std::sync::Arc;

use super::ledger::{Queue, Released};
use super::life::{self, Owner, object};
use super::shared::Shared;
use super::sources::{Retired, Sources};
use super::{CompChannel, Completion, Context};
use crate::cq::{Arm, CqAttr, CqInit, Wc};
use crate::cq_ex::{CqFlags, CqInitEx, CqModeration, WcEx, WcFields};
use crate::error::{Cause, Error, ErrorKind, Result, Verb};
use crate::handle::{self, Object};
use crate::site::{Site, Standing};
use crate::sync::Mutex;
use crate::verbs::Wait;

/// A completion queue. Any number of threads may poll it: each completion goes to one of them.
#[derive(Clone)]
pub struct Cq(pub(super) Arc<Owner<Parts>>);

pub(super) struct Parts {
    pub(super) handle: handle::Cq,
    cq_context: u64,
    channel: Option<CompChannel>,
    context: Context,
    state: Mutex<State>,
}

/// Locked during a poll, so that what it gives is settled in its order.
#[derive(Default)]
struct State {
    sources: Sources,
    /// Completions that were polled and not taken.
    given_back: VecDeque<Completion>,
    /// Where the device writes them.
    room: Vec<Wc>,
    /// A notification was asked for, and its event has not been read since. Until it is, no other
    /// is needed; so at most one event per CQ waits on the channel.
    armed: bool,
    /// The CQ is in its channel's list of those that may have completions.
    listed: bool,
}

object!(Cq, "ibv_destroy_cq");

impl life::Parts for Parts {
    const VERB: Verb = Verb::DestroyCq;
    type Handle = handle::Cq;

    fn handle(&self) -> handle::Cq {
        self.handle
    }

    fn context(&self) -> &Context {
        &self.context
    }

    fn destroy(&self) -> Result<()> {
        self.context.verbs().destroy_cq(self.handle, Wait::Poll)
    }
}

impl Drop for Parts {
    fn drop(&mut self) {
        self.context.leave(self.handle);
        if let Some(channel) = &self.channel {
            channel.detach();
        }
    }
}

/// Creates a CQ: [`Context::cq`].
#[derive(Clone, Debug)]
#[must_use = "nothing is made before `create`"]
pub struct CqBuilder<'a> {
    context: &'a Context,
    cqe: u32,
    cq_context: u64,
    channel: Option<&'a CompChannel>,
    comp_vector: u32,
    extended: Option<(WcFields, CqFlags)>,
}

impl Context {
    /// Begins to create a CQ of at least `cqe` entries.
    pub fn cq(&self, cqe: u32) -> CqBuilder<'_> {
        CqBuilder {
            context: self,
            cqe,
            cq_context: 0,
            channel: None,
            comp_vector: 0,
            extended: None,
        }
    }
}

impl<'a> CqBuilder<'a> {
    /// Delivers events on `channel`. Default: no channel; the CQ is polled, and threads cannot wait
    /// for it.
    pub fn channel(self, channel: &'a CompChannel) -> Self {
        Self {
            channel: Some(channel),
            ..self
        }
    }

    /// A value of the program: [`Cq::cq_context`]. Default: 0.
    pub fn cq_context(self, cq_context: u64) -> Self {
        Self { cq_context, ..self }
    }

    /// The completion vector. Default: 0.
    pub fn comp_vector(self, comp_vector: u32) -> Self {
        Self {
            comp_vector,
            ..self
        }
    }

    /// Creates an extended CQ ([`Verbs::create_cq_ex`](crate::Verbs::create_cq_ex)), whose
    /// completions have these fields when they are read by [`Cq::iterate`]. The number of the QP is
    /// always among them. Default: an ordinary CQ.
    pub fn extended(self, wc_flags: WcFields, flags: CqFlags) -> Self {
        Self {
            extended: Some((wc_flags | WcFields::QP_NUM, flags)),
            ..self
        }
    }

    /// Creates the CQ ([`Verbs::create_cq`](crate::Verbs::create_cq)).
    ///
    /// # Errors
    /// `Invalid` for a size below 1 or above `max_cqe`, for a completion vector that does not
    /// exist, for a channel of another context; `NoMemory`; `NotSupported` for an extended CQ with
    /// what the device lacks.
    #[track_caller]
    pub fn create(self) -> Result<Cq> {
        let _standing = Standing::at(Site::here());
        if let Some(channel) = self.channel {
            let of = channel.context();
            self.context
                .check(Verb::CreateCq, Object::CompChannel, of)?;
        }
        let verb = match self.extended {
            None => Verb::CreateCq,
            Some(_) => Verb::CreateCqEx,
        };
        let init = CqInit {
            cqe: int(verb, "cqe", self.cqe, 1)?,
            cq_context: self.cq_context,
            channel: self.channel.map(CompChannel::handle),
            comp_vector: int(verb, "comp_vector", self.comp_vector, 0)?,
        };
        let context = self.context.clone();
        let handle = match self.extended {
            None => context.verbs().create_cq(context.handle(), &init)?,
            Some((wc_flags, flags)) => {
                let init = CqInitEx::new(init).wc_flags(wc_flags).flags(flags);
                context.verbs().create_cq_ex(context.handle(), &init)?
            }
        };
        let state = State {
            listed: self.channel.is_some(),
            ..State::default()
        };
        let cq = Cq(Owner::new(Parts {
            handle,
            cq_context: self.cq_context,
            channel: self.channel.inspect(|channel| channel.attach()).cloned(),
            state: Mutex::new(state),
            context,
        }));
        cq.context().enter(&cq.0);
        if let Some(channel) = self.channel {
            let someone_waits = channel.list(&cq.0);
            if someone_waits {
                // They have armed the others, and do not know this one yet.
                cq.0.arm(&mut cq.0.state.lock())?;
            }
            channel.tasks().wake();
        }
        Ok(cq)
    }
}

impl Cq {
    /// The context it was created from.
    pub fn context(&self) -> &Context {
        &self.0.context
    }

    /// The channel on which its events are delivered.
    pub fn channel(&self) -> Option<&CompChannel> {
        self.0.channel.as_ref()
    }

    /// The program's own value.
    pub fn cq_context(&self) -> u64 {
        self.0.cq_context
    }

    /// The fields of `struct ibv_cq` ([`Verbs::query_cq`](crate::Verbs::query_cq)).
    pub fn query(&self) -> Result<CqAttr> {
        self.context().verbs().query_cq(self.handle())
    }

    /// Changes the size to at least `cqe` ([`Verbs::resize_cq`](crate::Verbs::resize_cq)).
    #[track_caller]
    pub fn resize(&self, cqe: u32) -> Result<()> {
        let _standing = Standing::at(Site::here());
        let cqe = int(Verb::ResizeCq, "cqe", cqe, 1)?;
        self.context().verbs().resize_cq(self.handle(), cqe)
    }

    /// Writes the oldest completions to the start of `completions`, and returns their number.
    /// Otherwise the same as [`poll`](Self::poll).
    pub fn poll_into(&self, completions: &mut [Completion]) -> Result<usize> {
        let mut released = Released::new();
        let mut state = self.0.state.lock();
        self.0.poll(&mut state, completions, &mut released)
    }

    /// Sets how many completions, or how long, an event waits for
    /// ([`Verbs::modify_cq`](crate::Verbs::modify_cq)).
    #[track_caller]
    pub fn moderate(&self, moderation: &CqModeration) -> Result<()> {
        let _standing = Standing::at(Site::here());
        self.context().verbs().modify_cq(self.handle(), moderation)
    }

    /// Takes the next completion of an iteration; none if it is at its end.
    pub(super) fn advance(&self, position: &mut Position) -> Option<Result<Completion<WcEx>>> {
        let verb = position.verb()?;
        let mut released = Released::new();
        let mut state = self.0.state.lock();
        let moved = self.0.advance(&mut state, verb);
        *position = match &moved {
            Ok(()) => Position::Inside,
            Err(_) => position.failed(),
        };
        let read = moved.and_then(|()| self.0.read(&mut state, &mut released));
        Some(read)
    }

    /// Ends an iteration that is open.
    pub(super) fn end_iteration(&self) {
        // It is open, so nothing can be wrong with that but the device.
        let _ = self.context().verbs().end_poll(self.handle());
        self.list();
        self.context().try_kept_again();
    }

    /// Requests one notification ([`Verbs::req_notify_cq`](crate::Verbs::req_notify_cq)), for
    /// programs that handle events themselves; [`wait`](Self::wait) does this already.
    #[track_caller]
    pub fn req_notify(&self, arm: Arm) -> Result<()> {
        let _standing = Standing::at(Site::here());
        self.context().verbs().req_notify_cq(self.handle(), arm)
    }

    /// Polls as [`poll_into`](Self::poll_into) does. If the CQ is empty, it is then armed, so that
    /// the next completion makes an event.
    pub(super) fn poll_or_arm(&self, completions: &mut [Completion]) -> Result<usize> {
        let mut released = Released::new();
        let mut state = self.0.state.lock();
        let count = self.0.poll(&mut state, completions, &mut released)?;
        if count > 0 || state.armed {
            return Ok(count);
        }
        self.0.arm(&mut state)?;
        self.0.poll(&mut state, completions, &mut released)
    }

    /// An event of it was read.
    pub(super) fn event_was_read(&self) {
        self.0.state.lock().armed = false;
        self.list();
    }

    /// Puts it into its channel's list of those that may have completions.
    pub(super) fn list(&self) {
        let Some(channel) = self.channel() else {
            return;
        };
        let was_listed = std::mem::replace(&mut self.0.state.lock().listed, true);
        if !was_listed {
            channel.list(&self.0);
        }
        channel.tasks().wake();
    }

    /// It has been taken from that list.
    pub(super) fn unlisted(&self) {
        self.0.state.lock().listed = false;
    }

    /// Completions that were polled and not taken.
    pub(super) fn give_back(&self, wcs: &[Completion]) {
        self.0.state.lock().given_back.extend(wcs);
        self.list();
    }

    /// A queue of a QP with this number and program's value, whose completions will come here.
    pub(super) fn add_queue(&self, qp_num: u32, qp_context: u64) -> Arc<Queue> {
        let clock = self.context().clock().clone();
        let mut state = self.0.state.lock();
        state.sources.add_queue(qp_num, qp_context, clock)
    }

    /// The QP of a queue takes its receives from an SRQ.
    pub(super) fn add_shared(&self, queue: &Queue, shared: &Arc<Shared>) {
        self.0.state.lock().sources.add_shared(queue, shared);
    }

    /// An XRC SRQ completes its receives here.
    pub(super) fn add_xrc(&self, shared: &Arc<Shared>) {
        self.0.state.lock().sources.add_xrc(shared);
    }

    /// An XRC SRQ was destroyed.
    pub(super) fn xrc_is_gone(&self, shared: &Shared) {
        self.retire(Retired::Xrc(shared.key()));
    }

    /// The QP of a queue was reset when this was the number of its next work request.
    pub(super) fn queue_was_reset(&self, queue: &Queue, next: u32) {
        self.retire(Retired::Reset(queue.index(), next));
    }

    /// The QP of a queue was destroyed.
    pub(super) fn queue_is_gone(&self, queue: &Queue) {
        self.retire(Retired::Destroyed(queue.index()));
    }

    fn retire(&self, what: Retired) {
        let mut state = self.0.state.lock();
        state.sources.retire(what, self.context().clock().pass());
    }
}

impl Parts {
    fn poll(
        &self,
        state: &mut State,
        completions: &mut [Completion],
        released: &mut Released,
    ) -> Result<usize> {
        let wanted = completions.len();
        if !state.given_back.is_empty() {
            let count = wanted.min(state.given_back.len());
            for (completion, back) in completions.iter_mut().zip(state.given_back.drain(..count)) {
                *completion = back;
            }
            return Ok(count);
        }
        if state.room.len() < wanted {
            state.room.resize(wanted, Wc::default());
        }
        let verbs = self.context.verbs();
        let count = verbs.poll_cq(self.handle, &mut state.room[..wanted])?;
        for (completion, wc) in completions.iter_mut().zip(&state.room[..count]) {
            completion.wc = *wc;
            completion.qp_context = state.sources.settle(&mut completion.wc, released);
        }
        if count < wanted {
            state.sources.was_found_empty();
        }
        Ok(count)
    }

    fn advance(&self, state: &mut State, verb: Verb) -> Result<()> {
        let verbs = self.context.verbs();
        if verb == Verb::StartPoll {
            if !state.given_back.is_empty() {
                let text = "completions that were polled wait to be polled again";
                return Err(Error::new(
                    verb,
                    ErrorKind::Usage,
                    Cause::Usage(text.into()),
                ));
            }
            let started = verbs.start_poll(self.handle);
            if matches!(&started, Err(error) if error.kind() == ErrorKind::NotFound) {
                state.sources.was_found_empty();
            }
            started
        } else {
            verbs.next_poll(self.handle)
        }
    }

    fn read(&self, state: &mut State, released: &mut Released) -> Result<Completion<WcEx>> {
        let mut read = self.context.verbs().read_wc(self.handle)?;
        let mut wc = Wc {
            wr_id: read.wr_id,
            status: read.status,
            opcode: read.opcode,
            qp_num: read.qp_num.unwrap_or_default(),
            ..Wc::default()
        };
        let qp_context = state.sources.settle(&mut wc, released);
        (read.wr_id, read.opcode) = (wc.wr_id, wc.opcode);
        Ok(Completion {
            wc: read,
            qp_context,
        })
    }

    fn arm(&self, state: &mut State) -> Result<()> {
        self.context.verbs().req_notify_cq(self.handle, Arm::NEXT)?;
        state.armed = true;
        Ok(())
    }
}

/// The state of an iteration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Position {
    /// `ibv_start_poll` has not been called.
    Before,
    /// It is at a completion.
    Inside,
    /// There was no further one, or an error; `ibv_end_poll` has to be called.
    AtEnd,
    /// No iteration is open.
    Over,
}

impl Position {
    /// The verb that comes to the next completion; none at the end.
    fn verb(self) -> Option<Verb> {
        match self {
            Self::Before => Some(Verb::StartPoll),
            Self::Inside => Some(Verb::NextPoll),
            Self::AtEnd | Self::Over => None,
        }
    }

    /// The state after that verb has failed.
    fn failed(self) -> Self {
        match self {
            Self::Inside | Self::AtEnd => Self::AtEnd,
            Self::Before | Self::Over => Self::Over,
        }
    }
}

/// A number for the `int` of C.
fn int(verb: Verb, what: &'static str, number: u32, min: i64) -> Result<i32> {
    i32::try_from(number).map_err(|_| {
        let (value, max) = (number.into(), i32::MAX.into());
        let cause = Cause::OutOfRange {
            what,
            value,
            min,
            max,
        };
        Error::new(verb, ErrorKind::Invalid, cause)
    })
}
