//! How long a requester waits, by the codes of its attributes and of its peer.

use core::time::Duration;

/// The wait that a receiver-not-ready NAK asks for, by its code, in units of 10 us (TMR-06).
const RNR_WAIT: [u64; 32] = [
    65_536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1_024,
    1_536, 2_048, 3_072, 4_096, 6_144, 8_192, 12_288, 16_384, 24_576, 32_768, 49_152,
];

pub(super) fn rnr_wait(code: u8) -> Duration {
    Duration::from_micros(RNR_WAIT[usize::from(code & 31)] * 10)
}

/// The wait for an acknowledgement in nanoseconds: 4.096 us times 2 to the power of the code. The
/// code 0 means no timeout.
pub(super) fn ack_timeout(code: u8) -> Option<u64> {
    (code != 0).then(|| 4_096 << (code & 31))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// TMR-06, TMR-01: the tables of waits.
    #[test]
    fn waits_by_code() {
        assert_eq!(rnr_wait(0), Duration::from_micros(655_360));
        assert_eq!(rnr_wait(1), Duration::from_micros(10));
        assert_eq!(rnr_wait(12), Duration::from_micros(640));
        assert_eq!(rnr_wait(31), Duration::from_micros(491_520));
        assert_eq!(ack_timeout(0), None);
        assert_eq!(ack_timeout(1), Some(8_192));
        assert_eq!(ack_timeout(31), Some(4_096 << 31));
    }
}
