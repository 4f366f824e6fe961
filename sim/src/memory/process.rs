//! Copies of the process's own memory by the kernel. They report unmapped memory, where a plain
//! copy would end the process.
#![allow(unsafe_code)]

use std::io::{Error, ErrorKind};

use super::Span;

/// Some of the bytes are not mapped, or lack the permission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NotMapped;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Read,
    Write,
}

/// The kernel copies at most about 2 GiB per call.
const MOST: usize = 1 << 30;

/// Copies from memory that may be unmapped.
pub(super) fn read(from: Span, into: &mut [u8]) -> Result<(), NotMapped> {
    copy(Span::of(into), from, Way::Read)
}

/// Copies to memory that may be unmapped. The last bytes are written last, as by any copy to a
/// region.
pub(super) fn write(from: &[u8], into: Span) -> Result<(), NotMapped> {
    copy(Span::of_shared(from), into, Way::Write)
}

/// Whether the kernel permits such copies.
pub(crate) fn is_permitted() -> bool {
    let (here, mut copy) = ([1_u8], [0]);
    ask_kernel(Span::of(&mut copy), Span::of_shared(&here), Way::Read).is_ok()
}

/// Copies between bytes of this library and memory that may be unmapped. If the kernel refuses, it
/// makes a plain copy.
fn copy(own: Span, others: Span, way: Way) -> Result<(), NotMapped> {
    let mut done = 0;
    while done < own.length {
        let now = MOST.min(own.length - done);
        let (own, others) = (own.part(done, now), others.part(done, now));
        match ask_kernel(own, others, way) {
            Ok(0) => return Err(NotMapped),
            Ok(copied) => done += copied,
            Err(error) if error.raw_os_error() == Some(EFAULT) => return Err(NotMapped),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => {
                let (from, into) = match way {
                    Way::Read => (others, own),
                    Way::Write => (own, others),
                };
                // SAFETY: one span belongs to this library. The caller of `reg_mr` promised that
                // the other is mapped.
                unsafe { from.copy_to(into) };
                done += now;
            }
        }
    }
    Ok(())
}

/// The value on every Linux architecture.
const EFAULT: i32 = 14;

/// Lets the kernel copy. Returns the number of bytes copied, from the first on.
#[cfg(all(feature = "fd", target_os = "linux"))]
fn ask_kernel(own: Span, others: Span, way: Way) -> Result<usize, Error> {
    use libc::{getpid, iovec, process_vm_readv, process_vm_writev};

    let vector = |span: Span| iovec {
        iov_base: span.start.cast(),
        iov_len: span.length,
    };
    // Two parts, in order: a program that sees the last word sees all bytes.
    let before = others.length - last_word(others);
    let last = others.part(before, others.length - before);
    let others = [others.part(0, before), last].map(vector);
    let own = vector(own);
    let call = match way {
        Way::Read => process_vm_readv,
        Way::Write => process_vm_writev,
    };
    // SAFETY: the bytes of this library live, and no other code uses them. The kernel checks which
    // of the others are mapped, and the caller of `reg_mr` has given those for this use.
    let copied = unsafe { call(getpid(), &raw const own, 1, others.as_ptr(), 2, 0) };
    usize::try_from(copied).map_err(|_| Error::last_os_error())
}

/// The length of the last aligned word of some bytes, or of the bytes after it.
#[cfg(all(feature = "fd", target_os = "linux"))]
fn last_word(of: Span) -> usize {
    const WORD: usize = size_of::<u64>();
    let last = match of.start.addr().wrapping_add(of.length) % WORD {
        0 => WORD,
        behind => behind,
    };
    last.min(of.length)
}

#[cfg(not(all(feature = "fd", target_os = "linux")))]
fn ask_kernel(_: Span, _: Span, _: Way) -> Result<usize, Error> {
    Err(ErrorKind::Unsupported.into())
}

#[cfg(all(test, feature = "fd", target_os = "linux", not(miri)))]
mod tests {
    use std::ptr::null_mut;

    use libc::{MAP_ANONYMOUS, MAP_PRIVATE, PROT_NONE, PROT_READ, PROT_WRITE, mmap, mprotect};

    use super::*;

    const PAGE: usize = 4096;

    /// Two pages. `second` is the protection of the second.
    fn pages(second: i32) -> Span {
        let (rights, flags) = (PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS);
        // SAFETY: new memory that stays until the test ends, and that no other code uses.
        let start = unsafe { mmap(null_mut(), 2 * PAGE, rights, flags, -1, 0) };
        assert_ne!(start, libc::MAP_FAILED);
        let start = start.cast::<u8>();
        // SAFETY: this is the second of the two pages.
        assert_eq!(unsafe { mprotect(start.add(PAGE).cast(), PAGE, second) }, 0);
        let length = 2 * PAGE;
        Span { start, length }
    }

    /// Copies of every length up to the border, across it, and after it.
    #[test]
    fn what_is_not_mapped_is_noticed() {
        if !is_permitted() {
            println!("skipped: the system does not permit process_vm_readv");
            return;
        }
        let (none, read_only) = (pages(PROT_NONE), pages(PROT_READ));
        for length in (1..40).chain([PAGE]) {
            let bytes: Vec<u8> = (1..=length).map(|at| at as u8).collect();
            let mut seen = vec![0; length];
            for all in [none, read_only] {
                let border = all.part(PAGE - length, length);
                assert_eq!(write(&bytes, border), Ok(()));
                assert_eq!(read(border, &mut seen), Ok(()));
                assert_eq!(seen, bytes);
                for start in [PAGE - length / 2, PAGE] {
                    assert_eq!(write(&bytes, all.part(start, length)), Err(NotMapped));
                }
            }
            assert_eq!(read(none.part(PAGE, length), &mut seen), Err(NotMapped));
            assert_eq!(read(read_only.part(PAGE, length), &mut seen), Ok(()));
        }
    }
}
