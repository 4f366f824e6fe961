//! Packets for other processes, as bytes, until they are sent.

use std::net::IpAddr;

use verbs_roce::Ip;
use verbs_udp::Train as UdpTrain;

use crate::packet::{DropReason, Packet, PortId, frame};

/// Packets for other processes, in the order in which they leave.
#[derive(Default)]
pub(crate) struct Outgoing {
    /// The pending packets.
    pub(super) bytes: Vec<u8>,
    trains: Vec<Train>,
}

/// Bytes of capacity that [`clear`](Outgoing::clear) keeps.
const KEPT: usize = 1 << 20;

/// Packets to one destination, sent in one system call.
struct Train {
    from: PortId,
    ip: Ip,
    /// Bytes of each packet except the last.
    segment: usize,
    packets: usize,
    start: usize,
    /// The last packet is shorter than the others, so none can follow it.
    is_closed: bool,
}

impl Outgoing {
    pub(crate) fn is_empty(&self) -> bool {
        self.trains.is_empty()
    }

    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.shrink_to(KEPT);
        self.trains.clear();
    }

    /// Adds a packet. It joins the last train if that has the same destination, fewer than `most`
    /// packets and room.
    ///
    /// # Errors
    /// If the packet cannot be written.
    pub(crate) fn push(
        &mut self,
        packet: &Packet,
        payload: &[u8],
        most: usize,
    ) -> Result<(), DropReason> {
        let (from, ip, start) = (packet.route.from, frame::ip(packet)?, self.bytes.len());
        if let Some(train) = self.trains.last_mut()
            && (train.from, train.ip) == (from, ip)
            && !train.is_closed
            && train.packets < most
        {
            frame::write_udp(packet, payload, train.packets as u16, &mut self.bytes)?;
            let length = self.bytes.len() - start;
            let whole = self.bytes.len() - train.start;
            if length <= train.segment && whole <= UdpTrain::MOST_BYTES {
                train.packets += 1;
                train.is_closed = length < train.segment;
                return Ok(());
            }
            // Its IP identification is that of a later place in the train.
            self.bytes.truncate(start);
        }
        frame::write_udp(packet, payload, 0, &mut self.bytes)?;
        self.trains.push(Train {
            from,
            ip,
            segment: self.bytes.len() - start,
            packets: 1,
            start,
            is_closed: false,
        });
        Ok(())
    }

    /// The trains in the order in which they are sent, each with its port.
    pub(crate) fn trains(&self) -> impl Iterator<Item = (PortId, UdpTrain<'_>)> {
        let ends = self.trains.iter().skip(1).map(|train| train.start);
        let ends = ends.chain([self.bytes.len()]);
        self.trains.iter().zip(ends).map(|(train, end)| {
            let to: IpAddr = train.ip.destination();
            let udp = UdpTrain {
                segment: train.segment,
                traffic_class: train.ip.traffic_class(),
                hop_limit: train.ip.hop_limit(),
                ..UdpTrain::new(to, &self.bytes[train.start..end])
            };
            (train.from, udp)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use verbs_roce::{Frame, Ipv4};

    use super::*;
    use crate::address::gid_of;
    use crate::packet::{Psn, Route};

    fn packet(psn: u32, to: u8) -> Packet {
        let ip = |host| Ipv4Addr::new(127, 9, 0, host).into();
        Packet {
            route: Route {
                to: Some(PortId::OUTSIDE),
                sgid: gid_of(ip(1)),
                dgid: gid_of(ip(to)),
                ..Route::default()
            },
            first: true,
            last: true,
            psn: Psn::new(psn),
            ..Packet::default()
        }
    }

    /// Packets of one size to one destination leave together, with a shorter one at the end. Each
    /// has the identification of its place, because the ICRC covers it.
    #[test]
    fn packets_leave_in_trains() {
        for (most, expected) in [(64, vec![3, 1, 1, 64, 1]), (1, vec![1; 70])] {
            let mut outgoing = Outgoing::default();
            let mut sizes = vec![(64, 2), (64, 2), (8, 2), (8, 2), (8, 3)];
            sizes.extend([(100, 3); 65]);
            for (psn, (length, to)) in (0..).zip(&sizes) {
                let payload = vec![7; *length];
                outgoing.push(&packet(psn, *to), &payload, most).unwrap();
            }
            let mut psn = 0;
            let mut counts = Vec::new();
            for (_, train) in outgoing.trains() {
                let IpAddr::V4(to) = train.to else {
                    panic!("IPv4")
                };
                for (place, bytes) in (0..).zip(train.bytes.chunks(train.segment)) {
                    let ip = Ipv4::new(Ipv4Addr::new(127, 9, 0, 1), to);
                    let frame = Frame::read_udp(ip.into(), 4791, bytes)
                        .unwrap()
                        .verify()
                        .unwrap();
                    assert_eq!(frame.bth.psn, psn);
                    assert!(matches!(frame.ip, Ip::V4(ip) if ip.identification == place));
                    psn += 1;
                }
                counts.push(train.bytes.chunks(train.segment).len());
            }
            assert_eq!((counts, psn), (expected, sizes.len() as u32));
            outgoing.clear();
            assert!(outgoing.is_empty() && outgoing.trains().next().is_none());
        }
    }
}
