//! The names of `mapping` without the feature `fd`, and on other systems than Linux: no descriptor
//! can be mapped.

use core::convert::Infallible;
#[cfg(unix)]
use std::os::fd::{BorrowedFd, OwnedFd};

#[cfg(unix)]
use verbs_api::ErrorKind;

#[cfg(unix)]
use super::NoMapping;
use super::Span;

#[derive(Debug)]
pub(crate) struct Mapping(Infallible);

impl Mapping {
    #[cfg(unix)]
    pub(crate) fn new(_: BorrowedFd<'_>, _: u64, _: usize, _: bool) -> Result<Self, NoMapping> {
        Err(MISSING)
    }

    pub(super) fn is_checked(&self) -> bool {
        match self.0 {}
    }

    pub(super) fn span(&self) -> Span {
        match self.0 {}
    }
}

#[cfg(unix)]
pub(crate) fn export(_: usize) -> Result<OwnedFd, NoMapping> {
    Err(MISSING)
}

#[cfg(unix)]
const MISSING: NoMapping = {
    let problem = "is mapped on Linux, with feature `fd` of verbs-sim";
    NoMapping(ErrorKind::NotSupported, "fd", problem)
};
