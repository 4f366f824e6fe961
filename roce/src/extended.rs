//! Extended headers, and the table of which opcode has which.

use core::mem::discriminant;

use verbs_api::lab::{PacketClass, PacketOpcode, Syndrome};

/// The headers between BTH and payload: at most one of each kind, in the order of the fields.
///
/// [`Extended::of`] says which ones an opcode has. A frame with others is not written
/// ([`WriteError::Headers`](crate::WriteError::Headers)).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extended {
    /// The header that belongs to the transport.
    pub transport: Transport,
    /// The header that belongs to the operation.
    pub operation: Operation,
    /// The four bytes that go into the completion or invalidate a key.
    pub data: Data,
}

/// The extended header of a transport.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Transport {
    /// None: RC, UC and the responses of XRC.
    #[default]
    None,
    /// UD.
    Deth(Deth),
    /// Requests of XRC.
    Xrceth {
        /// Number of the SRQ, 24 bits.
        srqn: u32,
    },
}

/// The extended header of an operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Operation {
    /// None: Sends, Writes except for their first packet, the middle of a Read response.
    #[default]
    None,
    /// The first packet of a Write, Atomic writes, and Read requests.
    Reth(Reth),
    /// Requests of atomics.
    AtomicEth(AtomicEth),
    /// Flushes: FETH and RETH.
    Flush {
        /// What is done.
        feth: Feth,
        /// Where.
        reth: Reth,
    },
    /// Acknowledgements, and Read responses except for their middle.
    Aeth(Aeth),
    /// Atomic acknowledges: AETH and AtomicAckETH.
    AtomicAck {
        /// The acknowledgement.
        aeth: Aeth,
        /// What was in memory before (AtomicAckETH). A number, not bytes of memory.
        original: u64,
    },
}

/// The extended header that ends a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Data {
    /// None.
    #[default]
    None,
    /// Immediate data, as they are in memory.
    ImmDt([u8; 4]),
    /// The R_Key to invalidate.
    Ieth(u32),
}

/// Datagram extended header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Deth {
    /// Q_Key.
    pub qkey: u32,
    /// Source QP number, 24 bits.
    pub src_qpn: u32,
}

/// RDMA extended header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reth {
    /// Virtual address.
    pub va: u64,
    /// R_Key.
    pub rkey: u32,
    /// Bytes of the whole message.
    pub length: u32,
}

/// Atomic extended header. The operands are numbers, not bytes of memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AtomicEth {
    /// Virtual address.
    pub va: u64,
    /// R_Key.
    pub rkey: u32,
    /// The value to swap in, or to add.
    pub swap_or_add: u64,
    /// The value to compare with. Without meaning for Fetch and add, where senders set 0.
    pub compare: u64,
}

/// Flush extended header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Feth {
    /// The 26 bits before the others. Senders set them to 0, and receivers ignore them.
    pub reserved: u32,
    /// Selectivity level, 2 bits.
    pub selectivity: u8,
    /// Placement type, 4 bits.
    pub placement: u8,
}

/// Acknowledge extended header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Aeth {
    /// Syndrome, 8 bits.
    pub syndrome: Syndrome,
    /// Message sequence number: messages that the responder has completed, 24 bits.
    pub msn: u32,
}

impl Extended {
    /// No extended header.
    pub const NONE: Self = Self {
        transport: Transport::None,
        operation: Operation::None,
        data: Data::None,
    };

    /// The headers that an opcode has, with all fields 0. `None` for an opcode without a name.
    pub fn of(opcode: PacketOpcode) -> Option<Self> {
        use PacketOpcode as Op;
        if matches!(opcode, Op::Unknown(_)) {
            return None;
        }
        let raw = u32::from(opcode);
        let transport = match raw & TRANSPORT {
            UD => Transport::Deth(Deth::default()),
            XRC if PacketClass::Request.has(opcode) => Transport::Xrceth { srqn: 0 },
            _ => Transport::None,
        };
        let aeth = Aeth::default();
        let reth = Operation::Reth(Reth::default());
        let atomic_eth = Operation::AtomicEth(AtomicEth::default());
        let flush = Operation::Flush {
            feth: Feth::default(),
            reth: Reth::default(),
        };
        // RC has every operation, so its names serve for all transports.
        let (operation, data) = match Op::from(raw & !TRANSPORT) {
            Op::RcSendFirst | Op::RcSendMiddle | Op::RcSendLast | Op::RcSendOnly => {
                (Operation::None, Data::None)
            }
            Op::RcSendLastImm | Op::RcSendOnlyImm => (Operation::None, Data::ImmDt([0; 4])),
            Op::RcSendLastInv | Op::RcSendOnlyInv => (Operation::None, Data::Ieth(0)),
            Op::RcWriteFirst | Op::RcWriteOnly => (reth, Data::None),
            Op::RcWriteMiddle | Op::RcWriteLast => (Operation::None, Data::None),
            Op::RcWriteLastImm => (Operation::None, Data::ImmDt([0; 4])),
            Op::RcWriteOnlyImm => (reth, Data::ImmDt([0; 4])),
            Op::RcReadRequest => (reth, Data::None),
            Op::RcReadResponseFirst | Op::RcReadResponseLast | Op::RcReadResponseOnly => {
                (Operation::Aeth(aeth), Data::None)
            }
            Op::RcReadResponseMiddle => (Operation::None, Data::None),
            Op::RcAcknowledge => (Operation::Aeth(aeth), Data::None),
            Op::RcAtomicAcknowledge => (Operation::AtomicAck { aeth, original: 0 }, Data::None),
            Op::RcCompareSwap | Op::RcFetchAdd => (atomic_eth, Data::None),
            Op::RcFlush => (flush, Data::None),
            Op::RcAtomicWrite => (reth, Data::None),
            _ => return None,
        };
        Some(Self {
            transport,
            operation,
            data,
        })
    }

    /// Whether these are the same headers, whatever is in them.
    pub(crate) fn has_shape_of(&self, other: &Self) -> bool {
        discriminant(&self.transport) == discriminant(&other.transport)
            && discriminant(&self.operation) == discriminant(&other.operation)
            && discriminant(&self.data) == discriminant(&other.data)
    }
}

/// The bits of an opcode that are the transport; the operation is in the others.
const TRANSPORT: u32 = 0xe0;
const UD: u32 = 0x60;
const XRC: u32 = 0xa0;
