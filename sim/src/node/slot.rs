//! A node in its fabric, with data that only the fabric needs.

use super::Node;
use crate::descriptor::Descriptors;

/// A node, the number of threads that wait for it, and the file descriptors of its event queues.
pub(crate) struct NodeSlot {
    pub(crate) node: Node,
    /// The number of threads that wait for news of the node.
    pub(crate) waiting: u32,
    pub(crate) descriptors: Descriptors,
}

impl NodeSlot {
    pub(crate) fn new(node: Node) -> Self {
        Self {
            node,
            waiting: 0,
            descriptors: Descriptors::default(),
        }
    }
}
