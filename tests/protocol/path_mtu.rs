//! Path MTUs that differ: a message is judged the same however it travels.

use crate::common::{End, drain, settle};
use crate::link::statuses;
use verbs_api::lab::Lab;
use verbs_api::profile::Profile;
use verbs_api::{Mtu, QpState, QpType, RcParams, SendOp, SendWr, Verbs, Wait, WcStatus, connect};
use verbs_sim::{Mode, Sim, SimConfig};

const MTUS: [Mtu; 3] = [Mtu::Mtu256, Mtu::Mtu1024, Mtu::Mtu4096];
const LENGTHS: [u32; 6] = [0, 256, 257, 1024, 1025, 5000];

/// What is done, at the same places of both regions.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Send,
    Write,
    Read,
}

/// The outcome: statuses of sender and receiver, states of both, and whether the bytes arrived.
type Outcome = (Vec<WcStatus>, Vec<WcStatus>, [QpState; 2], bool);

/// RQ-14, UC-10, RDMA-28: packet by packet in stepped mode, as a whole message in inline mode, and
/// packet by packet there too when a tap sees them. A message that fits into one packet of both
/// ends arrives, and a longer one is refused, except for those that soft-RoCE accepts, as measured
/// on Linux 6.1.
#[test]
fn messages_cut_for_another_path_mtu_are_judged_the_same_in_any_mode() {
    let kinds = [Kind::Send, Kind::Write, Kind::Read];
    for profile in [Profile::SPEC, Profile::RXE] {
        for (qp_type, kind) in kinds
            .map(|kind| (QpType::Rc, kind))
            .into_iter()
            .chain([(QpType::Uc, Kind::Send), (QpType::Uc, Kind::Write)])
        {
            for (of_near, of_far) in MTUS.iter().flat_map(|a| MTUS.map(|b| (*a, b))) {
                for length in LENGTHS {
                    let case = format!(
                        "{profile}, {qp_type} {kind:?}, {of_near:?} to {of_far:?}, {length} bytes"
                    );
                    let ways = [
                        (Mode::Stepped, false),
                        (Mode::Inline, false),
                        (Mode::Inline, true),
                    ];
                    let [first, rest @ ..] = ways.map(|(mode, tapped)| {
                        let config = SimConfig::new().profile(profile).mode(mode);
                        run(config, tapped, (qp_type, kind), [of_near, of_far], length)
                    });
                    for other in rest {
                        assert_eq!(other, first, "{case}");
                    }
                    assert_eq!(
                        first,
                        expected(profile, (qp_type, kind), [of_near, of_far], length),
                        "{case}"
                    );
                }
            }
        }
    }
}

fn expected(
    profile: Profile,
    (qp_type, kind): (QpType, Kind),
    mtus: [Mtu; 2],
    length: u32,
) -> Outcome {
    use QpState::{Err, Rts};
    use WcStatus::{LocLenErr, RemInvReqErr, RetryExcErr, Success, WrFlushErr};
    let [of_near, of_far] = mtus.map(|mtu| mtu.bytes().unwrap());
    let received = vec![Success; usize::from(kind == Kind::Send)];
    let is_taken = of_near == of_far
        || length <= of_near.min(of_far)
        || match (profile, kind) {
            (Profile::RXE, Kind::Send) => true,
            (Profile::RXE, Kind::Read) => of_near < of_far,
            _ => false,
        };
    match (qp_type, kind) {
        _ if is_taken => (vec![Success], received, [Rts, Rts], true),
        (QpType::Uc, _) => (vec![Success], vec![], [Rts, Rts], false),
        (_, Kind::Read) => {
            let status = if profile == Profile::RXE {
                RetryExcErr
            } else {
                LocLenErr
            };
            (vec![status], vec![], [Err, Rts], false)
        }
        _ => (vec![RemInvReqErr], vec![WrFlushErr], [Err, Err], false),
    }
}

fn run(
    config: SimConfig,
    tapped: bool,
    (qp_type, kind): (QpType, Kind),
    mtus: [Mtu; 2],
    length: u32,
) -> Outcome {
    let verbs = Sim::new(config);
    let ends = ["sim0", "sim1"].map(|name| End::open(&verbs, name, 16, 8192));
    let [near, far] = ends;
    let qps = ends.map(|end| end.qp(qp_type, 4));
    let params = mtus.map(|path_mtu| RcParams {
        path_mtu,
        timeout: 1,
        retry_cnt: 1,
        ..RcParams::default()
    });
    for (one, other) in [(0, 1), (1, 0)] {
        let peer = connect::endpoint(&verbs, qps[other], &params[other]).unwrap();
        connect::to_endpoint(&verbs, qps[one], &peer, &params[one]).unwrap();
    }
    if tapped {
        verbs.tap();
    }
    let message: Vec<_> = (0..length).map(|i| (i * 7 + 1) as u8).collect();
    let (from, to) = if kind == Kind::Read {
        (far, near)
    } else {
        (near, far)
    };
    from.write(0, &message);
    far.recv(qps[1], 1, 0, 8192);
    let remote = far.mem.remote(0);
    let op = match kind {
        Kind::Send => SendOp::Send,
        Kind::Write => SendOp::RdmaWrite { remote },
        Kind::Read => SendOp::RdmaRead { remote },
    };
    let list = [near.mem.sge(0, length)];
    near.post(qps[0], SendWr::new(2, op, &list));
    settle(&verbs);
    let [sent, received] = ends.map(|end| statuses(&drain(&verbs, end.cq)));
    let states = [near.state(qps[0]), far.state(qps[1])];
    // The receive that is still there has its bytes.
    verbs.destroy_qp(qps[1], Wait::Poll).unwrap();
    let came = to.read(0, message.len()) == message;
    (sent, received, states, came)
}
