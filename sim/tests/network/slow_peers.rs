//! Peers that read late, or never: sockets that the tests hold stand for their processes.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use verbs_api::connect;
use verbs_api::lab::{Fault, Lab, PacketFilter, When};
use verbs_api::{Qp, QpType, RcParams, SendOp, Verbs, Wc, WcStatus};
use verbs_sim::SimConfig;
use verbs_udp::Socket;

use super::{Process, config, params};

/// Less than the patience, and more than the time of each queue pair here.
const SOON: Duration = Duration::from_secs(20);

/// A queue pair, and the socket of its peer, whose process has ended.
fn towards_a_socket(a: &Process, network: &str, own: &RcParams) -> (Qp, Socket) {
    let b = Process::start(config(network).scatter(2), 64);
    let qp = a.qp(QpType::Rc);
    let peer = b.endpoint(b.qp(QpType::Rc), own);
    connect::to_endpoint(&a.sim, qp, &peer, own).unwrap();
    let address = IpAddr::from(b.address());
    drop(b);
    (qp, Socket::bind(address).unwrap())
}

/// Three tries of 4 ms.
fn own() -> RcParams {
    RcParams {
        timeout: 10,
        retry_cnt: 2,
        ..params()
    }
}

/// TMR-03: no retry is used up while the peer has not read what was sent to it. Its socket closes
/// when its process ends, and then the queue pair's own time decides.
#[test]
fn a_peer_that_does_not_read_is_waited_for_until_it_ends() {
    let network = "waited_for";
    let a = Process::start(config(network).scatter(1), 64);
    let (slow, socket) = towards_a_socket(&a, network, &own());
    a.post(slow, 1, (0, 64), SendOp::Send);
    // A peer that has ended takes several times as long to notice as the slow one without patience.
    let longer = RcParams {
        timeout: 13,
        ..own()
    };
    let (dead, closed) = towards_a_socket(&a, network, &longer);
    drop(closed);
    a.post(dead, 2, (0, 64), SendOp::Send);
    let start = Instant::now();
    let first = a.polled(1)[0];
    assert_eq!((first.wr_id, first.status), (2, WcStatus::RetryExcErr));
    drop(socket);
    let second = a.polled(1)[0];
    assert_eq!((second.wr_id, second.status), (1, WcStatus::RetryExcErr));
    assert!(start.elapsed() < SOON);
}

/// TMR-03: a peer that reads and does not answer is not slow. Its queue pair may be destroyed.
#[test]
fn a_peer_that_reads_has_the_time_of_the_queue_pair() {
    let network = "reads";
    let a = Process::start(config(network).scatter(1), 64);
    let (qp, socket) = towards_a_socket(&a, network, &own());
    a.post(qp, 1, (0, 64), SendOp::Send);
    let (start, mut buffer) = (Instant::now(), vec![0; Socket::MOST]);
    let mut done = [Wc::default()];
    while a.sim.poll_cq(a.cq, &mut done).unwrap() == 0 {
        assert!(start.elapsed() < SOON, "a peer that reads is waited for");
        socket.receive(&mut buffer).unwrap();
    }
    assert_eq!(done[0].status, WcStatus::RetryExcErr);
}

/// The time until a peer that never reads is given up.
fn until_given_up(network: &str, config: SimConfig, set_up: impl FnOnce(&Process)) -> Duration {
    let a = Process::start(config, 64);
    set_up(&a);
    let (qp, _socket) = towards_a_socket(&a, network, &own());
    let start = Instant::now();
    a.post(qp, 1, (0, 64), SendOp::Send);
    assert_eq!(a.polled(1)[0].status, WcStatus::RetryExcErr);
    start.elapsed()
}

/// The patience ends, and there is none without a setting for it or while packets are lost on
/// purpose.
#[test]
fn a_peer_that_never_reads_is_given_up_when_the_patience_ends() {
    let network = "given_up";
    let patient = |patience| config(network).scatter(1).patience(patience);
    let short = Duration::from_millis(200);
    let took = until_given_up(network, patient(short), |_| ());
    assert!((short..SOON).contains(&took), "{took:?}");
    let took = until_given_up(network, patient(Duration::ZERO), |_| ());
    assert!(took < SOON, "{took:?}");
    let never = Fault::drop(PacketFilter::default()).at(When::PerMillion(0));
    let took = until_given_up(network, config(network).scatter(1), |a| {
        a.sim.inject(never).unwrap();
    });
    assert!(took < SOON, "{took:?}");
}
