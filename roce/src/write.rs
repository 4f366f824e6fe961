//! Writing frames.

use core::fmt;

use verbs_api::lab::PacketOpcode;

use crate::extended::{Aeth, Data, Deth, Extended, Feth, Operation, Reth, Transport};
use crate::frame::{
    ACK_REQ, BECN, BTH_LEN, FECN, Frame, ICRC_LEN, MIGRATED, PAD_SHIFT, SOLICITED, pad_len,
};
use crate::icrc::Covered;
use crate::ip::Ip;
use crate::network::{FLOW_LABEL_BITS, Network, NetworkHeaders};

/// Why a frame is not written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WriteError {
    /// The opcode has no name, so its headers are unknown.
    UnknownOpcode(PacketOpcode),
    /// The frame has other extended headers than its opcode.
    Headers(PacketOpcode),
    /// A value does not fit into its field.
    OutOfRange {
        /// The name of the field.
        field: &'static str,
        /// Its value.
        value: u32,
        /// The bits of the field.
        bits: u32,
    },
    /// The packet is longer than its IP header can say.
    TooLong {
        /// What the header would have to say: of IPv4 the bytes of the packet, of IPv6 those after
        /// the header. It can say 65535.
        length: usize,
    },
}

impl fmt::Display for WriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownOpcode(opcode) => write!(f, "opcode {opcode} has no known headers"),
            Self::Headers(opcode) => write!(f, "{opcode} has other extended headers"),
            Self::OutOfRange { field, value, bits } => {
                write!(f, "{field} {value:#x} does not fit into {bits} bits")
            }
            Self::TooLong { length } => write!(f, "IP length {length} is more than 65535"),
        }
    }
}

impl core::error::Error for WriteError {}

impl Frame<'_> {
    /// Appends the whole IP packet, ICRC included.
    ///
    /// # Errors
    /// If the frame cannot be a packet ([`WriteError`]); `out` is then as it was.
    pub fn write(&self, out: &mut Vec<u8>) -> Result<(), WriteError> {
        let headers = self.check()?;
        out.extend_from_slice(headers.bytes());
        self.write_body(headers, out);
        Ok(())
    }

    /// Appends what a UDP socket sends: from BTH to the ICRC.
    ///
    /// The ICRC is right if the packet gets the IP header and the source port of this frame. On
    /// Linux an unconnected socket with `IP_PMTUDISC_DO` sends IPv4 as
    /// [`Ipv4::new`](crate::Ipv4::new) has it.
    ///
    /// # Errors
    /// The errors of [`write`](Self::write).
    pub fn write_udp(&self, out: &mut Vec<u8>) -> Result<(), WriteError> {
        let headers = self.check()?;
        self.write_body(headers, out);
        Ok(())
    }

    /// The network headers, if the frame can be a packet.
    fn check(&self) -> Result<NetworkHeaders, WriteError> {
        let opcode = self.bth.opcode;
        let headers = Extended::of(opcode).ok_or(WriteError::UnknownOpcode(opcode))?;
        if !headers.has_shape_of(&self.extended) {
            return Err(WriteError::Headers(opcode));
        }
        fits("destination QPN", self.bth.dest_qpn, 24)?;
        fits("PSN", self.bth.psn, 24)?;
        if let Ip::V6(ip) = self.ip {
            fits("flow label", ip.flow_label, FLOW_LABEL_BITS)?;
        }
        match self.extended.transport {
            Transport::None => {}
            Transport::Deth(deth) => fits("source QPN", deth.src_qpn, 24)?,
            Transport::Xrceth { srqn } => fits("SRQ number", srqn, 24)?,
        }
        match self.extended.operation {
            Operation::Aeth(aeth) | Operation::AtomicAck { aeth, .. } => {
                fits("syndrome", aeth.syndrome.into(), 8)?;
                fits("MSN", aeth.msn, 24)?;
            }
            Operation::Flush { feth, .. } => {
                fits("reserved bits of FETH", feth.reserved, 26)?;
                fits("selectivity level", feth.selectivity.into(), 2)?;
                fits("placement type", feth.placement.into(), 4)?;
            }
            Operation::None | Operation::Reth(_) | Operation::AtomicEth(_) => {}
        }
        // A slice is at most half as long as a `usize` can count, so the sum fits.
        let payload = self.payload.len() + pad_len(self.payload.len());
        let network = Network {
            ip: self.ip,
            ip_flag: self.reserved.ip_flag,
            source_port: self.source_port,
            udp_checksum: self.udp_checksum,
        };
        network
            .headers(BTH_LEN + self.extended.len() + payload + ICRC_LEN)
            .map_err(|length| WriteError::TooLong { length })
    }

    /// Appends all from BTH on.
    fn write_body(&self, headers: NetworkHeaders, out: &mut Vec<u8>) {
        let pad = pad_len(self.payload.len());
        let bth = self.bth_bytes(pad as u8);
        out.extend_from_slice(&bth);
        let covered = out.len();
        self.extended.write(self.reserved.transport, out);
        out.extend_from_slice(self.payload);
        out.extend_from_slice(&self.reserved.pad[..pad]);
        let rest = &out[covered..];
        let icrc = Covered { headers, bth, rest }.icrc();
        out.extend_from_slice(&icrc.to_le_bytes());
    }

    /// BTH, of a frame that was checked.
    fn bth_bytes(&self, pad: u8) -> [u8; BTH_LEN] {
        let (bth, reserved) = (&self.bth, &self.reserved);
        let set = |condition: bool, flag: u8| if condition { flag } else { 0 };
        let mut bytes = [0; BTH_LEN];
        bytes[0] = u32::from(bth.opcode) as u8;
        bytes[1] = set(bth.solicited, SOLICITED) | set(bth.migrated, MIGRATED) | pad << PAD_SHIFT;
        bytes[2..4].copy_from_slice(&bth.pkey.to_be_bytes());
        let congestion = set(bth.fecn, FECN) | set(bth.becn, BECN) | reserved.bth4;
        bytes[4..8].copy_from_slice(&byte_and_number(congestion, bth.dest_qpn));
        let ack = set(bth.ack_req, ACK_REQ) | reserved.bth8;
        bytes[8..12].copy_from_slice(&byte_and_number(ack, bth.psn));
        bytes
    }
}

impl Extended {
    /// Their bytes.
    fn len(&self) -> usize {
        let transport = match self.transport {
            Transport::None => 0,
            Transport::Deth(_) => 8,
            Transport::Xrceth { .. } => 4,
        };
        let operation = match self.operation {
            Operation::None => 0,
            Operation::Reth(_) => 16,
            Operation::AtomicEth(_) => 28,
            Operation::Flush { .. } => 20,
            Operation::Aeth(_) => 4,
            Operation::AtomicAck { .. } => 12,
        };
        let data = match self.data {
            Data::None => 0,
            Data::ImmDt(_) | Data::Ieth(_) => 4,
        };
        transport + operation + data
    }

    /// Appends headers that were checked. `reserved` is the byte of that of the transport.
    fn write(&self, reserved: u8, out: &mut Vec<u8>) {
        match self.transport {
            Transport::None => {}
            Transport::Deth(Deth { qkey, src_qpn }) => {
                out.extend_from_slice(&qkey.to_be_bytes());
                out.extend_from_slice(&byte_and_number(reserved, src_qpn));
            }
            Transport::Xrceth { srqn } => out.extend_from_slice(&byte_and_number(reserved, srqn)),
        }
        match self.operation {
            Operation::None => {}
            Operation::Reth(reth) => out.extend_from_slice(&reth.bytes()),
            Operation::AtomicEth(eth) => {
                out.extend_from_slice(&eth.va.to_be_bytes());
                out.extend_from_slice(&eth.rkey.to_be_bytes());
                out.extend_from_slice(&eth.swap_or_add.to_be_bytes());
                out.extend_from_slice(&eth.compare.to_be_bytes());
            }
            Operation::Flush { feth, reth } => {
                out.extend_from_slice(&feth.bytes());
                out.extend_from_slice(&reth.bytes());
            }
            Operation::Aeth(aeth) => out.extend_from_slice(&aeth.bytes()),
            Operation::AtomicAck { aeth, original } => {
                out.extend_from_slice(&aeth.bytes());
                out.extend_from_slice(&original.to_be_bytes());
            }
        }
        match self.data {
            Data::None => {}
            Data::ImmDt(imm) => out.extend_from_slice(&imm),
            Data::Ieth(rkey) => out.extend_from_slice(&rkey.to_be_bytes()),
        }
    }
}

impl Reth {
    fn bytes(&self) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&self.va.to_be_bytes());
        bytes[8..12].copy_from_slice(&self.rkey.to_be_bytes());
        bytes[12..].copy_from_slice(&self.length.to_be_bytes());
        bytes
    }
}

impl Feth {
    fn bytes(&self) -> [u8; 4] {
        let [selectivity, placement] = [self.selectivity, self.placement].map(u32::from);
        (self.reserved << 6 | selectivity << 4 | placement).to_be_bytes()
    }
}

impl Aeth {
    fn bytes(&self) -> [u8; 4] {
        byte_and_number(u32::from(self.syndrome) as u8, self.msn)
    }
}

/// A byte and a number of 24 bits, as most headers have them.
fn byte_and_number(byte: u8, number: u32) -> [u8; 4] {
    (u32::from(byte) << 24 | number).to_be_bytes()
}

fn fits(field: &'static str, value: u32, bits: u32) -> Result<(), WriteError> {
    match value >> bits {
        0 => Ok(()),
        _ => Err(WriteError::OutOfRange { field, value, bits }),
    }
}
