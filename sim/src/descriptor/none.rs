//! The names of `descriptor` without the feature `fd`, and on other systems than Linux: nothing has
//! a file descriptor.

use core::convert::Infallible;
#[cfg(unix)]
use std::os::fd::OwnedFd;

#[cfg(unix)]
use verbs_api::{Cause, Error, ErrorKind, Result, Verb};

use crate::device::Device;
#[cfg(unix)]
use crate::device::EventQueue;

#[derive(Default)]
pub(crate) struct Descriptors(());

impl Descriptors {
    #[inline(always)]
    pub(crate) fn update(&mut self, _: &mut Device) {}

    #[cfg(unix)]
    pub(crate) fn open(&mut self, verb: Verb, _: EventQueue, _: &mut Device) -> Result<OwnedFd> {
        Err(missing(verb))
    }
}

pub(crate) struct Descriptor(Infallible);

impl Descriptor {
    #[cfg(unix)]
    pub(crate) fn new(verb: Verb) -> Result<Self> {
        Err(missing(verb))
    }

    #[cfg(unix)]
    pub(crate) fn duplicate(&self, _: Verb) -> Result<OwnedFd> {
        match self.0 {}
    }

    pub(crate) fn update(&mut self, _: Option<(usize, u64)>) {
        match self.0 {}
    }
}

#[cfg(unix)]
fn missing(verb: Verb) -> Error {
    let text = "the simulator has file descriptors on Linux, with feature `fd` of verbs-sim";
    Error::new(verb, ErrorKind::NotSupported, Cause::Text(text.into()))
}
