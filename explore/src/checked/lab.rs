//! The test controls around the device: when all activity has ended, sends have ended too.

use core::ops::Range;
use core::time::Duration;
use std::sync::Arc;

use verbs_api::lab::{
    Fault, FaultId, Firing, Lab, Limit, Live, TappedPacket, TaskWait, TraceRecord,
};
use verbs_api::{AsyncEventType, Context, Gid, Mr, Mtu, Result, Srq, Verbs};

use super::Checked;

/// What concerns no invariant.
macro_rules! forward {
    ($( fn $name:ident(&self $(, $argument:ident: $type:ty)*) $(-> $result:ty)?; )*) => { $(
        fn $name(&self $(, $argument: $type)*) $(-> $result)? {
            self.inner_lab().$name($($argument),*)
        }
    )* };
}

#[deny(clippy::missing_trait_methods)]
impl Lab for Checked {
    forward! {
        fn now(&self) -> Duration;
        fn advance(&self, by: Duration) -> Result<()>;
        fn step(&self, limit: Duration) -> Result<bool>;
        fn next_due(&self) -> Option<Duration>;
        fn activity(&self) -> u64;
        fn is_idle(&self) -> bool;
        fn hold_clock(&self, held: bool) -> Result<()>;
        fn horizon(&self) -> Duration;
        fn stalled_tasks(&self) -> Vec<TaskWait>;
        fn close(&self);
        fn inject(&self, fault: Fault) -> Result<FaultId>;
        fn remove(&self, fault: FaultId) -> Result<u64>;
        fn fired(&self, fault: FaultId) -> Result<u64>;
        fn firings(&self) -> Vec<Firing>;
        fn node(&self, context: Context) -> Result<u32>;
        fn tap(&self);
        fn tapped(&self) -> Vec<TappedPacket>;
        fn set_port(&self, context: Context, port: u8, up: bool) -> Result<()>;
        fn nodes_of(&self, host: &str) -> Result<Range<u32>>;
        fn restart(&self, host: &str) -> Result<()>;
        fn set_mtu(&self, context: Context, port: u8, mtu: Mtu) -> Result<()>;
        fn set_gid(&self, context: Context, port: u8, index: u32, gid: Gid) -> Result<()>;
        fn set_pkey(&self, context: Context, port: u8, index: u16, pkey: u16) -> Result<()>;
        fn announce(&self, context: Context, port: u8, kind: AsyncEventType) -> Result<()>;
        fn fail_srq(&self, srq: Srq) -> Result<()>;
        fn revoke_dmabuf(&self, mr: Mr) -> Result<()>;
        fn set_privileged(&self, context: Context, privileged: bool) -> Result<()>;
        fn set_limit(&self, context: Context, limit: Limit, value: Option<u64>) -> Result<()>;
        fn live(&self, context: Context) -> Result<Live>;
        fn trace(&self) -> Vec<TraceRecord>;
    }

    fn unobserved(&self) -> &dyn Verbs {
        self.unobserved.as_deref().unwrap_or(self)
    }

    fn settle(&self) -> Result<()> {
        let before = self.books.lock().queues.posted();
        self.inner_lab().settle()?;
        self.books.lock().queues.settled(before);
        Ok(())
    }

    fn host(&self, name: &str) -> Result<Arc<dyn Verbs>> {
        let inner = self.inner_lab().host(name)?;
        Ok(Arc::new(self.view(inner)))
    }

    fn crash(&self, host: &str) -> Result<()> {
        let lab = self.inner_lab();
        let nodes = lab.nodes_of(host)?;
        let mut books = self.begin();
        let is_of = |context| lab.node(context).is_ok_and(|node| nodes.contains(&node));
        let contexts = books.contexts_where(is_of);
        lab.crash(host)?;
        for context in contexts {
            books.closed(context);
        }
        Ok(())
    }

    fn kill_device(&self, context: Context) -> Result<()> {
        // Nothing of it comes to its end any more.
        self.books.lock().queues.died();
        self.inner_lab().kill_device(context)
    }
}

impl Checked {
    fn inner_lab(&self) -> &dyn Lab {
        self.goes_on();
        let lab = self.inner.lab();
        lab.expect("only returned if there are test controls")
    }
}
