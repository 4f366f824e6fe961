//! The memory that a peer reaches.

use verbs_api::behavior::QpAccessStatus;
use verbs_api::{Access, Capabilities, QpType, RcParams, RecvWr, Remote, SendWr, WcStatus};

use crate::failure::{check, in_case};
use crate::{Failure, OfRule, Pair, PairOptions, Result, Setup, pattern};

fn options() -> PairOptions {
    PairOptions::of(QpType::XrcSend)
}

scenario!(receives_are_in_memory_of_their_srqs_domain: "SRQ-12"; needs XRC);
fn receives_are_in_memory_of_their_srqs_domain(setup: &Setup<'_>) -> Result {
    const RULE: &str = "SRQ-12";
    let Pair { a, b } = setup.pair(options())?;
    let pd = setup.alloc_pd(b.context)?;
    let foreign = setup.query_mr(setup.alloc_mr(pd, 64, Access::ALL_RDMA)?)?;
    b.recv(1, 64)?;
    setup.post_srq_recv(b.srq(), &[RecvWr::new(2, &[foreign.sge(0, 64)])])?;
    a.fill(3, 64)?;
    a.send(1, 64)?;
    for cq in [a.send_cq, b.recv_cq] {
        setup.successes(cq, 1).rule(RULE)?;
    }
    b.expect_data(3, 64, RULE)?;
    a.send(2, 64)?;
    let sent = setup.one(a.send_cq)?;
    check!(RULE, sent.status != WcStatus::Success, "an error", "{sent}");
    let got = setup.one(b.recv_cq)?;
    check!(RULE, got.status != WcStatus::Success, "an error", "{got}");
    Ok(())
}

scenario!(peer_reaches_the_memory_of_the_domain_of_the_srq_it_names:
    "RDMA-07", "PD-02"; needs RDMA_READ, XRC);
/// The same place, named together with an SRQ of its domain, and with one of another.
fn peer_reaches_the_memory_of_the_domain_of_the_srq_it_names(setup: &Setup<'_>) -> Result {
    const RULE: &str = "RDMA-07";
    let xrcd = setup.open_xrcd(setup.ctx_b(), &verbs_api::XrcdInit::private())?;
    for read in [false, true] {
        let a = setup.end(setup.ctx_a(), options())?;
        let b = setup.xrc_end(xrcd, None, options())?;
        let other = setup.xrc_end(xrcd, Some(b.qp), options())?;
        let Pair { a, b } = setup.connect(a, b, options())?;
        let own = setup.srq_num(b.srq())?;
        let foreign = setup.srq_num(other.srq())?;
        let (source, sink) = if read { (&b, &a) } else { (&a, &b) };
        source.fill(5, 64)?;
        let (near, far) = if read {
            (a.landing(), 0)
        } else {
            (0, b.landing())
        };
        let (data, remote) = ([a.sge(near, 64)], b.mem.remote(far));
        for (number, status, tag, rule) in [
            (own, WcStatus::Success, 5, "PD-02"),
            (foreign, WcStatus::RemAccessErr, 9, RULE),
        ] {
            sink.fill_at(sink.landing(), 9, 64)?;
            let work = if read {
                SendWr::rdma_read(1, &data, remote)
            } else {
                SendWr::rdma_write(1, &data, remote)
            };
            setup.post_send(a.qp, &[work.to_srq(number)]).rule(rule)?;
            let done = setup.one_with(a.send_cq, status, rule);
            in_case(work.op.name(), done.map(drop))?;
            sink.expect_data(tag, 64, rule)?;
        }
    }
    Ok(())
}

scenario!(target_allows_what_its_rights_say: "RDMA-04"; needs RDMA_READ, XRC);
fn target_allows_what_its_rights_say(setup: &Setup<'_>) -> Result {
    const RULE: &str = "RDMA-04";
    let all = setup.capabilities(setup.ctx_b())?;
    for (right, other) in [
        (Access::REMOTE_WRITE, Access::REMOTE_READ),
        (Access::REMOTE_READ, Access::REMOTE_WRITE),
        (Access::REMOTE_ATOMIC, Access::REMOTE_WRITE),
    ] {
        if right == Access::REMOTE_ATOMIC && !all.contains(Capabilities::ATOMICS) {
            continue;
        }
        for access in [right, other] {
            let rc = RcParams {
                access,
                ..RcParams::default()
            };
            let Pair { a, b } = setup.pair(PairOptions {
                rc,
                access: Access::ALL_RDMA | Access::REMOTE_ATOMIC,
                ..options()
            })?;
            setup.write_mr(b.mr, 0, &pattern(1, 8))?;
            let remote: Remote = b.mem.remote(0);
            let data = [a.sge(a.landing(), 8)];
            a.post(match right {
                Access::REMOTE_WRITE => SendWr::rdma_write(1, &data, remote),
                Access::REMOTE_READ => SendWr::rdma_read(1, &data, remote),
                _ => SendWr::fetch_and_add(1, &data, remote, 1),
            })?;
            let wc = setup.one(a.send_cq)?;
            let case = format!("{right:?} with {access:?}: {wc}");
            if access == right {
                check!(RULE, wc.status == WcStatus::Success, "success", "{case}");
                continue;
            }
            let seen = match wc.status {
                WcStatus::RemAccessErr => QpAccessStatus::RemAccessErr,
                WcStatus::RemInvReqErr => QpAccessStatus::RemInvReqErr,
                _ => return Err(Failure::assertion("a refusal", case)).rule(RULE),
            };
            b.expect_data_at(0, 1, 8, RULE)?;
            setup.as_declared(RULE, setup.behavior()?.qp_access_status, seen)?;
        }
    }
    Ok(())
}
