//! `ibv_modify_qp`: the checks, and what each transition does.

use verbs_api::behavior::Check;
use verbs_api::{
    AsyncEventType, Cause, Error, ErrorKind, Qp as QpHandle, QpAttr, QpAttrMask as M, QpState,
    Result, Verb, transition,
};

use super::context::{PORT_MTU, PORT_MTU_BYTES};
use super::datagram::QKEY_OF_QP;
use super::{Node, in_range, invalid};
use crate::packet::{Psn, Route};
use crate::time::Time;

const VERB: Verb = Verb::ModifyQp;

impl Node {
    /// `ibv_modify_qp`. Everything is checked before anything changes (QP-STATE-06).
    pub fn modify_qp(&mut self, now: Time, qp: QpHandle, attr: &QpAttr, mask: M) -> Result<()> {
        let index = self.find_qp(VERB, qp)?;
        self.check_no_iterations(VERB, index)?;
        let mask = mask - transition::ignored(self.qps.at(index).init.qp_type);
        let from = self.qps.at(index).attr.qp_state;
        let to = if mask.contains(M::STATE) {
            attr.qp_state
        } else {
            from
        };
        self.check_mask(index, from, attr, mask)?;
        let route = self.check_values(index, attr, mask)?;
        self.apply(index, attr, mask, route);
        self.enter(now, index, from, to);
        self.place_late();
        Ok(())
    }

    fn check_mask(&self, index: u32, state: QpState, attr: &QpAttr, mask: M) -> Result<()> {
        let refuse = |cause| Err(Error::new(VERB, ErrorKind::Invalid, cause));
        let says = mask.contains(M::CUR_STATE);
        let from = match self.behavior.wrong_cur_state {
            Check::Accepted if says => attr.cur_qp_state,
            _ => state,
        };
        let to = if mask.contains(M::STATE) {
            attr.qp_state
        } else {
            from
        };
        let qp_type = self.qps.at(index).init.qp_type;
        let attributes = match transition::attributes(qp_type, from, to) {
            Some(attributes) => attributes,
            None if (from, to) == (QpState::Reset, QpState::Err)
                && self.behavior.reset_to_err == Check::Accepted =>
            {
                transition::Attributes::default()
            }
            None => return refuse(Cause::InvalidTransition { from, to }),
        };
        let missing = attributes.required - mask;
        let extra = mask - attributes.required - attributes.optional - M::STATE;
        if !missing.is_empty() || !extra.is_empty() {
            return refuse(Cause::TransitionMask {
                from,
                to,
                missing,
                extra,
            });
        }
        if says && (attr.cur_qp_state != from || !transition::CUR_STATE_ALLOWED_IN.contains(&state))
        {
            return Err(invalid(
                VERB,
                "cur_qp_state",
                "is not the state the qp is in",
            ));
        }
        Ok(())
    }

    /// Checks the values of the attributes that the mask names (QP-STATE-27..29); the route to the
    /// peer, if there is an address vector among them.
    fn check_values(&self, index: u32, attr: &QpAttr, mask: M) -> Result<Option<Route>> {
        let check = |bit: M, what, value: i64, max: i64| {
            if mask.contains(bit) {
                in_range(VERB, what, value, 0, max)
            } else {
                Ok(())
            }
        };
        check(M::TIMEOUT, "timeout", attr.timeout.into(), 31)?;
        check(M::RETRY_CNT, "retry_cnt", attr.retry_cnt.into(), 7)?;
        check(M::RNR_RETRY, "rnr_retry", attr.rnr_retry.into(), 7)?;
        check(
            M::MIN_RNR_TIMER,
            "min_rnr_timer",
            attr.min_rnr_timer.into(),
            31,
        )?;
        let max = self.attr.max_qp_init_rd_atom.into();
        check(
            M::MAX_QP_RD_ATOMIC,
            "max_rd_atomic",
            attr.max_rd_atomic.into(),
            max,
        )?;
        let max = self.attr.max_qp_rd_atom.into();
        check(
            M::MAX_DEST_RD_ATOMIC,
            "max_dest_rd_atomic",
            attr.max_dest_rd_atomic.into(),
            max,
        )?;
        check(
            M::DEST_QPN,
            "dest_qp_num",
            attr.dest_qp_num.into(),
            Psn::MAX.into(),
        )?;
        if mask.contains(M::PORT) {
            self.check_port(VERB, attr.port_num)?;
        }
        if mask.contains(M::PKEY_INDEX) && self.behavior.bad_pkey_index == Check::Refused {
            let port = if mask.contains(M::PORT) {
                attr.port_num
            } else {
                self.qps.at(index).attr.port_num
            };
            let last = self.port(port).pkeys.len() as i64 - 1;
            in_range(VERB, "pkey_index", attr.pkey_index.into(), 0, last)?;
        }
        if mask.contains(M::QKEY) && attr.qkey & QKEY_OF_QP != 0 && !self.privileged {
            let (what, problem) = ("qkey", "is for programs with a privilege");
            let cause = Cause::Argument { what, problem };
            return Err(Error::new(VERB, ErrorKind::Permission, cause));
        }
        if mask.contains(M::PATH_MTU) {
            self.check_mtu(index, attr, mask)?;
        }
        if mask.contains(M::ALT_PATH) {
            return Err(invalid(
                VERB,
                "alt_ah_attr",
                "needs path migration, which is not supported",
            ));
        }
        if !mask.contains(M::AV) {
            return Ok(None);
        }
        let Some(av) = &attr.ah_attr else {
            return Err(invalid(VERB, "ah_attr", "is missing"));
        };
        self.route(VERB, av).map(Some)
    }

    /// A path MTU is not above the port's (QP-STATE-28).
    fn check_mtu(&self, index: u32, attr: &QpAttr, mask: M) -> Result<()> {
        let port = match mask.contains(M::PORT) {
            true => attr.port_num,
            false => self.qps.at(index).attr.port_num,
        };
        let most = match self.behavior.mtu_above_active {
            Check::Accepted => PORT_MTU,
            Check::Refused | _ => self.port(port).mtu,
        };
        match attr.path_mtu.bytes() {
            Some(bytes) if Some(bytes) <= most.bytes() => Ok(()),
            _ => Err(invalid(
                VERB,
                "path_mtu",
                "is not an MTU, or above the port's",
            )),
        }
    }

    fn apply(&mut self, index: u32, attr: &QpAttr, mask: M, route: Option<Route>) {
        let qp = self.qps.at_mut(index);
        let has = |bit| mask.contains(bit);
        let own = &mut qp.attr;
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
            own.path_mtu = attr.path_mtu;
            qp.mtu = attr.path_mtu.bytes().unwrap_or(PORT_MTU_BYTES);
        }
        if has(M::PATH_MIG_STATE) {
            own.path_mig_state = attr.path_mig_state;
        }
        if has(M::EN_SQD_ASYNC_NOTIFY) {
            own.en_sqd_async_notify = attr.en_sqd_async_notify;
        }
        if route.is_some() {
            qp.route = route;
            own.ah_attr = attr.ah_attr;
        }
    }

    fn enter(&mut self, now: Time, index: u32, from: QpState, to: QpState) {
        match to {
            QpState::Reset => return self.reset(index),
            QpState::Err => return self.enter_error(index),
            _ => self.set_state(index, to),
        }
        let qp = self.qps.at_mut(index);
        match (from, to) {
            (QpState::Init, QpState::Rtr) => {
                qp.responder.expect(Psn::new(qp.attr.rq_psn));
                for packet in std::mem::take(&mut qp.early) {
                    // As any other packet, one that cannot be taken is dropped.
                    let _ = self.accept(now, &packet);
                }
            }
            (QpState::Rtr, QpState::Rts) => {
                let first = qp.sq.oldest();
                qp.requester
                    .start_at(Psn::new(qp.attr.sq_psn), first, &qp.attr);
            }
            (QpState::Sqe, QpState::Rts) => qp.requester.skip_to(qp.sq.end()),
            (QpState::Rts, QpState::Sqd) => {
                qp.tells_when_drained =
                    qp.attr.en_sqd_async_notify || self.behavior.sq_drained_always;
                self.check_drained(index);
            }
            (QpState::Sqd, QpState::Rts) => {
                qp.attr.en_sqd_async_notify = false;
                qp.tells_when_drained = false;
                if self.behavior.sqd_resumes {
                    self.pump(now, index);
                }
            }
            _ => {}
        }
    }

    /// Raises `SQ_DRAINED` once when a queue in SQD that asked for it has drained (QP-STATE-11).
    pub(super) fn check_drained(&mut self, index: u32) {
        let qp = self.qps.at_mut(index);
        if qp.attr.qp_state == QpState::Sqd
            && qp.tells_when_drained
            && !qp.requester.is_busy(&qp.sq)
        {
            qp.tells_when_drained = false;
            self.raise_of_qp(index, AsyncEventType::SqDrained);
        }
    }
}
