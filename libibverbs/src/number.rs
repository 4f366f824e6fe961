//! QP numbers as this process has them.
//!
//! Each process has a fabric of its own, with the same addresses and the same numbers. Two processes that
//! exchange theirs would each be connected with itself. So a part of each number belongs to the process,
//! drawn at random, and a connection to another process finds nobody there.

use verbs_api::MULTICAST_QPN;

use crate::engine::engine;

/// Numbers below it belong to every port alike.
const WELL_KNOWN: u32 = 2;

/// What the engine calls a queue pair, from what the program does, and the other way round.
pub(crate) fn exchanged(number: u32) -> u32 {
    swap(number, engine().number_part)
}

/// The part of a process that has drawn this number.
pub(crate) fn part(drawn: u64) -> u32 {
    ((drawn % 0xfff + 1) << 12) as u32
}

/// A number that no other process has, most likely: by its id alone each first process of a container
/// would have the same.
pub(crate) fn random() -> u64 {
    let mut bytes = [0; 8];
    // SAFETY: there is room for so many bytes, which the call fills unless it fails.
    let filled = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) };
    if filled == bytes.len() as isize {
        return u64::from_ne_bytes(bytes);
    }
    // An old kernel.
    std::process::id().into()
}

fn swap(number: u32, part: u32) -> u32 {
    let is_fixed = |number| !(WELL_KNOWN..MULTICAST_QPN).contains(&number);
    let other = number ^ part;
    if is_fixed(number) || is_fixed(other) {
        number
    } else {
        other
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_has_one_other_and_known_ones_are_their_own() {
        for part in [1 << 12, 0x5a5 << 12, 0xfff << 12] {
            for number in (0..0x4000).chain(0xff_c000..0x100_0010) {
                assert_eq!(swap(swap(number, part), part), number);
                assert_eq!(swap(number, part) >> 24, number >> 24);
            }
            for known in [0, 1, MULTICAST_QPN, u32::MAX] {
                assert_eq!(swap(known, part), known);
            }
            assert_ne!(swap(17, part), 17);
        }
    }
}
