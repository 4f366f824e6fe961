//! A program that uses extended CQs and XRC, and goes on whatever the device says.

use verbs_api::{
    Access, Cq, CqFlags, CqInit, CqInitEx, CqModeration, Mr, MrAttr, Pd, Qp, QpInit, QpType,
    RcParams, RecvWr, SendWr, Srq, SrqInit, Verbs, Wait, WcFields, Xrcd, XrcdInit, connect,
};

/// The receiving end: two SRQs of a domain, each with a CQ.
struct Receiver {
    pd: Pd,
    mr: Mr,
    mem: MrAttr,
    xrcd: Xrcd,
    srqs: [Srq; 2],
    cqs: [Cq; 2],
    target: Qp,
    opened: Qp,
}

pub(crate) fn program(verbs: &dyn Verbs) {
    let a = verbs.open_device("sim0").unwrap();
    let pd = verbs.alloc_pd(a).unwrap();
    let mr = verbs.alloc_mr(pd, 4096, Access::ALL_RDMA).unwrap();
    let mem = verbs.query_mr(mr).unwrap();
    // Completions of sends do not say of which queue pair they are, and may be lost.
    let init = CqInitEx::new(CqInit::new(4))
        .wc_flags(WcFields::BYTE_LEN)
        .flags(CqFlags::IGNORE_OVERRUN);
    let cq = verbs.create_cq_ex(a, &init).unwrap();
    let sender = verbs
        .create_qp(pd, &QpInit::new(QpType::XrcSend, cq, cq))
        .unwrap();
    let b = receiver(verbs);
    let params = RcParams::default();
    connect::by_attributes(verbs, sender, b.target, &params).unwrap();
    let settle = || drop(verbs.lab().unwrap().settle());
    let numbers = b.srqs.map(|srq| verbs.srq_num(srq).unwrap());
    for (i, srq) in [0, 1, 1, 0].into_iter().enumerate() {
        let list = [b.mem.sge(64 * i as u64, 64)];
        let recv = RecvWr::new(0x20 + i as u64, &list);
        verbs.post_srq_recv(b.srqs[srq], &[recv]).unwrap();
    }
    let data = [mem.sge(0, 8)];
    for (wr_id, srq) in (0x10..).zip([0, 1, 1, 0]) {
        let send = SendWr::send(wr_id, &data).to_srq(numbers[srq]);
        verbs.post_send(sender, &[send]).unwrap();
    }
    settle();
    for cq in [cq, b.cqs[0], b.cqs[1]] {
        iterate(verbs, cq);
        // Again, when there is nothing.
        iterate(verbs, cq);
    }
    // More than the CQ has entries: the oldest are overwritten.
    for (i, srq) in [0, 1, 0, 1, 0, 1, 0, 1, 0, 1].into_iter().enumerate() {
        let list = [b.mem.sge(1024 + 64 * i as u64, 64)];
        let recv = RecvWr::new(0x40 + i as u64, &list);
        verbs.post_srq_recv(b.srqs[srq], &[recv]).unwrap();
        let send = SendWr::send(0x30 + i as u64, &data).to_srq(numbers[srq]);
        let _ = verbs.post_send(sender, &[send]);
        settle();
    }
    for cq in [cq, b.cqs[0], b.cqs[1]] {
        iterate(verbs, cq);
        iterate(verbs, cq);
    }
    let _ = verbs.destroy_qp(sender, Wait::Poll);
    let _ = verbs.destroy_cq(cq, Wait::Poll);
    let _ = verbs.close_xrcd(b.xrcd);
    for qp in [b.opened, b.target] {
        let _ = verbs.destroy_qp(qp, Wait::Poll);
    }
    for srq in b.srqs {
        let _ = verbs.destroy_srq(srq, Wait::Poll);
    }
    for cq in b.cqs {
        let _ = verbs.destroy_cq(cq, Wait::Poll);
    }
    let _ = verbs.close_xrcd(b.xrcd);
    let _ = verbs.dereg_mr(b.mr);
    let _ = verbs.dealloc_pd(b.pd);
}

fn receiver(verbs: &dyn Verbs) -> Receiver {
    let context = verbs.open_device("sim1").unwrap();
    let pd = verbs.alloc_pd(context).unwrap();
    let mr = verbs.alloc_mr(pd, 4096, Access::ALL_RDMA).unwrap();
    let xrcd = verbs.open_xrcd(context, &XrcdInit::private()).unwrap();
    let init = CqInitEx::new(CqInit::new(32));
    let cqs = [(); 2].map(|()| verbs.create_cq_ex(context, &init).unwrap());
    let moderation = CqModeration {
        cq_count: 2,
        cq_period: 100,
    };
    verbs.modify_cq(cqs[0], &moderation).unwrap();
    let srq = |cq| verbs.create_srq(pd, &SrqInit::new(16).xrc(xrcd, cq));
    let target = verbs.create_xrc_recv_qp(xrcd).unwrap();
    let number = verbs.qp_num(target).unwrap();
    Receiver {
        pd,
        mr,
        mem: verbs.query_mr(mr).unwrap(),
        xrcd,
        srqs: cqs.map(|cq| srq(cq).unwrap()),
        cqs,
        target,
        opened: verbs.open_qp(xrcd, number).unwrap(),
    }
}

/// Comes to every completion there is; every second is left unread.
fn iterate(verbs: &dyn Verbs, cq: Cq) {
    let mut come = verbs.start_poll(cq);
    if come.is_err() {
        return;
    }
    for i in 0.. {
        if i % 2 == 0 {
            let _ = verbs.read_wc(cq);
        }
        come = verbs.next_poll(cq);
        if come.is_err() {
            break;
        }
    }
    let _ = verbs.end_poll(cq);
}
