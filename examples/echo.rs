//! An event-driven echo server and its client over RC.
//!
//! Both sleep until a completion comes. They meet over a socket, as programs on two machines would,
//! and tell each other there how to connect.
//!
//! ```sh
//! cargo run --release --example echo
//! cargo run --release --example echo -- rxe0
//! ```

mod common;

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::thread;

use common::{Result, Side, contexts, succeeded};
use verbs_api::connect::Endpoint;
use verbs_api::owned::{Context, RecvWr, SendWr};
use verbs_api::{QpType, RcParams, Wait, WcOpcode};

const MESSAGES: u64 = 1000;
const SIZE: usize = 64;
/// Messages that may be under way.
const DEPTH: u64 = 16;

fn main() -> Result {
    let [here, there] = contexts()?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let address = listener.local_addr()?;
    let echoed = thread::scope(|scope| {
        let server = scope.spawn(|| serve(&here, listener.accept()?.0));
        call(&there, TcpStream::connect(address)?)?;
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

/// Connects with the peer at the other end of the socket. When it returns, both have posted their
/// first receives: an RC message to a QP that has none would have to be repeated.
fn connect(side: &Side, peer: &mut TcpStream, first_receives: impl FnOnce() -> Result) -> Result {
    let params = RcParams::default();
    peer.write_all(&side.qp.endpoint(&params)?.to_bytes())?;
    let mut endpoint = [0; Endpoint::BYTES];
    peer.read_exact(&mut endpoint)?;
    side.qp.connect(&Endpoint::from_bytes(endpoint), &params)?;
    first_receives()?;
    peer.write_all(b"!")?;
    peer.read_exact(&mut [0])?;
    Ok(())
}

/// Sends back what comes, until the client says goodbye by an empty message.
fn serve(context: &Context, mut client: TcpStream) -> Result<u64> {
    let side = Side::new(context, QpType::Rc, DEPTH as u32, 2 * DEPTH as usize * SIZE)?;
    let Side { qp, cq, mr, .. } = &side;
    let receive = |n| qp.post_recv(&[RecvWr::new(n, &[mr.sge(slot(n))])]);
    connect(&side, &mut client, || Ok((0..DEPTH).try_for_each(receive)?))?;
    // A reply may be known to have arrived only after the goodbye: the two are of different queues.
    let (mut replies, mut arrived, mut goodbye) = (0, 0, false);
    while (!goodbye || arrived < replies)
        && let Some(completions) = cq.wait(Wait::Forever)?
    {
        for wc in completions {
            succeeded(&wc)?;
            match wc.opcode {
                WcOpcode::Recv if wc.byte_len == 0 => goodbye = true,
                WcOpcode::Recv => {
                    let start = slot(wc.wr_id).start;
                    let reply = [mr.sge(start..start + wc.byte_len as usize)];
                    qp.post_send(&[SendWr::send(wc.wr_id, &reply)])?;
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
    Ok(arrived)
}

/// Sends messages, and checks that each comes back.
fn call(context: &Context, mut server: TcpStream) -> Result {
    let side = Side::new(context, QpType::Rc, DEPTH as u32, 2 * DEPTH as usize * SIZE)?;
    let Side { qp, cq, mr, .. } = &side;
    let text = |n: u64| format!("{n:>0$}", SIZE).into_bytes();
    let request = |n: u64| -> Result {
        let (out, back) = (slot(2 * n), slot(2 * n + 1));
        qp.post_recv(&[RecvWr::new(n, &[mr.sge(back)])])?;
        mr.write(out.start, &text(n))?;
        Ok(qp.post_send(&[SendWr::send(n, &[mr.sge(out)])])?)
    };
    connect(&side, &mut server, || Ok(()))?;
    // Half of what the server has receives for: it posts one again when its reply has arrived.
    let window = DEPTH / 2;
    (0..window).try_for_each(request)?;
    // Each message has two completions, that it was sent and that the reply came.
    let mut left = [2; DEPTH as usize / 2];
    let mut done = 0;
    while done < MESSAGES
        && let Some(completions) = cq.wait(Wait::Forever)?
    {
        for wc in completions {
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
    qp.post_send(&[SendWr::send(MESSAGES, &[])])?;
    let mut sent = cq.wait(Wait::Forever)?.into_iter().flatten();
    sent.try_for_each(|wc| succeeded(&wc))
}
