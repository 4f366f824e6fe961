//! Request and reply over UD: one server queue pair for any number of clients.
//!
//! Clients learn by rdma_cm where their datagrams go. A datagram brings the number of the queue
//! pair that sent it, but not a way back that works on every kind of network, so the client puts
//! its GID into the request. Datagrams can be lost: the client asks again after a while, and takes
//! an old answer for what it is by its number.
//!
//! ```sh
//! cargo run --release --example datagram
//! cargo run --release --example datagram -- 192.168.1.7    # an address of a device here
//! ```

mod common;

use std::net::SocketAddr;
use std::thread;
use std::time::Duration;

use common::{Result, Side, meeting, succeeded};
use verbs_api::cm::{CmParam, ConnParam, PortSpace, RDMA_UDP_QKEY, UdData};
use verbs_api::owned::{Ah, Cm, Listener, QpBuilder, RecvWr, SendWr};
use verbs_api::{AhAttr, Gid, QpType, Wait, WcOpcode};

const CLIENTS: usize = 4;
const REQUESTS: u64 = 100;
/// The device puts a header of the network before the received data.
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
    let (cm, ip) = meeting()?;
    let listener = Listener::bind(&cm, PortSpace::Udp, SocketAddr::new(ip, 0))?;
    let server = Server::new(&listener)?;
    let (cm, address) = (&cm, listener.local_addr()?);
    let answered = thread::scope(|scope| {
        let answers = scope.spawn(|| server.serve());
        let ask = move || Client::new(cm, address)?.ask_all();
        let clients: Vec<_> = (0..CLIENTS).map(|_| scope.spawn(ask)).collect();
        let goodbye = scope.spawn(move || {
            for client in clients {
                client.join().expect("it does not panic")?;
            }
            Client::new(cm, address)?.say_goodbye()
        });
        // All clients, and the one that says goodbye.
        for _ in 0..=CLIENTS {
            let request = listener.get_request(Wait::Forever)?.ok_or("no client")?;
            let qp_num = server.side.qp.num();
            let here = ConnParam {
                qp_num,
                ..ConnParam::new()
            };
            request.accept(&here)?;
        }
        goodbye.join().expect("it does not panic")?;
        answers.join().expect("it does not panic")
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

struct Server {
    side: Side,
    port_num: u8,
    sgid_index: u8,
}

impl Server {
    /// On the device that leads to the listener.
    fn new(listener: &Listener) -> Result<Self> {
        let (context, attr) = (listener.context()?, listener.attr()?);
        let bytes = RECEIVES * (SLOT + ANSWER);
        let create = |qp: QpBuilder<'_>| Ok(qp.create()?);
        let side = Side::by(context, QpType::Ud, RECEIVES as u32, bytes, create)?;
        side.qp.activate(attr.port_num, RDMA_UDP_QKEY)?;
        let entries = context.query_port(attr.port_num)?.gid_tbl_len;
        let is_own = |index: &u32| {
            let gid = context.query_gid(attr.port_num, *index);
            gid.is_ok_and(|gid| gid == attr.sgid)
        };
        let sgid_index = (0..entries).find(is_own).ok_or("the GID is in no table")?;
        Ok(Self {
            side,
            port_num: attr.port_num,
            sgid_index: sgid_index as u8,
        })
    }

    /// Answers requests until an empty one comes.
    fn serve(&self) -> Result<u64> {
        let Side { qp, cq, mr, pd } = &self.side;
        let receive = |wr_id| {
            let start = receive_slot(wr_id);
            qp.post_recv(RecvWr::new(wr_id, &[mr.sge(start..start + SLOT)]))
        };
        (0..RECEIVES as u64).try_for_each(receive)?;
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
                let ah = pd.create_ah(&AhAttr::global(
                    self.port_num,
                    self.sgid_index,
                    Gid(gid.try_into()?),
                ))?;
                // Posted work holds what it uses: the handle may go here.
                let list = [mr.sge(start..start + ANSWER)];
                qp.post_send(SendWr::send(wc.wr_id, &list).to(&ah, wc.src_qp, RDMA_UDP_QKEY))?;
            }
        }
        Ok(answered)
    }
}

/// A client: its answers are received at the start of its memory, its request is behind.
struct Client {
    side: Side,
    server: Ah,
    /// Where datagrams go.
    there: UdData,
}

impl Client {
    const OUT: usize = GRH + ANSWER;

    fn new(cm: &Cm, server: SocketAddr) -> Result<Self> {
        let mut resolving = cm.route(PortSpace::Udp, server).resolve()?;
        let route = resolving.wait(Wait::Forever)?.ok_or("no route")?;
        let side = Side::of(&route, QpType::Ud, 4, Self::OUT + REQUEST)?;
        side.mr.write(Self::OUT, &route.attr()?.sgid.0)?;
        let connection = route.connect(&ConnParam::new())?;
        let Some(CmParam::Ud(there)) = connection.established(Wait::Forever)? else {
            return Err("no server".into());
        };
        let server = side.pd.create_ah(&there.ah_attr)?;
        Ok(Self {
            side,
            server,
            there,
        })
    }

    fn send(&self, length: usize) -> Result {
        let list = [self.side.mr.sge(Self::OUT..Self::OUT + length)];
        let send = SendWr::send(0, &list[..usize::from(length > 0)]);
        let send = send.to(&self.server, self.there.qp_num, self.there.qkey);
        Ok(self.side.qp.post_send(send)?)
    }

    /// The answer to a request.
    fn ask(&self, number: u64) -> Result<u64> {
        let Side { qp, cq, mr, .. } = &self.side;
        let receive = || qp.post_recv(RecvWr::new(1, &[mr.sge(..Self::OUT)]));
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

    fn ask_all(&self) -> Result {
        for number in 0..REQUESTS {
            assert_eq!(self.ask(number)?, number * number);
        }
        Ok(())
    }

    fn say_goodbye(&self) -> Result {
        self.send(0)?;
        let mut sent = self.side.cq.wait_forever()?;
        sent.try_for_each(|wc| succeeded(&wc))
    }
}
