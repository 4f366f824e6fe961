//! What a program left undone in rdma_cm.

use verbs_api::cm::{CmEventType, CmId};
use verbs_api::{Handle, WcStatus};

use super::Finding;
use super::fact::{CmUnread, FailedWork};
use super::problem::Ending;
use super::report::finding;
use crate::cm;
use crate::device::node_of;
use crate::fabric::Fabric;
use crate::node::Node;

impl Fabric {
    /// The unread events of rdma_cm.
    pub(super) fn unread_of_cm(&self) -> Vec<Finding> {
        let found = cm::unread(&self.cm_bridge.manager);
        let found = found.map(|unread| finding(self.node_of_id(Some(unread.id)), unread.noted()));
        found.collect()
    }

    /// The program disconnects an id: records the sends that are under way, unless the peer has
    /// disconnected before.
    pub(crate) fn note_disconnect(&mut self, id: CmId) {
        self.note_unread_end(id);
        let manager = &self.cm_bridge.manager;
        if cm::ended_by_peer(manager, id).is_some() {
            return;
        }
        if let Ok(Some(own)) = manager.ids.qp_of(id) {
            let site = self.site;
            let node = self.node_mut(node_of(own.qp.context()));
            if let Ok(index) = node.find_qp(own.qp) {
                let Node { device, qps, .. } = node;
                device.base.site = site;
                qps.at(index).note_cut_off(device, Ending::Disconnected);
            }
        }
    }

    /// The program gives the connection of an id up. Records an unread DISCONNECTED that tells why
    /// work of the id has failed: its peer had gone.
    #[cold]
    pub(crate) fn note_unread_end(&mut self, id: CmId) {
        let manager = &self.cm_bridge.manager;
        let Some(own) = cm::ended_by_peer(manager, id) else {
            return;
        };
        let node = node_of(own.qp.context());
        let is_unanswered = |failure: &FailedWork| {
            failure.qp_num == own.qp_num && failure.status == WcStatus::RetryExcErr
        };
        let journal = &self.node(node).device.base.journal;
        if !journal.failures.iter().any(is_unanswered) {
            return;
        }
        let is_end =
            |unread: &CmUnread| unread.id == id && unread.event == CmEventType::Disconnected;
        let end = cm::unread(manager).find(is_end);
        if let Some(end) = end {
            let noted = end.noted();
            let journal = &mut self.node_mut(node).device.base.journal;
            journal.note(noted.problem, noted.site);
        }
    }
}
