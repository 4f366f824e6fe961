//! Messages of communication management (IBA chapter 12): what QP 1 of two devices say to each other to connect queue
//! pairs.
//!
//! A message is the payload of a UD SEND_ONLY packet to QP 1, always of [`MAD`] bytes. rdma_cm puts the addresses of
//! both ends before the private data of a request ([`IpCm`], IBA annex A11), and a port into its service id
//! ([`service_id`]).
//!
//! Reserved bits are neither kept nor looked at.

mod field;
mod ip;
mod message;

use core::fmt;

pub use field::PrivateData;
pub use ip::{IpCm, IpCmError, port_of, service_id};
pub use message::{Drep, Dreq, Mra, Path, Rej, Rejected, Rep, Req, Rtu, SidrRep, SidrReq};

/// Bytes of a message.
pub const MAD: usize = 256;

/// Bytes of the header that is common to all.
const HEADER: usize = 24;
/// What its first bytes are: base version, class, class version, method.
const KIND: [u8; 4] = [1, 7, 2, 3];

macro_rules! messages {
    ($( $(#[$meta:meta])* $name:ident($body:ty) = $id:literal, $text:literal; )*) => {
        /// Which message one is: its attribute id.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum CmAttribute {
            $( $(#[$meta])* $name = $id, )*
        }

        impl CmAttribute {
            /// Every message.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// The name in the standard, such as `REQ`.
            pub const fn name(self) -> &'static str {
                match self { $( Self::$name => $text, )* }
            }
        }

        /// What a message says.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum CmMessage {
            $( $(#[$meta])* $name($body), )*
        }

        impl CmMessage {
            /// Which message it is.
            pub const fn attribute(&self) -> CmAttribute {
                match self { $( Self::$name(_) => CmAttribute::$name, )* }
            }

            fn read(attribute: CmAttribute, body: &[u8]) -> Self {
                match attribute { $( CmAttribute::$name => Self::$name(field::Field::get(body, 0, 0)), )* }
            }

            fn write(&self, body: &mut [u8]) {
                match self { $( Self::$name(message) => field::Field::put(message, body, 0, 0), )* }
            }
        }
    };
}

messages! {
    /// Asks for a connection.
    Req(Box<Req>) = 0x10, "REQ";
    /// Asks for more time.
    Mra(Mra) = 0x11, "MRA";
    /// Refuses.
    Rej(Rej) = 0x12, "REJ";
    /// Accepts.
    Rep(Rep) = 0x13, "REP";
    /// Says that its side is ready.
    Rtu(Rtu) = 0x14, "RTU";
    /// Ends a connection.
    Dreq(Dreq) = 0x15, "DREQ";
    /// Answers that.
    Drep(Drep) = 0x16, "DREP";
    /// Asks for a queue pair of datagrams.
    SidrReq(SidrReq) = 0x17, "SIDR_REQ";
    /// Answers that.
    SidrRep(SidrRep) = 0x18, "SIDR_REP";
}

impl fmt::Display for CmAttribute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A message of communication management.
///
/// ```
/// use verbs_roce::mad::{CmMad, CmMessage, Rtu};
///
/// let rtu = Rtu { local_comm_id: 1, remote_comm_id: 2, ..Rtu::default() };
/// let mad = CmMad { transaction: 7, message: CmMessage::Rtu(rtu) };
/// assert_eq!(CmMad::read(&mad.write()), Ok(mad));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CmMad {
    /// Transaction id: chosen by who begins, and repeated by who answers.
    pub transaction: u64,
    /// What it says.
    pub message: CmMessage,
}

/// Why bytes are no message of communication management.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MadError {
    /// They are not [`MAD`] bytes.
    Length(usize),
    /// The base version, the class, its version, or the method is another.
    Kind([u8; 4]),
    /// The attribute is none that is known.
    Attribute(u16),
}

impl fmt::Display for MadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Length(length) => write!(f, "a MAD has 256 bytes, not {length}"),
            Self::Kind(kind) => write!(f, "a MAD of the CM begins with {KIND:?}, not {kind:?}"),
            Self::Attribute(id) => write!(f, "the CM has no attribute {id:#x}"),
        }
    }
}

impl core::error::Error for MadError {}

impl CmMad {
    /// The message that bytes are.
    ///
    /// # Errors
    /// If they are none.
    pub fn read(bytes: &[u8]) -> Result<Self, MadError> {
        let attribute = read_header(bytes)?;
        let (header, body) = bytes.split_at(HEADER);
        Ok(Self {
            transaction: field::Field::get(header, 8, 0),
            message: CmMessage::read(attribute, body),
        })
    }

    /// Its bytes.
    pub fn write(&self) -> [u8; MAD] {
        let mut bytes = [0; MAD];
        let (header, body) = bytes.split_at_mut(HEADER);
        header[..4].copy_from_slice(&KIND);
        field::Field::put(&self.transaction, header, 8, 0);
        field::Field::put(&(self.message.attribute() as u16), header, 16, 0);
        self.message.write(body);
        bytes
    }
}

/// Which message bytes are, if they are one.
pub fn attribute(bytes: &[u8]) -> Option<CmAttribute> {
    read_header(bytes).ok()
}

fn read_header(bytes: &[u8]) -> Result<CmAttribute, MadError> {
    if bytes.len() != MAD {
        return Err(MadError::Length(bytes.len()));
    }
    let kind = [bytes[0], bytes[1], bytes[2], bytes[3]];
    if kind != KIND {
        return Err(MadError::Kind(kind));
    }
    let id = u16::from_be_bytes([bytes[16], bytes[17]]);
    let known = CmAttribute::ALL.iter().find(|of| **of as u16 == id);
    known.copied().ok_or(MadError::Attribute(id))
}
