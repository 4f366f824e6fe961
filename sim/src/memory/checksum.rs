//! A fast checksum of bytes, to detect changes. It does not protect against deliberate collisions.

/// Sums bytes, part by part. The same bytes in other parts may have another sum.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Checksum([u64; LANES]);

/// The lanes do not depend on each other, so the processor can compute them in parallel.
const LANES: usize = 4;
const WORD: usize = size_of::<u64>();
/// From the golden ratio. It is odd, so multiplication by it is invertible.
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

impl Default for Checksum {
    /// Not zero, because zeros would not change a sum of zero.
    fn default() -> Self {
        Self([FACTOR, FACTOR << 1, FACTOR << 2, FACTOR << 3])
    }
}

impl Checksum {
    pub(crate) fn add(&mut self, bytes: &[u8]) {
        let (lines, rest) = bytes.as_chunks::<{ LANES * WORD }>();
        lines.iter().for_each(|line| self.add_line(line));
        let mut last = [0; LANES * WORD];
        last[..rest.len()].copy_from_slice(rest);
        self.add_line(&last);
    }

    #[inline]
    fn add_line(&mut self, line: &[u8; LANES * WORD]) {
        let (words, _) = line.as_chunks::<WORD>();
        for (lane, word) in self.0.iter_mut().zip(words) {
            // Each step is invertible, so a change of one word always changes the lane.
            *lane = (*lane ^ u64::from_le_bytes(*word)).wrapping_mul(FACTOR);
            *lane ^= *lane >> 29;
        }
    }

    pub(crate) fn value(self) -> u64 {
        self.0.iter().fold(0, |sum: u64, lane| {
            (sum ^ lane).wrapping_mul(FACTOR).rotate_left(31)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(bytes: &[u8]) -> u64 {
        let mut sum = Checksum::default();
        sum.add(bytes);
        sum.value()
    }

    #[test]
    fn zeros_have_a_sum_too() {
        assert_ne!(sum(&[0; 8]), 0);
        assert_ne!(sum(&[0; 64]), sum(&[0; 128]));
    }

    #[test]
    fn each_byte_counts_and_its_place() {
        for length in [1, 8, 31, 32, 33, 100] {
            let mut bytes: Vec<u8> = (0..length).collect();
            let before = sum(&bytes);
            assert_eq!(sum(&bytes), before);
            for at in 0..bytes.len() {
                bytes[at] ^= 1;
                assert_ne!(sum(&bytes), before, "byte {at} of {length}");
                bytes[at] ^= 1;
            }
            bytes.rotate_left(1);
            assert!(length == 1 || sum(&bytes) != before);
        }
    }
}
