//! When the nodes of a fabric have something to do.
//!
//! Most timers are stopped long before they fire. So the recorded time of a node may be too early:
//! it may belong to a timer that was stopped or moved. Only [`first`](Deadlines::first) is exact.

use crate::device::Device;
use crate::time::{Time, Timers};

/// The deadlines of nodes.
#[derive(Default)]
pub(crate) struct Deadlines {
    /// For each node, its deadline or an earlier time. Nodes in `sooner` may be wrong.
    timers: Timers,
    /// Nodes whose deadline may have become earlier.
    sooner: Vec<u32>,
    /// Something may be due sooner than was reported.
    pub(crate) is_sooner: bool,
}

impl Deadlines {
    /// Notes that work was done on a node.
    #[inline]
    pub(crate) fn update(&mut self, index: u32, device: &mut Device) {
        if device.timers.take_sooner() | device.cqs.moderated.take_sooner() {
            self.sooner.push(index);
            self.is_sooner = true;
        }
    }

    /// The first node that has something to do, and when. `deadline` returns the exact deadline of
    /// a node.
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
                // The recorded time belonged to a timer that was stopped or moved.
                later => self.timers.set(index, later),
            }
        }
    }

    /// A time before which no node has anything to do, though perhaps none has at it. `device`
    /// returns the device of a node.
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
