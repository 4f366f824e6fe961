//! The simulator as a backend: every verb of the trait runs on the node of its handle.

#[cfg(feature = "fd")]
use std::os::fd::OwnedFd;
use std::sync::Arc;

use verbs_api::behavior::Declared;
use verbs_api::cm::Cm;
use verbs_api::lab::Lab;
use verbs_api::{
    Access, Ah, AhAttr, Arm, AsyncEvent, BatchEnd, Capabilities, Cause, CompChannel, Context, Cq,
    CqAttr, CqEvent, CqInit, CqInitEx, CqModeration, DeviceAttr, DeviceAttrEx, DeviceInfo,
    DriverObject, Element, Error, ErrorKind, Gid, GidEntry, Handle, Mr, MrAttr, MrChange, MrInit,
    Mw, MwAttr, MwBind, MwBindInfo, MwType, Pd, PortAttr, PostError, Qp, QpAttr, QpAttrMask,
    QpInit, QpQuery, QpState, QpType, RcParams, RecvWr, ReregError, Result, SendWr, Srq, SrqAttr,
    SrqAttrMask, SrqInit, Transport, Verb, Verbs, Wait, Wc, WcEx, Xrcd, XrcdInit, connect,
};

use super::diagnose::Strict;
use super::trace_args;
use crate::config::{Mode, SimConfig};
use crate::device::Answer;
#[cfg(feature = "fd")]
use crate::device::EventQueue;
use crate::diagnosis::note_closing;
use crate::fabric::WaitFor;
use crate::network::Receiver;
use crate::runtime::Runtime;
use crate::runtime::idle;
use crate::runtime::timer_thread::TimerThread;
use crate::sync::CHECKED;

/// A fabric of simulated RDMA devices. It implements [`Verbs`], and [`Lab`] for test controls.
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
    unobserved: Option<Box<Sim>>,
    _timers: Option<TimerThread>,
    pub(crate) receiver: Option<Arc<Receiver>>,
}

impl Sim {
    /// Starts a simulation.
    pub fn new(config: SimConfig) -> Self {
        let runtime = Arc::new(Runtime::new(config));
        let receiver = Receiver::of(&runtime);
        // Layers over the verbs make calls that the program did not make.
        let unobserved = Self {
            strict: None,
            runtime: runtime.clone(),
            unobserved: None,
            _timers: None,
            receiver: receiver.clone(),
        };
        Self {
            strict: None,
            receiver,
            _timers: TimerThread::start(&runtime),
            runtime,
            unobserved: Some(Box::new(unobserved)),
        }
    }

    /// The same simulation, unobserved by fault rules and the trace: see [`Lab::unobserved`].
    pub fn unobserved(&self) -> &Self {
        self.unobserved.as_deref().unwrap_or(self)
    }

    pub(crate) fn is_observed(&self) -> bool {
        self.unobserved.is_some()
    }
}

impl Verbs for Sim {
    #[track_caller]
    fn devices(&self) -> Result<Vec<DeviceInfo>> {
        let lacks = self.runtime.config.lacks;
        let transport = if lacks.contains(Capabilities::IWARP_LACKS) {
            Transport::Iwarp
        } else {
            Transport::Ib
        };
        let device = |node| DeviceInfo::new(format!("sim{node}"), "sim", transport);
        Ok((0..self.runtime.config.nodes).map(device).collect())
    }

    #[track_caller]
    fn open_device(&self, name: &str) -> Result<Context> {
        let verb = Verb::OpenDevice;
        let number = name
            .strip_prefix("sim")
            .and_then(|number| number.parse().ok());
        let Some(node) = number.filter(|node| *node < self.runtime.config.nodes) else {
            let last = self.runtime.config.nodes - 1;
            let text = format!("there is no device {name}, only sim0 to sim{last}");
            return Err(Error::new(
                verb,
                ErrorKind::NoDevice,
                Cause::Text(text.into()),
            ));
        };
        // Its error precedes those of the call, because an address may take system calls.
        self.runtime.check_thread(verb)?;
        self.take_addresses(verb, node)?;
        self.call_node(
            node,
            verb,
            || name.to_owned(),
            |node| node.device.open_device(),
        )
    }

    #[track_caller]
    fn close_device(&self, context: Context) -> Result<()> {
        let args = || context.to_string();
        let closed = self.call(Verb::CloseDevice, context, args, |node| {
            node.close_device(context, note_closing)
        });
        self.update_receiver(context, true);
        closed
    }

    #[track_caller]
    fn capabilities(&self, context: Context) -> Result<Capabilities> {
        let mut capabilities = self.look(context, |node| node.device.capabilities(context))?;
        capabilities.remove(self.runtime.config.lacks);
        if !cfg!(feature = "fd") {
            capabilities.remove(Capabilities::FD);
        }
        // Calls of a second thread are refused.
        if self.runtime.config.mode == Mode::Stepped {
            capabilities.remove(Capabilities::THREADS);
        }
        Ok(capabilities)
    }

    #[track_caller]
    fn behavior(&self, context: Context) -> Result<Declared> {
        let own = self.look(context, |node| node.device.behavior(context))?;
        Ok(self.runtime.config.declared.unwrap_or(own).into())
    }

    #[track_caller]
    fn query_device(&self, context: Context) -> Result<DeviceAttr> {
        self.query(Verb::QueryDevice, context, |node| {
            node.device.query_device(context)
        })
    }

    #[track_caller]
    fn query_device_ex(&self, context: Context) -> Result<DeviceAttrEx> {
        self.query(Verb::QueryDeviceEx, context, |node| {
            node.device.query_device_ex(context)
        })
    }

    #[track_caller]
    fn query_port(&self, context: Context, port: u8) -> Result<PortAttr> {
        self.query(Verb::QueryPort, context, |node| {
            node.device.query_port(context, port)
        })
    }

    #[track_caller]
    fn query_gid(&self, context: Context, port: u8, index: u32) -> Result<Gid> {
        self.query(Verb::QueryGid, context, |node| {
            node.device.query_gid(context, port, index)
        })
    }

    #[track_caller]
    fn query_gid_ex(&self, context: Context, port: u8, index: u32) -> Result<GidEntry> {
        self.query(Verb::QueryGidEx, context, |node| {
            node.device.query_gid_ex(context, port, index)
        })
    }

    #[track_caller]
    fn query_gid_table(&self, context: Context, entries: &mut [GidEntry]) -> Result<usize> {
        self.query(Verb::QueryGidTable, context, |node| {
            node.device.query_gid_table(context, entries)
        })
    }

    #[track_caller]
    fn query_pkey(&self, context: Context, port: u8, index: u16) -> Result<u16> {
        self.query(Verb::QueryPkey, context, |node| {
            node.device.query_pkey(context, port, index)
        })
    }

    #[track_caller]
    fn alloc_pd(&self, context: Context) -> Result<Pd> {
        let args = || context.to_string();
        self.call_device(Verb::AllocPd, context, args, |device| {
            device.alloc_pd(context)
        })
    }

    #[track_caller]
    fn dealloc_pd(&self, pd: Pd) -> Result<()> {
        let args = || pd.to_string();
        self.call_device(Verb::DeallocPd, pd, args, |device| device.dealloc_pd(pd))
    }

    #[track_caller]
    fn alloc_mr(&self, pd: Pd, length: usize, access: Access) -> Result<Mr> {
        let args = || format!("{pd}, {length} B, {:#x}", access.bits());
        self.call_device(Verb::AllocMr, pd, args, |device| {
            device.alloc_mr(pd, &MrInit::new(length, access))
        })
    }

    #[track_caller]
    fn alloc_mr_as(&self, pd: Pd, init: &MrInit) -> Result<Mr> {
        let args = || format!("{pd}, {init:?}");
        self.call_device(Verb::AllocMrAs, pd, args, |device| {
            device.alloc_mr(pd, init)
        })
    }

    #[track_caller]
    fn alloc_null_mr(&self, pd: Pd) -> Result<Mr> {
        let args = || pd.to_string();
        self.call_device(Verb::AllocNullMr, pd, args, |device| {
            device.alloc_null_mr(pd)
        })
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
    fn dereg_mr(&self, mr: Mr) -> Result<()> {
        let args = || mr.to_string();
        self.call(Verb::DeregMr, mr, args, |node| node.dereg_mr(mr))
    }

    #[track_caller]
    fn alloc_mw(&self, pd: Pd, mw_type: MwType) -> Result<Mw> {
        let args = || format!("{pd}, {mw_type}");
        self.call_device(Verb::AllocMw, pd, args, |device| {
            device.alloc_mw(pd, mw_type)
        })
    }

    #[track_caller]
    fn dealloc_mw(&self, mw: Mw) -> Result<()> {
        let args = || mw.to_string();
        self.call_device(Verb::DeallocMw, mw, args, |device| device.dealloc_mw(mw))
    }

    #[track_caller]
    fn query_mw(&self, mw: Mw) -> Result<MwAttr> {
        self.query(Verb::QueryMw, mw, |node| node.device.query_mw(mw))
    }

    #[track_caller]
    fn bind_mw(&self, qp: Qp, mw: Mw, bind: &MwBind) -> Result<()> {
        let args = || {
            let MwBindInfo { mr, length, .. } = bind.info;
            format!("{qp}, {mw}, {:#x}, {length} B of {mr}", bind.label())
        };
        self.call(Verb::BindMw, qp, args, |node| node.bind_mw(qp, mw, bind))
    }

    #[track_caller]
    fn query_mr(&self, mr: Mr) -> Result<MrAttr> {
        self.query(Verb::QueryMr, mr, |node| node.device.query_mr(mr))
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
    fn create_comp_channel(&self, context: Context) -> Result<CompChannel> {
        let args = || context.to_string();
        self.call_device(Verb::CreateCompChannel, context, args, |device| {
            device.cqs.create_comp_channel(&mut device.base, context)
        })
    }

    #[track_caller]
    fn destroy_comp_channel(&self, channel: CompChannel) -> Result<()> {
        let args = || channel.to_string();
        self.call_device(Verb::DestroyCompChannel, channel, args, |device| {
            device.cqs.destroy_comp_channel(&mut device.base, channel)
        })
    }

    #[track_caller]
    fn get_cq_event(&self, channel: CompChannel, wait: Wait) -> Result<CqEvent> {
        let args = || format!("{channel}, {wait:?}");
        let wait_for = WaitFor::Event(channel);
        self.wait(Verb::GetCqEvent, channel, wait, wait_for, args, |node| {
            node.device.cqs.get_cq_event(&mut node.device.base, channel)
        })
    }

    #[track_caller]
    fn create_cq(&self, context: Context, init: &CqInit) -> Result<Cq> {
        let args = || {
            format!(
                "{context}, {} entries{}",
                init.cqe,
                trace_args::also(init.channel)
            )
        };
        self.call_device(Verb::CreateCq, context, args, |device| {
            device.create_cq(context, init)
        })
    }

    #[track_caller]
    fn query_cq(&self, cq: Cq) -> Result<CqAttr> {
        self.query(Verb::QueryCq, cq, |node| node.device.query_cq(cq))
    }

    #[track_caller]
    fn resize_cq(&self, cq: Cq, cqe: i32) -> Result<()> {
        let args = || format!("{cq}, {cqe}");
        self.call_device(Verb::ResizeCq, cq, args, |device| device.resize_cq(cq, cqe))
    }

    #[track_caller]
    fn req_notify_cq(&self, cq: Cq, arm: Arm) -> Result<()> {
        let args = || format!("{cq}, {arm}");
        self.call_device(Verb::ReqNotifyCq, cq, args, |device| {
            device.req_notify_cq(cq, arm)
        })
    }

    #[inline]
    #[track_caller]
    fn poll_cq(&self, cq: Cq, wc: &mut [Wc]) -> Result<usize> {
        // Model checkers must see each poll as a step.
        if !CHECKED && self.runtime.is_empty(cq) {
            self.runtime.count_empty_poll();
            return Ok(0);
        }
        self.poll(cq.context(), cq.index(), cq.generation(), wc)
    }

    #[track_caller]
    fn ack_cq_events(&self, cq: Cq, nevents: u32) -> Result<()> {
        let args = || format!("{cq}, {nevents}");
        self.call_device(Verb::AckCqEvents, cq, args, |device| {
            device.ack_cq_events(cq, nevents)
        })
    }

    #[track_caller]
    fn destroy_cq(&self, cq: Cq, wait: Wait) -> Result<()> {
        let args = || format!("{cq}, {wait:?}");
        let wait_for = WaitFor::Acknowledgement(Element::Cq(cq));
        self.wait(Verb::DestroyCq, cq, wait, wait_for, args, |node| {
            node.destroy_cq(cq)
        })
    }

    #[track_caller]
    fn create_cq_ex(&self, context: Context, init: &CqInitEx) -> Result<Cq> {
        let args = || format!("{context}, {} entries, {:?}", init.cq.cqe, init.wc_flags);
        self.call_device(Verb::CreateCqEx, context, args, |device| {
            device.create_cq_ex(context, init)
        })
    }

    #[track_caller]
    fn start_poll(&self, cq: Cq) -> Result<()> {
        let verb = Verb::StartPoll;
        let node = self.node(verb, cq)?;
        let started = self.runtime.with(|fabric| {
            self.check_call(fabric, node, verb).by(verb)?;
            let result = fabric.work_quietly(node, |node| node.start_poll(cq));
            if matches!(&result, Err(error) if error.kind() == ErrorKind::NotFound) {
                // An empty poll is not in the trace.
                self.make_progress(fabric);
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
    fn next_poll(&self, cq: Cq) -> Result<()> {
        let args = || cq.to_string();
        self.call(Verb::NextPoll, cq, args, |node| node.next_poll(cq))
    }

    #[track_caller]
    fn read_wc(&self, cq: Cq) -> Result<WcEx> {
        self.query(Verb::ReadWc, cq, |node| node.device.read_wc(cq))
    }

    #[track_caller]
    fn end_poll(&self, cq: Cq) -> Result<()> {
        let args = || cq.to_string();
        self.call_device(Verb::EndPoll, cq, args, |device| device.end_poll(cq))
    }

    #[track_caller]
    fn modify_cq(&self, cq: Cq, moderation: &CqModeration) -> Result<()> {
        let args = || format!("{cq}, {moderation:?}");
        self.call_device(Verb::ModifyCq, cq, args, |device| {
            device.modify_cq(cq, moderation)
        })
    }

    #[track_caller]
    fn create_qp(&self, pd: Pd, init: &QpInit) -> Result<Qp> {
        let args = || {
            let (send_cq, recv_cq, srq) = (init.send_cq, init.recv_cq, trace_args::also(init.srq));
            format!("{pd}, {}, {send_cq}, {recv_cq}{srq}", init.qp_type)
        };
        self.call(Verb::CreateQp, pd, args, |node| node.create_qp(pd, init))
    }

    #[track_caller]
    fn qp_num(&self, qp: Qp) -> Result<u32> {
        self.query(Verb::QueryQp, qp, |node| node.qp_num(qp))
    }

    #[track_caller]
    fn query_qp(&self, qp: Qp, mask: QpAttrMask) -> Result<QpQuery> {
        self.query(Verb::QueryQp, qp, |node| node.query_qp(qp, mask))
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
    fn connect_rc(&self, a: Qp, b: Qp, params: &RcParams) -> Result<()> {
        let node = self.node(Verb::ConnectRc, a)?;
        self.runtime
            .with(|fabric| self.check_call(fabric, node, Verb::ConnectRc))
            .by(Verb::ConnectRc)?;
        connect::by_attributes(self, a, b, params)
    }

    #[track_caller]
    fn post_send(&self, qp: Qp, list: &[SendWr<'_>]) -> Result<(), PostError> {
        self.post_sends(qp, list)
    }

    #[track_caller]
    fn post_batch(&self, qp: Qp, list: &[SendWr<'_>], end: BatchEnd) -> Result<()> {
        self.post_batch_of(qp, list, end)
    }

    #[track_caller]
    fn post_recv(&self, qp: Qp, list: &[RecvWr<'_>]) -> Result<(), PostError> {
        let args = || format!("{qp}, {}", trace_args::receives(list));
        self.call(Verb::PostRecv, qp, args, |node| node.post_recv(qp, list))
    }

    #[track_caller]
    fn create_ah(&self, pd: Pd, attr: &AhAttr) -> Result<Ah> {
        let args = || format!("{pd}, port {}", attr.port_num);
        // The network is asked before the call, because the answer takes system calls.
        let outside = self.runtime.outside(attr);
        self.call_device(Verb::CreateAh, pd, args, |device| {
            device.create_ah(pd, attr, outside)
        })
    }

    #[track_caller]
    fn destroy_ah(&self, ah: Ah) -> Result<()> {
        let args = || ah.to_string();
        self.call(Verb::DestroyAh, ah, args, |node| node.destroy_ah(ah))
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

    #[track_caller]
    fn create_srq(&self, pd: Pd, init: &SrqInit) -> Result<Srq> {
        let args = || format!("{pd}, {} receives", init.attr.max_wr);
        self.call_device(Verb::CreateSrq, pd, args, |device| {
            device.create_srq(pd, init)
        })
    }

    #[track_caller]
    fn srq_init(&self, srq: Srq) -> Result<SrqInit> {
        self.query(Verb::QuerySrq, srq, |node| node.device.srq_init(srq))
    }

    #[track_caller]
    fn query_srq(&self, srq: Srq) -> Result<SrqAttr> {
        self.query(Verb::QuerySrq, srq, |node| node.device.query_srq(srq))
    }

    #[track_caller]
    fn modify_srq(&self, srq: Srq, attr: &SrqAttr, mask: SrqAttrMask) -> Result<()> {
        let args = || format!("{srq}, {attr:?}, {mask:?}");
        self.call_device(Verb::ModifySrq, srq, args, |device| {
            device.modify_srq(srq, attr, mask)
        })
    }

    #[track_caller]
    fn destroy_srq(&self, srq: Srq, wait: Wait) -> Result<()> {
        let args = || format!("{srq}, {wait:?}");
        let wait_for = WaitFor::Acknowledgement(Element::Srq(srq));
        self.wait(Verb::DestroySrq, srq, wait, wait_for, args, |node| {
            node.device.destroy_srq(srq)
        })
    }

    #[track_caller]
    fn post_srq_recv(&self, srq: Srq, list: &[RecvWr<'_>]) -> Result<(), PostError> {
        let args = || format!("{srq}, {}", trace_args::receives(list));
        self.call_device(Verb::PostSrqRecv, srq, args, |device| {
            device.post_srq_recv(srq, list)
        })
    }

    #[track_caller]
    fn open_xrcd(&self, context: Context, init: &XrcdInit<'_>) -> Result<Xrcd> {
        let args = || format!("{context}, {init:?}");
        self.call_device(Verb::OpenXrcd, context, args, |device| {
            device.open_xrcd(context, init)
        })
    }

    #[track_caller]
    fn close_xrcd(&self, xrcd: Xrcd) -> Result<()> {
        let args = || xrcd.to_string();
        self.call_device(Verb::CloseXrcd, xrcd, args, |device| {
            device.close_xrcd(xrcd)
        })
    }

    #[track_caller]
    fn create_xrc_recv_qp(&self, xrcd: Xrcd) -> Result<Qp> {
        let args = || format!("{xrcd}, {}", QpType::XrcRecv);
        self.call(Verb::CreateQp, xrcd, args, |node| {
            node.create_xrc_recv_qp(xrcd)
        })
    }

    #[track_caller]
    fn open_qp(&self, xrcd: Xrcd, qp_num: u32) -> Result<Qp> {
        let args = || format!("{xrcd}, {qp_num:#x}");
        self.call(Verb::OpenQp, xrcd, args, |node| node.open_qp(xrcd, qp_num))
    }

    #[track_caller]
    fn srq_num(&self, srq: Srq) -> Result<u32> {
        self.query(Verb::GetSrqNum, srq, |node| node.device.srq_num(srq))
    }

    #[track_caller]
    fn get_async_event(&self, context: Context, wait: Wait) -> Result<AsyncEvent> {
        let args = || format!("{context}, {wait:?}");
        let wait_for = WaitFor::AsyncEvent(context);
        self.wait(Verb::GetAsyncEvent, context, wait, wait_for, args, |node| {
            node.device.base.get_async_event(context)
        })
    }

    #[track_caller]
    fn ack_async_event(&self, context: Context, event: &AsyncEvent) -> Result<()> {
        let args = || format!("{context}, {event}");
        self.call(Verb::AckAsyncEvent, context, args, |node| {
            node.ack_async_event(context, event)
        })
    }

    #[cfg(feature = "fd")]
    #[track_caller]
    fn channel_fd(&self, channel: CompChannel) -> Result<OwnedFd> {
        self.descriptor(Verb::ChannelFd, channel, EventQueue::Channel(channel))
    }

    #[cfg(feature = "fd")]
    #[track_caller]
    fn async_fd(&self, context: Context) -> Result<OwnedFd> {
        self.descriptor(Verb::AsyncFd, context, EventQueue::Async(context))
    }

    #[track_caller]
    fn garble(&self, object: DriverObject, garbled: bool) -> Result<()> {
        let args = || format!("{object:?}, {garbled}");
        let node = self.node_of(Verb::Garble, object.kind(), object.context())?;
        self.call_node(node, Verb::Garble, args, |node| {
            node.garble(object, garbled)
        })
    }

    #[track_caller]
    fn cm(&self) -> Option<&dyn Cm> {
        Some(self)
    }

    #[track_caller]
    fn lab(&self) -> Option<&dyn Lab> {
        Some(self)
    }
}
