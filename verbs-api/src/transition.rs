//! The QP state machine as data (QP-STATE-01..08): which transitions there are, and which
//! attributes each requires and allows.

use crate::qp::{QpAttrMask as M, QpState, QpType};

/// Attributes of one transition for one transport. `STATE` is always allowed and not listed. The
/// default has no attributes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Attributes {
    /// Must be in the mask.
    pub required: M,
    /// May be in the mask.
    pub optional: M,
}

/// A transition that exists, with its attributes for each transport that has it.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Transition {
    /// The state before.
    pub from: QpState,
    /// To this state, which may be the same.
    pub to: QpState,
    /// The attributes by transport.
    pub by_type: &'static [(QpType, Attributes)],
}

/// The attributes for a transition of a QP of this transport, or `None` if there is no such
/// transition (`ibv_modify_qp` then gives `EINVAL`).
///
/// ```
/// use verbs_api::{QpAttrMask, QpState, QpType, transition};
///
/// let to_init = transition::attributes(QpType::Ud, QpState::Reset, QpState::Init).unwrap();
/// assert!(to_init.required.contains(QpAttrMask::QKEY));
/// assert!(transition::attributes(QpType::Rc, QpState::Reset, QpState::Rts).is_none());
/// ```
pub fn attributes(qp_type: QpType, from: QpState, to: QpState) -> Option<Attributes> {
    let row = TABLE.iter().find(|row| row.from == from && row.to == to)?;
    row.by_type
        .iter()
        .find(|(of, _)| *of == qp_type)
        .map(|(_, attributes)| *attributes)
}

/// Attributes of the half that an XRC QP lacks. Linux removes them from every mask before it looks
/// at the mask (XRC-08).
pub const fn ignored(qp_type: QpType) -> M {
    match qp_type {
        QpType::XrcSend => M::MAX_DEST_RD_ATOMIC.union(M::MIN_RNR_TIMER),
        QpType::XrcRecv => M::MAX_QP_RD_ATOMIC.union(M::RETRY_CNT).union(M::RNR_RETRY),
        _ => NONE,
    }
}

/// States in which `CUR_STATE` may be given at all (QP-STATE-09).
pub const CUR_STATE_ALLOWED_IN: &[QpState] =
    &[QpState::Rtr, QpState::Rts, QpState::Sqd, QpState::Sqe];

const NONE: M = M::empty();

const fn of(required: &[M], optional: &[M]) -> Attributes {
    Attributes {
        required: union(required),
        optional: union(optional),
    }
}

const fn union(bits: &[M]) -> M {
    let mut all = NONE;
    let mut i = 0;
    while i < bits.len() {
        all = all.union(bits[i]);
        i += 1;
    }
    all
}

const STATE_ONLY: &[(QpType, Attributes)] = &[
    (QpType::Rc, of(&[], &[])),
    (QpType::Uc, of(&[], &[])),
    (QpType::Ud, of(&[], &[])),
    (QpType::XrcSend, of(&[], &[])),
    (QpType::XrcRecv, of(&[], &[])),
];

const SQD_NOTIFY: &[(QpType, Attributes)] = &[
    (QpType::Rc, of(&[], &[M::EN_SQD_ASYNC_NOTIFY])),
    (QpType::Uc, of(&[], &[M::EN_SQD_ASYNC_NOTIFY])),
    (QpType::Ud, of(&[], &[M::EN_SQD_ASYNC_NOTIFY])),
    (QpType::XrcSend, of(&[], &[M::EN_SQD_ASYNC_NOTIFY])),
    (QpType::XrcRecv, of(&[], &[M::EN_SQD_ASYNC_NOTIFY])),
];

const TO_INIT: &[M] = &[M::PKEY_INDEX, M::PORT, M::ACCESS_FLAGS];
const TO_INIT_UD: &[M] = &[M::PKEY_INDEX, M::PORT, M::QKEY];
const TO_RTR_RC: &[M] = &[
    M::AV,
    M::PATH_MTU,
    M::DEST_QPN,
    M::RQ_PSN,
    M::MAX_DEST_RD_ATOMIC,
    M::MIN_RNR_TIMER,
];
const TO_RTR_UC: &[M] = &[M::AV, M::PATH_MTU, M::DEST_QPN, M::RQ_PSN];
const TO_RTR_OPTIONAL: &[M] = &[M::ALT_PATH, M::ACCESS_FLAGS, M::PKEY_INDEX];
const TO_RTS_RC: &[M] = &[
    M::TIMEOUT,
    M::RETRY_CNT,
    M::RNR_RETRY,
    M::SQ_PSN,
    M::MAX_QP_RD_ATOMIC,
];

const TO_RTS_OPTIONAL_RC: &[M] = &[
    M::CUR_STATE,
    M::ALT_PATH,
    M::ACCESS_FLAGS,
    M::MIN_RNR_TIMER,
    M::PATH_MIG_STATE,
];
const TO_RTS_OPTIONAL_UC: &[M] = &[
    M::CUR_STATE,
    M::ALT_PATH,
    M::ACCESS_FLAGS,
    M::PATH_MIG_STATE,
];
const TO_RTS_OPTIONAL_UD: &[M] = &[M::CUR_STATE, M::QKEY];

const TO_RTS_AGAIN: &[(QpType, Attributes)] = &[
    (QpType::Rc, of(&[], TO_RTS_OPTIONAL_RC)),
    (QpType::Uc, of(&[], TO_RTS_OPTIONAL_UC)),
    (QpType::Ud, of(&[], TO_RTS_OPTIONAL_UD)),
    (QpType::XrcSend, of(&[], TO_RTS_OPTIONAL_UC)),
    (QpType::XrcRecv, of(&[], TO_RTS_OPTIONAL_RC)),
];

/// Every transition that exists. What is not here gives `EINVAL`.
pub const TABLE: &[Transition] = &[
    Transition {
        from: QpState::Reset,
        to: QpState::Init,
        by_type: &[
            (QpType::Rc, of(TO_INIT, &[])),
            (QpType::Uc, of(TO_INIT, &[])),
            (QpType::Ud, of(TO_INIT_UD, &[])),
            (QpType::XrcSend, of(TO_INIT, &[])),
            (QpType::XrcRecv, of(TO_INIT, &[])),
        ],
    },
    Transition {
        from: QpState::Init,
        to: QpState::Init,
        by_type: &[
            (QpType::Rc, of(&[], TO_INIT)),
            (QpType::Uc, of(&[], TO_INIT)),
            (QpType::Ud, of(&[], TO_INIT_UD)),
            (QpType::XrcSend, of(&[], TO_INIT)),
            (QpType::XrcRecv, of(&[], TO_INIT)),
        ],
    },
    Transition {
        from: QpState::Init,
        to: QpState::Rtr,
        by_type: &[
            (QpType::Rc, of(TO_RTR_RC, TO_RTR_OPTIONAL)),
            (QpType::Uc, of(TO_RTR_UC, TO_RTR_OPTIONAL)),
            (QpType::Ud, of(&[], &[M::PKEY_INDEX, M::QKEY])),
            (QpType::XrcSend, of(TO_RTR_UC, TO_RTR_OPTIONAL)),
            (QpType::XrcRecv, of(TO_RTR_RC, TO_RTR_OPTIONAL)),
        ],
    },
    Transition {
        from: QpState::Rtr,
        to: QpState::Rts,
        by_type: &[
            (QpType::Rc, of(TO_RTS_RC, TO_RTS_OPTIONAL_RC)),
            (QpType::Uc, of(&[M::SQ_PSN], TO_RTS_OPTIONAL_UC)),
            (QpType::Ud, of(&[M::SQ_PSN], TO_RTS_OPTIONAL_UD)),
            (QpType::XrcSend, of(TO_RTS_RC, TO_RTS_OPTIONAL_UC)),
            (
                QpType::XrcRecv,
                of(&[M::TIMEOUT, M::SQ_PSN], TO_RTS_OPTIONAL_RC),
            ),
        ],
    },
    Transition {
        from: QpState::Rts,
        to: QpState::Rts,
        by_type: TO_RTS_AGAIN,
    },
    Transition {
        from: QpState::Rts,
        to: QpState::Sqd,
        by_type: SQD_NOTIFY,
    },
    Transition {
        from: QpState::Sqd,
        to: QpState::Rts,
        by_type: TO_RTS_AGAIN,
    },
    Transition {
        from: QpState::Sqd,
        to: QpState::Sqd,
        by_type: &[
            (
                QpType::Rc,
                of(
                    &[],
                    &[
                        M::PORT,
                        M::AV,
                        M::TIMEOUT,
                        M::RETRY_CNT,
                        M::RNR_RETRY,
                        M::MAX_QP_RD_ATOMIC,
                        M::MAX_DEST_RD_ATOMIC,
                        M::ALT_PATH,
                        M::ACCESS_FLAGS,
                        M::PKEY_INDEX,
                        M::MIN_RNR_TIMER,
                        M::PATH_MIG_STATE,
                    ],
                ),
            ),
            (
                QpType::Uc,
                of(
                    &[],
                    &[
                        M::AV,
                        M::ALT_PATH,
                        M::ACCESS_FLAGS,
                        M::PKEY_INDEX,
                        M::PATH_MIG_STATE,
                    ],
                ),
            ),
            (QpType::Ud, of(&[], &[M::PKEY_INDEX, M::QKEY])),
            (
                QpType::XrcSend,
                of(
                    &[],
                    &[
                        M::PORT,
                        M::AV,
                        M::TIMEOUT,
                        M::RETRY_CNT,
                        M::RNR_RETRY,
                        M::MAX_QP_RD_ATOMIC,
                        M::ALT_PATH,
                        M::ACCESS_FLAGS,
                        M::PKEY_INDEX,
                        M::PATH_MIG_STATE,
                    ],
                ),
            ),
            (
                QpType::XrcRecv,
                of(
                    &[],
                    &[
                        M::PORT,
                        M::AV,
                        M::TIMEOUT,
                        M::MAX_DEST_RD_ATOMIC,
                        M::ALT_PATH,
                        M::ACCESS_FLAGS,
                        M::PKEY_INDEX,
                        M::MIN_RNR_TIMER,
                        M::PATH_MIG_STATE,
                    ],
                ),
            ),
        ],
    },
    Transition {
        from: QpState::Sqe,
        to: QpState::Rts,
        by_type: &[
            (QpType::Uc, of(&[], &[M::CUR_STATE, M::ACCESS_FLAGS])),
            (QpType::Ud, of(&[], &[M::CUR_STATE, M::QKEY])),
        ],
    },
    Transition {
        from: QpState::Reset,
        to: QpState::Reset,
        by_type: STATE_ONLY,
    },
    Transition {
        from: QpState::Init,
        to: QpState::Reset,
        by_type: STATE_ONLY,
    },
    Transition {
        from: QpState::Rtr,
        to: QpState::Reset,
        by_type: STATE_ONLY,
    },
    Transition {
        from: QpState::Rts,
        to: QpState::Reset,
        by_type: STATE_ONLY,
    },
    Transition {
        from: QpState::Sqd,
        to: QpState::Reset,
        by_type: STATE_ONLY,
    },
    Transition {
        from: QpState::Sqe,
        to: QpState::Reset,
        by_type: STATE_ONLY,
    },
    Transition {
        from: QpState::Err,
        to: QpState::Reset,
        by_type: STATE_ONLY,
    },
    Transition {
        from: QpState::Init,
        to: QpState::Err,
        by_type: STATE_ONLY,
    },
    Transition {
        from: QpState::Rtr,
        to: QpState::Err,
        by_type: STATE_ONLY,
    },
    Transition {
        from: QpState::Rts,
        to: QpState::Err,
        by_type: STATE_ONLY,
    },
    Transition {
        from: QpState::Sqd,
        to: QpState::Err,
        by_type: STATE_ONLY,
    },
    Transition {
        from: QpState::Sqe,
        to: QpState::Err,
        by_type: STATE_ONLY,
    },
    Transition {
        from: QpState::Err,
        to: QpState::Err,
        by_type: STATE_ONLY,
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    /// QP-STATE-01, -07, -08: no step is skipped, any state goes to RESET, ERR leads to RESET only.
    #[test]
    fn the_shape_of_the_state_machine() {
        let xrc = [QpType::XrcSend, QpType::XrcRecv];
        for qp_type in [QpType::Rc, QpType::Uc, QpType::Ud].into_iter().chain(xrc) {
            for from in QpState::ALL {
                assert!(
                    attributes(qp_type, *from, QpState::Reset).is_some(),
                    "{from}"
                );
                let forward = [QpState::Init, QpState::Rtr, QpState::Rts];
                if *from == QpState::Err {
                    assert!(
                        forward
                            .iter()
                            .all(|to| attributes(qp_type, *from, *to).is_none())
                    );
                }
            }
            assert!(attributes(qp_type, QpState::Reset, QpState::Err).is_none());
            assert!(attributes(qp_type, QpState::Reset, QpState::Rtr).is_none());
            assert!(attributes(qp_type, QpState::Init, QpState::Rts).is_none());
            assert!(attributes(qp_type, QpState::Rts, QpState::Rtr).is_none());
        }
        for qp_type in [QpType::Rc, QpType::XrcSend, QpType::XrcRecv] {
            assert!(attributes(qp_type, QpState::Sqe, QpState::Rts).is_none());
        }
    }

    #[test]
    fn no_transition_is_listed_twice_and_no_bit_is_both_required_and_optional() {
        for (i, row) in TABLE.iter().enumerate() {
            assert!(
                TABLE[..i]
                    .iter()
                    .all(|other| (other.from, other.to) != (row.from, row.to))
            );
            for (_, attributes) in row.by_type {
                assert!((attributes.required & attributes.optional).is_empty());
            }
        }
    }
}
