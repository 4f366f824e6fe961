//! Random numbers from a seed, the same in every version: ChaCha8, whose streams of one seed are
//! independent.

/// A stream of random numbers. It is the same in every version, on every machine.
///
/// ```
/// use verbs_api::random::Random;
///
/// let (mut one, mut same, mut other) = (Random::new(7, 0), Random::new(7, 0), Random::new(7, 1));
/// let drawn = one.next_u64();
/// assert_eq!(drawn, same.next_u64());
/// assert_ne!(drawn, other.next_u64());
/// ```
#[derive(Clone, Debug)]
pub struct Random {
    seed: u64,
    stream: u64,
    next_block: u64,
    block: [u32; WORDS],
    /// Words of the block that have been drawn.
    drawn: usize,
}

const WORDS: usize = 16;
const ROUNDS: usize = 8;
const CONSTANT: [u32; 4] = [0x6170_7865, 0x3320_646e, 0x7962_2d32, 0x6b20_6574];

impl Random {
    /// One of the streams of a seed. Nothing is computed before the first draw.
    pub const fn new(seed: u64, stream: u64) -> Self {
        Self {
            seed,
            stream,
            next_block: 0,
            block: [0; WORDS],
            drawn: WORDS,
        }
    }

    /// Draws 32 bits.
    #[inline]
    pub fn next_u32(&mut self) -> u32 {
        if self.drawn == WORDS {
            self.block = block(&key(self.seed), self.next_block, self.stream);
            self.next_block += 1;
            self.drawn = 0;
        }
        self.drawn += 1;
        self.block[self.drawn - 1]
    }

    /// Draws 64 bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        u64::from(self.next_u32()) | u64::from(self.next_u32()) << 32
    }
}

/// The key of a seed: numbers of PCG32.
fn key(mut seed: u64) -> [u32; 8] {
    core::array::from_fn(|_| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005);
        seed = seed.wrapping_add(11_634_580_027_462_260_723);
        let mixed = ((seed >> 18) ^ seed) >> 27;
        (mixed as u32).rotate_right((seed >> 59) as u32)
    })
}

#[inline(never)]
fn block(key: &[u32; 8], number: u64, stream: u64) -> [u32; WORDS] {
    let mut start = [0; WORDS];
    start[..4].copy_from_slice(&CONSTANT);
    start[4..12].copy_from_slice(key);
    start[12..].copy_from_slice(&[number, number >> 32, stream, stream >> 32].map(|n| n as u32));
    let mut end = start;
    for _ in 0..ROUNDS / 2 {
        for i in 0..4 {
            quarter_round(&mut end, [0, 1, 2, 3].map(|row| 4 * row + i));
        }
        for i in 0..4 {
            quarter_round(&mut end, [0, 1, 2, 3].map(|row| 4 * row + (i + row) % 4));
        }
    }
    core::array::from_fn(|i| start[i].wrapping_add(end[i]))
}

fn quarter_round(words: &mut [u32; WORDS], [a, b, c, d]: [usize; 4]) {
    let mut step = |to: usize, from: usize, mixed: usize, by| {
        words[to] = words[to].wrapping_add(words[from]);
        words[mixed] = (words[mixed] ^ words[to]).rotate_left(by);
    };
    step(a, b, d, 16);
    step(c, d, b, 12);
    step(a, b, d, 8);
    step(c, d, b, 7);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(block: [u32; WORDS]) -> String {
        let words = block
            .iter()
            .map(|word| format!("{:08x}", word.swap_bytes()));
        words.collect()
    }

    /// draft-strombergson-chacha-test-vectors-01, 8 rounds, keys of 256 bits: TC1 with two blocks,
    /// and TC8.
    #[test]
    fn blocks_are_those_of_the_published_test_vectors() {
        let zero = [0; 8];
        assert_eq!(
            hex(block(&zero, 0, 0)),
            "3e00ef2f895f40d67f5bb8e81f09a5a12c840ec3ce9a7f3b181be188ef711a1e\
             984ce172b9216f419f445367456d5619314a42a3da86b001387bfdb80e0cfe42"
        );
        assert_eq!(
            hex(block(&zero, 1, 0)),
            "d2aefa0deaa5c151bf0adb6c01f2a5adc0fd581259f9a2aadcf20f8fd566a26b\
             5032ec38bbc5da98ee0c6f568b872a65a08abf251deb21bb4b56e5d8821e68aa"
        );
        let key = [
            0xc46e_c1b1,
            0x8ce8_a878,
            0x725a_37e7,
            0x80df_b735,
            0x1f68_ed2e,
            0x194c_79fb,
            0xc6ae_bee1,
            0xa667_975d,
        ];
        assert_eq!(
            hex(block(&key.map(u32::swap_bytes), 0, 0x2182_68cf_d531_da1a)),
            "838751b42d8ddd8a3d77f48825a2ba752cf4047cb308a5978ef274973be374c9\
             6ad848065871417b08f034e681fe46a93f7d5c61d1306614d4aaf257a7cff08b"
        );
    }
    /// As rand_chacha has them: replays of earlier versions stay good.
    #[test]
    fn the_numbers_of_a_seed_never_change() {
        let mut random = Random::new(42, 1 << 24);
        let first = [(); 3].map(|()| random.next_u64());
        assert_eq!(
            first,
            [
                12_684_197_727_541_009_461,
                17_789_036_713_922_540_960,
                7_552_316_308_088_028_747
            ]
        );
        let mut random = Random::new(42, 7);
        for _ in 1..WORDS {
            random.next_u32();
        }
        let of_two_blocks = random.next_u64();
        assert_eq!(of_two_blocks, 4_828_587_807_895_334_027);
    }
}
