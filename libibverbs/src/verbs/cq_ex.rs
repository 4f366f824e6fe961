//! Extended completion queues: iterations (`ibv_start_poll`), and moderation (`ibv_modify_cq`).
//!
//! Calls that would make a thread wait for its own iteration are refused.

use std::cell::Cell;
use std::ffi::c_int;
use std::fmt;
use std::mem;

use verbs_abi::{
    IBV_CQ_ATTR_MODERATE, IBV_CQ_INIT_ATTR_MASK_FLAGS, IBV_CQ_INIT_ATTR_MASK_PD, ibv_context,
    ibv_cq, ibv_cq_ex, ibv_cq_init_attr_ex, ibv_moderate_cq, ibv_modify_cq_attr, ibv_poll_cq_attr,
};
use verbs_api::{CqInitEx, Handle, Verb, Verbs, WcEx, WcStatus};
use verbs_sim::{Class, Misuse};

use super::cq::{self, Cq};
use super::domain::Pd;
use super::iteration::Iteration;
use crate::base::thread::entries;
use crate::c::{
    CObject, Found, Later, Refusal, Result, caller, known_bits, or_zero, passed, pointer, present,
    silent, status,
};
use crate::engine::sim;

pub(crate) extern "C" fn create_cq_ex(
    context: *mut ibv_context,
    init: *mut ibv_cq_init_attr_ex,
) -> *mut ibv_cq_ex {
    pointer("ibv_create_cq_ex", Later(context), |()| {
        present(init)?;
        // SAFETY: the program's, valid for the call. It has the fields that the mask names (C's
        // contract).
        let asked = unsafe { ibv_cq_init_attr_ex::read(init) };
        let known = IBV_CQ_INIT_ATTR_MASK_FLAGS | IBV_CQ_INIT_ATTR_MASK_PD;
        known_bits("comp_mask", asked.comp_mask, known)?;
        let parent = match asked.comp_mask & IBV_CQ_INIT_ATTR_MASK_PD {
            0 => None,
            _ => Some(CObject::<Pd>::find(asked.parent_domain)?),
        };
        let made = cq::make(context, &asked, |of, init| {
            let init = CqInitEx {
                parent_domain: parent.as_ref().map(|pd| pd.handle),
                ..*init
            };
            let handle = sim().create_cq_ex(of, &init)?;
            Ok((handle, functions(), Some(Iteration::default())))
        })?;
        Ok(made.raw())
    })
}

pub(crate) extern "C" fn modify_cq(cq: *mut ibv_cq, attr: *mut ibv_modify_cq_attr) -> c_int {
    status("ibv_modify_cq", cq, |cq| {
        // SAFETY: the program's, valid for the call (C's contract).
        let attr = unsafe { passed(attr) }?;
        if attr.attr_mask != IBV_CQ_ATTR_MODERATE {
            let what = format!(
                "attr_mask is {:#x}, allowed is IBV_CQ_ATTR_MODERATE",
                attr.attr_mask
            );
            return Err(Refusal::invalid(what));
        }
        let moderation = ibv_moderate_cq::from_c(&attr.moderate);
        Ok(sim().modify_cq(cq.handle, &moderation)?)
    })
}

/// The structure of an extended queue without its plain part: its functions. In C they are null for
/// other queues.
fn functions() -> ibv_cq_ex {
    entries!(ibv_cq_ex: self {
        start_poll next_poll end_poll read_opcode read_vendor_err read_byte_len read_imm_data
        read_qp_num read_src_qp read_wc_flags read_slid read_sl read_dlid_path_bits
        read_completion_ts read_completion_wallclock_ns
    })
}

impl CObject<Cq> {
    /// The iteration over an extended queue.
    #[inline]
    fn iteration(&self) -> Result<&Iteration> {
        self.more.iteration.as_ref().ok_or_else(|| {
            Refusal::invalid("it was not made by ibv_create_cq_ex, so nothing can iterate over it")
        })
    }
}

extern "C" fn start_poll(cq: *mut ibv_cq_ex, attr: *mut ibv_poll_cq_attr) -> c_int {
    status("ibv_start_poll", cq, |cq| {
        let iteration = cq.iteration()?;
        // SAFETY: the program's, or null; its mask comes first (C's contract).
        if !attr.is_null() && unsafe { attr.read_unaligned() }.comp_mask != 0 {
            return Err(Refusal::invalid("comp_mask is not 0"));
        }
        let in_use = cq.in_use(Verb::StartPoll);
        let turn = iteration.turn(cq.handle, Verb::StartPoll.name());
        let started = sim().start_poll(cq.handle);
        cq.note_poll(started.is_ok().into());
        started?;
        show(&cq, &turn)?;
        // The turn and the use last until `end_poll`.
        mem::forget((turn, in_use));
        Ok(())
    })
}

extern "C" fn next_poll(cq: *mut ibv_cq_ex) -> c_int {
    status("ibv_next_poll", cq, |cq| {
        let iteration = cq.iteration()?;
        let _in_use = cq.in_use(Verb::NextPoll);
        let turn = iteration.turn(cq.handle, Verb::NextPoll.name());
        sim().next_poll(cq.handle)?;
        show(&cq, &turn)
    })
}

extern "C" fn end_poll(cq: *mut ibv_cq_ex) {
    silent("ibv_end_poll", cq, |cq| {
        let iteration = cq.iteration()?;
        let _in_use = cq.in_use(Verb::EndPoll);
        let turn = iteration.turn(cq.handle, Verb::EndPoll.name());
        sim().end_poll(cq.handle)?;
        turn.set(None);
        drop(turn);
        // SAFETY: an iteration was open, and only this thread could have started it: `start_poll`
        // has forgotten the guard.
        unsafe { iteration.end() };
        if let Some(exclusive) = &cq.more.exclusive {
            exclusive.leave();
        }
        Ok(())
    });
}

/// Shows the completion that an iteration has reached. Its number and status are fields.
fn show(cq: &CObject<Cq>, completion: &Cell<Option<WcEx>>) -> Result<()> {
    let wc = sim().read_wc(cq.handle)?;
    completion.set(Some(wc));
    let raw = cq.raw();
    // SAFETY: one of ours, which stays for the call; the thread has the turn.
    unsafe {
        (*raw).wr_id = wc.wr_id;
        (*raw).status = wc.status.into();
    }
    Ok(())
}

/// Functions that read a field of a completion. A field that the queue was not made with is 0, and
/// so is each field outside of an iteration. Fields with `if good` are defined only if the work
/// succeeded (WC-01).
macro_rules! readers {
    ($( $name:ident: $type:ty = $(if $good:ident)? |$wc:ident, $reader:ident| $value:expr; )*) => { $(
        extern "C" fn $name(cq: *mut ibv_cq_ex) -> $type {
            let name = concat!("ibv_wc_", stringify!($name));
            or_zero(name, cq, |cq| {
                let $reader = Reader { cq, name };
                let $wc = $reader.completion()?;
                $( $reader.$good(&$wc); )?
                Ok($value)
            })
        }
    )* };
}

/// A call that reads a field.
struct Reader {
    cq: Found<Cq>,
    name: &'static str,
}

impl Reader {
    /// The completion that the iteration has reached.
    fn completion(&self) -> Result<WcEx> {
        let iteration = self.cq.iteration()?;
        let completion = iteration.turn(self.cq.handle, self.name).get();
        completion.ok_or_else(|| {
            self.note(
                Class::Iterated,
                format_args!("no iteration over {} is open", self.cq.handle),
            );
            Refusal::expected(libc::EINVAL)
        })
    }

    /// Notes a read of a field that is defined only if the work succeeded.
    fn good(&self, wc: &WcEx) {
        if wc.status != WcStatus::Success {
            let status = wc.status;
            self.note(
                Class::UndefinedField,
                format_args!("the completion failed with {status}: the value is not defined"),
            );
        }
    }

    /// The value of a field that the program may have asked for when it made the queue.
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
            misuse.note(sim());
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
