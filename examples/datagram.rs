//! Request and reply over UD: one server queue pair for any number of clients.
//!
//! A datagram brings the number of the queue pair that sent it, but not a way back that works on
//! every kind of network, so the client puts its GID into the request. Datagrams can be lost: the
//! client asks again after a while, and takes an old answer for what it is by its number.
//!
//! ```sh
//! cargo run --release --example datagram
//! cargo run --release --example datagram -- rxe0
//! ```

mod common;

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use common::{Result, Side, contexts, succeeded};
use verbs_api::owned::{Ah, Context, RecvWr, SendWr};
use verbs_api::{AhAttr, Gid, QpType, Wait, WcOpcode};

const CLIENTS: usize = 4;
const REQUESTS: u64 = 100;
const QKEY: u32 = 0x1111_1111;
/// The device puts a header of the network in front of what it receives.
const GRH: usize = 40;
/// A request is a GID and a number, an answer a number and its square.
const REQUEST: usize = 16 + 8;
const ANSWER: usize = 8 + 8;
/// The receives of the server, each as large as a request with its header.
const RECEIVES: usize = 32;
const SLOT: usize = GRH + REQUEST;
/// After this time without an answer the client asks again.
const PATIENCE: Duration = Duration::from_millis(500);

fn main() -> Result {
    let [here, there] = contexts()?;
    let (ready, address) = mpsc::channel();
    let answered = thread::scope(|scope| {
        let server = scope.spawn(|| serve(&here, ready));
        let (gid, qp_num) = address.recv()?;
        let there = &there;
        let ask = move || ask_all(there, gid, qp_num);
        let clients: Vec<_> = (0..CLIENTS).map(|_| scope.spawn(ask)).collect();
        for client in clients {
            client.join().expect("it does not panic")?;
        }
        say_goodbye(there, gid, qp_num)?;
        server.join().expect("it does not panic")
    })?;
    println!("{answered} requests of {CLIENTS} clients were answered");
    Ok(())
}

/// Where the bytes of a receive, without the header, and of an answer are.
fn receive_slot(wr_id: u64) -> usize {
    wr_id as usize % RECEIVES * SLOT
}

fn answer_slot(wr_id: u64) -> usize {
    RECEIVES * SLOT + wr_id as usize % RECEIVES * ANSWER
}

/// Answers requests until an empty one comes.
fn serve(context: &Context, ready: mpsc::Sender<(Gid, u32)>) -> Result<u64> {
    let bytes = RECEIVES * (SLOT + ANSWER);
    let Side { qp, cq, mr, pd } = Side::new(context, QpType::Ud, RECEIVES as u32, bytes)?;
    qp.activate(1, QKEY)?;
    let receive = |wr_id| {
        let start = receive_slot(wr_id);
        qp.post_recv(&[RecvWr::new(wr_id, &[mr.sge(start..start + SLOT)])])
    };
    (0..RECEIVES as u64).try_for_each(receive)?;
    ready.send((context.query_gid(1, 0)?, qp.num()))?;
    let mut answered = 0;
    while let Some(completions) = cq.wait(Wait::Forever)? {
        for wc in completions {
            succeeded(&wc)?;
            if wc.opcode != WcOpcode::Recv {
                // The answer has left, so its slot can take another, and the request's too.
                receive(wc.wr_id)?;
                answered += 1;
                continue;
            }
            if wc.byte_len as usize != SLOT {
                return Ok(answered);
            }
            let request = mr.read_vec(receive_slot(wc.wr_id) + GRH, REQUEST)?;
            let (gid, number) = request.split_at(16);
            let number = u64::from_be_bytes(number.try_into()?);
            let start = answer_slot(wc.wr_id);
            mr.write(start, &number.to_be_bytes())?;
            mr.write(start + 8, &(number * number).to_be_bytes())?;
            let ah = pd.create_ah(&AhAttr::global(1, 0, Gid(gid.try_into()?)))?;
            // Posted work holds what it uses: the handle may go here.
            let list = [mr.sge(start..start + ANSWER)];
            qp.post_send(&[SendWr::send(wc.wr_id, &list).to(&ah, wc.src_qp, QKEY)])?;
        }
    }
    Ok(answered)
}

/// A client: its answers are received at the start of its memory, its request is behind.
struct Client {
    side: Side,
    server: Ah,
    server_qp: u32,
}

impl Client {
    const OUT: usize = GRH + ANSWER;

    fn new(context: &Context, gid: Gid, server_qp: u32) -> Result<Self> {
        let side = Side::new(context, QpType::Ud, 4, Self::OUT + REQUEST)?;
        side.qp.activate(1, QKEY)?;
        side.mr.write(Self::OUT, &context.query_gid(1, 0)?.0)?;
        let server = side.pd.create_ah(&AhAttr::global(1, 0, gid))?;
        Ok(Self {
            side,
            server,
            server_qp,
        })
    }

    fn send(&self, length: usize) -> Result {
        let list = [self.side.mr.sge(Self::OUT..Self::OUT + length)];
        let send = SendWr::send(0, &list[..usize::from(length > 0)]);
        let send = send.to(&self.server, self.server_qp, QKEY);
        Ok(self.side.qp.post_send(&[send])?)
    }

    /// The answer to a request.
    fn ask(&self, number: u64) -> Result<u64> {
        let Side { qp, cq, mr, .. } = &self.side;
        let receive = || qp.post_recv(&[RecvWr::new(1, &[mr.sge(..Self::OUT)])]);
        receive()?;
        mr.write(Self::OUT + 16, &number.to_be_bytes())?;
        self.send(REQUEST)?;
        loop {
            let Some(completions) = cq.wait(Wait::For(PATIENCE))? else {
                self.send(REQUEST)?;
                continue;
            };
            for wc in completions {
                succeeded(&wc)?;
                if wc.opcode != WcOpcode::Recv {
                    continue;
                }
                let answer = mr.read_vec(GRH, ANSWER)?;
                let (of, square) = answer.split_at(8);
                if of == number.to_be_bytes() {
                    return Ok(u64::from_be_bytes(square.try_into()?));
                }
                receive()?;
            }
        }
    }
}

fn ask_all(context: &Context, gid: Gid, server_qp: u32) -> Result {
    let client = Client::new(context, gid, server_qp)?;
    for number in 0..REQUESTS {
        assert_eq!(client.ask(number)?, number * number);
    }
    Ok(())
}

fn say_goodbye(context: &Context, gid: Gid, server_qp: u32) -> Result {
    let client = Client::new(context, gid, server_qp)?;
    client.send(0)?;
    let mut sent = client.side.cq.wait(Wait::Forever)?.into_iter().flatten();
    sent.try_for_each(|wc| succeeded(&wc))
}
