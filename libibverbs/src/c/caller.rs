//! The place in the program that calls a verb.

use std::cell::Cell;
use std::ptr::with_exposed_provenance;
use std::sync::atomic::{AtomicBool, Ordering};

use verbs_api::site::{Layer, Site, noted_by};
use verbs_settings::Config;

use super::symbols::{self, WayOut};
use crate::base::thread::with_words;
use crate::engine::running;

/// Whether the names of places will be read.
static IS_NAMED: AtomicBool = AtomicBool::new(false);

/// Whether places will be named.
#[inline]
pub(crate) fn is_named() -> bool {
    IS_NAMED.load(Ordering::Relaxed)
}

/// Lets the engine ask here for the place of a call. Finding names takes time, so `config` decides
/// whether there will be any.
pub(crate) fn register(config: &Config) {
    IS_NAMED.store(config.diagnose().is_some(), Ordering::Relaxed);
    let here = if config.backtraces() {
        || site().map(with_calls)
    } else {
        site
    };
    noted_by(Layer { here, with_calls });
}

/// The return address of this thread's last call. `None` before its first call.
pub(crate) fn returns_to() -> Option<usize> {
    let returns_to = with_words(|words| words.returns_to.get());
    (returns_to != 0).then_some(returns_to)
}

fn site() -> Option<Site> {
    returns_to().map(Site::Address)
}

fn with_calls(site: Site) -> Site {
    match site {
        Site::Address(address) if is_named() && returns_to() == Some(address) => {
            symbols::calls_around(address).map_or(site, Site::Calls)
        }
        _ => site,
    }
}

/// Attributes a call from a function of C's headers, such as `ibv_post_send`, to the caller of that
/// function.
///
/// Compilers usually inline these functions, but not without optimization. The caller is then found
/// by the chain of frames if there is one, or by unwinding. Both work only while the frames exist,
/// so this is done at the start of each call.
#[inline(always)]
pub(crate) fn settle() {
    if is_named() {
        leave_headers();
    }
}

#[cold]
fn leave_headers() {
    with_words(|words| {
        let returns_to = words.returns_to.get();
        let outer = match way_out(returns_to, words.frame.get()) {
            WayOut::None => return,
            WayOut::ByFrames => by_frames(words.frame.get()),
            WayOut::ByUnwinding => symbols::outside(returns_to).map(|outer| outer.returns_to),
        };
        words.returns_to.set(outer.unwrap_or(returns_to));
    });
}

/// The result of [`symbols::way_out`], which takes a lock. Each thread keeps its recent results.
fn way_out(address: usize, frame: usize) -> WayOut {
    const SLOTS: usize = 64;
    std::thread_local!(
        static KNOWN: [Cell<(usize, WayOut)>; SLOTS] =
            const { [const { Cell::new((0, WayOut::None)) }; SLOTS] }
    );
    KNOWN.with(|known| {
        // Instructions are aligned to 4 bytes on some machines, so the low bits say little.
        let slot = &known[(address >> 2) % SLOTS];
        let (of, way) = slot.get();
        if of == address {
            return way;
        }
        let way = symbols::way_out(address, frame);
        // Before the engine runs, the result is a guess that was not looked up.
        if running().is_some() {
            slot.set((address, way));
        }
        way
    })
}

/// Follows frames until they leave the headers. `frame` belongs to a function of the headers.
fn by_frames(mut frame: usize) -> Option<usize> {
    /// `rdma_post_send` calls another function, which calls `ibv_post_send`.
    const DEPTH: usize = 3;
    for _ in 0..DEPTH {
        // Other code may use the register, and then the chain leads nowhere.
        if !may_be_frame(frame) {
            return None;
        }
        // SAFETY: the address is on this thread's stack, where a function of the headers has its
        // frame.
        let [outer, returns_to] = unsafe { with_exposed_provenance::<[usize; 2]>(frame).read() };
        if way_out(returns_to, 0) == WayOut::None {
            return Some(returns_to);
        }
        frame = outer;
    }
    None
}

/// Whether an address is on the stack, not far above this call. A frame begins with the caller's
/// frame and the return address.
fn may_be_frame(frame: usize) -> bool {
    const NEAR: usize = 1 << 14;
    let here = (&raw const frame).addr();
    frame.is_multiple_of(align_of::<usize>()) && frame.wrapping_sub(here) < NEAR
}
