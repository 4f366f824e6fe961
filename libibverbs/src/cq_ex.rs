//! Extended completion queues: iterations (`ibv_start_poll`), and moderation (`ibv_modify_cq`).
//!
//! From `ibv_start_poll` to `ibv_end_poll` the queue belongs to the thread that started the iteration.
//! Calls of other threads wait, as they do under a driver's lock. Calls that would make a thread wait for
//! itself are refused.

use std::cell::Cell;
use std::ffi::c_int;
use std::fmt;
use std::mem;

use parking_lot::{ReentrantMutex, ReentrantMutexGuard};
use verbs_abi::{
    IBV_CQ_ATTR_MODERATE, IBV_CQ_INIT_ATTR_MASK_FLAGS, IBV_CQ_INIT_ATTR_MASK_PD, ibv_context,
    ibv_cq, ibv_cq_ex, ibv_cq_init_attr_ex, ibv_moderate_cq, ibv_modify_cq_attr, ibv_poll_cq_attr,
};
use verbs_api::{CqInit, CqInitEx, ErrorKind, Handle, Verb, Verbs, WcEx, WcStatus};
use verbs_sim::{Class, Misuse, Sleeping};

use crate::caller::{self, way_to};
use crate::cq::{self, Cq};
use crate::domain::Pd;
use crate::engine::engine;
use crate::object::{CObject, Finding, Holding, context_of};
use crate::result::{
    Refusal, Result, known_bits, or_zero, pointer, present, same_context, silent, status,
};

/// Whose turn it is to use the queue, and the completion that its iteration has come to.
#[derive(Default)]
pub(crate) struct Iteration(ReentrantMutex<Cell<Option<WcEx>>>);

pub(crate) extern "C" fn create_cq_ex(
    context: *mut ibv_context,
    init: *mut ibv_cq_init_attr_ex,
) -> *mut ibv_cq_ex {
    pointer("ibv_create_cq_ex", context, || {
        present(init)?;
        // SAFETY: the program's, valid for the call; the fields behind the mask are there if it
        // names them (C's contract).
        let raw = unsafe { ibv_cq_init_attr_ex::read(init) };
        let known = IBV_CQ_INIT_ATTR_MASK_FLAGS | IBV_CQ_INIT_ATTR_MASK_PD;
        known_bits("comp_mask", raw.comp_mask, known)?;
        let parent = match raw.comp_mask & IBV_CQ_INIT_ATTR_MASK_PD {
            0 => None,
            _ => Some(CObject::<Pd>::find(raw.parent_domain)?),
        };
        if let Some(pd) = &parent {
            same_context(pd.handle, context_of(context)?)?;
            if !pd.is_parent() {
                let what = format!("{} is no parent domain", pd.handle);
                return Err(Refusal::new(libc::EINVAL, what));
            }
        }
        let asked = ibv_cq_init_attr_ex::from_c(&raw, None);
        let sizes = (asked.cq.cqe, asked.cq.comp_vector);
        let create = |of, plain: &CqInit| {
            let init = CqInitEx {
                cq: *plain,
                ..asked
            };
            let handle = engine().sim.create_cq_ex(of, &init)?;
            Ok((handle, Some(Iteration::default())))
        };
        Ok(cq::make(context, sizes, raw.cq_context, raw.channel, parent, create)?.raw())
    })
}

pub(crate) extern "C" fn modify_cq(cq: *mut ibv_cq, attr: *mut ibv_modify_cq_attr) -> c_int {
    status("ibv_modify_cq", cq, || {
        let cq = CObject::<Cq>::find(cq)?;
        present(attr)?;
        // SAFETY: the program's, valid for the call (C's contract).
        let attr = unsafe { attr.read() };
        if attr.attr_mask != IBV_CQ_ATTR_MODERATE {
            let what = format!(
                "attr_mask is {:#x}, allowed is IBV_CQ_ATTR_MODERATE",
                attr.attr_mask
            );
            let refusal = Refusal::new(libc::EINVAL, what);
            return Err(refusal);
        }
        let moderation = ibv_moderate_cq::from_c(&attr.moderate);
        Ok(engine().sim.modify_cq(cq.handle, &moderation)?)
    })
}

/// The structure of a queue, and behind it what an extended one has. C finds the functions of others
/// missing.
pub(crate) fn extended(cq_base: ibv_cq, iterates: bool) -> ibv_cq_ex {
    let mut raw = ibv_cq_ex {
        cq_base,
        ..ibv_cq_ex::default()
    };
    if iterates {
        raw.start_poll = Some(way_to!(start_poll));
        raw.next_poll = Some(way_to!(next_poll));
        raw.end_poll = Some(way_to!(end_poll));
        raw.read_opcode = Some(way_to!(read_opcode));
        raw.read_vendor_err = Some(way_to!(read_vendor_err));
        raw.read_byte_len = Some(way_to!(read_byte_len));
        raw.read_imm_data = Some(way_to!(read_imm_data));
        raw.read_qp_num = Some(way_to!(read_qp_num));
        raw.read_src_qp = Some(way_to!(read_src_qp));
        raw.read_wc_flags = Some(way_to!(read_wc_flags));
        raw.read_slid = Some(way_to!(read_slid));
        raw.read_sl = Some(way_to!(read_sl));
        raw.read_dlid_path_bits = Some(way_to!(read_dlid_path_bits));
        raw.read_completion_ts = Some(way_to!(read_completion_ts));
        raw.read_completion_wallclock_ns = Some(way_to!(read_completion_wallclock_ns));
    }
    raw
}

/// A turn at a queue.
type Turn<'i> = ReentrantMutexGuard<'i, Cell<Option<WcEx>>>;

impl Iteration {
    /// Waits until no other thread has the turn, in this call.
    fn turn(&self, cq: &CObject<Cq>, call: &'static str) -> Turn<'_> {
        let Self(lock) = self;
        lock.try_lock().unwrap_or_else(|| {
            let sim = &engine().sim;
            let _sleeping =
                caller::is_named().then(|| Sleeping::for_iteration(sim, call, cq.handle));
            lock.lock()
        })
    }
}

impl CObject<Cq> {
    /// Of an extended one.
    #[inline]
    fn iteration(&self) -> Result<&Iteration> {
        self.more.iteration.as_ref().ok_or_else(|| {
            let what = "it was not made by ibv_create_cq_ex, so nothing can iterate over it";
            Refusal::new(libc::EINVAL, what)
        })
    }

    /// Whether another thread iterates over it; then waits until it has ended.
    fn waited(&self, verb: Verb) -> bool {
        let Some(iteration) = &self.more.iteration else {
            return false;
        };
        let others = !iteration.0.is_owned_by_current_thread();
        drop(iteration.turn(self, verb.name()));
        others
    }
}

/// Calls a verb that the engine refuses while there is an iteration over this queue: between those of other threads. One of
/// this thread would be waited for for ever, so it is refused.
#[inline]
pub(crate) fn in_turn<T>(cq: &CObject<Cq>, verb: Verb, call: impl FnOnce() -> T) -> T {
    let iteration = cq.more.iteration.as_ref();
    let _turn = iteration.map(|iteration| iteration.turn(cq, verb.name()));
    call()
}

/// The same of several queues, and of verbs that wait for other threads, which may need their turn meanwhile.
pub(crate) fn after_others<T>(
    cqs: &[Holding<Cq>],
    verb: Verb,
    mut call: impl FnMut() -> verbs_api::Result<T>,
) -> verbs_api::Result<T> {
    loop {
        // Most often there is nothing left then that the engine would take for a mistake.
        have_waited(verb, cqs);
        match call() {
            Err(error) if error.kind() == ErrorKind::Usage && have_waited(verb, cqs) => {}
            result => return result,
        }
    }
}

/// Waits until other threads iterate over none of these; whether one did.
fn have_waited(verb: Verb, cqs: &[Holding<Cq>]) -> bool {
    cqs.iter()
        .fold(false, |waited, cq| cq.waited(verb) | waited)
}

fn find(cq: *mut ibv_cq_ex) -> Result<Finding<Cq>> {
    let cq = CObject::<Cq>::find(cq.cast())?;
    cq.iteration()?;
    Ok(cq)
}

extern "C" fn start_poll(cq: *mut ibv_cq_ex, attr: *mut ibv_poll_cq_attr) -> c_int {
    status("ibv_start_poll", cq, || {
        let found = find(cq)?;
        // SAFETY: the program's, valid for the call, if there is one: a mask (C's contract).
        if !attr.is_null() && unsafe { attr.read_unaligned() }.comp_mask != 0 {
            let refusal = Refusal::new(libc::EINVAL, "comp_mask is not 0");
            return Err(refusal);
        }
        let turn = found.iteration()?.turn(&found, Verb::StartPoll.name());
        let started = engine().sim.start_poll(found.handle);
        found.more.vain.note(started.is_ok().into());
        started?;
        show(&found, &turn)?;
        // Until `end_poll`.
        mem::forget(turn);
        Ok(())
    })
}

extern "C" fn next_poll(cq: *mut ibv_cq_ex) -> c_int {
    status("ibv_next_poll", cq, || {
        let found = find(cq)?;
        let turn = found.iteration()?.turn(&found, Verb::NextPoll.name());
        engine().sim.next_poll(found.handle)?;
        show(&found, &turn)
    })
}

extern "C" fn end_poll(cq: *mut ibv_cq_ex) {
    silent("ibv_end_poll", cq, || {
        let found = find(cq)?;
        let iteration = found.iteration()?;
        let turn = iteration.turn(&found, Verb::EndPoll.name());
        engine().sim.end_poll(found.handle)?;
        turn.set(None);
        drop(turn);
        // SAFETY: an iteration was open, and no other thread could have ended it: the lock is this
        // thread's since `start_poll`, whose guard was forgotten.
        unsafe { iteration.0.force_unlock() };
        Ok(())
    });
}

/// The completion that an iteration has come to: its number and status are fields.
fn show(cq: &CObject<Cq>, completion: &Cell<Option<WcEx>>) -> Result<()> {
    let wc = engine().sim.read_wc(cq.handle)?;
    completion.set(Some(wc));
    let raw = cq.raw();
    // SAFETY: one of ours, which stays for the call; the thread has the turn.
    unsafe {
        (*raw).wr_id = wc.wr_id;
        (*raw).status = wc.status.into();
    }
    Ok(())
}

/// Readers: what the queue was not made with is 0, and so is all without an iteration. Those of `if good` have a value only
/// if the work succeeded (WC-01).
macro_rules! readers {
    ($( $name:ident: $type:ty = $(if $good:ident)? |$wc:ident, $reader:ident| $value:expr; )*) => { $(
        extern "C" fn $name(cq: *mut ibv_cq_ex) -> $type {
            let name = concat!("ibv_wc_", stringify!($name));
            or_zero(name, cq, || {
                let $reader = Reader { cq: find(cq)?, name };
                let $wc = $reader.completion()?;
                $( $reader.$good(&$wc); )?
                Ok($value)
            })
        }
    )* };
}

/// A call that reads a field.
struct Reader {
    cq: Finding<Cq>,
    name: &'static str,
}

impl Reader {
    /// What the iteration has come to.
    fn completion(&self) -> Result<WcEx> {
        let iteration = self.cq.iteration()?;
        let completion = iteration.turn(&self.cq, self.name).get();
        completion.ok_or_else(|| {
            self.note(
                Class::Iterated,
                format_args!("no iteration over {} is open", self.cq.handle),
            );
            Refusal::noted(libc::EINVAL)
        })
    }

    /// A program reads what has a value only of work that succeeded.
    fn good(&self, wc: &WcEx) {
        if wc.status != WcStatus::Success {
            let status = wc.status;
            self.note(
                Class::UndefinedField,
                format_args!("the completion failed with {status}: the value is not defined"),
            );
        }
    }

    /// A program reads what it may have asked for when it made the queue.
    #[inline]
    fn asked<T: Default>(&self, value: Option<T>) -> T {
        value.unwrap_or_else(|| {
            self.note(
                Class::FieldNotAsked,
                format_args!("{} was made without this field (wc_flags)", self.cq.handle),
            );
            T::default()
        })
    }

    #[cold]
    fn note(&self, class: Class, why: fmt::Arguments<'_>) {
        if caller::is_named() {
            let misuse = Misuse {
                context: Some(self.cq.handle.context()),
                class,
                fact: [self.name, ""],
                text: format!("{} was called, but {why}", self.name),
                place: None,
            };
            misuse.note(&engine().sim);
        }
    }
}

readers! {
    read_opcode: u32 = if good |wc, _reader| wc.opcode.into();
    read_vendor_err: u32 = |wc, _reader| wc.vendor_err;
    read_byte_len: u32 = if good |wc, reader| reader.asked(wc.byte_len);
    read_imm_data: u32 = if good |wc, reader| u32::from_ne_bytes(reader.asked(wc.imm_data));
    read_qp_num: u32 = |wc, reader| reader.asked(wc.qp_num);
    read_src_qp: u32 = if good |wc, reader| reader.asked(wc.src_qp);
    read_wc_flags: u32 = |wc, _reader| wc.wc_flags.bits();
    read_slid: u32 = if good |wc, reader| reader.asked(wc.slid);
    read_sl: u8 = if good |wc, reader| reader.asked(wc.sl);
    read_dlid_path_bits: u8 = if good |wc, reader| reader.asked(wc.dlid_path_bits);
    read_completion_ts: u64 = |wc, reader| reader.asked(wc.completion_ts);
    read_completion_wallclock_ns: u64 = |wc, reader| reader.asked(wc.completion_wallclock_ns);
}
