//! Handles that are zero, stale, or of another context, for every verb.

use verbs_api::{
    Access, Advice, AdviseFlags, Ah, AhAttr, Arm, AsyncEvent, AsyncEventType, BatchEnd,
    CompChannel, Context, Cq, CqInit, CqInitEx, CqModeration, Ece, Element, ErrorKind, GidEntry,
    Handle, InOrderQuery, Mr, MrChange, MrInit, MrMemory, Mw, MwBind, MwBindInfo, MwType, Pd, Qp,
    QpAttrMask, QpInit, QpModify, QpState, QpType, RcParams, RecvWr, SendWr, Sge, Srq, SrqAttr,
    SrqAttrMask, SrqInit, Verb, Wait, Wc, WrOpcode, Xrcd,
};

use super::refused;
use crate::failure::in_case;
use crate::mcast::{ALL_HOSTS, MLID};
use crate::mw::part_of;
use crate::{End, Failure, OfRule, PairOptions, Result, Setup, expect_err};

/// A handle of each kind.
#[derive(Clone, Copy, Default)]
pub(super) struct Handles {
    pub(super) context: Context,
    pub(super) pd: Pd,
    pub(super) mr: Mr,
    /// Where windows are looked at; otherwise none.
    pub(super) mw: Mw,
    pub(super) channel: CompChannel,
    pub(super) cq: Cq,
    pub(super) qp: Qp,
    pub(super) ah: Ah,
    pub(super) srq: Srq,
    /// Where XRC is looked at; otherwise none.
    pub(super) xrcd: Xrcd,
}

impl Handles {
    /// With a context, and nothing else.
    pub(super) fn in_context(context: Context) -> Self {
        Self {
            context,
            ..Self::default()
        }
    }

    pub(super) fn of(end: &End<'_>) -> Self {
        Self {
            context: end.context,
            pd: end.pd,
            mr: end.mr,
            mw: Mw::default(),
            channel: end.channel,
            cq: end.recv_cq,
            qp: end.qp,
            ah: Ah::default(),
            srq: Srq::default(),
            xrcd: Xrcd::default(),
        }
    }

    /// The same numbers in another context.
    fn moved_to(&self, context: Context) -> Self {
        self.map(|_, index, generation| (context, index, generation))
    }

    fn map(&self, new: impl Fn(Context, u32, u32) -> (Context, u32, u32)) -> Self {
        fn one<H: Handle>(
            handle: H,
            make: impl Fn(Context, u32, u32) -> H,
            new: impl Fn(Context, u32, u32) -> (Context, u32, u32),
        ) -> H {
            let (context, index, generation) =
                new(handle.context(), handle.index(), handle.generation());
            make(context, index, generation)
        }
        Self {
            context: Context::from_parts(u32::MAX, 1),
            pd: one(self.pd, Pd::from_parts, &new),
            mr: one(self.mr, Mr::from_parts, &new),
            mw: one(self.mw, Mw::from_parts, &new),
            channel: one(self.channel, CompChannel::from_parts, &new),
            cq: one(self.cq, Cq::from_parts, &new),
            qp: one(self.qp, Qp::from_parts, &new),
            ah: one(self.ah, Ah::from_parts, &new),
            srq: one(self.srq, Srq::from_parts, &new),
            xrcd: one(self.xrcd, Xrcd::from_parts, &new),
        }
    }
}

pub(super) type Call = fn(&Setup<'_>, &Handles, &Handles) -> verbs_api::Result<()>;

/// Every verb with a bad handle in each place in turn, and good ones in the others.
const CALLS: &[(Verb, &str, Call)] = &[
    (Verb::CloseDevice, "DEV-13", |v, _, bad| {
        v.close_device(bad.context)
    }),
    (Verb::QueryDevice, "DEV-13", |v, _, bad| {
        v.query_device(bad.context).map(drop)
    }),
    (Verb::QueryDevice, "DEV-13", |v, _, bad| {
        v.capabilities(bad.context).map(drop)
    }),
    (Verb::QueryDevice, "DEV-13", |v, _, bad| {
        v.verbs().behavior(bad.context).map(drop)
    }),
    (Verb::QueryDeviceEx, "DEV-13", |v, _, bad| {
        v.query_device_ex(bad.context).map(drop)
    }),
    (Verb::QueryGidEx, "DEV-13", |v, _, bad| {
        v.query_gid_ex(bad.context, 1, 0).map(drop)
    }),
    (Verb::QueryGidTable, "DEV-13", |v, _, bad| {
        let mut entries = [GidEntry::default(); 64];
        v.query_gid_table(bad.context, &mut entries).map(drop)
    }),
    (Verb::CreateCqEx, "DEV-13", |v, _, bad| {
        let init = CqInitEx::new(CqInit::new(1));
        v.create_cq_ex(bad.context, &init).map(drop)
    }),
    (Verb::StartPoll, "CQ-DESTROY-05", |v, _, bad| {
        v.start_poll(bad.cq)
    }),
    (Verb::NextPoll, "CQ-DESTROY-05", |v, _, bad| {
        v.next_poll(bad.cq)
    }),
    (Verb::ReadWc, "CQ-DESTROY-05", |v, _, bad| {
        v.read_wc(bad.cq).map(drop)
    }),
    (Verb::EndPoll, "CQ-DESTROY-05", |v, _, bad| {
        v.end_poll(bad.cq)
    }),
    (Verb::ModifyCq, "CQ-DESTROY-05", |v, _, bad| {
        v.modify_cq(bad.cq, &CqModeration::default())
    }),
    (Verb::QueryPort, "DEV-13", |v, _, bad| {
        v.query_port(bad.context, 1).map(drop)
    }),
    (Verb::QueryGid, "DEV-13", |v, _, bad| {
        v.query_gid(bad.context, 1, 0).map(drop)
    }),
    (Verb::QueryPkey, "DEV-13", |v, _, bad| {
        v.query_pkey(bad.context, 1, 0).map(drop)
    }),
    (Verb::QueryRtValues, "DEV-13", |v, _, bad| {
        v.query_rt_values(bad.context).map(drop)
    }),
    (Verb::AllocPd, "DEV-13", |v, _, bad| {
        v.alloc_pd(bad.context).map(drop)
    }),
    (Verb::DeallocPd, "PD-04", |v, _, bad| v.dealloc_pd(bad.pd)),
    (Verb::AllocMr, "PD-04", |v, _, bad| {
        v.alloc_mr(bad.pd, 64, Access::empty()).map(drop)
    }),
    (Verb::AllocMrAs, "PD-04", |v, _, bad| {
        let init = MrInit::new(64, Access::empty());
        v.alloc_mr_as(bad.pd, &init).map(drop)
    }),
    (Verb::AllocMrAs, "MR-22", |v, good, bad| {
        let init = MrInit::new(64, Access::empty()).memory(MrMemory::Of(bad.mr, 0));
        v.alloc_mr_as(good.pd, &init).map(drop)
    }),
    (Verb::AllocNullMr, "PD-04", |v, _, bad| {
        v.alloc_null_mr(bad.pd).map(drop)
    }),
    (Verb::ReregMr, "MR-22", |v, _, bad| {
        let change = MrChange {
            access: Some(Access::empty()),
            ..MrChange::default()
        };
        v.rereg_mr(bad.mr, &change).map_err(|refused| refused.error)
    }),
    (Verb::DeregMr, "MR-22", |v, _, bad| v.dereg_mr(bad.mr)),
    (Verb::AdviseMr, "PD-04", |v, _, bad| {
        let list = [Sge::default()];
        v.advise_mr(bad.pd, Advice::Prefetch, AdviseFlags::FLUSH, &list)
    }),
    (Verb::QueryMr, "MR-22", |v, _, bad| {
        v.query_mr(bad.mr).map(drop)
    }),
    (Verb::ReadMr, "MR-22", |v, _, bad| {
        v.read_mr(bad.mr, 0, &mut [0])
    }),
    (Verb::WriteMr, "MR-22", |v, _, bad| {
        v.write_mr(bad.mr, 0, &[0])
    }),
    (Verb::MapMr, "MR-22", |v, _, bad| v.map_mr(bad.mr, false)),
    (Verb::CreateCompChannel, "DEV-13", |v, _, bad| {
        v.create_comp_channel(bad.context).map(drop)
    }),
    (Verb::DestroyCompChannel, "DEV-13", |v, _, bad| {
        v.destroy_comp_channel(bad.channel)
    }),
    (Verb::GetCqEvent, "DEV-13", |v, _, bad| {
        v.get_cq_event(bad.channel, Wait::Poll).map(drop)
    }),
    (Verb::CreateCq, "DEV-13", |v, _, bad| {
        v.create_cq(bad.context, &CqInit::new(1)).map(drop)
    }),
    (Verb::CreateCq, "DEV-13", |v, good, bad| {
        let init = CqInit::new(1).channel(bad.channel);
        v.create_cq(good.context, &init).map(drop)
    }),
    (Verb::QueryCq, "CQ-DESTROY-05", |v, _, bad| {
        v.query_cq(bad.cq).map(drop)
    }),
    (Verb::ResizeCq, "CQ-DESTROY-05", |v, _, bad| {
        v.resize_cq(bad.cq, 1)
    }),
    (Verb::PollCq, "CQ-DESTROY-05", |v, _, bad| {
        v.poll_cq(bad.cq, &mut [Wc::default()]).map(drop)
    }),
    (Verb::AckCqEvents, "CQ-DESTROY-05", |v, _, bad| {
        v.ack_cq_events(bad.cq, 0)
    }),
    (Verb::DestroyCq, "CQ-DESTROY-05", |v, _, bad| {
        v.destroy_cq(bad.cq, Wait::Poll)
    }),
    (Verb::CreateQp, "PD-04", |v, good, bad| {
        let init = QpInit::new(QpType::Rc, good.cq, good.cq);
        v.create_qp(bad.pd, &init).map(drop)
    }),
    (Verb::CreateQp, "QP-CREATE-05", |v, good, bad| {
        let init = QpInit::new(QpType::Rc, bad.cq, good.cq);
        v.create_qp(good.pd, &init).map(drop)
    }),
    (Verb::CreateQp, "QP-CREATE-05", |v, good, bad| {
        let init = QpInit::new(QpType::Rc, good.cq, bad.cq);
        v.create_qp(good.pd, &init).map(drop)
    }),
    (Verb::QueryQp, "QP-STATE-32", |v, _, bad| {
        v.qp_num(bad.qp).map(drop)
    }),
    (Verb::QueryQp, "QP-STATE-32", |v, _, bad| {
        v.query_qp(bad.qp, QpAttrMask::STATE).map(drop)
    }),
    (Verb::QueryQpDataInOrder, "QP-STATE-32", |v, _, bad| {
        v.query_qp_data_in_order(bad.qp, WrOpcode::Send, InOrderQuery::empty())
            .map(drop)
    }),
    (Verb::ModifyQp, "QP-STATE-32", |v, _, bad| {
        let QpModify { attr, mask } = QpModify::to(QpState::Reset);
        v.modify_qp(bad.qp, &attr, mask)
    }),
    (Verb::QueryEce, "QP-STATE-32", |v, _, bad| {
        v.query_ece(bad.qp).map(drop)
    }),
    (Verb::SetEce, "QP-STATE-32", |v, _, bad| {
        v.set_ece(bad.qp, &Ece::new(1, 0))
    }),
    (Verb::DestroyQp, "QP-STATE-32", |v, _, bad| {
        v.destroy_qp(bad.qp, Wait::Poll)
    }),
    (Verb::ConnectRc, "QP-STATE-32", |v, good, bad| {
        v.connect_rc(bad.qp, good.qp, &RcParams::default())
    }),
    (Verb::ConnectRc, "QP-STATE-32", |v, good, bad| {
        v.connect_rc(good.qp, bad.qp, &RcParams::default())
    }),
    (Verb::PostSend, "QP-STATE-32", |v, _, bad| {
        Ok(v.post_send(bad.qp, &[SendWr::send(1, &[])])?)
    }),
    (Verb::PostBatch, "QP-STATE-32", |v, _, bad| {
        v.post_batch(bad.qp, &[SendWr::send(1, &[])], BatchEnd::Complete)
    }),
    (Verb::PostRecv, "QP-STATE-32", |v, _, bad| {
        Ok(v.post_recv(bad.qp, &[RecvWr::new(1, &[])])?)
    }),
    (Verb::GetAsyncEvent, "DEV-13", |v, _, bad| {
        v.get_async_event(bad.context, Wait::Poll).map(drop)
    }),
    (Verb::AckAsyncEvent, "DEV-13", |v, _, bad| {
        v.ack_async_event(bad.context, &event(Element::Port(1)))
    }),
    (Verb::AckAsyncEvent, "DEV-13", |v, good, bad| {
        v.ack_async_event(good.context, &event(Element::Cq(bad.cq)))
    }),
    (Verb::AckAsyncEvent, "DEV-13", |v, good, bad| {
        v.ack_async_event(good.context, &event(Element::Qp(bad.qp)))
    }),
];

/// The verbs on address handles, which only datagrams need.
const AH_CALLS: &[(Verb, &str, Call)] = &[
    (Verb::CreateAh, "PD-04", |v, good, bad| {
        v.create_ah(bad.pd, &to_itself(v, good)?).map(drop)
    }),
    (Verb::DestroyAh, "AH-06", |v, _, bad| v.destroy_ah(bad.ah)),
    (Verb::PostSend, "DEV-13", |v, good, bad| {
        let number = v.qp_num(good.qp)?;
        let send = SendWr::send(1, &[]).to(bad.ah, number, v.qkey());
        Ok(v.post_send(good.qp, &[send])?)
    }),
];

/// The verbs on multicast groups.
const MCAST_CALLS: &[(Verb, &str, Call)] = &[
    (Verb::AttachMcast, "QP-STATE-32", |v, _, bad| {
        v.attach_mcast(bad.qp, ALL_HOSTS, MLID)
    }),
    (Verb::DetachMcast, "QP-STATE-32", |v, _, bad| {
        v.detach_mcast(bad.qp, ALL_HOSTS, MLID)
    }),
];

/// The verbs on memory windows.
const MW_CALLS: &[(Verb, &str, Call)] = &[
    (Verb::AllocMw, "PD-04", |v, _, bad| {
        v.alloc_mw(bad.pd, MwType::Type1).map(drop)
    }),
    (Verb::QueryMw, "DEV-13", |v, _, bad| {
        v.query_mw(bad.mw).map(drop)
    }),
    (Verb::DeallocMw, "DEV-13", |v, _, bad| v.dealloc_mw(bad.mw)),
    (Verb::BindMw, "MW-28", |v, good, bad| {
        v.bind_mw(bad.qp, good.mw, &MwBind::new(1, shown(v, good, good.mr)?))
    }),
    (Verb::BindMw, "MW-28", |v, good, bad| {
        v.bind_mw(good.qp, bad.mw, &MwBind::new(1, shown(v, good, good.mr)?))
    }),
    (Verb::BindMw, "MW-28", |v, good, bad| {
        v.bind_mw(good.qp, good.mw, &MwBind::new(1, shown(v, good, bad.mr)?))
    }),
    (Verb::PostSend, "MW-28", |v, good, bad| {
        let bind = SendWr::bind_mw(1, bad.mw, 0, shown(v, good, good.mr)?);
        Ok(v.post_send(good.qp, &[bind])?)
    }),
    (Verb::PostSend, "MW-28", |v, good, bad| {
        let bind = SendWr::bind_mw(1, good.mw, 0, shown(v, good, bad.mr)?);
        Ok(v.post_send(good.qp, &[bind])?)
    }),
];

/// The start of the good region, as that of any region.
fn shown(setup: &Setup<'_>, good: &Handles, mr: Mr) -> verbs_api::Result<MwBindInfo> {
    let addr = setup.query_mr(good.mr)?.addr;
    Ok(part_of(mr, addr, 8, Access::REMOTE_WRITE))
}

/// The verbs on shared receive queues, which not all devices have.
const SRQ_CALLS: &[(Verb, &str, Call)] = &[
    (Verb::CreateSrq, "PD-04", |v, _, bad| {
        v.create_srq(bad.pd, &SrqInit::new(4)).map(drop)
    }),
    (Verb::QuerySrq, "DEV-13", |v, _, bad| {
        v.query_srq(bad.srq).map(drop)
    }),
    (Verb::QuerySrq, "DEV-13", |v, _, bad| {
        v.srq_init(bad.srq).map(drop)
    }),
    (Verb::ModifySrq, "DEV-13", |v, _, bad| {
        v.modify_srq(bad.srq, &SrqAttr::default(), SrqAttrMask::LIMIT)
    }),
    (Verb::DestroySrq, "DEV-13", |v, _, bad| {
        v.destroy_srq(bad.srq, Wait::Poll)
    }),
    (Verb::PostSrqRecv, "DEV-13", |v, _, bad| {
        Ok(v.post_srq_recv(bad.srq, &[RecvWr::new(1, &[])])?)
    }),
    (Verb::CreateQp, "DEV-13", |v, good, bad| {
        let init = QpInit::new(QpType::Rc, good.cq, good.cq).srq(bad.srq);
        v.create_qp(good.pd, &init).map(drop)
    }),
    (Verb::AckAsyncEvent, "DEV-13", |v, good, bad| {
        v.ack_async_event(good.context, &event(Element::Srq(bad.srq)))
    }),
];

/// The verbs that give file descriptors.
#[cfg(unix)]
const FD_CALLS: &[(Verb, &str, Call)] = &[
    (Verb::ChannelFd, "DEV-13", |v, _, bad| {
        v.channel_fd(bad.channel).map(drop)
    }),
    (Verb::AsyncFd, "DEV-13", |v, _, bad| {
        v.async_fd(bad.context).map(drop)
    }),
];

scenario!(every_verb_refuses_handles_that_are_none:
    "DEV-13", "PD-04", "MR-22", "CQ-DESTROY-05", "QP-STATE-32", "QP-CREATE-05", "DEV-02");
fn every_verb_refuses_handles_that_are_none(setup: &Setup<'_>) -> Result {
    let options = PairOptions::default();
    let a = setup.end(setup.ctx_a(), options)?;
    let good = Handles::of(&a);
    for (problem, bad) in bad_handles(setup, &good, options)? {
        refuse_all(setup, CALLS, &good, problem, &bad)?;
    }
    // It is connected only now: no refused call may have moved it.
    let b = setup.end(setup.ctx_b(), options)?;
    let pair = setup.connect(a, b, options)?;
    pair.still_works("DEV-02")
}

scenario!(address_handles_that_are_none_are_refused: "AH-06", "PD-04", "DEV-13"; needs UD);
fn address_handles_that_are_none_are_refused(setup: &Setup<'_>) -> Result {
    let options = PairOptions::of(QpType::Ud);
    let pair = setup.pair(options)?;
    let good = Handles::of(&pair.a);
    let ah = setup.create_ah(good.pd, &to_itself(setup, &good)?)?;
    let good = Handles { ah, ..good };
    for (problem, bad) in bad_handles(setup, &good, options)? {
        refuse_all(setup, AH_CALLS, &good, problem, &bad)?;
    }
    pair.still_works("DEV-13")
}

scenario!(queue_pairs_that_are_none_join_no_group: "QP-STATE-32"; needs UD, MCAST);
fn queue_pairs_that_are_none_join_no_group(setup: &Setup<'_>) -> Result {
    let options = PairOptions::of(QpType::Ud);
    let pair = setup.pair(options)?;
    let good = Handles::of(&pair.a);
    for (problem, bad) in bad_handles(setup, &good, options)? {
        refuse_all(setup, MCAST_CALLS, &good, problem, &bad)?;
    }
    pair.still_works("QP-STATE-32")
}

scenario!(windows_that_are_none_are_refused: "MW-28", "PD-04", "DEV-13"; needs MW);
fn windows_that_are_none_are_refused(setup: &Setup<'_>) -> Result {
    let options = PairOptions {
        access: Access::ALL_RDMA | Access::MW_BIND,
        ..PairOptions::default()
    };
    let pair = setup.pair(options)?;
    let good = Handles::of(&pair.a);
    let mw = setup.alloc_mw(good.pd, MwType::Type1)?;
    let good = Handles { mw, ..good };
    let before = setup.query_mw(mw)?;
    for (problem, bad) in bad_handles(setup, &good, options)? {
        refuse_all(setup, MW_CALLS, &good, problem, &bad)?;
    }
    crate::failure::check_eq!("MW-28", setup.query_mw(mw)?, before, "the window");
    setup.dealloc_mw(mw).rule("MW-28")?;
    pair.still_works("MW-28")
}

scenario!(srqs_that_are_none_are_refused: "DEV-13", "PD-04"; needs SRQ);
fn srqs_that_are_none_are_refused(setup: &Setup<'_>) -> Result {
    let end = setup.end(setup.ctx_a(), PairOptions::default())?;
    let srq = setup.create_srq(end.pd, &SrqInit::new(4))?;
    let good = Handles {
        srq,
        ..Handles::of(&end)
    };
    let stale = || -> Result<(Srq, Srq)> {
        // One whose context was closed, and one that was destroyed.
        let [closed, destroyed] = [open_again(setup)?, open_again(setup)?];
        let make = |context| setup.create_srq(setup.alloc_pd(context)?, &SrqInit::new(4));
        let srqs = (make(closed)?, make(destroyed)?);
        setup.close_device(closed)?;
        setup.destroy_srq(srqs.1, setup.wait())?;
        Ok(srqs)
    };
    let (closed, destroyed) = stale()?;
    for (problem, bad) in bad_handles(setup, &good, PairOptions::default())? {
        let bad = match problem {
            "closed" => Handles { srq: closed, ..bad },
            "stale" => Handles {
                srq: destroyed,
                ..bad
            },
            _ => bad,
        };
        refuse_all(setup, SRQ_CALLS, &good, problem, &bad)?;
    }
    setup.destroy_srq(srq, setup.wait()).rule("DEV-13")
}

scenario!(srq_of_another_context_is_refused: "DEV-13"; needs SRQ);
fn srq_of_another_context_is_refused(setup: &Setup<'_>) -> Result {
    let own = setup.end(setup.ctx_a(), PairOptions::default())?;
    for context in [open_again(setup)?, setup.ctx_b()] {
        let pd = setup.alloc_pd(context)?;
        let srq = setup.create_srq(pd, &SrqInit::new(4))?;
        let init = QpInit::new(QpType::Rc, own.send_cq, own.recv_cq).srq(srq);
        refused(setup, &[ErrorKind::Invalid], "DEV-13", || {
            setup.create_qp(own.pd, &init)
        })?;
        refused(setup, &[ErrorKind::Invalid], "DEV-13", || {
            setup.ack_async_event(own.context, &event(Element::Srq(srq)))
        })?;
        // It is not held by the failed creation.
        setup.destroy_srq(srq, setup.wait()).rule("DEV-13")?;
    }
    Ok(())
}

#[cfg(unix)]
scenario!(handles_that_are_none_have_no_descriptor: "DEV-13"; needs FD);
#[cfg(unix)]
fn handles_that_are_none_have_no_descriptor(setup: &Setup<'_>) -> Result {
    let options = PairOptions::default();
    let good = Handles::of(&setup.end(setup.ctx_a(), options)?);
    for (problem, bad) in bad_handles(setup, &good, options)? {
        refuse_all(setup, FD_CALLS, &good, problem, &bad)?;
    }
    Ok(())
}

pub(super) fn refuse_all(
    setup: &Setup<'_>,
    calls: &[(Verb, &'static str, Call)],
    good: &Handles,
    problem: &str,
    bad: &Handles,
) -> Result {
    for (verb, rule, call) in calls {
        let result = refused(setup, &[ErrorKind::Invalid], rule, || {
            call(setup, good, bad)
        });
        in_case(&format!("{verb}, {problem} handle"), result.map(drop))?;
    }
    Ok(())
}

/// Sets of handles that name nothing, each with a word for it.
pub(super) fn bad_handles(
    setup: &Setup<'_>,
    good: &Handles,
    options: PairOptions,
) -> Result<Vec<(&'static str, Handles)>> {
    let closed = make(setup, options)?;
    setup.close_device(closed.context)?;
    let destroyed = make(setup, options)?;
    destroy(setup, &destroyed)?;
    let stale = Handles {
        context: closed.context,
        ..destroyed
    };
    let moved = good.moved_to(open_again(setup)?);
    let next = good.map(|context, index, generation| (context, index, generation + 1));
    let invented = good.map(|context, _, _| (context, u32::MAX, 1));
    Ok(vec![
        ("zero", Handles::default()),
        ("closed", closed),
        ("stale", stale),
        ("moved", moved),
        ("next", next),
        ("invented", invented),
    ])
}

/// An object of each kind, in a context of its own.
fn make(setup: &Setup<'_>, options: PairOptions) -> Result<Handles> {
    let options = PairOptions {
        one_cq: true,
        ..options
    };
    let mut made = Handles::of(&setup.end(open_again(setup)?, options)?);
    if options.access.contains(Access::MW_BIND) {
        made.mw = setup.alloc_mw(made.pd, MwType::Type1)?;
    }
    if options.qp_type != QpType::Ud {
        return Ok(made);
    }
    let ah = setup.create_ah(made.pd, &to_itself(setup, &made)?)?;
    Ok(Handles { ah, ..made })
}

/// Destroys all but the context.
fn destroy(setup: &Setup<'_>, handles: &Handles) -> Result {
    if handles.mw != Mw::default() {
        setup.dealloc_mw(handles.mw)?;
    }
    if handles.ah != Ah::default() {
        setup.destroy_ah(handles.ah)?;
    }
    setup.destroy_qp(handles.qp, setup.wait())?;
    setup.destroy_cq(handles.cq, setup.wait())?;
    setup.destroy_comp_channel(handles.channel)?;
    setup.dereg_mr(handles.mr)?;
    Ok(setup.dealloc_pd(handles.pd)?)
}

/// The device of side A, opened once more.
pub(crate) fn open_again(setup: &Setup<'_>) -> Result<Context> {
    match setup.devices()?.first() {
        Some(device) => Ok(setup.open_device(&device.name)?),
        None => Err(Failure::assertion("at least one device", "none")),
    }
}

fn to_itself(setup: &Setup<'_>, handles: &Handles) -> verbs_api::Result<AhAttr> {
    setup.route_to(handles.context)
}

fn event(element: Element) -> AsyncEvent {
    AsyncEvent::new(AsyncEventType::QpFatal, element)
}

scenario!(arming_what_is_no_cq_is_refused: "CQ-ARM-21");
fn arming_what_is_no_cq_is_refused(setup: &Setup<'_>) -> Result {
    let options = PairOptions::default();
    let good = Handles::of(&setup.end(setup.ctx_a(), options)?);
    for (problem, bad) in bad_handles(setup, &good, options)? {
        for arm in [Arm::NEXT, Arm::SOLICITED] {
            let armed = setup.req_notify_cq(bad.cq, arm);
            let refused = expect_err(armed, ErrorKind::Invalid, "CQ-ARM-21");
            in_case(problem, refused.map(drop))?;
        }
    }
    setup.no_event(good.channel, "CQ-ARM-21")
}

scenario!(objects_of_another_context_are_refused: "DEV-13", "DEV-02", "QP-CREATE-05");
fn objects_of_another_context_are_refused(setup: &Setup<'_>) -> Result {
    let invalid = [ErrorKind::Invalid];
    let own = setup.end(setup.ctx_a(), PairOptions::default())?;
    for context in [open_again(setup)?, setup.ctx_b()] {
        let other = setup.end(context, PairOptions::default())?;
        let with_channel = CqInit::new(1).channel(other.channel);
        refused(setup, &invalid, "DEV-13", || {
            setup.create_cq(own.context, &with_channel)
        })?;
        for (send_cq, recv_cq) in [
            (other.send_cq, other.recv_cq),
            (other.send_cq, own.recv_cq),
            (own.send_cq, other.recv_cq),
        ] {
            let init = QpInit::new(QpType::Rc, send_cq, recv_cq);
            refused(setup, &invalid, "QP-CREATE-05", || {
                setup.create_qp(own.pd, &init)
            })?;
        }
        for element in [Element::Cq(other.recv_cq), Element::Qp(other.qp)] {
            refused(setup, &invalid, "DEV-13", || {
                setup.ack_async_event(own.context, &event(element))
            })?;
        }
        // None of them is held by a failed creation.
        setup.destroy_qp(other.qp, setup.wait())?;
        for cq in [other.send_cq, other.recv_cq] {
            setup.destroy_cq(cq, setup.wait()).rule("DEV-02")?;
        }
        setup.destroy_comp_channel(other.channel).rule("DEV-02")?;
    }
    Ok(())
}

scenario!(address_handle_of_another_context_is_refused: "DEV-13"; needs UD);
fn address_handle_of_another_context_is_refused(setup: &Setup<'_>) -> Result {
    let pair = setup.pair(PairOptions::of(QpType::Ud))?;
    for context in [open_again(setup)?, setup.ctx_b()] {
        let pd = setup.alloc_pd(context)?;
        let ah = setup.create_ah(pd, &setup.route_to(context)?)?;
        let data = [pair.a.sge(0, 8)];
        let send = SendWr::send(1, &data).to(ah, pair.b.qp_num, setup.qkey());
        refused(setup, &[ErrorKind::Invalid], "DEV-13", || {
            setup.post_send(pair.a.qp, &[send])
        })?;
    }
    pair.still_works("DEV-13")
}

scenario!(stale_handle_never_names_a_later_object: "LIFE-05");
fn stale_handle_never_names_a_later_object(setup: &Setup<'_>) -> Result {
    let context = setup.ctx_a();
    let mut old = Vec::new();
    for _ in 0..200 {
        let channel = setup.create_comp_channel(context)?;
        let cq = setup.create_cq(context, &CqInit::new(1).channel(channel))?;
        let pd = setup.alloc_pd(context)?;
        setup.destroy_cq(cq, setup.wait())?;
        setup.destroy_comp_channel(channel)?;
        setup.dealloc_pd(pd)?;
        old.push((pd, channel, cq));
    }
    let last = setup.end(context, PairOptions::default())?;
    let invalid = [ErrorKind::Invalid];
    for (pd, channel, cq) in old {
        refused(setup, &invalid, "LIFE-05", || setup.dealloc_pd(pd))?;
        refused(setup, &invalid, "LIFE-05", || {
            setup.destroy_comp_channel(channel)
        })?;
        refused(setup, &invalid, "LIFE-05", || {
            setup.destroy_cq(cq, Wait::Poll)
        })?;
    }
    setup.state(last.qp).rule("LIFE-05").map(drop)
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn every_verb_on_a_handle_is_called() {
        // These take no handle, cannot be called safely, or have a scenario of their own.
        let without = [
            Verb::GetDeviceList,
            Verb::OpenDevice,
            Verb::ExportDmabuf,
            Verb::RegDmabufMr,
            Verb::RegMr,
            Verb::ReqNotifyCq,
            Verb::CorruptHandle,
            Verb::Lab,
        ];
        // `cm::event` calls the verbs of rdma_cm.
        let of_cm = |verb: &Verb| format!("{verb:?}").starts_with("Cm");
        for verb in Verb::ALL.iter().filter(|verb| !of_cm(verb)) {
            let xrc = super::super::xrc::CALLS;
            let called = [
                CALLS,
                AH_CALLS,
                MCAST_CALLS,
                MW_CALLS,
                SRQ_CALLS,
                FD_CALLS,
                xrc,
            ]
            .concat()
            .iter()
            .any(|row| row.0 == *verb)
                || super::super::dm::CALLS.iter().any(|row| row.0 == *verb)
                || super::super::parent::CALLS.iter().any(|row| row.0 == *verb);
            assert_eq!(called, !without.contains(verb), "{verb}");
        }
    }
}
