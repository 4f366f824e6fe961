//! The echo server as an async program on tokio, with a task for each of its clients.
//!
//! The waits of `verbs_api::owned` are futures. They need no runtime: the device wakes the tasks.
//!
//! ```sh
//! cargo run --release --example echo_async
//! cargo run --release --example echo_async -- 192.168.1.7    # an address of a device here
//! ```

mod common;

use std::net::{Ipv4Addr, SocketAddr};

use common::{Result, Side, meeting, succeeded};
use tokio::task::JoinSet;
use verbs_api::cm::{ConnParam, PortSpace};
use verbs_api::owned::{Cm, Cq, Listener, RecvWr, Request, SendWr};
use verbs_api::{QpType, WcOpcode};

const CLIENTS: u64 = 8;
const MESSAGES: u64 = 200;
const SIZE: usize = 64;

#[tokio::main]
async fn main() -> Result {
    let (cm, ip) = meeting()?;
    let all = (Ipv4Addr::UNSPECIFIED, 0).into();
    let listener = Listener::bind(&cm, PortSpace::Tcp, all)?;
    let address = SocketAddr::new(ip, listener.local_addr()?.port());
    let listening = tokio::spawn(listen(listener));
    let mut clients = JoinSet::new();
    for _ in 0..CLIENTS {
        clients.spawn(call(cm.clone(), address));
    }
    while let Some(done) = clients.join_next().await {
        done??;
    }
    let echoed = listening.await??;
    println!("{echoed} messages of {SIZE} bytes from {CLIENTS} clients were echoed");
    assert_eq!(echoed, CLIENTS * MESSAGES);
    Ok(())
}

/// Serves each client, and counts the messages of all.
async fn listen(listener: Listener) -> Result<u64> {
    let mut servers = JoinSet::new();
    for _ in 0..CLIENTS {
        servers.spawn(serve(listener.next_request().await?));
    }
    let mut echoed = 0;
    while let Some(done) = servers.join_next().await {
        echoed += done??;
    }
    Ok(echoed)
}

/// Waits for `count` successful completions.
async fn succeed(cq: &Cq, mut count: usize) -> Result {
    while count > 0 {
        for wc in cq.next().await?.take(count) {
            succeeded(&wc)?;
            count -= 1;
        }
    }
    Ok(())
}

/// The halves of a side's memory.
fn half(wr_id: u64) -> std::ops::Range<usize> {
    let start = wr_id as usize * SIZE;
    start..start + SIZE
}

/// Sends back what comes, until the client says goodbye by an empty message.
async fn serve(request: Request) -> Result<u64> {
    let side = Side::of(&request, QpType::Rc, 2, 2 * SIZE)?;
    let Side { qp, cq, mr, .. } = &side;
    let receive = |n| qp.post_recv(RecvWr::new(n, &[mr.sge(half(n))]));
    // Before the client is notified: a message to a QP without receives would have to be repeated.
    (0..2).try_for_each(receive)?;
    let connection = request.accept(&ConnParam::new())?;
    connection.until_established().await?;
    // A reply may be known to have arrived only after the goodbye: the two are of different queues.
    let (mut replies, mut arrived, mut goodbye) = (0, 0, false);
    while !goodbye || arrived < replies {
        for wc in cq.next().await? {
            succeeded(&wc)?;
            match wc.opcode {
                WcOpcode::Recv if wc.byte_len == 0 => goodbye = true,
                WcOpcode::Recv => {
                    let start = half(wc.wr_id).start;
                    let reply = [mr.sge(start..start + wc.byte_len as usize)];
                    qp.post_send(SendWr::send(wc.wr_id, &reply))?;
                    replies += 1;
                }
                // The reply has arrived, so its half can take another message.
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

/// Sends messages one after the other, and checks that each comes back.
async fn call(cm: Cm, server: SocketAddr) -> Result {
    let mut resolving = cm.route(PortSpace::Tcp, server).resolve()?;
    let route = resolving.until_resolved().await?;
    let side = Side::of(&route, QpType::Rc, 2, 2 * SIZE)?;
    let Side { qp, cq, mr, .. } = &side;
    let connection = route.connect(&ConnParam::new())?;
    connection.until_established().await?;
    for n in 0..MESSAGES {
        let text = format!("{n:>0$}", SIZE).into_bytes();
        mr.write(half(0).start, &text)?;
        qp.post_recv(RecvWr::new(1, &[mr.sge(half(1))]))?;
        qp.post_send(SendWr::send(0, &[mr.sge(half(0))]))?;
        succeed(cq, 2).await?;
        assert_eq!(mr.read_vec(half(1).start, SIZE)?, text);
    }
    qp.post_send(SendWr::send(0, &[]))?;
    connection.until_disconnected().await?;
    Ok(())
}
