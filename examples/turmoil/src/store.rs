//! The store over TCP: replicas that keep a log each, and clients that append to all of them.
//!
//! An entry is appended when a majority of the replicas has it. A client sends each replica one
//! entry after the other, and repeats over a new connection what was not answered.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::Notify;
use tokio::task::spawn_local;
use tokio::time::{sleep, timeout};
use turmoil::Result;
use turmoil::net::{TcpListener, TcpStream};

/// A mistake that tests plant. Each is a line of this file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bug {
    /// Appends an entry again that comes again.
    Double,
    /// Takes one replica for a majority.
    SplitBrain,
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

const PORT: u16 = 7471;

/// How long a client waits for a reply, and between two connections.
const PATIENCE: Duration = Duration::from_millis(200);
const PAUSE: Duration = Duration::from_millis(100);

/// Runs a replica, until the simulation ends.
pub(crate) async fn serve(log: Log, bug: Option<Bug>) -> Result {
    let listener = TcpListener::bind(("0.0.0.0", PORT)).await?;
    loop {
        let (stream, _) = listener.accept().await?;
        spawn_local(answer(stream, log.clone(), bug));
    }
}

/// Serves a connection, until it fails. A request that is late, after its client has connected
/// again, is known by its number.
async fn answer(mut stream: TcpStream, log: Log, bug: Option<Bug>) -> Result {
    loop {
        let [client, seq, value] = receive(&mut stream).await?;
        let is_known = |old: &Entry| (old.client, old.seq) == (client, seq);
        if !log.borrow().iter().any(is_known) || bug == Some(Bug::Double) {
            log.borrow_mut().push(Entry { client, seq, value });
        }
        send(&mut stream, [seq]).await?;
    }
}

/// A client. It goes on until the simulation ends.
pub(crate) struct Client(Rc<Shared>);

struct Shared {
    id: u64,
    replicas: [String; REPLICAS],
    bug: Option<Bug>,
    values: RefCell<Vec<u64>>,
    /// How many entries each replica has acknowledged.
    acked: RefCell<[usize; REPLICAS]>,
    changed: Notify,
}

impl Client {
    pub(crate) fn open(id: u64, replicas: [String; REPLICAS], bug: Option<Bug>) -> Self {
        let client = Rc::new(Shared {
            id,
            replicas,
            bug,
            values: RefCell::default(),
            acked: RefCell::default(),
            changed: Notify::new(),
        });
        for replica in 0..REPLICAS {
            spawn_local(client.clone().feed(replica));
        }
        Self(client)
    }

    /// Appends an entry. Returns when a majority of the replicas has it.
    pub(crate) async fn append(&self, value: u64) {
        self.0.values.borrow_mut().push(value);
        self.0.changed.notify_waiters();
        let majority = if self.0.bug == Some(Bug::SplitBrain) {
            1
        } else {
            REPLICAS / 2 + 1
        };
        let number = self.0.values.borrow().len();
        self.0
            .until(|client| client.having(number) >= majority)
            .await;
    }

    /// Waits until all replicas have all entries.
    pub(crate) async fn settle(&self) {
        let number = self.0.values.borrow().len();
        self.0
            .until(|client| client.having(number) == REPLICAS)
            .await;
    }
}

impl Shared {
    /// How many replicas have an entry.
    fn having(&self, number: usize) -> usize {
        let acked = self.acked.borrow();
        acked.iter().filter(|acked| **acked >= number).count()
    }

    async fn until(&self, is_so: impl Fn(&Self) -> bool) {
        loop {
            let changed = self.changed.notified();
            if is_so(self) {
                return;
            }
            changed.await;
        }
    }

    /// Brings all entries to a replica, over one connection after the other.
    async fn feed(self: Rc<Self>, replica: usize) {
        loop {
            // What was not acknowledged goes over the next one.
            let _ = self.connected(replica).await;
            sleep(PAUSE).await;
        }
    }

    async fn connected(&self, replica: usize) -> Result {
        let mut stream = TcpStream::connect((&*self.replicas[replica], PORT)).await?;
        loop {
            let number = self.acked.borrow()[replica] + 1;
            self.until(|client| client.values.borrow().len() >= number)
                .await;
            let value = self.values.borrow()[number - 1];
            send(&mut stream, [self.id, number as u64, value]).await?;
            let [seq] = timeout(PATIENCE, receive(&mut stream)).await??;
            self.acked.borrow_mut()[replica] = seq as usize;
            self.changed.notify_waiters();
        }
    }
}

/// Sends a frame: its length in bytes, and its words.
async fn send<const N: usize>(stream: &mut TcpStream, words: [u64; N]) -> Result {
    let length = (8 * N as u32).to_le_bytes();
    let words = words.iter().flat_map(|word| word.to_le_bytes());
    let frame: Vec<_> = length.into_iter().chain(words).collect();
    Ok(stream.write_all(&frame).await?)
}

async fn receive<const N: usize>(stream: &mut TcpStream) -> Result<[u64; N]> {
    if stream.read_u32_le().await? as usize != 8 * N {
        return Err("a frame of another length".into());
    }
    let mut words = [0; N];
    for word in &mut words {
        *word = stream.read_u64_le().await?;
    }
    Ok(words)
}
