//! An event-driven echo server and its client over RC.
//!
//! Both sleep until a completion comes. They connect by rdma_cm, as programs on two machines would.
//!
//! ```sh
//! cargo run --release --example echo
//! cargo run --release --example echo -- 192.168.1.7    # an address of a device of this machine
//! ```

mod common;

use std::net::{Ipv4Addr, SocketAddr};
use std::thread;

use common::{Result, Side, meeting, succeeded};
use verbs_api::cm::{ConnParam, PortSpace};
use verbs_api::owned::{Cm, Listener, RecvWr, SendWr};
use verbs_api::{QpType, Wait, WcOpcode};

const MESSAGES: u64 = 1000;
const SIZE: usize = 64;
/// Messages that may be under way.
const DEPTH: u64 = 16;

fn main() -> Result {
    let (cm, ip) = meeting()?;
    let all = (Ipv4Addr::UNSPECIFIED, 0).into();
    let listener = Listener::bind(&cm, PortSpace::Tcp, all)?;
    let address = SocketAddr::new(ip, listener.local_addr()?.port());
    let echoed = thread::scope(|scope| {
        let server = scope.spawn(|| serve(&listener));
        call(&cm, address)?;
        server.join().expect("it does not panic")
    })?;
    println!("{echoed} messages of {SIZE} bytes were echoed");
    assert_eq!(echoed, MESSAGES);
    Ok(())
}

/// The slots of a side's memory: one for each message that may be under way.
fn slot(wr_id: u64) -> std::ops::Range<usize> {
    let start = (wr_id % (2 * DEPTH)) as usize * SIZE;
    start..start + SIZE
}

/// Sends back what comes, until the client says goodbye by an empty message.
fn serve(listener: &Listener) -> Result<u64> {
    let request = listener.get_request(Wait::Forever)?.ok_or("no client")?;
    let memory = 2 * DEPTH as usize * SIZE;
    let side = Side::of(&request, QpType::Rc, DEPTH as u32, memory)?;
    let Side { qp, cq, mr, .. } = &side;
    let receive = |n| qp.post_recv(RecvWr::new(n, &[mr.sge(slot(n))]));
    // Before the client is notified: a message to a QP without receives would have to be repeated.
    (0..DEPTH).try_for_each(receive)?;
    let connection = request.accept(&ConnParam::new())?;
    connection.established(Wait::Forever)?;
    // A reply may be known to have arrived only after the goodbye: the two are of different queues.
    let (mut replies, mut arrived, mut goodbye) = (0, 0, false);
    while !goodbye || arrived < replies {
        for wc in cq.wait_forever()? {
            succeeded(&wc)?;
            match wc.opcode {
                WcOpcode::Recv if wc.byte_len == 0 => goodbye = true,
                WcOpcode::Recv => {
                    let start = slot(wc.wr_id).start;
                    let reply = [mr.sge(start..start + wc.byte_len as usize)];
                    qp.post_send(SendWr::send(wc.wr_id, &reply))?;
                    replies += 1;
                }
                // The reply has arrived, so its slot can take another message.
                _ => {
                    receive(wc.wr_id)?;
                    arrived += 1;
                }
            }
        }
    }
    connection.disconnect()?;
    Ok(arrived)
}

/// Sends messages, and checks that each comes back.
fn call(cm: &Cm, server: SocketAddr) -> Result {
    let mut resolving = cm.route(PortSpace::Tcp, server).resolve()?;
    let route = resolving.wait(Wait::Forever)?.ok_or("no route")?;
    let memory = 2 * DEPTH as usize * SIZE;
    let side = Side::of(&route, QpType::Rc, DEPTH as u32, memory)?;
    let Side { qp, cq, mr, .. } = &side;
    let text = |n: u64| format!("{n:>0$}", SIZE).into_bytes();
    let request = |n: u64| -> Result {
        let (out, back) = (slot(2 * n), slot(2 * n + 1));
        qp.post_recv(RecvWr::new(n, &[mr.sge(back)]))?;
        mr.write(out.start, &text(n))?;
        Ok(qp.post_send(SendWr::send(n, &[mr.sge(out)]))?)
    };
    let connection = route.connect(&ConnParam::new())?;
    connection.established(Wait::Forever)?;
    // Half of what the server has receives for: it posts one again when its reply has arrived.
    let window = DEPTH / 2;
    (0..window).try_for_each(request)?;
    // Each message has two completions, that it was sent and that the reply came.
    let mut left = [2; DEPTH as usize / 2];
    let mut done = 0;
    while done < MESSAGES {
        for wc in cq.wait_forever()? {
            succeeded(&wc)?;
            let n = wc.wr_id;
            if wc.opcode == WcOpcode::Recv {
                let reply = mr.read_vec(slot(2 * n + 1).start, SIZE)?;
                assert_eq!(reply, text(n));
            }
            let left = &mut left[(n % window) as usize];
            *left -= 1;
            if *left == 0 {
                (*left, done) = (2, done + 1);
                if n + window < MESSAGES {
                    request(n + window)?;
                }
            }
        }
    }
    qp.post_send(SendWr::send(MESSAGES, &[]))?;
    connection.disconnected(Wait::Forever)?;
    Ok(())
}
