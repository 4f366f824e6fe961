//! Extended completion queues: iterations; and moderation.
//!
//! From `ibv_start_poll` to `ibv_end_poll` drivers hold a lock of the CQ, or rely on one user. So
//! each CQ has its own lock here, with the state of an iteration. Calls that would wait for an
//! iteration are refused.

use std::ptr::from_ref;
use std::sync::Arc;

use parking_lot::MutexGuard;
use verbs_abi::{
    IBV_CQ_ATTR_MODERATE, ibv_cq, ibv_cq_ex, ibv_cq_init_attr_ex, ibv_moderate_cq,
    ibv_modify_cq_attr, ibv_poll_cq_attr, inline,
};
use verbs_api::{Context, Cq as CqHandle, CqInitEx, CqModeration, Result, Verb, WcEx};

use crate::errno::{check, invalid, misuse};
use crate::hw::Hw;
use crate::objects::{Cq, Iteration, Qp};

/// No other thread polls the CQ or searches it while this exists.
pub(crate) type Rest<'a> = MutexGuard<'a, Iteration>;

impl Hw {
    /// `ibv_create_cq_ex`
    pub(crate) fn make_cq_ex(&self, context: Context, init: &CqInitEx) -> Result<CqHandle> {
        let verb = Verb::CreateCqEx;
        let create = |context, channel, parent| {
            let mut attr = ibv_cq_init_attr_ex::to_c(init, channel, parent);
            // SAFETY: what is not null is live. An extended CQ starts with the fields of a CQ
            // (`ibv_cq_ex_to_cq`).
            unsafe { inline::create_cq_ex(context, &mut attr) }.cast()
        };
        // SAFETY: the CQ is new.
        unsafe { self.make_cq(verb, context, &init.cq, Some(init), create) }
    }

    /// An extended CQ.
    pub(crate) fn extended(&self, verb: Verb, cq: CqHandle) -> Result<Arc<Cq>> {
        let found = self.cq(verb, cq)?;
        match found.extended {
            Some(_) => Ok(found),
            None => Err(invalid(verb, "cq", "is not an extended one")),
        }
    }
}

impl Cq {
    /// `ibv_start_poll`
    pub(crate) fn start(&self) -> Result<()> {
        let verb = Verb::StartPoll;
        let mut iteration = self.at_rest(verb)?;
        // SAFETY: the CQ is live and an extended one; no iteration is open.
        let start = |cq: *mut ibv_cq| unsafe {
            inline::start_poll(cq.cast(), &mut ibv_poll_cq_attr::default())
        };
        self.raw.call(verb, start)?;
        *iteration = Iteration::AtCompletion;
        Ok(())
    }

    /// `ibv_next_poll`
    pub(crate) fn next(&self) -> Result<()> {
        let verb = Verb::NextPoll;
        let mut iteration = self.at_completion(verb)?;
        // SAFETY: the CQ is live and an extended one; an iteration is open.
        let next = |cq: *mut ibv_cq| unsafe { inline::next_poll(cq.cast()) };
        let result = self.raw.with(verb, next)?;
        if result != 0 {
            *iteration = Iteration::AtEnd;
        }
        check(verb, result)
    }

    /// `ibv_wc_read_*`
    pub(crate) fn completion(&self) -> Result<WcEx> {
        let verb = Verb::ReadWc;
        let fields = self.extended.unwrap_or_default();
        let _iteration = self.at_completion(verb)?;
        let read = |cq: *mut ibv_cq| {
            // SAFETY: the CQ is live and an extended one; an iteration has come to a completion.
            unsafe { ibv_cq_ex::completion(cq.cast(), fields) }
        };
        self.raw.with(verb, read)
    }

    /// `ibv_end_poll`
    pub(crate) fn end_iteration(&self) -> Result<()> {
        let verb = Verb::EndPoll;
        let mut iteration = self.iteration.lock();
        if *iteration == Iteration::None {
            return Err(misuse(verb, "no iteration over the cq is open"));
        }
        self.end(&mut iteration);
        Ok(())
    }

    /// `ibv_modify_cq`
    pub(crate) fn moderate(&self, moderation: &CqModeration) -> Result<()> {
        let verb = Verb::ModifyCq;
        let mut attr = ibv_modify_cq_attr {
            attr_mask: IBV_CQ_ATTR_MODERATE,
            moderate: ibv_moderate_cq::to_c(moderation),
        };
        // SAFETY: the CQ is live.
        self.raw
            .call(verb, |cq| unsafe { inline::modify_cq(cq, &mut attr) })
    }

    /// Keeps other threads from polling, if no iteration is open.
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

    /// Ends an iteration, if one is open.
    fn end(&self, iteration: &mut Iteration) {
        if std::mem::take(iteration) != Iteration::None {
            // SAFETY: the CQ is live and an extended one; an iteration was open.
            let end = |cq: *mut ibv_cq| unsafe { inline::end_poll(cq.cast()) };
            // A CQ that was destroyed has no iteration.
            let _ = self.raw.with(Verb::EndPoll, end);
        }
    }
}

impl Qp {
    /// Keeps other threads from polling its CQs, because drivers search them. No iteration may be
    /// open.
    pub(crate) fn cqs_at_rest(&self, verb: Verb) -> Result<Vec<Rest<'_>>> {
        self.own_cqs()
            .into_iter()
            .map(|cq| cq.at_rest(verb))
            .collect()
    }

    /// Its CQs, each once, in an order that is the same in all threads.
    fn own_cqs(&self) -> Vec<&Cq> {
        let mut cqs: Vec<&Cq> = self.cqs.iter().map(|cq| &**cq).collect();
        cqs.sort_by_key(|cq| from_ref::<Cq>(cq).addr());
        cqs.dedup_by_key(|cq| from_ref::<Cq>(cq).addr());
        cqs
    }
}

impl Drop for Qp {
    /// Ends iterations over its CQs that the program has not ended.
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
        let _ = self.remove(Verb::DestroyQp);
    }
}
