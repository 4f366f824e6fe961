//! `ibv_modify_qp`: the checks, and what each transition does.

use verbs_api::behavior::{Check, WideValues};
use verbs_api::{AsyncEventType, Cause, ErrorKind, QpAttr, QpAttrMask as M, QpState, transition};

use super::Qp;
use super::recovery::note_given_up;
use super::requester::Requester;
use crate::device::{
    Device, Outside, PORT_MTU, PORT_MTU_BYTES, QKEY_OF_QP, Refusal, Result, in_range, invalid,
};
use crate::packet::{Packet, Psn, Route};

const FIVE_BITS: u8 = 31;
const THREE_BITS: u8 = 7;

/// The attributes with only the bits that fit into their fields.
fn truncated(attr: &QpAttr) -> QpAttr {
    QpAttr {
        timeout: attr.timeout & FIVE_BITS,
        retry_cnt: attr.retry_cnt & THREE_BITS,
        rnr_retry: attr.rnr_retry & THREE_BITS,
        min_rnr_timer: attr.min_rnr_timer & FIVE_BITS,
        ..*attr
    }
}

impl Qp {
    /// `ibv_modify_qp`. Everything is checked before anything changes (QP-STATE-06). Returns
    /// packets that arrived too early and were kept: they are to be delivered now.
    pub(crate) fn modify(
        &mut self,
        device: &mut Device,
        attr: &QpAttr,
        mask: M,
        outside: Outside,
    ) -> Result<Vec<Packet>> {
        self.check_no_iterations(device)?;
        // Drivers ignore some bits for some transports.
        let mask = mask - transition::ignored(self.qp_type());
        let from = self.common.state();
        let to = if mask.contains(M::STATE) {
            attr.qp_state
        } else {
            from
        };
        self.check_mask(device, attr, mask)?;
        self.check_values(device, attr, mask)?;
        // The route is found before anything changes, since it may not exist (AH-07).
        let route = if mask.contains(M::AV) {
            Some(self.route_to_peer(device, attr, mask, outside)?)
        } else {
            None
        };
        // RESET and ERR give up what failed, which a diagnosis counts as handling it.
        if mask.contains(M::STATE) && matches!(to, QpState::Reset | QpState::Err) {
            note_given_up(self, device);
        }
        match device.base.behavior.wide_values {
            WideValues::Truncated => self.apply(&truncated(attr), mask, route),
            _ => self.apply(attr, mask, route),
        }
        Ok(self.enter(device, from, to))
    }

    /// Refuses an operation that searches the CQs of a QP while a program iterates over one of
    /// them: it would wait for that program.
    pub(crate) fn check_no_iterations(&self, device: &Device) -> Result<()> {
        let cqs = self.cqs();
        cqs.into_iter()
            .try_for_each(|cq| device.cqs.check_no_iteration(cq))
    }

    fn check_mask(&self, device: &Device, attr: &QpAttr, mask: M) -> Result<()> {
        let refuse = |cause| Err(Refusal::new(ErrorKind::Invalid, cause));
        let state = self.common.state();
        let says = mask.contains(M::CUR_STATE);
        let from = match device.base.behavior.wrong_cur_state {
            // Such a device takes the program's word for the state.
            Check::Accepted if says => attr.cur_qp_state,
            _ => state,
        };
        let to = if mask.contains(M::STATE) {
            attr.qp_state
        } else {
            from
        };
        let attributes = match transition::attributes(self.qp_type(), from, to) {
            Some(attributes) => attributes,
            None if (from, to) == (QpState::Reset, QpState::Err)
                && device.base.behavior.reset_to_err == Check::Accepted =>
            {
                transition::Attributes::default()
            }
            None => return refuse(Cause::InvalidTransition { from, to }),
        };
        let missing = attributes.required - mask;
        // The mask is checked before the values, as in the kernel.
        let extra = mask - attributes.required - attributes.optional - M::STATE;
        if !missing.is_empty() || !extra.is_empty() {
            return refuse(Cause::TransitionMask {
                from,
                to,
                missing,
                extra,
            });
        }
        // The program asserts its view of the state.
        if says && (attr.cur_qp_state != from || !transition::CUR_STATE_ALLOWED_IN.contains(&state))
        {
            let problem = "is not the state the qp is in";
            return Err(invalid("cur_qp_state", problem));
        }
        Ok(())
    }

    /// Checks the values of the attributes that the mask names, except for the address vector
    /// (QP-STATE-27, QP-STATE-28).
    fn check_values(&self, device: &Device, attr: &QpAttr, mask: M) -> Result<()> {
        let limits = &device.base.attr;
        let behavior = &device.base.behavior;
        let others = M::RETRY_CNT | M::RNR_RETRY | M::MIN_RNR_TIMER;
        // Some drivers take the lower bits of these values.
        let unchecked = match behavior.wide_values {
            WideValues::Truncated => M::TIMEOUT | others,
            WideValues::TimeoutRefused => others,
            WideValues::Refused | _ => M::empty(),
        };
        let numbers: [(M, &'static str, i64, i64); 7] = [
            (M::TIMEOUT, "timeout", attr.timeout.into(), FIVE_BITS.into()),
            (
                M::RETRY_CNT,
                "retry_cnt",
                attr.retry_cnt.into(),
                THREE_BITS.into(),
            ),
            (
                M::RNR_RETRY,
                "rnr_retry",
                attr.rnr_retry.into(),
                THREE_BITS.into(),
            ),
            (
                M::MIN_RNR_TIMER,
                "min_rnr_timer",
                attr.min_rnr_timer.into(),
                FIVE_BITS.into(),
            ),
            (
                M::MAX_QP_RD_ATOMIC,
                "max_rd_atomic",
                attr.max_rd_atomic.into(),
                limits.max_qp_init_rd_atom.into(),
            ),
            (
                M::MAX_DEST_RD_ATOMIC,
                "max_dest_rd_atomic",
                attr.max_dest_rd_atomic.into(),
                limits.max_qp_rd_atom.into(),
            ),
            (
                M::DEST_QPN,
                "dest_qp_num",
                attr.dest_qp_num.into(),
                Psn::MAX.into(),
            ),
        ];
        for (bit, what, value, max) in numbers {
            if (mask - unchecked).contains(bit) {
                in_range(what, value, 0, max)?;
            }
        }
        if mask.contains(M::PORT) {
            device.ports.check(attr.port_num)?;
        }
        let port = if mask.contains(M::PORT) {
            attr.port_num
        } else {
            self.common.attr.port_num
        };
        if mask.contains(M::PKEY_INDEX) && behavior.bad_pkey_index == Check::Refused {
            let last = device.ports.at(port).pkeys.len() as i64 - 1;
            in_range("pkey_index", attr.pkey_index.into(), 0, last)?;
        }
        // The kernel keeps Q_Keys with the top bit for privileged programs.
        if mask.contains(M::QKEY) && attr.qkey & QKEY_OF_QP != 0 && !device.base.privileged {
            let (what, problem) = ("qkey", "is for programs with a privilege");
            let cause = Cause::Argument { what, problem };
            return Err(Refusal::new(ErrorKind::Permission, cause));
        }
        if mask.contains(M::PATH_MTU) {
            // Not above the MTU of the port (QP-STATE-28).
            let most = match behavior.mtu_above_active {
                Check::Accepted => PORT_MTU,
                Check::Refused | _ => device.ports.at(port).mtu,
            };
            let bytes = attr.path_mtu.bytes();
            if bytes.is_none_or(|bytes| Some(bytes) > most.bytes()) {
                let problem = "is not an MTU, or above the port's";
                return Err(invalid("path_mtu", problem));
            }
        }
        if mask.contains(M::ALT_PATH) {
            let problem = "needs path migration, which is not supported";
            return Err(invalid("alt_ah_attr", problem));
        }
        Ok(())
    }

    /// The route to the peer (QP-STATE-29, AH-07).
    fn route_to_peer(
        &self,
        device: &Device,
        attr: &QpAttr,
        mask: M,
        outside: Outside,
    ) -> Result<Route> {
        let Some(av) = &attr.ah_attr else {
            return Err(invalid("ah_attr", "is missing"));
        };
        // The destination QP number may be set in another call than the address.
        let dest = if mask.contains(M::DEST_QPN) {
            attr.dest_qp_num
        } else {
            self.common.attr.dest_qp_num
        };
        let unowned_gid = device.base.behavior.unowned_gid;
        let route = device.ports.resolve(av, unowned_gid, outside)?;
        let to = device.ports.with_qp(route.to, dest);
        Ok(Route { to, ..route })
    }

    fn apply(&mut self, attr: &QpAttr, mask: M, route: Option<Route>) {
        let has = |bit| mask.contains(bit);
        let own = &mut self.common.attr;
        let copy = |bit, own: &mut u8, new: u8| {
            if has(bit) {
                *own = new;
            }
        };
        copy(M::TIMEOUT, &mut own.timeout, attr.timeout);
        copy(M::RETRY_CNT, &mut own.retry_cnt, attr.retry_cnt);
        copy(M::RNR_RETRY, &mut own.rnr_retry, attr.rnr_retry);
        copy(M::MIN_RNR_TIMER, &mut own.min_rnr_timer, attr.min_rnr_timer);
        copy(
            M::MAX_QP_RD_ATOMIC,
            &mut own.max_rd_atomic,
            attr.max_rd_atomic,
        );
        copy(
            M::MAX_DEST_RD_ATOMIC,
            &mut own.max_dest_rd_atomic,
            attr.max_dest_rd_atomic,
        );
        copy(M::PORT, &mut own.port_num, attr.port_num);
        let copy = |bit, own: &mut u32, new: u32| {
            if has(bit) {
                *own = new;
            }
        };
        copy(M::QKEY, &mut own.qkey, attr.qkey);
        copy(M::RQ_PSN, &mut own.rq_psn, attr.rq_psn & Psn::MAX);
        copy(M::SQ_PSN, &mut own.sq_psn, attr.sq_psn & Psn::MAX);
        copy(M::DEST_QPN, &mut own.dest_qp_num, attr.dest_qp_num);
        if has(M::PKEY_INDEX) {
            own.pkey_index = attr.pkey_index;
        }
        if has(M::ACCESS_FLAGS) {
            own.qp_access_flags = attr.qp_access_flags;
        }
        if has(M::PATH_MTU) {
            // The MTU is also kept in bytes, which each packet needs.
            own.path_mtu = attr.path_mtu;
            self.common.mtu = attr.path_mtu.bytes().unwrap_or(PORT_MTU_BYTES);
        }
        if has(M::PATH_MIG_STATE) {
            own.path_mig_state = attr.path_mig_state;
        }
        if has(M::EN_SQD_ASYNC_NOTIFY) {
            own.en_sqd_async_notify = attr.en_sqd_async_notify;
        }
        if route.is_some() {
            self.common.route = route;
            own.ah_attr = attr.ah_attr;
        }
    }

    /// Carries out the transition. Returns packets that arrived too early, for the node to deliver.
    fn enter(&mut self, device: &mut Device, from: QpState, to: QpState) -> Vec<Packet> {
        match to {
            QpState::Reset => self.reset(device),
            QpState::Err => self.enter_error(device),
            _ => self.common.set_state(device, to),
        }
        let qp = &mut self.common;
        // Early packets wait until the queue pair knows the first sequence number.
        if (from, to) == (QpState::Init, QpState::Rtr) {
            qp.connected_after = device.base.journal.recovery.given_up();
            self.responder.expect(Psn::new(qp.attr.rq_psn));
            return std::mem::take(&mut self.early);
        }
        let requester = self.requester.as_mut();
        match (from, to, requester) {
            (QpState::Rtr, QpState::Rts, Some(requester)) => {
                requester.start_at(Psn::new(qp.attr.sq_psn), &qp.attr);
            }
            // The sends of SQE were flushed, so the queue begins after them.
            (QpState::Sqe, QpState::Rts, Some(requester)) => requester.skip_to_end(),
            (QpState::Rts, QpState::Sqd, requester) => {
                let always = device.base.behavior.sq_drained_always;
                let tells = qp.attr.en_sqd_async_notify || always;
                match requester {
                    Some(requester) => requester.drain(qp, device, tells),
                    // Without a send queue it has drained already.
                    None if tells => self.raise(device, AsyncEventType::SqDrained),
                    None => {}
                }
            }
            // The request for an event is for one transition.
            (QpState::Sqd, QpState::Rts, requester) => {
                qp.attr.en_sqd_async_notify = false;
                if let Some(requester) = requester {
                    requester.resume();
                }
                // Some devices leave the queue stopped until the next post.
                if device.base.behavior.sqd_resumes {
                    self.request(device, Requester::pump);
                }
            }
            _ => {}
        }
        Vec::new()
    }
}
