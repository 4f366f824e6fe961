//! What an RC queue pair receives is what its peer sent, once and in order.
//!
//! A receiver listens to the QP that it named when it became ready to receive. Where more than one
//! QP has ever named it, or its number was in use before, packets of another connection can arrive,
//! and nothing is judged. With both ends used for the first time, message after message must be the
//! next; if the sender was reset some may be missing, but none may come twice.

use std::collections::{BTreeSet, VecDeque};

use verbs_api::{Qp, SendOp, SendWr, WcFields, WcFlags, WcOpcode};

use super::map::Map;
use super::memory::Device;
use super::polled::Polled;

/// The connections, and their messages.
#[derive(Debug, Default)]
pub(crate) struct Delivery {
    ends: Map<Qp, End>,
    by_number: Map<Address, Qp>,
    /// All numbers that were ever in use.
    used: BTreeSet<Address>,
}

/// Where a queue pair is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Address {
    pub(crate) device: Device,
    pub(crate) qp_num: u32,
}

/// An RC queue pair.
#[derive(Debug)]
struct End {
    address: Address,
    /// How often it was reset.
    epoch: u32,
    /// No QP had its number before.
    first_of_number: bool,
    /// All QPs that ever named it.
    named_by: BTreeSet<Qp>,
    /// What it sent, from the oldest that may still arrive.
    sent: VecDeque<Message>,
    /// The number of the first of them.
    first: u64,
    /// Some of them may not have been sent.
    unsure: bool,
    listening: Option<Listening>,
    /// How many listened to it.
    listeners: u32,
}

/// The sender that an end receives from.
#[derive(Clone, Copy, Debug)]
struct Listening {
    to: Qp,
    /// The next message.
    next: u64,
    /// None may be missing.
    strict: bool,
}

/// What a receiver can see of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Message {
    length: u64,
    imm_data: Option<[u8; 4]>,
    write: bool,
}

impl Message {
    /// `None` for what takes no receive.
    fn of(wr: &SendWr<'_>) -> Option<Self> {
        let (imm_data, write) = match wr.op {
            SendOp::Send | SendOp::SendWithInv { .. } => (None, false),
            SendOp::SendWithImm { imm_data } => (Some(imm_data), false),
            SendOp::RdmaWriteWithImm { imm_data, .. } => (Some(imm_data), true),
            _ => return None,
        };
        Some(Self {
            length: wr.length(),
            imm_data,
            write,
        })
    }

    /// Whether a completion can be of it, by what is known of both.
    fn is(&self, polled: &Polled) -> bool {
        let wc = &polled.wc;
        let with_imm = wc.wc_flags.contains(WcFlags::WITH_IMM);
        let write = wc.opcode == WcOpcode::RecvRdmaWithImm;
        let same_length = self.length == u64::from(wc.byte_len);
        let same_imm = self.imm_data.is_none_or(|imm| imm == wc.imm_data);
        (same_length || !polled.knows(WcFields::BYTE_LEN))
            && self.imm_data.is_some() == with_imm
            && (same_imm || !polled.knows(WcFields::IMM))
            && self.write == write
    }

    fn show(&self) -> String {
        let kind = if self.write { "write" } else { "send" };
        match self.imm_data {
            Some(imm) => format!("{kind} of {} B with immediate {imm:02x?}", self.length),
            None => format!("{kind} of {} B", self.length),
        }
    }
}

impl Delivery {
    pub(crate) fn made(&mut self, qp: Qp, address: Address) {
        let end = End {
            address,
            epoch: 0,
            first_of_number: self.used.insert(address),
            named_by: BTreeSet::new(),
            sent: VecDeque::new(),
            first: 0,
            unsure: false,
            listening: None,
            listeners: 0,
        };
        self.ends.insert(qp, end);
        self.by_number.insert(address, qp);
    }

    /// A QP that is not of RC got this number.
    pub(crate) fn used(&mut self, address: Address) {
        self.used.insert(address);
    }

    /// Whether a QP and its peer have had no other connection, and are connected for the first
    /// time: no packet of another connection can come to either.
    pub(crate) fn is_first_connection(&self, qp: Qp) -> bool {
        let is_first = |qp, peer| {
            let end: Option<&End> = self.ends.get(&qp);
            end.is_some_and(|end| {
                end.epoch == 0 && end.first_of_number && end.named_by.iter().eq([&peer])
            })
        };
        let listening = self.ends.get(&qp).and_then(|end| end.listening);
        listening.is_some_and(|Listening { to, .. }| is_first(qp, to) && is_first(to, qp))
    }

    pub(crate) fn gone(&mut self, qp: Qp) {
        let Some(end) = self.ends.remove(&qp) else {
            return;
        };
        if self.by_number.get(&end.address) == Some(&qp) {
            self.by_number.remove(&end.address);
        }
        for other in self.ends.values_mut() {
            // What it sent may still arrive, but is not known any more.
            other.listening = other.listening.filter(|listening| listening.to != qp);
        }
    }

    pub(crate) fn reset(&mut self, qp: Qp) {
        if let Some(end) = self.ends.get_mut(&qp) {
            end.epoch += 1;
            end.listening = None;
        }
        for other in self.ends.values_mut() {
            if let Some(listening) = &mut other.listening
                && listening.to == qp
            {
                listening.strict = false;
            }
        }
    }

    /// A QP is ready to receive, and has named this peer; `None` if the peer is unknown.
    pub(crate) fn connected(&mut self, qp: Qp, peer: Option<Address>) {
        let other = peer.and_then(|address| self.by_number.get(&address).copied());
        let Some(end) = self.ends.get_mut(&qp) else {
            return;
        };
        end.listening = None;
        let fresh = end.epoch == 0 && end.first_of_number;
        let Some(to) = other else { return };
        let Some(other) = self.ends.get_mut(&to) else {
            return;
        };
        other.named_by.insert(qp);
        if !fresh {
            return;
        }
        let listening = Listening {
            to,
            next: other.first,
            strict: other.epoch == 0 && other.listeners == 0,
        };
        other.listeners += 1;
        if let Some(end) = self.ends.get_mut(&qp) {
            end.listening = Some(listening);
        }
    }

    /// Two QPs were connected with each other.
    pub(crate) fn connected_both(&mut self, a: Qp, b: Qp) {
        let address = |qp| self.ends.get(&qp).map(|end| end.address);
        let (of_a, of_b) = (address(a), address(b));
        self.connected(a, of_b);
        self.connected(b, of_a);
    }

    /// It is not clear any more what a QP has received.
    pub(crate) fn deafen(&mut self, qp: Qp) {
        if let Some(end) = self.ends.get_mut(&qp) {
            end.listening = None;
        }
    }

    /// A send was posted; `maybe` if it was refused but may have been queued.
    pub(crate) fn sent(&mut self, qp: Qp, wr: &SendWr<'_>, maybe: bool) {
        let Some(end) = self.ends.get_mut(&qp) else {
            return;
        };
        end.unsure |= maybe;
        end.sent.extend(Message::of(wr));
        if end.sent.len() > MOST_MESSAGES {
            end.sent.pop_front();
            end.first += 1;
        }
    }

    /// A receive of the QP's `epoch` has succeeded; `lossy` if others may have been lost. What is
    /// wrong with it.
    pub(crate) fn received(
        &mut self,
        qp: Qp,
        epoch: u32,
        lossy: bool,
        polled: &Polled,
    ) -> Result<(), String> {
        let Some(end) = self.ends.get(&qp) else {
            return Ok(());
        };
        let Some(mut listening) = end.listening.filter(|_| end.epoch == epoch) else {
            return Ok(());
        };
        let to = listening.to;
        let sole = end.named_by.iter().eq([&to]);
        let Some(sender) = self.ends.get_mut(&to).filter(|_| sole) else {
            return Ok(());
        };
        listening.strict &= !lossy && !sender.unsure;
        if listening.next < sender.first {
            // Forgotten: too many were outstanding.
            return Ok(());
        }
        let from = (listening.next - sender.first) as usize;
        let left = sender.sent.range(from.min(sender.sent.len())..);
        // If none may be missing, it is the next.
        let most = if listening.strict { 1 } else { left.len() };
        let found = left.take(most).position(|message| message.is(polled));
        let Some(skipped) = found else {
            let next = match sender.sent.get(from) {
                Some(message) if listening.strict => format!("the next is a {}", message.show()),
                _ => "it has sent no such message that has not arrived".to_string(),
            };
            let count = listening.next + 1;
            let seen = format!("{qp} has received {polled} as message {count} of {to}; {next}");
            return Err(seen);
        };
        listening.next += skipped as u64 + 1;
        if listening.strict {
            // No other QP listens to it.
            while sender.first < listening.next && sender.listeners == 1 {
                sender.sent.pop_front();
                sender.first += 1;
            }
        }
        if let Some(end) = self.ends.get_mut(&qp) {
            end.listening = Some(listening);
        }
        Ok(())
    }
}

/// Messages of one sender that are remembered.
const MOST_MESSAGES: usize = 1 << 16;
