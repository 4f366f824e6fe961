//! Simulations that reach each other by UDP, like processes of one machine. Each test has its own
//! network.
#![cfg(feature = "network")]

mod ending;
mod extensions;
mod infiniband;
mod late_ack;
mod long_reads;
mod resolution;
mod slow_peers;
mod versions;

use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::time::{Duration, Instant};

use verbs_api::connect::{self, Endpoint};
use verbs_api::lab::{Fault, Lab, PacketFilter, When};
use verbs_api::{
    Access, AhAttr, Arm, CompChannel, Context, Cq, CqInit, ErrorKind, Gid, Mr, MrAttr, Mtu, Pd, Qp,
    QpAttrMask, QpCap, QpInit, QpModify, QpState, QpType, RcParams, RecvWr, Remote, SendOp, SendWr,
    Verbs, Wait, Wc, WcStatus, XrcdInit,
};
use verbs_sim::{Mode, Network, Sim, SimConfig};

/// The time after which a test reports a hang.
const WATCH: Duration = Duration::from_secs(60);
const QKEY: u32 = 0x1111;
const ACCESS: Access = Access::ALL_RDMA.union(Access::REMOTE_ATOMIC);

/// A simulation with one device, as a process has it.
struct Process {
    sim: Sim,
    context: Context,
    pd: Pd,
    mr: Mr,
    mem: MrAttr,
    channel: CompChannel,
    cq: Cq,
}

fn config(network: &str) -> SimConfig {
    let config = SimConfig::new().nodes(1).mode(Mode::RealTime);
    config.network(Network::loopback(network))
}

/// A configuration with an address that others may share.
fn at(address: [u8; 4], seed: u64) -> SimConfig {
    let config = SimConfig::new().nodes(1).mode(Mode::RealTime).scatter(seed);
    config.network(Network::addresses(&[address.into()]))
}

/// Two processes of one network, whose numbers differ.
fn two(network: &str, bytes: usize) -> [Process; 2] {
    [1, 2].map(|seed| Process::start(config(network).scatter(seed), bytes))
}

fn params() -> RcParams {
    RcParams {
        path_mtu: Mtu::Mtu4096,
        access: ACCESS,
        max_rd_atomic: 4,
        min_rnr_timer: 1,
        ..RcParams::default()
    }
}

impl Process {
    fn start(config: SimConfig, bytes: usize) -> Self {
        let sim = Sim::new(config);
        let context = sim.open_device("sim0").unwrap();
        let pd = sim.alloc_pd(context).unwrap();
        let mr = sim.alloc_mr(pd, bytes, ACCESS).unwrap();
        let channel = sim.create_comp_channel(context).unwrap();
        let init = CqInit::new(1024).channel(channel);
        Self {
            context,
            pd,
            mr,
            mem: sim.query_mr(mr).unwrap(),
            channel,
            cq: sim.create_cq(context, &init).unwrap(),
            sim,
        }
    }

    fn address(&self) -> Ipv4Addr {
        self.gid().ipv4().unwrap()
    }

    fn gid(&self) -> Gid {
        self.sim.query_gid(self.context, 1, 0).unwrap()
    }

    fn qp(&self, qp_type: QpType) -> Qp {
        let cap = QpCap {
            max_send_wr: 256,
            max_recv_wr: 256,
            ..QpCap::default()
        };
        let init = QpInit::new(qp_type, self.cq, self.cq).cap(cap);
        self.sim.create_qp(self.pd, &init).unwrap()
    }

    fn endpoint(&self, qp: Qp, params: &RcParams) -> Endpoint {
        connect::endpoint(&self.sim, qp, params).unwrap()
    }

    fn post(&self, qp: Qp, wr_id: u64, (offset, length): (u64, u32), op: SendOp) {
        let list = [self.mem.sge(offset, length)];
        let wr = SendWr::new(wr_id, op, &list);
        self.sim.post_send(qp, &[wr]).unwrap();
    }

    fn receive(&self, qp: Qp, wr_id: u64, offset: u64, length: u32) {
        let list = [self.mem.sge(offset, length)];
        self.sim
            .post_recv(qp, &[RecvWr::new(wr_id, &list)])
            .unwrap();
    }

    /// Polls the next `count` completions.
    fn polled(&self, count: usize) -> Vec<Wc> {
        let (start, mut all) = (Instant::now(), Vec::new());
        while all.len() < count {
            let mut some = [Wc::default(); 16];
            let most = some.len().min(count - all.len());
            let found = self.sim.poll_cq(self.cq, &mut some[..most]).unwrap();
            all.extend_from_slice(&some[..found]);
            assert!(start.elapsed() < WATCH, "no completion comes");
        }
        all
    }

    /// Waits for the next completion.
    fn awaited(&self) -> Wc {
        loop {
            self.sim.req_notify_cq(self.cq, Arm::NEXT).unwrap();
            let mut one = [Wc::default()];
            if self.sim.poll_cq(self.cq, &mut one).unwrap() == 1 {
                return one[0];
            }
            let event = self
                .sim
                .get_cq_event(self.channel, Wait::For(WATCH))
                .unwrap();
            self.sim.ack_cq_events(event.cq, 1).unwrap();
        }
    }

    fn fill(&self, offset: usize, bytes: &[u8]) {
        self.sim.write_mr(self.mr, offset, bytes).unwrap();
    }

    fn bytes(&self, offset: usize, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        self.sim.read_mr(self.mr, offset, &mut bytes).unwrap();
        bytes
    }

    fn state(&self, qp: Qp) -> QpState {
        self.sim
            .query_qp(qp, QpAttrMask::STATE)
            .unwrap()
            .attr
            .qp_state
    }
}

/// A queue pair of each process, connected with the other.
fn connected([a, b]: [&Process; 2], qp_type: QpType, params: &RcParams) -> [Qp; 2] {
    let qps = [a.qp(qp_type), b.qp(qp_type)];
    let ends = [a.endpoint(qps[0], params), b.endpoint(qps[1], params)];
    connect::to_endpoint(&a.sim, qps[0], &ends[1], params).unwrap();
    connect::to_endpoint(&b.sim, qps[1], &ends[0], params).unwrap();
    qps
}

/// Bytes that differ from place to place.
fn pattern(length: usize) -> Vec<u8> {
    (0..length)
        .map(|at| (at ^ at >> 8 ^ at >> 16) as u8)
        .collect()
}

#[track_caller]
fn assert_done(all: &[Wc]) {
    let failed: Vec<_> = all
        .iter()
        .filter(|wc| wc.status != WcStatus::Success)
        .collect();
    assert!(failed.is_empty(), "{failed:?}");
}

/// ADDR: GID 0 is the address; GID 1 is link-local, and leads to the same port.
#[test]
fn messages_reach_another_process_by_either_gid() {
    let [a, b] = two("either_gid", 4096);
    assert_ne!(a.address(), b.address());
    for sgid_index in [0, 1] {
        let params = RcParams {
            sgid_index,
            ..params()
        };
        let [from, to] = connected([&a, &b], QpType::Rc, &params);
        b.receive(to, 7, 0, 100);
        a.fill(0, &pattern(100));
        a.post(from, 1, (0, 100), SendOp::Send);
        assert_done(&a.polled(1));
        let came = b.polled(1)[0];
        assert_eq!(
            (came.wr_id, came.byte_len, came.qp_num),
            (7, 100, b.sim.qp_num(to).unwrap())
        );
        assert_eq!(b.bytes(0, 100), pattern(100));
    }
    assert!(
        a.sim
            .query_gid(a.context, 1, 1)
            .unwrap()
            .0
            .starts_with(&[0xfe, 0x80])
    );
}

/// All operations with many packets, and atomics, of all connected transports.
#[test]
fn each_operation_works_between_processes() {
    const LONG: u32 = 1_000_001;
    for qp_type in [QpType::Rc, QpType::Uc] {
        let [a, b] = two("each_operation", 2 << 20);
        let [from, to] = connected([&a, &b], qp_type, &params());
        a.fill(0, &pattern(LONG as usize));
        let imm_data = [1, 2, 3, 4];
        let remote = b.mem.remote(0);
        b.receive(to, 1, 0, 0);
        a.post(
            from,
            2,
            (0, LONG),
            SendOp::RdmaWriteWithImm { remote, imm_data },
        );
        assert_done(&a.polled(1));
        let came = b.polled(1)[0];
        assert_eq!((came.byte_len, came.imm_data), (LONG, imm_data));
        assert_eq!(b.bytes(0, LONG as usize), pattern(LONG as usize));
        if qp_type == QpType::Uc {
            continue;
        }
        // Data that another process wrote is read back at another address.
        a.post(from, 3, (1 << 20, LONG), SendOp::RdmaRead { remote });
        assert_done(&a.polled(1));
        assert_eq!(a.bytes(1 << 20, LONG as usize), pattern(LONG as usize));
        b.fill(0, &5u64.to_ne_bytes());
        a.post(from, 4, (0, 8), SendOp::FetchAndAdd { remote, add: 3 });
        a.post(
            from,
            5,
            (8, 8),
            SendOp::CompareAndSwap {
                remote,
                compare: 8,
                swap: 1,
            },
        );
        assert_done(&a.polled(2));
        let [first, second] = [0, 8].map(|at| a.bytes(at, 8));
        assert_eq!(
            (first, second),
            (5u64.to_ne_bytes().into(), 8u64.to_ne_bytes().into())
        );
        assert_eq!(b.bytes(0, 8), 1u64.to_ne_bytes());
    }
}

/// A passive target makes no call, and a sleeping thread is woken.
#[test]
fn a_thread_that_sleeps_is_woken() {
    let [a, b] = two("sleeps", 4096);
    let [from, to] = connected([&a, &b], QpType::Rc, &params());
    for round in 0..20 {
        b.receive(to, round, 0, 64);
        a.post(from, round, (0, 64), SendOp::Send);
        assert_eq!(b.awaited().wr_id, round);
        assert_done(&[a.awaited()]);
        a.post(
            from,
            round,
            (0, 64),
            SendOp::RdmaWrite {
                remote: b.mem.remote(0),
            },
        );
        assert_done(&[a.awaited()]);
    }
}

/// QP-28: each request of a read counts in `max_rd_atomic`, and a read asks for no more than this
/// process has room for.
#[test]
fn reads_of_many_packets_keep_to_what_was_agreed() {
    for max_rd_atomic in [1, 2, 16] {
        let [a, b] = two("reads", 8 << 20);
        let params = RcParams {
            max_rd_atomic,
            ..params()
        };
        let [from, _to] = connected([&a, &b], QpType::Rc, &params);
        b.fill(0, &pattern(3 << 20));
        for part in 0..3u64 {
            let length = 1 << 20;
            let remote = Remote {
                addr: b.mem.addr + part * length,
                rkey: b.mem.rkey,
            };
            a.post(
                from,
                part,
                (part * length, length as u32),
                SendOp::RdmaRead { remote },
            );
            a.post(
                from,
                part,
                (4 << 20, 8),
                SendOp::FetchAndAdd {
                    remote: b.mem.remote(7 << 20),
                    add: 1,
                },
            );
        }
        assert_done(&a.polled(6));
        assert!(
            a.bytes(0, 3 << 20) == pattern(3 << 20),
            "max_rd_atomic {max_rd_atomic}"
        );
        assert_eq!(b.bytes(7 << 20, 8), 3u64.to_ne_bytes());
    }
}

/// TMR-03: packets are lost, damaged, repeated or late in both directions. Each message arrives
/// once, in order.
#[test]
fn each_message_arrives_once_and_in_order_whatever_is_lost() {
    const MESSAGES: u64 = 200;
    let [a, b] = two("loss", 1 << 20);
    let [from, to] = connected([&a, &b], QpType::Rc, &params());
    for process in [&a, &b] {
        for fault in [
            Fault::drop(PacketFilter::default()),
            Fault::corrupt(PacketFilter::default()),
            Fault::duplicate(PacketFilter::default(), Duration::from_micros(100)),
            Fault::reorder(PacketFilter::default(), 2),
        ] {
            process
                .sim
                .inject(fault.at(When::PerMillion(10_000)))
                .unwrap();
        }
    }
    for message in 0..MESSAGES {
        b.receive(to, message, 4096 * message, 4096);
    }
    for message in 0..MESSAGES {
        a.fill(4096 * message as usize, &[message as u8; 4096]);
        a.post(
            from,
            message,
            (4096 * message, 1 + message as u32),
            SendOp::Send,
        );
    }
    let came = b.polled(MESSAGES as usize);
    let expected: Vec<_> = (0..MESSAGES)
        .map(|message| (message, 1 + message as u32))
        .collect();
    let completed: Vec<_> = came.iter().map(|wc| (wc.wr_id, wc.byte_len)).collect();
    assert_eq!(completed, expected);
    assert_done(&came);
    assert_done(&a.polled(MESSAGES as usize));
    for message in 0..MESSAGES as usize {
        assert_eq!(
            b.bytes(4096 * message, 1 + message),
            vec![message as u8; 1 + message]
        );
    }
    // Reads, whose answers are lost, too.
    a.post(
        from,
        1,
        (0, 100_000),
        SendOp::RdmaRead {
            remote: b.mem.remote(0),
        },
    );
    assert_done(&a.polled(1));
    assert_eq!(a.bytes(0, 100_000), b.bytes(0, 100_000));
}

/// UD-02, UD-21, MCAST-04: datagrams carry the network header, and groups have members in several
/// processes.
#[test]
fn datagrams_reach_a_process_and_a_group_reaches_all() {
    let apart = [1, 2, 3].map(|seed| config("datagrams").scatter(seed));
    datagrams_and_groups(apart.map(|config| Process::start(config, 4096)));
    datagrams_and_groups([1, 2, 3].map(|seed| Process::start(at([127, 78, 1, 3], seed), 4096)));
}

fn datagrams_and_groups(processes: [Process; 3]) {
    let mgid = Gid([0xff, 0x0e, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 0, 9]);
    let [a, b, c] = &processes;
    let qps = [a, b, c].map(|process| {
        let qp = process.qp(QpType::Ud);
        connect::ud_to_rts(&process.sim, qp, 1, QKEY).unwrap();
        process.receive(qp, 1, 512, 140);
        qp
    });
    let attr = AhAttr::global(1, 0, b.gid());
    let ah = a.sim.create_ah(a.pd, &attr).unwrap();
    let list = [a.mem.sge(0, 100)];
    let number = b.sim.qp_num(qps[1]).unwrap();
    let to_b = SendWr::send(1, &list).to(ah, number, QKEY);
    a.fill(0, &pattern(100));
    a.sim.post_send(qps[0], &[to_b]).unwrap();
    assert_done(&a.polled(1));
    let came = b.polled(1)[0];
    assert_eq!(
        (came.byte_len, came.src_qp),
        (140, a.sim.qp_num(qps[0]).unwrap())
    );
    let header = b.bytes(512, 40);
    assert_eq!(header[32..36], a.address().octets());
    assert_eq!(header[36..40], b.address().octets());
    assert_eq!(b.bytes(552, 100), pattern(100));

    for (process, qp) in processes.iter().zip(qps) {
        process.sim.attach_mcast(qp, mgid, 0).unwrap();
        process.receive(qp, 2, 1024, 140);
    }
    let ah = a.sim.create_ah(a.pd, &AhAttr::global(1, 0, mgid)).unwrap();
    let to_all = SendWr::send(2, &list).to(ah, verbs_api::MULTICAST_QPN, QKEY);
    a.sim.post_send(qps[0], &[to_all]).unwrap();
    // The packet from the process itself arrives once, along with the send.
    assert_done(&a.polled(2));
    for process in [b, c] {
        assert_eq!(process.polled(1)[0].src_qp, a.sim.qp_num(qps[0]).unwrap());
    }
    b.sim.detach_mcast(qps[1], mgid, 0).unwrap();
    b.receive(qps[1], 3, 2048, 140);
    c.receive(qps[2], 3, 2048, 140);
    a.sim.post_send(qps[0], &[to_all]).unwrap();
    assert_eq!(c.polled(1)[0].wr_id, 2);
    assert_eq!(b.sim.poll_cq(b.cq, &mut [Wc::default()]).unwrap(), 0);
}

/// A process that refuses a request of another one reports the reason, and no consequences.
#[test]
fn who_refuses_a_request_of_another_process_says_why() {
    let [a, b] = two("refuses", 4096);
    let here = b.mem.remote(0);
    let far = b.mem.remote(4000);
    let own = params();
    let mut cut = own;
    cut.path_mtu = Mtu::Mtu1024;
    let cases = [
        (own, 0, Remote { rkey: 1, ..here }, "VS-KEY-01: a write"),
        (own, 0, far, "in mr#0, which has 4096 ("),
        (cut, 0, here, "VS-QP-04: a write"),
        (own, 5, here, "waits for another PSN first"),
    ];
    for (own, ahead, remote, _) in cases {
        let (from, to) = (a.qp(QpType::Rc), b.qp(QpType::Rc));
        let mut peer = a.endpoint(from, &own);
        peer.psn += ahead;
        connect::to_endpoint(&b.sim, to, &peer, &params()).unwrap();
        connect::to_endpoint(&a.sim, from, &b.endpoint(to, &own), &own).unwrap();
        a.post(from, 1, (0, 2048), SendOp::RdmaWrite { remote });
        a.post(from, 2, (0, 2048), SendOp::RdmaWrite { remote });
        assert_ne!(a.polled(2)[0].status, WcStatus::Success);
    }
    let (start, said) = (Instant::now(), || b.sim.diagnose().to_string());
    // It may read the received packets later.
    while !cases.iter().all(|case| said().contains(case.3)) {
        assert!(start.elapsed() < WATCH, "{}", said());
    }
    assert!(!said().contains("not ready"), "{}", said());
}

/// A QP accepts packets of its peer only. Datagrams that are not packets, or damaged, are counted
/// and do no harm.
#[test]
fn strangers_and_garbage_are_refused_and_counted() {
    let [a, b] = two("strangers", 4096);
    // On a loaded machine the garbage takes longer to read than the usual retries.
    let patient = RcParams {
        timeout: 20,
        ..params()
    };
    let [from, to] = connected([&a, &b], QpType::Rc, &patient);
    let stranger = Process::start(config("strangers").scatter(1), 64);
    let own = RcParams {
        timeout: 1,
        retry_cnt: 1,
        ..params()
    };
    let spoof = stranger.qp(QpType::Rc);
    let peer = b.endpoint(to, &own);
    connect::to_endpoint(&stranger.sim, spoof, &peer, &own).unwrap();
    b.receive(to, 1, 0, 64);
    stranger.post(spoof, 1, (0, 64), SendOp::Send);
    assert_eq!(stranger.polled(1)[0].status, WcStatus::RetryExcErr);
    let said = stranger.sim.diagnose().to_string();
    assert!(
        said.contains("its peer, in another process, did not answer"),
        "{said}"
    );

    let port = (b.address(), 4791);
    let near = UdpSocket::bind((Ipv4Addr::new(127, 0, 0, 1), 0)).unwrap();
    // Datagrams that are not RoCEv2, of all lengths, from another network.
    for length in 0..80 {
        near.send_to(&vec![0xa5; length], port).unwrap();
    }
    // Such datagrams from this network, and a message with an ICRC of 0.
    let part = u32::from(b.address()) & !0xfff | 0xf00;
    let bind = |host| UdpSocket::bind((Ipv4Addr::from(part | host), 0)).ok();
    let inside = (1..250).find_map(bind).unwrap();
    for length in 1..80 {
        inside.send_to(&vec![0xa5; length], port).unwrap();
    }
    let mut damaged = [0; 16];
    damaged[..4].copy_from_slice(&[4, 0, 0xff, 0xff]);
    damaged[4..8].copy_from_slice(&b.sim.qp_num(to).unwrap().to_be_bytes());
    inside.send_to(&damaged, port).unwrap();
    a.post(from, 2, (0, 64), SendOp::Send);
    assert_done(&a.polled(1));
    assert_done(&b.polled(1));
    let said = b.sim.diagnose().to_string();
    let reasons = [
        "from another fabric",
        "not a RoCEv2 packet",
        "a wrong ICRC",
        "it is not from the peer",
    ];
    for reason in reasons {
        assert!(said.contains(reason), "{reason}: {said}");
    }
}

/// ROCE-03: a notification of congestion is not answered, does no harm, and is not a mistake.
#[test]
fn notifications_of_congestion_are_ignored() {
    let [a, b] = two("congestion", 4096);
    let [from, to] = connected([&a, &b], QpType::Rc, &params());
    let part = u32::from(b.address()) & !0xfff | 0xf00;
    let bind = |host| UdpSocket::bind((Ipv4Addr::from(part | host), 4791)).ok();
    let peer = (1..250).find_map(bind).unwrap();
    peer.set_nonblocking(true).unwrap();
    // BTH, 16 reserved bytes and the ICRC.
    let mut notification = [0; 32];
    notification[..4].copy_from_slice(&[0x81, 0, 0xff, 0xff]);
    notification[4..8].copy_from_slice(&b.sim.qp_num(to).unwrap().to_be_bytes());
    let before = b.sim.diagnose().to_string();
    b.receive(to, 1, 0, 64);
    for _ in 0..10 {
        let sent = peer.send_to(&notification, (b.address(), 4791));
        assert_eq!(sent.unwrap(), notification.len());
    }
    a.post(from, 2, (0, 64), SendOp::Send);
    assert_done(&a.polled(1));
    assert_done(&b.polled(1));
    let answer = peer.recv(&mut [0; 64]).unwrap_err();
    assert_eq!(answer.kind(), std::io::ErrorKind::WouldBlock);
    assert_eq!(b.sim.diagnose().to_string(), before);
}

/// Sockets are polled as long as a queue pair may receive packets, and no longer.
#[test]
fn a_process_looks_while_something_may_come() {
    let [a, b] = two("looks", 64);
    let looks = || a.sim.look_for_packets(&mut 0);
    assert!(!looks());
    let far = b.endpoint(b.qp(QpType::Rc), &params());
    let xrcd = a.sim.open_xrcd(a.context, &XrcdInit::private()).unwrap();
    let own = [
        a.qp(QpType::Rc),
        a.qp(QpType::Uc),
        a.sim.create_xrc_recv_qp(xrcd).unwrap(),
    ];
    for qp in own {
        connect::to_endpoint(&a.sim, qp, &far, &params()).unwrap();
        assert!(looks());
        a.sim.destroy_qp(qp, Wait::Poll).unwrap();
        assert!(!looks());
    }
    let datagrams = a.qp(QpType::Ud);
    connect::ud_to_rts(&a.sim, datagrams, 1, QKEY).unwrap();
    assert!(looks());
    let error = QpModify::to(QpState::Err);
    a.sim.modify_qp(datagrams, &error.attr, error.mask).unwrap();
    assert!(!looks());
}

/// A message that has completed at the receiver is acknowledged, although its device is closed
/// immediately after.
#[test]
fn a_device_that_goes_has_acknowledged_what_it_got() {
    for _ in 0..50 {
        let [a, b] = two("goes", 64);
        let [from, to] = connected([&a, &b], QpType::Rc, &params());
        b.receive(to, 1, 0, 8);
        a.post(from, 2, (0, 8), SendOp::Send);
        b.polled(1);
        drop(b);
        assert_done(&a.polled(1));
    }
}

/// TMR-01: a peer that has ended is noticed after all retries. A new process with its address is
/// another peer.
#[test]
fn a_peer_that_is_gone_is_noticed() {
    let [a, b] = two("gone", 4096);
    let own = RcParams {
        timeout: 8,
        retry_cnt: 2,
        ..params()
    };
    let [from, _] = connected([&a, &b], QpType::Rc, &own);
    let address = b.address();
    drop(b);
    let again = Process::start(config("gone").scatter(77), 4096);
    assert_eq!(again.address(), address, "the first address that is free");
    let other = again.qp(QpType::Ud);
    connect::ud_to_rts(&again.sim, other, 1, QKEY).unwrap();
    a.post(from, 1, (0, 64), SendOp::Send);
    assert_eq!(a.polled(1)[0].status, WcStatus::RetryExcErr);
    assert_eq!(a.state(from), QpState::Err);
}

/// On a network two devices of a process reach each other without packets: their sends are done
/// when they have been posted, and nothing is read from a socket.
#[test]
fn queue_pairs_of_one_process_keep_their_way() {
    let process = Process::start(config("own_way").nodes(2), 4096);
    let qps = [process.qp(QpType::Rc), process.qp(QpType::Rc)];
    connect::by_attributes(&process.sim, qps[0], qps[1], &params()).unwrap();
    process.receive(qps[1], 1, 0, 64);
    process.post(qps[0], 2, (64, 64), SendOp::Send);
    let mut done = [Wc::default(); 3];
    assert_eq!(process.sim.poll_cq(process.cq, &mut done).unwrap(), 2);
}

/// A QP that was reset no longer listens, and a message to it is not answered. The next connection
/// works.
#[test]
fn a_queue_pair_is_connected_again() {
    let [a, b] = two("again", 4096);
    let [from, to] = connected([&a, &b], QpType::Rc, &params());
    for round in 0..3 {
        let reset = QpModify::to(QpState::Reset);
        a.sim.modify_qp(from, &reset.attr, reset.mask).unwrap();
        b.sim.modify_qp(to, &reset.attr, reset.mask).unwrap();
        let ends = [a.endpoint(from, &params()), b.endpoint(to, &params())];
        connect::to_endpoint(&a.sim, from, &ends[1], &params()).unwrap();
        connect::to_endpoint(&b.sim, to, &ends[0], &params()).unwrap();
        b.receive(to, round, 0, 64);
        a.post(from, round, (0, 64), SendOp::Send);
        assert_done(&a.polled(1));
        assert_done(&b.polled(1));
    }
}

/// Processes that share an address are distinguished by their QP numbers, regardless of which
/// process reads a packet, and after one has ended.
#[test]
fn processes_on_one_address_reach_each_other_and_others_reach_them() {
    let exchange = |from: &Process, to: &Process| {
        let [qp, peer] = connected([from, to], QpType::Rc, &params());
        for (round, text) in [(0, b"one"), (1, b"two")] {
            from.fill(0, text);
            to.receive(peer, round, 8, 8);
            from.post(qp, round, (0, 3), SendOp::Send);
            assert_done(&from.polled(1));
            assert_eq!(to.polled(1)[0].wr_id, round);
            assert_eq!(to.bytes(8, 3), text);
        }
    };
    let mut shared: Vec<_> = (1..=4)
        .map(|seed| Process::start(at([127, 78, 1, 1], seed), 4096))
        .collect();
    let other = Process::start(at([127, 78, 1, 2], 9), 4096);
    let mut idle = Vec::new();
    while shared.len() > 1 {
        for (i, from) in shared.iter().enumerate() {
            assert_eq!(from.address(), shared[0].address());
            exchange(from, &other);
            exchange(&other, from);
            exchange(from, &shared[(i + 1) % shared.len()]);
        }
        // The remaining processes keep their numbers, and others take their places among the
        // sockets, including one that expects no packets.
        shared.remove(0);
        idle.push(Process::start(at([127, 78, 1, 1], 10), 64));
    }
}

/// `--fabric ADDRESS`, with an IPv6 address, too.
#[test]
fn a_port_has_the_address_that_is_given() {
    let given = [
        IpAddr::from([127, 250, 1, 1]),
        IpAddr::from([127, 250, 1, 2]),
    ];
    let config = SimConfig::new().nodes(1).mode(Mode::RealTime);
    let [a, b] =
        given.map(|own| Process::start(config.clone().network(Network::addresses(&[own])), 4096));
    assert_eq!(
        [a.address(), b.address()],
        given.map(|own| match own {
            IpAddr::V4(own) => own,
            IpAddr::V6(_) => unreachable!("of IPv4"),
        })
    );
    let [from, to] = connected([&a, &b], QpType::Rc, &params());
    b.receive(to, 1, 0, 64);
    a.post(from, 1, (0, 64), SendOp::Send);
    assert_done(&a.polled(1));
    assert_done(&b.polled(1));
    let taken = IpAddr::from([127, 250, 1, 3]);
    let _holder = UdpSocket::bind((taken, 4791)).unwrap();
    let refused = Sim::new(config.clone().network(Network::addresses(&[taken])));
    let error = refused.open_device("sim0").unwrap_err().to_string();
    assert!(error.contains("127.250.1.3 is taken by process"), "{error}");
    let v6 = [IpAddr::from([0, 0, 0, 0, 0, 0, 0, 1])];
    if Network::addresses(&v6).check().is_ok() {
        let own = Process::start(config.network(Network::addresses(&v6)), 64);
        assert_eq!(own.gid().0[15], 1);
        // There is no link-local address to send from.
        let attr = AhAttr::global(1, 1, own.gid());
        assert_eq!(
            own.sim.create_ah(own.pd, &attr).unwrap_err().kind(),
            ErrorKind::Invalid
        );
    }
}

#[test]
fn a_process_of_a_network_is_a_host_that_only_its_end_crashes() {
    let sim = Sim::new(config("host"));
    for refused in [sim.host("sim0").map(drop), sim.crash("sim0")] {
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::NotSupported);
    }
}
