//! A device with one defect, planted between the program and a device without.

use core::mem;
use std::sync::Mutex;

use verbs_api::lab::Lab;
use verbs_api::*;
use verbs_sim::Sim;

use crate::interpose::{Interpose, Through};

/// What is wrong with the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Defect {
    None,
    /// The first completion that is polled comes again.
    CompletionTwice,
    /// The first completion is lost.
    CompletionLost,
    /// The last completion of a CQ is lost: none comes behind it.
    LastCompletionLost,
    /// Two completions of one poll change places.
    CompletionsSwapped,
    WrongWrId,
    WrongQpNum,
    WrongOpcode,
    /// An unsignaled send makes a completion.
    UnsignaledCompletes,
    /// Completions of sends go where those of receives belong, and the other way round.
    CqsSwapped,
    /// A success behind a failure.
    SuccessBehindFailure,
    /// A second failure with a status of its own.
    SecondFailure,
    /// A poll says that the CQ has overrun.
    InventedOverrun,
    /// A message arrives twice.
    MessageTwice,
    /// Messages change places.
    MessagesSwapped,
    /// A message loses its last byte.
    MessageCut,
    WrongImmediate,
    /// A byte next to a receive changes.
    ByteOutside,
    /// A byte of a finished receive changes after it was read.
    ByteLate,
    /// A fetch-and-add is executed twice.
    AddTwice,
    /// A CQ makes an event without being armed.
    EventWithoutArm,
    WrongCqContext,
    /// A CQ goes while its events are unacknowledged.
    GoneUnacknowledged,
    /// More events are acknowledged than were read.
    AcknowledgedTooMany,
    /// A domain is said to be gone while it is in use.
    GoneInUse,
    /// A domain without users is reported to be in use.
    InUseByNobody,
    /// A channel is said to be gone, and is not.
    Leak,
    /// An iteration comes to a completion twice.
    IterationTwice,
    /// An iteration leaves a completion out.
    IterationSkips,
    /// An iteration gives a number that no work has.
    IterationWrongWrId,
    /// A CQ that was created to ignore overruns reports one.
    OverrunNotIgnored,
    /// The receives of an SRQ of XRC complete on the CQ of another.
    WrongCqOfSrq,
    /// The receives of an SRQ of XRC complete with the number of another queue pair.
    WrongTarget,
    /// A domain of XRC is said to be gone while it is in use.
    XrcdGoneInUse,
    /// An XRC domain without users is reported to be in use.
    XrcdInUseByNobody,
    /// A domain of XRC is said to be gone, and is not.
    XrcdLeak,
    /// A byte of device memory changes.
    DmByte,
    /// No defect: like a real device it has no lab, and its port announces a change of GIDs before
    /// anything else, once to each context.
    BusyPort,
}

impl Defect {
    pub(crate) const ALL: [Self; 26] = [
        Self::CompletionTwice,
        Self::CompletionLost,
        Self::LastCompletionLost,
        Self::CompletionsSwapped,
        Self::WrongWrId,
        Self::WrongQpNum,
        Self::WrongOpcode,
        Self::UnsignaledCompletes,
        Self::CqsSwapped,
        Self::SuccessBehindFailure,
        Self::SecondFailure,
        Self::InventedOverrun,
        Self::MessageTwice,
        Self::MessagesSwapped,
        Self::MessageCut,
        Self::WrongImmediate,
        Self::ByteOutside,
        Self::ByteLate,
        Self::AddTwice,
        Self::EventWithoutArm,
        Self::WrongCqContext,
        Self::GoneUnacknowledged,
        Self::AcknowledgedTooMany,
        Self::GoneInUse,
        Self::InUseByNobody,
        Self::Leak,
    ];

    /// The defects of extended CQs and XRC.
    pub(crate) const SHARED: [Self; 9] = [
        Self::IterationTwice,
        Self::IterationSkips,
        Self::IterationWrongWrId,
        Self::OverrunNotIgnored,
        Self::WrongCqOfSrq,
        Self::WrongTarget,
        Self::XrcdGoneInUse,
        Self::XrcdInUseByNobody,
        Self::XrcdLeak,
    ];
}

pub(crate) struct Defective {
    sim: Sim,
    defect: Defect,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    completions: usize,
    again: Option<(Cq, Wc)>,
    cqs: Vec<Cq>,
    regions: Vec<Mr>,
    read: usize,
    iterated: usize,
    closed: usize,
    /// Where SRQs of XRC complete.
    places: Vec<Cq>,
    /// The contexts that have the announcement.
    announced: Vec<Context>,
}

/// What a busy port announces.
pub(crate) fn gid_change() -> AsyncEvent {
    AsyncEvent::new(AsyncEventType::GidChange, Element::Port(1))
}

impl Defective {
    pub(crate) fn new(sim: Sim, defect: Defect) -> Through<Self> {
        Through(Self {
            sim,
            defect,
            state: Mutex::default(),
        })
    }

    fn is(&self, defect: Defect) -> bool {
        self.defect == defect
    }

    /// Changes a byte behind the back of the program.
    fn scribble(&self, mr: Mr, offset: usize) {
        let mut byte = [0];
        self.sim.read_mr(mr, offset, &mut byte).unwrap();
        self.sim.write_mr(mr, offset, &[byte[0] ^ 0xff]).unwrap();
    }
}

impl Interpose for Defective {
    fn sim(&self) -> &Sim {
        &self.sim
    }

    fn capabilities(&self, context: Context) -> Result<Capabilities> {
        let mut all = self.sim.capabilities(context)?;
        all.set(Capabilities::LAB, self.lab().is_some());
        Ok(all)
    }

    fn lab(&self) -> Option<&dyn Lab> {
        self.sim.lab().filter(|_| !self.is(Defect::BusyPort))
    }

    fn get_async_event(&self, context: Context, wait: Wait) -> Result<AsyncEvent> {
        let mut state = self.state.lock().unwrap();
        if self.is(Defect::BusyPort) && !state.announced.contains(&context) {
            state.announced.push(context);
            return Ok(gid_change());
        }
        drop(state);
        self.sim.get_async_event(context, wait)
    }

    fn ack_async_event(&self, context: Context, event: &AsyncEvent) -> Result<()> {
        if self.is(Defect::BusyPort) && *event == gid_change() {
            return Ok(());
        }
        self.sim.ack_async_event(context, event)
    }

    fn dealloc_pd(&self, pd: Pd) -> Result<()> {
        let result = self.sim.dealloc_pd(pd);
        let busy = || Error::new(Verb::DeallocPd, ErrorKind::Busy, Cause::Unspecified);
        match (self.defect, result) {
            (Defect::GoneInUse, Err(_)) => Ok(()),
            (Defect::InUseByNobody, Ok(())) => Err(busy()),
            (_, result) => result,
        }
    }

    fn alloc_mr(&self, pd: Pd, length: usize, access: Access) -> Result<Mr> {
        let mr = self.sim.alloc_mr(pd, length, access)?;
        self.state.lock().unwrap().regions.push(mr);
        Ok(mr)
    }

    fn read_mr(&self, mr: Mr, offset: usize, bytes: &mut [u8]) -> Result<()> {
        let mut state = self.state.lock().unwrap();
        state.read += 1;
        if self.is(Defect::ByteLate) && state.read == 2 {
            self.scribble(mr, offset);
        }
        self.sim.read_mr(mr, offset, bytes)
    }

    fn copy_from_dm(&self, dm: Dm, offset: u64, bytes: &mut [u8]) -> Result<()> {
        self.sim.copy_from_dm(dm, offset, bytes)?;
        if self.is(Defect::DmByte) {
            bytes[7] ^= 1;
        }
        Ok(())
    }

    fn get_cq_event(&self, channel: CompChannel, wait: Wait) -> Result<CqEvent> {
        let mut event = self.sim.get_cq_event(channel, wait)?;
        event.cq_context ^= u64::from(self.is(Defect::WrongCqContext));
        Ok(event)
    }

    fn create_cq(&self, context: Context, init: &CqInit) -> Result<Cq> {
        let cq = self.sim.create_cq(context, init)?;
        self.state.lock().unwrap().cqs.push(cq);
        Ok(cq)
    }

    fn poll_cq(&self, cq: Cq, wc: &mut [Wc]) -> Result<usize> {
        let mut state = self.state.lock().unwrap();
        if let Some((_, again)) = state.again.take_if(|(of, _)| *of == cq) {
            wc[0] = again;
            return Ok(1);
        }
        let mut n = self.sim.poll_cq(cq, wc)?;
        let State {
            completions,
            again,
            regions,
            ..
        } = &mut *state;
        let before = mem::replace(completions, *completions + n);
        let got = &mut wc[..n];
        let is_error = |wc: &&mut Wc| wc.status == WcStatus::WrFlushErr;
        let is_imm = |wc: &&mut Wc| wc.wc_flags.contains(WcFlags::WITH_IMM);
        let is_recv = |wc: &&mut Wc| wc.status == WcStatus::Success && wc.opcode.is_recv();
        match self.defect {
            Defect::CompletionTwice if before == 0 && n > 0 => *again = Some((cq, got[0])),
            Defect::CompletionLost if before == 0 && n > 0 => {
                wc.copy_within(1..n, 0);
                n -= 1;
            }
            Defect::LastCompletionLost => n -= usize::from(got.last().is_some_and(is_flushed)),
            Defect::CompletionsSwapped if n > 1 => got.swap(0, 1),
            Defect::WrongWrId if n > 0 => got[0].wr_id ^= 1 << 40,
            Defect::WrongQpNum if n > 0 => got[0].qp_num ^= 1 << 20,
            Defect::WrongOpcode if n > 0 => got[0].opcode = WcOpcode::RdmaRead,
            Defect::SuccessBehindFailure => got.iter_mut().filter(is_error).for_each(|wc| {
                (wc.status, wc.opcode) = (WcStatus::Success, WcOpcode::Send);
            }),
            Defect::SecondFailure => {
                let flushed = got.iter_mut().filter(is_error);
                flushed.for_each(|wc| wc.status = WcStatus::RetryExcErr);
            }
            Defect::InventedOverrun if before > 0 => {
                return Err(Error::new(Verb::PollCq, ErrorKind::Io, Cause::CqOverrun));
            }
            Defect::MessageCut => got
                .iter_mut()
                .filter(is_recv)
                .for_each(|wc| wc.byte_len -= 1),
            Defect::WrongImmediate => got.iter_mut().filter(is_imm).for_each(|wc| {
                wc.imm_data[3] ^= 1;
            }),
            Defect::ByteOutside if before == 0 && n > 0 => self.scribble(regions[1], 4000),
            _ => {}
        }
        Ok(n)
    }

    fn start_poll(&self, cq: Cq) -> Result<()> {
        if self.is(Defect::OverrunNotIgnored) {
            return Err(Error::new(Verb::StartPoll, ErrorKind::Io, Cause::CqOverrun));
        }
        self.sim.start_poll(cq)
    }

    fn next_poll(&self, cq: Cq) -> Result<()> {
        let mut state = self.state.lock().unwrap();
        state.iterated += 1;
        match (self.defect, state.iterated) {
            (Defect::IterationTwice, 1) => return Ok(()),
            (Defect::IterationSkips, 1) => self.sim.next_poll(cq)?,
            _ => {}
        }
        self.sim.next_poll(cq)
    }

    fn read_wc(&self, cq: Cq) -> Result<WcEx> {
        let mut read = self.sim.read_wc(cq)?;
        read.wr_id ^= u64::from(self.is(Defect::IterationWrongWrId)) << 40;
        if self.is(Defect::WrongTarget) {
            read.qp_num = read.qp_num.map(|number| number ^ 1 << 20);
        }
        Ok(read)
    }

    fn close_xrcd(&self, xrcd: Xrcd) -> Result<()> {
        let busy = || Error::new(Verb::CloseXrcd, ErrorKind::Busy, Cause::Unspecified);
        let mut state = self.state.lock().unwrap();
        state.closed += 1;
        match (self.defect, state.closed) {
            (Defect::XrcdGoneInUse, 1) | (Defect::XrcdLeak, 2) => Ok(()),
            (Defect::XrcdInUseByNobody, 2) => Err(busy()),
            _ => self.sim.close_xrcd(xrcd),
        }
    }

    fn create_srq(&self, pd: Pd, init: &SrqInit) -> Result<Srq> {
        let mut init = *init;
        if let Some(xrc) = &mut init.xrc {
            let mut state = self.state.lock().unwrap();
            state.places.push(xrc.cq);
            if self.is(Defect::WrongCqOfSrq) {
                xrc.cq = state.places[0];
            }
        }
        self.sim.create_srq(pd, &init)
    }

    fn ack_cq_events(&self, cq: Cq, nevents: u32) -> Result<()> {
        let result = self.sim.ack_cq_events(cq, nevents);
        match self.defect {
            Defect::AcknowledgedTooMany => Ok(()),
            _ => result,
        }
    }

    fn destroy_cq(&self, cq: Cq, wait: Wait) -> Result<()> {
        if self.is(Defect::GoneUnacknowledged) {
            while self.sim.ack_cq_events(cq, 1).is_ok() {}
        }
        self.sim.destroy_cq(cq, wait)
    }

    fn create_qp(&self, pd: Pd, init: &QpInit) -> Result<Qp> {
        let mut init = *init;
        if self.is(Defect::CqsSwapped) {
            mem::swap(&mut init.send_cq, &mut init.recv_cq);
        }
        self.sim.create_qp(pd, &init)
    }

    fn destroy_comp_channel(&self, channel: CompChannel) -> Result<()> {
        match self.defect {
            Defect::Leak => Ok(()),
            _ => self.sim.destroy_comp_channel(channel),
        }
    }

    fn post_send(&self, qp: Qp, list: &[SendWr<'_>]) -> Result<(), PostError> {
        let mut list = list.to_vec();
        match self.defect {
            Defect::UnsignaledCompletes => {
                list.iter_mut()
                    .for_each(|wr| *wr = wr.flags(SendFlags::SIGNALED));
            }
            Defect::MessageTwice if list[0].op == SendOp::Send => list.push(list[0].unsignaled()),
            Defect::MessagesSwapped if list.len() > 1 && list[0].flags.is_empty() => {
                list.swap(0, 1)
            }
            Defect::AddTwice if matches!(list[0].op, SendOp::FetchAndAdd { .. }) => {
                list.insert(0, list[0].unsignaled());
            }
            Defect::EventWithoutArm => {
                for cq in &self.state.lock().unwrap().cqs {
                    self.sim.req_notify_cq(*cq, Arm::NEXT)?;
                }
            }
            _ => {}
        }
        self.sim.post_send(qp, &list)
    }
}

fn is_flushed(wc: &Wc) -> bool {
    wc.status == WcStatus::WrFlushErr
}
