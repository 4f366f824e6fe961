//! Destroying what is in use.

use verbs_api::{ErrorKind, QpType};

use super::refused;
use crate::failure::in_case;
use crate::{Bench, End, OfRule, PairOptions, Result};

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

    fn destroy(self, bench: &Bench<'_>, end: &End<'_>) -> verbs_api::Result<()> {
        match self {
            Self::Pd => bench.dealloc_pd(end.pd),
            Self::Mr => bench.dereg_mr(end.mr),
            Self::Channel => bench.destroy_comp_channel(end.channel),
            Self::Cq => bench.destroy_cq(end.recv_cq, bench.wait()),
            Self::Qp => bench.destroy_qp(end.qp, bench.wait()),
        }
    }
}

scenario!(objects_go_in_the_order_of_their_use_only:
    "LIFE-01", "PD-01", "CHAN-38", "CQ-DESTROY-01", "LIFE-02"; hazards MAY_CRASH);
/// In every order: what is in use is busy, and goes once it is not.
fn objects_go_in_the_order_of_their_use_only(bench: &Bench<'_>) -> Result {
    let before = bench.live()?;
    for order in orders(&Piece::ALL) {
        let end = bench.end(
            bench.ctx_a(),
            PairOptions {
                one_cq: true,
                mem: 4096,
                ..PairOptions::default()
            },
        )?;
        let mut left = order.clone();
        while !left.is_empty() {
            for piece in left.clone() {
                let result = attempt(bench, &end, piece, &mut left);
                in_case(&format!("in the order {order:?}"), result)?;
            }
        }
        bench.expect_live(before, "LIFE-02")?;
    }
    Ok(())
}

fn attempt(bench: &Bench<'_>, end: &End<'_>, piece: Piece, left: &mut Vec<Piece>) -> Result {
    let (users, rule) = piece.users();
    if users.iter().any(|user| left.contains(user)) {
        refused(bench, &[ErrorKind::Busy], rule, || {
            piece.destroy(bench, end)
        })
        .map(drop)
    } else {
        left.retain(|other| *other != piece);
        piece.destroy(bench, end).rule(rule)
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
fn refused_destruction_leaves_a_working_connection(bench: &Bench<'_>) -> Result {
    let pair = bench.pair(PairOptions {
        separate_channels: true,
        ..PairOptions::default()
    })?;
    let busy = [ErrorKind::Busy];
    for end in [pair.a, pair.b] {
        refused(bench, &busy, "PD-01", || bench.dealloc_pd(end.pd))?;
        for cq in [end.send_cq, end.recv_cq] {
            refused(bench, &busy, "CQ-DESTROY-01", || {
                bench.destroy_cq(cq, bench.wait())
            })?;
        }
        for channel in [end.send_channel, end.channel] {
            refused(bench, &busy, "CHAN-38", || {
                bench.destroy_comp_channel(channel)
            })?;
        }
    }
    pair.still_works("LIFE-01")
}

scenario!(domain_with_an_address_handle_is_busy: "LIFE-01", "PD-01"; needs UD);
fn domain_with_an_address_handle_is_busy(bench: &Bench<'_>) -> Result {
    let pair = bench.pair(PairOptions::of(QpType::Ud))?;
    let pd = bench.alloc_pd(bench.ctx_a())?;
    let ah = bench.create_ah(pd, &bench.route_to(bench.ctx_a())?)?;
    refused(bench, &[ErrorKind::Busy], "PD-01", || bench.dealloc_pd(pd))?;
    bench.destroy_ah(ah).rule("PD-01")?;
    bench.dealloc_pd(pd).rule("PD-01")?;
    pair.still_works("LIFE-01")
}
