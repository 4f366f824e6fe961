//! Draws of a generator.

use verbs_api::random::Random;

/// A stream of draws, the same in every version for the same seed.
#[derive(Debug)]
pub(super) struct Dice(Random);

impl Dice {
    pub(super) fn new(seed: u64) -> Self {
        Self(Random::new(seed, 0))
    }

    /// A number below `n`, which is not 0. Draws are everywhere: as a call they take less of the
    /// instruction cache.
    #[inline(never)]
    pub(super) fn below(&mut self, n: u32) -> u32 {
        // Widening multiplication: the bias is far below what anybody could notice.
        ((u64::from(self.0.next_u32()) * u64::from(n)) >> 32) as u32
    }

    /// A number from `low` to `high`.
    pub(super) fn between(&mut self, low: u32, high: u32) -> u32 {
        low + self.below(high - low + 1)
    }

    /// True with a probability of `chance` in a hundred.
    pub(super) fn percent(&mut self, chance: u32) -> bool {
        self.below(100) < chance
    }

    /// True now and then.
    pub(super) fn rarely(&mut self) -> bool {
        self.below(200) == 0
    }

    pub(super) fn any(&mut self) -> u32 {
        self.0.next_u32()
    }

    /// One of a list, which is not empty.
    pub(super) fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u32) as usize]
    }

    /// One of several, of which there is at least one.
    pub(super) fn one_of<T>(&mut self, of: impl Iterator<Item = T> + Clone) -> T {
        let at = self.below(of.clone().count() as u32) as usize;
        let mut from = of.skip(at);
        from.next().expect("a draw is below their number")
    }

    /// One of a list by weight.
    pub(super) fn weighted<T: Copy>(&mut self, of: &[(u32, T)]) -> T {
        let all = of.iter().map(|(weight, _)| weight).sum();
        let mut at = self.below(all);
        for (weight, what) in of {
            if at < *weight {
                return *what;
            }
            at -= weight;
        }
        unreachable!("a draw is below the sum of the weights")
    }
}
