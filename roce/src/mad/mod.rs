//! Messages of communication management (CM) in bytes: how queue pairs of two nodes find each
//! other.
//!
//! Each is a management datagram (MAD) of 256 bytes: the payload of a UD SEND_ONLY to QP 1.
//!
//! ```text
//! header, 24 bytes | the fields of the message | private data
//! ```
//!
//! | | |
//! |---|---|
//! | [`CmMad`] | a whole one, read and written |
//! | [`CmMessage`] | what it says: a [`Req`], [`Rep`], [`Rtu`], [`Rej`], [`Mra`], [`Dreq`] or [`Drep`] |
//! | | and for datagrams a [`SidrReq`] or [`SidrRep`] |
//! | [`CmAttribute`], [`attribute`] | which message it is |
//! | [`IpCm`], [`service_id`], [`service_port`] | how rdma_cm puts IP addresses and ports in there |
//!
//! A MAD does not say how long its private data are: the receiver sees all that there is room for,
//! the rest zero. Reserved bits are not kept, and neither are the fields of the reliable datagram
//! transport. A value that has more bits than its field is written without the upper ones.
//!
//! ```
//! use verbs_roce::mad::{CmMad, CmMessage, PrivateData, Rtu};
//!
//! let private_data = PrivateData::new(b"ready")?;
//! let rtu = Rtu { local_comm_id: 1, remote_comm_id: 2, private_data };
//! let mad = CmMad { transaction: 7, message: CmMessage::Rtu(rtu) };
//! assert_eq!(CmMad::read(&mad.write())?, mad);
//! # Ok::<(), verbs_roce::mad::MadError>(())
//! ```
//!
//! Specification: InfiniBand Architecture, volume 1, chapters 12 (messages) and 13 (header), annex
//! A11 (IP addresses).

mod error;
mod field;
mod ip_cm;
mod message;
mod private_data;

use core::fmt;

pub use error::MadError;
pub use ip_cm::{IP_CM, IpCm, service_id, service_port};
pub use message::{Drep, Dreq, Ece, Mra, Path, Rej, Rejected, Rep, Req, Rtu, SidrRep, SidrReq};
pub use private_data::PrivateData;

use field::{Field, Place, place};

/// Bytes of a MAD.
pub const MAD: usize = 256;

/// A message of communication management.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CmMad {
    /// Chosen by who begins; the answers repeat it.
    pub transaction: u64,
    /// What it says.
    pub message: CmMessage,
}

macro_rules! messages {
    ($( $(#[$meta:meta])* $message:ident($content:ty) = $id:literal, $name:literal; )*) => {
        /// Which message: the attribute id of its MAD.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u16)]
        pub enum CmAttribute {
            $( $(#[$meta])* $message = $id, )*
        }

        /// What a MAD of communication management says.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum CmMessage {
            $( $(#[$meta])* $message($content), )*
        }

        impl CmAttribute {
            /// Every message, in the order of its number.
            pub const ALL: &'static [Self] = &[$(Self::$message),*];

            /// The message with this number.
            pub const fn from_u16(raw: u16) -> Option<Self> {
                match raw {
                    $( $id => Some(Self::$message), )*
                    _ => None,
                }
            }

            /// Its name in the standard.
            pub const fn name(self) -> &'static str {
                match self {
                    $( Self::$message => $name, )*
                }
            }
        }

        impl CmMessage {
            /// Which message it is.
            pub const fn attribute(&self) -> CmAttribute {
                match self {
                    $( Self::$message(_) => CmAttribute::$message, )*
                }
            }

            fn read(attribute: CmAttribute, bytes: &[u8; MAD]) -> Self {
                match attribute {
                    $( CmAttribute::$message => Self::$message(Field::get(bytes, &[DATA])), )*
                }
            }

            fn write(&self, bytes: &mut [u8; MAD]) {
                match self {
                    $( Self::$message(message) => message.put(bytes, &[DATA]), )*
                }
            }
        }
    };
}

messages! {
    /// Asks for a connection.
    Req(Box<Req>) = 0x10, "REQ";
    /// Asks to wait for the answer.
    Mra(Mra) = 0x11, "MRA";
    /// Refuses.
    Rej(Rej) = 0x12, "REJ";
    /// Accepts a connection.
    Rep(Rep) = 0x13, "REP";
    /// Is ready to use a connection that was accepted.
    Rtu(Rtu) = 0x14, "RTU";
    /// Ends a connection.
    Dreq(Dreq) = 0x15, "DREQ";
    /// Answers the end.
    Drep(Drep) = 0x16, "DREP";
    /// Asks for a QP of datagrams.
    SidrReq(SidrReq) = 0x17, "SIDR_REQ";
    /// Tells it.
    SidrRep(SidrRep) = 0x18, "SIDR_REP";
}

impl CmMad {
    /// Reads the payload of a packet to QP 1.
    ///
    /// # Errors
    /// If it is not a MAD of communication management ([`MadError`]).
    pub fn read(bytes: &[u8]) -> Result<Self, MadError> {
        let (bytes, attribute) = header(bytes)?;
        Ok(Self {
            transaction: Field::get(bytes, &[TRANSACTION]),
            message: CmMessage::read(attribute, bytes),
        })
    }

    /// The payload of a packet to QP 1.
    pub fn write(&self) -> [u8; MAD] {
        let mut bytes = [0; MAD];
        bytes[..4].copy_from_slice(&[BASE_VERSION, CLASS, CLASS_VERSION, SEND]);
        self.transaction.put(&mut bytes, &[TRANSACTION]);
        (self.message.attribute() as u16).put(&mut bytes, &[ATTRIBUTE]);
        self.message.write(&mut bytes);
        bytes
    }
}

/// Which message these bytes are, if they are a MAD of communication management.
pub fn attribute(bytes: &[u8]) -> Option<CmAttribute> {
    header(bytes).ok().map(|(_, attribute)| attribute)
}

/// The bytes, all of them, and which message they are.
fn header(bytes: &[u8]) -> Result<(&[u8; MAD], CmAttribute), MadError> {
    let bytes: &[u8; MAD] = bytes
        .try_into()
        .map_err(|_| MadError::Length(bytes.len()))?;
    let &[base_version, class, class_version, method, ..] = bytes;
    if base_version != BASE_VERSION {
        return Err(MadError::BaseVersion(base_version));
    }
    if class != CLASS {
        return Err(MadError::Class(class));
    }
    if class_version != CLASS_VERSION {
        return Err(MadError::ClassVersion(class_version));
    }
    if method != SEND {
        return Err(MadError::Method(method));
    }
    let attribute = Field::get(bytes, &[ATTRIBUTE]);
    let attribute = CmAttribute::from_u16(attribute).ok_or(MadError::Attribute(attribute))?;
    Ok((bytes, attribute))
}

impl fmt::Display for CmAttribute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

const BASE_VERSION: u8 = 1;
const CLASS: u8 = 7;
const CLASS_VERSION: u8 = 2;
const SEND: u8 = 3;
const TRANSACTION: Place = place(8, 0..64);
const ATTRIBUTE: Place = place(16, 0..16);
/// What ECE calls its options: the attribute modifier, which means nothing else.
const MODIFIER: Place = place(20, 0..32);
const DATA: Place = place(24, 0..8 * (MAD - 24));
