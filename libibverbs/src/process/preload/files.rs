//! Wrappers of functions that take a path. For `/sys/class/infiniband*` and `/dev/infiniband` they
//! look into the tree of [`sysfs`]; for every other path they call the C library.
//!
//! For another path they only compare its first bytes. They take no lock and allocate nothing, so
//! they may be called in a signal handler and in a child after `fork`, as the real ones. The
//! exception is the first path of a device, which makes the tree.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::mem::transmute;
use std::os::unix::ffi::OsStrExt;
use std::ptr::null_mut;
use std::sync::atomic::Ordering;

use super::next::IS_ACTIVE;
use crate::verbs::sysfs;

/// Paths of RDMA devices in Linux. A suffix such as `_verbs` may follow.
const PLACES: [&[u8]; 3] = [
    b"/dev/infiniband",
    b"/sys/class/infiniband",
    // Links of the class lead there. Some programs resolve them themselves.
    b"/sys/devices/virtual/verbsim",
];

/// `PATH_MAX`
const LONGEST_PATH: usize = 4096;

/// Calls a function with a path, or with its replacement in the tree.
#[inline]
fn with_path<R>(path: *const c_char, call: impl FnOnce(*const c_char) -> R) -> R {
    if !path.is_null()
        && IS_ACTIVE.load(Ordering::Relaxed)
        && PLACES.iter().any(|of| is_in(of, path))
    {
        return with_tree(path, call);
    }
    call(path)
}

/// Whether a path begins with these bytes.
#[inline]
fn is_in(place: &[u8], path: *const c_char) -> bool {
    let same = |(at, byte): (usize, &u8)| {
        // SAFETY: a path ends with 0 (C's contract). All bytes before this one are not 0.
        unsafe { *path.add(at) as u8 == *byte }
    };
    place.iter().enumerate().all(same)
}

#[cold]
#[inline(never)]
fn with_tree<R>(path: *const c_char, call: impl FnOnce(*const c_char) -> R) -> R {
    let Some(root) = sysfs::root() else {
        return call(path);
    };
    let root = root.as_os_str().as_bytes();
    // SAFETY: a path ends with 0 (C's contract).
    let rest = unsafe { CStr::from_ptr(path) }.to_bytes_with_nul();
    let mut place = [0; LONGEST_PATH];
    let length = root.len() + rest.len();
    // The kernel refuses such a path, too.
    if length > place.len() {
        return call(path);
    }
    place[..root.len()].copy_from_slice(root);
    place[root.len()..length].copy_from_slice(rest);
    call(place.as_ptr().cast())
}

/// The result of a function that fails.
trait Failed {
    const FAILED: Self;
}

impl Failed for c_int {
    const FAILED: Self = -1;
}

impl Failed for isize {
    const FAILED: Self = -1;
}

impl<T> Failed for *mut T {
    const FAILED: Self = null_mut();
}

/// Attributes of a file. They show a device file as a character device, though the tree has a plain
/// file.
trait Attributes {
    fn mark(&mut self, major: c_uint, minor: c_uint);
}

/// All users may read and write device files.
const MODE: u32 = libc::S_IFCHR | 0o666;

impl Attributes for libc::stat {
    fn mark(&mut self, major: c_uint, minor: c_uint) {
        self.st_mode = MODE;
        self.st_rdev = libc::makedev(major, minor);
    }
}

impl Attributes for libc::statx {
    fn mark(&mut self, major: c_uint, minor: c_uint) {
        self.stx_mode = MODE as u16;
        (self.stx_rdev_major, self.stx_rdev_minor) = (major, minor);
    }
}

/// Marks the attributes that a call has written if the path names a device file.
fn marked<A: Attributes>(path: *const c_char, result: c_int, attributes: *mut A) -> c_int {
    if result == 0 && !path.is_null() && IS_ACTIVE.load(Ordering::Relaxed) && is_in(PLACES[0], path)
    {
        // SAFETY: a path ends with 0 (C's contract).
        let path = unsafe { CStr::from_ptr(path) }.to_bytes();
        if let Some((major, minor)) = sysfs::paths::device_number(path) {
            // SAFETY: the call has succeeded, so it has written them.
            unsafe { (*attributes).mark(major, minor) };
        }
    }
    result
}

/// Declares wrappers of functions of the C library, each with its argument that is a path. Those
/// with `marks` write attributes of a file.
macro_rules! functions {
    ($(
        fn $name:ident($($argument:ident: $type:ty),*) -> $result:ty, of $path:ident $(, marks $attributes:ident)?;
    )*) => {
        /// The real functions.
        #[allow(non_upper_case_globals, reason = "they have the names of C")]
        mod behind {
            use std::ffi::CStr;

            use crate::process::preload::next::Next;
            $(
                pub(super) static $name: Next = Next::new(
                    match CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                        Ok(name) => name,
                        Err(_) => panic!("a name has no zero byte"),
                    }
                );
            )*
        }

        /// Finds the real functions, so that later calls need no lock.
        pub(super) fn find_all() {
            $( behind::$name.address(); )*
        }

        $(
            #[unsafe(no_mangle)]
            #[doc = concat!("`", stringify!($name), "`, which finds the files of the devices.")]
            ///
            /// # Safety
            /// As for the function of C.
            pub(crate) unsafe extern "C" fn $name($($argument: $type),*) -> $result {
                let next = behind::$name.address();
                if next.is_null() {
                    // SAFETY: the place of this thread's errno.
                    unsafe { *libc::__errno_location() = libc::ENOSYS };
                    return Failed::FAILED;
                }
                // SAFETY: the function of this name has this type. One that takes a variable number
                // of arguments is called in the same way.
                let next = unsafe {
                    transmute::<*mut c_void, unsafe extern "C" fn($($type),*) -> $result>(next)
                };
                // SAFETY: the arguments are valid (the caller's promise).
                let result = with_path($path, |$path| unsafe { next($($argument),*) });
                $( let result = marked($path, result, $attributes); )?
                result
            }
        )*
    };
}

type Path = *const c_char;
/// `struct stat64` is the same on machines of 64 bits.
type Stat = *mut libc::stat;
type Filter = *const c_void;

functions! {
    fn open(path: Path, flags: c_int, mode: c_uint) -> c_int, of path;
    fn open64(path: Path, flags: c_int, mode: c_uint) -> c_int, of path;
    fn openat(dir: c_int, path: Path, flags: c_int, mode: c_uint) -> c_int, of path;
    fn openat64(dir: c_int, path: Path, flags: c_int, mode: c_uint) -> c_int, of path;
    fn fopen(path: Path, mode: *const c_char) -> *mut libc::FILE, of path;
    fn fopen64(path: Path, mode: *const c_char) -> *mut libc::FILE, of path;
    fn opendir(path: Path) -> *mut libc::DIR, of path;
    fn scandir(path: Path, to: *mut c_void, filter: Filter, order: Filter) -> c_int, of path;
    fn scandir64(path: Path, to: *mut c_void, filter: Filter, order: Filter) -> c_int, of path;
    fn chdir(path: Path) -> c_int, of path;
    fn access(path: Path, mode: c_int) -> c_int, of path;
    fn euidaccess(path: Path, mode: c_int) -> c_int, of path;
    fn eaccess(path: Path, mode: c_int) -> c_int, of path;
    fn faccessat(dir: c_int, path: Path, mode: c_int, flags: c_int) -> c_int, of path;
    fn getxattr(path: Path, name: *const c_char, to: *mut c_void, size: usize) -> isize, of path;
    fn lgetxattr(path: Path, name: *const c_char, to: *mut c_void, size: usize) -> isize, of path;
    fn listxattr(path: Path, to: *mut c_char, size: usize) -> isize, of path;
    fn llistxattr(path: Path, to: *mut c_char, size: usize) -> isize, of path;
    fn realpath(path: Path, to: *mut c_char) -> *mut c_char, of path;
    fn canonicalize_file_name(path: Path) -> *mut c_char, of path;
    fn readlink(path: Path, to: *mut c_char, size: usize) -> isize, of path;
    fn readlinkat(dir: c_int, path: Path, to: *mut c_char, size: usize) -> isize, of path;
    fn stat(path: Path, to: Stat) -> c_int, of path, marks to;
    fn lstat(path: Path, to: Stat) -> c_int, of path, marks to;
    fn stat64(path: Path, to: Stat) -> c_int, of path, marks to;
    fn lstat64(path: Path, to: Stat) -> c_int, of path, marks to;
    fn fstatat(dir: c_int, path: Path, to: Stat, flags: c_int) -> c_int, of path, marks to;
    fn fstatat64(dir: c_int, path: Path, to: Stat, flags: c_int) -> c_int, of path, marks to;
    fn statx(dir: c_int, path: Path, flags: c_int, mask: c_uint, to: *mut libc::statx) -> c_int, of path, marks to;
    // Programs that were linked with glibc before 2.33 call these.
    fn __xstat(version: c_int, path: Path, to: Stat) -> c_int, of path, marks to;
    fn __lxstat(version: c_int, path: Path, to: Stat) -> c_int, of path, marks to;
    fn __xstat64(version: c_int, path: Path, to: Stat) -> c_int, of path, marks to;
    fn __lxstat64(version: c_int, path: Path, to: Stat) -> c_int, of path, marks to;
    fn __fxstatat(version: c_int, dir: c_int, path: Path, to: Stat, flags: c_int) -> c_int, of path, marks to;
    fn __fxstatat64(version: c_int, dir: c_int, path: Path, to: Stat, flags: c_int) -> c_int, of path, marks to;
    // Programs that were compiled with _FORTIFY_SOURCE call these.
    fn __open_2(path: Path, flags: c_int) -> c_int, of path;
    fn __open64_2(path: Path, flags: c_int) -> c_int, of path;
    fn __openat_2(dir: c_int, path: Path, flags: c_int) -> c_int, of path;
    fn __openat64_2(dir: c_int, path: Path, flags: c_int) -> c_int, of path;
    fn __realpath_chk(path: Path, to: *mut c_char, room: usize) -> *mut c_char, of path;
    fn __readlink_chk(path: Path, to: *mut c_char, size: usize, room: usize) -> isize, of path;
    fn __readlinkat_chk(dir: c_int, path: Path, to: *mut c_char, size: usize, room: usize) -> isize, of path;
}
