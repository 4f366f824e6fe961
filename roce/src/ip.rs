//! The IP header, as far as a frame can choose it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The IP header of a frame: both addresses are of one family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ip {
    /// IPv4, without options.
    V4(Ipv4),
    /// IPv6, without extension headers.
    V6(Ipv6),
}

/// The fields of an IPv4 header. The length and the checksum follow from the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ipv4 {
    /// Source address.
    pub source: Ipv4Addr,
    /// Destination address.
    pub destination: Ipv4Addr,
    /// Type of service: DSCP in bits 7 to 2, ECN in bits 1 and 0. Not in the ICRC.
    pub tos: u8,
    /// Time to live, in hops. Not in the ICRC.
    pub ttl: u8,
    /// Identification. It is in the ICRC.
    pub identification: u16,
    /// The packet must not be fragmented (DF). It is in the ICRC.
    pub dont_fragment: bool,
}

/// The fields of an IPv6 header. The length follows from the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ipv6 {
    /// Source address.
    pub source: Ipv6Addr,
    /// Destination address.
    pub destination: Ipv6Addr,
    /// Traffic class: DSCP in bits 7 to 2, ECN in bits 1 and 0. Not in the ICRC.
    pub traffic_class: u8,
    /// Flow label, 20 bits. Not in the ICRC.
    pub flow_label: u32,
    /// Hop limit. Not in the ICRC.
    pub hop_limit: u8,
}

impl Ipv4 {
    /// A header with TOS 0, TTL 64, identification 0 and DF: what Linux sends from an unconnected
    /// UDP socket with `IP_PMTUDISC_DO`.
    pub const fn new(source: Ipv4Addr, destination: Ipv4Addr) -> Self {
        Self {
            source,
            destination,
            tos: 0,
            ttl: HOPS,
            identification: 0,
            dont_fragment: true,
        }
    }
}

impl Ipv6 {
    /// A header with traffic class 0, flow label 0 and hop limit 64.
    pub const fn new(source: Ipv6Addr, destination: Ipv6Addr) -> Self {
        Self {
            source,
            destination,
            traffic_class: 0,
            flow_label: 0,
            hop_limit: HOPS,
        }
    }
}

impl Ip {
    /// The header of [`Ipv4::new`] or [`Ipv6::new`]. `None` if the addresses are of different
    /// families.
    ///
    /// ```
    /// use std::net::IpAddr;
    /// use verbs_roce::Ip;
    ///
    /// let (a, b) = (IpAddr::from([10, 1, 0, 1]), IpAddr::from([10, 1, 0, 2]));
    /// let ip = Ip::new(a, b).unwrap().with_traffic_class(0x68).with_hop_limit(3);
    /// assert_eq!((ip.source(), ip.destination()), (a, b));
    /// assert_eq!((ip.traffic_class(), ip.hop_limit()), (0x68, 3));
    /// assert_eq!(Ip::new(a, [0u8; 16].into()), None);
    /// ```
    pub const fn new(source: IpAddr, destination: IpAddr) -> Option<Self> {
        match (source, destination) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                Some(Self::V4(Ipv4::new(source, destination)))
            }
            (IpAddr::V6(source), IpAddr::V6(destination)) => {
                Some(Self::V6(Ipv6::new(source, destination)))
            }
            _ => None,
        }
    }

    /// The same header with this TOS or traffic class.
    #[must_use]
    pub const fn with_traffic_class(mut self, traffic_class: u8) -> Self {
        match &mut self {
            Self::V4(ip) => ip.tos = traffic_class,
            Self::V6(ip) => ip.traffic_class = traffic_class,
        }
        self
    }

    /// The same header with this TTL or hop limit.
    #[must_use]
    pub const fn with_hop_limit(mut self, hop_limit: u8) -> Self {
        match &mut self {
            Self::V4(ip) => ip.ttl = hop_limit,
            Self::V6(ip) => ip.hop_limit = hop_limit,
        }
        self
    }

    /// Source address.
    pub const fn source(&self) -> IpAddr {
        match self {
            Self::V4(ip) => IpAddr::V4(ip.source),
            Self::V6(ip) => IpAddr::V6(ip.source),
        }
    }

    /// Destination address.
    pub const fn destination(&self) -> IpAddr {
        match self {
            Self::V4(ip) => IpAddr::V4(ip.destination),
            Self::V6(ip) => IpAddr::V6(ip.destination),
        }
    }

    /// TOS or traffic class.
    pub const fn traffic_class(&self) -> u8 {
        match self {
            Self::V4(ip) => ip.tos,
            Self::V6(ip) => ip.traffic_class,
        }
    }

    /// TTL or hop limit.
    pub const fn hop_limit(&self) -> u8 {
        match self {
            Self::V4(ip) => ip.ttl,
            Self::V6(ip) => ip.hop_limit,
        }
    }
}

impl From<Ipv4> for Ip {
    fn from(ip: Ipv4) -> Self {
        Self::V4(ip)
    }
}

impl From<Ipv6> for Ip {
    fn from(ip: Ipv6) -> Self {
        Self::V6(ip)
    }
}

/// TTL and hop limit of new headers: the default of most systems.
const HOPS: u8 = 64;
