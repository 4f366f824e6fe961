//! Random numbers: one seed, and one stream for each purpose, so a new draw in one place does not
//! shift the others.

use verbs_api::random;

/// The purpose of random numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Purpose {
    /// Garbage in undefined fields, and other free choices of a device. Each node has a stream from
    /// here on.
    Node = 16,
    /// The firings of a fault rule with a rate. Each rule has a stream from here on.
    Fault = 1 << 24,
    /// Choices of the connection manager: ports, and the numbers in its messages.
    Cm = 3 << 28,
    /// Which task runs next.
    Tasks = 5 << 28,
    /// Which data is placed late.
    Placement = 7 << 27,
    /// How long packets of a slow link take. Each fault rule has a stream from here on.
    Jitter = 15 << 26,
    /// Keys. Each node has a stream from here on.
    Keys = 1 << 30,
    /// QP numbers. Each node has a stream from here on.
    QpNumbers = 3 << 29,
}

/// A stream of random numbers.
#[derive(Clone, Debug)]
pub(crate) struct Random(random::Random);

impl Random {
    /// The stream for a purpose. `part` distinguishes several of one purpose.
    pub(crate) fn new(seed: u64, purpose: Purpose, part: u32) -> Self {
        let stream = purpose as u64 + u64::from(part);
        Self(random::Random::new(seed, stream))
    }

    /// Returns true `rate` times in a million.
    #[cfg_attr(any(), mutants::skip)] // the suite does not reach it
    pub(crate) fn per_million(&mut self, rate: u32) -> bool {
        // Widening multiplication: the bias of one in 2^32 is far below one in a million.
        (u64::from(self.0.next_u32()) * 1_000_000) >> 32 < u64::from(rate)
    }

    /// A number below `count`, which is not 0.
    pub(crate) fn below(&mut self, count: usize) -> usize {
        // Widening multiplication: the bias is far below one in 2^32 for few choices.
        ((u128::from(self.0.next_u64()) * count as u128) >> 64) as usize
    }

    /// Any number.
    pub(crate) fn any(&mut self) -> u64 {
        self.0.next_u64()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A seed must keep its meaning forever, or replay commands stop working.
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
