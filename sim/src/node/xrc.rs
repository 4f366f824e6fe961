//! XRC_RECV queue pairs, which belong to a domain and are shared by the programs that have them
//! open.

use std::collections::BTreeMap;

use verbs_api::{
    Context, Element, Object, Qp as QpHandle, QpCap, QpInit, QpType, Xrcd as XrcdHandle,
};

use super::Node;
use crate::device::{Device, Result, check_acknowledged, find, invalid};
use crate::qp::{Qp, Source};

/// The context of queue pairs without one. It is on no node, in a slot that no context has.
const NO_CONTEXT: Context = Context::from_parts(u32::MAX, 1);

impl Node {
    /// `ibv_create_qp_ex` with a domain.
    pub(crate) fn create_xrc_recv_qp(&mut self, xrcd: XrcdHandle) -> Result<QpHandle> {
        let domain = self.device.domain_of(xrcd)?;
        self.check_qp_room()?;
        let none = QpInit::new(QpType::XrcRecv, Default::default(), Default::default());
        // It has no queues: its receives are those of the SRQ that a request names.
        let init = none.cap(QpCap {
            max_send_wr: 0,
            max_recv_wr: 0,
            max_send_sge: 0,
            max_recv_sge: 0,
            max_inline_data: 0,
        });
        let number_reuse = self.device.base.behavior.number_reuse;
        let id = self.qps.insert(|id| {
            let handle = QpHandle::from_parts(NO_CONTEXT, id.index, id.generation);
            let qp_num = self.numbers.number(id, number_reuse);
            let source = Source::Named {
                domain,
                openings: BTreeMap::new(),
                present: None,
            };
            Qp::receiving(handle, qp_num, init, source)
        });
        Ok(self.open(xrcd, id.index))
    }

    /// `ibv_open_qp`
    pub(crate) fn open_qp(&mut self, xrcd: XrcdHandle, qp_num: u32) -> Result<QpHandle> {
        let domain = self.device.domain_of(xrcd)?;
        let is_of_domain = |qp: &u32| {
            let source = &self.qps.at(*qp).responder.receives.source;
            matches!(source, Source::Named { domain: of, .. } if *of == domain)
        };
        let Some(qp) = self.find_by_number(qp_num).filter(is_of_domain) else {
            return Err(invalid("qp_num", "is of no target in the domain"));
        };
        let Device { base, xrcds, .. } = &self.device;
        base.check_room("open queue pairs", &xrcds.openings, base.attr.max_qp)?;
        Ok(self.open(xrcd, qp))
    }

    fn open(&mut self, xrcd: XrcdHandle, qp: u32) -> QpHandle {
        let (opening, handle) = self.device.add_opening(xrcd, qp);
        if let Source::Named { openings, .. } = &mut self.qps.at_mut(qp).responder.receives.source {
            openings.insert(opening, handle);
        }
        handle
    }

    /// `ibv_destroy_qp` of an opening. The last one destroys the queue pair.
    pub(super) fn destroy_opening(&mut self, qp: QpHandle, opening: QpHandle) -> Result<()> {
        let index = find(&self.device.xrcds.openings, opening)?;
        let unacked = self.device.base.unacked(Element::Qp(qp));
        check_acknowledged(Object::Qp, unacked)?;
        self.close_opening(index);
        Ok(())
    }

    pub(super) fn close_opening(&mut self, opening: u32) {
        let qp = self.device.remove_opening(opening);
        // No other queue pair has an opening.
        let source = &mut self.qps.at_mut(qp).responder.receives.source;
        let Source::Named { openings, .. } = source else {
            return;
        };
        openings.remove(&opening);
        // No program can reach the queue pair any more.
        if openings.is_empty() {
            let mut target = self.qps.remove(qp);
            target.clear(&mut self.device);
            target.common.count_listener(&mut self.device, false);
            self.device.flush_deferred_writes();
        }
    }
}
