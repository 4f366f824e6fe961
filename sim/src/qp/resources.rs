//! Responder resources: the reads and atomics that a requester may ask for again.

use std::collections::VecDeque;

use crate::packet::{Psn, Reth, packets};

/// The last reads and atomics that a responder has carried out, oldest first. It keeps at most as
/// many as the peer may have in progress (`max_dest_rd_atomic`). A duplicate of an older one is not
/// answered.
#[derive(Clone, Debug, Default)]
pub(crate) struct Resources(pub(crate) VecDeque<Resource>);

/// A read or an atomic that was carried out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Resource {
    psn: Psn,
    /// The number of sequence numbers of the answer.
    span: u32,
    kind: Kind,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Read(Reth),
    /// The value that the atomic found. It is not carried out again (ATOM-09).
    Atomic(u64),
}

impl Resource {
    pub(super) fn read(psn: Psn, span: u32, reth: Reth) -> Self {
        let kind = Kind::Read(reth);
        Self { psn, span, kind }
    }

    pub(super) fn atomic(psn: Psn, original: u64) -> Self {
        let kind = Kind::Atomic(original);
        Self { psn, span: 1, kind }
    }

    /// Whether a packet of the answer has this sequence number.
    pub(super) fn contains(&self, psn: Psn) -> bool {
        psn.distance(self.psn) < self.span
    }

    /// Whether a request from this sequence number on asks for the read or a part of it.
    fn covers(&self, psn: Psn, again: &Reth, mtu: u32) -> bool {
        let Kind::Read(made) = &self.kind else {
            return false;
        };
        let ahead = psn.distance(self.psn);
        let is_within = || {
            let offset = again.va.checked_sub(made.va)?;
            let end = offset.checked_add(again.length.into())?;
            Some(end <= made.length.into())
        };
        self.contains(psn)
            // A retry may begin later, but not reach further than the original.
            && packets(again.length, mtu) <= self.span - ahead
            && again.rkey == made.rkey
            && is_within() == Some(true)
    }
}

impl Resources {
    /// Keeps a resource, and drops the oldest ones above the limit `most`.
    pub(super) fn keep(&mut self, resource: Resource, most: u8) {
        // The peer promised not to have more in progress, so the oldest is settled.
        while self.0.len() >= usize::from(most) {
            self.0.pop_front();
        }
        self.0.push_back(resource);
    }

    /// The value that the atomic with this sequence number found.
    pub(super) fn original(&self, psn: Psn) -> Option<u64> {
        self.newest().find_map(|resource| match resource.kind {
            Kind::Atomic(original) if resource.psn == psn => Some(original),
            _ => None,
        })
    }

    /// The read that contains a repeated request.
    pub(super) fn read(&self, psn: Psn, again: &Reth, mtu: u32) -> Option<&Resource> {
        self.newest()
            .find(|resource| resource.covers(psn, again, mtu))
    }

    /// The newest first: sequence numbers wrap, so an old resource may have the number of a new
    /// one.
    fn newest(&self) -> impl Iterator<Item = &Resource> {
        self.0.iter().rev()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// ATOM-09: sequence numbers wrap while older answers are kept.
    #[test]
    fn newest_answer_of_a_number_counts() {
        let mut resources = Resources::default();
        for (psn, original) in [(7, 1), (8, 2), (7, 3)] {
            resources.keep(Resource::atomic(Psn::new(psn), original), 4);
        }
        let found = [7, 8, 9].map(|psn| resources.original(Psn::new(psn)));
        assert_eq!(found, [Some(3), Some(2), None]);
    }

    /// RDMA-23: a repeated request is for a part of a read that was made, with its key, within its
    /// addresses and its sequence numbers.
    #[test]
    fn duplicate_of_a_read_lies_within_it() {
        const MTU: u32 = 1024;
        let reth = |va, rkey, length| Reth { va, rkey, length };
        let last = Psn::new(Psn::MAX);
        let mut resources = Resources::default();
        resources.keep(Resource::atomic(Psn::new(1), 5), 2);
        resources.keep(Resource::read(last, 3, reth(4096, 9, 2500)), 2);
        let table = [
            (0, reth(4096, 9, 2500), true),
            (1, reth(5120, 9, 1476), true),
            (1, reth(5120, 9, 1024), true),
            (2, reth(6144, 9, 452), true),
            (0, reth(4096, 8, 2500), false),
            (0, reth(4095, 9, 2500), false),
            (0, reth(4097, 9, 2500), false),
            (0, reth(0, 9, 2500), false),
            (0, reth(u64::MAX, 9, 2500), false),
            (2, reth(4096, 9, 2500), false),
            (3, reth(6144, 9, 452), false),
            (-1, reth(4096, 9, 2500), false),
        ];
        for (ahead, again, is_part) in table {
            let psn = Psn::new(Psn::MAX.wrapping_add_signed(ahead));
            let found = resources.read(psn, &again, MTU);
            assert_eq!(found.is_some(), is_part, "{ahead}, {again:?}");
        }
        resources.keep(Resource::atomic(Psn::new(2), 6), 2);
        resources.keep(Resource::atomic(Psn::new(3), 7), 2);
        assert!(
            resources.read(last, &reth(4096, 9, 2500), MTU).is_none(),
            "the oldest made room"
        );
    }
}
