//! The declarations of this crate, compared with bindings that are made from the header of this machine.

use crate::{
    ah, cm, context, cq, cq_ex, device, event, mr, mw, pd, port, qp, qp_ex, srq, wc, wr, xrc,
};

/// Structure and field, or none for the size, or enumeration and constant; our number and theirs.
pub(crate) type Row = (&'static str, &'static str, i64, i64);

#[test]
fn declarations_are_those_of_the_header() {
    let rows = [
        [
            ah::layout,
            cm::layout,
            context::layout,
            cq::layout,
            cq_ex::layout,
            device::layout,
        ]
        .as_slice(),
        &[
            event::layout,
            mr::layout,
            mw::layout,
            pd::layout,
            port::layout,
            qp::layout,
            qp_ex::layout,
        ],
        &[srq::layout, wc::layout, wr::layout, xrc::layout],
        &[
            cm::values,
            context::values,
            cq::values,
            cq_ex::values,
            device::values,
            mr::values,
            pd::values,
        ],
        &[
            port::values,
            qp::values,
            srq::values,
            wr::values,
            xrc::values,
        ],
    ];
    let rows: Vec<Row> = rows.concat().into_iter().flat_map(|rows| rows()).collect();
    println!("{} numbers compared", rows.len());
    let is_wrong = |(.., ours, theirs): &&Row| ours != theirs;
    let wrong: Vec<&Row> = rows.iter().filter(is_wrong).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}
