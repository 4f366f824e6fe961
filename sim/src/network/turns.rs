//! Reads of other processes are answered in turns. A peer that breaks the rules takes no more
//! memory, and does not hold up others.

use std::net::Ipv4Addr;

use verbs_api::behavior::Check;
use verbs_api::connect::{self, Endpoint};
use verbs_api::lab::PacketOpcode;
use verbs_api::{
    Access, CqInit, Gid, MrAttr, Mtu, Qp, QpInit, QpType, RcParams, RecvWr, Verbs, Wc, WcStatus,
};
use verbs_roce::{Frame, Ip, Ipv4};

use super::gateway::RxSource;
use crate::fabric::Fabric;
use crate::packet::payload::Payload;
use crate::packet::{AtomicEth, AtomicOp, Op, Packet, PortId, Psn, Reth, Route};
use crate::{Mode, Network, Sim, SimConfig};

const TO: PortId = PortId { node: 0, port: 1 };
const MTU: u32 = 256;
/// Packets of a read that leave in one turn, at most.
const BURST: usize = 64;
/// Packets of the long read.
const LONG: usize = 1000;
const DEPTH: u8 = 4;

/// A target with fictitious peers.
struct Answerer {
    sim: Sim,
    mem: MrAttr,
    cq: verbs_api::Cq,
    pd: verbs_api::Pd,
    gid: Gid,
}

/// A connection with a fictitious peer.
struct Connection {
    qp: Qp,
    qp_num: u32,
    /// The number of the peer.
    peer: u32,
    route: Route,
}

/// The receiver of an outgoing packet, its sequence number, and its opcode.
type Sent = (u32, u32, PacketOpcode);

impl Answerer {
    fn new(network: &str) -> Self {
        let mut config = SimConfig::new().nodes(1).mode(Mode::RealTime).scatter(7);
        config.behavior.unowned_gid = Check::Accepted;
        let sim = Sim::new(config.network(Network::loopback(network)));
        let context = sim.open_device("sim0").unwrap();
        let pd = sim.alloc_pd(context).unwrap();
        let access = Access::ALL_RDMA | Access::REMOTE_ATOMIC;
        let mr = sim.alloc_mr(pd, LONG * MTU as usize, access).unwrap();
        Self {
            mem: sim.query_mr(mr).unwrap(),
            cq: sim.create_cq(context, &CqInit::new(256)).unwrap(),
            pd,
            gid: sim.query_gid(context, 1, 0).unwrap(),
            sim,
        }
    }

    /// Connects a queue pair to a peer with number `peer`, at an address without an owner.
    fn link(&self, peer: u32) -> Connection {
        let init = QpInit::new(QpType::Rc, self.cq, self.cq);
        let qp = self.sim.create_qp(self.pd, &init).unwrap();
        let mut address = self.gid.ipv4().unwrap().octets();
        address[3] = 200;
        let gid = Gid(Ipv4Addr::from(address).to_ipv6_mapped().octets());
        let params = RcParams {
            path_mtu: Mtu::Mtu256,
            access: Access::ALL_RDMA | Access::REMOTE_ATOMIC,
            max_rd_atomic: DEPTH,
            psn_b: 0,
            psn_a: 0,
            ..RcParams::default()
        };
        let there = Endpoint {
            gid,
            lid: 0,
            qp_num: peer,
            psn: 0,
        };
        connect::to_endpoint(&self.sim, qp, &there, &params).unwrap();
        let list = [self.mem.sge(0, 64)];
        for wr_id in 0..8 {
            let wr = RecvWr::new(wr_id, &list);
            self.sim.post_recv(qp, &[wr]).unwrap();
        }
        Connection {
            qp,
            qp_num: self.sim.qp_num(qp).unwrap(),
            peer,
            route: Route {
                from: PortId::OUTSIDE,
                to: Some(TO),
                sgid: gid,
                dgid: self.gid,
                global: true,
                ..Route::default()
            },
        }
    }

    /// The RETH of a request for `packets` packets from packet `first` on.
    fn reth(&self, first: usize, packets: usize) -> Reth {
        Reth {
            va: self.mem.addr + first as u64 * u64::from(MTU),
            rkey: self.mem.rkey,
            length: packets as u32 * MTU,
        }
    }
}

impl Connection {
    fn packet(&self, psn: usize, op: Op) -> Packet {
        Packet {
            route: self.route,
            op,
            first: true,
            last: true,
            src_qpn: self.peer,
            dest_qpn: self.qp_num,
            psn: Psn::new(psn as u32),
            span: 1,
            pkey: 0xffff,
            ack_req: true,
            ..Packet::default()
        }
    }

    fn send(&self, psn: usize) -> Packet {
        let payload = Payload::inline([1; 8][..].into());
        Packet {
            payload,
            ..self.packet(psn, Op::Send)
        }
    }

    fn read(&self, psn: usize, reth: Reth) -> Packet {
        self.packet(psn, Op::ReadRequest(reth))
    }

    fn add(&self, psn: usize, Reth { va: addr, rkey, .. }: Reth) -> Packet {
        let op = AtomicOp::FetchAndAdd { add: 1 };
        self.packet(psn, Op::AtomicRequest(AtomicEth { addr, rkey, op }))
    }
}

/// Takes in packets that arrive in one train.
fn arrive(fabric: &mut Fabric, train: Vec<Packet>) -> Vec<Sent> {
    fabric.let_arrive(RxSource::Port(TO), |fabric| {
        train.into_iter().for_each(|packet| fabric.pass(packet));
    });
    take_sent(fabric)
}

/// Gives one queue pair its turn.
fn turn(fabric: &mut Fabric) -> Option<Vec<Sent>> {
    let has_turns = !fabric.gateway.as_ref().unwrap().turns.is_empty();
    fabric.send_turn();
    has_turns.then(|| take_sent(fabric))
}

/// Gives turns until none is wanted.
fn turns(fabric: &mut Fabric) -> Vec<Sent> {
    let mut all = Vec::new();
    while let Some(sent) = turn(fabric) {
        assert!(sent.len() <= BURST + 8, "{} in one turn", sent.len());
        all.extend(sent);
    }
    all
}

/// The pending output, which counts as sent.
fn take_sent(fabric: &mut Fabric) -> Vec<Sent> {
    let gateway = fabric.gateway.as_mut().unwrap();
    let mut all = Vec::new();
    if let Some(outgoing) = gateway.take_all() {
        for (_, train) in outgoing.trains() {
            for bytes in train.bytes.chunks(train.segment) {
                let any = Ipv4::new(Ipv4Addr::LOCALHOST, Ipv4Addr::LOCALHOST);
                let came = Frame::read_udp(Ip::from(any), 4791, bytes).unwrap();
                let bth = came.frame().bth;
                all.push((bth.dest_qpn, bth.psn, bth.opcode));
            }
        }
        assert!(gateway.sent(outgoing, true).is_none());
    }
    all
}

fn numbers(sent: &[Sent], of: &Connection) -> Vec<u32> {
    let own = sent.iter().filter(|(to, ..)| *to == of.peer);
    own.map(|(_, psn, _)| *psn).collect()
}

/// A train of sixty requests for one long read never makes more than a turn's packets pending. The
/// read is answered once, and messages of another queue pair are acknowledged in between.
#[test]
fn a_train_of_requests_for_a_long_read_takes_little_memory_and_holds_up_no_other() {
    let target = Answerer::new("turns_train");
    let (greedy, other) = (target.link(77), target.link(78));
    target.sim.runtime.with(|fabric| {
        let read = greedy.read(0, target.reth(0, LONG));
        let first = arrive(fabric, vec![read; 60]);
        assert_eq!(first.len(), BURST);
        let mut all = first;
        for psn in 0..4 {
            let acknowledged = arrive(fabric, vec![other.send(psn)]);
            assert_eq!(
                acknowledged,
                [(other.peer, psn as u32, PacketOpcode::RcAcknowledge)]
            );
            let more = turn(fabric).unwrap();
            assert_eq!(more.len(), BURST);
            all.extend(more);
        }
        all.extend(turns(fabric));
        // The packets of the first turn leave twice, since each repeated request starts over.
        let expected: Vec<_> = (0..LONG as u32).collect();
        assert_eq!(numbers(&all, &greedy)[BURST..], expected);
    });
    let mut done = [Wc::default(); 8];
    assert_eq!(target.sim.poll_cq(target.cq, &mut done).unwrap(), 4);
    assert!(done[..4].iter().all(|wc| wc.status == WcStatus::Success));
}

/// TMR-08, ATOM-09: answers leave in the order of the requests, whatever follows a long read and
/// however often it is repeated.
#[test]
fn answers_leave_in_order_behind_a_long_read() {
    let target = Answerer::new("turns_order");
    let link = target.link(77);
    target.sim.runtime.with(|fabric| {
        let train = vec![
            link.read(0, target.reth(0, LONG)),
            link.send(LONG),
            link.add(LONG + 1, target.reth(0, 1)),
            link.read(LONG + 2, target.reth(3, 100)),
            link.send(LONG + 102),
        ];
        let mut all = arrive(fabric, train);
        assert_eq!(all.len(), BURST);
        all.extend(turns(fabric));
        let expected: Vec<_> = (0..LONG as u32 + 103).collect();
        assert_eq!(numbers(&all, &link), expected);
        let of = |psn: usize| all[psn].2;
        assert_eq!(of(LONG), PacketOpcode::RcAcknowledge);
        assert_eq!(of(LONG + 1), PacketOpcode::RcAtomicAcknowledge);
        assert_eq!(of(LONG + 2), PacketOpcode::RcReadResponseFirst);
        // Ask for a part of each again.
        let train = vec![
            link.read(900, target.reth(900, 100)),
            link.add(LONG + 1, target.reth(0, 1)),
            link.read(LONG + 52, target.reth(53, 50)),
        ];
        let mut again = arrive(fabric, train);
        again.extend(turns(fabric));
        let expected: Vec<_> = (900..LONG as u32)
            .chain([LONG as u32 + 1])
            .chain(LONG as u32 + 52..LONG as u32 + 102)
            .collect();
        assert_eq!(numbers(&again, &link), expected);
    });
}

/// RDMA-23: a repeated request is answered only if it is part of one of the last
/// `max_dest_rd_atomic` reads.
#[test]
fn a_duplicate_that_is_not_part_of_a_read_is_dropped() {
    let target = Answerer::new("turns_duplicates");
    let link = target.link(77);
    target.sim.runtime.with(|fabric| {
        arrive(fabric, vec![link.read(0, target.reth(10, 4))]);
        let other_key = Reth {
            rkey: target.mem.rkey ^ 1,
            ..target.reth(10, 4)
        };
        for (psn, reth) in [
            (0, target.reth(9, 4)),
            (0, target.reth(10, 5)),
            (2, target.reth(10, 4)),
            (0, other_key),
        ] {
            assert_eq!(arrive(fabric, vec![link.read(psn, reth)]), []);
        }
        for newer in 0..DEPTH.into() {
            let again = arrive(fabric, vec![link.read(1, target.reth(11, 3))]);
            assert_eq!(numbers(&again, &link), [1, 2, 3], "{newer} newer");
            arrive(fabric, vec![link.read(4 + newer, target.reth(0, 1))]);
        }
        let again = arrive(fabric, vec![link.read(1, target.reth(11, 3))]);
        assert_eq!(again, [], "as many are newer as there are resources");
    });
}

/// At most 64 requests wait behind a read. The others count as lost, and a NAK reports it.
#[test]
fn few_requests_wait_behind_a_read() {
    const WAITING: usize = 64;
    let target = Answerer::new("turns_waiting");
    let link = target.link(77);
    target.sim.runtime.with(|fabric| {
        let mut all = arrive(fabric, vec![link.read(0, target.reth(0, LONG))]);
        let reth = |_| target.reth(0, 1);
        let train: Vec<_> = (0..200).map(|at| link.read(LONG + at, reth(at))).collect();
        for train in train.chunks(50) {
            assert_eq!(arrive(fabric, train.to_vec()), []);
        }
        all.extend(turns(fabric));
        assert_eq!(all.len(), LONG + WAITING);
        let next = arrive(fabric, vec![link.read(LONG + 200, reth(0))]);
        let nak = (LONG + WAITING) as u32;
        assert_eq!(next, [(link.peer, nak, PacketOpcode::RcAcknowledge)]);
    });
    // The rest of a read ends with the connection.
    target.sim.runtime.with(|fabric| {
        let psn = LONG + WAITING;
        arrive(fabric, vec![link.read(psn, target.reth(0, 100))]);
        assert!(!fabric.gateway.as_ref().unwrap().turns.is_empty());
    });
    target
        .sim
        .destroy_qp(link.qp, verbs_api::Wait::Poll)
        .unwrap();
    target.sim.runtime.with(|fabric| {
        assert_eq!(turns(fabric), []);
    });
}
