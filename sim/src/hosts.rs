//! The machines that the nodes are in.

use core::ops::Range;
use std::collections::BTreeSet;

use verbs_api::{BadHandle, Handle};

use crate::device::{Refusal, bad_handle};

/// The hosts that have names.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hosts {
    /// The name of each, and the number of its nodes, in the order of the nodes.
    named: &'static [(&'static str, u32)],
    /// The number of nodes of all.
    nodes: u32,
}

/// The nodes of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HostNodes {
    first: u32,
    count: u32,
}

/// The handles whose objects were lost when their host crashed, by index and generation.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lost(BTreeSet<(u32, u32)>);

impl Hosts {
    /// Each node is a host, with the name of its device.
    pub(crate) const BY_NODE: Self = Self {
        named: &[],
        nodes: 0,
    };

    /// # Panics
    /// Without hosts, with one that has no node, and with more than 65,535 nodes.
    pub(crate) const fn new(named: &'static [(&'static str, u32)]) -> Self {
        let (mut at, mut nodes) = (0, 0_u32);
        // A constant function has no iterators.
        while at < named.len() {
            let count = named[at].1;
            assert!(count > 0, "a host has a node");
            nodes = nodes.saturating_add(count);
            at += 1;
        }
        assert!(nodes > 0 && nodes <= 0xffff, "1 to 65,535 nodes");
        Self { named, nodes }
    }

    /// # Panics
    /// If a name is empty, or two hosts have it.
    pub(crate) fn check_names(self) {
        let mut names = BTreeSet::new();
        for (name, _) in self.named {
            assert!(!name.is_empty(), "a host has a name");
            assert!(names.insert(name), "two hosts have the name {name}");
        }
    }

    /// The number of nodes, if hosts have names.
    pub(crate) fn nodes(self) -> Option<u32> {
        (self.nodes > 0).then_some(self.nodes)
    }

    /// The nodes of a host, of `nodes` nodes in all.
    pub(crate) fn find(self, name: &str, nodes: u32) -> Option<HostNodes> {
        let mut hosts = self.all(nodes);
        hosts.find(|(of, _)| of == name).map(|(_, nodes)| nodes)
    }

    /// All hosts, with their nodes.
    pub(crate) fn all(self, nodes: u32) -> impl Iterator<Item = (String, HostNodes)> {
        let unnamed = if self.nodes == 0 { nodes } else { 0 };
        let by_node = (0..unnamed).map(|node| (format!("sim{node}"), 1));
        let named = self
            .named
            .iter()
            .map(|(name, count)| ((*name).to_owned(), *count));
        by_node.chain(named).scan(0, |next, (name, count)| {
            let first = *next;
            *next += count;
            Some((name, HostNodes { first, count }))
        })
    }
}

impl HostNodes {
    pub(crate) const fn first(self) -> u32 {
        self.first
    }

    pub(crate) const fn range(self) -> Range<u32> {
        self.first..self.first + self.count
    }

    pub(crate) fn contains(self, node: u32) -> bool {
        self.range().contains(&node)
    }
}

impl Lost {
    pub(crate) fn add(&mut self, handle: impl Handle) {
        self.0.insert((handle.index(), handle.generation()));
    }

    pub(crate) fn has(&self, handle: impl Handle) -> bool {
        self.0.contains(&(handle.index(), handle.generation()))
    }

    /// The refusal of a handle that names no object.
    pub(crate) fn explain<H: Handle>(&self, handle: H, refusal: Refusal) -> Refusal {
        if self.has(handle) {
            bad_handle(H::OBJECT, BadHandle::Crashed)
        } else {
            refusal
        }
    }
}
