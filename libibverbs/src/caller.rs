//! Where a program calls a verb: what the call returns to.
//!
//! Every way in is a jump to a Rust function, in assembly, since only there it is still known who called. The jump
//! leaves that in words of the thread, where it stays until the thread's next call: whatever the thread does
//! meanwhile, it does for that call. So a verb pays a few instructions, and an engine asks when it wants to know.

use std::cell::Cell;
#[cfg(test)]
use std::ptr::null;
use std::ptr::with_exposed_provenance;
use std::sync::atomic::{AtomicBool, Ordering};

use verbs_api::site::{Layer, Site, noted_by};

use verbs_settings::Config;

use crate::engine::running;
use crate::pin::Record;
use crate::place::{self, WayOut};

/// The instructions of a way in: notes what the call returns to, and the caller's frame, and goes on to `{function}`.
/// They touch only registers that neither arguments nor results are in.
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

/// A way in, with the type of the function that it leads to.
///
/// # Safety
/// It leads there.
#[cfg(not(test))]
pub(crate) unsafe fn of_type<F: Copy>(_function: F, way: extern "C" fn()) -> F {
    const { assert!(size_of::<F>() == size_of::<extern "C" fn()>()) };
    // SAFETY: both are pointers to functions; the caller's promise is that it may be called as one of type `F`.
    unsafe { std::mem::transmute_copy(&way) }
}

/// The words of a thread: what its last call has left, and where its pins are.
#[repr(C)]
struct Noted {
    /// 0 before the first call.
    returns_to: Cell<usize>,
    /// What the caller has in the register for its frame. Optimized code has something else there.
    frame: Cell<usize>,
    /// Null before the first lookup of an object.
    record: Cell<*const Record>,
}

// Rust has no name for words of a thread that assembly could use. They are at a fixed distance from the thread's
// pointer (*initial exec*): the loader has some room for that even if a program opens the library late.
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

/// Looks at the words of this thread.
#[cfg(not(test))]
#[inline(always)]
fn with_noted<T>(look: impl FnOnce(&Noted) -> T) -> T {
    let noted: *const Noted;
    // SAFETY: finds the words above, and touches no memory but the table of the loader, which stays.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        std::arch::asm!(
            "mov {noted}, qword ptr fs:[0]",
            "add {noted}, qword ptr [rip + verbsim_caller@GOTTPOFF]",
            noted = out(reg) noted,
            options(pure, readonly, nostack),
        );
    }
    // SAFETY: as above.
    #[cfg(target_arch = "aarch64")]
    unsafe {
        std::arch::asm!(
            "adrp {noted}, :gottprel:verbsim_caller",
            "ldr {noted}, [{noted}, #:gottprel_lo12:verbsim_caller]",
            "mrs {thread}, tpidr_el0",
            "add {noted}, {noted}, {thread}",
            noted = out(reg) noted,
            thread = out(reg) _,
            options(pure, readonly, nostack, preserves_flags),
        );
    }
    // SAFETY: they are there as long as the thread, which alone uses them; the jumps write them before Rust runs.
    look(unsafe { &*noted })
}

#[cfg(test)]
fn with_noted<T>(look: impl FnOnce(&Noted) -> T) -> T {
    std::thread_local!(static NOTED: Noted = const {
        Noted { returns_to: Cell::new(0), frame: Cell::new(0), record: Cell::new(null()) }
    });
    NOTED.with(look)
}

/// Where the pins of this thread are counted: null if it has none.
#[inline(always)]
pub(crate) fn record() -> *const Record {
    with_noted(|noted| noted.record.get())
}

pub(crate) fn set_record(record: *const Record) {
    with_noted(|noted| noted.record.set(record));
}

/// Whether somebody will read the names of places.
static IS_NAMED: AtomicBool = AtomicBool::new(false);

/// Whether places will be named.
#[inline]
pub(crate) fn is_named() -> bool {
    IS_NAMED.load(Ordering::Relaxed)
}

/// Lets the engine ask here where the program is. Names take time, so it is said whether there will be any.
pub(crate) fn register(config: &Config) {
    IS_NAMED.store(config.diagnose().is_some(), Ordering::Relaxed);
    let here = match config.backtraces() {
        true => || site().map(with_calls),
        false => site,
    };
    noted_by(Layer { here, with_calls });
}

/// What this thread's last call returns to, if it ever called.
pub(crate) fn returns_to() -> Option<usize> {
    let returns_to = with_noted(|noted| noted.returns_to.get());
    (returns_to != 0).then_some(returns_to)
}

fn site() -> Option<Site> {
    returns_to().map(Site::Address)
}

fn with_calls(site: Site) -> Site {
    match site {
        Site::Address(address) if is_named() && returns_to() == Some(address) => {
            place::calls_around(address).map_or(site, Site::Calls)
        }
        _ => site,
    }
}

/// A call that has come from a function of C's headers, such as `ibv_post_send`, is one of who called that. They are
/// functions only where they were not made part of their callers, as without optimization. Then the chain of frames leads
/// there if there is one, or else what unwinding knows; either has to be followed while the frames last.
#[inline(always)]
pub(crate) fn settle() {
    if is_named() {
        leave_headers();
    }
}

#[cold]
fn leave_headers() {
    with_noted(|noted| {
        let returns_to = noted.returns_to.get();
        let outer = match way_out(returns_to, noted.frame.get()) {
            WayOut::None => return,
            WayOut::ByFrames => by_frames(noted.frame.get()),
            WayOut::ByUnwinding => place::outside(returns_to).map(|outer| outer.returns_to),
        };
        noted.returns_to.set(outer.unwrap_or(returns_to));
    });
}

/// As `place::way_out`, which takes a lock: what this thread has asked for lately it knows.
fn way_out(address: usize, frame: usize) -> WayOut {
    const SLOTS: usize = 64;
    std::thread_local!(
        static KNOWN: [Cell<(usize, WayOut)>; SLOTS] =
            const { [const { Cell::new((0, WayOut::None)) }; SLOTS] }
    );
    KNOWN.with(|known| {
        let slot = &known[(address >> 2) % SLOTS];
        let (of, way) = slot.get();
        if of == address {
            return way;
        }
        let way = place::way_out(address, frame);
        // Before there is an engine nobody has looked.
        if running().is_some() {
            slot.set((address, way));
        }
        way
    })
}

/// What is outside of a frame that has been seen to be one.
fn by_frames(mut frame: usize) -> Option<usize> {
    /// `rdma_post_send` calls another, which calls `ibv_post_send`.
    const MOST: usize = 3;
    for _ in 0..MOST {
        if !may_be_frame(frame) {
            return None;
        }
        // SAFETY: the place is on the stack of this thread, where a function of the headers has its frame.
        let [outer, returns_to] = unsafe { with_exposed_provenance::<[usize; 2]>(frame).read() };
        if way_out(returns_to, 0) == WayOut::None {
            return Some(returns_to);
        }
        frame = outer;
    }
    None
}

/// Whether it is on the stack, not far above. A frame begins with that of the caller, and with what it returns to.
fn may_be_frame(frame: usize) -> bool {
    const NEAR: usize = 1 << 14;
    let here = (&raw const frame).addr();
    frame.is_multiple_of(align_of::<usize>()) && frame.wrapping_sub(here) < NEAR
}
