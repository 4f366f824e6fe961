//! Event channels.

use std::os::fd::AsRawFd;

use verbs_abi::rdma_event_channel;
use verbs_api::cm::Cm;

use crate::c::blocking::Descriptor;
use crate::c::{CObject, Found, Result, kinds, new_object, silent};
use crate::engine::sim;
use crate::verbs::open::say_reason;

kinds! {
    /// Event channels, each with its descriptor until it is destroyed.
    EventChannel: rdma_event_channel as rdma_event_channel, CmChannel, Descriptor;
}

pub(crate) extern "C" fn create_event_channel() -> *mut rdma_event_channel {
    new_object("rdma_create_event_channel", (), |()| create())
}

pub(super) fn create() -> Result<Found<EventChannel>> {
    // The first channel opens the devices.
    let handle = sim().create_event_channel().inspect_err(say_reason)?;
    // Without a descriptor the program could not wait, so the channel is not kept.
    let fd = sim().event_channel_fd(handle).inspect_err(|_| {
        let _ = sim().destroy_event_channel(handle);
    })?;
    let raw_fd = fd.as_raw_fd();
    let raw = || rdma_event_channel { fd: raw_fd };
    CObject::<EventChannel>::make(handle, Descriptor::new(fd)?, raw)
}

/// `rdma_destroy_event_channel`. A channel that an id uses stays.
pub(crate) extern "C" fn destroy_event_channel(channel: *mut rdma_event_channel) {
    silent("rdma_destroy_event_channel", channel, |channel| {
        channel.close()
    });
}

impl CObject<EventChannel> {
    pub(super) fn close(&self) -> Result<()> {
        self.more
            .close_after(|| Ok(sim().destroy_event_channel(self.handle)?))?;
        self.retire();
        Ok(())
    }
}
