//! The mistakes that were noted last.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::Fabric;
use super::findings::{drop_consequences, finding};
use crate::device::Fresh;
use crate::diagnosis::{Finding, Noted, Problem};
use crate::node::Node;

/// From now on what is new is kept for [`take_fresh`]; `is_any` says that there is some.
pub(crate) fn keep_fresh(fabric: &mut Fabric, is_any: &Arc<AtomicBool>) {
    for slot in &mut fabric.slots {
        slot.node.device.base.history.news.keep(is_any.clone());
    }
}

/// What is new since the last call.
pub(crate) fn take_fresh(fabric: &mut Fabric) -> Vec<Finding> {
    let mut found = Vec::new();
    for number in 0..fabric.slots.len() as u32 {
        let fresh = fabric.node_mut(number).device.base.history.news.take();
        let of_node = |fresh| {
            let noted = noted(fabric, fabric.node(number), fresh)?;
            Some(finding(number, noted))
        };
        found.extend(fresh.into_iter().filter_map(of_node));
    }
    drop_consequences(&mut found);
    found
}

fn noted(fabric: &Fabric, node: &Node, fresh: Fresh) -> Option<Noted> {
    let history = &node.device.base.history;
    let is_of = |problem: &Problem, of| matches!(problem, Problem::Overrun { cq, .. } if *cq == of);
    match fresh {
        Fresh::Noted(number) => history.noted().get(number).cloned(),
        Fresh::Failed(number) => {
            let failure = history.failures.get(number)?;
            let node = node.findings();
            Some(node.failure(failure, |peer| fabric.node(peer)))
        }
        Fresh::Overrun(cq) => {
            let mut overruns = history.overruns();
            overruns.find(|noted| is_of(&noted.problem, cq))
        }
    }
}
