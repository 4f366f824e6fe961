//! The echo server as an async program on tokio, with a task for each of its clients.
//!
//! The descriptor of the completion channel is watched by the runtime; `Cq::wait` with `Wait::Poll`
//! does the rest: it arms, polls again, and takes and acknowledges events.
//!
//! ```sh
//! cargo run --release --example echo_async
//! cargo run --release --example echo_async -- rxe0
//! ```

mod common;

use std::net::Ipv4Addr;
use std::os::fd::OwnedFd;

use common::{Result, Side, contexts, succeeded};
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use verbs_api::connect::Endpoint;
use verbs_api::owned::{Completions, Context, Cq, RecvWr, SendWr};
use verbs_api::{QpType, RcParams, Wait, WcOpcode};

const CLIENTS: u64 = 8;
const MESSAGES: u64 = 200;
const SIZE: usize = 64;

#[tokio::main]
async fn main() -> Result {
    let [here, there] = contexts()?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let address = listener.local_addr()?;
    let (mut servers, mut clients) = (JoinSet::new(), JoinSet::new());
    for _ in 0..CLIENTS {
        clients.spawn(call(there.clone(), TcpStream::connect(address).await?));
        servers.spawn(serve(here.clone(), listener.accept().await?.0));
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

/// The completions of a CQ, for tasks.
struct AsyncCq {
    cq: Cq,
    fd: AsyncFd<OwnedFd>,
}

impl AsyncCq {
    fn new(cq: Cq) -> Result<Self> {
        let fd = cq.channel().ok_or("the CQ has no channel")?.fd()?;
        // SAFETY: an `OwnedFd` is the same open descriptor as long as it lives.
        let fd = unsafe { AsyncFd::register(fd) }?;
        Ok(Self { cq, fd })
    }

    /// Waits for so many completions, all of successes.
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
        loop {
            if let Some(completions) = self.cq.wait(Wait::Poll)? {
                return Ok(completions);
            }
            // The CQ is armed. What comes after this makes the descriptor readable again.
            self.fd.readable().await?.clear_ready();
        }
    }
}

/// Connects with the peer at the other end of the socket. When it returns, both have posted their
/// first receives.
async fn connect(
    side: &Side,
    peer: &mut TcpStream,
    first_receives: impl FnOnce() -> Result,
) -> Result {
    let params = RcParams::default();
    peer.write_all(&side.qp.endpoint(&params)?.to_bytes())
        .await?;
    let mut endpoint = [0; Endpoint::BYTES];
    peer.read_exact(&mut endpoint).await?;
    side.qp.connect(&Endpoint::from_bytes(endpoint), &params)?;
    first_receives()?;
    peer.write_all(b"!").await?;
    peer.read_exact(&mut [0]).await?;
    Ok(())
}

/// The halves of a side's memory.
fn half(wr_id: u64) -> std::ops::Range<usize> {
    let start = wr_id as usize * SIZE;
    start..start + SIZE
}

/// Sends back what comes, until the client says goodbye by an empty message.
async fn serve(context: Context, mut client: TcpStream) -> Result<u64> {
    let side = Side::new(&context, QpType::Rc, 2, 2 * SIZE)?;
    let Side { qp, cq, mr, .. } = &side;
    let cq = AsyncCq::new(cq.clone())?;
    let receive = |n| qp.post_recv(&[RecvWr::new(n, &[mr.sge(half(n))])]);
    connect(&side, &mut client, || Ok((0..2).try_for_each(receive)?)).await?;
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
    Ok(arrived)
}

/// Sends messages one after the other, and checks that each comes back.
async fn call(context: Context, mut server: TcpStream) -> Result {
    let side = Side::new(&context, QpType::Rc, 2, 2 * SIZE)?;
    let Side { qp, cq, mr, .. } = &side;
    let cq = AsyncCq::new(cq.clone())?;
    connect(&side, &mut server, || Ok(())).await?;
    for n in 0..MESSAGES {
        let text = format!("{n:>0$}", SIZE).into_bytes();
        mr.write(half(0).start, &text)?;
        qp.post_recv(&[RecvWr::new(1, &[mr.sge(half(1))])])?;
        qp.post_send(&[SendWr::send(0, &[mr.sge(half(0))])])?;
        cq.succeed(2).await?;
        assert_eq!(mr.read_vec(half(1).start, SIZE)?, text);
    }
    qp.post_send(&[SendWr::send(0, &[])])?;
    cq.succeed(1).await
}
