//! A fabric where nothing passes from node to node but bytes of RoCEv2 (`SimConfig::wire`): what a
//! program sees is the same. And the file of all packets (`Pcap`).

mod common;

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::ops::ControlFlow;
use std::process::Command;
use std::sync::Arc;

use common::{End, pair};
use parking_lot::Mutex;
use verbs_api::lab::Lab;
use verbs_api::profile::Profile;
use verbs_api::{
    Access, AhAttr, Capabilities, Mtu, Qp, QpAttr, QpAttrMask, QpState, QpType, RcParams, Verbs,
    WcStatus, transition,
};
use verbs_explore::program::{self, Pace, Program};
use verbs_explore::{Exploration, Trial};
use verbs_faults::Plan;
use verbs_roce::{Frame, Ip};
use verbs_scenarios::report::{Entry, Run};
use verbs_sim::{Mode, Pcap, Sim, SimConfig};
use verbsim::backend::Simulator;

fn roce_profiles() -> impl Iterator<Item = Profile> {
    let all = Profile::ALL.iter().copied();
    all.filter(|profile| !profile.lacks.contains(Capabilities::IWARP_LACKS))
}

fn suite(simulator: &Simulator) -> Run {
    let scenarios: Vec<_> = verbs_scenarios::all().collect();
    verbs_scenarios::run(simulator, &scenarios, |_| ControlFlow::Continue(())).unwrap()
}

/// Each scenario ends as it does without bytes, for the same reason.
#[test]
fn every_scenario_ends_the_same_where_packets_are_bytes() {
    for profile in roce_profiles() {
        let plain = Simulator::new(profile, 0);
        let wire = Simulator {
            wire: true,
            ..plain
        };
        let [plain, wire] = [plain, wire].map(|simulator| suite(&simulator));
        let without_replay = |entry: &Entry| {
            let failure = entry.failure.as_ref();
            let failure = failure.map(|failure| (failure.expected.clone(), failure.seen.clone()));
            (entry.id, entry.outcome, failure)
        };
        for (plain, wire) in plain.scenarios.iter().zip(&wire.scenarios) {
            assert_eq!(without_replay(plain), without_replay(wire), "{profile}");
        }
    }
}

fn trial(config: SimConfig, seed: u64) -> Trial {
    let exploration = Exploration::new("program").config(config.nodes(4));
    exploration.trial(seed, &Plan::standard(), true, |world| {
        program::run(&Program::of_seed(seed, Pace::Free), &*world.verbs());
        Ok::<_, String>(())
    })
}

/// Random programs under the standard faults: the traces are equal, record by record.
#[test]
fn traces_are_the_same_where_packets_are_bytes() {
    let seeds = if cfg!(debug_assertions) { 60 } else { 1000 };
    for profile in roce_profiles() {
        for seed in 0..seeds {
            let config = SimConfig::new().profile(profile);
            let [plain, wire] = [false, true].map(|wire| trial(config.clone().wire(wire), seed));
            assert!(!plain.trace.is_empty());
            for (plain, wire) in plain.trace.iter().zip(&wire.trace) {
                assert_eq!(plain, wire, "{profile}, seed {seed}");
            }
            assert_eq!(plain, wire, "{profile}, seed {seed}");
        }
    }
}

/// A file in memory.
#[derive(Clone, Default)]
struct Memory(Arc<Mutex<Vec<u8>>>);

impl Write for Memory {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Memory {
    /// The packets of a file of little-endian words, with their times in nanoseconds.
    fn packets(&self) -> Vec<(u64, Vec<u8>)> {
        packets(&self.0.lock())
    }
}

/// The packets of a file of little-endian words, with their times in nanoseconds.
fn packets(bytes: &[u8]) -> Vec<(u64, Vec<u8>)> {
    let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    assert_eq!((word(0), word(20)), (0xa1b2_3c4d, 101));
    let (mut packets, mut at) = (Vec::new(), 24);
    while at < bytes.len() {
        let nanos = u64::from(word(at)) * 1_000_000_000 + u64::from(word(at + 4));
        let length = word(at + 8) as usize;
        assert_eq!(word(at + 8), word(at + 12));
        packets.push((nanos, bytes[at + 16..][..length].to_vec()));
        at += 16 + length;
    }
    packets
}

/// Each packet that a device sent is in the file, at the time of its record in the trace, with its
/// opcode, its numbers and a right ICRC.
#[test]
fn a_file_of_packets_has_each_that_was_sent() {
    use verbs_api::lab::TraceEvent;

    for seed in 0..20 {
        let file = Memory::default();
        let pcap = Pcap::new(file.clone()).unwrap();
        let trial = trial(SimConfig::new().pcap(pcap), seed);
        pcap.finish().unwrap();
        let mut packets = file.packets().into_iter();
        for record in &trial.trace {
            let TraceEvent::Sent(view) = &record.event else {
                continue;
            };
            let (at, packet) = packets.next().unwrap();
            let frame = Frame::read(&packet).unwrap().verify().unwrap();
            assert_eq!(u128::from(at), record.at.as_nanos());
            let seen = (
                frame.bth.opcode,
                frame.bth.dest_qpn,
                frame.bth.psn,
                frame.bth.pkey,
            );
            assert_eq!(seen, (view.opcode, view.dest_qpn, view.psn, view.pkey));
            assert_eq!(
                frame.payload.len() as u64,
                match view.opcode {
                    verbs_api::lab::PacketOpcode::RcAtomicAcknowledge => 0,
                    _ => view.payload,
                }
            );
        }
        assert_eq!(packets.next(), None);
    }
}

/// Connects a queue pair to a peer on this path.
fn connect_by(sim: &Sim, qp: Qp, path: AhAttr, dest_qp_num: u32) {
    let attr = QpAttr {
        path_mtu: Mtu::Mtu1024,
        dest_qp_num,
        ah_attr: Some(path),
        qp_access_flags: Access::ALL_RDMA,
        max_rd_atomic: 1,
        max_dest_rd_atomic: 1,
        port_num: 1,
        timeout: 14,
        retry_cnt: 7,
        rnr_retry: 7,
        ..QpAttr::default()
    };
    let mut from = QpState::Reset;
    for qp_state in [QpState::Init, QpState::Rtr, QpState::Rts] {
        let mask = transition::attributes(QpType::Rc, from, qp_state).unwrap();
        let mask = mask.required | QpAttrMask::STATE;
        let attr = QpAttr { qp_state, ..attr };
        sim.modify_qp(qp, &attr, mask).unwrap();
        from = qp_state;
    }
}

/// ROCE-01 and ROCE-02, over IPv4 and IPv6: requests and answers have the fields of the address
/// vector of their sender.
#[test]
fn packets_of_a_connection_have_the_fields_of_its_address_vector() {
    for (gid_index, profile) in [(0, Profile::SPEC), (1, Profile::SPEC), (0, Profile::RXE)] {
        let file = Memory::default();
        let pcap = Pcap::new(file.clone()).unwrap();
        let sim = Sim::new(SimConfig::new().profile(profile).pcap(pcap));
        let ends = ["sim0", "sim1"].map(|name| End::open(&sim, name, 16, 4096));
        let qps = ends.each_ref().map(|end| end.qp(QpType::Rc, 4));
        let fields = [(0xb9, 0x12345, 0xe341), (0x6a, 0xfffff, 0xffc0)];
        for (own, (traffic_class, flow_label, _)) in fields.into_iter().enumerate() {
            let peer = 1 - own;
            let gid = sim
                .query_gid(ends[peer].context, 1, gid_index.into())
                .unwrap();
            let mut path = AhAttr::global(1, gid_index, gid);
            let grh = path.grh.as_mut().unwrap();
            (grh.traffic_class, grh.flow_label) = (traffic_class, flow_label);
            // The route of the machine has another.
            grh.hop_limit = 3;
            connect_by(&sim, qps[own], path, sim.qp_num(qps[peer]).unwrap());
        }
        ends[1].recv(qps[1], 2, 0, 2000);
        ends[0].send(qps[0], 1, 0, 2000);
        sim.settle().unwrap();
        assert_eq!(ends[0].drain().pop().unwrap().status, WcStatus::Success);
        pcap.finish().unwrap();
        let packets = file.packets();
        assert_eq!(packets.len(), 3, "two of the message, and an answer");
        for (_, packet) in packets {
            let frame = Frame::read(&packet).unwrap().verify().unwrap();
            let is_answer = frame.payload.is_empty();
            let (traffic_class, flow_label, port) = fields[usize::from(is_answer)];
            assert_eq!(frame.ip.traffic_class(), traffic_class);
            assert_eq!(frame.ip.hop_limit(), 64);
            // soft-RoCE ignores the label.
            let has_label = profile == Profile::SPEC;
            assert_eq!(frame.source_port == port, has_label);
            if let Ip::V6(ip) = frame.ip {
                assert_eq!(ip.flow_label, if has_label { flow_label } else { 0 });
            }
        }
    }
}

/// If packets are not observed, a message of any length travels as one. Here it has the packets of
/// its path MTU.
#[test]
fn long_messages_are_packets_in_inline_mode_too() {
    const LENGTH: u32 = 100_000;

    let run = |config: SimConfig| {
        let sim = Sim::new(config.mode(Mode::Inline));
        let near = End::open(&sim, "sim0", 16, LENGTH as usize);
        let far = End::open(&sim, "sim1", 16, LENGTH as usize);
        let (from, to) = pair((&near, &far), QpType::Rc, 4, &RcParams::default());
        near.write(0, &[7; LENGTH as usize]);
        far.recv(to, 2, 0, LENGTH);
        near.send(from, 1, 0, LENGTH);
        assert_eq!(near.drain().pop().unwrap().status, WcStatus::Success);
        assert_eq!(far.drain().pop().unwrap().byte_len, LENGTH);
        assert!(far.read(0, LENGTH as usize).iter().all(|&byte| byte == 7));
    };
    run(SimConfig::new().wire(true));
    let file = Memory::default();
    let pcap = Pcap::new(file.clone()).unwrap();
    run(SimConfig::new().pcap(pcap));
    pcap.finish().unwrap();
    let lengths = file.packets().into_iter().map(|(_, packet)| {
        let frame = Frame::read(&packet).unwrap().verify().unwrap();
        frame.payload.len() as u32
    });
    let parts: Vec<_> = lengths.filter(|&length| length > 0).collect();
    assert_eq!(parts.iter().sum::<u32>(), LENGTH);
    assert_eq!(parts.iter().max(), Some(&1024));
}

/// Packets that cannot be written are reported at the end, and the simulation continues.
#[test]
fn a_file_that_cannot_be_written_says_so_at_the_end() {
    struct Full(usize);
    impl Write for Full {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 = self
                .0
                .checked_sub(bytes.len())
                .ok_or(io::ErrorKind::StorageFull)?;
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let pcap = Pcap::new(Full(100)).unwrap();
    let without = trial(SimConfig::new(), 3);
    assert_eq!(trial(SimConfig::new().pcap(pcap), 3), without);
    assert_eq!(
        pcap.finish().unwrap_err().kind(),
        io::ErrorKind::StorageFull
    );
    pcap.finish().unwrap();
}

/// The file named by `PCAP`: tshark finds no packet malformed, and names each opcode as we do; each
/// ICRC, which tshark does not verify, is right.
#[test]
#[ignore = "needs tshark and a file of packets: `./check wire` runs it"]
fn tshark_understands_each_packet() {
    // These guess what the payload is; random bytes are none of it.
    const GUESSES: [&str; 5] = ["rpcordma", "infiniband.eoib", "nvme-rdma", "lnet", "smc"];
    let path = std::env::var("PCAP").expect("PCAP names a file of packets");
    let mut tshark = Command::new("tshark");
    tshark.args(["-r", &path, "-T", "fields"]);
    for field in [
        "infiniband.bth.opcode",
        "infiniband.bth.destqp",
        "_ws.malformed",
        "_ws.col.Info",
    ] {
        tshark.args(["-e", field]);
    }
    for guess in GUESSES {
        tshark.args(["--disable-protocol", guess]);
    }
    let output = tshark.output().expect("tshark is installed");
    let lines = String::from_utf8(output.stdout).unwrap();
    let mut lines = lines.lines();
    let mut opcodes = BTreeMap::new();
    for (_, packet) in packets(&fs::read(path).unwrap()) {
        let frame = Frame::read(&packet).unwrap().verify().unwrap();
        let fields: Vec<&str> = lines
            .next()
            .expect("a line for each packet")
            .split('\t')
            .collect();
        let [opcode, dest_qpn, malformed, info] = fields[..] else {
            panic!("{fields:?}");
        };
        assert_eq!(opcode.parse(), Ok(u32::from(frame.bth.opcode)));
        // What carries bytes that look like an Ethernet type is taken for that.
        assert!(
            malformed.is_empty() || malformed.contains("Ethertype"),
            "{fields:?}"
        );
        // What is for the general services is taken for a datagram of theirs.
        let is_of_services = matches!(dest_qpn, "0x000000" | "0x000001");
        if malformed.is_empty() && !is_of_services {
            let name = info.split("QP=").next().unwrap().trim().to_owned();
            opcodes.entry(frame.bth.opcode).or_insert(name);
        }
    }
    assert_eq!(lines.next(), None);
    assert!(opcodes.len() > 30, "{opcodes:?}");
    for (opcode, theirs) in opcodes {
        let ours = opcode
            .to_string()
            .replace("IMM", "IMMEDIATE")
            .replace("INV", "INVALIDATE");
        let ours = ours
            .replace("WRITE", "RDMA_WRITE")
            .replace("READ", "RDMA_READ")
            .replace('_', " ");
        // It knows neither XRC, nor UC with invalidation, nor the memory placement extensions.
        let is_extension = ours == "RC FLUSH" || ours == "RC ATOMIC RDMA WRITE";
        let is_known = !(ours.starts_with("XRC")
            || ours.starts_with("UC") && ours.contains("INVALIDATE")
            || is_extension);
        let expected = if is_known { &ours } else { "UNKNOWN OPCODE" };
        assert_eq!(theirs.to_uppercase(), *expected);
    }
}
