//! What rdma_cm puts into messages: the addresses of both ends, and a port.

use core::fmt;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// What stands above port space and port in a service id (IBA annex A11).
const PREFIX: u64 = 0x0000_0000_0100_0000;

/// The service id of a port in a port space, such as 0x0106 (`RDMA_PS_TCP`), of which the lower byte counts.
pub const fn service_id(port_space: u16, port: u16) -> u64 {
    PREFIX | (port_space as u64 & 0xff) << 16 | port as u64
}

/// The port space and the port of a service id; `None` if it is of another kind.
pub const fn port_of(service_id: u64) -> Option<(u16, u16)> {
    if service_id & !0x00ff_ffff != PREFIX {
        return None;
    }
    let port_space = 0x0100 | (service_id >> 16 & 0xff) as u16;
    Some((port_space, service_id as u16))
}

/// The header that rdma_cm puts before the private data of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IpCm {
    /// Port of who asks.
    pub source_port: u16,
    /// Address of who asks.
    pub source: IpAddr,
    /// Address that is asked, of the same family.
    pub destination: IpAddr,
}

/// Why private data does not begin with that header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum IpCmError {
    /// It is too short.
    Length(usize),
    /// The version of the header is another than 0.0.
    Version(u8),
    /// The version of IP is neither 4 nor 6.
    IpVersion(u8),
}

impl fmt::Display for IpCmError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Length(length) => write!(f, "the header has 36 bytes, and there are {length}"),
            Self::Version(version) => write!(f, "the header is of version {version:#04x}"),
            Self::IpVersion(version) => write!(f, "there is no IP version {version}"),
        }
    }
}

impl core::error::Error for IpCmError {}

impl IpCm {
    /// Bytes of the header.
    pub const BYTES: usize = 36;

    /// The header at the start of private data.
    ///
    /// # Errors
    /// If it is none of a version that is known.
    pub fn read(bytes: &[u8]) -> Result<Self, IpCmError> {
        let Some(bytes) = bytes.first_chunk::<{ Self::BYTES }>() else {
            return Err(IpCmError::Length(bytes.len()));
        };
        if bytes[0] != 0 {
            return Err(IpCmError::Version(bytes[0]));
        }
        let address: fn(&[u8]) -> IpAddr = match bytes[1] >> 4 {
            4 => ipv4,
            6 => ipv6,
            other => return Err(IpCmError::IpVersion(other)),
        };
        Ok(Self {
            source_port: u16::from_be_bytes([bytes[2], bytes[3]]),
            source: address(&bytes[4..20]),
            destination: address(&bytes[20..]),
        })
    }

    /// Its bytes.
    pub fn write(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[1] = if self.source.is_ipv4() {
            4 << 4
        } else {
            6 << 4
        };
        bytes[2..4].copy_from_slice(&self.source_port.to_be_bytes());
        for (at, address) in [(4, self.source), (20, self.destination)] {
            match address {
                IpAddr::V4(address) => bytes[at + 12..at + 16].copy_from_slice(&address.octets()),
                IpAddr::V6(address) => bytes[at..at + 16].copy_from_slice(&address.octets()),
            }
        }
        bytes
    }
}

/// In the last 4 of 16 bytes.
fn ipv4(bytes: &[u8]) -> IpAddr {
    let [.., a, b, c, d] = bytes else {
        return Ipv4Addr::UNSPECIFIED.into();
    };
    Ipv4Addr::new(*a, *b, *c, *d).into()
}

fn ipv6(bytes: &[u8]) -> IpAddr {
    let octets = bytes.first_chunk::<16>();
    octets
        .map_or(Ipv6Addr::UNSPECIFIED, |octets| Ipv6Addr::from(*octets))
        .into()
}
