//! Extended reliable connections: domains of queue pairs and shared receive queues that the
//! contexts of a device share.
//!
//! A connection leads from a queue pair of [`QpType::XrcSend`](crate::QpType::XrcSend), which has
//! no receive queue, to one of [`QpType::XrcRecv`](crate::QpType::XrcRecv), which has neither queue
//! and lives in a domain. Each message says which SRQ of that domain it is for
//! ([`SendWr::to_srq`](crate::SendWr::to_srq)), so that one connection reaches all processes of a
//! host.

use std::path::Path;

use crate::handle::{Cq, Xrcd};

/// Which XRC domain to open (`struct ibv_xrcd_init_attr`).
///
/// A domain is private to those who have its handle, or is found by a file, whose content means
/// nothing. C takes a descriptor of the file, and flags; this is a path instead:
///
/// - On hardware the file is opened for reading; [`create`](Self::create) makes it if it does not
///   exist. All paths of one inode name the same domain, in all processes. The file stays.
/// - The simulator touches no file: equal paths name the same file.
///
/// ```
/// use std::path::Path;
/// use verbs_api::XrcdInit;
///
/// let found = XrcdInit::of(Path::new("/tmp/domain"));
/// assert!(found.file.is_some() && !found.create);
/// let made = found.create().exclusive();
/// assert!(made.create && made.exclusive);
/// assert_eq!(XrcdInit::private().file, None);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct XrcdInit<'a> {
    /// The file that names it, or none: then it is a new one (`fd` of -1).
    pub file: Option<&'a Path>,
    /// Make it, if the file names none yet (`O_CREAT`).
    pub create: bool,
    /// Fail if the file names one already (`O_EXCL`). It has an effect only with `create`.
    pub exclusive: bool,
}

impl XrcdInit<'static> {
    /// A new domain that no other handle names.
    pub const fn private() -> Self {
        Self {
            file: None,
            create: true,
            exclusive: false,
        }
    }
}

impl<'a> XrcdInit<'a> {
    /// The domain that a file names, which must exist.
    pub const fn of(file: &'a Path) -> Self {
        Self {
            file: Some(file),
            create: false,
            exclusive: false,
        }
    }

    /// Creates the domain if the file names none yet.
    #[must_use]
    pub const fn create(self) -> Self {
        Self {
            create: true,
            ..self
        }
    }

    /// Fails if the domain exists already.
    #[must_use]
    pub const fn exclusive(self) -> Self {
        Self {
            exclusive: true,
            ..self
        }
    }
}

/// What makes an SRQ an XRC SRQ (`srq_type` of `struct ibv_srq_init_attr_ex`, with its fields).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct XrcSrq {
    /// The domain in which its number is known.
    pub xrcd: Xrcd,
    /// Where its receives complete (XRC-04).
    pub cq: Cq,
}
