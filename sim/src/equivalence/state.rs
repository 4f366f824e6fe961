//! The whole state of a node, as text.

use std::fmt::Write as _;

use crate::device::Device;
use crate::node::Node;
use crate::packet::payload::Payload;
use crate::qp::{CachedPath, Qp as DeviceQp};

/// A copy of a queue pair without what no program can observe.
fn observable(qp: &DeviceQp) -> DeviceQp {
    let mut qp = qp.clone();
    // A message of the fast path cannot be requested again, so nothing is kept for that.
    qp.responder.reads.resources.0.clear();
    if let Some(requester) = &mut qp.requester {
        requester.path = CachedPath::default();
        let requests = &mut requester.sq.requests;
        for offset in 0..requests.len() {
            let send = requests.at_mut(offset);
            send.payload = Payload::default();
            send.inline.clear();
        }
    }
    qp
}

/// The whole state of a node, except for what no program can observe.
pub(super) fn snapshot(node: &Node) -> String {
    let mut snapshot = String::new();
    for (index, qp) in node.qps.iter() {
        writeln!(snapshot, "qp {index} {:?}", observable(qp)).unwrap();
    }
    let Device {
        base,
        ports,
        domains,
        cqs,
        ..
    } = &node.device;
    for (index, cq) in cqs.table.iter() {
        writeln!(snapshot, "cq {index} {cq:?}").unwrap();
    }
    let channels: Vec<_> = cqs.channels.iter().collect();
    writeln!(snapshot, "{channels:?} {:?}", cqs.moderated.running()).unwrap();
    let pds: Vec<_> = domains.pds.iter().collect();
    writeln!(snapshot, "{pds:?} {:?}", node.device.srqs).unwrap();
    let ahs: Vec<_> = domains.ahs.iter().collect();
    writeln!(
        snapshot,
        "{:?} {:?} {ahs:?}",
        domains.regions, domains.windows
    )
    .unwrap();
    writeln!(snapshot, "{ports:?} {:?}", node.device.timers.running()).unwrap();
    let mut base = base.clone();
    // All simulations number their rules together.
    base.rules = Default::default();
    writeln!(snapshot, "{base:?}").unwrap();
    snapshot
}
