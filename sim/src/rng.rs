//! Randomness: one seed, one stream for each purpose, so that a new draw in one place does not
//! shift the others.

use verbs_api::random;

/// What random numbers are drawn for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Purpose {
    /// Garbage in undefined fields, and what else a device may do as it likes. One stream a node
    /// follows.
    Node = 16,
    /// What a fault rule with a rate strikes. One stream a rule follows.
    Fault = 1 << 24,
    /// What the connection manager chooses: ports, and the numbers in its messages.
    Cm = 3 << 28,
    /// Where keys are. One stream a node follows.
    Keys = 1 << 30,
    /// What QP numbers are. One stream a node follows.
    QpNumbers = 3 << 29,
}

/// A stream of random numbers.
#[derive(Clone, Debug)]
pub(crate) struct Random(random::Random);

impl Random {
    /// The stream for a purpose; `part` tells apart several of one purpose.
    pub(crate) fn new(seed: u64, purpose: Purpose, part: u32) -> Self {
        let stream = purpose as u64 + u64::from(part);
        Self(random::Random::new(seed, stream))
    }

    /// True `rate` times in a million.
    pub(crate) fn per_million(&mut self, rate: u32) -> bool {
        // Widening multiplication: the bias of one in 2^32 is far below one in a million.
        (u64::from(self.0.next_u32()) * 1_000_000) >> 32 < u64::from(rate)
    }

    /// Any number.
    pub(crate) fn any(&mut self) -> u64 {
        self.0.next_u64()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A seed must mean the same for ever, or replay commands rot.
    #[test]
    fn the_first_numbers_of_a_seed_never_change() {
        let mut a = Random::new(42, Purpose::Fault, 0);
        let mut b = Random::new(42, Purpose::Fault, 0);
        let mut other = Random::new(42, Purpose::Fault, 1);
        let first = a.any();
        assert_eq!(first, b.any());
        assert_ne!(first, other.any());
        assert_eq!(first, GOLDEN);
    }

    const GOLDEN: u64 = 12_684_197_727_541_009_461;
}
