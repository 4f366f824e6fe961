//! Changes of a queue pair that do not exist: by the transition table, every pair of states, every
//! attribute that is missing or must not be there; and values out of range.

use verbs_api::behavior::{Check, WideValues};
use verbs_api::{
    DeviceAttr, ErrorKind, Mtu, PortAttr, QpAttr, QpAttrMask as M, QpState, QpType, transition,
};

use super::create::{bad_addresses, bad_ports};
use super::refused;
use crate::ah::{UNRESOLVED, way_to_no_device};
use crate::failure::{check_eq, in_case, value_in_case};
use crate::fresh_qp::{FreshQp, required};
use crate::{OfRule, Result, Setup, expect_err};

const STATES: [QpState; 6] = [
    QpState::Reset,
    QpState::Init,
    QpState::Rtr,
    QpState::Rts,
    QpState::Sqd,
    QpState::Err,
];

scenario!(illegal_change_of_an_rc_qp_is_refused:
    "QP-STATE-01", "QP-STATE-02", "QP-STATE-03", "QP-STATE-04", "QP-STATE-05", "QP-STATE-06",
    "QP-STATE-07", "QP-STATE-08", "QP-STATE-09";
    needs MODIFY_CONNECT);
fn illegal_change_of_an_rc_qp_is_refused(setup: &Setup<'_>) -> Result {
    illegal_changes(setup, QpType::Rc, &STATES)
}

scenario!(illegal_change_of_a_uc_qp_is_refused:
    "QP-STATE-01", "QP-STATE-02", "QP-STATE-03", "QP-STATE-04", "QP-STATE-05", "QP-STATE-06",
    "QP-STATE-07", "QP-STATE-08", "QP-STATE-09";
    needs UC, MODIFY_CONNECT);
fn illegal_change_of_a_uc_qp_is_refused(setup: &Setup<'_>) -> Result {
    illegal_changes(setup, QpType::Uc, &STATES)
}

scenario!(illegal_change_of_a_ud_qp_is_refused:
    "QP-STATE-01", "QP-STATE-02", "QP-STATE-04", "QP-STATE-05", "QP-STATE-06", "QP-STATE-07",
    "QP-STATE-08", "QP-STATE-09";
    needs UD, MODIFY_CONNECT);
fn illegal_change_of_a_ud_qp_is_refused(setup: &Setup<'_>) -> Result {
    illegal_changes(setup, QpType::Ud, &STATES)
}

scenario!(illegal_change_of_an_xrc_sender_is_refused:
    "QP-STATE-01", "QP-STATE-02", "QP-STATE-03", "QP-STATE-04", "QP-STATE-05", "QP-STATE-06",
    "QP-STATE-07", "QP-STATE-08", "QP-STATE-09";
    needs MODIFY_CONNECT, XRC);
fn illegal_change_of_an_xrc_sender_is_refused(setup: &Setup<'_>) -> Result {
    illegal_changes(setup, QpType::XrcSend, &STATES)
}

scenario!(illegal_change_of_an_xrc_target_is_refused:
    "QP-STATE-01", "QP-STATE-02", "QP-STATE-03", "QP-STATE-04", "QP-STATE-05", "QP-STATE-06",
    "QP-STATE-07", "QP-STATE-08", "QP-STATE-09";
    needs MODIFY_CONNECT, XRC);
fn illegal_change_of_an_xrc_target_is_refused(setup: &Setup<'_>) -> Result {
    illegal_changes(setup, QpType::XrcRecv, &STATES)
}

scenario!(illegal_change_in_sqe_is_refused:
    "QP-STATE-01", "QP-STATE-05", "QP-STATE-06", "QP-STATE-09"; needs UC, UD, MODIFY_CONNECT);
fn illegal_change_in_sqe_is_refused(setup: &Setup<'_>) -> Result {
    illegal_changes(setup, QpType::Uc, &[QpState::Sqe])?;
    illegal_changes(setup, QpType::Ud, &[QpState::Sqe])
}

/// From each of these states to every state: each mask that differs in one attribute from the one
/// required, and that itself if there is no such transition.
fn illegal_changes(setup: &Setup<'_>, qp_type: QpType, states: &[QpState]) -> Result {
    let known: Vec<M> = M::all()
        .iter_names()
        .map(|(_, bit)| bit)
        .filter(|bit| *bit != M::RATE_LIMIT)
        .collect();
    for from in states {
        let mut qp = FreshQp::new(setup, qp_type)?;
        qp.reach(*from)?;
        qp.attr.cur_qp_state = *from;
        for to in QpState::ALL.iter().chain(&[QpState::Unknown(7)]) {
            let good = required(qp_type, *from, *to);
            let one_off = known.iter().map(|bit| good ^ *bit);
            for mask in one_off.chain([good]) {
                if !is_legal(qp_type, *from, *to, mask) {
                    let rule = rule_of(qp_type, *from, *to, mask);
                    stays(setup, &qp, &[ErrorKind::Invalid], rule, *to, mask)?;
                }
            }
        }
    }
    Ok(())
}

fn is_legal(qp_type: QpType, from: QpState, to: QpState, mask: M) -> bool {
    let to = if mask.contains(M::STATE) { to } else { from };
    let Some(attributes) = transition::attributes(qp_type, from, to) else {
        return false;
    };
    let all = attributes.required | attributes.optional | transition::ignored(qp_type) | M::STATE;
    mask.contains(attributes.required) && all.contains(mask)
}

/// The rule that says that this change is illegal.
fn rule_of(qp_type: QpType, from: QpState, to: QpState, mask: M) -> &'static str {
    let exists = transition::attributes(qp_type, from, to).is_some();
    let lacks = !mask.contains(required(qp_type, from, to));
    match (from, to) {
        (QpState::Reset, QpState::Err) => "QP-STATE-07",
        (QpState::Err, _) if !exists => "QP-STATE-08",
        _ if !exists => "QP-STATE-01",
        (QpState::Reset, QpState::Init) if lacks => "QP-STATE-02",
        (QpState::Init, QpState::Rtr) if lacks => "QP-STATE-03",
        (QpState::Rtr, QpState::Rts) if lacks => "QP-STATE-04",
        _ if mask.contains(M::CUR_STATE) => "QP-STATE-09",
        _ => "QP-STATE-05",
    }
}

scenario!(wrong_current_state_is_refused: "QP-STATE-09", "QP-STATE-06"; needs MODIFY_CONNECT);
fn wrong_current_state_is_refused(setup: &Setup<'_>) -> Result {
    for from in [QpState::Rtr, QpState::Rts, QpState::Sqd] {
        for to in QpState::ALL {
            let attributes = transition::attributes(QpType::Rc, from, *to);
            if attributes.is_none_or(|a| !a.optional.contains(M::CUR_STATE)) {
                continue;
            }
            let mut qp = FreshQp::new(setup, QpType::Rc)?;
            qp.reach(from)?;
            let mask = required(QpType::Rc, from, *to) | M::CUR_STATE;
            for wrong in QpState::ALL.iter().filter(|state| **state != from) {
                qp.attr.cur_qp_state = *wrong;
                let result = stays(setup, &qp, &[ErrorKind::Invalid], "QP-STATE-09", *to, mask);
                value_in_case(&format!("it is not in {wrong}"), result)?;
            }
            qp.attr.cur_qp_state = from;
            qp.change(*to, mask).rule("QP-STATE-09")?;
        }
    }
    Ok(())
}

scenario!(unknown_attribute_is_refused: "QP-STATE-32", "QP-STATE-06"; needs MODIFY_CONNECT);
fn unknown_attribute_is_refused(setup: &Setup<'_>) -> Result {
    const NOT_FOUND: ErrorKind = ErrorKind::Os(2);
    let kinds = [ErrorKind::Invalid, ErrorKind::NotSupported, NOT_FOUND];
    let qp = FreshQp::new(setup, QpType::Rc)?;
    for to in [QpState::Init, QpState::Rtr, QpState::Rts, QpState::Err] {
        let from = setup.state(qp.end.qp)?;
        for bit in [26, 30, 31] {
            let unknown = M::from_bits_retain(1 << bit);
            let mask = required(QpType::Rc, from, to) | unknown;
            stays(setup, &qp, &kinds, "QP-STATE-32", to, mask)?;
        }
        qp.go(to)?;
    }
    Ok(())
}

/// A number that is required on the way to a state: how it is set, its greatest value, and others
/// that are not allowed.
struct Range {
    what: &'static str,
    to: QpState,
    set: fn(&mut QpAttr, u32),
    greatest: u32,
    bad: Vec<u32>,
}

impl Range {
    /// From 0 to `greatest`, in a field of 8 bits.
    fn byte(what: &'static str, to: QpState, greatest: u8, set: fn(&mut QpAttr, u32)) -> Self {
        let bad = [
            greatest.checked_add(1),
            (greatest < u8::MAX).then_some(u8::MAX),
        ];
        Self {
            what,
            to,
            set,
            greatest: greatest.into(),
            bad: bad.into_iter().flatten().map(u32::from).collect(),
        }
    }
}

fn ranges(device: &DeviceAttr, port: &PortAttr, bad_ports: &[u8]) -> Vec<Range> {
    let (init, rtr, rts) = (QpState::Init, QpState::Rtr, QpState::Rts);
    let (requester, responder) = (device.max_qp_init_rd_atom, device.max_qp_rd_atom);
    vec![
        Range {
            what: "port_num",
            to: init,
            set: |attr, n| attr.port_num = n as u8,
            greatest: 1,
            bad: bad_ports.iter().copied().map(u32::from).collect(),
        },
        Range {
            what: "pkey_index",
            to: init,
            set: |attr, n| attr.pkey_index = n as u16,
            greatest: u32::from(port.pkey_tbl_len) - 1,
            bad: vec![port.pkey_tbl_len.into(), u16::MAX.into()],
        },
        Range {
            what: "path_mtu",
            to: rtr,
            set: |attr, n| attr.path_mtu = Mtu::from(n),
            greatest: port.active_mtu.into(),
            bad: vec![0, 6, 1024],
        },
        Range::byte("max_dest_rd_atomic", rtr, responder, |attr, n| {
            attr.max_dest_rd_atomic = n as u8;
        }),
        Range::byte("max_rd_atomic", rts, requester, |attr, n| {
            attr.max_rd_atomic = n as u8;
        }),
    ]
}

/// A number of 3 or 5 bits, which an attribute has 8 bits for.
struct Field {
    what: &'static str,
    to: QpState,
    greatest: u8,
    of: fn(&mut QpAttr) -> &mut u8,
}

const FIELDS: [Field; 4] = [
    Field {
        what: "min_rnr_timer",
        to: QpState::Rtr,
        greatest: 31,
        of: |attr| &mut attr.min_rnr_timer,
    },
    Field {
        what: "timeout",
        to: QpState::Rts,
        greatest: 31,
        of: |attr| &mut attr.timeout,
    },
    Field {
        what: "retry_cnt",
        to: QpState::Rts,
        greatest: 7,
        of: |attr| &mut attr.retry_cnt,
    },
    Field {
        what: "rnr_retry",
        to: QpState::Rts,
        greatest: 7,
        of: |attr| &mut attr.rnr_retry,
    },
];

/// The state before RTR or RTS.
fn before(to: QpState) -> QpState {
    match to {
        QpState::Rtr => QpState::Init,
        _ => QpState::Rtr,
    }
}

scenario!(value_that_is_wider_than_its_field_is_as_declared:
    "TMR-07", "QP-STATE-06"; needs MODIFY_CONNECT);
fn value_that_is_wider_than_its_field_is_as_declared(setup: &Setup<'_>) -> Result {
    const RULE: &str = "TMR-07";
    let declared = setup.behavior()?.wide_values;
    for field in &FIELDS {
        for wide in [field.greatest + 1, field.greatest + 2, u8::MAX] {
            let mut qp = FreshQp::new(setup, QpType::Rc)?;
            let before = before(field.to);
            qp.reach(before)?;
            let good = *(field.of)(&mut qp.attr);
            *(field.of)(&mut qp.attr) = wide;
            let mask = required(QpType::Rc, before, field.to);
            let case = format!("{} {wide}", field.what);
            let as_before = qp.query()?;
            let changed = qp.change(field.to, mask);
            let fits = wide & field.greatest;
            let taken = match declared {
                Some(WideValues::Truncated) => Some(fits),
                Some(WideValues::TimeoutRefused) if field.what != "timeout" => Some(wide),
                Some(_) => None,
                // A device that declares nothing may do either.
                None => changed.is_ok().then_some(fits),
            };
            if let Some(taken) = taken {
                in_case(&case, changed.rule(RULE))?;
                let mut found = qp.query()?.attr;
                check_eq!(RULE, *(field.of)(&mut found), taken, case);
            } else {
                let refused = expect_err(changed, ErrorKind::Invalid, RULE);
                in_case(&case, refused.map(drop))?;
                check_eq!("QP-STATE-06", qp.query()?, as_before, "the queue pair");
                *(field.of)(&mut qp.attr) = good;
                qp.go(field.to).rule(RULE)?;
            }
        }
    }
    Ok(())
}

/// A number that an attribute has more bits for than packets have.
struct Number {
    what: &'static str,
    to: QpState,
    bits: u32,
    set: fn(&mut QpAttr, u32),
    get: fn(&QpAttr) -> u32,
}

const NUMBERS: [Number; 4] = [
    Number {
        what: "dest_qp_num",
        to: QpState::Rtr,
        bits: 24,
        set: |attr, n| attr.dest_qp_num = n,
        get: |attr| attr.dest_qp_num,
    },
    Number {
        what: "rq_psn",
        to: QpState::Rtr,
        bits: 24,
        set: |attr, n| attr.rq_psn = n,
        get: |attr| attr.rq_psn,
    },
    Number {
        what: "sq_psn",
        to: QpState::Rts,
        bits: 24,
        set: |attr, n| attr.sq_psn = n,
        get: |attr| attr.sq_psn,
    },
    Number {
        what: "sl",
        to: QpState::Rtr,
        bits: 4,
        set: |attr, n| attr.ah_attr.iter_mut().for_each(|av| av.sl = n as u8),
        get: |attr| attr.ah_attr.map_or(0, |av| av.sl.into()),
    },
];

scenario!(number_that_is_wider_than_in_packets_is_refused_or_cut: "TMR-07"; needs MODIFY_CONNECT);
/// One bit above the field is set in a number that is otherwise right. The connection works.
fn number_that_is_wider_than_in_packets_is_refused_or_cut(setup: &Setup<'_>) -> Result {
    const RULE: &str = "TMR-07";
    for number in &NUMBERS {
        let (mut a, b) = FreshQp::pair(setup, QpType::Rc)?;
        b.reach(QpState::Rts)?;
        let before = before(number.to);
        a.reach(before)?;
        let (good, right) = (a.attr, (number.get)(&a.attr));
        (number.set)(&mut a.attr, right | 1 << number.bits);
        let mask = required(QpType::Rc, before, number.to);
        let changed = a.change(number.to, mask);
        if changed.is_ok() {
            let kept = (number.get)(&a.query()?.attr);
            let [kept, right] = [kept, right].map(|n| format!("{n:#x}"));
            check_eq!(RULE, kept, right, number.what);
        } else {
            let refused = expect_err(changed, ErrorKind::Invalid, RULE);
            in_case(number.what, refused.map(drop))?;
        }
        a.attr = good;
        a.reach(QpState::Rts)?;
        b.end.recv(1, 8)?;
        a.end.send(2, 8)?;
        for cq in [a.end.send_cq, b.end.recv_cq] {
            let passed = setup.successes(cq, 1).rule(RULE);
            in_case(number.what, passed.map(drop))?;
        }
    }
    Ok(())
}

scenario!(attribute_out_of_range_is_refused: "QP-STATE-27", "QP-STATE-06"; needs MODIFY_CONNECT);
fn attribute_out_of_range_is_refused(setup: &Setup<'_>) -> Result {
    let mut qp = FreshQp::new(setup, QpType::Rc)?;
    let device = setup.query_device(qp.end.context)?;
    let port = setup.query_port(qp.end.context, setup.port())?;
    let ranges = ranges(&device, &port, &bad_ports(setup)?);
    for to in [QpState::Init, QpState::Rtr, QpState::Rts] {
        let mask = required(QpType::Rc, setup.state(qp.end.qp)?, to);
        for range in ranges.iter().filter(|range| range.to == to) {
            for bad in &range.bad {
                (range.set)(&mut qp.attr, *bad);
                let result = stays(setup, &qp, &[ErrorKind::Invalid], "QP-STATE-27", to, mask);
                in_case(&format!("{} {bad}", range.what), result)?;
            }
            (range.set)(&mut qp.attr, range.greatest);
        }
        qp.go(to).rule("QP-STATE-27")?;
    }
    Ok(())
}

scenario!(bad_address_of_the_peer_is_refused:
    "QP-STATE-29", "QP-STATE-27", "QP-STATE-06"; needs MODIFY_CONNECT);
fn bad_address_of_the_peer_is_refused(setup: &Setup<'_>) -> Result {
    let mut qp = FreshQp::new(setup, QpType::Rc)?;
    qp.reach(QpState::Init)?;
    let good = qp.attr.ah_attr;
    let mask = required(QpType::Rc, QpState::Init, QpState::Rtr);
    for av in bad_addresses(setup, &qp.av())? {
        // A GRH with a GID index that the port does not have is invalid too.
        let of_port = av.port_num != qp.attr.port_num;
        let rule = if of_port {
            "QP-STATE-27"
        } else {
            "QP-STATE-29"
        };
        qp.attr.ah_attr = Some(av);
        let result = stays(setup, &qp, &[ErrorKind::Invalid], rule, QpState::Rtr, mask);
        in_case(&format!("{av:?}"), result)?;
    }
    qp.attr.ah_attr = good;
    qp.go(QpState::Rtr).rule("QP-STATE-29")
}

scenario!(address_that_no_device_has_is_as_declared:
    "AH-07", "QP-STATE-06"; needs UC, MODIFY_CONNECT);
fn address_that_no_device_has_is_as_declared(setup: &Setup<'_>) -> Result {
    const RULE: &str = "AH-07";
    let Some(way) = way_to_no_device(setup)? else {
        return Ok(());
    };
    let declared = setup.behavior()?.unowned_gid;
    for qp_type in [QpType::Rc, QpType::Uc] {
        let mut qp = FreshQp::new(setup, qp_type)?;
        qp.reach(QpState::Init)?;
        let good = qp.attr.ah_attr.replace(way);
        let mask = required(qp_type, QpState::Init, QpState::Rtr);
        if declared == Some(Check::Refused) {
            let result = stays(setup, &qp, &UNRESOLVED, RULE, QpState::Rtr, mask);
            in_case(&qp_type.to_string(), result)?;
            qp.attr.ah_attr = good;
        }
        if declared.is_some() {
            in_case(&qp_type.to_string(), qp.go(QpState::Rtr).rule(RULE))?;
        }
    }
    Ok(())
}

/// The change is refused, and all that can be queried stays as it was.
fn stays(
    setup: &Setup<'_>,
    qp: &FreshQp<'_>,
    kinds: &[ErrorKind],
    rule: &'static str,
    to: QpState,
    mask: M,
) -> Result {
    let before = qp.query()?;
    let from = before.attr.qp_state;
    let case = format!("{from} to {to} with {mask}");
    let result = refused(setup, kinds, rule, || qp.change(to, mask)).and_then(|_| {
        check_eq!("QP-STATE-06", qp.query()?, before, "the queue pair");
        Ok(())
    });
    in_case(&case, result)
}
