//! Connection management around the device: queue pairs come from it, and their states change by
//! it.

use core::net::SocketAddr;
use core::time::Duration;
#[cfg(unix)]
use std::os::fd::OwnedFd;

use verbs_api::cm::{
    Cm, CmChannel, CmEvent, CmEventType, CmId, CmIdAttr, CmOption, ConnParam, PortSpace,
};
use verbs_api::{
    AsyncEventType, Context, Ece, Element, Pd, Qp, QpAttr, QpAttrMask, QpInit, QpState, QpType,
    Result, Verb, Verbs, Wait,
};

use super::Checked;
use super::books::Books;
use super::objects::Id;

/// What concerns no invariant.
macro_rules! forward {
    ($( fn $name:ident(&self $(, $argument:ident: $type:ty)*) -> $result:ty; )*) => { $(
        fn $name(&self $(, $argument: $type)*) -> $result {
            self.inner_cm().$name($($argument),*)
        }
    )* };
}

#[deny(clippy::missing_trait_methods)]
impl Cm for Checked {
    forward! {
        fn create_id(&self, channel: CmChannel, context: u64, ps: PortSpace) -> Result<CmId>;
        fn query_id(&self, id: CmId) -> Result<CmIdAttr>;
        fn migrate_id(&self, id: CmId, channel: CmChannel, wait: Wait) -> Result<()>;
        fn set_option(&self, id: CmId, option: CmOption) -> Result<()>;
        fn bind_addr(&self, id: CmId, addr: SocketAddr) -> Result<()>;
        fn resolve_addr(
            &self,
            id: CmId,
            src: Option<SocketAddr>,
            dst: SocketAddr,
            timeout: Duration
        ) -> Result<()>;
        fn resolve_route(&self, id: CmId, timeout: Duration) -> Result<()>;
        fn init_qp_attr(&self, id: CmId, state: QpState) -> Result<(QpAttr, QpAttrMask)>;
        fn set_local_ece(&self, id: CmId, ece: &Ece) -> Result<()>;
        fn get_remote_ece(&self, id: CmId) -> Result<Ece>;
        fn listen(&self, id: CmId, backlog: i32) -> Result<()>;
        fn connect(&self, id: CmId, param: &ConnParam<'_>) -> Result<()>;
        fn reject(&self, id: CmId, private_data: &[u8]) -> Result<()>;
        fn reject_ece(&self, id: CmId, private_data: &[u8]) -> Result<()>;
        fn establish(&self, id: CmId) -> Result<()>;
        fn notify(&self, id: CmId, event: AsyncEventType) -> Result<()>;
        fn join_multicast(&self, id: CmId, group: SocketAddr, context: u64) -> Result<()>;
        fn leave_multicast(&self, id: CmId, group: SocketAddr) -> Result<()>;
        fn write_event(&self, id: CmId, event: CmEventType, status: i32, arg: u64) -> Result<()>;
    }

    #[cfg(unix)]
    forward! {
        fn event_channel_fd(&self, channel: CmChannel) -> Result<OwnedFd>;
    }

    fn cm_devices(&self) -> Result<Vec<Context>> {
        let contexts = self.inner_cm().cm_devices()?;
        self.know_contexts(&contexts);
        Ok(contexts)
    }

    fn create_event_channel(&self) -> Result<CmChannel> {
        let channel = self.inner_cm().create_event_channel()?;
        if let Ok(contexts) = self.unobserved_cm().cm_devices() {
            self.know_contexts(&contexts);
        }
        Ok(channel)
    }

    fn destroy_event_channel(&self, channel: CmChannel) -> Result<()> {
        self.take_apart(|device| cm(device).destroy_event_channel(channel))
    }

    fn ack_cm_event(&self, event: &CmEvent) -> Result<()> {
        cm(self.device_to_let_go()).ack_cm_event(event)
    }

    fn destroy_id(&self, id: CmId, wait: Wait) -> Result<()> {
        self.take_apart(|device| cm(device).destroy_id(id, wait))?;
        self.books.lock().connected_ids.remove(&id);
        Ok(())
    }

    fn create_cm_qp(&self, id: CmId, pd: Option<Pd>, init: &QpInit) -> Result<Qp> {
        let mut books = self.begin();
        let attr = self.unobserved_cm().query_id(id).unwrap_or_default();
        if let Some(context) = attr.verbs {
            books.saw_gid(context, attr.sgid);
        }
        let qp = self.inner_cm().create_cm_qp(id, pd, init)?;
        let number = self.device_unobserved().qp_num(qp).ok();
        let pd = Id::of(pd.or(attr.pd).unwrap_or_default());
        books.made_qp(qp, number, init, pd);
        let state = match init.qp_type {
            QpType::Ud => QpState::Rts,
            _ => QpState::Init,
        };
        books.changed(qp, state);
        Ok(qp)
    }

    fn destroy_cm_qp(&self, id: CmId, wait: Wait) -> Result<()> {
        let attr = self.unobserved_cm().query_id(id);
        let Some(qp) = attr.ok().and_then(|id| id.qp) else {
            return self.take_apart(|device| cm(device).destroy_cm_qp(id, wait));
        };
        self.destroy(
            Verb::CmDestroyQp,
            qp,
            Element::Qp(qp),
            |device| cm(device).destroy_cm_qp(id, wait),
            |books| books.gone_qp(qp),
        )
    }

    fn accept(&self, id: CmId, param: &ConnParam<'_>) -> Result<()> {
        let mut books = self.begin();
        let result = self.inner_cm().accept(id, param);
        // What failed may have come half the way.
        self.connected(&mut books, id);
        result
    }

    fn disconnect(&self, id: CmId) -> Result<()> {
        let mut books = self.begin();
        let result = self.inner_cm().disconnect(id);
        self.stopped(&mut books, id);
        result
    }

    fn get_cm_event(&self, channel: CmChannel, wait: Wait) -> Result<CmEvent> {
        let event = self.inner_cm().get_cm_event(channel, wait)?;
        let mut books = self.begin();
        books.summary.events += 1;
        match event.event {
            CmEventType::Established => self.connected(&mut books, event.id),
            CmEventType::Rejected | CmEventType::ConnectError => {
                self.stopped(&mut books, event.id);
            }
            _ => {}
        }
        Ok(event)
    }
}

impl Checked {
    fn inner_cm(&self) -> &dyn Cm {
        cm(self.device())
    }

    fn unobserved_cm(&self) -> &dyn Cm {
        let cm = self.device_unobserved().cm();
        cm.unwrap_or_else(|| self.inner_cm())
    }

    /// The contexts that ids have, in the order of the devices.
    fn know_contexts(&self, contexts: &[Context]) {
        let devices = self.device_unobserved().devices().unwrap_or_default();
        let mut books = self.books.lock();
        for (context, device) in contexts.iter().zip(devices) {
            books.opened(*context, &device.name);
            books.of_ids.insert(*context);
        }
    }

    /// The queue pair of an id has been connected, unless it was before.
    fn connected(&self, books: &mut Books, id: CmId) {
        let cm = self.unobserved_cm();
        let qp = cm.query_id(id).ok().and_then(|id| id.qp);
        let Some(qp) = qp.filter(|_| !books.connected_ids.contains(&id)) else {
            return;
        };
        for state in [QpState::Rtr, QpState::Rts] {
            // Datagrams are not connected.
            if let Ok((attr, mask)) = cm.init_qp_attr(id, state)
                && mask.contains(QpAttrMask::SQ_PSN) == (state == QpState::Rts)
            {
                books.modified(qp, &attr, mask);
                books.connected_ids.insert(id);
            }
        }
    }

    /// The queue pair of an id may have been stopped.
    fn stopped(&self, books: &mut Books, id: CmId) {
        let qp = self.unobserved_cm().query_id(id).ok().and_then(|id| id.qp);
        if let Some(qp) = qp {
            books.changed(qp, QpState::Err);
        }
    }
}

/// # Panics
/// For a device without it, around which no `Cm` is given out.
fn cm(device: &dyn Verbs) -> &dyn Cm {
    let cm = device.cm();
    cm.expect("only given out around a device that has it")
}
