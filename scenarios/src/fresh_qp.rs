//! A queue pair that goes from state to state, one transition at a time.

use verbs_api::{
    Access, AhAttr, Mtu, QpAttr, QpAttrMask, QpQuery, QpState, QpType, SendWr, Sge, transition,
};

use crate::end::gives_up_soon;
use crate::{End, Failure, Pair, PairOptions, Result, Setup};

/// An end with a peer, both in RESET at first, and attributes that are good for any transition.
pub(crate) struct FreshQp<'b> {
    setup: &'b Setup<'b>,
    pub(crate) end: End<'b>,
    pub(crate) attr: QpAttr,
}

/// Each state from which the next can be reached.
const LADDER: [QpState; 5] = [
    QpState::Reset,
    QpState::Init,
    QpState::Rtr,
    QpState::Rts,
    QpState::Sqd,
];

impl<'b> FreshQp<'b> {
    /// On side A (of XRC_RECV: on side B), in RESET.
    pub(crate) fn new(setup: &'b Setup<'_>, qp_type: QpType) -> Result<Self> {
        match qp_type {
            QpType::XrcRecv => Ok(Self::pair(setup, QpType::XrcSend)?.1),
            _ => Ok(Self::pair(setup, qp_type)?.0),
        }
    }

    /// Two that are each other's peers, in RESET.
    pub(crate) fn pair(setup: &'b Setup<'_>, qp_type: QpType) -> Result<(Self, Self)> {
        Self::pair_with(setup, PairOptions::of(qp_type))
    }

    /// The same, made with these options; how they are connected is up to their attributes.
    pub(crate) fn pair_with(setup: &'b Setup<'_>, options: PairOptions) -> Result<(Self, Self)> {
        let a = setup.end(setup.ctx_a(), options)?;
        let b = setup.peer_end(options)?;
        let Pair { a, b } = setup.introduce(a, b)?;
        Ok((Self::of(setup, a, &b)?, Self::of(setup, b, &a)?))
    }

    fn of(setup: &'b Setup<'_>, end: End<'b>, peer: &End<'_>) -> Result<Self> {
        let attr = QpAttr {
            path_mtu: Mtu::Mtu1024,
            qkey: setup.qkey(),
            dest_qp_num: peer.qp_num,
            qp_access_flags: Access::ALL_RDMA,
            ah_attr: Some(setup.route_to(peer.context)?),
            max_rd_atomic: 1,
            max_dest_rd_atomic: 1,
            min_rnr_timer: 12,
            port_num: setup.port(),
            timeout: setup.timeout(14),
            retry_cnt: 7,
            rnr_retry: 7,
            ..QpAttr::default()
        };
        Ok(Self { setup, end, attr })
    }

    /// Lets its sends give up soon, as [`gives_up_soon`] does.
    pub(crate) fn gives_up_soon(&mut self) {
        let soon = self.setup.here(gives_up_soon());
        (self.attr.timeout, self.attr.retry_cnt) = (soon.timeout, soon.retry_cnt);
    }

    /// The address of the peer.
    pub(crate) fn av(&self) -> AhAttr {
        self.attr.ah_attr.expect("it has an address")
    }

    /// Asks for a change with the attributes of this mask.
    pub(crate) fn change(&self, to: QpState, mask: QpAttrMask) -> verbs_api::Result<()> {
        let attr = QpAttr {
            qp_state: to,
            ..self.attr
        };
        self.setup.modify_qp(self.end.qp, &attr, mask)
    }

    /// One transition, with the attributes it requires. SQD ends with the send queue drained.
    pub(crate) fn go(&self, to: QpState) -> Result {
        let from = self.setup.state(self.end.qp)?;
        self.change(to, required(self.end.qp_type, from, to))?;
        if to == QpState::Sqd {
            self.setup.until_sq_drained(self.end.qp)?;
        }
        Ok(())
    }

    /// All transitions that lead from the present state to this one.
    pub(crate) fn reach(&self, state: QpState) -> Result {
        match state {
            QpState::Err => {
                self.reach(QpState::Init)?;
                self.go(QpState::Err)
            }
            QpState::Sqe => {
                self.reach(QpState::Rts)?;
                self.fail_a_send()
            }
            _ => {
                let rung = |state| LADDER.iter().position(|rung| *rung == state);
                let from = rung(self.setup.state(self.end.qp)?);
                for next in (0..LADDER.len()).filter(|i| Some(*i) > from && Some(*i) <= rung(state))
                {
                    self.go(LADDER[next])?;
                }
                Ok(())
            }
        }
    }

    /// All that can be queried.
    pub(crate) fn query(&self) -> Result<QpQuery> {
        Ok(self.setup.query_qp(self.end.qp, QpAttrMask::STANDARD)?)
    }

    /// Posts work to the peer.
    pub(crate) fn post(&self, list: &[SendWr<'_>]) -> Result<(), verbs_api::PostError> {
        let list: Vec<_> = list.iter().map(|wr| self.end.to_peer(*wr)).collect();
        self.setup.post_send(self.end.qp, &list)
    }

    /// To SQE, by a send from memory with a bad key.
    fn fail_a_send(&self) -> Result {
        let good = self.end.sge(0, 8);
        let bad = Sge {
            lkey: good.lkey ^ 0xa5,
            ..good
        };
        self.post(&[SendWr::send(0, &[bad])])?;
        self.setup.one(self.end.send_cq)?;
        match self.setup.state(self.end.qp)? {
            QpState::Sqe => Ok(()),
            other => Err(Failure::assertion("SQE", other.to_string()).of_rule("QP-STATE-15")),
        }
    }
}

/// The least mask for a transition: the state alone for one that does not exist.
pub(crate) fn required(qp_type: QpType, from: QpState, to: QpState) -> QpAttrMask {
    let attributes = transition::attributes(qp_type, from, to);
    QpAttrMask::STATE | attributes.map_or(QpAttrMask::empty(), |a| a.required)
}
