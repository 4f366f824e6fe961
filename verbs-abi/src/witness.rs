//! The declarations of this crate, compared with what headers of C declare.

use std::collections::BTreeMap;

use crate::{
    ah, cm, context, cq, cq_ex, device, ece, event, mr, mw, pd, port, qp, qp_ex, srq, wc, wr, xrc,
};

/// A number of this crate: a size, an offset, or the value of a constant.
#[derive(Debug)]
pub(crate) struct Row {
    /// How the facts name it.
    fact: String,
    ours: i64,
    /// The same number in the bindings that are made from the headers of this machine.
    #[cfg(feature = "witness")]
    bindings: Option<i64>,
}

impl Row {
    pub(crate) fn size(structure: &str, ours: usize) -> Self {
        Self::new(format!("size {structure}"), ours as i64)
    }

    pub(crate) fn member(structure: &str, member: &str, ours: usize) -> Self {
        // The bindings append `_` to words that are Rust's.
        let member = member.strip_suffix('_').unwrap_or(member);
        Self::new(format!("offset {structure}.{member}"), ours as i64)
    }

    pub(crate) fn value(constant: &str, ours: impl TryInto<i64>) -> Self {
        let ours = ours
            .try_into()
            .ok()
            .expect("an enumerator is at most an int");
        Self::new(format!("value {constant}"), ours)
    }

    fn new(fact: String, ours: i64) -> Self {
        Self {
            fact,
            ours,
            #[cfg(feature = "witness")]
            bindings: None,
        }
    }

    #[cfg(feature = "witness")]
    pub(crate) fn and_bindings(mut self, theirs: impl TryInto<i64>) -> Self {
        self.bindings = theirs.try_into().ok();
        self
    }
}

fn rows() -> Vec<Row> {
    [
        [
            ah::layout,
            cm::layout,
            context::layout,
            cq::layout,
            cq_ex::layout,
            device::layout,
            ece::layout,
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
    ]
    .concat()
    .into_iter()
    .flat_map(|rows: fn() -> Vec<Row>| rows())
    .collect()
}

/// The facts are those of x86_64.
#[cfg(target_arch = "x86_64")]
#[test]
fn declarations_are_those_of_the_newest_release() {
    let facts: BTreeMap<&str, i64> = include_str!("../rdma-core/facts.txt")
        .lines()
        .filter_map(|line| line.rsplit_once(' '))
        .filter_map(|(fact, number)| Some((fact, number.parse().ok()?)))
        .collect();
    // C has no names for the types of some members.
    let is_named = |row: &Row| !row.fact.split('.').any(|word| word.ends_with("_t"));
    let rows: Vec<_> = rows().into_iter().filter(is_named).collect();
    let differs = |row: &&Row| facts.get(row.fact.as_str()) != Some(&row.ours);
    let wrong: Vec<_> = rows.iter().filter(differs).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[cfg(feature = "witness")]
#[test]
fn declarations_are_those_of_the_machine() {
    let rows = rows();
    let differs = |row: &&Row| row.bindings.is_some_and(|theirs| theirs != row.ours);
    let wrong: Vec<_> = rows.iter().filter(differs).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}
