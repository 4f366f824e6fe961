//! The echo server as an async program on tokio, with a task for each of its clients.
//!
//! The runtime watches descriptors: of completion channels, and of what rdma_cm waits for. Waits
//! with `Wait::Poll` do the rest: `Cq::wait` arms, polls again, and takes and acknowledges events.
//!
//! ```sh
//! cargo run --release --example echo_async
//! cargo run --release --example echo_async -- 192.168.1.7    # an address of a device here
//! ```

mod common;

use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::OwnedFd;

use common::{Result, Side, meeting, succeeded};
use tokio::io::unix::AsyncFd;
use tokio::task::JoinSet;
use verbs_api::cm::{ConnParam, PortSpace};
use verbs_api::owned::{Cm, Completions, Cq, Listener, RecvWr, Request, SendWr};
use verbs_api::{QpType, Wait, WcOpcode};

const CLIENTS: u64 = 8;
const MESSAGES: u64 = 200;
const SIZE: usize = 64;

#[tokio::main]
async fn main() -> Result {
    let (cm, ip) = meeting()?;
    let all = (Ipv4Addr::UNSPECIFIED, 0).into();
    let listener = Listener::bind(&cm, PortSpace::Tcp, all)?;
    let address = SocketAddr::new(ip, listener.local_addr()?.port());
    let (mut servers, mut clients) = (JoinSet::new(), JoinSet::new());
    for _ in 0..CLIENTS {
        clients.spawn(call(cm.clone(), address));
    }
    let requests = watched(listener.fd()?)?;
    for _ in 0..CLIENTS {
        let request = ready(&requests, || listener.get_request(Wait::Poll));
        servers.spawn(serve(request.await?));
    }
    while let Some(done) = clients.join_next().await {
        done??;
    }
    let mut echoed = 0;
    while let Some(done) = servers.join_next().await {
        echoed += done??;
    }
    println!("{echoed} messages of {SIZE} bytes from {CLIENTS} clients were echoed");
    assert_eq!(echoed, CLIENTS * MESSAGES);
    Ok(())
}

/// A descriptor that the runtime watches.
fn watched(fd: OwnedFd) -> Result<AsyncFd<OwnedFd>> {
    // SAFETY: an `OwnedFd` is the same open descriptor as long as it lives.
    Ok(unsafe { AsyncFd::register(fd) }?)
}

/// What a look brings, once there is something to see.
async fn ready<T>(
    fd: &AsyncFd<OwnedFd>,
    mut look: impl FnMut() -> verbs_api::Result<Option<T>>,
) -> Result<T> {
    loop {
        if let Some(found) = look()? {
            return Ok(found);
        }
        // What comes after the look makes the descriptor readable again.
        fd.readable().await?.clear_ready();
    }
}

/// The completions of a CQ, for tasks.
struct AsyncCq {
    cq: Cq,
    fd: AsyncFd<OwnedFd>,
}

impl AsyncCq {
    fn new(cq: &Cq) -> Result<Self> {
        let fd = watched(cq.channel().ok_or("the CQ has no channel")?.fd()?)?;
        Ok(Self { cq: cq.clone(), fd })
    }

    /// Waits for `count` successful completions.
    async fn succeed(&self, mut count: usize) -> Result {
        while count > 0 {
            for wc in self.wait().await?.take(count) {
                succeeded(&wc)?;
                count -= 1;
            }
        }
        Ok(())
    }

    /// The next completions; at least one.
    async fn wait(&self) -> Result<Completions> {
        ready(&self.fd, || self.cq.wait(Wait::Poll)).await
    }
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
    let cq = AsyncCq::new(cq)?;
    let receive = |n| qp.post_recv(&[RecvWr::new(n, &[mr.sge(half(n))])]);
    // Before the client hears of it: a message to a QP without receives would have to be repeated.
    (0..2).try_for_each(receive)?;
    let connection = request.accept(&ConnParam::new())?;
    let events = watched(connection.fd()?)?;
    ready(&events, || connection.established(Wait::Poll)).await?;
    // A reply may be known to have arrived only after the goodbye: the two are of different queues.
    let (mut replies, mut arrived, mut goodbye) = (0, 0, false);
    while !goodbye || arrived < replies {
        for wc in cq.wait().await? {
            succeeded(&wc)?;
            match wc.opcode {
                WcOpcode::Recv if wc.byte_len == 0 => goodbye = true,
                WcOpcode::Recv => {
                    let start = half(wc.wr_id).start;
                    let reply = [mr.sge(start..start + wc.byte_len as usize)];
                    qp.post_send(&[SendWr::send(wc.wr_id, &reply)])?;
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
    let resolved = watched(resolving.fd()?)?;
    let route = ready(&resolved, || resolving.wait(Wait::Poll)).await?;
    let side = Side::of(&route, QpType::Rc, 2, 2 * SIZE)?;
    let Side { qp, cq, mr, .. } = &side;
    let cq = AsyncCq::new(cq)?;
    let connection = route.connect(&ConnParam::new())?;
    let events = watched(connection.fd()?)?;
    ready(&events, || connection.established(Wait::Poll)).await?;
    for n in 0..MESSAGES {
        let text = format!("{n:>0$}", SIZE).into_bytes();
        mr.write(half(0).start, &text)?;
        qp.post_recv(&[RecvWr::new(1, &[mr.sge(half(1))])])?;
        qp.post_send(&[SendWr::send(0, &[mr.sge(half(0))])])?;
        cq.succeed(2).await?;
        assert_eq!(mr.read_vec(half(1).start, SIZE)?, text);
    }
    qp.post_send(&[SendWr::send(0, &[])])?;
    ready(&events, || connection.disconnected(Wait::Poll)).await?;
    Ok(())
}
