//! RoCEv2 packets in bytes: an InfiniBand packet in UDP over IPv4 or IPv6.
//!
//! ```text
//! IPv4 or IPv6 | UDP | BTH | extended headers | payload | pad | ICRC
//! ```
//!
//! A [`Frame`] is one such packet, typed. It is written as a whole IP packet ([`Frame::write`]) or
//! as what a UDP socket sends ([`Frame::write_udp`]), and read from either ([`Frame::read`],
//! [`Frame::read_udp`]). What is read is [`Received`]: parsed, with its ICRC still to be verified.
//! Bits that mean nothing are kept ([`Reserved`]), so a frame that was read is written back byte
//! for byte.
//!
//! The crate only turns bytes into frames and back: no socket, no clock, and reading does not
//! allocate. It does not judge what the transport judges. Whether a PSN is expected, a payload is
//! as long as the path MTU, or an acknowledgement comes without one, is up to the receiver.
//!
//! ```
//! use std::net::Ipv4Addr;
//! use verbs_api::lab::{PacketOpcode, Syndrome};
//! use verbs_roce::{Aeth, Bth, Extended, Frame, Ipv4, Operation};
//!
//! let ip = Ipv4::new(Ipv4Addr::new(10, 1, 0, 1), Ipv4Addr::new(10, 1, 0, 2));
//! let bth = Bth::new(PacketOpcode::RcAcknowledge, 0x11, 0x3ba82c);
//! let extended = Extended {
//!     operation: Operation::Aeth(Aeth { syndrome: Syndrome::Ack, msn: 1 }),
//!     ..Extended::NONE
//! };
//! let frame = Frame::new(ip.into(), 0xc121, bth, extended, &[]);
//!
//! let mut packet = Vec::new();
//! frame.write(&mut packet)?;
//! assert_eq!(packet.len(), 48);
//! assert_eq!(Frame::read(&packet)?.verify()?, frame);
//!
//! // A packet that was damaged on its way can still be looked at.
//! packet[40] ^= 1;
//! let received = Frame::read(&packet)?;
//! assert_eq!(received.frame().bth.opcode, PacketOpcode::RcAcknowledge);
//! assert!(received.verify().is_err());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The messages that connect queue pairs, in the payload of packets to QP 1, are in module [`mad`].
//!
//! Specifications: InfiniBand Architecture, volume 1, chapter 9 (packets, ICRC) and annex A17
//! (RoCEv2).
#![forbid(unsafe_code)]

mod extended;
mod frame;
mod icrc;
mod ip;
pub mod mad;
mod network;
mod read;
mod write;

pub use extended::{Aeth, AtomicEth, Data, Deth, Extended, Feth, Operation, Reth, Transport};
pub use frame::{Bth, Frame, Reserved};
pub use icrc::icrc;
pub use ip::{Ip, Ipv4, Ipv6};
pub use mad::{CmAttribute, CmMad, CmMessage, IpCm, MadError};
pub use read::{ReadError, Received};
pub use write::WriteError;

/// The UDP destination port of RoCEv2. It counts for the ICRC, so the ICRC of a UDP payload is
/// always made for this port, even if its socket has another one.
pub const PORT: u16 = 4791;

/// The program of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
