//! Extended completion queues: iterations; and moderation.
//!
//! From `ibv_start_poll` to `ibv_end_poll` drivers hold a lock of the CQ, or rely on nobody else using
//! it. So each CQ has a lock of its own here, for what drivers do under theirs, which says how an
//! iteration stands: what would wait for one is refused.

use std::ptr::from_ref;
use std::sync::Arc;

use parking_lot::MutexGuard;
use verbs_api::{
    Cause, Context, Cq as CqHandle, CqInitEx, CqModeration, Error, ErrorKind, Object, Result, Verb,
    WcEx, WcFields, WcFlags,
};

use crate::errno::{check, destroyed, invalid, made};
use crate::hw::Hw;
use crate::objects::{Cq, Qp};
use crate::sys;

/// How an iteration over a CQ stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Iteration {
    /// None is open.
    #[default]
    None,
    /// It has come to a completion.
    AtCompletion,
    /// There was no further completion.
    AtEnd,
}

/// While it lives no other thread polls the CQ, or looks through it.
pub(crate) type Rest<'a> = MutexGuard<'a, Iteration>;

impl Hw {
    /// `ibv_create_cq_ex`
    pub(crate) fn make_cq_ex(&self, context: Context, init: &CqInitEx) -> Result<CqHandle> {
        let verb = Verb::CreateCqEx;
        self.make_cq(
            verb,
            context,
            &init.cq,
            Some(init.wc_flags),
            |context, channel| {
                made(verb, || {
                    // SAFETY: context and channel are live, or the channel is null.
                    unsafe { sys::create_cq_ex(context, channel, init) }
                })
            },
        )
    }

    /// `ibv_start_poll`
    pub(crate) fn start_iteration(&self, cq: CqHandle) -> Result<()> {
        let verb = Verb::StartPoll;
        let found = self.extended(verb, cq)?;
        let mut iteration = found.at_rest(verb)?;
        // SAFETY: the CQ is live and an extended one; no iteration is open.
        let start = |cq| unsafe { sys::start_poll(cq) };
        let result = found.raw.with(start).map_err(destroyed(verb, Object::Cq))?;
        check(verb, result)?;
        *iteration = Iteration::AtCompletion;
        Ok(())
    }

    /// `ibv_next_poll`
    pub(crate) fn next_of_iteration(&self, cq: CqHandle) -> Result<()> {
        let verb = Verb::NextPoll;
        let found = self.extended(verb, cq)?;
        let mut iteration = found.at_completion(verb)?;
        // SAFETY: the CQ is live and an extended one; an iteration is open.
        let next = |cq| unsafe { sys::next_poll(cq) };
        let result = found.raw.with(next).map_err(destroyed(verb, Object::Cq))?;
        if result != 0 {
            *iteration = Iteration::AtEnd;
        }
        check(verb, result)
    }

    /// `ibv_wc_read_*`
    pub(crate) fn completion_of_iteration(&self, cq: CqHandle) -> Result<WcEx> {
        let verb = Verb::ReadWc;
        let found = self.extended(verb, cq)?;
        let fields = found.extended.unwrap_or_default();
        let _iteration = found.at_completion(verb)?;
        let read = |cq| {
            // SAFETY: the CQ is live and an extended one; an iteration has come to a completion.
            unsafe { completion(cq, fields) }
        };
        found.raw.with(read).map_err(destroyed(verb, Object::Cq))
    }

    /// `ibv_end_poll`
    pub(crate) fn end_iteration(&self, cq: CqHandle) -> Result<()> {
        let verb = Verb::EndPoll;
        let found = self.extended(verb, cq)?;
        let mut iteration = found.iteration.lock();
        if *iteration == Iteration::None {
            return Err(misuse(verb, "no iteration over the cq is open"));
        }
        found.end(&mut iteration);
        Ok(())
    }

    /// `ibv_modify_cq`
    pub(crate) fn moderate_cq(&self, cq: CqHandle, moderation: &CqModeration) -> Result<()> {
        let verb = Verb::ModifyCq;
        let found = self.cq(verb, cq)?;
        let CqModeration {
            cq_count,
            cq_period,
        } = *moderation;
        // SAFETY: the CQ is live.
        let modify = |cq| unsafe { sys::modify_cq(cq, cq_count, cq_period) };
        let result = found.raw.with(modify);
        check(verb, result.map_err(destroyed(verb, Object::Cq))?)
    }

    fn extended(&self, verb: Verb, cq: CqHandle) -> Result<Arc<Cq>> {
        let found = self.cq(verb, cq)?;
        match found.extended {
            Some(_) => Ok(found),
            None => Err(invalid(verb, "cq", "is not an extended one")),
        }
    }
}

impl Cq {
    /// Keeps others from polling; no iteration is open.
    pub(crate) fn at_rest(&self, verb: Verb) -> Result<Rest<'_>> {
        let iteration = self.iteration.lock();
        match *iteration {
            Iteration::None => Ok(iteration),
            _ => Err(misuse(
                verb,
                "an iteration over the cq is open, and would be waited for",
            )),
        }
    }

    fn at_completion(&self, verb: Verb) -> Result<Rest<'_>> {
        let iteration = self.iteration.lock();
        match *iteration {
            Iteration::AtCompletion => Ok(iteration),
            Iteration::AtEnd => Err(misuse(verb, "the iteration over the cq is at its end")),
            Iteration::None => Err(misuse(verb, "no iteration over the cq is open")),
        }
    }

    /// Ends an iteration that is open.
    fn end(&self, iteration: &mut Iteration) {
        if std::mem::take(iteration) != Iteration::None {
            // SAFETY: the CQ is live and an extended one; an iteration was open.
            let end = |cq| unsafe { sys::end_poll(cq) };
            // Without the CQ there is none any more.
            let _ = self.raw.with(end);
        }
    }
}

impl Qp {
    /// Keeps others from polling its CQs, over which no iteration is open: drivers look through them.
    pub(crate) fn cqs_at_rest(&self, verb: Verb) -> Result<Vec<Rest<'_>>> {
        self.own_cqs()
            .into_iter()
            .map(|cq| cq.at_rest(verb))
            .collect()
    }

    /// Its CQs, each once, in an order that all threads keep.
    fn own_cqs(&self) -> Vec<&Cq> {
        let mut cqs: Vec<&Cq> = self.cqs.iter().map(|cq| &**cq).collect();
        cqs.sort_by_key(|cq| from_ref::<Cq>(cq).addr());
        cqs.dedup_by_key(|cq| from_ref::<Cq>(cq).addr());
        cqs
    }
}

impl Drop for Qp {
    /// Goes with iterations over its CQs that nobody has ended.
    fn drop(&mut self) {
        if self.raw.address() == 0 {
            return;
        }
        let cqs = self.own_cqs();
        let mut rests: Vec<Rest<'_>> = cqs.iter().map(|cq| cq.iteration.lock()).collect();
        for (cq, rest) in cqs.iter().zip(&mut rests) {
            cq.end(rest);
        }
        self.acknowledge_all();
        // A refusal cannot be reported here.
        let _ = self.raw.destroy(|| Ok::<(), Error>(()));
    }
}

/// # Safety
/// `cq` is a live extended CQ, of which an iteration has come to a completion.
unsafe fn completion(cq: *mut sys::ibv_cq, fields: WcFields) -> WcEx {
    let cq: *mut sys::ibv_cq_ex = cq.cast();
    // SAFETY: the CQ is live and an extended one.
    let own = unsafe { &*cq };
    macro_rules! read {
        ($reader:ident) => {
            // SAFETY: as promised.
            own.$reader.map(|read| unsafe { read(cq) })
        };
        ($reader:ident, $field:ident) => {
            match fields.contains(WcFields::$field) {
                true => read!($reader),
                false => None,
            }
        };
    }
    WcEx {
        wr_id: own.wr_id,
        status: own.status.into(),
        opcode: read!(read_opcode).unwrap_or_default().into(),
        vendor_err: read!(read_vendor_err).unwrap_or_default(),
        wc_flags: WcFlags::from_bits_retain(read!(read_wc_flags).unwrap_or_default()),
        byte_len: read!(read_byte_len, BYTE_LEN),
        imm_data: read!(read_imm_data, IMM).map(u32::to_ne_bytes),
        qp_num: read!(read_qp_num, QP_NUM),
        src_qp: read!(read_src_qp, SRC_QP),
        slid: read!(read_slid, SLID),
        sl: read!(read_sl, SL),
        dlid_path_bits: read!(read_dlid_path_bits, DLID_PATH_BITS),
        completion_ts: read!(read_completion_ts, COMPLETION_TIMESTAMP),
        completion_wallclock_ns: read!(
            read_completion_wallclock_ns,
            COMPLETION_TIMESTAMP_WALLCLOCK
        ),
    }
}

fn misuse(verb: Verb, text: &'static str) -> Error {
    Error::new(verb, ErrorKind::Usage, Cause::Usage(text.into()))
}
