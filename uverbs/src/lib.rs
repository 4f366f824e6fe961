//! Shows programs the character devices of simulated RDMA devices: `/dev/infiniband/uverbs0` and those that follow.
//!
//! A library for `LD_PRELOAD`: it answers `stat`, `access` and their kin for these names, and passes every other name
//! on. How many there are says the variable `VERBSIM_UVERBS`, which `verbsim exec --uverbs` sets. After its
//! first call a function takes no lock and no memory, so it is as good in a signal handler as the one it stands for.
#![cfg(target_os = "linux")]

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::mem::{transmute, zeroed};
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use libc::RTLD_NEXT;

/// How many devices there are.
static DEVICES: AtomicU32 = AtomicU32::new(0);

/// Reads it when the library is loaded.
#[used]
// SAFETY: the section holds functions of this type, which the loader calls once.
#[unsafe(link_section = ".init_array")]
static AT_LOAD: extern "C" fn() = {
    extern "C" fn at_load() {
        // SAFETY: the name ends with 0; nobody changes the environment while libraries are loaded.
        let value = unsafe { libc::getenv(c"VERBSIM_UVERBS".as_ptr()) };
        if !value.is_null() {
            // SAFETY: a text of the environment, which ends with 0.
            let value = unsafe { CStr::from_ptr(value) };
            let number = value.to_str().ok().and_then(|text| text.parse().ok());
            DEVICES.store(number.unwrap_or(0), Ordering::Relaxed);
        }
    }
    at_load
};

/// The major number of these devices, and the minor of the first, in Linux.
const MAJOR: c_uint = 231;
const FIRST_MINOR: c_uint = 192;
/// Everybody may read and write them.
const MODE: u32 = libc::S_IFCHR | 0o666;

/// The number of the device that a path names, if there is one.
fn device(path: *const c_char) -> Option<u32> {
    if path.is_null() {
        return None;
    }
    // SAFETY: a path ends with 0 (C's contract).
    let path = unsafe { CStr::from_ptr(path) }.to_bytes();
    number(path).filter(|number| *number < DEVICES.load(Ordering::Relaxed))
}

fn number(path: &[u8]) -> Option<u32> {
    let digits = path.strip_prefix(b"/dev/infiniband/uverbs")?;
    let is_plain = digits == b"0" || !digits.starts_with(b"0");
    let all_digits = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    if !is_plain || !all_digits || digits.len() > 5 {
        return None;
    }
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// As the first user of these devices may do with them: read and write.
fn may(mode: c_int) -> c_int {
    if mode & libc::X_OK == 0 {
        return 0;
    }
    // SAFETY: the place of this thread's errno.
    unsafe { *libc::__errno_location() = libc::EACCES };
    -1
}

macro_rules! attributes {
    ($name:ident, $type:ty) => {
        fn $name(number: u32) -> $type {
            // SAFETY: all its fields are numbers.
            let mut of: $type = unsafe { zeroed() };
            of.st_mode = MODE;
            of.st_nlink = 1;
            of.st_rdev = libc::makedev(MAJOR, FIRST_MINOR + number);
            of.st_blksize = 4096;
            of
        }
    };
}

attributes!(attributes, libc::stat);
attributes!(attributes64, libc::stat64);

fn attributes_x(number: u32) -> libc::statx {
    // SAFETY: all its fields are numbers.
    let mut of: libc::statx = unsafe { zeroed() };
    of.stx_mask = libc::STATX_TYPE | libc::STATX_MODE | libc::STATX_NLINK;
    of.stx_mode = MODE as u16;
    of.stx_nlink = 1;
    of.stx_blksize = 4096;
    (of.stx_rdev_major, of.stx_rdev_minor) = (MAJOR, FIRST_MINOR + number);
    of
}

/// Functions that take a path: of a device they `give` something, else the next library's function is called.
macro_rules! answered {
    ($(
        fn $name:ident($($argument:ident: $type:ty),*) of $path:ident, $number:ident => $give:expr;
    )*) => { $(
        #[unsafe(no_mangle)]
        #[doc = concat!("`", stringify!($name), "`, which knows the devices.")]
        ///
        /// # Safety
        /// As for the function of C.
        pub unsafe extern "C" fn $name($($argument: $type),*) -> c_int {
            static NEXT: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());
            if let Some($number) = device($path) {
                return $give;
            }
            let mut next = NEXT.load(Ordering::Relaxed);
            if next.is_null() {
                let name = concat!(stringify!($name), "\0");
                // SAFETY: the name ends with 0.
                next = unsafe { libc::dlsym(RTLD_NEXT, name.as_ptr().cast()) };
                NEXT.store(next, Ordering::Relaxed);
            }
            if next.is_null() {
                // SAFETY: as above.
                unsafe { *libc::__errno_location() = libc::ENOSYS };
                return -1;
            }
            // SAFETY: the function of this name has this type; what it is called with is the caller's promise.
            unsafe { transmute::<*mut c_void, unsafe extern "C" fn($($type),*) -> c_int>(next)($($argument),*) }
        }
    )* };
}

/// Writes what a device's attributes are, and returns that it went well.
fn write<T>(to: *mut T, attributes: T) -> c_int {
    // SAFETY: the program's, to be written (C's contract).
    unsafe { to.write(attributes) };
    0
}

answered! {
    fn access(path: *const c_char, mode: c_int) of path, _device => may(mode);
    fn euidaccess(path: *const c_char, mode: c_int) of path, _device => may(mode);
    fn eaccess(path: *const c_char, mode: c_int) of path, _device => may(mode);
    fn faccessat(dir: c_int, path: *const c_char, mode: c_int, flags: c_int) of path, _device => may(mode);
    fn stat(path: *const c_char, to: *mut libc::stat) of path, device => write(to, attributes(device));
    fn lstat(path: *const c_char, to: *mut libc::stat) of path, device => write(to, attributes(device));
    fn stat64(path: *const c_char, to: *mut libc::stat64) of path, device => write(to, attributes64(device));
    fn lstat64(path: *const c_char, to: *mut libc::stat64) of path, device => write(to, attributes64(device));
    fn fstatat(dir: c_int, path: *const c_char, to: *mut libc::stat, flags: c_int) of path, device =>
        write(to, attributes(device));
    fn fstatat64(dir: c_int, path: *const c_char, to: *mut libc::stat64, flags: c_int) of path, device =>
        write(to, attributes64(device));
    // Of programs that were linked with glibc before 2.33.
    fn __xstat(version: c_int, path: *const c_char, to: *mut libc::stat) of path, device =>
        write(to, attributes(device));
    fn __lxstat(version: c_int, path: *const c_char, to: *mut libc::stat) of path, device =>
        write(to, attributes(device));
    fn __xstat64(version: c_int, path: *const c_char, to: *mut libc::stat64) of path, device =>
        write(to, attributes64(device));
    fn __lxstat64(version: c_int, path: *const c_char, to: *mut libc::stat64) of path, device =>
        write(to, attributes64(device));
    fn statx(dir: c_int, path: *const c_char, flags: c_int, mask: c_uint, to: *mut libc::statx) of path, device =>
        write(to, attributes_x(device));
}

#[cfg(test)]
mod tests {
    use super::number;

    #[test]
    fn only_names_of_devices_are_answered() {
        for (path, of) in [
            ("/dev/infiniband/uverbs0", Some(0)),
            ("/dev/infiniband/uverbs12", Some(12)),
            ("/dev/infiniband/uverbs", None),
            ("/dev/infiniband/uverbs01", None),
            ("/dev/infiniband/uverbs1x", None),
            ("/dev/infiniband/uverbs123456", None),
            ("/dev/infiniband/rdma_cm", None),
            ("uverbs0", None),
        ] {
            assert_eq!(number(path.as_bytes()), of, "{path}");
        }
    }
}
