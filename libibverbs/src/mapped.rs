//! Whether a process has the memory it wants to register.

use std::fs::File;
use std::io::{Error, Read};
use std::ops::Range;
use std::os::fd::AsRawFd;

/// Memory with the same rights, between two addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Mapping {
    range: Range<u64>,
    readable: bool,
    writable: bool,
}

/// Whether all of it is mapped, for writing too if that is asked. As the kernel finds out when it
/// pins pages; without `/proc` nothing is known against it.
///
/// The kernel is asked for those mappings alone, however many there are; before Linux 6.11, which cannot
/// say, all are read.
pub(crate) fn is_mapped(memory: Range<u64>, for_writing: bool) -> bool {
    let Ok(file) = File::open("/proc/self/maps") else {
        return true;
    };
    let mut all = None;
    is_in(memory, for_writing, |addr| match query(&file, addr) {
        Ok(mapping) => mapping,
        Err(_) => find(all.get_or_insert_with(|| read(&file)), addr),
    })
}

fn is_in(
    memory: Range<u64>,
    for_writing: bool,
    mut at: impl FnMut(u64) -> Option<Mapping>,
) -> bool {
    let mut next = memory.start;
    while next < memory.end {
        match at(next) {
            Some(found) if found.readable && (found.writable || !for_writing) => {
                next = found.range.end;
            }
            _ => return false,
        }
    }
    true
}

/// `struct procmap_query` of `linux/fs.h`
#[repr(C)]
#[derive(Default)]
struct Query {
    size: u64,
    query_flags: u64,
    query_addr: u64,
    vma_start: u64,
    vma_end: u64,
    vma_flags: u64,
    vma_page_size: u64,
    vma_offset: u64,
    inode: u64,
    dev_major: u32,
    dev_minor: u32,
    vma_name_size: u32,
    build_id_size: u32,
    vma_name_addr: u64,
    build_id_addr: u64,
}

/// `PROCMAP_QUERY`: `_IOWR('f', 17, struct procmap_query)`
const PROCMAP_QUERY: libc::Ioctl =
    (3 << 30 | (size_of::<Query>() as libc::Ioctl) << 16) | (b'f' as libc::Ioctl) << 8 | 17;
/// `PROCMAP_QUERY_VMA_READABLE`
const READABLE: u64 = 1 << 0;
/// `PROCMAP_QUERY_VMA_WRITABLE`
const WRITABLE: u64 = 1 << 1;

/// The mapping that an address lies in; an error if the kernel cannot say.
fn query(maps: &File, addr: u64) -> Result<Option<Mapping>, Error> {
    let mut query = Query {
        size: size_of::<Query>() as u64,
        query_addr: addr,
        ..Query::default()
    };
    // SAFETY: the structure is that of this request, which writes nothing else: it names no buffers.
    if unsafe { libc::ioctl(maps.as_raw_fd(), PROCMAP_QUERY, &raw mut query) } == 0 {
        return Ok(Some(Mapping {
            range: query.vma_start..query.vma_end,
            readable: query.vma_flags & READABLE != 0,
            writable: query.vma_flags & WRITABLE != 0,
        }));
    }
    match Error::last_os_error() {
        error if error.raw_os_error() == Some(libc::ENOENT) => Ok(None),
        error => Err(error),
    }
}

/// All mappings in order; one of everything if they cannot be read.
fn read(mut maps: &File) -> Vec<Mapping> {
    let mut text = String::new();
    match maps.read_to_string(&mut text) {
        Ok(_) => text.lines().filter_map(parse).collect(),
        Err(_) => vec![Mapping {
            range: 0..u64::MAX,
            readable: true,
            writable: true,
        }],
    }
}

fn parse(line: &str) -> Option<Mapping> {
    let mut parts = line.split(' ');
    let (start, end) = parts.next()?.split_once('-')?;
    let [start, end] = [start, end].map(|number| u64::from_str_radix(number, 16));
    let rights = parts.next()?;
    Some(Mapping {
        range: start.ok()?..end.ok()?,
        readable: rights.starts_with('r'),
        writable: rights[1..].starts_with('w'),
    })
}

fn find(all: &[Mapping], addr: u64) -> Option<Mapping> {
    let behind = all.partition_point(|mapping| mapping.range.end <= addr);
    let found = all.get(behind)?;
    found.range.contains(&addr).then(|| found.clone())
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
        let all: Vec<_> = MAPS.lines().filter_map(parse).collect();
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
            for (for_writing, expected) in [(false, reads), (true, writes)] {
                let is = is_in(memory.clone(), for_writing, |addr| find(&all, addr));
                assert_eq!(is, expected, "{memory:x?}");
            }
        }
        let here = [0u8; 8];
        let start = here.as_ptr() as u64;
        assert!(is_mapped(start..start + 8, true));
        assert!(!is_mapped(8..16, false));
    }

    /// What the kernel says of each mapping, and of what lies behind it, is what stands in its list.
    #[test]
    fn a_mapping_is_the_same_asked_for_as_in_the_list() {
        let file = File::open("/proc/self/maps").expect("a process has it");
        if query(&file, 0).is_err() {
            println!("skipped: the kernel has no PROCMAP_QUERY");
            return;
        }
        // Those of the program itself stay.
        let program = memory_is_here as fn() as usize as u64;
        let mapping = find(&read(&file), program).expect("it runs");
        for addr in [program, mapping.range.start, mapping.range.end - 1] {
            assert_eq!(query(&file, addr).unwrap().as_ref(), Some(&mapping));
        }
        assert!(mapping.readable && !mapping.writable);
    }

    fn memory_is_here() {}
}
