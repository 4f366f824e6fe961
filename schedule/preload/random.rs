//! Random bytes, by the system call: the C library would take some from the vDSO.

use core::ffi::{c_int, c_uint, c_void};

use super::libc;

/// `getrandom`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn getrandom(to: *mut c_void, length: usize, flags: c_uint) -> isize {
    // SAFETY: the caller passes room for the bytes.
    unsafe { libc::syscall(libc::SYS_GETRANDOM, to, length, flags) as isize }
}

/// `getentropy`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn getentropy(to: *mut c_void, length: usize) -> c_int {
    const MOST: usize = 256;
    // SAFETY: the caller passes room for the bytes; the error is the thread's own.
    unsafe {
        if length > MOST {
            *libc::__errno_location() = libc::EIO;
            return -1;
        }
        fill(to, length)
    }
}

/// `arc4random_buf`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn arc4random_buf(to: *mut c_void, length: usize) {
    // SAFETY: the caller passes room for the bytes.
    unsafe { fill(to, length) };
}

/// `arc4random`
#[unsafe(no_mangle)]
pub(super) extern "C" fn arc4random() -> u32 {
    let mut number = 0_u32;
    // SAFETY: there is room for the number.
    unsafe { fill((&raw mut number).cast(), size_of::<u32>()) };
    number
}

/// `arc4random_uniform`
#[unsafe(no_mangle)]
pub(super) extern "C" fn arc4random_uniform(below: u32) -> u32 {
    // Each number below `below` is as likely as another, to within one in 2^32.
    ((u64::from(arc4random()) * u64::from(below)) >> 32) as u32
}

/// Fills memory with random bytes. Returns 0, or -1 with an error.
///
/// # Safety
/// There is room for the bytes.
unsafe fn fill(to: *mut c_void, length: usize) -> c_int {
    let mut filled = 0;
    while filled < length {
        // SAFETY: what is left is inside the memory of the caller.
        let got = unsafe { getrandom(to.byte_add(filled), length - filled, 0) };
        match usize::try_from(got) {
            Ok(got) => filled += got,
            // SAFETY: the error is the thread's own.
            Err(_) if unsafe { *libc::__errno_location() } == libc::EINTR => {}
            Err(_) => return -1,
        }
    }
    0
}
