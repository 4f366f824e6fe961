//! A device that dies (ASYNC-10).

use verbs_api::{
    AsyncEvent, AsyncEventType, Cause, Context, Element, Error, ErrorKind, Result, Verb,
};

use super::Node;

impl Node {
    /// From now on the device is dead: what it was doing ends without a completion.
    pub(crate) fn kill(&mut self, context: Context) -> Result<()> {
        self.find_context(Verb::Lab, context)?;
        if std::mem::replace(&mut self.dead, true) {
            return Ok(());
        }
        while self.outbox.pop().is_some() {}
        self.place_late();
        for qp in self.qps.indices(|_| true) {
            self.timers.set(qp, None);
        }
        for cq in self.cqs.indices(|_| true) {
            self.forget_moderation(cq);
        }
        self.hide_empty_cqs();
        let event = AsyncEvent::new(AsyncEventType::DeviceFatal, Element::Device);
        for context in self.contexts.indices(|_| true) {
            self.queue_async(context, event);
        }
        Ok(())
    }

    pub(crate) fn is_dead(&self) -> bool {
        self.dead
    }

    /// A dead device does nothing any more; what the process and its kernel have by themselves can
    /// still be looked at, and freed.
    pub(crate) fn check_alive(&self, verb: Verb) -> Result<()> {
        let without_device = matches!(
            verb,
            Verb::CloseDevice
                | Verb::DeallocPd
                | Verb::DeregMr
                | Verb::DestroyCompChannel
                | Verb::DestroyCq
                | Verb::DestroyQp
                | Verb::DestroyAh
                | Verb::DestroySrq
                | Verb::CloseXrcd
                | Verb::DeallocMw
                | Verb::DetachMcast
                | Verb::GetCqEvent
                | Verb::AckCqEvents
                | Verb::GetAsyncEvent
                | Verb::AckAsyncEvent
                | Verb::ReadMr
                | Verb::WriteMr
                | Verb::QueryMr
                | Verb::QueryMw
                | Verb::QueryCq
                | Verb::EndPoll
                | Verb::Garble
                | Verb::ChannelFd
                | Verb::AsyncFd
                | Verb::Lab
        );
        if !self.dead || without_device {
            return Ok(());
        }
        let cause = Cause::Text("the device is dead".into());
        Err(Error::new(verb, ErrorKind::Io, cause))
    }
}
