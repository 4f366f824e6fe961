//! The words that a call from C leaves for its thread.
//!
//! Every entry point is a jump to a Rust function, in assembly, because only there the caller is
//! still known. The jump stores the return address and the caller's frame in words of the thread.
//! They stay until the next call of this thread: whatever the thread does in between, it does for
//! this call. So a verb costs a few instructions more, and the engine asks only when it needs to
//! know.

use std::cell::Cell;
use std::ffi::c_void;
#[cfg(test)]
use std::ptr::null_mut;

/// The instructions of an entry point: they store the return address and the caller's frame, and
/// continue at `{function}`. They change only registers that hold no arguments and no results.
#[cfg(all(not(test), target_arch = "x86_64"))]
macro_rules! jump {
    () => {
        "mov r10, qword ptr [rsp]
        mov r11, qword ptr [rip + verbsim_caller@GOTTPOFF]
        mov qword ptr fs:[r11], r10
        mov qword ptr fs:[r11 + 8], rbp
        jmp {function}"
    };
}

#[cfg(all(not(test), target_arch = "aarch64"))]
macro_rules! jump {
    () => {
        "adrp x16, :gottprel:verbsim_caller
        ldr x16, [x16, #:gottprel_lo12:verbsim_caller]
        mrs x17, tpidr_el0
        add x16, x16, x17
        stp x30, x29, [x16]
        b {function}"
    };
}

/// A function as a program calls it through a pointer.
#[cfg(not(test))]
macro_rules! entry {
    ($function:path) => {{
        #[unsafe(naked)]
        extern "C" fn entry() {
            std::arch::naked_asm!($crate::base::thread::jump!(), function = sym $function)
        }
        // SAFETY: the entry continues at that function, with all arguments in their places.
        unsafe { $crate::base::thread::of_type($function, entry) }
    }};
}

/// Tests have no assembly.
#[cfg(test)]
macro_rules! entry {
    ($function:path) => {
        $function
    };
}

/// A structure of C with functions of these modules, each in the field of its name.
macro_rules! entries {
    ($structure:ident: $( $module:ident { $( $function:ident )* } )*) => {
        $structure {
            $( $( $function: Some($crate::base::thread::entry!($module::$function)), )* )*
            ..$structure::default()
        }
    };
}

#[cfg(not(test))]
pub(crate) use jump;
pub(crate) use {entries, entry};

/// An entry point with the type of the function that it leads to.
///
/// # Safety
/// `entry` continues at a function of type `F`.
#[cfg(not(test))]
pub(crate) unsafe fn of_type<F: Copy>(_function: F, entry: extern "C" fn()) -> F {
    const { assert!(size_of::<F>() == size_of::<extern "C" fn()>()) };
    // SAFETY: both are pointers to functions, and the caller promises that it can be called as `F`.
    unsafe { std::mem::transmute_copy(&entry) }
}

/// The words of a thread.
#[repr(C)]
pub(crate) struct Words {
    /// The return address of the last call. 0 before the first call.
    pub(crate) returns_to: Cell<usize>,
    /// The frame register of the caller. Optimized code may use it for something else.
    pub(crate) frame: Cell<usize>,
    /// The thread's record of pins. Null before the first lookup of an object.
    pub(crate) pins: Cell<*mut c_void>,
}

// Rust has no name for words of a thread that assembly could use. These are at a fixed distance
// from the thread's pointer (*initial exec*). The loader keeps some room for such words, so a
// program may also open the library late.
#[cfg(not(test))]
std::arch::global_asm!(
    ".pushsection .tbss, \"awT\", @nobits",
    ".globl verbsim_caller",
    ".hidden verbsim_caller",
    ".type verbsim_caller, @object",
    ".size verbsim_caller, 24",
    ".balign 8",
    "verbsim_caller: .zero 24",
    ".popsection",
);

/// Calls `look` with the words of this thread.
#[cfg(not(test))]
#[inline(always)]
pub(crate) fn with_words<T>(look: impl FnOnce(&Words) -> T) -> T {
    let words: *const Words;
    // SAFETY: finds the words above. It reads only the table of the loader, which stays.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        std::arch::asm!(
            "mov {words}, qword ptr fs:[0]",
            "add {words}, qword ptr [rip + verbsim_caller@GOTTPOFF]",
            words = out(reg) words,
            options(pure, readonly, nostack),
        );
    }
    // SAFETY: as above.
    #[cfg(target_arch = "aarch64")]
    unsafe {
        std::arch::asm!(
            "adrp {words}, :gottprel:verbsim_caller",
            "ldr {words}, [{words}, #:gottprel_lo12:verbsim_caller]",
            "mrs {thread}, tpidr_el0",
            "add {words}, {words}, {thread}",
            words = out(reg) words,
            thread = out(reg) _,
            options(pure, readonly, nostack, preserves_flags),
        );
    }
    // SAFETY: they exist as long as the thread, which alone uses them. The jumps write them before
    // any Rust code runs.
    look(unsafe { &*words })
}

#[cfg(test)]
pub(crate) fn with_words<T>(look: impl FnOnce(&Words) -> T) -> T {
    std::thread_local!(static WORDS: Words = const {
        Words { returns_to: Cell::new(0), frame: Cell::new(0), pins: Cell::new(null_mut()) }
    });
    WORDS.with(look)
}
