//! Extended completion queues: iterations.

use verbs_api::behavior::PollAfterOverrun;
use verbs_api::{
    Capabilities, Cause, Context, Cq as CqHandle, CqFlags, CqInitEx, Error, ErrorKind, Result,
    Verb, Wc, WcEx, WcFields,
};

use super::cq::Entry;
use super::{Node, invalid};
use crate::time::Time;

/// What an extended CQ has beyond others.
#[derive(Clone, Copy, Debug)]
pub(super) struct Extended {
    wc_flags: WcFields,
    flags: CqFlags,
    iteration: Option<Iteration>,
}

/// An iteration that is open.
#[derive(Clone, Copy, Debug)]
struct Iteration {
    /// The completion it has come to, and when that was added; none at the end.
    current: Option<(Wc, Time)>,
    /// The completions it has come to. They have their places in the CQ until the end.
    held: u32,
}

impl Extended {
    /// Whether a completion for which there is no room takes the place of another.
    pub(super) fn overwrites(&self) -> bool {
        self.flags.contains(CqFlags::IGNORE_OVERRUN)
    }

    /// Entries that an iteration has not given back yet.
    pub(super) fn held(&self) -> u32 {
        self.iteration.map_or(0, |iteration| iteration.held)
    }

    /// One of them was overwritten.
    pub(super) fn lose_held(&mut self) {
        if let Some(iteration) = &mut self.iteration {
            iteration.held -= 1;
        }
    }
}

impl Node {
    /// `ibv_create_cq_ex`
    pub fn create_cq_ex(&mut self, context: Context, init: &CqInitEx) -> Result<CqHandle> {
        let verb = Verb::CreateCqEx;
        self.find_context(verb, context)?;
        self.check_has(verb, Capabilities::CQ_EX, "has no extended CQs")?;
        let (mut fields, mut flags) = (
            WcFields::STANDARD | WcFields::TIMESTAMPS,
            CqFlags::SINGLE_THREADED | CqFlags::IGNORE_OVERRUN,
        );
        if self.lacks.contains(Capabilities::WC_TIMESTAMP) {
            fields -= WcFields::TIMESTAMPS;
        }
        if self.lacks.contains(Capabilities::IGNORE_OVERRUN) {
            flags -= CqFlags::IGNORE_OVERRUN;
        }
        let refuse = |what, problem| {
            let cause = Cause::Argument { what, problem };
            Err(Error::new(verb, ErrorKind::NotSupported, cause))
        };
        if !fields.contains(init.wc_flags) {
            return refuse("wc_flags", "has fields that the device does not give");
        }
        if !flags.contains(init.flags) {
            return refuse("flags", "has some that the device has not");
        }
        let extended = Extended {
            wc_flags: init.wc_flags,
            flags: init.flags,
            iteration: None,
        };
        self.make_cq(verb, context, &init.cq, Some(extended))
    }

    /// `ibv_start_poll`
    pub fn start_poll(&mut self, cq: CqHandle) -> Result<()> {
        let verb = Verb::StartPoll;
        let index = Self::find(&self.cqs, verb, cq)?;
        self.check_extended(verb, index)?;
        self.check_no_iteration(verb, index)?;
        let found = self.cqs.at(index);
        let fails = self.behavior.poll_after_overrun == PollAfterOverrun::Error;
        if found.has_died_empty() && fails {
            return Err(Error::new(verb, ErrorKind::Io, Cause::CqOverrun));
        }
        let current = self.take_entry(index);
        if current.is_none() {
            return Err(nothing(verb, "the cq is empty"));
        }
        self.set_iteration(index, Some(Iteration { current, held: 1 }));
        Ok(())
    }

    /// `ibv_next_poll`
    pub fn next_poll(&mut self, cq: CqHandle) -> Result<()> {
        let verb = Verb::NextPoll;
        let index = Self::find(&self.cqs, verb, cq)?;
        let (Iteration { current, held }, _) = self.iteration(verb, index)?;
        if current.is_none() {
            return Err(misuse(
                verb,
                format!("the iteration over {cq} is at its end"),
            ));
        }
        let current = self.take_entry(index);
        let held = held + u32::from(current.is_some());
        self.set_iteration(index, Some(Iteration { current, held }));
        match current {
            Some(_) => Ok(()),
            None => Err(nothing(verb, "the cq has no further completion")),
        }
    }

    /// `ibv_wc_read_*`
    pub fn read_wc(&self, cq: CqHandle) -> Result<WcEx> {
        let verb = Verb::ReadWc;
        let index = Self::find(&self.cqs, verb, cq)?;
        let (iteration, fields) = self.iteration(verb, index)?;
        let Some((wc, at)) = iteration.current else {
            let text = format!("the iteration over {cq} is at its end");
            return Err(misuse(verb, text));
        };
        Ok(read(&wc, at, fields))
    }

    /// `ibv_end_poll`
    pub fn end_poll(&mut self, cq: CqHandle) -> Result<()> {
        let verb = Verb::EndPoll;
        let index = Self::find(&self.cqs, verb, cq)?;
        self.iteration(verb, index)?;
        self.set_iteration(index, None);
        Ok(())
    }

    /// Refuses what would wait for the end of an iteration.
    pub(super) fn check_no_iteration(&self, verb: Verb, index: u32) -> Result<()> {
        let cq = self.cqs.at(index);
        if !cq.is_iterated() {
            return Ok(());
        }
        let text = format!(
            "an iteration over {} is open, and would be waited for",
            cq.handle
        );
        Err(misuse(verb, text))
    }

    fn check_extended(&self, verb: Verb, index: u32) -> Result<Extended> {
        let extended = self.cqs.at(index).extended;
        extended.ok_or_else(|| invalid(verb, "cq", "is not an extended one"))
    }

    /// The iteration that is open, and the fields of its completions.
    fn iteration(&self, verb: Verb, index: u32) -> Result<(Iteration, WcFields)> {
        let extended = self.check_extended(verb, index)?;
        let cq = self.cqs.at(index).handle;
        let no_iteration = || misuse(verb, format!("no iteration over {cq} is open"));
        let iteration = extended.iteration.ok_or_else(no_iteration)?;
        Ok((iteration, extended.wc_flags))
    }

    fn set_iteration(&mut self, index: u32, iteration: Option<Iteration>) {
        if let Some(extended) = &mut self.cqs.at_mut(index).extended {
            extended.iteration = iteration;
        }
        self.show(index);
    }

    /// The oldest completion leaves the ring, and what it is of leaves its queue.
    fn take_entry(&mut self, index: u32) -> Option<(Wc, Time)> {
        let Entry { wc, ticket, at, .. } = self.cqs.at_mut(index).pop()?;
        self.release(ticket);
        self.place_late();
        Some((wc, at))
    }
}

impl super::cq::Cq {
    /// An iteration over it is open.
    pub(super) fn is_iterated(&self) -> bool {
        self.extended
            .is_some_and(|extended| extended.iteration.is_some())
    }
}

fn read(wc: &Wc, at: Time, fields: WcFields) -> WcEx {
    fn asked<T>(fields: WcFields, field: WcFields, value: T) -> Option<T> {
        fields.contains(field).then_some(value)
    }
    let nanos = at.as_nanos();
    let mut read = WcEx::default();
    read.wr_id = wc.wr_id;
    read.status = wc.status;
    read.opcode = wc.opcode;
    read.vendor_err = wc.vendor_err;
    read.wc_flags = wc.wc_flags;
    read.byte_len = asked(fields, WcFields::BYTE_LEN, wc.byte_len);
    read.imm_data = asked(fields, WcFields::IMM, wc.imm_data);
    read.qp_num = asked(fields, WcFields::QP_NUM, wc.qp_num);
    read.src_qp = asked(fields, WcFields::SRC_QP, wc.src_qp);
    read.slid = asked(fields, WcFields::SLID, wc.slid.into());
    read.sl = asked(fields, WcFields::SL, wc.sl);
    read.dlid_path_bits = asked(fields, WcFields::DLID_PATH_BITS, wc.dlid_path_bits);
    read.completion_ts = asked(fields, WcFields::COMPLETION_TIMESTAMP, nanos);
    read.completion_wallclock_ns = asked(fields, WcFields::COMPLETION_TIMESTAMP_WALLCLOCK, nanos);
    read
}

fn nothing(verb: Verb, text: &'static str) -> Error {
    Error::new(verb, ErrorKind::NotFound, Cause::Text(text.into()))
}

fn misuse(verb: Verb, text: String) -> Error {
    Error::new(verb, ErrorKind::Usage, Cause::Usage(text.into()))
}
