//! The names of `descriptor` without the feature `fd`: nothing has a file descriptor.

use core::convert::Infallible;

use crate::device::Device;

#[derive(Default)]
pub(crate) struct Descriptors(());

impl Descriptors {
    #[inline(always)]
    pub(crate) fn update(&mut self, _: &mut Device) {}
}

pub(crate) struct Descriptor(Infallible);

impl Descriptor {
    pub(crate) fn update(&mut self, _: Option<(usize, u64)>) {
        match self.0 {}
    }
}
