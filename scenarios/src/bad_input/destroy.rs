//! Destroying what is in use.

use verbs_api::{ErrorKind, QpType};

use super::refused;
use crate::failure::in_case;
use crate::{End, OfRule, PairOptions, Result, Setup};

/// What an end with one CQ consists of, and what uses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Piece {
    Pd,
    Mr,
    Channel,
    Cq,
    Qp,
}

impl Piece {
    const ALL: [Self; 5] = [Self::Pd, Self::Mr, Self::Channel, Self::Cq, Self::Qp];

    fn users(self) -> (&'static [Self], &'static str) {
        match self {
            Self::Pd => (&[Self::Mr, Self::Qp], "PD-01"),
            Self::Channel => (&[Self::Cq], "CHAN-38"),
            Self::Cq => (&[Self::Qp], "CQ-DESTROY-01"),
            Self::Mr | Self::Qp => (&[], "LIFE-01"),
        }
    }

    fn destroy(self, setup: &Setup<'_>, end: &End<'_>) -> verbs_api::Result<()> {
        match self {
            Self::Pd => setup.dealloc_pd(end.pd),
            Self::Mr => setup.dereg_mr(end.mr),
            Self::Channel => setup.destroy_comp_channel(end.channel),
            Self::Cq => setup.destroy_cq(end.recv_cq, setup.wait()),
            Self::Qp => setup.destroy_qp(end.qp, setup.wait()),
        }
    }
}

scenario!(objects_go_in_the_order_of_their_use_only:
    "LIFE-01", "PD-01", "CHAN-38", "CQ-DESTROY-01", "LIFE-02"; hazards MAY_CRASH);
/// In every order: what is in use is busy, and goes once it is not.
fn objects_go_in_the_order_of_their_use_only(setup: &Setup<'_>) -> Result {
    let before = setup.live()?;
    for order in orders(&Piece::ALL) {
        let end = setup.end(
            setup.ctx_a(),
            PairOptions {
                one_cq: true,
                mem: 4096,
                ..PairOptions::default()
            },
        )?;
        let mut left = order.clone();
        while !left.is_empty() {
            for piece in left.clone() {
                let result = attempt(setup, &end, piece, &mut left);
                in_case(&format!("in the order {order:?}"), result)?;
            }
        }
        setup.expect_live(before, "LIFE-02")?;
    }
    Ok(())
}

fn attempt(setup: &Setup<'_>, end: &End<'_>, piece: Piece, left: &mut Vec<Piece>) -> Result {
    let (users, rule) = piece.users();
    if users.iter().any(|user| left.contains(user)) {
        refused(setup, &[ErrorKind::Busy], rule, || {
            piece.destroy(setup, end)
        })
        .map(drop)
    } else {
        left.retain(|other| *other != piece);
        piece.destroy(setup, end).rule(rule)
    }
}

fn orders(pieces: &[Piece]) -> Vec<Vec<Piece>> {
    if pieces.is_empty() {
        return vec![Vec::new()];
    }
    let first = |piece: &Piece| {
        let rest: Vec<_> = pieces
            .iter()
            .copied()
            .filter(|other| other != piece)
            .collect();
        let with = |mut order: Vec<Piece>| {
            order.insert(0, *piece);
            order
        };
        orders(&rest).into_iter().map(with).collect::<Vec<_>>()
    };
    pieces.iter().flat_map(first).collect()
}

scenario!(refused_destruction_leaves_a_working_connection:
    "LIFE-01", "PD-01", "CHAN-38", "CQ-DESTROY-01"; hazards MAY_CRASH);
fn refused_destruction_leaves_a_working_connection(setup: &Setup<'_>) -> Result {
    let pair = setup.pair(PairOptions {
        separate_channels: true,
        ..PairOptions::default()
    })?;
    let busy = [ErrorKind::Busy];
    for end in [pair.a, pair.b] {
        refused(setup, &busy, "PD-01", || setup.dealloc_pd(end.pd))?;
        for cq in [end.send_cq, end.recv_cq] {
            refused(setup, &busy, "CQ-DESTROY-01", || {
                setup.destroy_cq(cq, setup.wait())
            })?;
        }
        for channel in [end.send_channel, end.channel] {
            refused(setup, &busy, "CHAN-38", || {
                setup.destroy_comp_channel(channel)
            })?;
        }
    }
    pair.still_works("LIFE-01")
}

scenario!(domain_with_an_address_handle_is_busy: "LIFE-01", "PD-01"; needs UD);
fn domain_with_an_address_handle_is_busy(setup: &Setup<'_>) -> Result {
    let pair = setup.pair(PairOptions::of(QpType::Ud))?;
    let pd = setup.alloc_pd(setup.ctx_a())?;
    let ah = setup.create_ah(pd, &setup.route_to(setup.ctx_a())?)?;
    refused(setup, &[ErrorKind::Busy], "PD-01", || setup.dealloc_pd(pd))?;
    setup.destroy_ah(ah).rule("PD-01")?;
    setup.dealloc_pd(pd).rule("PD-01")?;
    pair.still_works("LIFE-01")
}
