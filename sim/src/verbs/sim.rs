//! The simulator as a backend: every verb of the trait runs on the node of its handle.

#[cfg(unix)]
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::task::Waker;

use verbs_api::behavior::Declared;
use verbs_api::cm::Cm;
use verbs_api::lab::Lab;
use verbs_api::{
    Access, Advice, AdviseFlags, Ah, AhAttr, Arm, AsyncEvent, BatchEnd, Capabilities, Cause,
    CompChannel, Context, Cq, CqAttr, CqEvent, CqInit, CqInitEx, CqModeration, DeviceAttr,
    DeviceAttrEx, DeviceInfo, Dm, DmInit, DriverObject, Ece, Element, Error, ErrorKind,
    EventSource, Gid, GidEntry, Handle, InOrder, InOrderQuery, Mr, MrAttr, MrChange, MrInit, Mw,
    MwAttr, MwBind, MwType, Pd, PortAttr, PostError, Qp, QpAttr, QpAttrMask, QpInit, QpQuery,
    QpState, QpType, RcParams, RecvWr, ReregError, Result, RtValues, SendWr, Sge, Srq, SrqAttr,
    SrqAttrMask, SrqInit, Td, Transport, Verb, Verbs, Wait, Wc, WcEx, WrOpcode, Xrcd, XrcdInit,
    connect,
};

use super::diagnose::Strict;
use super::trace_args::{self, also};
use crate::config::Mode;
use crate::device::{Answer, EventQueue, ticks};
use crate::fabric::WaitFor;
use crate::hosts::HostNodes;
use crate::network::Receiver;
use crate::node::Node;
use crate::runtime::timer_thread::TimerThread;
use crate::runtime::{Runtime, idle};
use crate::sync::CHECKED;

/// A fabric of simulated RDMA devices.
///
/// It implements [`Verbs`], and [`Lab`] for test controls.
///
/// ```
/// use verbs_api::{Arm, CqInit, Verbs};
/// use verbs_sim::{Sim, SimConfig};
///
/// let sim = Sim::new(SimConfig::new());
/// let context = sim.open_device("sim0")?;
/// let cq = sim.create_cq(context, &CqInit::new(16))?;
/// sim.req_notify_cq(cq, Arm::NEXT)?;
/// # Ok::<(), verbs_api::Error>(())
/// ```
#[derive(Debug)]
pub struct Sim {
    /// Dropped first, while everything else still exists.
    pub(crate) strict: Option<Strict>,
    pub(crate) runtime: Arc<Runtime>,
    /// A view that neither fault rules nor the trace observe. `None` if this is that view.
    pub(super) unobserved: Option<Box<Sim>>,
    /// The host that this is a view of. `None` is all nodes.
    pub(super) home: Option<HostNodes>,
    pub(super) timers: Option<Arc<TimerThread>>,
    pub(crate) receiver: Option<Arc<Receiver>>,
}

impl Sim {
    /// Opens the device of a node, of whichever host.
    #[track_caller]
    pub(super) fn open_node(&self, node: u32) -> Result<Context> {
        let verb = Verb::OpenDevice;
        // Its error precedes those of the call, because an address may take system calls.
        self.prepare_node(verb, node)?;
        let args = || format!("sim{node}");
        self.call_node(node, verb, args, |node| node.device.open_device())
    }

    /// Starts what the devices of a node need once one is open.
    pub(super) fn prepare_node(&self, verb: Verb, node: u32) -> Result<()> {
        self.runtime.check_thread(verb)?;
        if let Some(timers) = &self.timers {
            timers.start(verb)?;
        }
        self.take_addresses(verb, node)
    }
}

/// Writes the verbs that do no more than their work on a node. A row has the verb, what the trace
/// shows of its arguments, and the work. A `query` changes nothing, and a `wait` may have to wait.
macro_rules! verbs {
    (query $( fn $name:ident($first:ident: $type:ty $(, $arg:ident: $of:ty)*) -> $result:ty
        = $verb:ident |$node:ident| $work:expr; )*) => { $(
        #[track_caller]
        fn $name(&self, $first: $type $(, $arg: $of)*) -> Result<$result> {
            self.query(Verb::$verb, $first, |$node| $work)
        }
    )* };
    (call $( fn $name:ident($first:ident: $type:ty $(, $arg:ident: $of:ty)*) -> $result:ty
        = $verb:ident ($($text:tt)*) |$node:ident| $work:expr; )*) => { $(
        #[track_caller]
        fn $name(&self, $first: $type $(, $arg: $of)*) -> $result {
            self.call(Verb::$verb, $first, || format!($($text)*), |$node| $work)
        }
    )* };
    (wait $( fn $name:ident($first:ident: $type:ty) -> $result:ty
        = $verb:ident for $wait_for:expr, |$node:ident| $work:expr; )*) => { $(
        #[track_caller]
        fn $name(&self, $first: $type, wait: Wait) -> Result<$result> {
            let args = || format!("{}, {wait:?}", $first);
            self.wait(Verb::$verb, $first, wait, $wait_for, args, |$node| $work)
        }
    )* };
}

impl Verbs for Sim {
    fn devices(&self) -> Result<Vec<DeviceInfo>> {
        let transport = if self.runtime.config.is_iwarp() {
            Transport::Iwarp
        } else {
            Transport::Ib
        };
        let device = |node| DeviceInfo::new(format!("sim{node}"), "sim", transport);
        Ok(self.nodes().map(device).collect())
    }

    #[track_caller]
    fn open_device(&self, name: &str) -> Result<Context> {
        let verb = Verb::OpenDevice;
        let number = name
            .strip_prefix("sim")
            .and_then(|number| number.parse().ok());
        let nodes = self.nodes();
        let Some(node) = number.filter(|node| nodes.contains(node)) else {
            let (first, last) = (nodes.start, nodes.end - 1);
            let text = format!("there is no device {name}, only sim{first} to sim{last}");
            let cause = Cause::Text(text.into());
            return Err(Error::new(verb, ErrorKind::NoDevice, cause));
        };
        self.check_power(verb, node)?;
        self.open_node(node)
    }

    #[track_caller]
    fn close_device(&self, context: Context) -> Result<()> {
        let args = || context.to_string();
        let closed = self.call(Verb::CloseDevice, context, args, |node| {
            node.close_device(context, Node::note_closing)
        });
        self.update_receiver(context, true);
        closed
    }

    fn capabilities(&self, context: Context) -> Result<Capabilities> {
        self.look(context, |_| ())?;
        let mut capabilities = Capabilities::all() - self.runtime.config.lacks;
        capabilities.remove(Capabilities::PATH_MIG | Capabilities::TSO);
        if !cfg!(all(feature = "fd", target_os = "linux")) {
            capabilities.remove(Capabilities::FD | Capabilities::DMABUF);
        }
        // Calls of a second thread are refused.
        if self.runtime.config.mode == Mode::Stepped {
            capabilities.remove(Capabilities::THREADS);
        }
        Ok(capabilities)
    }

    fn behavior(&self, context: Context) -> Result<Declared> {
        let own = self.look(context, |node| node.device.base.behavior)?;
        Ok(self.runtime.config.declared.unwrap_or(own).into())
    }

    #[expect(unsafe_code, reason = "the unsafe method of the trait")]
    #[track_caller]
    unsafe fn reg_mr(&self, pd: Pd, addr: *mut u8, length: usize, access: Access) -> Result<Mr> {
        // SAFETY: the caller of this method makes the same promise.
        unsafe { self.reg_mr_as(pd, addr, length, None, access) }
    }

    #[track_caller]
    fn rereg_mr(&self, mr: Mr, change: &MrChange) -> Result<(), ReregError> {
        let args = || format!("{mr}, {change:?}");
        Ok(self.call(Verb::ReregMr, mr, args, |node| node.rereg_mr(mr, change))?)
    }

    #[track_caller]
    fn read_mr(&self, mr: Mr, offset: usize, bytes: &mut [u8]) -> Result<()> {
        self.access(Verb::ReadMr, mr, offset, bytes.len(), |node| {
            node.read_mr(mr, offset, bytes)
        })
    }

    #[track_caller]
    fn write_mr(&self, mr: Mr, offset: usize, bytes: &[u8]) -> Result<()> {
        self.access(Verb::WriteMr, mr, offset, bytes.len(), |node| {
            node.write_mr(mr, offset, bytes)
        })
    }

    #[track_caller]
    fn query_rt_values(&self, context: Context) -> Result<RtValues> {
        self.query(Verb::QueryRtValues, context, |node| {
            let base = &node.device.base;
            base.check_has(Capabilities::RT_VALUES, "has no clock that can be read")
        })?;
        Ok(RtValues::new(ticks(self.now())))
    }

    #[track_caller]
    fn copy_from_dm(&self, dm: Dm, offset: u64, bytes: &mut [u8]) -> Result<()> {
        let length = bytes.len();
        let args = || format!("{dm}+{offset:#x}, {length} B");
        self.call(Verb::CopyFromDm, dm, args, |node| {
            node.device.copy_from_dm(dm, offset, bytes)
        })
    }

    #[inline]
    #[track_caller]
    fn poll_cq(&self, cq: Cq, wc: &mut [Wc]) -> Result<usize> {
        // Model checkers must see each poll as a step, and polls of known threads move the clock.
        if !CHECKED && self.runtime.is_empty(cq) && self.runtime.known_thread().is_none() {
            self.runtime.count_empty_poll();
            return Ok(0);
        }
        self.poll(cq.context(), cq.index(), cq.generation(), wc)
    }

    #[track_caller]
    #[cfg_attr(any(), mutants::skip)] // the suite does not reach it
    fn start_poll(&self, cq: Cq) -> Result<()> {
        let verb = Verb::StartPoll;
        let node = self.node(verb, cq)?;
        let started = self.runtime.with(|fabric| {
            self.check_call(fabric, node, verb).by(verb)?;
            let result = fabric.work_quietly(node, |node| node.start_poll(cq));
            if matches!(&result, Err(error) if error.kind() == ErrorKind::NotFound) {
                // An empty poll is not in the trace.
                self.make_progress(fabric, node, cq);
                return result.by(verb);
            }
            self.traced(fabric, node, verb, || cq.to_string(), |_| result)
        });
        match &started {
            Err(error) if error.kind() == ErrorKind::NotFound => self.runtime.count_empty_poll(),
            _ => idle::polled(),
        }
        started
    }

    #[track_caller]
    fn modify_qp(&self, qp: Qp, attr: &QpAttr, mask: QpAttrMask) -> Result<()> {
        let args = || {
            if mask.contains(QpAttrMask::STATE) {
                format!("{qp}, {}, {mask}", attr.qp_state)
            } else {
                format!("{qp}, {mask}")
            }
        };
        let node = self.node(Verb::ModifyQp, qp)?;
        let av = attr.ah_attr.filter(|_| mask.contains(QpAttrMask::AV));
        // The network is asked before the call, because the answer takes system calls.
        let outside = av.and_then(|av| self.runtime.outside(&av));
        let modified = self.call_node(node, Verb::ModifyQp, args, |node| {
            node.modify_qp(qp, attr, mask, outside)
        });
        // From RTR on both ends are known, so a diagnosis can compare their attributes.
        if modified.is_ok()
            && mask.contains(QpAttrMask::STATE)
            && let to @ (QpState::Rtr | QpState::Rts) = attr.qp_state
        {
            self.runtime
                .with(|fabric| fabric.compare_ends(node, qp, to));
        }
        self.update_receiver(qp.context(), false);
        modified
    }

    #[track_caller]
    fn destroy_qp(&self, qp: Qp, wait: Wait) -> Result<()> {
        let args = || format!("{qp}, {wait:?}");
        let wait_for = WaitFor::Acknowledgement(Element::Qp(qp));
        let destroyed = self.wait(Verb::DestroyQp, qp, wait, wait_for, args, |node| {
            node.destroy_qp(qp)
        });
        self.update_receiver(qp.context(), false);
        destroyed
    }

    #[track_caller]
    #[cfg_attr(any(), mutants::skip)] // the suite does not reach it
    fn connect_rc(&self, a: Qp, b: Qp, params: &RcParams) -> Result<()> {
        let node = self.node(Verb::ConnectRc, a)?;
        self.runtime
            .with(|fabric| self.check_call(fabric, node, Verb::ConnectRc))
            .by(Verb::ConnectRc)?;
        connect::by_attributes(self, a, b, params)
    }

    #[track_caller]
    #[cfg_attr(any(), mutants::skip)] // the suite does not reach it
    fn post_send(&self, qp: Qp, list: &[SendWr<'_>]) -> Result<(), PostError> {
        // The first work requests take the fast path, as far as possible.
        let node = self.node(Verb::PostSend, qp)?;
        self.runtime.with(|fabric| {
            let done = fabric.fast_path().send(node, qp, list);
            // A post that is refused changes nothing.
            if done > 0 {
                fabric.activity += 1;
                if done == list.len() {
                    return Ok(());
                }
            }
            self.post_packets(fabric, node, qp, list, done)
        })
    }

    #[track_caller]
    fn post_batch(&self, qp: Qp, list: &[SendWr<'_>], end: BatchEnd) -> Result<()> {
        // A batch takes the fast path if possible.
        let verb = Verb::PostBatch;
        let args = || format!("{qp}, {} sends, {end:?}", list.len());
        let node = self.node(verb, qp)?;
        self.runtime.with(|fabric| {
            if fabric.fast_path().send_batch(node, qp, list, end) {
                fabric.activity += 1;
                return Ok(());
            }
            self.traced(fabric, node, verb, args, |fabric| {
                self.check_call(fabric, node, verb)?;
                fabric.post(node, |node| node.push_batch(qp, list, end))
            })
        })
    }

    #[track_caller]
    fn create_ah(&self, pd: Pd, attr: &AhAttr) -> Result<Ah> {
        let args = || format!("{pd}, port {}", attr.port_num);
        // The network is asked before the call, because the answer takes system calls.
        let outside = self.runtime.outside(attr);
        self.call(Verb::CreateAh, pd, args, |node| {
            node.device.create_ah(pd, attr, outside)
        })
    }

    #[track_caller]
    fn attach_mcast(&self, qp: Qp, group: Gid, lid: u16) -> Result<()> {
        let args = || format!("{qp}, {group}, {lid}");
        self.call(Verb::AttachMcast, qp, args, |node| {
            node.attach_mcast(qp, group, lid)
        })?;
        self.join_group(qp, group, lid)?;
        Ok(())
    }

    #[track_caller]
    fn detach_mcast(&self, qp: Qp, group: Gid, lid: u16) -> Result<()> {
        let args = || format!("{qp}, {group}, {lid}");
        let detached = self.call(Verb::DetachMcast, qp, args, |node| {
            node.detach_mcast(qp, group, lid)
        });
        self.update_receiver(qp.context(), true);
        detached
    }

    verbs! { query
        fn query_device(context: Context) -> DeviceAttr
            = QueryDevice |node| Ok(node.device.query_device());
        fn query_device_ex(context: Context) -> DeviceAttrEx
            = QueryDeviceEx |node| Ok(node.device.query_device_ex());
        fn query_port(context: Context, port: u8) -> PortAttr
            = QueryPort |node| node.device.ports.query(port);
        fn query_gid(context: Context, port: u8, index: u32) -> Gid
            = QueryGid |node| node.device.ports.gid(port, index);
        fn query_gid_ex(context: Context, port: u8, index: u32) -> GidEntry
            = QueryGidEx |node| node.device.query_gid_ex(port, index);
        fn query_gid_table(context: Context, entries: &mut [GidEntry]) -> usize
            = QueryGidTable |node| node.device.query_gid_table(entries);
        fn query_pkey(context: Context, port: u8, index: u16) -> u16
            = QueryPkey |node| node.device.query_pkey(port, index);
        fn query_mr(mr: Mr) -> MrAttr = QueryMr |node| node.device.query_mr(mr);
        fn query_mw(mw: Mw) -> MwAttr = QueryMw |node| node.device.query_mw(mw);
        fn query_cq(cq: Cq) -> CqAttr = QueryCq |node| node.device.query_cq(cq);
        fn read_wc(cq: Cq) -> WcEx = ReadWc |node| node.device.read_wc(cq);
        fn query_qp(qp: Qp, mask: QpAttrMask) -> QpQuery = QueryQp |node| node.query_qp(qp, mask);
        fn query_qp_data_in_order(qp: Qp, opcode: WrOpcode, flags: InOrderQuery) -> InOrder
            = QueryQpDataInOrder |node| node.query_qp_data_in_order(qp, opcode, flags);
        fn query_ece(qp: Qp) -> Ece = QueryEce |node| node.query_ece(qp);
        fn query_srq(srq: Srq) -> SrqAttr = QuerySrq |node| node.device.query_srq(srq);
        fn srq_num(srq: Srq) -> u32 = GetSrqNum |node| node.device.srq_num(srq);
    }

    // All rows of a block are one place in the program to a caller through `dyn Verbs`. These share
    // their verbs with rows above, and a diagnosis tells them apart by the place.
    verbs! { query
        fn qp_num(qp: Qp) -> u32 = QueryQp |node| node.qp_num(qp);
        fn srq_init(srq: Srq) -> SrqInit = QuerySrq |node| node.device.srq_init(srq);
    }
    verbs! { call
        fn create_xrc_recv_qp(xrcd: Xrcd) -> Result<Qp>
            = CreateQp ("{xrcd}, {}", QpType::XrcRecv) |node| node.create_xrc_recv_qp(xrcd);
    }

    verbs! { call
        fn alloc_pd(context: Context) -> Result<Pd>
            = AllocPd ("{context}") |node| node.device.alloc_pd(context);
        fn dealloc_pd(pd: Pd) -> Result<()> = DeallocPd ("{pd}") |node| node.device.dealloc_pd(pd);
        fn alloc_td(context: Context) -> Result<Td>
            = AllocTd ("{context}") |node| node.device.alloc_td(context);
        fn dealloc_td(td: Td) -> Result<()> = DeallocTd ("{td}") |node| node.device.dealloc_td(td);
        fn alloc_parent_domain(pd: Pd, td: Option<Td>) -> Result<Pd>
            = AllocParentDomain ("{pd}{}", also(td)) |node| node.device.alloc_parent_domain(pd, td);
        fn alloc_mr(pd: Pd, length: usize, access: Access) -> Result<Mr>
            = AllocMr ("{pd}, {length} B, {:#x}", access.bits())
            |node| node.device.alloc_mr(pd, &MrInit::new(length, access));
        fn alloc_mr_as(pd: Pd, init: &MrInit) -> Result<Mr>
            = AllocMrAs ("{pd}, {init:?}") |node| node.device.alloc_mr(pd, init);
        fn alloc_null_mr(pd: Pd) -> Result<Mr>
            = AllocNullMr ("{pd}") |node| node.device.alloc_null_mr(pd);
        fn dereg_mr(mr: Mr) -> Result<()> = DeregMr ("{mr}") |node| node.dereg_mr(mr);
        fn advise_mr(pd: Pd, advice: Advice, flags: AdviseFlags, list: &[Sge]) -> Result<()>
            = AdviseMr ("{pd}, {advice}, {:#x}, {} B", flags.bits(), trace_args::bytes(list))
            |node| node.device.advise_mr(pd, advice, flags, list);
        fn map_mr(mr: Mr, mapped: bool) -> Result<()>
            = MapMr ("{mr}, {mapped}") |node| node.device.map_mr(mr, mapped);
        fn alloc_mw(pd: Pd, mw_type: MwType) -> Result<Mw>
            = AllocMw ("{pd}, {mw_type}") |node| node.device.alloc_mw(pd, mw_type);
        fn dealloc_mw(mw: Mw) -> Result<()> = DeallocMw ("{mw}") |node| node.device.dealloc_mw(mw);
        fn bind_mw(qp: Qp, mw: Mw, bind: &MwBind) -> Result<()>
            = BindMw ("{qp}, {mw}, {:#x}, {} B of {}", bind.label(), bind.info.length, bind.info.mr)
            |node| node.bind_mw(qp, mw, bind);
        fn alloc_dm(context: Context, init: &DmInit) -> Result<Dm>
            = AllocDm ("{context}, {init:?}") |node| node.device.alloc_dm(context, init);
        fn free_dm(dm: Dm) -> Result<()> = FreeDm ("{dm}") |node| node.device.free_dm(dm);
        fn reg_dm_mr(pd: Pd, dm: Dm, offset: u64, length: usize, access: Access) -> Result<Mr>
            = RegDmMr ("{pd}, {dm}+{offset:#x}, {length} B, {:#x}", access.bits())
            |node| node.device.reg_dm_mr(pd, dm, offset, length, access);
        fn copy_to_dm(dm: Dm, offset: u64, bytes: &[u8]) -> Result<()>
            = CopyToDm ("{dm}+{offset:#x}, {} B", bytes.len())
            |node| node.device.copy_to_dm(dm, offset, bytes);
        fn create_comp_channel(context: Context) -> Result<CompChannel>
            = CreateCompChannel ("{context}")
            |node| node.device.cqs.create_comp_channel(&mut node.device.base, context);
        fn destroy_comp_channel(channel: CompChannel) -> Result<()>
            = DestroyCompChannel ("{channel}")
            |node| node.device.cqs.destroy_comp_channel(&mut node.device.base, channel);
        fn create_cq(context: Context, init: &CqInit) -> Result<Cq>
            = CreateCq ("{context}, {} entries{}", init.cqe, also(init.channel))
            |node| node.device.create_cq(context, init, None);
        fn resize_cq(cq: Cq, cqe: i32) -> Result<()>
            = ResizeCq ("{cq}, {cqe}") |node| node.device.resize_cq(cq, cqe);
        fn req_notify_cq(cq: Cq, arm: Arm) -> Result<()>
            = ReqNotifyCq ("{cq}, {arm}") |node| node.device.req_notify_cq(cq, arm);
        fn ack_cq_events(cq: Cq, nevents: u32) -> Result<()>
            = AckCqEvents ("{cq}, {nevents}") |node| node.device.ack_cq_events(cq, nevents);
        fn create_cq_ex(context: Context, init: &CqInitEx) -> Result<Cq>
            = CreateCqEx ("{context}, {} entries, {:?}", init.cq.cqe, init.wc_flags)
            |node| node.device.create_cq_ex(context, init);
        fn next_poll(cq: Cq) -> Result<()> = NextPoll ("{cq}") |node| node.next_poll(cq);
        fn end_poll(cq: Cq) -> Result<()> = EndPoll ("{cq}") |node| node.device.end_poll(cq);
        fn modify_cq(cq: Cq, moderation: &CqModeration) -> Result<()>
            = ModifyCq ("{cq}, {moderation:?}") |node| node.device.modify_cq(cq, moderation);
        fn create_qp(pd: Pd, init: &QpInit) -> Result<Qp>
            = CreateQp ("{pd}, {}, {}, {}{}", init.qp_type, init.send_cq, init.recv_cq, also(init.srq))
            |node| node.create_qp(pd, init);
        fn set_ece(qp: Qp, ece: &Ece) -> Result<()>
            = SetEce ("{qp}, {:#x}, {:#x}", ece.vendor_id, ece.options) |node| node.set_ece(qp, ece);
        fn post_recv(qp: Qp, list: &[RecvWr<'_>]) -> Result<(), PostError>
            = PostRecv ("{qp}, {}", trace_args::receives(list)) |node| node.post_recv(qp, list);
        fn destroy_ah(ah: Ah) -> Result<()> = DestroyAh ("{ah}") |node| node.destroy_ah(ah);
        fn create_srq(pd: Pd, init: &SrqInit) -> Result<Srq>
            = CreateSrq ("{pd}, {} receives", init.attr.max_wr)
            |node| node.device.create_srq(pd, init);
        fn modify_srq(srq: Srq, attr: &SrqAttr, mask: SrqAttrMask) -> Result<()>
            = ModifySrq ("{srq}, {attr:?}, {mask:?}") |node| node.device.modify_srq(srq, attr, mask);
        fn post_srq_recv(srq: Srq, list: &[RecvWr<'_>]) -> Result<(), PostError>
            = PostSrqRecv ("{srq}, {}", trace_args::receives(list))
            |node| node.device.post_srq_recv(srq, list);
        fn open_xrcd(context: Context, init: &XrcdInit<'_>) -> Result<Xrcd>
            = OpenXrcd ("{context}, {init:?}") |node| node.device.open_xrcd(context, init);
        fn close_xrcd(xrcd: Xrcd) -> Result<()>
            = CloseXrcd ("{xrcd}") |node| node.device.close_xrcd(xrcd);
        fn open_qp(xrcd: Xrcd, qp_num: u32) -> Result<Qp>
            = OpenQp ("{xrcd}, {qp_num:#x}") |node| node.open_qp(xrcd, qp_num);
        fn ack_async_event(context: Context, event: &AsyncEvent) -> Result<()>
            = AckAsyncEvent ("{context}, {event}") |node| node.ack_async_event(context, event);
    }

    verbs! { wait
        fn get_cq_event(channel: CompChannel) -> CqEvent
            = GetCqEvent for WaitFor::Event(channel),
            |node| node.device.cqs.get_cq_event(&mut node.device.base, channel);
        fn destroy_cq(cq: Cq) -> ()
            = DestroyCq for WaitFor::Acknowledgement(Element::Cq(cq)), |node| node.destroy_cq(cq);
        fn destroy_srq(srq: Srq) -> ()
            = DestroySrq for WaitFor::Acknowledgement(Element::Srq(srq)),
            |node| {
                node.note_dry(srq);
                node.device.destroy_srq(srq)
            };
        fn get_async_event(context: Context) -> AsyncEvent
            = GetAsyncEvent for WaitFor::AsyncEvent(context),
            |node| node.device.base.get_async_event(context);
    }

    #[cfg(unix)]
    verbs! { call
        fn reg_dmabuf_mr(
            pd: Pd, offset: u64, length: usize, iova: u64, fd: BorrowedFd<'_>, access: Access
        ) -> Result<Mr>
            = RegDmabufMr ("{pd}, {length} B from {offset:#x} on at {iova:#x}, {:#x}", access.bits())
            |node| node.device.reg_dmabuf_mr(pd, offset, length, iova, fd, access);
    }

    #[cfg(unix)]
    fn export_dmabuf(&self, context: Context, length: usize) -> Result<OwnedFd> {
        self.exported(context, length)
    }

    #[track_caller]
    fn wake_on(&self, source: EventSource, waker: &Waker) -> Result<()> {
        self.wake_task(source, waker)
    }

    #[cfg(unix)]
    fn channel_fd(&self, channel: CompChannel) -> Result<OwnedFd> {
        self.descriptor(Verb::ChannelFd, channel, EventQueue::Channel(channel))
    }

    #[cfg(unix)]
    fn async_fd(&self, context: Context) -> Result<OwnedFd> {
        self.descriptor(Verb::AsyncFd, context, EventQueue::Async(context))
    }

    #[track_caller]
    fn corrupt_handle(&self, object: DriverObject, corrupt: bool) -> Result<()> {
        let args = || format!("{object:?}, {corrupt}");
        let node = self.node_of(Verb::CorruptHandle, object.kind(), object.context())?;
        self.call_node(node, Verb::CorruptHandle, args, |node| {
            node.corrupt_handle(object, corrupt)
        })
    }

    fn cm(&self) -> Option<&dyn Cm> {
        Some(self)
    }

    fn lab(&self) -> Option<&dyn Lab> {
        Some(self)
    }
}
