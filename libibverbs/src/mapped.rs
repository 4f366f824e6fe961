//! Whether a process has the memory it wants to register.

use std::fs;
use std::ops::Range;

/// Whether all of it is mapped, for writing too if that is asked. As the kernel finds out when it
/// pins pages; without `/proc` nothing is known against it.
pub(crate) fn is_mapped(memory: Range<u64>, for_writing: bool) -> bool {
    match fs::read_to_string("/proc/self/maps") {
        Ok(maps) => is_in(&maps, memory, for_writing),
        Err(_) => true,
    }
}

fn is_in(maps: &str, memory: Range<u64>, for_writing: bool) -> bool {
    let mut next = memory.start;
    for line in maps.lines() {
        if next >= memory.end {
            break;
        }
        let Some((range, can)) = parse(line) else {
            continue;
        };
        if range.end <= next {
            continue;
        }
        let good = can.starts_with('r') && (!for_writing || can[1..].starts_with('w'));
        if range.start > next || !good {
            return false;
        }
        next = range.end;
    }
    next >= memory.end
}

fn parse(line: &str) -> Option<(Range<u64>, &str)> {
    let mut parts = line.split(' ');
    let (start, end) = parts.next()?.split_once('-')?;
    let [start, end] = [start, end].map(|number| u64::from_str_radix(number, 16));
    Some((start.ok()?..end.ok()?, parts.next()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// MR-11, MR-12: across mappings, up to their ends, with their rights.
    #[test]
    fn memory_is_mapped_if_every_byte_is() {
        const MAPS: &str = "1000-2000 r--p 00000000 00:00 0\n\
                            2000-3000 rw-p 00000000 00:00 0 [heap]\n\
                            3000-4000 ---p 00000000 00:00 0\n\
                            5000-6000 rw-p 00000000 00:00 0";
        for (memory, reads, writes) in [
            (0x1000..0x3000, true, false),
            (0x2000..0x3000, true, true),
            (0x2fff..0x3001, false, false),
            (0x4800..0x5800, false, false),
            (0x5fff..0x6000, true, true),
            (0x5fff..0x6001, false, false),
            (0x0..0x1001, false, false),
            (0x7000..0x7000, true, true),
        ] {
            assert_eq!(is_in(MAPS, memory.clone(), false), reads, "{memory:x?}");
            assert_eq!(is_in(MAPS, memory.clone(), true), writes, "{memory:x?}");
        }
        let here = [0u8; 8];
        let start = here.as_ptr() as u64;
        assert!(is_mapped(start..start + 8, true));
        assert!(!is_mapped(8..16, false));
    }
}
