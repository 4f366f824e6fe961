//! `ibv_modify_qp`: the checks, and what each transition does.

use verbs_api::behavior::{Check, WideValues};
use verbs_api::{AsyncEventType, Cause, ErrorKind, QpAttr, QpAttrMask as M, QpState, transition};

use super::Qp;
use super::grh;
use super::requester::Requester;
use crate::device::{
    Device, Outside, PORT_MTU, PORT_MTU_BYTES, QKEY_OF_QP, Refusal, Result, in_range, invalid,
};
use crate::diagnosis::problem::Ending;
use crate::packet::{HOP_LIMIT, NetworkType, Packet, Psn, Route};

const FIVE_BITS: u8 = 31;
const THREE_BITS: u8 = 7;

/// The bits, names, values and maxima of attributes that are numbers.
macro_rules! numbers {
    ($attr:ident: $($bit:ident $field:ident $max:expr;)*) => {
        [$((M::$bit, stringify!($field), i64::from($attr.$field), i64::from($max))),*]
    };
}

/// Copies the attributes that a mask names.
macro_rules! copy {
    ($attr:ident[$mask:ident] to $own:ident: $($bit:ident $field:ident;)*) => {
        $(if $mask.contains(M::$bit) {
            $own.$field = $attr.$field;
        })*
    };
}

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
        let to = either(mask.contains(M::STATE), attr.qp_state, from);
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
            self.note_given_up(device);
        }
        if mask.contains(M::STATE) && to == QpState::Reset {
            self.note_cut_off(device, Ending::Reset);
        }
        let behavior = &device.base.behavior;
        let attr = match behavior.wide_values {
            WideValues::Truncated => truncated(attr),
            _ => *attr,
        };
        let depth = |asked: u8| behavior.rd_atomic_rounding.up(asked.into()) as u8;
        let attr = QpAttr {
            max_rd_atomic: depth(attr.max_rd_atomic),
            max_dest_rd_atomic: depth(attr.max_dest_rd_atomic),
            ..attr
        };
        self.apply(&attr, mask, route);
        self.common.ece.accept(device.ece);
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
        let to = either(mask.contains(M::STATE), attr.qp_state, from);
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
        let numbers = numbers!(attr:
            TIMEOUT timeout FIVE_BITS;
            RETRY_CNT retry_cnt THREE_BITS;
            RNR_RETRY rnr_retry THREE_BITS;
            MIN_RNR_TIMER min_rnr_timer FIVE_BITS;
            MAX_QP_RD_ATOMIC max_rd_atomic limits.max_qp_init_rd_atom;
            MAX_DEST_RD_ATOMIC max_dest_rd_atomic limits.max_qp_rd_atom;
            DEST_QPN dest_qp_num Psn::MAX;
        );
        for (bit, what, value, max) in numbers {
            if (mask - unchecked).contains(bit) {
                in_range(what, value, 0, max)?;
            }
        }
        if mask.contains(M::PORT) {
            device.ports.check(attr.port_num)?;
        }
        let own = &self.common.attr;
        let port = either(mask.contains(M::PORT), attr.port_num, own.port_num);
        if mask.contains(M::PKEY_INDEX) && behavior.bad_pkey_index == Check::Refused {
            let last = device.ports.at(port).pkeys.len() as i64 - 1;
            in_range("pkey_index", attr.pkey_index.into(), 0, last)?;
        }
        // The kernel keeps Q_Keys with the top bit for privileged programs.
        if mask.contains(M::QKEY) && attr.qkey & QKEY_OF_QP != 0 && !device.base.privileged {
            let problem = "is for programs with a privilege";
            return Err(Refusal::argument(ErrorKind::Permission, "qkey", problem));
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
        let own = &self.common.attr;
        let dest = either(
            mask.contains(M::DEST_QPN),
            attr.dest_qp_num,
            own.dest_qp_num,
        );
        let unowned_gid = device.base.behavior.unowned_gid;
        let route = device.ports.resolve(av, unowned_gid, outside)?;
        let to = device.ports.with_qp(route.to, dest);
        let mut fields = grh::fields(av, device.base.behavior.route_fields);
        // On Ethernet Linux takes the hop limit of a connection from its own route to the peer.
        if route.network_type != NetworkType::InfiniBand {
            fields.hop_limit = HOP_LIMIT;
        }
        Ok(Route {
            to,
            fields,
            ..route
        })
    }

    fn apply(&mut self, attr: &QpAttr, mask: M, route: Option<Route>) {
        let own = &mut self.common.attr;
        copy!(attr[mask] to own:
            TIMEOUT timeout;
            RETRY_CNT retry_cnt;
            RNR_RETRY rnr_retry;
            MIN_RNR_TIMER min_rnr_timer;
            MAX_QP_RD_ATOMIC max_rd_atomic;
            MAX_DEST_RD_ATOMIC max_dest_rd_atomic;
            PORT port_num;
            QKEY qkey;
            RQ_PSN rq_psn;
            SQ_PSN sq_psn;
            DEST_QPN dest_qp_num;
            PKEY_INDEX pkey_index;
            ACCESS_FLAGS qp_access_flags;
            PATH_MTU path_mtu;
            PATH_MIG_STATE path_mig_state;
            EN_SQD_ASYNC_NOTIFY en_sqd_async_notify;
        );
        // Sequence numbers have 24 bits.
        own.rq_psn &= Psn::MAX;
        own.sq_psn &= Psn::MAX;
        if mask.contains(M::PATH_MTU) {
            // The MTU is also kept in bytes, which each packet needs.
            self.common.mtu = attr.path_mtu.bytes().unwrap_or(PORT_MTU_BYTES);
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
            qp.connected_after = device.base.journal.recovery.given_up;
            self.responder.expect(Psn::new(qp.attr.rq_psn));
            return std::mem::take(&mut self.early);
        }
        let requester = self.requester.as_mut();
        match (from, to, requester) {
            (QpState::Rtr, QpState::Rts, Some(requester)) => {
                requester.start_at(Psn::new(qp.attr.sq_psn), &qp.attr);
            }
            // The sends of SQE were flushed, so the queue begins after them.
            (QpState::Sqe, QpState::Rts, Some(requester)) => requester.skip_to(requester.sq.end()),
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
                    requester.notifies_drained = false;
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

/// The value in the call if its mask names it, or else the present one.
fn either<T>(is_named: bool, new: T, present: T) -> T {
    if is_named { new } else { present }
}
