//! Every verb of the trait.

use std::ffi::c_int;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::Waker;

use verbs_abi::{
    after_rereg_from_c, ibv_ah_attr, ibv_comp_channel, ibv_context, ibv_cq, ibv_device_attr,
    ibv_gid, ibv_mr, ibv_port_attr, ibv_qp_attr, ibv_qp_cap, ibv_qp_init_attr, ibv_wc, inline,
    library, token,
};
use verbs_api::behavior::Declared;
use verbs_api::cm::Cm;
use verbs_api::{
    Access, Advice, AdviseFlags, Ah as AhHandle, AhAttr, Arm, AsyncEvent, BatchEnd, Capabilities,
    CompChannel as ChannelHandle, Context, Cq as CqHandle, CqAttr, CqEvent, CqInit, CqInitEx,
    CqModeration, DeviceAttr, DeviceAttrEx, DeviceInfo, Dm as DmHandle, DmInit, DriverObject, Ece,
    Error, EventSource, Gid, GidEntry, Handle, InOrder, InOrderQuery, Mr as MrHandle, MrAttr,
    MrChange, MrInit, Mw as MwHandle, MwAttr, MwBind, MwType, Pd as PdHandle, PortAttr, PostError,
    Qp as QpHandle, QpAttr, QpAttrMask, QpInit, QpQuery, RcParams, RecvWr, ReregError, Result,
    RtValues, SendWr, Sge, Srq as SrqHandle, SrqAttr, SrqAttrMask, SrqInit, Td as TdHandle,
    Transport, Verb, Verbs, Wait, Wc, WcEx, WrOpcode, Xrcd as XrcdHandle, XrcdInit, connect,
};

use crate::cm::rc::meet;
use crate::errno::{errno, invalid, misuse, no_memory};
use crate::objects::{Ah, Channel, Memory, Pd, Qp};
use crate::qp::create;
use crate::reactor::Source;
use crate::wait::set_nonblocking;
use crate::{corrupt_handle, devices, dmabuf, mcast, probe, region};

use crate::hw::{Hw, destroy};

impl Verbs for Hw {
    fn devices(&self) -> Result<Vec<DeviceInfo>> {
        let all = devices::list()?;
        let Some(only) = &self.only else {
            return Ok(all);
        };
        let of = |name: &String| all.iter().find(|info| info.name == *name).cloned();
        Ok(only.iter().filter_map(of).collect())
    }

    fn open_device(&self, name: &str) -> Result<Context> {
        let verb = Verb::OpenDevice;
        let device = devices::open(name, self.only.as_deref())?;
        // SAFETY: the context is live.
        let fd = |context: *mut ibv_context| unsafe { (*context).async_fd };
        set_nonblocking(verb, device.raw.with(verb, fd)?)?;
        let id = self.tables.lock().contexts.insert(|_| Arc::new(device));
        Ok(Context::from_parts(id.index, id.generation))
    }

    fn close_device(&self, context: Context) -> Result<()> {
        let verb = Verb::CloseDevice;
        self.device(verb, context)?.raw.check_ours(verb)?;
        self.remove_objects_of(context);
        // The device is closed when no call holds one of its objects any more.
        drop(self.tables.lock().contexts.remove(context.index()));
        Ok(())
    }

    fn capabilities(&self, context: Context) -> Result<Capabilities> {
        let device = self.device(Verb::QueryDevice, context)?;
        let attr = self.device_attr(Verb::QueryDevice, &device)?;
        // A driver without the query has none of what it tells.
        let newer = self.device_attr_ex(context).unwrap_or_default();
        Ok(probe::capabilities(&device, &attr, &newer))
    }

    fn behavior(&self, context: Context) -> Result<Declared> {
        let device = self.device(Verb::QueryDevice, context)?;
        Ok(probe::behavior(&device.driver))
    }

    fn query_device(&self, context: Context) -> Result<DeviceAttr> {
        let device = self.device(Verb::QueryDevice, context)?;
        let attr = self.device_attr(Verb::QueryDevice, &device)?;
        let mut attr = ibv_device_attr::from_c(&attr);
        attr.num_comp_vectors = device.num_comp_vectors;
        Ok(attr)
    }

    fn query_device_ex(&self, context: Context) -> Result<DeviceAttrEx> {
        self.device_attr_ex(context)
    }

    fn query_port(&self, context: Context, port: u8) -> Result<PortAttr> {
        let verb = Verb::QueryPort;
        let device = self.device(verb, context)?;
        let mut attr = ibv_port_attr::default();
        // SAFETY: the context is live.
        let query = |context| unsafe { inline::query_port(context, port, &mut attr) };
        device.raw.call(verb, query)?;
        Ok(ibv_port_attr::from_c(&attr))
    }

    fn query_gid(&self, context: Context, port: u8, index: u32) -> Result<Gid> {
        let verb = Verb::QueryGid;
        let device = self.device(verb, context)?;
        let index = c_int::try_from(index).map_err(|_| invalid(verb, "index", "is too large"))?;
        let mut gid = ibv_gid::default();
        // SAFETY: the context is live.
        let query = |context| unsafe { library::ibv_query_gid(context, port, index, &mut gid) };
        device.raw.call(verb, query)?;
        Ok(Gid(gid.raw))
    }

    fn query_gid_ex(&self, context: Context, port: u8, index: u32) -> Result<GidEntry> {
        self.gid_entry(context, port, index)
    }

    fn query_gid_table(&self, context: Context, entries: &mut [GidEntry]) -> Result<usize> {
        self.gid_table(context, entries)
    }

    fn query_pkey(&self, context: Context, port: u8, index: u16) -> Result<u16> {
        let verb = Verb::QueryPkey;
        let device = self.device(verb, context)?;
        let mut pkey = 0;
        // SAFETY: the context is live.
        let query =
            |context| unsafe { library::ibv_query_pkey(context, port, index.into(), &mut pkey) };
        device.raw.call(verb, query)?;
        Ok(u16::from_be(pkey))
    }

    fn query_rt_values(&self, context: Context) -> Result<RtValues> {
        self.clock(context)
    }

    fn alloc_pd(&self, context: Context) -> Result<PdHandle> {
        let verb = Verb::AllocPd;
        let device = self.device(verb, context)?;
        // SAFETY: the context is live, and the domain new.
        let raw = unsafe {
            device
                .raw
                .make(verb, |context| library::ibv_alloc_pd(context))
        }?;
        let pd = Pd {
            raw,
            context,
            device,
            _of: None,
        };
        Ok(self.insert(|t| &mut t.pds, PdHandle::from_parts, context, pd))
    }

    fn dealloc_pd(&self, pd: PdHandle) -> Result<()> {
        destroy(Verb::DeallocPd, &self.pd(Verb::DeallocPd, pd)?.raw)?;
        self.tables.lock().pds.remove(pd.index());
        Ok(())
    }

    fn alloc_td(&self, context: Context) -> Result<TdHandle> {
        self.alloc_thread(context)
    }

    fn dealloc_td(&self, td: TdHandle) -> Result<()> {
        self.dealloc_thread(td)
    }

    fn alloc_parent_domain(&self, pd: PdHandle, td: Option<TdHandle>) -> Result<PdHandle> {
        self.alloc_parent(pd, td)
    }

    fn alloc_mr(&self, pd: PdHandle, length: usize, access: Access) -> Result<MrHandle> {
        let verb = Verb::AllocMr;
        self.pd(verb, pd)?;
        let Some(memory) = Memory::owned(length, access) else {
            return Err(no_memory(verb));
        };
        self.insert_mr(verb, pd, memory, length, access, None)
    }

    fn alloc_mr_as(&self, pd: PdHandle, init: &MrInit) -> Result<MrHandle> {
        region::region_as(self, pd, init)
    }

    fn alloc_null_mr(&self, pd: PdHandle) -> Result<MrHandle> {
        region::null_region(self, pd)
    }

    #[expect(unsafe_code, reason = "the unsafe method of the trait")]
    unsafe fn reg_mr(
        &self,
        pd: PdHandle,
        addr: *mut u8,
        length: usize,
        access: Access,
    ) -> Result<MrHandle> {
        // No bytes are copied from memory that may be unmapped.
        let stays = !access.contains(Access::ON_DEMAND);
        self.insert_mr(
            Verb::RegMr,
            pd,
            Memory::Caller {
                start: addr,
                length: if stays { length } else { 0 },
                writable: access.contains(Access::LOCAL_WRITE),
            },
            length,
            access,
            None,
        )
    }

    fn reg_dmabuf_mr(
        &self,
        pd: PdHandle,
        offset: u64,
        length: usize,
        iova: u64,
        fd: BorrowedFd<'_>,
        access: Access,
    ) -> Result<MrHandle> {
        let part = dmabuf::Part {
            offset,
            length,
            iova,
        };
        self.register_dmabuf(pd, &part, fd, access)
    }

    fn rereg_mr(&self, mr: MrHandle, change: &MrChange) -> Result<(), ReregError> {
        match self.change_mr(mr, change)? {
            0 => Ok(()),
            // The result is the state of the region; the reason is in errno.
            result => {
                let error = Error::from_raw(Verb::ReregMr, errno());
                Err(ReregError::new(after_rereg_from_c(result), error))
            }
        }
    }

    fn advise_mr(
        &self,
        pd: PdHandle,
        advice: Advice,
        flags: AdviseFlags,
        list: &[Sge],
    ) -> Result<()> {
        region::advise(self, pd, advice, flags, list)
    }

    fn dereg_mr(&self, mr: MrHandle) -> Result<()> {
        destroy(Verb::DeregMr, &self.mr(Verb::DeregMr, mr)?.raw)?;
        self.tables.lock().mrs.remove(mr.index());
        Ok(())
    }

    fn alloc_mw(&self, pd: PdHandle, mw_type: MwType) -> Result<MwHandle> {
        self.alloc_window(pd, mw_type)
    }

    fn dealloc_mw(&self, mw: MwHandle) -> Result<()> {
        self.dealloc_window(mw)
    }

    fn query_mw(&self, mw: MwHandle) -> Result<MwAttr> {
        self.window_attr(mw)
    }

    fn bind_mw(&self, qp: QpHandle, mw: MwHandle, bind: &MwBind) -> Result<()> {
        self.bind_window(qp, mw, bind)
    }

    fn alloc_dm(&self, context: Context, init: &DmInit) -> Result<DmHandle> {
        self.alloc_memory(context, init)
    }

    fn free_dm(&self, dm: DmHandle) -> Result<()> {
        self.free_memory(dm)
    }

    fn reg_dm_mr(
        &self,
        pd: PdHandle,
        dm: DmHandle,
        offset: u64,
        length: usize,
        access: Access,
    ) -> Result<MrHandle> {
        self.register_memory(pd, dm, offset, length, access)
    }

    fn copy_to_dm(&self, dm: DmHandle, offset: u64, bytes: &[u8]) -> Result<()> {
        let (verb, from, length) = (Verb::CopyToDm, bytes.as_ptr(), bytes.len());
        self.copy_memory(verb, dm, offset, length, |dm| {
            // SAFETY: the memory is live, and these are the bytes.
            unsafe { inline::memcpy_to_dm(dm, offset, from.cast(), length) }
        })
    }

    fn copy_from_dm(&self, dm: DmHandle, offset: u64, bytes: &mut [u8]) -> Result<()> {
        let (verb, to, length) = (Verb::CopyFromDm, bytes.as_mut_ptr(), bytes.len());
        self.copy_memory(verb, dm, offset, length, |dm| {
            // SAFETY: the memory is live, and these are the bytes.
            unsafe { inline::memcpy_from_dm(to.cast(), dm, offset, length) }
        })
    }

    fn query_mr(&self, mr: MrHandle) -> Result<MrAttr> {
        let found = self.mr(Verb::QueryMr, mr)?;
        let read = |mr: *mut ibv_mr| {
            // SAFETY: the region is live.
            let mr = unsafe { &*mr };
            let mut attr = MrAttr::default();
            attr.addr = found.iova.lock().unwrap_or(mr.addr as u64);
            attr.length = mr.length as u64;
            (attr.lkey, attr.rkey) = (mr.lkey, mr.rkey);
            attr
        };
        found.raw.with(Verb::QueryMr, read)
    }

    fn read_mr(&self, mr: MrHandle, offset: usize, bytes: &mut [u8]) -> Result<()> {
        self.own_bytes(Verb::ReadMr, mr, offset, bytes.len(), |memory| {
            // SAFETY: `own_bytes` checked the range.
            unsafe { memory.read(offset, bytes) }
        })
    }

    fn write_mr(&self, mr: MrHandle, offset: usize, bytes: &[u8]) -> Result<()> {
        self.own_bytes(Verb::WriteMr, mr, offset, bytes.len(), |memory| {
            // SAFETY: `own_bytes` checked the range.
            unsafe { memory.write(offset, bytes) }
        })
    }

    fn map_mr(&self, mr: MrHandle, mapped: bool) -> Result<()> {
        region::map(self, mr, mapped)
    }

    fn create_comp_channel(&self, context: Context) -> Result<ChannelHandle> {
        let verb = Verb::CreateCompChannel;
        let device = self.device(verb, context)?;
        // SAFETY: the context is live, and the channel new.
        let raw = unsafe {
            let create = |context| library::ibv_create_comp_channel(context);
            device.raw.make(verb, create)
        }?;
        // SAFETY: the channel is live.
        let fd = |channel: *mut ibv_comp_channel| unsafe { (*channel).fd };
        set_nonblocking(verb, raw.with(verb, fd)?)?;
        let (waiters, events) = (AtomicU32::new(0), Source::default());
        let channel = Channel {
            raw,
            waiters,
            events,
            context,
            _device: device,
        };
        Ok(self.insert(
            |t| &mut t.channels,
            ChannelHandle::from_parts,
            context,
            channel,
        ))
    }

    fn destroy_comp_channel(&self, channel: ChannelHandle) -> Result<()> {
        let verb = Verb::DestroyCompChannel;
        let found = self.channel(verb, channel)?;
        let idle = || match found.waiters.load(Ordering::Relaxed) {
            0 => Ok(()),
            waiters => Err(misuse(verb, format!("{waiters} threads wait on {channel}"))),
        };
        found.raw.destroy(verb, idle)?;
        self.tables.lock().channels.remove(channel.index());
        Ok(())
    }

    fn get_cq_event(&self, channel: ChannelHandle, wait: Wait) -> Result<CqEvent> {
        self.next_cq_event(channel, wait)
    }

    fn create_cq(&self, context: Context, init: &CqInit) -> Result<CqHandle> {
        let create = |context, channel, _| {
            let (cqe, token, vector) = (init.cqe, token(init.cq_context), init.comp_vector);
            // SAFETY: context and channel are live, or the channel is null.
            unsafe { library::ibv_create_cq(context, cqe, token, channel, vector) }
        };
        // SAFETY: the CQ is new.
        unsafe { self.make_cq(Verb::CreateCq, context, init, None, create) }
    }

    fn create_cq_ex(&self, context: Context, init: &CqInitEx) -> Result<CqHandle> {
        self.make_cq_ex(context, init)
    }

    fn start_poll(&self, cq: CqHandle) -> Result<()> {
        self.extended(Verb::StartPoll, cq)?.start()
    }

    fn next_poll(&self, cq: CqHandle) -> Result<()> {
        self.extended(Verb::NextPoll, cq)?.next()
    }

    fn read_wc(&self, cq: CqHandle) -> Result<WcEx> {
        self.extended(Verb::ReadWc, cq)?.completion()
    }

    fn end_poll(&self, cq: CqHandle) -> Result<()> {
        self.extended(Verb::EndPoll, cq)?.end_iteration()
    }

    fn modify_cq(&self, cq: CqHandle, moderation: &CqModeration) -> Result<()> {
        self.cq(Verb::ModifyCq, cq)?.moderate(moderation)
    }

    fn query_cq(&self, cq: CqHandle) -> Result<CqAttr> {
        let found = self.cq(Verb::QueryCq, cq)?;
        found.check_fields(Verb::QueryCq)?;
        // SAFETY: the CQ is live.
        let cqe = |cq: *mut ibv_cq| unsafe { (*cq).cqe };
        let cqe = found.raw.with(Verb::QueryCq, cqe)?;
        let mut attr = CqAttr::default();
        attr.cqe = u32::try_from(cqe).unwrap_or(0);
        attr.cq_context = found.cq_context;
        attr.channel = found.channel.as_ref().map(|(handle, _)| *handle);
        attr.comp_vector = found.comp_vector;
        Ok(attr)
    }

    fn resize_cq(&self, cq: CqHandle, cqe: i32) -> Result<()> {
        let verb = Verb::ResizeCq;
        let found = self.cq(verb, cq)?;
        let _rest = found.at_rest(verb)?;
        // SAFETY: the CQ is live.
        found
            .raw
            .call(verb, |cq| unsafe { library::ibv_resize_cq(cq, cqe) })
    }

    fn req_notify_cq(&self, cq: CqHandle, arm: Arm) -> Result<()> {
        let verb = Verb::ReqNotifyCq;
        // SAFETY: the CQ is live.
        let request = |cq| unsafe { inline::req_notify_cq(cq, arm.0) };
        self.cq(verb, cq)?.raw.call(verb, request)
    }

    fn poll_cq(&self, cq: CqHandle, wc: &mut [Wc]) -> Result<usize> {
        let verb = Verb::PollCq;
        let found = self.cq(verb, cq)?;
        let mut raw = vec![ibv_wc::default(); wc.len()];
        let entries = c_int::try_from(raw.len()).unwrap_or(c_int::MAX);
        let _rest = found.at_rest(verb)?;
        // SAFETY: the CQ is live, and `raw` has room for the results.
        let poll = |cq| unsafe { inline::poll_cq(cq, entries, raw.as_mut_ptr()) };
        let count = found.raw.with(verb, poll)?;
        if count < 0 {
            return Err(Error::from_raw(verb, count));
        }
        let count = (count as usize).min(wc.len());
        for (to, from) in wc.iter_mut().zip(&raw[..count]) {
            *to = ibv_wc::from_c(from);
        }
        Ok(count)
    }

    fn ack_cq_events(&self, cq: CqHandle, nevents: u32) -> Result<()> {
        self.acknowledge_cq_events(cq, nevents)
    }

    fn destroy_cq(&self, cq: CqHandle, wait: Wait) -> Result<()> {
        let verb = Verb::DestroyCq;
        let found = self.cq(verb, cq)?;
        let unacked =
            || found.unacked.load(Ordering::Relaxed) + found.async_unacked.load(Ordering::Relaxed);
        // The driver refuses at once if a QP uses it. Otherwise the library would wait.
        let users = |qp: &Arc<Qp>| qp.init.send_cq == cq || qp.init.recv_cq == cq;
        let busy = self.tables.lock().qps.iter().any(|(_, qp)| users(qp));
        let address = found.raw.address();
        if busy {
            destroy(verb, &found.raw)?;
        } else {
            let rest = || found.at_rest(verb);
            self.destroy_acknowledged(verb, &found.raw, wait, unacked, rest)?;
        }
        let mut tables = self.tables.lock();
        // A new object may have its address already.
        if tables.cq_handles.get(&address) == Some(&cq) {
            tables.cq_handles.remove(&address);
        }
        tables.cqs.remove(cq.index());
        Ok(())
    }

    fn create_qp(&self, pd: PdHandle, init: &QpInit) -> Result<QpHandle> {
        self.make_qp(Verb::CreateQp, pd, init, None, create)
    }

    fn qp_num(&self, qp: QpHandle) -> Result<u32> {
        Ok(self.qp(Verb::QueryQp, qp)?.qp_num)
    }

    fn query_qp(&self, qp: QpHandle, mask: QpAttrMask) -> Result<QpQuery> {
        let verb = Verb::QueryQp;
        let found = self.qp(verb, qp)?;
        found.check_fields(verb)?;
        let mut attr = ibv_qp_attr::default();
        let mut init = ibv_qp_init_attr::default();
        let mask = mask.bits() as c_int;
        // SAFETY: the QP is live.
        let query = |qp| unsafe { library::ibv_query_qp(qp, &mut attr, mask, &mut init) };
        found.raw.call(verb, query)?;
        let attr = QpAttr {
            alt_ah_attr: None,
            ..ibv_qp_attr::from_c(&attr)
        };
        let init = found.init.cap(ibv_qp_cap::from_c(&init.cap));
        Ok(QpQuery::new(found.qp_num, attr, init))
    }

    fn query_qp_data_in_order(
        &self,
        qp: QpHandle,
        opcode: WrOpcode,
        flags: InOrderQuery,
    ) -> Result<InOrder> {
        let verb = Verb::QueryQpDataInOrder;
        let found = self.qp(verb, qp)?;
        // An old library promises nothing.
        let Ok(query) = library::ibv_query_qp_data_in_order() else {
            return Ok(InOrder::empty());
        };
        // SAFETY: the QP is live.
        let query = |qp| unsafe { query(qp, opcode.into(), flags.bits()) };
        let promised = found.raw.with(verb, query)?;
        Ok(InOrder::from_bits_retain(promised as u32))
    }

    fn modify_qp(&self, qp: QpHandle, attr: &QpAttr, mask: QpAttrMask) -> Result<()> {
        let verb = Verb::ModifyQp;
        let found = self.qp(verb, qp)?;
        let to = mask.contains(QpAttrMask::STATE).then_some(attr.qp_state);
        let mut attr = ibv_qp_attr::to_c(attr);
        let mask = mask.bits() as c_int;
        let _rest = found.cqs_at_rest(verb)?;
        // SAFETY: the QP is live.
        let modify = |qp| unsafe { library::ibv_modify_qp(qp, &mut attr, mask) };
        found.raw.call(verb, modify)?;
        to.map_or(Ok(()), |to| found.check_state(verb, to))
    }

    fn query_ece(&self, qp: QpHandle) -> Result<Ece> {
        self.qp(Verb::QueryEce, qp)?.query_ece()
    }

    fn set_ece(&self, qp: QpHandle, ece: &Ece) -> Result<()> {
        self.qp(Verb::SetEce, qp)?.set_ece(ece)
    }

    fn destroy_qp(&self, qp: QpHandle, wait: Wait) -> Result<()> {
        let verb = Verb::DestroyQp;
        if self.qp(verb, qp)?.id.is_some() {
            let text = format!("{qp} is of a cm id, and goes by rdma_destroy_qp");
            return Err(misuse(verb, text));
        }
        self.remove_qp(verb, qp, wait)
    }

    fn connect_rc(&self, a: QpHandle, b: QpHandle, params: &RcParams) -> Result<()> {
        let device = &self.qp(Verb::ConnectRc, a)?.device;
        match device.transport {
            // Simulated devices of iWARP are connected by attributes.
            Transport::Iwarp if !device.simulated => meet(self, a, b, params),
            _ => connect::by_attributes(self, a, b, params),
        }
    }

    fn post_send(&self, qp: QpHandle, list: &[SendWr<'_>]) -> Result<(), PostError> {
        self.post_sends(qp, list)
    }

    fn post_batch(&self, qp: QpHandle, list: &[SendWr<'_>], end: BatchEnd) -> Result<()> {
        self.post_whole(qp, list, end)
    }

    fn post_recv(&self, qp: QpHandle, list: &[RecvWr<'_>]) -> Result<(), PostError> {
        self.post_recvs(qp, list)
    }

    fn create_ah(&self, pd: PdHandle, attr: &AhAttr) -> Result<AhHandle> {
        let verb = Verb::CreateAh;
        let parent = self.pd(verb, pd)?;
        let mut attr = ibv_ah_attr::to_c(attr);
        // SAFETY: the PD is live, and the handle new.
        let raw = unsafe {
            parent
                .raw
                .make(verb, |pd| library::ibv_create_ah(pd, &mut attr))
        }?;
        Ok(self.insert(
            |t| &mut t.ahs,
            AhHandle::from_parts,
            pd.context(),
            Ah { raw, pd: parent },
        ))
    }

    fn destroy_ah(&self, ah: AhHandle) -> Result<()> {
        let found: Arc<Ah> = self.find(|tables| &tables.ahs, Verb::DestroyAh, ah)?;
        destroy(Verb::DestroyAh, &found.raw)?;
        self.tables.lock().ahs.remove(ah.index());
        Ok(())
    }

    fn attach_mcast(&self, qp: QpHandle, group: Gid, lid: u16) -> Result<()> {
        mcast::change_group(
            self,
            Verb::AttachMcast,
            library::ibv_attach_mcast,
            qp,
            group,
            lid,
        )
    }

    fn detach_mcast(&self, qp: QpHandle, group: Gid, lid: u16) -> Result<()> {
        mcast::change_group(
            self,
            Verb::DetachMcast,
            library::ibv_detach_mcast,
            qp,
            group,
            lid,
        )
    }

    fn create_srq(&self, pd: PdHandle, init: &SrqInit) -> Result<SrqHandle> {
        self.make_srq(pd, init)
    }

    fn srq_init(&self, srq: SrqHandle) -> Result<SrqInit> {
        Ok(self.srq(Verb::QuerySrq, srq)?.init)
    }

    fn query_srq(&self, srq: SrqHandle) -> Result<SrqAttr> {
        self.srq_attr(srq)
    }

    fn modify_srq(&self, srq: SrqHandle, attr: &SrqAttr, mask: SrqAttrMask) -> Result<()> {
        self.change_srq(srq, attr, mask)
    }

    fn destroy_srq(&self, srq: SrqHandle, wait: Wait) -> Result<()> {
        self.remove_srq(srq, wait)
    }

    fn post_srq_recv(&self, srq: SrqHandle, list: &[RecvWr<'_>]) -> Result<(), PostError> {
        self.post_shared_recvs(srq, list)
    }

    fn open_xrcd(&self, context: Context, init: &XrcdInit<'_>) -> Result<XrcdHandle> {
        self.open_domain(context, init)
    }

    fn close_xrcd(&self, xrcd: XrcdHandle) -> Result<()> {
        self.close_domain(xrcd)
    }

    fn create_xrc_recv_qp(&self, xrcd: XrcdHandle) -> Result<QpHandle> {
        self.make_target(xrcd)
    }

    fn open_qp(&self, xrcd: XrcdHandle, qp_num: u32) -> Result<QpHandle> {
        self.open_target(xrcd, qp_num)
    }

    fn srq_num(&self, srq: SrqHandle) -> Result<u32> {
        self.number_of_srq(srq)
    }

    fn get_async_event(&self, context: Context, wait: Wait) -> Result<AsyncEvent> {
        self.next_async_event(context, wait)
    }

    fn ack_async_event(&self, context: Context, event: &AsyncEvent) -> Result<()> {
        self.acknowledge_async_event(context, event)
    }

    fn wake_on(&self, source: EventSource, waker: &Waker) -> Result<()> {
        self.wake_task(source, waker)
    }

    fn channel_fd(&self, channel: ChannelHandle) -> Result<OwnedFd> {
        let verb = Verb::ChannelFd;
        self.channel(verb, channel)?.fd(verb)
    }

    fn async_fd(&self, context: Context) -> Result<OwnedFd> {
        let verb = Verb::AsyncFd;
        self.device(verb, context)?.fd(verb)
    }

    fn export_dmabuf(&self, context: Context, length: usize) -> Result<OwnedFd> {
        let device = self.device(Verb::ExportDmabuf, context)?;
        let has_regions = self.has_dmabufs(context)?;
        dmabuf::export(length, device.simulated, has_regions)
    }

    fn cm(&self) -> Option<&dyn Cm> {
        library::open_librdmacm().ok().map(|()| self as &dyn Cm)
    }

    fn corrupt_handle(&self, object: DriverObject, corrupt: bool) -> Result<()> {
        corrupt_handle::corrupt_object(self, object, corrupt)
    }
}
