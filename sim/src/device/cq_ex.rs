//! Extended completion queues: iterations.

use verbs_api::behavior::PollAfterOverrun;
use verbs_api::site::Site;
use verbs_api::{
    Capabilities, Cause, Context, Cq as CqHandle, CqFlags, CqInitEx, ErrorKind, Handle, Object,
    WcEx, WcFields, WcStatus,
};

use super::Device;
use super::check::{find, find_in, invalid};
use super::completion::{Entry, Ticket};
use super::cq::{Cq, Cqs};
use super::parent::parent;
use super::refusal::{Refusal, Result};

/// The additional state of an extended CQ.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extended {
    wc_flags: WcFields,
    flags: CqFlags,
    iteration: Option<Iteration>,
}

/// An open iteration.
#[derive(Clone, Copy, Debug)]
struct Iteration {
    /// The current completion. None at the end.
    current: Option<Entry>,
    /// The number of completions it has passed. They keep their entries until the iteration ends.
    held: u32,
    /// Where it was started.
    begun_at: Option<Site>,
}

impl Extended {
    /// Whether a completion without room replaces another one.
    pub(crate) fn overwrites(&self) -> bool {
        self.flags.contains(CqFlags::IGNORE_OVERRUN)
    }

    /// The number of entries that an iteration holds.
    pub(crate) fn held(&self) -> u32 {
        self.iteration.map_or(0, |iteration| iteration.held)
    }

    /// Releases the oldest entry that an iteration holds, to make room for another completion.
    /// Returns whether there was one.
    pub(crate) fn lose_held(&mut self) -> bool {
        let holds = |iteration: &&mut Iteration| iteration.held > 0;
        let Some(iteration) = self.iteration.as_mut().filter(holds) else {
            return false;
        };
        // The program has passed this entry, so its memory is overwritten without a loss.
        iteration.held -= 1;
        true
    }
}

impl Device {
    /// `ibv_create_cq_ex`
    pub(crate) fn create_cq_ex(&mut self, context: Context, init: &CqInitEx) -> Result<CqHandle> {
        self.base
            .check_has(Capabilities::CQ_EX, "has no extended CQs")?;
        let (mut fields, mut flags) = (
            WcFields::STANDARD | WcFields::TIMESTAMPS,
            CqFlags::SINGLE_THREADED | CqFlags::IGNORE_OVERRUN,
        );
        // A driver refuses fields that its hardware cannot deliver.
        if self.base.lacks.contains(Capabilities::WC_TIMESTAMP) {
            fields -= WcFields::TIMESTAMPS;
        }
        if self.base.lacks.contains(Capabilities::IGNORE_OVERRUN) {
            flags -= CqFlags::IGNORE_OVERRUN;
        }
        if let Some(pd) = init.parent_domain {
            // Drivers refuse a plain protection domain.
            let none = || invalid("parent_domain", "is not a parent domain");
            let found = parent(pd).ok_or_else(none)?;
            find_in(&self.base.parents.table, context, found)?;
        }
        let refuse = |what, problem| Err(Refusal::argument(ErrorKind::NotSupported, what, problem));
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
        let cq = self.create_cq(context, &init.cq, Some(extended))?;
        if let Some(pd) = init.parent_domain {
            self.base.parents.enter(pd, Object::Cq, cq.index());
        }
        Ok(cq)
    }

    /// `ibv_start_poll`: moves to the first completion. Returns its status and its work.
    pub(crate) fn start_poll(&mut self, cq: CqHandle) -> Result<(WcStatus, Ticket)> {
        let index = find(&self.cqs.table, cq)?;
        self.cqs.check_extended(index)?;
        self.cqs.check_no_iteration(index)?;
        let fails = self.base.behavior.poll_after_overrun == PollAfterOverrun::Error;
        if self.cqs.table.at(index).has_died_empty() && fails {
            return Err(Refusal::new(ErrorKind::Io, Cause::CqOverrun));
        }
        let usage = &mut self.cqs.table.at_mut(index).usage;
        (usage.was_polled, usage.event_was_read) = (true, false);
        let Some(entry) = self.cqs.pop(index).copied() else {
            // The next `ibv_poll_cq` need not take the lock.
            self.cqs.show(index);
            return Err(nothing("the cq is empty"));
        };
        let iteration = Iteration {
            current: Some(entry),
            // An entry keeps its place until `ibv_end_poll`, even if it was read.
            held: 1,
            begun_at: self.base.site,
        };
        self.cqs.set_iteration(index, Some(iteration));
        Ok((entry.wc.status, entry.ticket))
    }

    /// `ibv_next_poll`: moves to the next completion. Returns its status and its work.
    pub(crate) fn next_poll(&mut self, cq: CqHandle) -> Result<(WcStatus, Ticket)> {
        let index = find(&self.cqs.table, cq)?;
        let (before, _) = self.cqs.iteration(index)?;
        // C gives no meaning to a call after the end.
        before.current.ok_or_else(|| at_end(cq))?;
        let next = self.cqs.pop(index).copied();
        let iteration = Iteration {
            current: next,
            held: before.held + u32::from(next.is_some()),
            ..before
        };
        self.cqs.set_iteration(index, Some(iteration));
        match next {
            Some(entry) => Ok((entry.wc.status, entry.ticket)),
            None => Err(nothing("the cq has no further completion")),
        }
    }

    /// `ibv_wc_read_*`
    pub(crate) fn read_wc(&self, cq: CqHandle) -> Result<WcEx> {
        let index = find(&self.cqs.table, cq)?;
        let (iteration, fields) = self.cqs.iteration(index)?;
        // After the end there is no current completion to read.
        let current = iteration.current.ok_or_else(|| at_end(cq))?;
        Ok(read(&current, fields))
    }

    /// `ibv_end_poll`
    pub(crate) fn end_poll(&mut self, cq: CqHandle) -> Result<()> {
        let index = find(&self.cqs.table, cq)?;
        self.cqs.iteration(index)?;
        self.cqs.set_iteration(index, None);
        Ok(())
    }
}

impl Cqs {
    /// Where the open iteration was started.
    #[cfg_attr(any(), mutants::skip)] // texts
    pub(crate) fn iteration_begun_at(&self, cq: CqHandle) -> Option<Site> {
        let index = find(&self.table, cq).ok()?;
        let iteration = self.table.at(index).extended?.iteration?;
        iteration.begun_at
    }

    /// Refuses an operation that would wait for the end of an iteration.
    pub(crate) fn check_no_iteration(&self, index: u32) -> Result<()> {
        let cq = self.table.at(index);
        if !cq.is_iterated() {
            return Ok(());
        }
        let cause = Cause::IterationOpen { cq: cq.handle };
        Err(Refusal::new(ErrorKind::Usage, cause))
    }

    fn check_extended(&self, index: u32) -> Result<Extended> {
        let extended = self.table.at(index).extended;
        extended.ok_or_else(|| invalid("cq", "is not an extended one"))
    }

    /// The open iteration, and the fields of its completions.
    fn iteration(&self, index: u32) -> Result<(Iteration, WcFields)> {
        let extended = self.check_extended(index)?;
        let cq = self.table.at(index).handle;
        let no_iteration = || Refusal::usage(format!("no iteration over {cq} is open"));
        let iteration = extended.iteration.ok_or_else(no_iteration)?;
        Ok((iteration, extended.wc_flags))
    }

    fn set_iteration(&mut self, index: u32, iteration: Option<Iteration>) {
        if let Some(extended) = &mut self.table.at_mut(index).extended {
            extended.iteration = iteration;
        }
        self.show(index);
    }
}

impl Cq {
    /// Whether an iteration over it is open.
    pub(crate) fn is_iterated(&self) -> bool {
        self.extended
            .is_some_and(|extended| extended.iteration.is_some())
    }
}

fn at_end(cq: CqHandle) -> Refusal {
    Refusal::usage(format!("the iteration over {cq} is at its end"))
}

fn read(Entry { wc, at, .. }: &Entry, fields: WcFields) -> WcEx {
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
    // The simulated clock counts nanoseconds, so both timestamps agree.
    read.completion_ts = asked(fields, WcFields::COMPLETION_TIMESTAMP, nanos);
    read.completion_wallclock_ns = asked(fields, WcFields::COMPLETION_TIMESTAMP_WALLCLOCK, nanos);
    read
}

fn nothing(text: &'static str) -> Refusal {
    Refusal::new(ErrorKind::NotFound, Cause::Text(text.into()))
}
