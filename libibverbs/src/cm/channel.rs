//! Event channels.

use std::os::fd::{AsRawFd, OwnedFd};

use verbs_abi::rdma_event_channel;
use verbs_api::sync::Mutex;

use super::calls::cm;
use crate::c::blocking::set_blocking;
use crate::c::object::{CObject, Found, kinds};
use crate::c::result::{Result, pointer, silent};

kinds! {
    /// Event channels, each with its descriptor until it is destroyed.
    EventChannel: rdma_event_channel as rdma_event_channel, CmChannel, Mutex<Option<OwnedFd>>;
}

pub(crate) extern "C" fn create_event_channel() -> *mut rdma_event_channel {
    pointer("rdma_create_event_channel", (), || Ok(create()?.seen()))
}

pub(super) fn create() -> Result<Found<EventChannel>> {
    let handle = cm()?.create_event_channel()?;
    let fd = cm()?.event_channel_fd(handle).inspect_err(|_| {
        let _ = cm().map(|cm| cm.destroy_event_channel(handle));
    })?;
    set_blocking(&fd)?;
    let raw_fd = fd.as_raw_fd();
    let raw = || rdma_event_channel { fd: raw_fd };
    CObject::<EventChannel>::make(handle, Mutex::new(Some(fd)), raw)
}

/// `rdma_destroy_event_channel`. A channel that an id uses stays.
pub(crate) extern "C" fn destroy_event_channel(channel: *mut rdma_event_channel) {
    silent("rdma_destroy_event_channel", channel, || {
        CObject::<EventChannel>::find(channel)?.close()
    });
}

impl CObject<EventChannel> {
    pub(super) fn close(&self) -> Result<()> {
        // The lock makes both steps one for a thread that waits on the channel.
        let mut fd = self.more.lock();
        cm()?.destroy_event_channel(self.handle)?;
        drop(fd.take());
        drop(fd);
        self.retire();
        Ok(())
    }
}
