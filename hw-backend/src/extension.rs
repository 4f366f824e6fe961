//! Whether a device has the memory placement extensions: flushes and atomic writes.

use verbs_api::{
    Capabilities, Context, CqInit, DeviceAttrEx, QpInit, QpType, Result, SendOps, Verbs, Wait,
};

use crate::hw::Hw;
use crate::objects::Device;

impl Hw {
    /// The extensions that the device has and the library can post.
    pub(crate) fn extensions(
        &self,
        context: Context,
        device: &Device,
        attr: &DeviceAttrEx,
    ) -> Capabilities {
        *device.extensions.get_or_init(|| {
            let flushes = attr.flush_global || attr.flush_persistent;
            let mut has = Capabilities::empty();
            for (reports, capability, ops) in [
                (flushes, Capabilities::FLUSH, SendOps::FLUSH),
                (
                    attr.atomic_write,
                    Capabilities::ATOMIC_WRITE,
                    SendOps::ATOMIC_WRITE,
                ),
            ] {
                // The kernel may have what an older library lacks, which only creation shows.
                let can_post = || device.simulated || self.make_qp_for(context, ops).is_ok();
                has.set(capability, reports && can_post());
            }
            has
        })
    }

    /// Makes a queue pair for batches of these operations, and destroys it.
    fn make_qp_for(&self, context: Context, ops: SendOps) -> Result<()> {
        let pd = self.alloc_pd(context)?;
        let made = self.create_cq(context, &CqInit::new(1)).and_then(|cq| {
            let init = QpInit::new(QpType::Rc, cq, cq).send_ops(ops);
            let made = self.create_qp(pd, &init);
            let done = made.and_then(|qp| self.destroy_qp(qp, Wait::Poll));
            self.destroy_cq(cq, Wait::Poll).and(done)
        });
        self.dealloc_pd(pd).and(made)
    }
}
