//! The store: replicas that keep a log each, and clients that append to all of them.
//!
//! An entry is appended when a majority of the replicas has it. A client announces it by a Send;
//! the replica fetches the value by an RDMA Read, appends it and replies. A client sends a replica
//! no more than it has credits for, and repeats over a new connection what was not answered.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::future::{Future, poll_fn};
use std::net::SocketAddr;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Poll, Waker};
use std::time::Duration;

use verbs_api::cm::{ConnParam, PortSpace};
use verbs_api::owned::{
    Cm, CompChannel, Completion, Connection, Context, Cq, Listener, Mr, Pd, Qp, RecvWr, Request,
    SendWr,
};
use verbs_api::{Access, Arm, QpType, Remote, Result, WcOpcode, WcStatus};

/// A mistake that tests plant. Each is a line of this file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bug {
    /// Waits for an event without a look at what came before it asked for one.
    LostWakeup,
    /// Gives no credit back for an entry that it has already.
    Credits,
    /// Appends an entry again that comes again.
    Double,
    /// Frees a value when a majority has it, although a replica may still read it.
    Deregister,
    /// Takes one replica for a majority.
    SplitBrain,
}

/// What the store needs of the executor that runs it.
pub(crate) trait Runtime<'a>: Clone + 'a {
    fn sleep(&self, time: Duration) -> impl Future<Output = ()>;
    fn spawn(&self, name: String, task: impl Future<Output = Result<()>> + 'a);
}

/// An entry of a log. Each client numbers its own from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) client: u64,
    pub(crate) seq: u64,
    pub(crate) value: u64,
}

pub(crate) type Log = Rc<RefCell<Vec<Entry>>>;

pub(crate) const REPLICAS: usize = 3;

/// Requests that a client may have under way at a replica.
const CREDITS: u64 = 1;

/// Bytes of a request: number, address and key of the value.
const REQUEST: usize = 24;
/// Bytes of a reply: number, credits.
const REPLY: usize = 16;
const VALUE: usize = 8;

/// Looks at a CQ before its user waits for an event, and the time between two.
const SPINS: u32 = 3;
const SPIN: Duration = Duration::from_micros(10);

/// Connections to a replica that fail, before its client gives up, and the time between two.
const CONNECTIONS: u32 = 100;
const PAUSE: Duration = Duration::from_millis(100);

/// A CQ and its channel.
struct Completions<R> {
    rt: R,
    cq: Cq,
    channel: CompChannel,
    bug: Option<Bug>,
}

impl<'a, R: Runtime<'a>> Completions<R> {
    fn new(rt: &R, context: &Context, bug: Option<Bug>) -> Result<Self> {
        let channel = context.create_comp_channel()?;
        let cq = context.cq(64).channel(&channel).create()?;
        let rt = rt.clone();
        Ok(Self {
            rt,
            cq,
            channel,
            bug,
        })
    }

    /// Looks for a while, which costs less than an event, and then waits.
    async fn next(&self) -> Result<Vec<Completion>> {
        for _ in 0..SPINS {
            let found: Vec<_> = self.cq.poll()?.collect();
            if !found.is_empty() {
                return Ok(found);
            }
            self.rt.sleep(SPIN).await;
        }
        loop {
            self.cq.req_notify(Arm::NEXT)?;
            if self.bug == Some(Bug::LostWakeup) {
                let _ = self.channel.next_event().await?;
            }
            let found: Vec<_> = self.cq.poll()?.collect();
            if !found.is_empty() {
                return Ok(found);
            }
            let _ = self.channel.next_event().await?;
        }
    }
}

/// Runs a replica at an address, until the executor ends.
pub(crate) async fn serve<'a, R: Runtime<'a>>(
    rt: R,
    cm: Cm,
    address: SocketAddr,
    log: Log,
    bug: Option<Bug>,
) -> Result<()> {
    let listener = Listener::bind(&cm, PortSpace::Tcp, address)?;
    let mut replica = Replica {
        completions: Completions::new(&rt, listener.context()?, bug)?,
        pd: listener.context()?.alloc_pd()?,
        peers: BTreeMap::new(),
        log,
    };
    loop {
        let completions = replica.completions.next();
        match either(listener.next_request(), completions).await {
            Either::First(request) => replica.admit(request?)?,
            Either::Second(found) => {
                for wc in found? {
                    replica.handle(&wc)?;
                }
            }
        }
    }
}

struct Replica<R> {
    completions: Completions<R>,
    pd: Pd,
    /// The connections, by the numbers of their queue pairs.
    peers: BTreeMap<u32, Peer>,
    log: Log,
}

struct Peer {
    client: u64,
    qp: Qp,
    /// The number of the entry that its last request is about.
    seq: u64,
    /// The request, and the value that is fetched for it.
    request: Mr,
    value: Mr,
    connection: Connection,
}

impl<'a, R: Runtime<'a>> Replica<R> {
    fn admit(&mut self, request: Request) -> Result<()> {
        let client = word(request.private_data(), 0);
        // It would not come again if the last connection were good.
        self.peers.retain(|_, peer| peer.client != client);
        let cq = &self.completions.cq;
        let qp = self.pd.qp(QpType::Rc, cq, cq).max_send_wr(8).max_recv_wr(2);
        let qp = qp.max_inline_data(REPLY as u32).create_for(&request)?;
        let room = self.pd.alloc_mr(REQUEST, Access::LOCAL_WRITE)?;
        // Before the client learns of the connection, and sends.
        qp.post_recv(RecvWr::new(0, &[room.sge(..)]))?;
        let peer = Peer {
            client,
            qp,
            seq: 0,
            request: room,
            value: self.pd.alloc_mr(VALUE, Access::LOCAL_WRITE)?,
            connection: request.accept(&ConnParam::new())?,
        };
        self.peers.insert(peer.qp.num(), peer);
        Ok(())
    }

    fn handle(&mut self, wc: &Completion) -> Result<()> {
        let Some(peer) = self.peers.get_mut(&wc.qp_num) else {
            return Ok(());
        };
        if wc.status != WcStatus::Success {
            let failed = self.peers.remove(&wc.qp_num).expect("it is there");
            let name = format!("goodbye to {}", failed.client);
            self.completions.rt.spawn(name, failed.end());
            return Ok(());
        }
        let (client, bug) = (peer.client, self.completions.bug);
        let mut log = self.log.borrow_mut();
        match wc.opcode {
            WcOpcode::Recv => {
                let request = peer.request.read_vec(0, REQUEST)?;
                peer.seq = word(&request, 0);
                let is_known = |old: &Entry| (old.client, old.seq) == (client, peer.seq);
                if log.iter().any(is_known) && bug != Some(Bug::Double) {
                    return peer.reply(u64::from(bug != Some(Bug::Credits)));
                }
                let (addr, rkey) = (word(&request, 1), word(&request, 2) as u32);
                let value = [peer.value.sge(..)];
                let read = SendWr::rdma_read(0, &value, Remote { addr, rkey });
                Ok(peer.qp.post_send(read)?)
            }
            WcOpcode::RdmaRead => {
                let value = word(&peer.value.read_vec(0, VALUE)?, 0);
                log.push(Entry {
                    client,
                    seq: peer.seq,
                    value,
                });
                peer.reply(1)
            }
            _ => Ok(()),
        }
    }
}

impl Peer {
    /// Ends the connection. It stays until the client knows, so that rdma_cm repeats the message.
    async fn end(self) -> Result<()> {
        // A request may come before the message that establishes the connection.
        if self.connection.until_established().await.is_ok() && self.connection.disconnect().is_ok()
        {
            let _ = self.connection.until_disconnected().await;
        }
        Ok(())
    }

    fn reply(&self, credits: u64) -> Result<()> {
        // The room for the next request.
        self.qp.post_recv(RecvWr::new(0, &[self.request.sge(..)]))?;
        let reply = bytes([self.seq, credits]);
        Ok(self
            .qp
            .post_send(SendWr::send(0, &[]).inline_data(&reply))?)
    }
}

/// A client. It goes on until the executor ends.
pub(crate) struct Client<R>(Rc<Shared<R>>);

struct Shared<R> {
    rt: R,
    cm: Cm,
    id: u64,
    replicas: [SocketAddr; REPLICAS],
    bug: Option<Bug>,
    pd: Pd,
    entries: RefCell<Vec<Value>>,
    /// How many entries each replica has acknowledged.
    acked: RefCell<[usize; REPLICAS]>,
    waiting: RefCell<Vec<Waker>>,
}

/// The value of an entry, as long as a replica may read it.
struct Value {
    remote: Remote,
    region: Option<Mr>,
}

impl<'a, R: Runtime<'a>> Client<R> {
    pub(crate) async fn open(
        rt: R,
        cm: Cm,
        id: u64,
        replicas: [SocketAddr; REPLICAS],
        bug: Option<Bug>,
    ) -> Result<Self> {
        let mut route = cm.route(PortSpace::Tcp, replicas[0]).resolve()?;
        let pd = route.until_resolved().await?.context()?.alloc_pd()?;
        let client = Rc::new(Shared {
            rt: rt.clone(),
            cm,
            id,
            replicas,
            bug,
            pd,
            entries: RefCell::default(),
            acked: RefCell::default(),
            waiting: RefCell::default(),
        });
        for replica in 0..REPLICAS {
            let feed = client.clone().feed(replica);
            rt.spawn(format!("client {id} to {replica}"), feed);
        }
        Ok(Self(client))
    }

    /// Appends an entry. Returns when a majority of the replicas has it.
    pub(crate) async fn append(&self, value: u64) -> Result<()> {
        let Shared { pd, bug, .. } = &*self.0;
        let region = pd.alloc_mr(VALUE, Access::REMOTE_READ)?;
        region.write(0, &bytes([value]))?;
        let (remote, region) = (region.remote(0), Some(region));
        self.0.entries.borrow_mut().push(Value { remote, region });
        self.0.wake();
        let majority = if *bug == Some(Bug::SplitBrain) {
            1
        } else {
            REPLICAS / 2 + 1
        };
        let number = self.0.entries.borrow().len();
        self.0
            .until(|client| client.having(number) >= majority)
            .await;
        let readers = if *bug == Some(Bug::Deregister) {
            majority
        } else {
            REPLICAS
        };
        for (place, value) in self.0.entries.borrow_mut().iter_mut().enumerate() {
            value
                .region
                .take_if(|_| self.0.having(place + 1) >= readers);
        }
        Ok(())
    }

    /// Waits until all replicas have all entries.
    pub(crate) async fn settle(&self) {
        let number = self.0.entries.borrow().len();
        self.0
            .until(|client| client.having(number) == REPLICAS)
            .await;
    }
}

impl<'a, R: Runtime<'a>> Shared<R> {
    /// How many replicas have an entry.
    fn having(&self, number: usize) -> usize {
        let acked = self.acked.borrow();
        acked.iter().filter(|acked| **acked >= number).count()
    }

    async fn until(&self, is_so: impl Fn(&Self) -> bool) {
        poll_fn(|context| {
            if is_so(self) {
                return Poll::Ready(());
            }
            self.waiting.borrow_mut().push(context.waker().clone());
            Poll::Pending
        })
        .await
    }

    fn wake(&self) {
        self.waiting.take().into_iter().for_each(Waker::wake);
    }

    /// Brings all entries to a replica, over one connection after the other.
    async fn feed(self: Rc<Self>, replica: usize) -> Result<()> {
        for _ in 1..CONNECTIONS {
            // What was not acknowledged goes over the next one.
            let _ = self.connected(replica).await;
            self.rt.sleep(PAUSE).await;
        }
        self.connected(replica).await
    }

    async fn connected(&self, replica: usize) -> Result<()> {
        let address = self.replicas[replica];
        let mut route = self.cm.route(PortSpace::Tcp, address).resolve()?;
        let route = route.until_resolved().await?;
        let completions = Completions::new(&self.rt, route.context()?, self.bug)?;
        let qp = self.pd.qp(QpType::Rc, &completions.cq, &completions.cq);
        let qp = qp.max_inline_data(REQUEST as u32).max_recv_wr(2);
        let qp = qp.create_for(&route)?;
        let reply = self.pd.alloc_mr(REPLY, Access::LOCAL_WRITE)?;
        qp.post_recv(RecvWr::new(0, &[reply.sge(..)]))?;
        let id = bytes([self.id]);
        let mut param = ConnParam::new().private_data(&id);
        param.retry_count = 1;
        let connection = route.connect(&param)?;
        connection.until_established().await?;
        let mut credits = CREDITS;
        loop {
            let number = self.acked.borrow()[replica] + 1;
            self.until(|client| client.entries.borrow().len() >= number)
                .await;
            if credits > 0 {
                credits -= 1;
                let Remote { addr, rkey } = self.entries.borrow()[number - 1].remote;
                let request = bytes([number as u64, addr, rkey.into()]);
                qp.post_send(SendWr::send(1, &[]).inline_data(&request))?;
            }
            while self.acked.borrow()[replica] < number {
                let found = match either(connection.until_disconnected(), completions.next()).await
                {
                    Either::First(event) => return event.map(drop),
                    Either::Second(found) => found?,
                };
                for wc in found {
                    if wc.ok()?.opcode == WcOpcode::Recv {
                        let answer = reply.read_vec(0, REPLY)?;
                        qp.post_recv(RecvWr::new(0, &[reply.sge(..)]))?;
                        credits += word(&answer, 1);
                        self.acked.borrow_mut()[replica] = word(&answer, 0) as usize;
                        self.wake();
                    }
                }
            }
        }
    }
}

enum Either<A, B> {
    First(A),
    Second(B),
}

/// What the first of two futures returns that is ready.
async fn either<A, B>(
    first: impl Future<Output = A>,
    second: impl Future<Output = B>,
) -> Either<A, B> {
    let (mut first, mut second) = (pin!(first), pin!(second));
    poll_fn(|context| match first.as_mut().poll(context) {
        Poll::Ready(first) => Poll::Ready(Either::First(first)),
        Poll::Pending => second.as_mut().poll(context).map(Either::Second),
    })
    .await
}

fn word(bytes: &[u8], place: usize) -> u64 {
    let word = bytes
        .chunks(8)
        .nth(place)
        .and_then(|word| word.try_into().ok());
    word.map_or(0, u64::from_le_bytes)
}

fn bytes<const N: usize>(words: [u64; N]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}
