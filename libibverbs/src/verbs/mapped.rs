//! Whether the process has the memory that it registers.

use std::fmt;
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

/// The first address that the process does not have, or may not use as it asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Missing {
    NotMapped(u64),
    NotReadable(u64),
    ReadOnly(u64),
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotMapped(addr) => write!(f, "the memory at {addr:#x} is not mapped"),
            Self::NotReadable(addr) => {
                write!(f, "the memory at {addr:#x} cannot be read (PROT_NONE)")
            }
            Self::ReadOnly(addr) => write!(
                f,
                "the memory at {addr:#x} is read-only, and IBV_ACCESS_LOCAL_WRITE asks to write it"
            ),
        }
    }
}

/// The first address that is not mapped, or not for writing if that is asked for. The kernel finds
/// out when it pins pages. Without `/proc` all memory counts as mapped.
///
/// The kernel is asked for these mappings only. Before Linux 6.11, which cannot answer, all are
/// read.
pub(crate) fn missing(memory: Range<u64>, for_writing: bool) -> Option<Missing> {
    let file = File::open("/proc/self/maps").ok()?;
    let mut all = None;
    missing_in(memory, for_writing, |addr| match query(&file, addr) {
        Ok(mapping) => mapping,
        Err(_) => find(all.get_or_insert_with(|| read(&file)), addr),
    })
}

fn missing_in(
    memory: Range<u64>,
    for_writing: bool,
    mut at: impl FnMut(u64) -> Option<Mapping>,
) -> Option<Missing> {
    let mut addr = memory.start;
    while addr < memory.end {
        match at(addr) {
            None => return Some(Missing::NotMapped(addr)),
            Some(found) if !found.readable => return Some(Missing::NotReadable(addr)),
            Some(found) if !found.writable && for_writing => return Some(Missing::ReadOnly(addr)),
            Some(found) => addr = found.range.end,
        }
    }
    None
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

/// The mapping of an address. An error if the kernel cannot answer.
fn query(maps: &File, addr: u64) -> Result<Option<Mapping>, Error> {
    let mut query = Query {
        size: size_of::<Query>() as u64,
        query_addr: addr,
        ..Query::default()
    };
    // SAFETY: the structure is the one of this request. It names no buffers, so the kernel writes
    // nothing else.
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

/// All mappings in order. If they cannot be read, one mapping of all memory.
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
        let nothing = |addr| Some(Missing::NotMapped(addr));
        let no_rights = Some(Missing::NotReadable(0x3000));
        for (memory, read, write) in [
            (0x1000..0x3000, None, Some(Missing::ReadOnly(0x1000))),
            (0x2000..0x3000, None, None),
            (0x2fff..0x3001, no_rights, no_rights),
            (0x4800..0x5800, nothing(0x4800), nothing(0x4800)),
            (0x5fff..0x6000, None, None),
            (0x5fff..0x6001, nothing(0x6000), nothing(0x6000)),
            (0x0..0x1001, nothing(0), nothing(0)),
            (0x7000..0x7000, None, None),
        ] {
            for (for_writing, expected) in [(false, read), (true, write)] {
                let found = missing_in(memory.clone(), for_writing, |addr| find(&all, addr));
                assert_eq!(found, expected, "{memory:x?}");
            }
        }
        let here = [0u8; 8];
        let start = here.as_ptr() as u64;
        assert_eq!(missing(start..start + 8, true), None);
        let expected = "the memory at 0x8 is not mapped";
        assert_eq!(missing(8..16, false).unwrap().to_string(), expected);
    }

    /// The query and the list agree on each mapping and on the gaps.
    #[test]
    fn a_mapping_is_the_same_asked_for_as_in_the_list() {
        let file = File::open("/proc/self/maps").expect("a process has it");
        if query(&file, 0).is_err() {
            println!("skipped: the kernel has no PROCMAP_QUERY");
            return;
        }
        // The mappings of the program itself stay.
        let program = memory_is_here as fn() as usize as u64;
        let mapping = find(&read(&file), program).expect("it runs");
        for addr in [program, mapping.range.start, mapping.range.end - 1] {
            assert_eq!(query(&file, addr).unwrap().as_ref(), Some(&mapping));
        }
        assert!(mapping.readable && !mapping.writable);
    }

    fn memory_is_here() {}
}
