//! When the nodes of a fabric have something to do.
//!
//! Most timers are stopped long before they fire, so what is known of a node may be too early: what a timer that was
//! stopped or moved on would have asked for. Only [`first`](Deadlines::first) makes sure.

use crate::device::Device;
use crate::time::Time;
use crate::time::Timers;

/// The deadlines of nodes.
#[derive(Debug, Default)]
pub(crate) struct Deadlines {
    /// Deadlines of the nodes or times before them, but for those of nodes in `sooner`.
    timers: Timers,
    /// Nodes whose deadline may have become sooner.
    sooner: Vec<u32>,
    /// Something may be due sooner than was expected.
    pub(crate) is_sooner: bool,
}

impl Deadlines {
    /// Something was done on a node.
    #[inline]
    pub(crate) fn update(&mut self, index: u32, device: &mut Device) {
        if device.timers.take_sooner() | device.cqs.moderated.take_sooner() {
            self.sooner.push(index);
            self.is_sooner = true;
        }
    }

    /// The first node that has something to do, and when. `deadline` says when one has.
    pub(crate) fn first(
        &mut self,
        mut deadline: impl FnMut(u32) -> Option<Time>,
    ) -> Option<(Time, u32)> {
        for index in self.sooner.drain(..) {
            self.timers.set(index, deadline(index));
        }
        loop {
            let (at, index) = self.timers.first()?;
            match deadline(index) {
                Some(exact) if exact == at => return Some((at, index)),
                later => self.timers.set(index, later),
            }
        }
    }

    /// No node has something to do before this time, though perhaps none at it. `device` is that of a node.
    pub(crate) fn earliest<'a>(&mut self, device: impl Fn(u32) -> &'a Device) -> Option<Time> {
        self.is_sooner = false;
        for index in self.sooner.drain(..) {
            let device = device(index);
            let moderated = device.cqs.moderated.earliest();
            let earliest = device.timers.earliest().into_iter().chain(moderated);
            self.timers.set(index, earliest.min());
        }
        self.timers.earliest()
    }
}
