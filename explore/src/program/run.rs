//! Running a program.

use core::fmt;
use core::time::Duration;
use std::collections::BTreeMap;
use std::thread;
use std::time::Instant;

use smallvec::SmallVec;
use verbs_api::lab::Lab;
use verbs_api::{
    Access, AhAttr, Arm, Cause, CqInit, DmInit, Ece, Error, ErrorKind, Mr, Pd, QpAttrMask, QpInit,
    QpModify, QpState, QpType, RcParams, RecvWr, Result, SrqAttr, SrqAttrMask, SrqInit, Td, Verb,
    Verbs, Wait, Wc, connect,
};

use super::call::{Call, Link, Number, QKEY, QpMake};
use super::objects::{DmMade, Memory, MrMade, Objects, QpMade};
use super::outcome::{Outcome, Seen, WrId};
use super::{Pace, Program};

/// The address of a region of a dma-buf.
pub(super) const DMABUF_AT: u64 = 0x7000_0000_0000;

/// Device memory is good for atomics: it starts at a multiple of 2 to this power.
pub(super) const DM_LOG_ALIGN: u32 = 3;

/// Around a run.
#[derive(Clone, Copy, Debug)]
pub struct Conditions<'a> {
    /// Port of every node. Default: 1.
    pub port_num: u8,
    /// Index in its GID table. Default: 0.
    pub sgid_index: u8,
    /// The outcome of the same program on a simulator. On a device, the run waits for the
    /// completions and events that came there, and ends with the first call that differs. Default:
    /// nothing is known, and nothing is waited for.
    pub expected: Option<&'a Outcome>,
    /// On a device: how long pending activity may take, in addition to its time on the simulator.
    /// Default: no time.
    pub quiet: Duration,
    /// On a device: how long expected completions may take. Default: 1 s.
    pub patience: Duration,
}

impl Default for Conditions<'_> {
    fn default() -> Self {
        Self {
            port_num: 1,
            sgid_index: 0,
            expected: None,
            quiet: Duration::ZERO,
            patience: Duration::from_secs(1),
        }
    }
}

/// Runs a program, and destroys at its end what it made. Its nodes are the devices there are, in
/// order, and again from the first where it has more.
pub fn run(program: &Program, verbs: &dyn Verbs) -> Outcome {
    run_under(program, verbs, &Conditions::default())
}

/// As [`run`], under other conditions.
pub fn run_under(program: &Program, verbs: &dyn Verbs, conditions: &Conditions<'_>) -> Outcome {
    let mut runner = Runner {
        verbs,
        devices: Vec::new(),
        conditions: *conditions,
        pace: program.pace,
        outcome: Outcome {
            seen: Vec::with_capacity(program.calls.len()),
            took: Vec::with_capacity(program.calls.len() + TOOK_AT_END),
            ..Outcome::default()
        },
        objects: Objects::default(),
        posted: Vec::new(),
        polled: vec![Wc::default(); MANY],
        undefined: BTreeMap::new(),
    };
    match verbs.devices() {
        Ok(devices) => runner.devices = devices.into_iter().map(|info| info.name).collect(),
        Err(error) => runner.fault(format_args!("devices"), &error),
    }
    for (number, call) in program.calls.iter().enumerate() {
        runner.step(number, call);
        if runner.has_left_its_way() {
            // What follows has nothing to be compared with, nor to be waited for.
            runner.conditions.expected = None;
            break;
        }
    }
    // What follows is not the program's.
    runner.verbs = unobserved(verbs);
    runner.end();
    runner.outcome
}

pub(super) struct Runner<'v> {
    pub(super) verbs: &'v dyn Verbs,
    pub(super) devices: Vec<String>,
    pub(super) conditions: Conditions<'v>,
    pub(super) pace: Pace,
    pub(super) outcome: Outcome,
    pub(super) objects: Objects,
    /// Work that was given to the device, in order.
    pub(super) posted: Vec<(WrId, Posted)>,
    /// Room for what is polled.
    pub(super) polled: Vec<Wc>,
    pub(super) undefined: Undefined,
}

/// Bytes that mean nothing, as start and end.
pub(super) type Undefined = BTreeMap<Memory, Vec<(u32, u32)>>;

/// Work that was given to the device.
#[derive(Debug)]
pub(super) struct Posted {
    pub(super) is_recv: bool,
    /// Memory that it may write.
    pub(super) bytes: SmallVec<[Bytes; 2]>,
    /// It has completed.
    pub(super) is_done: bool,
}

impl Posted {
    pub(super) fn send(bytes: SmallVec<[Bytes; 2]>) -> Self {
        Self {
            is_recv: false,
            bytes,
            is_done: false,
        }
    }

    pub(super) fn recv(bytes: SmallVec<[Bytes; 2]>) -> Self {
        Self {
            is_recv: true,
            ..Self::send(bytes)
        }
    }

    pub(super) fn is_waiting_recv(&self) -> bool {
        self.is_recv && !self.is_done
    }
}

/// Bytes of a memory, from the first to behind the last.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bytes {
    pub(super) memory: Memory,
    pub(super) start: u32,
    pub(super) end: u32,
}

impl Runner<'_> {
    fn step(&mut self, number: usize, call: &Call) {
        let expected = self.conditions.expected.and_then(|e| e.seen.get(number));
        // A device that knows nothing of a misuse would go on to do it.
        let is_misuse = self.verbs.lab().is_none() && expected.is_some_and(Seen::is_misuse);
        let seen = if is_misuse {
            Seen::Refused(ErrorKind::Usage)
        } else {
            let at = u32::try_from(number).expect("programs are short");
            let seen = self.call(at, call, expected);
            seen.unwrap_or_else(|error| Seen::Refused(error.kind()))
        };
        let settles = match self.pace {
            Pace::Free => *call == Call::Settle,
            Pace::Settled => call.starts_work(),
        };
        let took = if settles && seen.may_start() {
            self.settle()
        } else {
            Duration::ZERO
        };
        self.outcome.seen.push(seen);
        self.outcome.took.push(took);
    }

    /// Whether the last call came out differently than expected.
    fn has_left_its_way(&self) -> bool {
        let last = self.outcome.seen.len().checked_sub(1);
        let expected = self.conditions.expected.zip(last);
        expected
            .is_some_and(|(expected, last)| expected.seen.get(last) != self.outcome.seen.get(last))
    }

    pub(super) fn fault(&mut self, what: fmt::Arguments<'_>, error: &Error) {
        self.outcome.faults.push(format!("{what}: {error}"));
    }

    /// Completes all pending activity; returns the time that took on the simulator.
    pub(super) fn settle(&mut self) -> Duration {
        let Some(lab) = self.verbs.lab() else {
            let at = self.outcome.took.len();
            let expected = self.conditions.expected.and_then(|e| e.took.get(at));
            let expected = expected.copied().unwrap_or_default();
            // A device does not say when it is done.
            wait(self.conditions.quiet + expected * SLACK);
            return expected;
        };
        let before = lab.now();
        if let Err(error) = lab.settle() {
            self.fault(format_args!("settle"), &error);
        }
        lab.now() - before
    }

    fn call(&mut self, at: u32, call: &Call, expected: Option<&Seen>) -> Result<Seen> {
        let verbs = self.verbs;
        let objects = &mut self.objects;
        match *call {
            Call::OpenDevice { context, node } => {
                let devices = self.devices.len();
                let device = usize::from(node) % devices.max(1);
                let name = self.devices.get(device).map_or("", String::as_str);
                let made = verbs.open_device(name)?;
                objects.contexts.put(context, made);
                objects.device_of.insert(made, device);
            }
            Call::CloseDevice { context } => {
                let context = objects.contexts.get(context);
                verbs.close_device(context)?;
                objects.closed(context);
            }
            Call::QueryRtValues { context } => {
                verbs.query_rt_values(objects.contexts.get(context))?;
            }
            Call::AllocPd { pd, context } => {
                let made = verbs.alloc_pd(objects.contexts.get(context))?;
                objects.pds.put(pd, made);
            }
            Call::DeallocPd { pd } => {
                let pd = objects.pds.get(pd);
                verbs.dealloc_pd(pd)?;
                objects.pds.gone(pd);
            }
            Call::AllocTd { td, context } => {
                let made = verbs.alloc_td(objects.contexts.get(context))?;
                objects.tds.put(td, made);
            }
            Call::DeallocTd { td } => {
                let td = objects.tds.get(td);
                verbs.dealloc_td(td)?;
                objects.tds.gone(td);
            }
            Call::AllocParentDomain { parent, pd, td } => {
                let td = td.map(|td| objects.tds.get(td));
                let td = td.filter(|td| *td != Td::default());
                let made = verbs.alloc_parent_domain(objects.pds.get(pd), td)?;
                objects.pds.put(parent, made);
            }
            Call::AllocMr {
                mr,
                pd,
                length,
                access,
            }
            | Call::RegDmabufMr {
                mr,
                pd,
                length,
                access,
            } => {
                let pd = objects.pds.get(pd);
                let made = match call {
                    Call::AllocMr { .. } => verbs.alloc_mr(pd, length as usize, access)?,
                    _ => dmabuf(verbs, pd, length, access)?,
                };
                let queried = verbs.query_mr(made);
                let attr = queried.as_ref().copied().unwrap_or_default();
                objects.mrs.put(
                    mr,
                    MrMade {
                        mr: made,
                        attr,
                        dm: None,
                    },
                );
                queried?;
                verbs.write_mr(made, 0, &pattern(mr, length))?;
            }
            Call::DeregMr { mr } => {
                let made = objects.mrs.get(mr);
                verbs.dereg_mr(made.mr)?;
                objects.mrs.gone(made);
            }
            Call::WriteMr {
                mr,
                offset,
                length,
                value,
            } => {
                let bytes = vec![value; length as usize];
                verbs.write_mr(objects.mrs.get(mr).mr, offset as usize, &bytes)?;
            }
            Call::ReadMr { mr, offset, length } => {
                let mr = objects.mrs.get(mr).mr;
                let mut bytes = vec![0; length as usize];
                verbs.read_mr(mr, offset as usize, &mut bytes)?;
                self.blank(Memory::Of(mr), offset, &mut bytes);
                return Ok(Seen::Bytes(bytes));
            }
            Call::MapMr { mr, mapped } => verbs.map_mr(objects.mrs.get(mr).mr, mapped)?,
            Call::AdviseMr {
                pd,
                mr,
                offset,
                length,
                advice,
                flags,
            } => {
                let list = [objects.mrs.get(mr).attr.sge(offset.into(), length)];
                verbs.advise_mr(objects.pds.get(pd), advice, flags, &list)?;
            }
            Call::AllocDm {
                dm,
                context,
                length,
            } => {
                let init = DmInit::new(length as usize).log_align(DM_LOG_ALIGN);
                let made = verbs.alloc_dm(objects.contexts.get(context), &init)?;
                objects.dms.put(dm, DmMade { dm: made, length });
                verbs.copy_to_dm(made, 0, &pattern(dm, length))?;
            }
            Call::FreeDm { dm } => {
                let made = objects.dms.get(dm);
                verbs.free_dm(made.dm)?;
                objects.dms.gone(made);
            }
            Call::RegDmMr {
                mr,
                pd,
                dm,
                offset,
                length,
                access,
            } => {
                let (pd, dm) = (objects.pds.get(pd), objects.dms.get(dm).dm);
                let made = verbs.reg_dm_mr(pd, dm, offset.into(), length as usize, access)?;
                let queried = verbs.query_mr(made);
                let attr = queried.as_ref().copied().unwrap_or_default();
                let dm = Some((dm, offset));
                objects.mrs.put(mr, MrMade { mr: made, attr, dm });
                queried?;
            }
            Call::CopyToDm {
                dm,
                offset,
                length,
                value,
            } => {
                let bytes = vec![value; length as usize];
                verbs.copy_to_dm(objects.dms.get(dm).dm, offset.into(), &bytes)?;
            }
            Call::CopyFromDm { dm, offset, length } => {
                let dm = objects.dms.get(dm).dm;
                let mut bytes = vec![0; length as usize];
                verbs.copy_from_dm(dm, offset.into(), &mut bytes)?;
                self.blank(Memory::Device(dm), offset, &mut bytes);
                return Ok(Seen::Bytes(bytes));
            }
            Call::CreateChannel { channel, context } => {
                let made = verbs.create_comp_channel(objects.contexts.get(context))?;
                objects.channels.put(channel, made);
            }
            Call::DestroyChannel { channel } => {
                let channel = objects.channels.get(channel);
                verbs.destroy_comp_channel(channel)?;
                objects.channels.gone(channel);
            }
            Call::GetEvent { channel } => {
                let wait = self.wait_for(matches!(expected, Some(Seen::Event(_))));
                let channel = self.objects.channels.get(channel);
                return self.get_event(channel, wait);
            }
            Call::CreateCq {
                cq,
                context,
                cqe,
                channel,
            } => {
                let mut init = CqInit::new(cqe).context(u64::from(cq));
                init.channel = channel.map(|channel| objects.channels.get(channel));
                let made = verbs.create_cq(objects.contexts.get(context), &init)?;
                objects.cqs.put(cq, made);
            }
            Call::ResizeCq { cq, cqe } => verbs.resize_cq(objects.cqs.get(cq), cqe)?,
            Call::QueryCq { cq } => {
                return Ok(Seen::Size(verbs.query_cq(objects.cqs.get(cq))?.cqe));
            }
            Call::Arm { cq, solicited } => {
                let arm = if solicited { Arm::SOLICITED } else { Arm::NEXT };
                verbs.req_notify_cq(objects.cqs.get(cq), arm)?;
            }
            Call::Poll { cq, max } => {
                let expected = match expected {
                    Some(Seen::Completions(list)) => list.len(),
                    _ => 0,
                };
                let cq = self.objects.cqs.get(cq);
                let list = self.poll(cq, usize::from(max), expected)?;
                return Ok(Seen::Completions(list));
            }
            Call::Ack { cq, events } => {
                let cq = objects.cqs.get(cq);
                verbs.ack_cq_events(cq, events)?;
                let unacked = objects.unacked.entry(cq).or_default();
                *unacked = unacked.saturating_sub(events);
            }
            Call::DestroyCq { cq } => {
                let cq = objects.cqs.get(cq);
                verbs.destroy_cq(cq, Wait::Poll)?;
                objects.cqs.gone(cq);
            }
            Call::CreateSrq {
                srq,
                pd,
                max_wr,
                max_sge,
            } => {
                let init = SrqInit::new(max_wr).max_sge(max_sge);
                let made = verbs.create_srq(objects.pds.get(pd), &init)?;
                objects.srqs.put(srq, made);
            }
            Call::LimitSrq { srq, limit } => {
                let attr = SrqAttr {
                    srq_limit: limit,
                    ..SrqAttr::default()
                };
                verbs.modify_srq(objects.srqs.get(srq), &attr, SrqAttrMask::LIMIT)?;
            }
            Call::PostSrqRecv { srq, ref list } => {
                let srq = objects.srqs.get(srq);
                let is_ud = objects.datagram_srqs.contains(&srq);
                return Ok(self.post_recv(at, list, is_ud, |list| verbs.post_srq_recv(srq, list)));
            }
            Call::DestroySrq { srq } => {
                let srq = objects.srqs.get(srq);
                verbs.destroy_srq(srq, Wait::Poll)?;
                objects.srqs.gone(srq);
            }
            Call::CreateQp { qp, make } => self.create_qp(qp, &make)?,
            Call::Connect { a, b, link } => {
                let (a, b) = (objects.qps.get(a).qp, objects.qps.get(b).qp);
                connect::by_attributes(verbs, a, b, &self.params(&link))?;
            }
            Call::Toward { qp, peer, to, link } => {
                let (qp, peer) = (objects.qps.get(qp).qp, objects.qps.get(peer).qp);
                let params = self.params(&link);
                let endpoint = connect::endpoint(verbs, peer, &params)?;
                connect::to_state(verbs, qp, &endpoint, &params, to)?;
            }
            Call::StartUd { qp } => {
                let qp = objects.qps.get(qp).qp;
                connect::ud_to_rts(verbs, qp, self.conditions.port_num, QKEY)?;
            }
            Call::ModifyQp { qp, to } => {
                let modify = QpModify::to(to);
                verbs.modify_qp(objects.qps.get(qp).qp, &modify.attr, modify.mask)?;
            }
            Call::QueryQp { qp } => {
                let query = verbs.query_qp(objects.qps.get(qp).qp, QpAttrMask::STATE)?;
                return Ok(Seen::State(query.attr.qp_state));
            }
            Call::QueryInOrder { qp, opcode, flags } => {
                let qp = objects.qps.get(qp).qp;
                let promised = verbs.query_qp_data_in_order(qp, opcode, flags)?;
                return Ok(Seen::InOrder(promised));
            }
            Call::QueryEce { qp } => {
                return Ok(Seen::Options(
                    verbs.query_ece(objects.qps.get(qp).qp)?.options,
                ));
            }
            Call::SetEce { qp, options } => {
                let qp = objects.qps.get(qp).qp;
                let own = verbs.query_ece(qp)?;
                verbs.set_ece(qp, &Ece { options, ..own })?;
            }
            Call::PostSend { qp, ref list } => {
                if self.is_in_error(qp) {
                    self.outcome.in_error.push(at);
                }
                return Ok(self.post_send(at, qp, list));
            }
            Call::PostBatch { qp, ref list } => {
                if self.is_in_error(qp) {
                    self.outcome.in_error.push(at);
                }
                self.post_batch(at, qp, list)?;
            }
            Call::PostRecv { qp, ref list } => {
                let made = objects.qps.get(qp);
                let post = |list: &[RecvWr<'_>]| verbs.post_recv(made.qp, list);
                return Ok(self.post_recv(at, list, made.is_ud, post));
            }
            Call::DestroyQp { qp } => {
                let made = objects.qps.get(qp);
                verbs.destroy_qp(made.qp, Wait::Poll)?;
                objects.qps.gone(made);
            }
            Call::CreateAh { ah, pd, to } => {
                let to = objects.contexts.get(to);
                let pd = objects.pds.get(pd);
                let Conditions {
                    port_num,
                    sgid_index,
                    ..
                } = self.conditions;
                let gid = verbs.query_gid(to, port_num, u32::from(sgid_index))?;
                let attr = AhAttr::global(port_num, sgid_index, gid);
                objects.ahs.put(ah, verbs.create_ah(pd, &attr)?);
            }
            Call::DestroyAh { ah } => {
                let ah = objects.ahs.get(ah);
                verbs.destroy_ah(ah)?;
                objects.ahs.gone(ah);
            }
            Call::GetAsyncEvent { context } => {
                let wait = self.wait_for(matches!(expected, Some(Seen::AsyncEvent(..))));
                let context = self.objects.contexts.get(context);
                return self.get_async_event(context, wait);
            }
            Call::AckAsyncEvent { context } => {
                let context = objects.contexts.get(context);
                let oldest = objects
                    .unacked_async
                    .iter()
                    .position(|(of, _)| *of == context);
                let Some(oldest) = oldest else {
                    // What was never read cannot be acknowledged: there is no event to give.
                    return Err(Error::new(
                        Verb::AckAsyncEvent,
                        ErrorKind::Usage,
                        Cause::NoEvent,
                    ));
                };
                let (_, event) = objects.unacked_async.remove(oldest);
                verbs.ack_async_event(context, &event)?;
            }
            Call::Settle => {}
        }
        Ok(Seen::Done)
    }

    /// Whether a queue pair is in ERR. Only a simulator is queried; a device is expected to agree.
    fn is_in_error(&self, qp: Number) -> bool {
        let can_tell = self.pace == Pace::Settled && self.verbs.lab().is_some();
        let query = || {
            self.verbs
                .query_qp(self.objects.qps.get(qp).qp, QpAttrMask::STATE)
        };
        can_tell && query().is_ok_and(|query| query.attr.qp_state == QpState::Err)
    }

    fn params(&self, link: &Link) -> RcParams {
        RcParams {
            path_mtu: link.path_mtu,
            access: link.access,
            timeout: TIMEOUT,
            retry_cnt: link.retries,
            rnr_retry: link.retries,
            min_rnr_timer: MIN_RNR_TIMER,
            max_rd_atomic: link.depth,
            port_num: self.conditions.port_num,
            sgid_index: self.conditions.sgid_index,
            ..RcParams::default()
        }
    }

    fn create_qp(&mut self, number: Number, make: &QpMake) -> Result<()> {
        let objects = &mut self.objects;
        let [send_cq, recv_cq] = [make.send_cq, make.recv_cq].map(|cq| objects.cqs.get(cq));
        let mut init = QpInit::new(make.qp_type, send_cq, recv_cq).cap(make.cap);
        init.srq = make.srq.map(|srq| objects.srqs.get(srq));
        init.sq_sig_all = make.sq_sig_all;
        init.send_ops = make.send_ops;
        let qp = self.verbs.create_qp(objects.pds.get(make.pd), &init)?;
        let made = QpMade {
            qp,
            qp_num: unobserved(self.verbs).qp_num(qp)?,
            is_ud: make.qp_type == QpType::Ud,
        };
        objects.qps.put(number, made);
        objects
            .datagram_srqs
            .extend(init.srq.filter(|_| made.is_ud));
        Ok(())
    }
}

impl Call {
    /// Whether it can start something that goes on after it.
    pub(super) const fn starts_work(&self) -> bool {
        matches!(
            self,
            Self::Settle
                | Self::PostSend { .. }
                | Self::PostBatch { .. }
                | Self::PostRecv { .. }
                | Self::PostSrqRecv { .. }
                | Self::ModifyQp { .. }
                | Self::Toward { .. }
                | Self::Connect { .. }
                | Self::StartUd { .. }
                | Self::DestroyQp { .. }
                | Self::CloseDevice { .. }
        )
    }
}

/// Lets other threads run, for this time at least.
pub(super) fn wait(time: Duration) {
    let start = Instant::now();
    loop {
        match time.checked_sub(start.elapsed()) {
            None | Some(Duration::ZERO) => return thread::yield_now(),
            Some(left) => thread::park_timeout(left),
        }
    }
}

/// The same devices for what the program does not ask, so that no fault rule fires on it.
fn unobserved(verbs: &dyn Verbs) -> &dyn Verbs {
    verbs.lab().map_or(verbs, Lab::unobserved)
}

/// The bytes of a new region or device memory.
fn pattern(mr: Number, length: u32) -> Vec<u8> {
    let byte = |at: u32| {
        (at as u8)
            .wrapping_mul(7)
            .wrapping_add(mr.wrapping_mul(31) | 1)
    };
    (0..length).map(byte).collect()
}

/// Times of an outcome that are not of calls.
const TOOK_AT_END: usize = 2;

/// Completions taken at once.
pub(super) const MANY: usize = 64;

/// How many times longer than on the simulator things may take on a real device.
const SLACK: u32 = 2;

/// Code of the wait for an acknowledgement: 17 ms.
pub(super) const TIMEOUT: u8 = 12;

/// Code of the wait for a receive: 10 us.
pub(super) const MIN_RNR_TIMER: u8 = 1;

/// A region of a whole new dma-buf.
#[cfg(unix)]
fn dmabuf(verbs: &dyn Verbs, pd: Pd, length: u32, access: Access) -> Result<Mr> {
    use std::os::fd::AsFd;
    use verbs_api::Handle;
    let fd = verbs.export_dmabuf(pd.context(), length as usize)?;
    verbs.reg_dmabuf_mr(pd, 0, length as usize, DMABUF_AT, fd.as_fd(), access)
}

#[cfg(not(unix))]
fn dmabuf(_: &dyn Verbs, _: Pd, _: u32, _: Access) -> Result<Mr> {
    let cause = Cause::Text("the system has no descriptors".into());
    Err(Error::new(
        Verb::RegDmabufMr,
        ErrorKind::NotSupported,
        cause,
    ))
}
