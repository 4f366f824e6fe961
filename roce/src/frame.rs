//! One RoCEv2 packet, typed.

use verbs_api::lab::PacketOpcode;

use crate::extended::Extended;
use crate::ip::Ip;

/// One RoCEv2 packet, from the IP header to the payload. Lengths, pad, the checksum of the IPv4
/// header and the ICRC follow from it.
///
/// Fields that are narrower than their type say how wide they are; a value that does not fit is
/// refused when the frame is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// The IP header.
    pub ip: Ip,
    /// UDP source port: entropy for the choice of a path. 0xc000 to 0xffff are recommended.
    pub source_port: u16,
    /// UDP checksum, as found; 0 means none. It is not checked, not computed, and not in the ICRC.
    pub udp_checksum: u16,
    /// The base transport header.
    pub bth: Bth,
    /// The extended headers; the opcode decides which.
    pub extended: Extended,
    /// The payload, without pad.
    pub payload: &'a [u8],
    /// Bits without meaning.
    pub reserved: Reserved,
}

impl<'a> Frame<'a> {
    /// A frame without a UDP checksum, and with all reserved bits 0.
    pub const fn new(
        ip: Ip,
        source_port: u16,
        bth: Bth,
        extended: Extended,
        payload: &'a [u8],
    ) -> Self {
        Self {
            ip,
            source_port,
            udp_checksum: 0,
            bth,
            extended,
            payload,
            reserved: Reserved::ZERO,
        }
    }
}

/// Base transport header, without what follows from the frame: the pad count, and the version,
/// which is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bth {
    /// Operation. Those without a name cannot be written or read.
    pub opcode: PacketOpcode,
    /// The receiver's completion is solicited (SE).
    pub solicited: bool,
    /// Migration state is "migrated" (M). Receivers without path migration ignore it.
    pub migrated: bool,
    /// P_Key.
    pub pkey: u16,
    /// Forward congestion notification. Not in the ICRC.
    pub fecn: bool,
    /// Backward congestion notification. Not in the ICRC.
    pub becn: bool,
    /// Destination QP number, 24 bits.
    pub dest_qpn: u32,
    /// The sender asks for an acknowledgement (A).
    pub ack_req: bool,
    /// Packet sequence number, 24 bits.
    pub psn: u32,
}

impl Bth {
    /// A header as hardware sends it, with the default P_Key (0xffff), migrated, and every other
    /// flag off.
    pub const fn new(opcode: PacketOpcode, dest_qpn: u32, psn: u32) -> Self {
        Self {
            opcode,
            solicited: false,
            migrated: true,
            pkey: 0xffff,
            fecn: false,
            becn: false,
            dest_qpn,
            ack_req: false,
            psn,
        }
    }
}

/// The bits of a packet that mean nothing: reserved ones, and the content of the pad.
///
/// Senders set them to 0, and receivers ignore them. A frame that is read has them as they were
/// found, since the ICRC covers most of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reserved {
    /// The first flag of IPv4.
    pub(crate) ip_flag: bool,
    /// Lower six bits of byte 4 of BTH. Not in the ICRC.
    pub(crate) bth4: u8,
    /// Lower seven bits of byte 8 of BTH.
    pub(crate) bth8: u8,
    /// The byte before the number in DETH or XRCETH.
    pub(crate) transport: u8,
    /// As many bytes as the pad has, then 0.
    pub(crate) pad: [u8; 3],
}

impl Reserved {
    /// All bits 0.
    pub const ZERO: Self = Self {
        ip_flag: false,
        bth4: 0,
        bth8: 0,
        transport: 0,
        pad: [0; 3],
    };

    /// With these seven bits of byte 8 of BTH, behind the request for an acknowledgement.
    #[must_use]
    pub const fn with_bth8(self, bits: u8) -> Self {
        let bth8 = bits & 0x7f;
        Self { bth8, ..self }
    }

    /// The seven bits of byte 8 of BTH behind the request for an acknowledgement.
    pub const fn bth8(self) -> u8 {
        self.bth8
    }
}

/// Bytes of BTH.
pub(crate) const BTH_LEN: usize = 12;
/// Bytes of the ICRC.
pub(crate) const ICRC_LEN: usize = 4;
/// BTH, byte 1.
pub(crate) const SOLICITED: u8 = 1 << 7;
pub(crate) const MIGRATED: u8 = 1 << 6;
pub(crate) const PAD_SHIFT: u8 = 4;
pub(crate) const VERSION: u8 = 0xf;
/// BTH, byte 4.
pub(crate) const FECN: u8 = 1 << 7;
pub(crate) const BECN: u8 = 1 << 6;
/// BTH, byte 8.
pub(crate) const ACK_REQ: u8 = 1 << 7;

/// Bytes of pad after a payload of this length.
pub(crate) fn pad_len(payload: usize) -> usize {
    payload.wrapping_neg() % 4
}
