//! What is done when a signal ends the program: what its end by `exit` would have written is written first.
//!
//! The signals are those by which people and tests end a program that hangs, and that of `abort`, by which an assertion
//! ends it. The handler itself does nothing but wake a thread of the library, which writes, and ends the process by the
//! same signal. Meanwhile the handler waits, so that the program does not notice: not every call goes on after a handler.
//! It returns after a while, since it may have interrupted anything, the simulator with its lock too. A program that
//! handles a signal itself has it as ever.

use std::cell::UnsafeCell;
use std::ffi::{c_int, c_void};
use std::mem::MaybeUninit;
use std::panic::catch_unwind;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::thread;
use std::time::Duration;

use libc::siginfo_t;
use nix::errno::Errno;
use nix::sys::signal::{
    SaFlags, SigAction, SigHandler, SigSet, SigmaskHow, Signal, raise, sigaction,
};
use verbs_api::lab::Lab;
use verbs_settings::Config;

use crate::at_exit::{self, End};
use crate::engine::running;
use crate::output::say;
use crate::stuck;

const SIGNALS: [Signal; 4] = [
    Signal::SIGINT,
    Signal::SIGTERM,
    Signal::SIGALRM,
    Signal::SIGABRT,
];

/// A program may hang with the simulator's lock, as in a handler for a fault in its own memory.
const PATIENCE: Duration = Duration::from_secs(1);

/// For so long it may take to write.
const LAST_PATIENCE: Duration = Duration::from_secs(10);

/// For so long the program is held where the signal found it.
const HOLD_MS: c_int = 500;

/// For so long if it goes no further itself: `abort` ends it.
const HOLD_ABORT_MS: c_int = 3000;

/// The process whose thread waits: a child after `fork` has none until its engine starts.
static OWNER: AtomicI32 = AtomicI32::new(0);

/// The first signal that came to that process.
static SIGNAL: AtomicI32 = AtomicI32::new(0);

static WAKE: Wake = Wake(UnsafeCell::new(MaybeUninit::zeroed()));

/// What a handler may do to wake a thread.
struct Wake(UnsafeCell<MaybeUninit<libc::sem_t>>);

// SAFETY: semaphores are for many threads; it is made before there are others that know of it (`watch`).
unsafe impl Sync for Wake {}

/// Watches for the signals that nobody handles, if there is something to write. When the engine has started: before
/// there is nothing to say, and handlers that the program or its language has made by then are left alone.
pub(crate) fn watch(config: &Config) {
    // Miri has no signals.
    if !at_exit::has_output(config) || cfg!(miri) {
        return;
    }
    SIGNAL.store(0, Ordering::Relaxed);
    // SAFETY: once in each process, which has no thread yet that waits for it, and no handler that posts it.
    unsafe { libc::sem_init(WAKE.0.get().cast(), 0, 0) };
    // Signals of the program are for its own threads.
    let Ok(before) = SigSet::all().thread_swap_mask(SigmaskHow::SIG_SETMASK) else {
        return;
    };
    let named = thread::Builder::new().name("verbs-sim signals".to_owned());
    let is_started = named.spawn(wait).is_ok();
    let _ = before.thread_set_mask();
    if is_started {
        OWNER.store(own_id(), Ordering::Release);
        SIGNALS.into_iter().for_each(handle);
    }
}

/// A process that is ended by a signal does not end otherwise meanwhile, such as by a call that was interrupted.
pub(crate) fn wait_if_ending() {
    if SIGNAL.load(Ordering::Acquire) != 0 && OWNER.load(Ordering::Relaxed) == own_id() {
        loop {
            thread::park();
        }
    }
}

fn own_id() -> i32 {
    // SAFETY: reads a number.
    unsafe { libc::getpid() }
}

/// Handles a signal whose action is the default one. Calls that it interrupts go on.
fn handle(signal: Signal) {
    let mut before = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: changes nothing, and there is room for what it says.
    let is_known = unsafe { libc::sigaction(signal as c_int, null(), before.as_mut_ptr()) } == 0;
    // SAFETY: it was filled, and zeros are an action too.
    let before = unsafe { before.assume_init() };
    if is_known && before.sa_sigaction == libc::SIG_DFL {
        let flags = SaFlags::SA_RESTART | SaFlags::SA_ONSTACK | SaFlags::SA_SIGINFO;
        let action = SigAction::new(SigHandler::SigAction(on_signal), flags, SigSet::empty());
        // SAFETY: the handler does only what handlers may.
        let _ = unsafe { sigaction(signal, &action) };
    }
}

/// May interrupt anything, in any thread, and in a child after `fork`.
extern "C" fn on_signal(number: c_int, _: *mut siginfo_t, context: *mut c_void) {
    let errno = Errno::last_raw();
    if OWNER.load(Ordering::Acquire) == own_id() {
        // The first counts: `timeout` and a terminal may send one more than once.
        let first = SIGNAL.compare_exchange(0, number, Ordering::Release, Ordering::Relaxed);
        if first.is_ok() {
            // SAFETY: it is what the handler was given.
            unsafe { stuck::interrupts(context) };
            // SAFETY: it was made before the owner was stored.
            unsafe { libc::sem_post(WAKE.0.get().cast()) };
        }
        let hold = match number {
            libc::SIGABRT => HOLD_ABORT_MS,
            _ => HOLD_MS,
        };
        // SAFETY: waits, for nothing.
        unsafe { libc::poll(null_mut(), 0, hold) };
    } else if let Ok(signal) = Signal::try_from(number) {
        // Nobody is there to write. It comes when this handler has returned.
        set_default(signal);
        let _ = raise(signal);
    }
    Errno::set_raw(errno);
}

/// The thread: sleeps until a signal comes.
fn wait() {
    // SAFETY: it was made before this thread was.
    while unsafe { libc::sem_wait(WAKE.0.get().cast()) } != 0 {}
    if let Ok(signal) = Signal::try_from(SIGNAL.load(Ordering::Acquire)) {
        // It is the end, whatever happens.
        let _ = catch_unwind(|| write_in_time(signal));
        end_by(signal);
    }
}

/// Writes, unless the simulator cannot be asked.
fn write_in_time(signal: Signal) {
    static IS_FREE: AtomicBool = AtomicBool::new(false);
    let Some(engine) = running() else { return };
    let give_up = move || {
        thread::sleep(PATIENCE);
        if IS_FREE.load(Ordering::Relaxed) {
            // Nobody may read what is written.
            thread::sleep(LAST_PATIENCE);
            end_by(signal);
        } else {
            say("the simulator was busy: no diagnosis");
            end_by(signal);
        }
    };
    // Without that thread there may be no end, but for SIGKILL.
    let _ = thread::Builder::new().spawn(give_up);
    engine.sim.unobserved().now();
    IS_FREE.store(true, Ordering::Relaxed);
    at_exit::write_once(engine, End::BySignal);
}

/// The signal ends the process, and nothing is written.
pub(crate) fn set_default(signal: Signal) {
    let action = SigAction::new(SigHandler::SigDfl, SaFlags::empty(), SigSet::empty());
    // SAFETY: the default is no function of this library.
    let _ = unsafe { sigaction(signal, &action) };
}

/// Ends the process as the signal would have.
fn end_by(signal: Signal) -> ! {
    set_default(signal);
    let _ = SigSet::from(signal).thread_unblock();
    let _ = raise(signal);
    // The first process of a container survives what nobody handles.
    // SAFETY: ends the process, at once.
    unsafe { libc::_exit(128 + signal as c_int) }
}
