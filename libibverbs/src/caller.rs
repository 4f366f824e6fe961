//! Where a program calls a verb: what the call returns to.
//!
//! Every way in is a jump to a Rust function, in assembly, since only there it is still known who called. The jump
//! leaves the address in a word of the thread, and the verb takes it from there. That costs a few instructions a verb,
//! and no argument of it changes its place.

/// The instructions of a way in: notes what the call returns to, and goes on to `{function}`. They touch only
/// registers that neither arguments nor results are in.
#[cfg(all(not(test), target_arch = "x86_64"))]
macro_rules! jump {
    () => {
        "mov r10, qword ptr [rsp]
        mov r11, qword ptr [rip + verbsim_caller@GOTTPOFF]
        mov qword ptr fs:[r11], r10
        jmp {function}"
    };
}

#[cfg(all(not(test), target_arch = "aarch64"))]
macro_rules! jump {
    () => {
        "adrp x16, :gottprel:verbsim_caller
        ldr x16, [x16, #:gottprel_lo12:verbsim_caller]
        mrs x17, tpidr_el0
        str x30, [x17, x16]
        b {function}"
    };
}

/// A function as a program is to call it through a pointer.
#[cfg(not(test))]
macro_rules! way_to {
    ($function:path) => {{
        #[unsafe(naked)]
        extern "C" fn way() {
            std::arch::naked_asm!($crate::caller::jump!(), function = sym $function)
        }
        // SAFETY: it goes on to that function with all arguments in their places.
        unsafe { $crate::caller::of_type($function, way) }
    }};
}

/// Tests have no assembly.
#[cfg(test)]
macro_rules! way_to {
    ($function:path) => {
        $function
    };
}

#[cfg(not(test))]
pub(crate) use jump;
pub(crate) use way_to;

#[cfg(not(test))]
pub(crate) use noted::{of_type, take};

/// What the call returns to that has brought this thread here, unless it was taken before: of verbs that call others
/// the outermost has it.
#[cfg(test)]
pub(crate) fn take() -> Option<usize> {
    None
}

#[cfg(not(test))]
mod noted {
    use std::arch::{asm, global_asm};
    use std::num::NonZero;

    // Rust has no name for a word of a thread that assembly could use. It is at a fixed distance from the thread's
    // pointer (*initial exec*): the loader has some room for that even if a program opens the library late.
    global_asm!(
        ".pushsection .tbss, \"awT\", @nobits",
        ".globl verbsim_caller",
        ".hidden verbsim_caller",
        ".type verbsim_caller, @object",
        ".size verbsim_caller, 8",
        ".balign 8",
        "verbsim_caller: .zero 8",
        ".popsection",
    );

    /// What the call returns to that has brought this thread here, unless it was taken before: of verbs that call
    /// others the outermost has it.
    #[inline(always)]
    pub(crate) fn take() -> Option<usize> {
        let caller: usize;
        // SAFETY: reads and clears the word above, which nothing but these few instructions uses.
        #[cfg(target_arch = "x86_64")]
        unsafe {
            asm!(
                "mov {place}, qword ptr [rip + verbsim_caller@GOTTPOFF]",
                "mov {caller}, qword ptr fs:[{place}]",
                "mov qword ptr fs:[{place}], 0",
                place = out(reg) _,
                caller = out(reg) caller,
                options(nostack, preserves_flags),
            );
        }
        // SAFETY: as above.
        #[cfg(target_arch = "aarch64")]
        unsafe {
            asm!(
                "adrp {place}, :gottprel:verbsim_caller",
                "ldr {place}, [{place}, #:gottprel_lo12:verbsim_caller]",
                "mrs {thread}, tpidr_el0",
                "ldr {caller}, [{thread}, {place}]",
                "str xzr, [{thread}, {place}]",
                place = out(reg) _,
                thread = out(reg) _,
                caller = out(reg) caller,
                options(nostack, preserves_flags),
            );
        }
        NonZero::new(caller).map(NonZero::get)
    }

    /// A way in, with the type of the function that it leads to.
    ///
    /// # Safety
    /// It leads there.
    pub(crate) unsafe fn of_type<F: Copy>(_function: F, way: extern "C" fn()) -> F {
        const { assert!(size_of::<F>() == size_of::<extern "C" fn()>()) };
        // SAFETY: both are pointers to functions; the caller's promise is that it may be called as one of type `F`.
        unsafe { std::mem::transmute_copy(&way) }
    }
}
