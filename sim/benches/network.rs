//! Two processes on one network, compared with two that exchange plain UDP datagrams: figures and
//! floors of one run.
//!
//! The second process is this program again. The two pairs take turns, and each figure is the
//! median of its rounds. During a turn the second process of the other pair is stopped, so that its
//! polls use no core.

use std::env;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Instant;

use rustix::process::{Pid, Signal, kill_process};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use verbs_api::connect::{self, Endpoint};
use verbs_api::{
    Access, Arm, CompChannel, Context, Cq, CqInit, Mr, MrAttr, Mtu, Pd, Qp, QpCap, QpInit, QpType,
    RcParams, RecvWr, Remote, SendWr, Verbs, Wait, Wc, WcStatus,
};
use verbs_sim::{Mode, Network, Sim, SimConfig};

/// The bytes of a ping, and of a large write.
const SMALL: u32 = 64;
const LARGE: u32 = 1 << 20;
/// The round trips of a round.
const TRIPS: u32 = 2_000;
const ROUNDS: usize = 9;
/// Large writes outstanding at a time, and in a round.
const DEPTH: u32 = 4;
const WRITES: u32 = 64;

/// How a side waits.
#[derive(Clone, Copy, PartialEq, Eq)]
enum How {
    Polls,
    Sleeps,
}

fn main() {
    let arguments: Vec<String> = env::args().skip(1).collect();
    match &arguments[..] {
        [role, what, how, core] if role == "peer" => peer(what, how_of(how), core == "one"),
        // `cargo test --benches` only checks that it runs.
        rest => compare(if rest.iter().any(|of| of == "--bench") {
            ROUNDS
        } else {
            1
        }),
    }
}

fn how_of(text: &str) -> How {
    if text == "polls" {
        How::Polls
    } else {
        How::Sleeps
    }
}

fn compare(rounds: usize) {
    println!("| what | figure | floor | | ratio | budget |");
    println!("|---|---|---|---|---|---|");
    let line = |what: &str, figure: f64, floor: &str, of_floor: f64, budget: f64| {
        println!(
            "| {what} | {:.2} us | {floor} | {:.2} us | {:.2} | {budget} |",
            figure * 1e6,
            of_floor * 1e6,
            figure / of_floor
        );
    };
    let [rc, udp] = trips(["rc", "udp"], [How::Polls; 2], false, rounds);
    line(
        "SEND of 64 B and back, both polling",
        rc,
        "UDP, both polling",
        udp,
        2.5,
    );
    let [rc, udp] = trips(["rc", "udp"], [How::Sleeps; 2], false, rounds);
    line(
        "the same, both sleeping",
        rc,
        "UDP, both blocking",
        udp,
        5.0,
    );
    let [rc, udp] = trips(["rc", "udp"], [How::Sleeps; 2], true, rounds);
    line("the same, on one core", rc, "UDP, on one core", udp, 5.0);
    let [polls, sleeps] = trips(["rc", "rc"], [How::Polls, How::Sleeps], true, rounds);
    line(
        "both polling, on one core",
        polls,
        "both sleeping, on one core",
        sleeps,
        2.0,
    );
    let [write, copy] = writes(rounds);
    let speed = |time: f64| f64::from(LARGE) / time / 1e9;
    println!(
        "| writes of 1 MiB | {:.2} GB/s | a memcpy | {:.2} GB/s | | 1 GB/s |",
        speed(write),
        speed(copy)
    );
}

fn median(mut all: Vec<f64>) -> f64 {
    all.sort_by(f64::total_cmp);
    all[all.len() / 2]
}

/// The median time of a round trip of each pair.
fn trips(what: [&str; 2], how: [How; 2], one_core: bool, rounds: usize) -> [f64; 2] {
    let all = sched_getaffinity(None).expect("a thread has cores");
    if one_core {
        to_first_core();
    }
    let mut sides = [0, 1].map(|at| Side::start(what[at], how[at], one_core));
    let mut times = [Vec::new(), Vec::new()];
    for _ in 0..rounds {
        for (side, times) in sides.iter_mut().zip(&mut times) {
            side.tell_peer(Signal::CONT);
            side.trip(TRIPS / 10);
            let start = Instant::now();
            side.trip(TRIPS);
            times.push(start.elapsed().as_secs_f64() / f64::from(TRIPS));
            side.tell_peer(Signal::STOP);
        }
    }
    drop(sides);
    sched_setaffinity(None, &all).expect("cores that it had");
    times.map(median)
}

fn to_first_core() {
    let all = sched_getaffinity(None).expect("a thread has cores");
    let first = (0..CpuSet::MAX_CPU).find(|core| all.is_set(*core));
    let mut one = CpuSet::new();
    one.set(first.expect("a thread has a core"));
    sched_setaffinity(None, &one).expect("a core that it has");
}

/// One side of a conversation, with the process of the other side.
struct Side {
    way: Way,
    peer: Child,
}

enum Way {
    Udp(UdpSocket, How),
    Rc(Box<End>, Qp, How),
}

impl Side {
    fn start(what: &str, how: How, one_core: bool) -> Self {
        let mut peer = Command::new(env::current_exe().expect("this program"));
        let how_text = if how == How::Polls { "polls" } else { "sleeps" };
        let core = if one_core { "one" } else { "any" };
        let peer = peer.args(["peer", what, how_text, core]);
        let mut peer = peer
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a process");
        let (mut to, from) = (peer.stdin.take().unwrap(), peer.stdout.take().unwrap());
        let way = match what {
            "udp" => Way::Udp(udp(&mut to, from, how), how),
            _ => {
                let end = End::open();
                let (qp, _) = end.connect(&mut to, &mut BufReader::new(from));
                Way::Rc(end, qp, how)
            }
        };
        peer.stdin = Some(to);
        let side = Self { way, peer };
        side.tell_peer(Signal::STOP);
        side
    }

    fn tell_peer(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.peer), signal).expect("the process is there");
    }

    fn trip(&mut self, count: u32) {
        match &mut self.way {
            Way::Udp(socket, how) => {
                let mut bytes = [0; SMALL as usize];
                for _ in 0..count {
                    socket.send(&bytes).expect("a datagram leaves");
                    receive(socket, &mut bytes, *how);
                }
            }
            Way::Rc(end, qp, how) => {
                for _ in 0..count {
                    end.receive(*qp);
                    end.send(*qp);
                    end.completions(2, *how);
                }
            }
        }
    }
}

impl Drop for Side {
    fn drop(&mut self) {
        let _ = self.peer.kill();
        let _ = self.peer.wait();
    }
}

/// Plays the other side until it is killed, or until the program that started it ends.
fn peer(what: &str, how: How, one_core: bool) {
    if one_core {
        to_first_core();
    }
    let (mut input, mut output) = (BufReader::new(std::io::stdin()), std::io::stdout());
    match what {
        "udp" => {
            let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
            writeln!(output, "{}", socket.local_addr().unwrap()).unwrap();
            let mut line = String::new();
            input.read_line(&mut line).unwrap();
            socket.connect(line.trim()).unwrap();
            socket.set_nonblocking(how == How::Polls).unwrap();
            let mut bytes = [0; SMALL as usize];
            loop {
                receive(&socket, &mut bytes, how);
                if socket.send(&bytes).is_err() {
                    return;
                }
            }
        }
        "writes" => {
            let end = End::open();
            end.connect(&mut output, &mut input);
            // This side makes no call.
            let _ = input.read_line(&mut String::new());
        }
        _ => {
            let end = End::open();
            let (qp, _) = end.connect(&mut output, &mut input);
            end.receive(qp);
            loop {
                // The completion of the last send may arrive with the next message.
                end.completions_of(qp, how);
            }
        }
    }
}

fn udp(to: &mut ChildStdin, from: ChildStdout, how: How) -> UdpSocket {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let mut line = String::new();
    BufReader::new(from).read_line(&mut line).unwrap();
    let peer: SocketAddr = line.trim().parse().unwrap();
    socket.connect(peer).unwrap();
    writeln!(to, "{}", socket.local_addr().unwrap()).unwrap();
    socket.set_nonblocking(how == How::Polls).unwrap();
    socket
}

fn receive(socket: &UdpSocket, bytes: &mut [u8], how: How) {
    while socket.recv(bytes).is_err() {
        if how == How::Polls {
            std::thread::yield_now();
        }
    }
}

/// A device of this process, with the objects that a queue pair needs.
struct End {
    sim: Sim,
    context: Context,
    pd: Pd,
    mem: MrAttr,
    _mr: Mr,
    channel: CompChannel,
    cq: Cq,
}

fn params() -> RcParams {
    RcParams {
        path_mtu: Mtu::Mtu4096,
        ..RcParams::default()
    }
}

impl End {
    fn open() -> Box<Self> {
        let seed = u64::from(std::process::id());
        let config = SimConfig::new().nodes(1).mode(Mode::RealTime).scatter(seed);
        let sim = Sim::new(config.network(Network::loopback("bench")));
        let context = sim.open_device("sim0").unwrap();
        let pd = sim.alloc_pd(context).unwrap();
        let mr = sim
            .alloc_mr(pd, (LARGE * DEPTH) as usize, Access::ALL_RDMA)
            .unwrap();
        let channel = sim.create_comp_channel(context).unwrap();
        let cq = sim
            .create_cq(context, &CqInit::new(64).channel(channel))
            .unwrap();
        let mem = sim.query_mr(mr).unwrap();
        Box::new(Self {
            sim,
            context,
            pd,
            mem,
            _mr: mr,
            channel,
            cq,
        })
    }

    fn qp(&self) -> Qp {
        let cap = QpCap {
            max_send_wr: 16,
            max_recv_wr: 16,
            ..QpCap::default()
        };
        let init = QpInit::new(QpType::Rc, self.cq, self.cq).cap(cap);
        self.sim.create_qp(self.pd, &init).unwrap()
    }

    /// A queue pair connected with one of the process at the other end of these pipes, and the
    /// address of the peer's memory.
    fn connect(&self, to: &mut impl Write, from: &mut impl Read) -> (Qp, Remote) {
        let qp = self.qp();
        let own = connect::endpoint(&self.sim, qp, &params()).unwrap();
        to.write_all(&own.to_bytes()).unwrap();
        to.write_all(&self.mem.addr.to_le_bytes()).unwrap();
        to.write_all(&self.mem.rkey.to_le_bytes()).unwrap();
        to.flush().unwrap();
        let (mut peer, mut addr, mut rkey) = ([0; Endpoint::BYTES], [0; 8], [0; 4]);
        from.read_exact(&mut peer).unwrap();
        from.read_exact(&mut addr).unwrap();
        from.read_exact(&mut rkey).unwrap();
        let peer = Endpoint::from_bytes(peer);
        connect::to_endpoint(&self.sim, qp, &peer, &params()).unwrap();
        assert_ne!(peer.gid, self.sim.query_gid(self.context, 1, 0).unwrap());
        let remote = Remote {
            addr: u64::from_le_bytes(addr),
            rkey: u32::from_le_bytes(rkey),
        };
        (qp, remote)
    }

    fn send(&self, qp: Qp) {
        let list = [self.mem.sge(0, SMALL)];
        self.sim.post_send(qp, &[SendWr::send(0, &list)]).unwrap();
    }

    fn receive(&self, qp: Qp) {
        let list = [self.mem.sge(u64::from(SMALL), SMALL)];
        self.sim.post_recv(qp, &[RecvWr::new(1, &list)]).unwrap();
    }

    /// Waits for `count` completions.
    fn completions(&self, count: usize, how: How) {
        let mut left = count;
        while left > 0 {
            left -= self.some(how).len();
        }
    }

    /// Answers each message.
    fn completions_of(&self, qp: Qp, how: How) {
        for wc in self.some(how) {
            if wc.wr_id == 1 {
                self.receive(qp);
                self.send(qp);
            }
        }
    }

    /// The next completions.
    fn some(&self, how: How) -> Vec<Wc> {
        loop {
            let mut some = [Wc::default(); 8];
            let count = self.sim.poll_cq(self.cq, &mut some).unwrap();
            if count > 0 {
                assert!(
                    some[..count]
                        .iter()
                        .all(|wc| wc.status == WcStatus::Success)
                );
                return some[..count].to_vec();
            }
            if how == How::Sleeps {
                self.sim.req_notify_cq(self.cq, Arm::NEXT).unwrap();
                let count = self.sim.poll_cq(self.cq, &mut some).unwrap();
                if count > 0 {
                    return some[..count].to_vec();
                }
                let event = self.sim.get_cq_event(self.channel, Wait::Forever).unwrap();
                self.sim.ack_cq_events(event.cq, 1).unwrap();
            }
        }
    }
}

/// The median time of a write of 1 MiB with several writes outstanding, and of a copy.
fn writes(rounds: usize) -> [f64; 2] {
    let mut peer = Command::new(env::current_exe().expect("this program"));
    let peer = peer.args(["peer", "writes", "sleeps", "any"]);
    let mut peer = peer
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("a process");
    let mut to = peer.stdin.take().unwrap();
    let mut from = BufReader::new(peer.stdout.take().unwrap());
    let end = End::open();
    let (qp, remote) = end.connect(&mut to, &mut from);
    let list = [end.mem.sge(0, LARGE)];
    let source = vec![1u8; LARGE as usize];
    let mut target = vec![0u8; LARGE as usize];
    let mut times = [Vec::new(), Vec::new()];
    for _ in 0..rounds {
        let start = Instant::now();
        let mut posted = 0;
        let mut done = 0;
        while done < WRITES {
            while posted < WRITES && posted - done < DEPTH {
                end.sim
                    .post_send(qp, &[SendWr::rdma_write(0, &list, remote)])
                    .unwrap();
                posted += 1;
            }
            done += end.some(How::Polls).len() as u32;
        }
        times[0].push(start.elapsed().as_secs_f64() / f64::from(WRITES));
        let start = Instant::now();
        for _ in 0..WRITES {
            std::hint::black_box(&mut target).copy_from_slice(std::hint::black_box(&source));
        }
        times[1].push(start.elapsed().as_secs_f64() / f64::from(WRITES));
    }
    drop(to);
    let _ = peer.kill();
    let _ = peer.wait();
    times.map(median)
}
