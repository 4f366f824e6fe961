//! Threads that poll, wait or unlock also move packets between the sockets and the fabric.
//!
//! No system call is made with the fabric's lock held.

use core::time::Duration;
use std::sync::atomic::Ordering;
use std::thread;

use verbs_api::AhAttr;

use super::outgoing::Outgoing;
use super::sockets::Sockets;
use crate::address::ip_of;
use crate::device::Outside;
use crate::fabric::Fabric;
use crate::runtime::Runtime;
use crate::runtime::idle::Turn;
use crate::sync::MutexGuard;

/// Times that a thread polls the sockets before it sleeps. Most answers arrive within a few polls,
/// and a wakeup by another thread takes longer.
const POLLS: u32 = 64;

/// How long a thread waits for another one to send.
const LONGEST_WAIT: Duration = Duration::from_secs(1);

impl Runtime {
    /// Whether the network knows that the destination of an address vector is unreachable. The
    /// answer takes system calls, so the caller must not hold the lock.
    pub(crate) fn outside(&self, attr: &AhAttr) -> Outside {
        let network = self.config.network?;
        let grh = attr.grh?;
        // Without a grh there is no address to look up, and a group has no owner.
        if grh.dgid.is_multicast() {
            return None;
        }
        network.unreachable(ip_of(grh.dgid))
    }

    /// Releases the lock, and sends pending output.
    #[inline(always)]
    pub(crate) fn unlock(&self, mut fabric: MutexGuard<'_, Fabric>) {
        if let Some(gateway) = &mut fabric.gateway
            && gateway.has_outgoing()
        {
            let (outgoing, is_crowded) = (gateway.take(), gateway.is_crowded());
            drop(fabric);
            match outgoing {
                Some(outgoing) => self.send(outgoing),
                // Only the other thread may send, or packets would change their order.
                None if is_crowded => self.wait_for_room(),
                None => {}
            }
        }
    }

    /// Sends pending output, and reads the sockets if a queue pair can receive from other
    /// processes. Returns whether a packet arrived.
    pub(crate) fn poll_sockets(&self) -> bool {
        let Some(sockets) = self.sockets.as_ref().filter(|of| of.do_callers_read()) else {
            return false;
        };
        sockets.looks.fetch_add(1, Ordering::SeqCst);
        self.send_more();
        let has_arrived = self.read_sockets(sockets);
        if has_arrived {
            // The packet may need an answer that this thread does not wait to send.
            sockets.call_receiver();
        }
        has_arrived
    }

    /// Reads the sockets. Delayed acknowledgements stay until an answer carries them along.
    pub(super) fn read_sockets(&self, sockets: &Sockets) -> bool {
        self.try_read(sockets) == Some(true)
    }

    /// Reads the sockets, and returns whether packets have arrived. `None` if another thread reads.
    pub(super) fn try_read(&self, sockets: &Sockets) -> Option<bool> {
        let mut has_arrived = false;
        let has_read = sockets.read(|source, address, received| {
            has_arrived = true;
            let take_in = |fabric: &mut Fabric| fabric.take_in(source, address, received);
            self.with(|fabric| fabric.let_arrive(source, take_in));
        });
        has_read.then_some(has_arrived)
    }

    /// Before a thread sleeps: sends pending output, or polls the sockets once more. Returns
    /// whether the lock was released, so the caller must check its condition again.
    pub(crate) fn exchange_packets(
        &self,
        fabric: &mut MutexGuard<'_, Fabric>,
        polls: &mut u32,
    ) -> bool {
        if let Some(outgoing) = fabric.gateway.as_mut().and_then(|of| of.take_all()) {
            MutexGuard::unlocked(fabric, || self.send(outgoing));
            return true;
        }
        let polls_again = self.polls_again(*polls);
        if polls_again {
            MutexGuard::unlocked(fabric, || self.poll_again(polls));
            self.tell_time(fabric);
        }
        polls_again
    }

    /// Whether a thread that has polled this many times polls once more before it sleeps.
    pub(super) fn polls_again(&self, polls: u32) -> bool {
        polls < POLLS && self.sockets.as_ref().is_some_and(Sockets::do_callers_read)
    }

    /// Polls the sockets before a thread sleeps. After the last poll, the receiver thread takes
    /// over.
    pub(super) fn poll_again(&self, polls: &mut u32) {
        self.yield_or_poll(Turn::Others);
        *polls += 1;
        if let Some(sockets) = &self.sockets
            && *polls == POLLS
        {
            sockets.stop_looking();
        }
    }

    /// Sends delayed acknowledgements, and the packets of one queue pair's turn. Returns whether
    /// more turns are wanted.
    pub(super) fn send_more(&self) -> bool {
        let mut fabric = self.fabric.lock();
        let gateway = fabric.gateway.as_mut();
        let are_wanted = gateway.as_ref().is_some_and(|of| !of.turns.is_empty());
        let kept = gateway.and_then(|gateway| gateway.take_all());
        drop(fabric);
        if let Some(kept) = kept {
            self.send(kept);
        }
        are_wanted && self.with(|fabric| fabric.send_turn())
    }

    /// Ends the connections of rdma_cm and sends pending output, unless another thread holds the
    /// lock. Returns whether everything has been sent.
    pub(super) fn send_rest(&self) -> bool {
        let Some(mut fabric) = self.fabric.try_lock() else {
            return false;
        };
        if fabric.gateway.is_none() {
            return true;
        }
        // The kernel does the same when it closes a process's descriptors of rdma_cm.
        fabric.manage(|manager, _| manager.end_all());
        let Some(gateway) = &mut fabric.gateway else {
            return true;
        };
        let rest = gateway.take_all();
        let is_sent = rest.is_none() && gateway.is_all_sent();
        drop(fabric);
        if let Some(rest) = rest {
            self.send(rest);
        }
        is_sent
    }

    /// Sends packets, and those that other threads add while it sends.
    fn send(&self, outgoing: Outgoing) {
        let mut next = Some(outgoing);
        while let (Some(outgoing), Some(sockets)) = (next, &self.sockets) {
            let cuts = sockets.send(&outgoing);
            let mut fabric = self.fabric.lock();
            let gateway = fabric.gateway.as_mut();
            next = gateway.and_then(|gateway| gateway.sent(outgoing, cuts));
        }
    }

    /// Waits up to a second while another thread sends and too much output is pending: a program
    /// cannot post faster than the system sends.
    #[cold]
    fn wait_for_room(&self) {
        self.yield_until(|| {
            let fabric = self.fabric.lock();
            let gateway = fabric.gateway.as_ref();
            gateway.is_none_or(|gateway| !gateway.is_crowded())
        });
    }

    /// Yields to other threads until `is_done`, for a second at most.
    pub(super) fn yield_until(&self, is_done: impl Fn() -> bool) {
        let Some(clock) = &self.clock else { return };
        let end = clock.now().after(LONGEST_WAIT);
        while !is_done() && clock.now() < end {
            thread::yield_now();
        }
    }
}
