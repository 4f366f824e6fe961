//! Packets as a simulator shows them.

use core::fmt;

use crate::c_enum::c_enum;
use crate::device::Gid;

c_enum! {
    /// BTH opcode: transport in the upper three bits, operation below (IBA 9.2).
    PacketOpcode {
        /// RC SEND First.
        RcSendFirst = 0x00, "RC_SEND_FIRST";
        /// RC SEND Middle.
        RcSendMiddle = 0x01, "RC_SEND_MIDDLE";
        /// RC SEND Last.
        RcSendLast = 0x02, "RC_SEND_LAST";
        /// RC SEND Last with immediate.
        RcSendLastImm = 0x03, "RC_SEND_LAST_IMM";
        /// RC SEND Only.
        RcSendOnly = 0x04, "RC_SEND_ONLY";
        /// RC SEND Only with immediate.
        RcSendOnlyImm = 0x05, "RC_SEND_ONLY_IMM";
        /// RC RDMA WRITE First.
        RcWriteFirst = 0x06, "RC_WRITE_FIRST";
        /// RC RDMA WRITE Middle.
        RcWriteMiddle = 0x07, "RC_WRITE_MIDDLE";
        /// RC RDMA WRITE Last.
        RcWriteLast = 0x08, "RC_WRITE_LAST";
        /// RC RDMA WRITE Last with immediate.
        RcWriteLastImm = 0x09, "RC_WRITE_LAST_IMM";
        /// RC RDMA WRITE Only.
        RcWriteOnly = 0x0a, "RC_WRITE_ONLY";
        /// RC RDMA WRITE Only with immediate.
        RcWriteOnlyImm = 0x0b, "RC_WRITE_ONLY_IMM";
        /// RC RDMA READ Request.
        RcReadRequest = 0x0c, "RC_READ_REQUEST";
        /// RC RDMA READ response First.
        RcReadResponseFirst = 0x0d, "RC_READ_RESPONSE_FIRST";
        /// RC RDMA READ response Middle.
        RcReadResponseMiddle = 0x0e, "RC_READ_RESPONSE_MIDDLE";
        /// RC RDMA READ response Last.
        RcReadResponseLast = 0x0f, "RC_READ_RESPONSE_LAST";
        /// RC RDMA READ response Only.
        RcReadResponseOnly = 0x10, "RC_READ_RESPONSE_ONLY";
        /// RC Acknowledge.
        RcAcknowledge = 0x11, "RC_ACKNOWLEDGE";
        /// RC Atomic acknowledge.
        RcAtomicAcknowledge = 0x12, "RC_ATOMIC_ACKNOWLEDGE";
        /// RC Compare and swap.
        RcCompareSwap = 0x13, "RC_COMPARE_SWAP";
        /// RC Fetch and add.
        RcFetchAdd = 0x14, "RC_FETCH_ADD";
        /// RC SEND Last with invalidate.
        RcSendLastInv = 0x16, "RC_SEND_LAST_INV";
        /// RC SEND Only with invalidate.
        RcSendOnlyInv = 0x17, "RC_SEND_ONLY_INV";
        /// RC FLUSH.
        RcFlush = 0x1c, "RC_FLUSH";
        /// RC ATOMIC WRITE.
        RcAtomicWrite = 0x1d, "RC_ATOMIC_WRITE";
        /// UC SEND First.
        UcSendFirst = 0x20, "UC_SEND_FIRST";
        /// UC SEND Middle.
        UcSendMiddle = 0x21, "UC_SEND_MIDDLE";
        /// UC SEND Last.
        UcSendLast = 0x22, "UC_SEND_LAST";
        /// UC SEND Last with immediate.
        UcSendLastImm = 0x23, "UC_SEND_LAST_IMM";
        /// UC SEND Only.
        UcSendOnly = 0x24, "UC_SEND_ONLY";
        /// UC SEND Only with immediate.
        UcSendOnlyImm = 0x25, "UC_SEND_ONLY_IMM";
        /// UC RDMA WRITE First.
        UcWriteFirst = 0x26, "UC_WRITE_FIRST";
        /// UC RDMA WRITE Middle.
        UcWriteMiddle = 0x27, "UC_WRITE_MIDDLE";
        /// UC RDMA WRITE Last.
        UcWriteLast = 0x28, "UC_WRITE_LAST";
        /// UC RDMA WRITE Last with immediate.
        UcWriteLastImm = 0x29, "UC_WRITE_LAST_IMM";
        /// UC RDMA WRITE Only.
        UcWriteOnly = 0x2a, "UC_WRITE_ONLY";
        /// UC RDMA WRITE Only with immediate.
        UcWriteOnlyImm = 0x2b, "UC_WRITE_ONLY_IMM";
        /// UC SEND Last with invalidate.
        UcSendLastInv = 0x36, "UC_SEND_LAST_INV";
        /// UC SEND Only with invalidate.
        UcSendOnlyInv = 0x37, "UC_SEND_ONLY_INV";
        /// UD SEND Only.
        UdSendOnly = 0x64, "UD_SEND_ONLY";
        /// UD SEND Only with immediate.
        UdSendOnlyImm = 0x65, "UD_SEND_ONLY_IMM";
        /// XRC SEND First.
        XrcSendFirst = 0xa0, "XRC_SEND_FIRST";
        /// XRC SEND Middle.
        XrcSendMiddle = 0xa1, "XRC_SEND_MIDDLE";
        /// XRC SEND Last.
        XrcSendLast = 0xa2, "XRC_SEND_LAST";
        /// XRC SEND Last with immediate.
        XrcSendLastImm = 0xa3, "XRC_SEND_LAST_IMM";
        /// XRC SEND Only.
        XrcSendOnly = 0xa4, "XRC_SEND_ONLY";
        /// XRC SEND Only with immediate.
        XrcSendOnlyImm = 0xa5, "XRC_SEND_ONLY_IMM";
        /// XRC RDMA WRITE First.
        XrcWriteFirst = 0xa6, "XRC_WRITE_FIRST";
        /// XRC RDMA WRITE Middle.
        XrcWriteMiddle = 0xa7, "XRC_WRITE_MIDDLE";
        /// XRC RDMA WRITE Last.
        XrcWriteLast = 0xa8, "XRC_WRITE_LAST";
        /// XRC RDMA WRITE Last with immediate.
        XrcWriteLastImm = 0xa9, "XRC_WRITE_LAST_IMM";
        /// XRC RDMA WRITE Only.
        XrcWriteOnly = 0xaa, "XRC_WRITE_ONLY";
        /// XRC RDMA WRITE Only with immediate.
        XrcWriteOnlyImm = 0xab, "XRC_WRITE_ONLY_IMM";
        /// XRC RDMA READ Request.
        XrcReadRequest = 0xac, "XRC_READ_REQUEST";
        /// XRC RDMA READ response First.
        XrcReadResponseFirst = 0xad, "XRC_READ_RESPONSE_FIRST";
        /// XRC RDMA READ response Middle.
        XrcReadResponseMiddle = 0xae, "XRC_READ_RESPONSE_MIDDLE";
        /// XRC RDMA READ response Last.
        XrcReadResponseLast = 0xaf, "XRC_READ_RESPONSE_LAST";
        /// XRC RDMA READ response Only.
        XrcReadResponseOnly = 0xb0, "XRC_READ_RESPONSE_ONLY";
        /// XRC Acknowledge.
        XrcAcknowledge = 0xb1, "XRC_ACKNOWLEDGE";
        /// XRC Atomic acknowledge.
        XrcAtomicAcknowledge = 0xb2, "XRC_ATOMIC_ACKNOWLEDGE";
        /// XRC Compare and swap.
        XrcCompareSwap = 0xb3, "XRC_COMPARE_SWAP";
        /// XRC Fetch and add.
        XrcFetchAdd = 0xb4, "XRC_FETCH_ADD";
        /// XRC SEND Last with invalidate.
        XrcSendLastInv = 0xb6, "XRC_SEND_LAST_INV";
        /// XRC SEND Only with invalidate.
        XrcSendOnlyInv = 0xb7, "XRC_SEND_ONLY_INV";
        /// XRC FLUSH.
        XrcFlush = 0xbc, "XRC_FLUSH";
    }
}

/// Opcodes that belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum PacketClass {
    /// All packets of a requester: Sends, Writes, Read requests, atomics, flushes, datagrams.
    Request,
    /// All packets of a responder: acknowledgements, read responses, atomic acknowledges.
    Response,
    /// Sends and datagrams, each of their packets.
    Send,
    /// RDMA Writes, each of their packets.
    Write,
    /// Requests of atomics, atomic writes included.
    Atomic,
    /// Acknowledgements and NAKs; not the atomic acknowledge, which brings data.
    Acknowledge,
    /// Read responses, each of their packets.
    ReadResponse,
}

impl PacketClass {
    /// Every class.
    pub const ALL: &'static [Self] = &[
        Self::Request,
        Self::Response,
        Self::Send,
        Self::Write,
        Self::Atomic,
        Self::Acknowledge,
        Self::ReadResponse,
    ];

    /// The name, such as `read_response`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Request => "request",
            Self::Response => "response",
            Self::Send => "send",
            Self::Write => "write",
            Self::Atomic => "atomic",
            Self::Acknowledge => "acknowledge",
            Self::ReadResponse => "read_response",
        }
    }

    /// Whether an opcode is of this class. An opcode without a name is in no class.
    pub fn has(self, opcode: PacketOpcode) -> bool {
        if matches!(opcode, PacketOpcode::Unknown(_)) {
            return false;
        }
        let operation = u32::from(opcode) & 0x1f;
        let is_response = (0x0d..=0x12).contains(&operation);
        match self {
            Self::Request => !is_response,
            Self::Response => is_response,
            Self::Send => matches!(operation, 0x00..=0x05 | 0x16 | 0x17),
            Self::Write => (0x06..=0x0b).contains(&operation),
            Self::Atomic => matches!(operation, 0x13 | 0x14 | 0x1d),
            Self::Acknowledge => operation == 0x11,
            Self::ReadResponse => (0x0d..=0x10).contains(&operation),
        }
    }
}

impl fmt::Display for PacketClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

c_enum! {
    /// Message of communication management: the attribute id of its MAD (IBA 12.6).
    CmMessage {
        /// Asks for a connection.
        Req = 0x10, "REQ";
        /// Asks to wait for the answer.
        Mra = 0x11, "MRA";
        /// Refuses.
        Rej = 0x12, "REJ";
        /// Accepts a connection.
        Rep = 0x13, "REP";
        /// Is ready to use a connection that was accepted.
        Rtu = 0x14, "RTU";
        /// Ends a connection.
        Dreq = 0x15, "DREQ";
        /// Answers the end.
        Drep = 0x16, "DREP";
        /// Asks for a QP of datagrams.
        SidrReq = 0x17, "SIDR_REQ";
        /// The answer to a SIDR_REQ.
        SidrRep = 0x18, "SIDR_REP";
    }
}

c_enum! {
    /// Syndrome of an acknowledgement: its kind in bits 5 and 6, a code below (IBA 9.7.5.2).
    Syndrome {
        /// Positive.
        Ack = 0x1f, "ACK";
        /// A gap in the PSNs.
        NakPsnSequence = 0x60, "NAK_PSN_SEQUENCE";
        /// Invalid request.
        NakInvalidRequest = 0x61, "NAK_INVALID_REQUEST";
        /// Remote access error.
        NakRemoteAccess = 0x62, "NAK_REMOTE_ACCESS";
        /// Remote operational error.
        NakRemoteOperation = 0x63, "NAK_REMOTE_OPERATION";
    }
}

impl Syndrome {
    /// Receiver not ready; `timer` is the code of the wait asked for, 0 to 31 (TMR-06).
    pub const fn rnr(timer: u8) -> Self {
        Self::Unknown(0x20 | (timer & 0x1f) as u32)
    }

    /// The code of the wait that it asks for, if this is a receiver-not-ready NAK.
    pub const fn rnr_timer(self) -> Option<u8> {
        match self {
            Self::Unknown(raw) if raw & 0x60 == 0x20 => Some((raw & 0x1f) as u8),
            _ => None,
        }
    }
}

/// A packet on a link, header fields only. The default, for backends to fill in, is all zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PacketView {
    /// Source GID.
    pub sgid: Gid,
    /// Destination GID.
    pub dgid: Gid,
    /// Operation.
    pub opcode: PacketOpcode,
    /// Destination QP number.
    pub dest_qpn: u32,
    /// Packet sequence number, 24 bits.
    pub psn: u32,
    /// Sequence numbers that the packet takes: 1, or more if a whole message travels as one packet.
    pub psn_span: u32,
    /// P_Key.
    pub pkey: u16,
    /// The sender asks for an acknowledgement.
    pub ack_req: bool,
    /// The solicited event bit.
    pub solicited: bool,
    /// Payload bytes.
    pub payload: u64,
    /// Syndrome, of acknowledgements.
    pub syndrome: Option<Syndrome>,
    /// Message sequence number, 24 bits, of packets with an AETH: how many requests the responder
    /// has completed. Acknowledgements, atomic acknowledgements and read responses, except middle
    /// ones, have it.
    pub msn: Option<u32>,
    /// Source QP number, of datagrams.
    pub src_qpn: Option<u32>,
    /// Number of the SRQ that a request of XRC names.
    pub srqn: Option<u32>,
    /// Message of communication management, of datagrams to QP 1.
    pub cm: Option<CmMessage>,
}

impl fmt::Display for PacketView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} to qp {:#x} psn {:#x}",
            self.opcode, self.dest_qpn, self.psn
        )?;
        if self.psn_span > 1 {
            write!(f, "+{}", self.psn_span)?;
        }
        if let Some(message) = self.cm {
            write!(f, " {message}")?;
        }
        match self.syndrome {
            Some(syndrome) => match syndrome.rnr_timer() {
                Some(timer) => write!(f, " RNR_NAK({timer})")?,
                None => write!(f, " {syndrome}")?,
            },
            None => write!(f, " {} B", self.payload)?,
        }
        if self.ack_req {
            f.write_str(" ack_req")?;
        }
        if self.solicited {
            f.write_str(" solicited")?;
        }
        Ok(())
    }
}

/// A packet that a tap has seen, and its outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TappedPacket {
    /// When it was sent.
    pub at: core::time::Duration,
    /// The packet.
    pub packet: PacketView,
    /// The packet never arrived: a fault rule lost it, or a link or port was down.
    pub dropped: bool,
}

impl TappedPacket {
    /// A packet that was sent at this time, for backends.
    pub const fn new(at: core::time::Duration, packet: PacketView, dropped: bool) -> Self {
        Self {
            at,
            packet,
            dropped,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each opcode is a request or a response, and of at most one class within.
    #[test]
    fn classes_divide_the_opcodes() {
        for opcode in PacketOpcode::ALL.iter().copied() {
            let of = |class: &&PacketClass| class.has(opcode);
            let classes: Vec<_> = PacketClass::ALL.iter().filter(of).collect();
            let sides = [PacketClass::Request, PacketClass::Response];
            let sides = sides.iter().filter(|side| classes.contains(side)).count();
            assert_eq!(sides, 1, "{opcode}: {classes:?}");
            let alone = ["READ_REQUEST", "ATOMIC_ACKNOWLEDGE", "FLUSH"];
            let alone = alone.iter().any(|name| opcode.name().ends_with(name));
            assert_eq!(classes.len(), if alone { 1 } else { 2 }, "{opcode}");
            for (word, class) in [
                ("_SEND_", PacketClass::Send),
                ("_WRITE_", PacketClass::Write),
                ("_READ_RESPONSE_", PacketClass::ReadResponse),
            ] {
                assert_eq!(opcode.name().contains(word), class.has(opcode), "{opcode}");
            }
        }
    }
    #[test]
    fn a_message_of_communication_management_is_shown() {
        let mut packet = PacketView {
            opcode: PacketOpcode::UdSendOnly,
            dest_qpn: 1,
            payload: 256,
            ..PacketView::default()
        };
        assert_eq!(packet.to_string(), "UD_SEND_ONLY to qp 0x1 psn 0x0 256 B");
        packet.cm = Some(CmMessage::Rep);
        assert_eq!(
            packet.to_string(),
            "UD_SEND_ONLY to qp 0x1 psn 0x0 REP 256 B"
        );
    }
}
