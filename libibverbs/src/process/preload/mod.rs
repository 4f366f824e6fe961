//! The library in `LD_PRELOAD`: it comes before all other libraries of a process.
//!
//! So its verbs win over those of any libibverbs or librdmacm, whatever the name of that file: the
//! loader looks for a symbol by name and version, not by file. `dlopen` of such a file gives this
//! library, and [`files`] shows the program the files of the devices.
//!
//! `verbsim exec` preloads the library into every program. In one that does not need it, it sleeps:
//! it reads no setting, opens no file and starts no thread until the program first calls a verb,
//! opens libibverbs or librdmacm, or looks for the files of a device.
//!
//! This folder names the engine, the record for `exec`, `symbols`, and `sysfs`.

mod files;
mod libraries;
mod next;

use std::env;
use std::ffi::{CStr, c_char, c_void};
use std::os::unix::ffi::OsStrExt;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicPtr, Ordering};

use self::next::{IS_ACTIVE, Next};
use crate::base::record;
use crate::c::symbols;
use crate::engine;

/// The path of this library, for `dlopen`.
static OWN_PATH: AtomicPtr<c_char> = AtomicPtr::new(null_mut());

/// Called when the library is loaded. Returns whether it sleeps.
pub(super) fn at_load() -> bool {
    let preloads = env::var_os("LD_PRELOAD").unwrap_or_default();
    let names_this = |name: &[u8]| name.windows(7).any(|part| part == b"ibverbs");
    // The library was linked or opened, so the program needs it.
    if !names_this(preloads.as_bytes()) {
        return false;
    }
    // The path lasts as long as the library, which is never unloaded.
    let own = symbols::loaded((at_load as *const ()).addr());
    let own = own.map_or(null(), |found| found.dli_fname);
    OWN_PATH.store(own.cast_mut(), Ordering::Relaxed);
    files::find_all();
    // A function that the C library lacks must not show as an error of the program.
    // SAFETY: the call only clears an error of this thread.
    unsafe { libc::dlerror() };
    IS_ACTIVE.store(true, Ordering::Relaxed);
    // Only an `exec` wants to know of other libraries.
    if env::var_os(record::VARIABLE).is_some() {
        // SAFETY: the function is of the right type and stays, as the library does.
        unsafe { libc::atexit(say_foreign) };
    }
    !libraries::need_verbs()
}

/// Records a library of the program's own that kept the drop-in from being used.
extern "C" fn say_foreign() {
    if engine::running().is_none()
        && let Some(path) = libraries::foreign()
    {
        engine::config();
        record::foreign(&path);
    }
}

static NEXT_DLOPEN: Next = Next::new(c"dlopen");

/// `dlopen`, which gives this library for every libibverbs and librdmacm.
///
/// It continues at the real function by a jump, because that function uses its return address: the
/// search path of the calling library counts.
///
/// # Safety
/// As for the function of C.
#[unsafe(naked)]
#[unsafe(no_mangle)]
#[cfg(target_arch = "x86_64")]
pub(crate) unsafe extern "C" fn dlopen(_path: *const c_char, _flags: i32) -> *mut c_void {
    std::arch::naked_asm!(
        "push rsi",
        "call {opened}",
        "pop rsi",
        "mov rdi, rax",
        "jmp rdx",
        opened = sym opened,
    )
}

/// `dlopen`, which gives this library for every libibverbs and librdmacm.
///
/// It continues at the real function by a jump, because that function uses its return address: the
/// search path of the calling library counts.
///
/// # Safety
/// As for the function of C.
#[unsafe(naked)]
#[unsafe(no_mangle)]
#[cfg(target_arch = "aarch64")]
pub(crate) unsafe extern "C" fn dlopen(_path: *const c_char, _flags: i32) -> *mut c_void {
    std::arch::naked_asm!(
        "stp x30, x1, [sp, #-16]!",
        "bl {opened}",
        "mov x16, x1",
        "ldp x30, x1, [sp], #16",
        "br x16",
        opened = sym opened,
    )
}

/// The path to open, in the first register of results, and the real `dlopen` in the second.
#[repr(C)]
struct Opened {
    path: *const c_char,
    next: *mut c_void,
}

extern "C" fn opened(path: *const c_char) -> Opened {
    let own = OWN_PATH.load(Ordering::Relaxed);
    let is_verbs = !path.is_null() && !own.is_null() && IS_ACTIVE.load(Ordering::Relaxed) && {
        // SAFETY: a path ends with 0 (C's contract).
        libraries::is_verbs(unsafe { CStr::from_ptr(path) }.to_bytes())
    };
    if is_verbs {
        engine::config();
    }
    Opened {
        path: if is_verbs { own } else { path },
        next: NEXT_DLOPEN.address(),
    }
}
