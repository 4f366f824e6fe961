//! IP addresses and ports in messages (annex A11).

use std::net::{IpAddr, Ipv6Addr};

use super::MadError;

/// Bytes of the IP CM header.
pub const IP_CM: usize = 36;

/// The IP CM header: what the private data of [`Req`](super::Req) and [`SidrReq`](super::SidrReq)
/// begin with if rdma_cm made them. What is behind it is the consumer's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IpCm {
    /// The version of the header: major in the upper four bits, minor in the lower ones. There is
    /// only 0.
    pub version: u8,
    /// The port of who asks; that of who is asked is in the service id.
    pub source_port: u16,
    /// The address of who asks.
    pub source: IpAddr,
    /// The address of who is asked.
    pub destination: IpAddr,
}

impl IpCm {
    /// Reads what private data begin with.
    ///
    /// # Errors
    /// [`MadError::IpVersion`]; [`MadError::Length`] for fewer than [`IP_CM`] bytes.
    pub fn read(private_data: &[u8]) -> Result<Self, MadError> {
        let header: Option<&[u8; IP_CM]> = private_data.first_chunk();
        let header = header.ok_or(MadError::Length(private_data.len()))?;
        let [version, ip, port_high, port_low, addresses @ ..] = *header;
        let ip = ip >> 4;
        let address = |at: usize| -> Result<IpAddr, MadError> {
            let address: [u8; 16] = core::array::from_fn(|index| addresses[at + index]);
            let [.., a, b, c, d] = address;
            match ip {
                4 => Ok([a, b, c, d].into()),
                6 => Ok(address.into()),
                _ => Err(MadError::IpVersion(ip)),
            }
        };
        Ok(Self {
            version,
            source_port: u16::from_be_bytes([port_high, port_low]),
            source: address(0)?,
            destination: address(16)?,
        })
    }

    /// What private data begin with. Addresses are of one family; if they are not, that of IPv4 is
    /// written as one of IPv6 (`::ffff:0:0/96`).
    pub fn write(&self) -> [u8; IP_CM] {
        let v4 = self.source.is_ipv4() && self.destination.is_ipv4();
        let address = |address: IpAddr| match address {
            IpAddr::V4(address) if v4 => Ipv6Addr::from_bits(address.to_bits().into()).octets(),
            IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
            IpAddr::V6(address) => address.octets(),
        };
        let mut header = [0; IP_CM];
        header[0] = self.version;
        header[1] = if v4 { 4 << 4 } else { 6 << 4 };
        header[2..4].copy_from_slice(&self.source_port.to_be_bytes());
        header[4..20].copy_from_slice(&address(self.source));
        header[20..].copy_from_slice(&address(self.destination));
        header
    }
}

/// The service id of a port in a port space of rdma_cm, such as 0x0106 (TCP).
pub const fn service_id(ps: u16, port: u16) -> u64 {
    (ps as u64) << 16 | port as u64
}

/// The port space and the port of a service id: the inverse of [`service_id`]. `None` for services
/// that are not of rdma_cm.
pub const fn service_port(service_id: u64) -> Option<(u16, u16)> {
    match service_id >> 32 {
        0 => Some(((service_id >> 16) as u16, service_id as u16)),
        _ => None,
    }
}
