//! UDP sockets for RoCEv2, on Linux.
//!
//! The ICRC of RoCEv2 covers the identification of the IPv4 header, which the kernel chooses. So a
//! [`Socket`] makes it choose what the sender knows: 0, and in a [`Train`] the place of the
//! datagram, from 0. Datagrams are never fragmented. A socket needs no privilege, and is bound to
//! one address and the port of RoCEv2, [`PORT`].
//!
//! Several processes of one user may share an address: each is a [`Tenant`] of it.
//!
//! Sending waits while the socket's buffer is full; receiving never waits. All methods may be
//! called by several threads at once.
//!
//! ```no_run
//! use std::net::Ipv4Addr;
//! use verbs_udp::{Socket, Train};
//!
//! let socket = Socket::bind(Ipv4Addr::LOCALHOST.into())?;
//! socket.send(&Train::new(Ipv4Addr::new(127, 0, 0, 2).into(), b"a datagram"))?;
//! # Ok::<(), std::io::Error>(())
//! ```
#![cfg(target_os = "linux")]
#![deny(unsafe_code)]

mod holder;
mod socket;
#[expect(unsafe_code, reason = "system calls that no safe interface has")]
mod sys;
mod table;
mod tenant;

pub use holder::holder;
pub use socket::{Datagrams, Received, Socket, Train};
pub use table::has_unread;
pub use tenant::Tenant;

/// The UDP port of RoCEv2, at both ends.
pub const PORT: u16 = 4791;

/// The program of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
