//! A program of Rust, with the crate `sideway`, which looks libibverbs up when it runs: two
//! threads, each with a device, whose extended queue pairs do atomics and send messages, with
//! events.

use std::error::Error;
use std::ptr::null_mut;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use rdma_mummy_sys::{ibv_ack_cq_events, ibv_get_cq_event, ibv_req_notify_cq};
use sideway::ibverbs::AccessFlags;
use sideway::ibverbs::address::{AddressHandleAttribute, Gid};
use sideway::ibverbs::completion::{
    CompletionChannel, CompletionQueue, ExtendedCompletionQueue, PollCompletionQueueError,
    WorkCompletionStatus,
};
use sideway::ibverbs::device::{DeviceInfo, DeviceList};
use sideway::ibverbs::device_context::Mtu;
use sideway::ibverbs::memory_region::MemoryRegion;
use sideway::ibverbs::queue_pair::{
    ExtendedQueuePair, PostSendGuard, QueuePair, QueuePairAttribute, QueuePairState,
    SendOperationFlags, SetInlineData, SetScatterGatherEntry, WorkRequestFlags,
};

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

const ROUNDS: u64 = 200;
const WORD: u32 = 8;

/// Words of memory that a device reads and writes.
#[derive(Default)]
struct Words {
    /// What the peer counts in.
    counter: AtomicU64,
    /// Where atomics put what was there before.
    before: AtomicU64,
    /// Where messages arrive.
    inbox: AtomicU64,
}

/// What a peer has to know of an end.
struct Address {
    qp_num: u32,
    gid: Gid,
    counter: u64,
    rkey: u32,
}

/// A queue pair of a device, and what it needs.
struct End {
    qp: ExtendedQueuePair,
    cq: Arc<ExtendedCompletionQueue>,
    channel: Arc<CompletionChannel>,
    mr: Arc<MemoryRegion>,
    words: Box<Words>,
    gid: Gid,
    /// Numbers of completed work that is not yet waited for.
    done: Vec<u64>,
}

impl End {
    fn new(number: usize) -> Result<Self> {
        let list = DeviceList::new()?;
        let device = list.get(number).ok_or("too few devices")?;
        assert!(!device.name().is_empty());
        let context = device.open()?;
        let pd = context.alloc_pd()?;
        let channel = context.create_comp_channel()?;
        let cq = context
            .create_cq_builder()
            .setup_cqe(16)
            .setup_comp_channel(&channel, 0)
            .build_ex()?;
        let words = Box::<Words>::default();
        let rights = AccessFlags::LocalWrite | AccessFlags::RemoteAtomic;
        // SAFETY: the words live as long as the region, and are atomics.
        let mr = unsafe { pd.reg_mr(&raw const *words as usize, size_of::<Words>(), rights)? };
        let operations = SendOperationFlags::Send
            | SendOperationFlags::AtomicCompareAndSwap
            | SendOperationFlags::AtomicFetchAndAdd;
        let qp = pd
            .create_qp_builder()
            .setup_max_inline_data(WORD)
            .setup_send_cq(cq.clone())
            .setup_recv_cq(cq.clone())
            .setup_send_ops_flags(operations)
            .build_ex()?;
        let gid = context.query_gid(1, 0)?;
        assert!(
            context
                .query_gid_table()?
                .iter()
                .any(|entry| entry.gid() == gid)
        );
        Ok(Self {
            qp,
            cq,
            channel,
            mr,
            words,
            gid,
            done: Vec::new(),
        })
    }

    fn address(&self) -> Address {
        Address {
            qp_num: self.qp.qp_number(),
            gid: self.gid,
            counter: self.words.counter.as_ptr() as u64,
            rkey: self.mr.rkey(),
        }
    }

    fn connect(&mut self, peer: &Address) -> Result<()> {
        let rights = AccessFlags::LocalWrite | AccessFlags::RemoteAtomic;
        let mut init = QueuePairAttribute::new();
        init.setup_state(QueuePairState::Init)
            .setup_pkey_index(0)
            .setup_port(1)
            .setup_access_flags(rights);
        self.qp.modify(&init)?;
        let mut path = AddressHandleAttribute::new();
        path.setup_port(1)
            .setup_grh_src_gid_index(0)
            .setup_grh_dest_gid(&peer.gid)
            .setup_grh_hop_limit(1);
        let mut ready = QueuePairAttribute::new();
        ready
            .setup_state(QueuePairState::ReadyToReceive)
            .setup_path_mtu(Mtu::Mtu1024)
            .setup_dest_qp_num(peer.qp_num)
            .setup_rq_psn(0)
            .setup_max_dest_read_atomic(1)
            .setup_min_rnr_timer(12)
            .setup_address_vector(&path);
        self.qp.modify(&ready)?;
        let mut send = QueuePairAttribute::new();
        send.setup_state(QueuePairState::ReadyToSend)
            .setup_sq_psn(0)
            .setup_timeout(14)
            .setup_retry_cnt(7)
            .setup_rnr_retry(7)
            .setup_max_read_atomic(1);
        self.qp.modify(&send)?;
        assert_eq!(self.qp.state(), QueuePairState::ReadyToSend);
        Ok(())
    }

    fn post_recv(&mut self) -> Result<()> {
        let (lkey, inbox) = (self.mr.lkey(), self.words.inbox.as_ptr() as u64);
        let mut posting = self.qp.start_post_recv();
        let work = posting.construct_wr(RECEIVE);
        // SAFETY: in the region, which stays.
        unsafe { work.setup_sge(lkey, inbox, WORD) };
        Ok(posting.post()?)
    }

    fn send(&mut self, word: u64) -> Result<()> {
        let flags = WorkRequestFlags::Signaled | WorkRequestFlags::Inline;
        let mut posting = self.qp.start_post_send();
        let work = posting.construct_wr(SEND, flags).setup_send();
        work.setup_inline_data(&word.to_ne_bytes());
        Ok(posting.post()?)
    }

    /// What was in the peer's counter before.
    fn atomic(&mut self, peer: &Address, atomic: Atomic) -> Result<u64> {
        let (lkey, before) = (self.mr.lkey(), self.words.before.as_ptr() as u64);
        let mut posting = self.qp.start_post_send();
        let work = posting.construct_wr(ATOMIC, WorkRequestFlags::Signaled);
        let work = match atomic {
            Atomic::Add(add) => work.setup_atomic_fetch_add(peer.rkey, peer.counter, add),
            Atomic::Swap(from, to) => {
                work.setup_atomic_compare_swap(peer.rkey, peer.counter, from, to)
            }
        };
        // SAFETY: in the region, which stays.
        unsafe { work.setup_sge(lkey, before, WORD) };
        posting.post()?;
        self.wait(&[ATOMIC])?;
        Ok(self.words.before.load(Relaxed))
    }

    /// Waits, with events, until work of each of these numbers is done.
    fn wait(&mut self, expected: &[u64]) -> Result<()> {
        let mut is_armed = false;
        for wr_id in expected {
            let at = loop {
                if let Some(at) = self.done.iter().position(|done| done == wr_id) {
                    break at;
                }
                match self.cq.start_poll() {
                    Ok(completions) => {
                        for completion in completions {
                            assert_eq!(completion.status(), WorkCompletionStatus::Success as u32);
                            self.done.push(completion.wr_id());
                        }
                    }
                    Err(PollCompletionQueueError::CompletionQueueEmpty) => {
                        match is_armed {
                            true => self.next_event(),
                            false => self.arm(),
                        }
                        is_armed = !is_armed;
                    }
                    Err(error) => return Err(error.into()),
                }
            };
            self.done.swap_remove(at);
        }
        Ok(())
    }

    fn arm(&self) {
        // SAFETY: the queue lives.
        assert_eq!(unsafe { ibv_req_notify_cq(self.cq.cq().as_ptr(), 0) }, 0);
    }

    fn next_event(&self) {
        let (mut cq, mut context) = (null_mut(), null_mut());
        // SAFETY: queue and channel live, and every event is acknowledged.
        unsafe {
            let channel = self.channel.comp_channel().as_ptr();
            assert_eq!(ibv_get_cq_event(channel, &mut cq, &mut context), 0);
            assert_eq!(cq, self.cq.cq().as_ptr());
            ibv_ack_cq_events(cq, 1);
        }
    }
}

/// What is done with the counter of the peer.
enum Atomic {
    Add(u64),
    Swap(u64, u64),
}

// Numbers of work.
const RECEIVE: u64 = 1;
const SEND: u64 = 2;
const ATOMIC: u64 = 3;

/// One side: counts at the peer, and then plays ping-pong; the first one serves.
fn side(number: usize, out: Sender<Address>, into: Receiver<Address>) -> Result<()> {
    let mut end = End::new(number)?;
    out.send(end.address())?;
    let peer = into.recv()?;
    end.connect(&peer)?;
    end.post_recv()?;
    // The peer is ready, too.
    out.send(end.address())?;
    into.recv()?;

    for count in 0..ROUNDS {
        assert_eq!(end.atomic(&peer, Atomic::Add(1))?, count);
    }
    assert_eq!(end.atomic(&peer, Atomic::Swap(0, 7))?, ROUNDS);
    assert_eq!(end.atomic(&peer, Atomic::Swap(ROUNDS, 7))?, ROUNDS);
    assert_eq!(end.atomic(&peer, Atomic::Add(0))?, 7);

    for round in 0..ROUNDS {
        if number == 0 {
            end.send(round)?;
            end.wait(&[SEND, RECEIVE])?;
        } else {
            end.wait(&[RECEIVE])?;
        }
        assert_eq!(end.words.inbox.load(Relaxed), round);
        end.post_recv()?;
        if number == 1 {
            end.send(round)?;
            end.wait(&[SEND])?;
        }
    }
    // A peer that is gone would answer nothing.
    out.send(end.address())?;
    into.recv()?;
    assert_eq!(end.words.counter.load(Relaxed), 7);
    Ok(())
}

fn main() -> Result<()> {
    let (to_a, from_b) = channel();
    let (to_b, from_a) = channel();
    let a = thread::spawn(|| side(0, to_b, from_b));
    side(1, to_a, from_a)?;
    a.join().expect("the other side ends")
}
