//! The end of a process by a signal: first everything is written that its end by `exit` would have
//! written.
//!
//! The signals are those by which people and tests end a program that hangs, and that of `abort`,
//! by which an assertion ends it. The handler only wakes a thread of the library. This thread
//! writes, and ends the process by the same signal. In the meantime the handler waits, so that the
//! program does not notice: not every call continues after a handler. The handler returns after a
//! while, since it may have interrupted anything, also the simulator with its lock. A program that
//! handles a signal itself is not affected.

use std::cell::UnsafeCell;
use std::ffi::{c_int, c_void};
use std::mem::MaybeUninit;
use std::panic::catch_unwind;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};
use std::sync::mpsc;
use std::time::Duration;
use std::{process, thread};

use libc::siginfo_t;
use nix::errno::Errno;
use nix::sys::signal::{
    SaFlags, SigAction, SigHandler, SigSet, SigmaskHow, Signal, raise, sigaction,
};
use verbs_api::lab::Lab;
use verbs_settings::Config;

use super::diagnosis::{End, has_output, write_once};
use super::stuck;
use crate::base::output::say;
use crate::engine::running;

const SIGNALS: [Signal; 4] = [
    Signal::SIGINT,
    Signal::SIGTERM,
    Signal::SIGALRM,
    Signal::SIGABRT,
];

/// Time to get the simulator's lock. A program may hang with the lock, as in a handler for a fault
/// in its own memory.
const PATIENCE: Duration = Duration::from_secs(1);

/// Time to write.
const LAST_PATIENCE: Duration = Duration::from_secs(10);

/// Time that the handler holds the program where the signal found it, in milliseconds.
const HOLD_MS: c_int = 500;

/// The same time for `abort`, which ends the program when the handler returns.
const HOLD_ABORT_MS: c_int = 3000;

/// The process that has the thread. A child after `fork` has none until its engine starts.
static OWNER: AtomicU32 = AtomicU32::new(0);

/// The first signal that came to that process.
static SIGNAL: AtomicI32 = AtomicI32::new(0);

static WAKE: Wake = Wake(UnsafeCell::new(MaybeUninit::zeroed()));

/// A semaphore: a handler may post it to wake a thread.
struct Wake(UnsafeCell<MaybeUninit<libc::sem_t>>);

// SAFETY: semaphores are for many threads. It is made before another thread knows it (`watch`).
unsafe impl Sync for Wake {}

/// Watches for the signals that the program does not handle, if there is something to write.
///
/// Called when the engine has started. Before that there is nothing to report, and handlers that
/// the program or its language has installed by then are left alone.
pub(super) fn watch(config: &Config) {
    // Miri has no signals.
    if !has_output(config) || cfg!(miri) {
        return;
    }
    SIGNAL.store(0, Ordering::Relaxed);
    // SAFETY: called once in each process, before a thread waits for it or a handler posts it.
    unsafe { libc::sem_init(WAKE.0.get().cast(), 0, 0) };
    // The new thread blocks all signals: they are for the program's own threads.
    let Ok(before) = SigSet::all().thread_swap_mask(SigmaskHow::SIG_SETMASK) else {
        return;
    };
    let named = thread::Builder::new().name("verbs-sim signals".to_owned());
    // The thread inherits the mask, so it starts before the mask is restored.
    let is_started = named.spawn(wait).is_ok();
    let _ = before.thread_set_mask();
    // Without the thread the default actions stay, and nothing is written.
    if is_started {
        OWNER.store(process::id(), Ordering::Release);
        SIGNALS.into_iter().for_each(handle);
    }
}

/// Waits forever if a signal ends the process. Otherwise a call that the signal interrupted might
/// let the program end it in another way first.
pub(super) fn wait_if_ending() {
    if SIGNAL.load(Ordering::Acquire) != 0 && OWNER.load(Ordering::Relaxed) == process::id() {
        loop {
            thread::park();
        }
    }
}

/// Handles a signal whose action is the default one. Calls that it interrupts continue.
fn handle(signal: Signal) {
    let mut before = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: changes nothing, and has room for the result.
    let is_known = unsafe { libc::sigaction(signal as c_int, null(), before.as_mut_ptr()) } == 0;
    // SAFETY: it was filled, or is zeros, which are an action too.
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
    if OWNER.load(Ordering::Acquire) == process::id() {
        // `timeout` and a terminal may send a signal more than once. The first one counts.
        let first = SIGNAL.compare_exchange(0, number, Ordering::Release, Ordering::Relaxed);
        if first.is_ok() {
            // SAFETY: it is the third argument of a handler.
            unsafe { stuck::interrupts(context) };
            // SAFETY: it was made before the owner was stored.
            unsafe { libc::sem_post(WAKE.0.get().cast()) };
        }
        let hold = match number {
            libc::SIGABRT => HOLD_ABORT_MS,
            _ => HOLD_MS,
        };
        // SAFETY: waits, for no descriptor.
        unsafe { libc::poll(null_mut(), 0, hold) };
    } else if let Ok(signal) = Signal::try_from(number) {
        // No thread is there to write. The signal comes when this handler returns.
        set_default(signal);
        let _ = raise(signal);
    }
    Errno::set_raw(errno);
}

/// The thread of the library, which sleeps until a signal comes.
fn wait() {
    // SAFETY: the semaphore was made before this thread.
    while unsafe { libc::sem_wait(WAKE.0.get().cast()) } != 0 {}
    if let Ok(signal) = Signal::try_from(SIGNAL.load(Ordering::Acquire)) {
        // A panic in the writer must not keep the process from ending.
        let _ = catch_unwind(|| write_in_time(signal));
        end_by(signal);
    }
}

/// Writes, unless the simulator's lock cannot be had in time.
fn write_in_time(signal: Signal) {
    let Some(engine) = running() else { return };
    let (free, is_free) = mpsc::sync_channel(1);
    let give_up = move || {
        if is_free.recv_timeout(PATIENCE).is_ok() {
            // The simulator answers, but writing may block: a pipe may have no reader.
            let _ = is_free.recv_timeout(LAST_PATIENCE);
        } else {
            say("the simulator was busy: no diagnosis");
        }
        end_by(signal);
    };
    // If the thread cannot be made, only SIGKILL may end a process that hangs.
    let _ = thread::Builder::new().spawn(give_up);
    engine.sim.unobserved().now();
    // The thread is there, or could not be made.
    let _ = free.send(());
    write_once(engine, End::BySignal);
}

/// Restores the default action, which ends the process and writes nothing.
pub(super) fn set_default(signal: Signal) {
    let action = SigAction::new(SigHandler::SigDfl, SaFlags::empty(), SigSet::empty());
    // SAFETY: the default action calls no function.
    let _ = unsafe { sigaction(signal, &action) };
}

/// Ends the process as the signal would have.
fn end_by(signal: Signal) -> ! {
    set_default(signal);
    let _ = SigSet::from(signal).thread_unblock();
    let _ = raise(signal);
    // The first process of a container survives signals without a handler.
    // SAFETY: ends the process at once.
    unsafe { libc::_exit(128 + signal as c_int) }
}
