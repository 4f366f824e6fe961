//! Verbs of queue pairs.

use verbs_api::behavior::{Check, Placement};
use verbs_api::{
    Ah as AhHandle, AsyncEvent, BatchEnd, Capabilities, Context, Element, ErrorKind, Handle,
    InOrder, InOrderQuery, Mw as MwHandle, MwBind, Object, Pd as PdHandle, Qp as QpHandle, QpAttr,
    QpAttrMask, QpCap, QpInit, QpQuery, QpState, QpType, RecvWr, SendWr, WrOpcode,
};

use super::Node;
use crate::device::{
    Outside, PostRefusal, Refusal, Result, Wakeup, argument, check_acknowledged, find, find_in,
    in_range, invalid, opening, opening_at, same_context,
};
use crate::diagnosis::DestroyedQp;
use crate::diagnosis::problem::Ending;
use crate::qp::{Qp, Source, WorkQueue, check_batches};

impl Node {
    /// `ibv_create_qp`
    pub(crate) fn create_qp(&mut self, pd: PdHandle, init: &QpInit) -> Result<QpHandle> {
        let device = &self.device;
        let behavior = device.base.behavior;
        let pd_index = device.domains.find_pd(&device.base, pd)?;
        let context = pd.context();
        let send_cq = find_in(&device.cqs.table, context, init.send_cq)?;
        let recv_cq = match init.qp_type {
            // It has no receives, so a program need not name a CQ for them.
            QpType::XrcSend => send_cq,
            _ => find_in(&device.cqs.table, context, init.recv_cq)?,
        };
        let lacks = device.base.lacks;
        let has = match init.qp_type {
            QpType::Rc => true,
            QpType::Uc => !lacks.contains(Capabilities::UC),
            QpType::Ud => !lacks.contains(Capabilities::UD),
            QpType::XrcSend => !lacks.contains(Capabilities::XRC),
            _ => false,
        };
        if !has {
            // Linux tells what it does not know from what a device lacks.
            let kind = match init.qp_type {
                QpType::Unknown(_) => ErrorKind::Invalid,
                _ => ErrorKind::NotSupported,
            };
            return Err(Refusal::argument(kind, "qp_type", "is not supported"));
        }
        let srq = self.check_srq(context, init)?;
        let asked = init.cap;
        let init = &init.cap(own_queues(init));
        // Most drivers ignore the sizes of a receive queue that the QP does not have.
        let checked = match behavior.srq_recv_sizes {
            Check::Refused => asked,
            Check::Accepted | _ => init.cap,
        };
        self.check_cap(&checked)?;
        check_batches(init, lacks)?;
        let rounding = behavior.wr_rounding;
        let init = init.cap(QpCap {
            max_send_wr: rounding.up(init.cap.max_send_wr),
            max_recv_wr: rounding.up(init.cap.max_recv_wr),
            ..init.cap
        });
        self.check_qp_room()?;
        let (named, pd, cq) = (pd, pd_index, recv_cq);
        // With an SRQ it has no receive queue of its own.
        let source = match srq {
            None => Source::Own {
                pd,
                cq,
                rq: WorkQueue::new(init.cap.max_recv_wr),
            },
            Some(srq) => Source::Shared { pd, cq, srq },
        };
        let id = self.qps.insert(|id| {
            let handle = QpHandle::from_parts(context, id.index, id.generation);
            let qp_num = self.numbers.number(id, behavior.number_reuse);
            Qp::new(handle, qp_num, init, pd, send_cq, source)
        });
        let device = &mut self.device;
        let handle = device.base.added_in(named, id, QpHandle::from_parts);
        device.domains.pds.at_mut(pd).qps += 1;
        for cq in self.qps.at(id.index).cqs() {
            device.cqs.table.at_mut(cq).users += 1;
        }
        if let Some(srq) = srq {
            device.srqs.at_mut(srq).users += 1;
        }
        Ok(handle)
    }

    /// The QP number.
    pub(crate) fn qp_num(&self, qp: QpHandle) -> Result<u32> {
        let index = self.find_qp(qp)?;
        Ok(self.qps.at(index).common.qp_num)
    }

    /// `ibv_query_qp`: all attributes, regardless of the mask.
    pub(crate) fn query_qp(&self, qp: QpHandle, _mask: QpAttrMask) -> Result<QpQuery> {
        let index = self.find_qp(qp)?;
        Ok(self.qps.at(index).query())
    }

    /// `ibv_query_qp_data_in_order`
    pub(crate) fn query_qp_data_in_order(
        &self,
        qp: QpHandle,
        opcode: WrOpcode,
        flags: InOrderQuery,
    ) -> Result<InOrder> {
        let index = self.find_qp(qp)?;
        let brings_data = matches!(
            opcode,
            WrOpcode::Send
                | WrOpcode::SendWithImm
                | WrOpcode::SendWithInv
                | WrOpcode::RdmaWrite
                | WrOpcode::RdmaWriteWithImm
                | WrOpcode::RdmaRead
        );
        let is_known = (InOrderQuery::RETURN_CAPS | InOrderQuery::DEVICE_ONLY).contains(flags);
        // The drivers that promise it for whole messages ask the device, which knows queue pairs in
        // RTS only.
        let is_promised = self.device.base.behavior.placement == Placement::Arrival
            && self.qps.at(index).common.state() == QpState::Rts;
        Ok(if !(brings_data && is_known && is_promised) {
            InOrder::empty()
        } else if flags.contains(InOrderQuery::RETURN_CAPS) {
            InOrder::WHOLE_MSG | InOrder::ALIGNED_128_BYTES
        } else {
            InOrder::WHOLE_MSG
        })
    }

    /// `ibv_modify_qp`. Packets that arrived too early are delivered now.
    pub(crate) fn modify_qp(
        &mut self,
        qp: QpHandle,
        attr: &QpAttr,
        mask: QpAttrMask,
        outside: Outside,
    ) -> Result<()> {
        let (own, device) = self.qp_mut(qp)?;
        for packet in own.modify(device, attr, mask, outside)? {
            // Like any other packet, one that cannot be accepted is dropped.
            let _ = self.accept(&packet);
        }
        self.device.flush_deferred_writes();
        Ok(())
    }

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

    /// `ibv_post_recv`
    pub(crate) fn post_recv(
        &mut self,
        qp: QpHandle,
        list: &[RecvWr<'_>],
    ) -> Result<(), PostRefusal> {
        let (own, device) = self.qp_mut(qp)?;
        own.post_recv(device, list)
    }

    /// `ibv_bind_mw`
    pub(crate) fn bind_mw(&mut self, qp: QpHandle, mw: MwHandle, bind: &MwBind) -> Result<()> {
        let (own, device) = self.qp_mut(qp)?;
        let rkey = device.check_bind_mw(qp.context(), mw, bind)?;
        own.post_bind(device, mw, rkey, bind)
    }

    /// `ibv_destroy_ah`, which is refused while posted work names the handle (UD-16).
    pub(crate) fn destroy_ah(&mut self, ah: AhHandle) -> Result<()> {
        let index = find(&self.device.domains.ahs, ah)?;
        let user = |(_, qp): (u32, &Qp)| Some((qp.common.handle, qp.user_of_ah(ah)?));
        if self.device.domains.ahs.at(index).sends > 0
            && let Some((qp, label)) = self.qps.iter().find_map(user)
        {
            let text = format!(
                "work request {label:#x} of {qp} needs {ah} until its completion has been polled"
            );
            return Err(Refusal::usage(text));
        }
        self.device.destroy_ah(index);
        Ok(())
    }

    /// `ibv_ack_async_event`
    pub(crate) fn ack_async_event(&mut self, context: Context, event: &AsyncEvent) -> Result<()> {
        if let Element::Qp(qp) = event.element {
            self.find_qp(qp)?;
            same_context(context, qp)?;
        }
        self.device.ack_async_event(context, event)
    }

    /// `ibv_destroy_qp` without waiting.
    pub(crate) fn destroy_qp(&mut self, qp: QpHandle) -> Result<()> {
        if let Some(opening) = opening(qp) {
            return self.destroy_opening(qp, opening);
        }
        let index = find(&self.qps, qp)?;
        self.qps.at(index).check_no_iterations(&self.device)?;
        // The order of these checks decides the error of a program with several mistakes.
        self.check_detached(index)?;
        let unacked = self.device.base.unacked(Element::Qp(qp));
        check_acknowledged(Object::Qp, unacked)?;
        self.qps
            .at(index)
            .note_cut_off(&mut self.device, Ending::Destroyed);
        self.remove_qp(index);
        Ok(())
    }

    fn remove_qp(&mut self, index: u32) {
        self.leave_groups(index, |_| true);
        self.qps.at_mut(index).hang_up(&mut self.device);
        // The facts for later findings are taken before the queue pair is removed.
        let made_at = self.receiver_made_at(index);
        let mut qp = self.qps.remove(index);
        let handle = qp.common.handle;
        let device = &mut self.device;
        qp.note_given_up(device);
        device.timers.set(index, None);
        let base = &mut device.base;
        base.remove_object(handle.context(), Object::Qp, index);
        base.journal.gone(DestroyedQp {
            handle,
            qp_num: qp.common.qp_num,
            last: qp.reached(),
            site: base.site,
            made_at,
        });
        for (cq, site) in qp.unpolled() {
            let usage = &mut device.cqs.table.at_mut(cq).usage;
            usage.unpolled_at.get_or_insert(site);
        }
        qp.clear(device);
        qp.common.count_listener(device, false);
        for cq in qp.cqs() {
            device.cqs.table.at_mut(cq).users -= 1;
        }
        if let Some(srq) = qp.responder.receives.made_with() {
            device.srqs.at_mut(srq).users -= 1;
        }
        if let Some(requester) = &qp.requester {
            device.domains.pds.at_mut(requester.pd).qps -= 1;
        }
        // Bound windows would expose memory to a queue pair that reuses the slot.
        device.domains.free_windows(index);
        device.base.discard_async(Element::Qp(handle));
        device.flush_deferred_writes();
        let gone = Wakeup::Acknowledged(Element::Qp(handle));
        device.base.wakeups.add(gone);
    }

    /// Removes the queue pairs of a context, and closes its openings of XRC_RECV queue pairs.
    pub(super) fn remove_qps_of(&mut self, context: Context) {
        for index in self.device.base.objects(context, Object::Qp) {
            match opening_at(index) {
                None => self.remove_qp(index),
                Some(opening) => self.close_opening(opening),
            }
        }
    }

    /// The SRQ that a QP is to be created with. Only RC and UD may have one (QP-CREATE-04).
    fn check_srq(&self, context: Context, init: &QpInit) -> Result<Option<u32>> {
        let Some(srq) = init.srq else {
            return Ok(None);
        };
        // Some drivers accept an SRQ for UC.
        if init.qp_type == QpType::Uc && self.device.base.behavior.uc_srq == Check::Refused {
            return Err(invalid("srq", "is for RC and UD"));
        }
        let srq = find_in(&self.device.srqs, context, srq)?;
        if init.qp_type == QpType::XrcSend || self.device.srqs.at(srq).xrc.is_some() {
            let problem = "and the qp: messages of XRC name an SRQ, those of others cannot";
            return Err(invalid("srq", problem));
        }
        Ok(Some(srq))
    }

    fn check_cap(&self, cap: &QpCap) -> Result<()> {
        let attr = &self.device.base.attr;
        let (wr, sge) = (i64::from(attr.max_qp_wr), i64::from(attr.max_sge));
        let inline = i64::from(attr.max_inline_data);
        for (what, value, max) in [
            ("max_send_wr", cap.max_send_wr, wr),
            ("max_recv_wr", cap.max_recv_wr, wr),
            ("max_send_sge", cap.max_send_sge, sge),
            ("max_recv_sge", cap.max_recv_sge, sge),
            (argument::MAX_INLINE_DATA, cap.max_inline_data, inline),
        ] {
            in_range(what, i64::from(value), 0, max)?;
        }
        Ok(())
    }
}

/// The sizes of a QP's own queues: with an SRQ it has no receives of its own, and an XRC_SEND QP
/// has none at all.
fn own_queues(init: &QpInit) -> QpCap {
    if init.srq.is_none() && init.qp_type != QpType::XrcSend {
        return init.cap;
    }
    QpCap {
        max_recv_wr: 0,
        max_recv_sge: 0,
        ..init.cap
    }
}
