//! Posting work to send queues.

use verbs_api::{BatchEnd, Handle, Qp as QpHandle, SendWr};

use super::Node;
use crate::device::{PostRefusal, Result};

impl Node {
    /// `ibv_post_send`, without starting anything yet. Returns the slot of the queue pair.
    #[inline]
    pub(crate) fn push_sends(
        &mut self,
        qp: QpHandle,
        list: &[SendWr<'_>],
    ) -> Result<(u32, Result<(), PostRefusal>), PostRefusal> {
        let (own, device) = self.qp_mut(qp)?;
        let posted = own.push_sends(device, list);
        Ok((own.common.handle.index(), posted))
    }

    /// `ibv_wr_start` to `ibv_wr_complete` or `ibv_wr_abort`, without starting anything yet.
    /// Returns the slot of the queue pair.
    pub(crate) fn push_batch(
        &mut self,
        qp: QpHandle,
        list: &[SendWr<'_>],
        end: BatchEnd,
    ) -> Result<(u32, Result<()>)> {
        let (own, device) = self.qp_mut(qp)?;
        own.push_batch(device, list, end)?;
        Ok((own.common.handle.index(), Ok(())))
    }
}
