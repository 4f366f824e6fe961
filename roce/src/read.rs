//! Reading frames.

use core::fmt;

use verbs_api::lab::{PacketOpcode, Syndrome};

use crate::extended::{Aeth, AtomicEth, Data, Deth, Extended, Feth, Operation, Reth, Transport};
use crate::frame::{
    ACK_REQ, BECN, Bth, FECN, Frame, MIGRATED, PAD_SHIFT, Reserved, SOLICITED, VERSION,
};
use crate::icrc::Covered;
use crate::ip::Ip;
use crate::network::{FLOW_LABEL_BITS, Network, NetworkHeaders};

/// Why bytes are not a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReadError {
    /// The bytes end within a header, or before the length in the IP header says.
    TooShort,
    /// More bytes than a UDP datagram can have.
    TooLong,
    /// The version is neither 4 nor 6.
    IpVersion(u8),
    /// The length of an IPv4 header in bytes: with more than 20 it has options, which RoCEv2 does
    /// not allow.
    IpHeaderLength(u8),
    /// The header checksum of IPv4 is wrong.
    HeaderChecksum {
        /// In the header.
        found: u16,
        /// The checksum of the header.
        computed: u16,
    },
    /// A fragment of an IPv4 packet.
    Fragment,
    /// The protocol, or next header, is another than UDP.
    NotUdp(u8),
    /// The UDP destination port is another than [`PORT`](crate::PORT).
    Port(u16),
    /// UDP says another length than IP leaves for it.
    UdpLength {
        /// The length of UDP, in bytes.
        udp: usize,
        /// What IP carries, in bytes.
        ip: usize,
    },
    /// The version of the transport (TVer) is not 0. Receivers drop such packets.
    TransportVersion(u8),
    /// A congestion notification packet (opcode 0x81). It has no frame, and a receiver without
    /// congestion control ignores it. Its ICRC was not checked.
    Cnp,
    /// No named opcode has this number.
    UnknownOpcode(u8),
    /// Payload and pad together are not a multiple of 4 bytes.
    Alignment(usize),
    /// The pad is longer than what is there of payload and pad.
    Pad {
        /// The pad count.
        pad: u8,
        /// Bytes between the headers and the ICRC.
        left: usize,
    },
    /// The ICRC is wrong.
    Icrc {
        /// At the end of the packet.
        found: u32,
        /// The ICRC of the packet; if the identification was not known, for identification 0.
        computed: u32,
    },
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooShort => f.write_str("the packet is cut off"),
            Self::TooLong => f.write_str("too long for a UDP datagram"),
            Self::IpVersion(version) => write!(f, "IP version {version}"),
            Self::IpHeaderLength(length) => write!(f, "IPv4 header of {length} bytes, not 20"),
            Self::HeaderChecksum { found, computed } => {
                write!(f, "IPv4 header checksum {found:#06x}, not {computed:#06x}")
            }
            Self::Fragment => f.write_str("fragment of an IPv4 packet"),
            Self::NotUdp(protocol) => write!(f, "IP protocol {protocol}, not UDP"),
            Self::Port(port) => write!(f, "UDP destination port {port}, not {}", crate::PORT),
            Self::UdpLength { udp, ip } => write!(f, "UDP length {udp} in an IP payload of {ip}"),
            Self::TransportVersion(version) => write!(f, "transport version {version}, not 0"),
            Self::Cnp => f.write_str("congestion notification packet"),
            Self::UnknownOpcode(opcode) => write!(f, "unknown opcode {opcode:#04x}"),
            Self::Alignment(length) => {
                write!(f, "payload and pad of {length} bytes, no multiple of 4")
            }
            Self::Pad { pad, left } => write!(f, "pad of {pad} bytes, but only {left} are left"),
            Self::Icrc { found, computed } => write!(f, "ICRC {found:#010x}, not {computed:#010x}"),
        }
    }
}

impl core::error::Error for ReadError {}

/// A frame that was parsed; its ICRC was not looked at yet.
#[derive(Clone, Copy, Debug)]
pub struct Received<'a> {
    frame: Frame<'a>,
    covered: Covered<'a>,
    /// The ICRC at the end of the packet.
    found: u32,
    /// The identification of IPv4 is unknown: the frame has 0.
    identification_unknown: bool,
}

impl<'a> Received<'a> {
    /// The frame, whatever its ICRC is. What came from a UDP socket over IPv4 has identification 0.
    pub fn frame(&self) -> Frame<'a> {
        self.frame
    }

    /// The frame, if its ICRC is right.
    ///
    /// What came from a UDP socket over IPv4 gets the one identification for which the ICRC is
    /// right. For one of 65536 packets with a random error there is such an identification too. So
    /// a receiver that knows the identifications of its peer, such as 0, compares: that is the full
    /// check.
    ///
    /// # Errors
    /// [`ReadError::Icrc`].
    pub fn verify(self) -> Result<Frame<'a>, ReadError> {
        let (mut frame, found) = (self.frame, self.found);
        let computed = self.covered.icrc();
        let wrong = ReadError::Icrc { found, computed };
        match &mut frame.ip {
            Ip::V4(ip) if self.identification_unknown => {
                let identification = self.covered.identification(found ^ computed);
                ip.identification = identification.ok_or(wrong)?;
            }
            _ if found == computed => {}
            _ => return Err(wrong),
        }
        Ok(frame)
    }
}

impl<'a> Frame<'a> {
    /// Parses a whole IP packet. Bytes behind its end are ignored, since Ethernet pads short
    /// packets.
    ///
    /// # Errors
    /// If it is not a RoCEv2 packet, or one that was cut off ([`ReadError`]).
    pub fn read(ip_packet: &'a [u8]) -> Result<Received<'a>, ReadError> {
        let (network, headers, body) = Network::read(ip_packet)?;
        Self::parse(network, headers, body)
    }

    /// Parses what a UDP socket received: from BTH to the ICRC. `ip` and `source_port` are the
    /// parts of the headers that the socket reports.
    ///
    /// No socket tells the identification, so that in `ip` is ignored; [`Received::verify`] finds
    /// it. DF counts, and the addresses. TOS, TTL and the flow label are for the frame alone, since
    /// the ICRC does not cover them.
    ///
    /// # Errors
    /// If it is not a RoCEv2 packet ([`ReadError`]).
    pub fn read_udp(
        mut ip: Ip,
        source_port: u16,
        udp_payload: &'a [u8],
    ) -> Result<Received<'a>, ReadError> {
        match &mut ip {
            Ip::V4(ip) => ip.identification = 0,
            Ip::V6(ip) => ip.flow_label &= (1 << FLOW_LABEL_BITS) - 1,
        }
        let network = Network {
            ip,
            ip_flag: false,
            source_port,
            udp_checksum: 0,
        };
        let headers = network.headers(udp_payload.len());
        let headers = headers.map_err(|_| ReadError::TooLong)?;
        Ok(Received {
            identification_unknown: matches!(ip, Ip::V4(_)),
            ..Self::parse(network, headers, udp_payload)?
        })
    }

    fn parse(
        network: Network,
        headers: NetworkHeaders,
        udp_payload: &'a [u8],
    ) -> Result<Received<'a>, ReadError> {
        let body = udp_payload.split_last_chunk().ok_or(ReadError::TooShort)?;
        let (body, icrc) = body;
        let (bth, rest) = body.split_first_chunk().ok_or(ReadError::TooShort)?;
        let covered = Covered {
            headers,
            bth: *bth,
            rest,
        };

        let mut reader = Reader(body);
        let [opcode, flags] = reader.array()?;
        let pkey = reader.u16()?;
        let (congestion, dest_qpn) = reader.byte_and_number()?;
        let (ack, psn) = reader.byte_and_number()?;
        match (flags & VERSION, opcode) {
            (0, CNP) => return Err(ReadError::Cnp),
            (0, _) => {}
            (version, _) => return Err(ReadError::TransportVersion(version)),
        }
        let bth = Bth {
            opcode: PacketOpcode::from(u32::from(opcode)),
            solicited: flags & SOLICITED != 0,
            migrated: flags & MIGRATED != 0,
            pkey,
            fecn: congestion & FECN != 0,
            becn: congestion & BECN != 0,
            dest_qpn,
            ack_req: ack & ACK_REQ != 0,
            psn,
        };
        let headers = Extended::of(bth.opcode).ok_or(ReadError::UnknownOpcode(opcode))?;
        let (extended, transport) = headers.read(&mut reader)?;

        let left = reader.0;
        if !left.len().is_multiple_of(4) {
            return Err(ReadError::Alignment(left.len()));
        }
        let pad = flags >> PAD_SHIFT & 3;
        let Some(payload) = left.len().checked_sub(pad.into()) else {
            return Err(ReadError::Pad {
                pad,
                left: left.len(),
            });
        };
        let (payload, pad) = left.split_at(payload);
        let mut reserved = Reserved {
            ip_flag: network.ip_flag,
            bth4: congestion & !(FECN | BECN),
            bth8: ack & !ACK_REQ,
            transport,
            pad: [0; 3],
        };
        reserved.pad[..pad.len()].copy_from_slice(pad);
        Ok(Received {
            frame: Frame {
                ip: network.ip,
                source_port: network.source_port,
                udp_checksum: network.udp_checksum,
                bth,
                extended,
                payload,
                reserved,
            },
            covered,
            found: u32::from_le_bytes(*icrc),
            identification_unknown: false,
        })
    }
}

impl Extended {
    /// These headers with what is in the packet, and the reserved byte of that of the transport.
    fn read(self, reader: &mut Reader<'_>) -> Result<(Self, u8), ReadError> {
        let (transport, reserved) = match self.transport {
            Transport::None => (Transport::None, 0),
            Transport::Deth(_) => {
                let qkey = reader.u32()?;
                let (reserved, src_qpn) = reader.byte_and_number()?;
                (Transport::Deth(Deth { qkey, src_qpn }), reserved)
            }
            Transport::Xrceth { .. } => {
                let (reserved, srqn) = reader.byte_and_number()?;
                (Transport::Xrceth { srqn }, reserved)
            }
        };
        let operation = match self.operation {
            Operation::None => Operation::None,
            Operation::Reth(_) => Operation::Reth(reader.reth()?),
            Operation::AtomicEth(_) => Operation::AtomicEth(AtomicEth {
                va: reader.u64()?,
                rkey: reader.u32()?,
                swap_or_add: reader.u64()?,
                compare: reader.u64()?,
            }),
            Operation::Flush { .. } => Operation::Flush {
                feth: reader.feth()?,
                reth: reader.reth()?,
            },
            Operation::Aeth(_) => Operation::Aeth(reader.aeth()?),
            Operation::AtomicAck { .. } => Operation::AtomicAck {
                aeth: reader.aeth()?,
                original: reader.u64()?,
            },
        };
        let data = match self.data {
            Data::None => Data::None,
            Data::ImmDt(_) => Data::ImmDt(reader.array()?),
            Data::Ieth(_) => Data::Ieth(reader.u32()?),
        };
        let extended = Self {
            transport,
            operation,
            data,
        };
        Ok((extended, reserved))
    }
}

/// The bytes that are still to be read. Numbers have the most significant byte first.
pub(crate) struct Reader<'a>(pub(crate) &'a [u8]);

impl Reader<'_> {
    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], ReadError> {
        let (array, rest) = self.0.split_first_chunk().ok_or(ReadError::TooShort)?;
        self.0 = rest;
        Ok(*array)
    }

    pub(crate) fn u16(&mut self) -> Result<u16, ReadError> {
        self.array().map(u16::from_be_bytes)
    }

    pub(crate) fn u32(&mut self) -> Result<u32, ReadError> {
        self.array().map(u32::from_be_bytes)
    }

    fn u64(&mut self) -> Result<u64, ReadError> {
        self.array().map(u64::from_be_bytes)
    }

    /// A byte and a number of 24 bits, as most headers have them.
    fn byte_and_number(&mut self) -> Result<(u8, u32), ReadError> {
        let word = self.u32()?;
        Ok(((word >> 24) as u8, word & 0xff_ffff))
    }

    fn reth(&mut self) -> Result<Reth, ReadError> {
        Ok(Reth {
            va: self.u64()?,
            rkey: self.u32()?,
            length: self.u32()?,
        })
    }

    fn feth(&mut self) -> Result<Feth, ReadError> {
        let word = self.u32()?;
        Ok(Feth {
            reserved: word >> 6,
            selectivity: (word >> 4 & 3) as u8,
            placement: (word & 0xf) as u8,
        })
    }

    fn aeth(&mut self) -> Result<Aeth, ReadError> {
        let (syndrome, msn) = self.byte_and_number()?;
        let syndrome = Syndrome::from(u32::from(syndrome));
        Ok(Aeth { syndrome, msn })
    }
}

/// The opcode of a congestion notification packet.
const CNP: u8 = 0x81;
