//! The trait: each call goes to the device, and into the books if they are about it.

use core::task::Waker;
#[cfg(unix)]
use std::os::fd::{BorrowedFd, OwnedFd};

use smallvec::SmallVec;
use verbs_api::behavior::{Declared, FlushPostInErr, PostWrongState};
use verbs_api::cm::Cm;
use verbs_api::lab::Lab;
use verbs_api::{
    Access, Advice, AdviseFlags, AfterRereg, Ah, AhAttr, Arm, AsyncEvent, AsyncEventType, BatchEnd,
    Capabilities, Cause, CompChannel, Context, Cq, CqAttr, CqEvent, CqFlags, CqInit, CqInitEx,
    CqModeration, DeviceAttr, DeviceAttrEx, DeviceInfo, Dm, DmInit, DriverObject, Ece, Element,
    Error, ErrorKind, EventSource, Gid, GidEntry, Handle, InOrder, InOrderQuery, Mr, MrAttr,
    MrChange, MrInit, Mw, MwAttr, MwBind, MwType, Pd, PortAttr, PostError, Qp, QpAttr, QpAttrMask,
    QpInit, QpQuery, QpState, RcParams, RecvWr, ReregError, Result, RtValues, SendWr, Sge, Srq,
    SrqAttr, SrqAttrMask, SrqInit, Td, Verb, Verbs, Wait, Wc, WcEx, WrOpcode, Xrcd, XrcdInit,
};

use super::Checked;
use super::books::Books;
use super::broken::Invariant;
use super::memory::Readable;
use super::objects::Id;
use super::polled::Polled;
use super::work::Work;

/// Verbs that only ask, or of which the books know nothing.
macro_rules! forward {
    ($( fn $verb:ident(&self $(, $name:ident: $type:ty)*) -> $result:ty; )*) => { $(
        fn $verb(&self $(, $name: $type)*) -> $result {
            self.device().$verb($($name),*)
        }
    )* };
}

#[deny(clippy::missing_trait_methods)]
impl Verbs for Checked {
    forward! {
        fn devices(&self) -> Result<Vec<DeviceInfo>>;
        fn capabilities(&self, context: Context) -> Result<Capabilities>;
        fn behavior(&self, context: Context) -> Result<Declared>;
        fn query_device(&self, context: Context) -> Result<DeviceAttr>;
        fn query_device_ex(&self, context: Context) -> Result<DeviceAttrEx>;
        fn query_port(&self, context: Context, port: u8) -> Result<PortAttr>;
        fn query_gid_ex(&self, context: Context, port: u8, index: u32) -> Result<GidEntry>;
        fn query_gid_table(&self, context: Context, entries: &mut [GidEntry]) -> Result<usize>;
        fn srq_num(&self, srq: Srq) -> Result<u32>;
        fn query_pkey(&self, context: Context, port: u8, index: u16) -> Result<u16>;
        fn query_rt_values(&self, context: Context) -> Result<RtValues>;
        fn query_mr(&self, mr: Mr) -> Result<MrAttr>;
        fn query_mw(&self, mw: Mw) -> Result<MwAttr>;
        fn query_cq(&self, cq: Cq) -> Result<CqAttr>;
        fn qp_num(&self, qp: Qp) -> Result<u32>;
        fn query_qp(&self, qp: Qp, mask: QpAttrMask) -> Result<QpQuery>;
        fn query_qp_data_in_order(&self, qp: Qp, opcode: WrOpcode, flags: InOrderQuery) -> Result<InOrder>;
        fn query_ece(&self, qp: Qp) -> Result<Ece>;
        fn set_ece(&self, qp: Qp, ece: &Ece) -> Result<()>;
        fn srq_init(&self, srq: Srq) -> Result<SrqInit>;
        fn query_srq(&self, srq: Srq) -> Result<SrqAttr>;
        fn modify_srq(&self, srq: Srq, attr: &SrqAttr, mask: SrqAttrMask) -> Result<()>;
        fn attach_mcast(&self, qp: Qp, group: Gid, lid: u16) -> Result<()>;
        fn detach_mcast(&self, qp: Qp, group: Gid, lid: u16) -> Result<()>;
        fn wake_on(&self, source: EventSource, waker: &Waker) -> Result<()>;
        fn corrupt_handle(&self, object: DriverObject, corrupt: bool) -> Result<()>;
    }

    #[cfg(unix)]
    forward! {
        fn channel_fd(&self, channel: CompChannel) -> Result<OwnedFd>;
        fn async_fd(&self, context: Context) -> Result<OwnedFd>;
        fn export_dmabuf(&self, context: Context, length: usize) -> Result<OwnedFd>;
    }

    fn cm(&self) -> Option<&dyn Cm> {
        self.forwarded().cm().map(|_| self as &dyn Cm)
    }

    fn lab(&self) -> Option<&dyn Lab> {
        self.inner.lab().map(|_| self as &dyn Lab)
    }

    // Devices

    fn open_device(&self, name: &str) -> Result<Context> {
        let mut books = self.begin();
        let context = self.device().open_device(name)?;
        books.opened(context, name);
        Ok(context)
    }

    fn close_device(&self, context: Context) -> Result<()> {
        let mut books = self.begin();
        self.take_apart(|device| device.close_device(context))?;
        books.closed(context);
        Ok(())
    }

    fn query_gid(&self, context: Context, port: u8, index: u32) -> Result<Gid> {
        let gid = self.device().query_gid(context, port, index)?;
        self.books.lock().saw_gid(context, gid);
        Ok(gid)
    }

    // Protection domains and memory

    fn alloc_pd(&self, context: Context) -> Result<Pd> {
        let mut books = self.begin();
        let pd = self.device().alloc_pd(context)?;
        books.made(pd, &[]);
        Ok(pd)
    }

    fn dealloc_pd(&self, pd: Pd) -> Result<()> {
        self.remove(Verb::DeallocPd, pd, |verbs| verbs.dealloc_pd(pd))
    }

    fn alloc_td(&self, context: Context) -> Result<Td> {
        let mut books = self.begin();
        let td = self.device().alloc_td(context)?;
        books.made(td, &[]);
        Ok(td)
    }

    fn dealloc_td(&self, td: Td) -> Result<()> {
        self.remove(Verb::DeallocTd, td, |verbs| verbs.dealloc_td(td))
    }

    fn alloc_parent_domain(&self, pd: Pd, td: Option<Td>) -> Result<Pd> {
        let mut books = self.begin();
        let parent = self.device().alloc_parent_domain(pd, td)?;
        let parents: SmallVec<[Id; 2]> = [Id::of(pd)].into_iter().chain(td.map(Id::of)).collect();
        books.made(parent, &parents);
        Ok(parent)
    }

    fn alloc_mr(&self, pd: Pd, length: usize, access: Access) -> Result<Mr> {
        let mut books = self.begin();
        let mr = self.device().alloc_mr(pd, length, access)?;
        self.made_mr(&mut books, pd, mr, &MrInit::new(length, access));
        Ok(mr)
    }

    fn alloc_mr_as(&self, pd: Pd, init: &MrInit) -> Result<Mr> {
        let mut books = self.begin();
        let mr = self.device().alloc_mr_as(pd, init)?;
        self.made_mr(&mut books, pd, mr, init);
        Ok(mr)
    }

    fn alloc_null_mr(&self, pd: Pd) -> Result<Mr> {
        let mut books = self.begin();
        let mr = self.device().alloc_null_mr(pd)?;
        books.made(mr, &[Id::of(pd)]);
        Ok(mr)
    }

    #[expect(unsafe_code, reason = "the one promise the caller makes")]
    unsafe fn reg_mr(&self, pd: Pd, addr: *mut u8, length: usize, access: Access) -> Result<Mr> {
        let mut books = self.begin();
        // SAFETY: the caller's promise, which is about this call and the same memory.
        let mr = unsafe { self.device().reg_mr(pd, addr, length, access) }?;
        books.made(mr, &[Id::of(pd)]);
        Ok(mr)
    }

    #[cfg(unix)]
    fn reg_dmabuf_mr(
        &self,
        pd: Pd,
        offset: u64,
        length: usize,
        iova: u64,
        fd: BorrowedFd<'_>,
        access: Access,
    ) -> Result<Mr> {
        let mut books = self.begin();
        let device = self.device();
        let mr = device.reg_dmabuf_mr(pd, offset, length, iova, fd, access)?;
        // Others may change its bytes at any time.
        books.made(mr, &[Id::of(pd)]);
        Ok(mr)
    }

    fn rereg_mr(&self, mr: Mr, change: &MrChange) -> Result<(), ReregError> {
        let mut books = self.begin();
        let result = self.device().rereg_mr(mr, change);
        let is_known = match &result {
            Ok(()) => true,
            Err(error) if error.region == AfterRereg::Old => return result,
            Err(_) => false,
        };
        if is_known && let Some(pd) = change.pd {
            books.objects.moved(Id::of(mr), Id::of(pd));
        }
        let attr = self
            .device_unobserved()
            .query_mr(mr)
            .ok()
            .filter(|_| is_known);
        books.memory.changed(mr, attr, change.length.is_some());
        result
    }

    fn advise_mr(&self, pd: Pd, advice: Advice, flags: AdviseFlags, list: &[Sge]) -> Result<()> {
        let _books = self.begin();
        self.device().advise_mr(pd, advice, flags, list)
    }

    fn dereg_mr(&self, mr: Mr) -> Result<()> {
        let mut books = self.begin();
        self.read_bytes(&mut books, Verb::DeregMr, Readable::Mr(mr));
        let before = books.objects.leaving(Id::of(mr));
        let result = self.take_apart(|device| device.dereg_mr(mr));
        match &result {
            Ok(()) => {
                books.gone(Verb::DeregMr, mr);
                books.memory.gone(mr);
            }
            Err(error) => books.stays(mr, before, error),
        }
        result
    }

    fn read_mr(&self, mr: Mr, offset: usize, bytes: &mut [u8]) -> Result<()> {
        let mut books = self.begin();
        self.device().read_mr(mr, offset, bytes)?;
        if books.are_open() {
            books.read(Verb::ReadMr, Readable::Mr(mr), offset, bytes);
        }
        Ok(())
    }

    fn write_mr(&self, mr: Mr, offset: usize, bytes: &[u8]) -> Result<()> {
        let mut books = self.begin();
        self.device().write_mr(mr, offset, bytes)?;
        books.memory.wrote(Readable::Mr(mr), offset, bytes);
        Ok(())
    }

    fn map_mr(&self, mr: Mr, mapped: bool) -> Result<()> {
        let mut books = self.begin();
        self.device().map_mr(mr, mapped)?;
        if mapped {
            books.memory.zeroed(mr);
        }
        Ok(())
    }

    fn alloc_mw(&self, pd: Pd, mw_type: MwType) -> Result<Mw> {
        let mut books = self.begin();
        let mw = self.device().alloc_mw(pd, mw_type)?;
        books.made(mw, &[Id::of(pd)]);
        Ok(mw)
    }

    fn dealloc_mw(&self, mw: Mw) -> Result<()> {
        self.remove(Verb::DeallocMw, mw, |verbs| verbs.dealloc_mw(mw))
    }

    fn bind_mw(&self, qp: Qp, mw: Mw, bind: &MwBind) -> Result<()> {
        let mut books = self.begin();
        self.device().bind_mw(qp, mw, bind)?;
        books.memory.bound(bind.info.mr, bind.info.access);
        books.posted(qp, Work::bind(qp, bind));
        Ok(())
    }

    fn alloc_dm(&self, context: Context, init: &DmInit) -> Result<Dm> {
        let mut books = self.begin();
        let dm = self.device().alloc_dm(context, init)?;
        books.made(dm, &[]);
        books.memory.made_dm(dm, init.length as u64);
        Ok(dm)
    }

    fn free_dm(&self, dm: Dm) -> Result<()> {
        let memory = Readable::Dm(dm);
        self.read_bytes(&mut self.begin(), Verb::FreeDm, memory);
        self.remove(Verb::FreeDm, dm, |verbs| verbs.free_dm(dm))?;
        self.books.lock().memory.gone_dm(dm);
        Ok(())
    }

    fn reg_dm_mr(&self, pd: Pd, dm: Dm, offset: u64, length: usize, access: Access) -> Result<Mr> {
        let mut books = self.begin();
        let mr = self.device().reg_dm_mr(pd, dm, offset, length, access)?;
        books.made(mr, &[Id::of(pd), Id::of(dm)]);
        if let Ok(attr) = self.device_unobserved().query_mr(mr) {
            let device = books.device(mr.context());
            books.memory.made_of_dm(mr, device, attr, dm, offset);
        }
        Ok(mr)
    }

    fn copy_to_dm(&self, dm: Dm, offset: u64, bytes: &[u8]) -> Result<()> {
        let mut books = self.begin();
        self.device().copy_to_dm(dm, offset, bytes)?;
        let memory = Readable::Dm(dm);
        books.memory.wrote(memory, offset as usize, bytes);
        Ok(())
    }

    fn copy_from_dm(&self, dm: Dm, offset: u64, bytes: &mut [u8]) -> Result<()> {
        let mut books = self.begin();
        self.device().copy_from_dm(dm, offset, bytes)?;
        if books.are_open() {
            let memory = Readable::Dm(dm);
            books.read(Verb::CopyFromDm, memory, offset as usize, bytes);
        }
        Ok(())
    }

    // Completion channels

    fn create_comp_channel(&self, context: Context) -> Result<CompChannel> {
        let mut books = self.begin();
        let channel = self.device().create_comp_channel(context)?;
        books.made(channel, &[]);
        Ok(channel)
    }

    fn destroy_comp_channel(&self, channel: CompChannel) -> Result<()> {
        self.remove(Verb::DestroyCompChannel, channel, |verbs| {
            verbs.destroy_comp_channel(channel)
        })
    }

    fn get_cq_event(&self, channel: CompChannel, wait: Wait) -> Result<CqEvent> {
        let event = self.device().get_cq_event(channel, wait)?;
        let mut books = self.begin();
        books.summary.events += 1;
        let wrong = books.events.read(channel, &event);
        books.judge(Invariant::Event, Verb::GetCqEvent, wrong);
        Ok(event)
    }

    fn ack_cq_events(&self, cq: Cq, nevents: u32) -> Result<()> {
        let mut books = self.begin();
        self.device_to_let_go().ack_cq_events(cq, nevents)?;
        let wrong = books.events.acknowledged(Element::Cq(cq), nevents.into());
        books.judge(Invariant::Acknowledgement, Verb::AckCqEvents, wrong);
        Ok(())
    }

    // Completion queues

    fn create_cq(&self, context: Context, init: &CqInit) -> Result<Cq> {
        let mut books = self.begin();
        let cq = self.device().create_cq(context, init)?;
        books.made(cq, init.channel.map(Id::of).as_slice());
        books.queues.made_cq(cq, init.cqe, CqFlags::empty());
        books.events.made(cq, init);
        Ok(cq)
    }

    fn create_cq_ex(&self, context: Context, init: &CqInitEx) -> Result<Cq> {
        let mut books = self.begin();
        let cq = self.device().create_cq_ex(context, init)?;
        let (channel, pd) = (init.cq.channel.map(Id::of), init.parent_domain.map(Id::of));
        let parents: SmallVec<[Id; 2]> = channel.into_iter().chain(pd).collect();
        books.made(cq, &parents);
        books.queues.made_cq(cq, init.cq.cqe, init.flags);
        books.events.made(cq, &init.cq);
        Ok(cq)
    }

    fn modify_cq(&self, cq: Cq, moderation: &CqModeration) -> Result<()> {
        // An event may come later by that, or for several completions at once. It needs its arm all
        // the same.
        let _books = self.begin();
        self.device().modify_cq(cq, moderation)
    }

    fn resize_cq(&self, cq: Cq, cqe: i32) -> Result<()> {
        let mut books = self.begin();
        self.device().resize_cq(cq, cqe)?;
        books.queues.resized(cq, cqe);
        Ok(())
    }

    fn req_notify_cq(&self, cq: Cq, arm: Arm) -> Result<()> {
        let mut books = self.begin();
        let idle = books.queues.is_idle(cq);
        let before = books.events.arm(cq, idle);
        let result = self.device().req_notify_cq(cq, arm);
        if result.is_err() {
            books.events.take_back(before);
        }
        result
    }

    fn poll_cq(&self, cq: Cq, wc: &mut [Wc]) -> Result<usize> {
        let mut books = self.begin();
        let polled = self.device().poll_cq(cq, wc);
        if !books.are_open() {
            return polled;
        }
        match &polled {
            Ok(n) => {
                for wc in &wc[..*n] {
                    books.polled(Verb::PollCq, cq, &Polled::from(*wc));
                }
                if *n < wc.len() {
                    books.seen_empty(cq);
                }
                if *n == 0 {
                    self.found_nothing(cq.context(), || {
                        format!("{}({cq}, {}) = 0", Verb::PollCq, wc.len())
                    });
                }
            }
            Err(error) if is_overrun(error) => overrun(&mut books, Verb::PollCq, cq),
            Err(_) => {}
        }
        polled
    }

    fn start_poll(&self, cq: Cq) -> Result<()> {
        let mut books = self.begin();
        let result = self.device().start_poll(cq);
        came(&mut books, Verb::StartPoll, cq, &result);
        result
    }

    fn next_poll(&self, cq: Cq) -> Result<()> {
        let mut books = self.begin();
        self.read_unread(&mut books, Verb::NextPoll, cq);
        let result = self.device().next_poll(cq);
        came(&mut books, Verb::NextPoll, cq, &result);
        result
    }

    fn read_wc(&self, cq: Cq) -> Result<WcEx> {
        let mut books = self.books.lock();
        let read = self.device().read_wc(cq)?;
        books.read_wc(Verb::ReadWc, cq, read);
        Ok(read)
    }

    fn end_poll(&self, cq: Cq) -> Result<()> {
        let mut books = self.begin();
        self.read_unread(&mut books, Verb::EndPoll, cq);
        self.device_to_let_go().end_poll(cq)?;
        books.queues.iterated(cq);
        Ok(())
    }

    fn destroy_cq(&self, cq: Cq, wait: Wait) -> Result<()> {
        self.destroy(
            Verb::DestroyCq,
            cq,
            Element::Cq(cq),
            |verbs| verbs.destroy_cq(cq, wait),
            |books| books.gone_cq(cq),
        )
    }

    // Queue pairs

    fn create_qp(&self, pd: Pd, init: &QpInit) -> Result<Qp> {
        let mut books = self.begin();
        let qp = self.device().create_qp(pd, init)?;
        let number = self.device_unobserved().qp_num(qp).ok();
        books.made_qp(qp, number, init, Id::of(pd));
        let never = FlushPostInErr::None;
        if self.declares(qp, |declared| declared.flush_post_in_err == Some(never)) {
            // It may be in ERR before the program knows.
            books.queues.waits_for_ever(qp);
        }
        Ok(qp)
    }

    fn modify_qp(&self, qp: Qp, attr: &QpAttr, mask: QpAttrMask) -> Result<()> {
        let mut books = self.begin();
        self.device().modify_qp(qp, attr, mask)?;
        books.modified(qp, attr, mask);
        let is_held = mask.contains(QpAttrMask::STATE) && attr.qp_state == QpState::Sqd;
        if is_held && self.declares(qp, |declared| declared.sqd_resumes == Some(false)) {
            books.queues.waits_for_ever(qp);
        }
        Ok(())
    }

    fn destroy_qp(&self, qp: Qp, wait: Wait) -> Result<()> {
        self.destroy(
            Verb::DestroyQp,
            qp,
            Element::Qp(qp),
            |verbs| verbs.destroy_qp(qp, wait),
            |books| books.gone_qp(qp),
        )
    }

    fn connect_rc(&self, a: Qp, b: Qp, params: &RcParams) -> Result<()> {
        drop(self.begin());
        let result = self.device().connect_rc(a, b, params);
        // What failed may have come half the way.
        self.books.lock().connected(a, b, params);
        result
    }

    fn post_send(&self, qp: Qp, list: &[SendWr<'_>]) -> Result<(), PostError> {
        let mut books = self.begin();
        let result = self.device().post_send(qp, list);
        let posted = posted(&result, list.len());
        let refused = result.as_ref().err().map(|refused| refused.error.kind());
        // Then those before the bad one may wait as well.
        let may_wait = refused == Some(ErrorKind::Invalid) && self.may_queue_refused(qp);
        let taken = if may_wait { list.len() } else { posted };
        for wr in &list[..taken] {
            books.sent(qp, wr, may_wait);
        }
        result
    }

    fn post_batch(&self, qp: Qp, list: &[SendWr<'_>], end: BatchEnd) -> Result<()> {
        let mut books = self.begin();
        self.device().post_batch(qp, list, end)?;
        if end == BatchEnd::Complete {
            for wr in list {
                books.sent(qp, wr, false);
            }
        }
        Ok(())
    }

    fn post_recv(&self, qp: Qp, list: &[RecvWr<'_>]) -> Result<(), PostError> {
        let mut books = self.begin();
        let result = self.device().post_recv(qp, list);
        for wr in &list[..posted(&result, list.len())] {
            books.received(qp, wr);
        }
        result
    }

    // Address handles

    fn create_ah(&self, pd: Pd, attr: &AhAttr) -> Result<Ah> {
        let mut books = self.begin();
        let ah = self.device().create_ah(pd, attr)?;
        books.made(ah, &[Id::of(pd)]);
        Ok(ah)
    }

    fn destroy_ah(&self, ah: Ah) -> Result<()> {
        self.remove(Verb::DestroyAh, ah, |verbs| verbs.destroy_ah(ah))
    }

    // Shared receive queues

    fn create_srq(&self, pd: Pd, init: &SrqInit) -> Result<Srq> {
        let mut books = self.begin();
        let srq = self.device().create_srq(pd, init)?;
        books.made_srq(srq, pd, init);
        Ok(srq)
    }

    fn destroy_srq(&self, srq: Srq, wait: Wait) -> Result<()> {
        self.destroy(
            Verb::DestroySrq,
            srq,
            Element::Srq(srq),
            |verbs| verbs.destroy_srq(srq, wait),
            |books| books.queues.gone_srq(srq),
        )
    }

    fn post_srq_recv(&self, srq: Srq, list: &[RecvWr<'_>]) -> Result<(), PostError> {
        let mut books = self.begin();
        let result = self.device().post_srq_recv(srq, list);
        for wr in &list[..posted(&result, list.len())] {
            books.received_shared(srq, wr);
        }
        result
    }

    // Extended reliable connections

    fn open_xrcd(&self, context: Context, init: &XrcdInit<'_>) -> Result<Xrcd> {
        let mut books = self.begin();
        let xrcd = self.device().open_xrcd(context, init)?;
        books.opened_xrcd(xrcd, init);
        Ok(xrcd)
    }

    fn close_xrcd(&self, xrcd: Xrcd) -> Result<()> {
        self.remove(Verb::CloseXrcd, xrcd, |verbs| verbs.close_xrcd(xrcd))?;
        self.books.lock().domains.gone(xrcd);
        Ok(())
    }

    fn create_xrc_recv_qp(&self, xrcd: Xrcd) -> Result<Qp> {
        let mut books = self.begin();
        let qp = self.device().create_xrc_recv_qp(xrcd)?;
        let number = self.device_unobserved().qp_num(qp).ok();
        books.made_target(qp, number, xrcd);
        Ok(qp)
    }

    fn open_qp(&self, xrcd: Xrcd, qp_num: u32) -> Result<Qp> {
        let mut books = self.begin();
        let qp = self.device().open_qp(xrcd, qp_num)?;
        books.made_target(qp, Some(qp_num), xrcd);
        Ok(qp)
    }

    // Asynchronous events

    fn get_async_event(&self, context: Context, wait: Wait) -> Result<AsyncEvent> {
        let event = self.device().get_async_event(context, wait)?;
        let mut books = self.begin();
        books.events.read_async(event.element);
        if let (AsyncEventType::CqErr, Element::Cq(cq)) = (event.event_type, event.element) {
            overrun(&mut books, Verb::GetAsyncEvent, cq);
        }
        Ok(event)
    }

    fn ack_async_event(&self, context: Context, event: &AsyncEvent) -> Result<()> {
        let mut books = self.begin();
        self.device_to_let_go().ack_async_event(context, event)?;
        let wrong = books.events.acknowledged(event.element, 1);
        books.judge(Invariant::Acknowledgement, Verb::AckAsyncEvent, wrong);
        Ok(())
    }
}

impl Checked {
    /// Whether a send that was refused may run all the same.
    fn may_queue_refused(&self, qp: Qp) -> bool {
        let refused = Some(PostWrongState::Refused);
        self.declares(qp, |declared| declared.post_wrong_state != refused)
    }

    /// Whether the device of a queue pair says this of its behavior.
    fn declares(&self, qp: Qp, says: impl FnOnce(Declared) -> bool) -> bool {
        self.device_unobserved()
            .behavior(qp.context())
            .is_ok_and(says)
    }
}

/// How many of a list of `all` were posted.
fn posted(result: &Result<(), PostError>, all: usize) -> usize {
    match result {
        Ok(()) => all,
        Err(error) => error.bad_wr.min(all),
    }
}

/// An iteration was to come to a completion.
fn came(books: &mut Books, verb: Verb, cq: Cq, result: &Result<()>) {
    match result {
        Ok(()) => books.queues.came(cq),
        Err(error) if is_overrun(error) => overrun(books, verb, cq),
        Err(error) if error.kind() == ErrorKind::NotFound && *error.cause() != Cause::Injected => {
            books.seen_empty(cq);
        }
        Err(_) => {}
    }
}

/// A CQ reports an overrun.
fn overrun(books: &mut Books, verb: Verb, cq: Cq) {
    let wrong = books.queues.overran(cq);
    books.judge(Invariant::Lost, verb, wrong);
}

/// Whether an error says that a CQ has overrun.
fn is_overrun(error: &Error) -> bool {
    *error.cause() == Cause::CqOverrun
}
