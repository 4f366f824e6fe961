//! The libraries of this process: which need libibverbs, and which are another libibverbs.

use std::ffi::{CStr, c_int, c_void};
use std::fs;
use std::ops::Range;
use std::path::PathBuf;
use std::ptr::null_mut;

use libc::dl_phdr_info;

/// Tags of the dynamic section (`elf.h`).
const DT_NULL: i64 = 0;
const DT_NEEDED: i64 = 1;
const DT_STRTAB: i64 = 5;

/// Whether a path or a name belongs to a libibverbs or librdmacm. Wheels rename them:
/// `libibverbs-1de1263b.so.1.14.48.0`. Python modules have more before `.so`, such as pyverbs'
/// `libibverbs_enums.cpython-311-x86_64-linux-gnu.so`.
pub(crate) fn is_verbs(path: &[u8]) -> bool {
    let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or(path);
    let names = [&b"libibverbs"[..], b"librdmacm"];
    let rest = names.iter().find_map(|prefix| name.strip_prefix(*prefix));
    rest.is_some_and(|rest| {
        let dot = rest.iter().position(|byte| *byte == b'.');
        matches!(rest.first(), Some(b'.' | b'-' | b'_'))
            && dot.is_some_and(|dot| rest[dot..].starts_with(b".so"))
    })
}

/// Whether the program, or a library that was loaded with it, is linked with libibverbs or
/// librdmacm.
pub(crate) fn need_verbs() -> bool {
    /// Ends the walk over the objects at the first that needs them.
    unsafe extern "C" fn visit(
        object: *mut dl_phdr_info,
        _size: usize,
        _data: *mut c_void,
    ) -> c_int {
        // SAFETY: the loader gives an object that lasts for the call.
        needs_verbs(unsafe { &*object }).into()
    }
    // SAFETY: the function is of the right type, and uses nothing of this call.
    unsafe { libc::dl_iterate_phdr(Some(visit), null_mut()) != 0 }
}

/// The path of a mapped libibverbs or librdmacm other than this library. It may be in another
/// namespace (`dlmopen`), which the loader does not list. `None` without `/proc`.
pub(crate) fn foreign() -> Option<PathBuf> {
    let own = (foreign as *const ()).addr();
    foreign_in(&fs::read_to_string("/proc/self/maps").ok()?, own)
}

/// The path in lines such as `7f00-7f10 r-xp 0000 08:01 42 /lib/libibverbs.so.1`. Files are
/// compared by device and inode; this library's file has the address `own`.
fn foreign_in(maps: &str, own: usize) -> Option<PathBuf> {
    let lines = maps.lines().filter_map(|line| {
        let mut words = line.splitn(6, ' ');
        let (start, end) = words.next()?.split_once('-')?;
        let [start, end] = [start, end].map(|text| usize::from_str_radix(text, 16));
        let file = (words.nth(2)?, words.next()?);
        Some((start.ok()?..end.ok()?, file, words.next()?.trim_start()))
    });
    let is_own = |range: &Range<usize>| range.contains(&own);
    let own = lines.clone().find(|(range, ..)| is_own(range));
    let own = own.map(|(_, file, _)| file);
    let mut others = lines.filter(|(_, file, _)| Some(*file) != own);
    let found = others.find(|(.., path)| is_verbs(path.as_bytes()));
    found.map(|(.., path)| PathBuf::from(path))
}

/// Whether its dynamic section names libibverbs or librdmacm.
fn needs_verbs(object: &dl_phdr_info) -> bool {
    /// `Elf64_Dyn`
    #[derive(Clone, Copy)]
    #[repr(C)]
    struct Entry {
        tag: i64,
        value: u64,
    }
    // SAFETY: the loader's own list, of this length.
    let headers = unsafe { std::slice::from_raw_parts(object.dlpi_phdr, object.dlpi_phnum.into()) };
    let is_dynamic = |header: &&libc::Elf64_Phdr| header.p_type == libc::PT_DYNAMIC;
    let Some(dynamic) = headers.iter().find(is_dynamic) else {
        return false;
    };
    let first = (object.dlpi_addr + dynamic.p_vaddr) as *const Entry;
    // SAFETY: the section is in the memory of the object, and ends with an entry of tag DT_NULL.
    let entries = (0..).map(|at| unsafe { *first.add(at) });
    let entries = entries.take_while(|entry| entry.tag != DT_NULL);
    let strings = entries.clone().find(|entry| entry.tag == DT_STRTAB);
    let Some(strings) = strings.map(|entry| entry.value) else {
        return false;
    };
    // The loader has added the base of the object, but not for objects of the kernel.
    let strings = if strings < object.dlpi_addr {
        strings + object.dlpi_addr
    } else {
        strings
    };
    let mut needed = entries.filter(|entry| entry.tag == DT_NEEDED);
    needed.any(|entry| {
        // SAFETY: the place of a string in the table of strings, which is in the memory of the
        // object.
        let name = unsafe { CStr::from_ptr((strings + entry.value) as *const _) };
        is_verbs(name.to_bytes())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_libibverbs_and_librdmacm_are_known() {
        for (name, expected) in [
            ("libibverbs.so.1", true),
            ("libibverbs.so", true),
            ("/usr/lib/librdmacm.so.1.3.44.0", true),
            ("/x/nixl.libs/libibverbs-1de1263b.so.1.14.48.0", true),
            ("librdmacm-abc.so.1", true),
            ("/usr/lib/libibverbs/libmlx5-rdmav34.so", false),
            ("libibverbsx.so", false),
            (
                "/x/pyverbs/libibverbs_enums.cpython-311-x86_64-linux-gnu.so",
                false,
            ),
            ("libibverbs.a", false),
            ("libmlx5.so.1", false),
            ("", false),
        ] {
            assert_eq!(is_verbs(name.as_bytes()), expected, "{name}");
        }
    }

    #[test]
    fn a_library_is_foreign_if_it_is_another_file() {
        let maps = "55d0-55d8 r-xp 00000000 08:01 3                          /bin/program\n\
                    7f00-7f10 r--p 00000000 08:01 7                          /x/libibverbs.so.1\n\
                    7f10-7f20 r-xp 00010000 08:01 7                          /x/libibverbs.so.1\n\
                    7f20-7f30 rw-p 00000000 00:00 0 \n";
        assert_eq!(foreign_in(maps, 0x7f18), None);
        let other = "8000-8010 r-xp 00000000 08:01 9      /a b/librdmacm-1.so.1\n";
        let expected = Some(PathBuf::from("/a b/librdmacm-1.so.1"));
        assert_eq!(foreign_in(&[maps, other].concat(), 0x7f18), expected);
    }
}
