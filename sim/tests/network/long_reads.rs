//! Reads of many packets, which are answered in turns.

use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::time::{Duration, Instant};

use verbs_api::connect::{self, Endpoint};
use verbs_api::lab::{Fault, Lab, PacketFilter, PacketOpcode, When};
use verbs_api::{Gid, Mtu, QpType, RcParams, SendOp, Verbs, Wc};
use verbs_roce::{Bth, Extended, Frame, Ipv4, Operation, Reth};

use crate::{Process, WATCH, assert_done, config, connected, params, pattern, two};

/// TMR-03, TMR-08, ATOM-09, RDMA-23: long reads of several connections at a time, with sends,
/// writes and atomics between them. Packets are lost, repeated or out of order, but each message
/// arrives once and in order, with its bytes.
#[test]
fn long_reads_of_several_connections_survive_loss() {
    const LINKS: u64 = 3;
    const ROUNDS: u64 = 4;
    const LONG: u64 = 1 << 20;
    const SHORT: u64 = 1000;
    // A busy machine does not use up the retries: 0.5 s each.
    let patient = RcParams {
        timeout: 17,
        ..params()
    };
    // The data that are read; then, for each connection, the data that are written, and a number.
    let (written_at, numbers_at) = (LONG, 2 * LONG);
    let [a, b] = two("long_reads", (LINKS + 1) as usize * LONG as usize);
    b.fill(0, &pattern(LONG as usize));
    let links: Vec<_> = (0..LINKS)
        .map(|_| connected([&a, &b], QpType::Rc, &patient))
        .collect();
    for process in [&a, &b] {
        for fault in [
            Fault::drop(PacketFilter::default()),
            Fault::duplicate(PacketFilter::default(), Duration::from_micros(100)),
            Fault::reorder(PacketFilter::default(), 2),
        ] {
            let rule = fault.at(When::PerMillion(2_000));
            process.sim.inject(rule).unwrap();
        }
    }
    let each = || (0..ROUNDS).flat_map(|round| (0..LINKS).map(move |link| (round, link)));
    for (round, link) in each() {
        let [from, to] = links[link as usize];
        b.receive(to, round, numbers_at + LONG / 2, 0);
        let remote = |offset| b.mem.remote(offset);
        let slot = (round * LINKS + link) * SHORT;
        let read = SendOp::RdmaRead { remote: remote(0) };
        let write = SendOp::RdmaWrite {
            remote: remote(written_at + slot),
        };
        let add = SendOp::FetchAndAdd {
            remote: remote(numbers_at + 8 * link),
            add: 1,
        };
        a.post(from, 4 * round, (link * LONG, LONG as u32), read);
        a.post(from, 4 * round + 1, (LINKS * LONG, 0), SendOp::Send);
        let number_at = LINKS * LONG + 8 * (round * LINKS + link);
        a.post(from, 4 * round + 2, (number_at, 8), add);
        a.post(from, 4 * round + 3, (slot, SHORT as u32), write);
    }
    let done = a.polled((4 * ROUNDS * LINKS) as usize);
    assert_done(&done);
    let came = b.polled((ROUNDS * LINKS) as usize);
    assert_done(&came);
    for (link, [from, to]) in (0..).zip(&links) {
        let of = |all: &[Wc], number| {
            let own = all.iter().filter(|wc| wc.qp_num == number);
            own.map(|wc| wc.wr_id).collect::<Vec<_>>()
        };
        let in_order = |count: u64| (0..count).collect::<Vec<_>>();
        let sent = of(&done, a.sim.qp_num(*from).unwrap());
        assert_eq!(sent, in_order(4 * ROUNDS), "sends of {link}");
        let received = of(&came, b.sim.qp_num(*to).unwrap());
        assert_eq!(received, in_order(ROUNDS), "receives of {link}");
        let read = a.bytes((link * LONG) as usize, LONG as usize);
        assert!(read == pattern(LONG as usize), "bytes of {link}");
        let number = b.bytes((numbers_at + 8 * link) as usize, 8);
        assert_eq!(number, ROUNDS.to_ne_bytes(), "the number of {link}");
    }
    for (round, link) in each() {
        let number_at = LINKS * LONG + 8 * (round * LINKS + link);
        assert_eq!(a.bytes(number_at as usize, 8), round.to_ne_bytes());
    }
}

/// A peer may ask for a long read in one request, unlike this implementation. A program that makes
/// no call answers it completely, and again from the first missing packet.
#[test]
fn a_long_read_in_one_request_is_answered_without_a_call() {
    const MTU: usize = 1024;
    const BYTES: usize = 2000 * MTU;
    let target = Process::start(config("one_request").scatter(2), BYTES);
    target.fill(0, &pattern(BYTES));
    let part = u32::from(target.address()) & !0xfff | 0xe00;
    let bind = |host| UdpSocket::bind((Ipv4Addr::from(part | host), 4791)).ok();
    let socket = (1..250).find_map(bind).unwrap();
    socket
        .set_read_timeout(Some(Duration::from_millis(100)))
        .unwrap();
    let IpAddr::V4(own) = socket.local_addr().unwrap().ip() else {
        panic!("IPv4")
    };
    let peer = Endpoint {
        gid: Gid(own.to_ipv6_mapped().octets()),
        lid: 0,
        qp_num: 77,
        psn: 0,
    };
    let params = RcParams {
        path_mtu: Mtu::Mtu1024,
        ..params()
    };
    let qp = target.qp(QpType::Rc);
    connect::to_endpoint(&target.sim, qp, &peer, &params).unwrap();
    let qp_num = target.sim.qp_num(qp).unwrap();

    let (start, mut got) = (Instant::now(), Vec::new());
    let mut buffer = [0; 2048];
    while got.len() < BYTES {
        let psn = got.len() / MTU;
        let reth = Reth {
            va: target.mem.addr + got.len() as u64,
            rkey: target.mem.rkey,
            length: (BYTES - got.len()) as u32,
        };
        let extended = Extended {
            operation: Operation::Reth(reth),
            ..Extended::default()
        };
        let bth = Bth::new(PacketOpcode::RcReadRequest, qp_num, psn as u32);
        let ip = Ipv4::new(own, target.address()).into();
        let mut request = Vec::new();
        let frame = Frame::new(ip, 4791, bth, extended, &[]);
        frame.write_udp(&mut request).unwrap();
        socket.send_to(&request, (target.address(), 4791)).unwrap();
        // Packets that arrive in order. The rest is requested again once no more arrive.
        while let Ok(length) = socket.recv(&mut buffer) {
            let ip = Ipv4::new(target.address(), own).into();
            let came = Frame::read_udp(ip, 4791, &buffer[..length]).unwrap();
            let came = came.verify().unwrap();
            let expected = got.len() / MTU;
            if came.bth.psn as usize == expected {
                got.extend_from_slice(came.payload);
            }
            if got.len() == BYTES {
                break;
            }
        }
        assert!(start.elapsed() < WATCH, "{} bytes have come", got.len());
    }
    assert!(got == pattern(BYTES));
}
