//! The observers of a fabric: the trace, the tap, and the file of packets.

use verbs_api::lab::{PacketView, TappedPacket, TraceEvent, TraceRecord};

use crate::config::SimConfig;
use crate::memory::SharedMemory;
use crate::packet::{Packet, Pcap, frame};
use crate::time::Time;

pub(crate) struct Recorder {
    pub(crate) trace: Option<Vec<TraceRecord>>,
    /// The packets that passed the tap, if there is one. It sees single packets.
    pub(super) tap: Option<Vec<TappedPacket>>,
    pcap: Option<Pcap>,
}

impl Recorder {
    pub(super) fn new(config: &SimConfig) -> Self {
        Self {
            trace: config.trace.then(Vec::new),
            tap: None,
            pcap: config.pcap,
        }
    }

    pub(crate) fn is_traced(&self) -> bool {
        self.trace.is_some()
    }

    /// The number of records in the trace so far.
    pub(crate) fn trace_len(&self) -> usize {
        self.trace.as_ref().map_or(0, Vec::len)
    }

    /// Adds events of nodes to the trace.
    pub(super) fn record(&mut self, at: Time, events: impl IntoIterator<Item = (u32, TraceEvent)>) {
        if let Some(trace) = &mut self.trace {
            let at = at.since_start();
            let records = events.into_iter();
            trace.extend(records.map(|(node, event)| TraceRecord::new(at, node, event)));
        }
    }

    /// The packets that passed the tap since the last call.
    pub(crate) fn tapped(&mut self) -> Vec<TappedPacket> {
        self.tap.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Adds a packet to the tap.
    pub(super) fn tap(&mut self, at: Time, packet: PacketView, is_lost: bool) {
        if let Some(tap) = &mut self.tap {
            tap.push(TappedPacket::new(at.since_start(), packet, is_lost));
        }
    }

    /// Writes a packet to the file of packets.
    pub(super) fn capture(&self, at: Time, packet: &Packet, memory: &SharedMemory) {
        let Some(pcap) = &self.pcap else {
            return;
        };
        // A packet that has no encoding never leaves, so it is not in the file.
        if let Ok(payload) = packet.payload.bytes(&mut memory.lock())
            && let Ok(bytes) = frame::write(packet, &payload)
        {
            pcap.record(at, &bytes);
        }
    }
}
