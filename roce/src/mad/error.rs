//! Errors.

use core::fmt;

/// Why bytes are not a message of communication management, or data do not fit into one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MadError {
    /// The number of bytes: of a MAD, not [`MAD`](super::MAD); of an IP CM header, fewer than
    /// [`IP_CM`](super::IP_CM).
    Length(usize),
    /// The version of the header is not 1.
    BaseVersion(u8),
    /// The management class is not 7, communication management.
    Class(u8),
    /// The version of the class is not 2. The answer to a request is a REJ with reason 31.
    ClassVersion(u8),
    /// The method is not 3, Send.
    Method(u8),
    /// No message has this attribute id, or one for alternate paths (LAP, APR), which are not
    /// supported.
    Attribute(u16),
    /// The IP version in an IP CM header is neither 4 nor 6.
    IpVersion(u8),
    /// More private data than there is room for.
    PrivateData {
        /// Their bytes.
        length: usize,
        /// The bytes there is room for.
        room: usize,
    },
}

impl fmt::Display for MadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Length(length) => write!(f, "{length} bytes"),
            Self::BaseVersion(version) => write!(f, "MAD of version {version}, not 1"),
            Self::Class(class) => write!(f, "MAD of class {class:#04x}, not 0x07"),
            Self::ClassVersion(version) => write!(f, "CM of version {version}, not 2"),
            Self::Method(method) => write!(f, "CM method {method:#04x}, not 0x03"),
            Self::Attribute(attribute) => write!(f, "CM attribute {attribute:#06x} is unknown"),
            Self::IpVersion(version) => write!(f, "IP version {version}"),
            Self::PrivateData { length, room } => {
                write!(
                    f,
                    "{length} bytes of private data, but there is room for {room}"
                )
            }
        }
    }
}

impl core::error::Error for MadError {}
