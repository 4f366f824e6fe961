//! Names of enumerators, rates, and files that would be the kernel's.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use verbs_api::WcStatus;

use super::sysfs;

pub(crate) extern "C" fn wc_status_str(status: u32) -> *const c_char {
    static TEXTS: LazyLock<Vec<CString>> = LazyLock::new(|| {
        let text = |status: &WcStatus| CString::new(status.describe()).unwrap_or_default();
        WcStatus::ALL.iter().map(text).collect()
    });
    pick(&TEXTS, status, c"unknown")
}

/// The text of a number, or `other`.
pub(crate) fn pick<T: AsRef<CStr>>(
    texts: &[T],
    number: u32,
    other: &'static CStr,
) -> *const c_char {
    let text = texts.get(number as usize).map(AsRef::as_ref);
    text.unwrap_or(other).as_ptr()
}

pub(crate) extern "C" fn node_type_str(node_type: u32) -> *const c_char {
    let texts = [
        c"unknown",
        c"InfiniBand channel adapter",
        c"InfiniBand switch",
        c"InfiniBand router",
        c"iWARP NIC",
        c"usNIC",
        c"usNIC UDP",
        c"unspecified",
    ];
    pick(&texts, node_type, c"unknown")
}

pub(crate) extern "C" fn port_state_str(state: u32) -> *const c_char {
    let texts = [
        c"no state change (NOP)",
        c"down",
        c"init",
        c"armed",
        c"active",
        c"active defer",
    ];
    pick(&texts, state, c"unknown")
}

pub(crate) extern "C" fn event_type_str(event: u32) -> *const c_char {
    let texts = [
        c"CQ error",
        c"local work queue catastrophic error",
        c"invalid request local work queue error",
        c"local access violation work queue error",
        c"communication established",
        c"send queue drained",
        c"path migrated",
        c"path migration request error",
        c"local catastrophic error",
        c"port active",
        c"port error",
        c"LID change",
        c"P_Key change",
        c"SM change",
        c"SRQ catastrophic error",
        c"SRQ limit reached",
        c"last WQE reached",
        c"client reregistration",
        c"GID table change",
        c"WQ fatal",
        c"Device link speed change",
    ];
    pick(&texts, event, c"unknown")
}

/// `enum ibv_rate`, its approximate multiple of 2.5 Gbit/s (0 if libibverbs has none), and Mbit/s.
const RATES: [(c_int, c_int, c_int); 23] = [
    (2, 1, 2_500),
    (5, 2, 5_000),
    (3, 4, 10_000),
    (6, 8, 20_000),
    (4, 12, 30_000),
    (7, 16, 40_000),
    (8, 24, 60_000),
    (9, 32, 80_000),
    (10, 48, 120_000),
    (11, 0, 14_062),
    (12, 0, 56_250),
    (13, 0, 112_500),
    (14, 0, 168_750),
    (15, 0, 25_781),
    (16, 0, 103_125),
    (17, 0, 206_250),
    (18, 0, 309_375),
    (19, 11, 28_125),
    (20, 20, 53_125),
    (21, 160, 425_000),
    (22, 240, 637_500),
    (23, 320, 850_000),
    (24, 480, 1_275_000),
];

pub(crate) extern "C" fn rate_to_mult(rate: c_int) -> c_int {
    let found = RATES.iter().find(|(of, mult, _)| *of == rate && *mult > 0);
    found.map_or(-1, |(_, mult, _)| *mult)
}

pub(crate) extern "C" fn mult_to_rate(mult: c_int) -> c_int {
    // 0 marks rates without a multiple.
    let found = RATES.iter().find(|(_, of, _)| *of == mult && mult > 0);
    found.map_or(0, |(rate, ..)| *rate)
}

pub(crate) extern "C" fn rate_to_mbps(rate: c_int) -> c_int {
    let found = RATES.iter().find(|(of, ..)| *of == rate);
    found.map_or(-1, |(_, _, mbps)| *mbps)
}

pub(crate) extern "C" fn mbps_to_rate(mbps: c_int) -> c_int {
    let found = RATES.iter().find(|(_, _, of)| *of == mbps);
    found.map_or(0, |(rate, ..)| *rate)
}

/// `IBV_FORK_UNNEEDED`
const FORK_UNNEEDED: c_int = 2;

/// `ibv_fork_init`. A child may use its memory: the device accesses the memory of this process as
/// its own code does, and pins nothing.
pub(crate) extern "C" fn fork_init() -> c_int {
    0
}

pub(crate) extern "C" fn is_fork_initialized() -> c_int {
    FORK_UNNEEDED
}

pub(crate) extern "C" fn fork_range(_base: *mut c_void, _size: usize) -> c_int {
    0
}

pub(crate) extern "C" fn get_sysfs_path() -> *const c_char {
    c"/sys".as_ptr()
}

/// `ibv_read_sysfs_file`: reads the start of a file without the newline at its end. Returns the
/// length, or -1.
pub(crate) extern "C" fn read_sysfs_file(
    dir: *const c_char,
    file: *const c_char,
    buffer: *mut c_char,
    size: usize,
) -> c_int {
    if dir.is_null() || file.is_null() || buffer.is_null() || size == 0 {
        return -1;
    }
    // SAFETY: strings that end with 0 (C's contract).
    let (dir, file) = unsafe { (CStr::from_ptr(dir), CStr::from_ptr(file)) };
    let (dir, file) = (dir.to_string_lossy(), file.to_string_lossy());
    let path = Path::new(&*dir).join(&*file);
    sysfs::prepare(&path);
    let Ok(mut text) = fs::read(path) else {
        return -1;
    };
    if text.last() == Some(&b'\n') {
        text.pop();
    }
    let length = text.len().min(size - 1);
    // SAFETY: the program's, of `size` bytes (C's contract).
    unsafe {
        buffer.copy_from_nonoverlapping(text.as_ptr().cast(), length);
        buffer.add(length).write(0);
    }
    length as c_int
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_convert_there_and_back() {
        for (rate, mult, mbps) in RATES {
            assert_eq!((rate_to_mbps(rate), mbps_to_rate(mbps)), (mbps, rate));
            if mult > 0 {
                assert_eq!((rate_to_mult(rate), mult_to_rate(mult)), (mult, rate));
            } else {
                assert_eq!(rate_to_mult(rate), -1);
            }
        }
        assert_eq!(
            (rate_to_mbps(99), rate_to_mult(0), mult_to_rate(0)),
            (-1, -1, 0)
        );
    }

    /// WC-32, and beyond the last of each.
    #[test]
    fn every_number_has_a_text() {
        let texts: [extern "C" fn(u32) -> *const c_char; 4] =
            [wc_status_str, node_type_str, port_state_str, event_type_str];
        for text in texts {
            for number in (0..30).chain([u32::MAX]) {
                // SAFETY: a static text with an end.
                let text = unsafe { CStr::from_ptr(text(number)) };
                assert!(!text.is_empty());
            }
        }
    }
}
