//! The libraries of this process, as the loader lists them.

use std::ffi::{CStr, OsStr, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use libc::dl_phdr_info;

/// Tags of the dynamic section (`elf.h`).
const DT_NULL: i64 = 0;
const DT_NEEDED: i64 = 1;
const DT_STRTAB: i64 = 5;

/// Whether a path or a name is that of a libibverbs or librdmacm, also of one that a wheel has
/// renamed: `libibverbs-1de1263b.so.1.14.48.0`.
pub(crate) fn is_verbs(path: &CStr) -> bool {
    let path = path.to_bytes();
    let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or(path);
    let names = [&b"libibverbs"[..], b"librdmacm"];
    let rest = names.iter().find_map(|prefix| name.strip_prefix(*prefix));
    rest.is_some_and(|rest| {
        matches!(rest.first(), Some(b'.' | b'-' | b'_'))
            && rest.windows(3).any(|part| part == b".so")
    })
}

/// Whether the program or a library that it came with is linked with libibverbs or librdmacm.
pub(crate) fn need_verbs() -> bool {
    any(needs_verbs)
}

/// The path of a libibverbs or librdmacm that is not this library.
pub(crate) fn foreign() -> Option<PathBuf> {
    let own = (foreign as *const ()).addr() as u64;
    let mut found = None;
    any(|object| {
        let name = name_of(object);
        if is_verbs(name) && !contains(object, own) {
            found = Some(PathBuf::from(OsStr::from_bytes(name.to_bytes())));
        }
        found.is_some()
    });
    found
}

/// Asks of each object until one says yes. Whether one did.
fn any(mut ask: impl FnMut(&dl_phdr_info) -> bool) -> bool {
    /// Calls the function that `data` points to.
    unsafe extern "C" fn visit<F: FnMut(&dl_phdr_info) -> bool>(
        object: *mut dl_phdr_info,
        _size: usize,
        data: *mut c_void,
    ) -> c_int {
        // SAFETY: the loader gives an object that lasts for the call; `data` is the function of
        // `of_type`, which nothing else uses now.
        unsafe { c_int::from((*data.cast::<F>())(&*object)) }
    }
    fn of_type<F: FnMut(&dl_phdr_info) -> bool>(ask: &mut F) -> c_int {
        // SAFETY: the function is called before this returns.
        unsafe { libc::dl_iterate_phdr(Some(visit::<F>), (&raw mut *ask).cast()) }
    }
    of_type(&mut ask) != 0
}

fn name_of(object: &dl_phdr_info) -> &CStr {
    if object.dlpi_name.is_null() {
        return c"";
    }
    // SAFETY: the name ends with 0, and lasts as long as the object.
    unsafe { CStr::from_ptr(object.dlpi_name) }
}

fn headers(object: &dl_phdr_info) -> &[libc::Elf64_Phdr] {
    // SAFETY: the loader's own list, of this length.
    unsafe { std::slice::from_raw_parts(object.dlpi_phdr, object.dlpi_phnum.into()) }
}

/// Whether an address is in a segment of an object.
fn contains(object: &dl_phdr_info, address: u64) -> bool {
    headers(object).iter().any(|header| {
        let start = object.dlpi_addr + header.p_vaddr;
        header.p_type == libc::PT_LOAD && (start..start + header.p_memsz).contains(&address)
    })
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
    let mut dynamic = headers(object)
        .iter()
        .filter(|header| header.p_type == libc::PT_DYNAMIC);
    let Some(dynamic) = dynamic.next() else {
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
    // The loader has made an address of it, but not in objects of the kernel.
    let strings = if strings < object.dlpi_addr {
        strings + object.dlpi_addr
    } else {
        strings
    };
    let mut needed = entries.filter(|entry| entry.tag == DT_NEEDED);
    // SAFETY: the place of a string in the table of strings, which is in the memory of the object.
    needed.any(|entry| is_verbs(unsafe { CStr::from_ptr((strings + entry.value) as *const _) }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_libibverbs_and_librdmacm_are_known() {
        for (name, expected) in [
            (c"libibverbs.so.1", true),
            (c"libibverbs.so", true),
            (c"/usr/lib/librdmacm.so.1.3.44.0", true),
            (c"/x/nixl.libs/libibverbs-1de1263b.so.1.14.48.0", true),
            (c"librdmacm-abc.so.1", true),
            (c"/usr/lib/libibverbs/libmlx5-rdmav34.so", false),
            (c"libibverbsx.so", false),
            (c"libibverbs.a", false),
            (c"libmlx5.so.1", false),
            (c"", false),
        ] {
            assert_eq!(is_verbs(name), expected, "{name:?}");
        }
    }
}
