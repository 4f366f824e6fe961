//! Functions, lines and calls of addresses, from the loader, debug information and the stack.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{CStr, c_char, c_void};
use std::fmt;
use std::path::Path;
use std::ptr::with_exposed_provenance_mut;
use std::sync::{MutexGuard, PoisonError};

use backtrace::Symbol;
use serde::Serialize;
use verbs_api::site::Calls;
use verbs_api::sync::Mutex;

use crate::base::per_process::PerProcess;
use crate::engine::{of_parent, running};

/// Headers of C whose functions become part of the program. They are not places where the program
/// calls a verb.
const HEADERS: [&str; 3] = ["verbs.h", "rdma_verbs.h", "verbsim.h"];

/// The depth of the stack that is followed.
pub(crate) const MOST_CALLS: usize = 32;

/// Held while the crate `backtrace` works, which has a lock of its own. A child after `fork` would
/// find that lock held by a thread that it does not have. So a fork waits for this one.
static ASKS: std::sync::Mutex<()> = std::sync::Mutex::new(());

std::thread_local!(static HELD: Cell<Option<MutexGuard<'static, ()>>> = const { Cell::new(None) });

fn asks() -> MutexGuard<'static, ()> {
    ASKS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits until no thread asks. For the moment before the process forks.
pub(crate) extern "C" fn before_fork() {
    HELD.set(Some(asks()));
}

/// Lets threads ask again, in the parent and in the child.
pub(crate) extern "C" fn after_fork() {
    drop(HELD.take());
}

pub(crate) fn resolve(address: *mut c_void, see: impl FnMut(&Symbol)) {
    let _alone = asks();
    backtrace::resolve(address, see);
}

/// The calls that this thread is in, from the one that returns to this address outwards.
pub(crate) fn calls_around(returns_to: usize) -> Option<&'static Calls> {
    static KNOWN: std::sync::Mutex<BTreeSet<&'static Calls>> =
        std::sync::Mutex::new(BTreeSet::new());
    // This lock also keeps a fork from seeing the next one held.
    let alone = asks();
    let frames = frames(&alone).into_iter().map(|(ip, _)| ip);
    let calls: Vec<_> = frames.skip_while(|ip| *ip != returns_to).collect();
    let calls = (!calls.is_empty()).then(|| Calls::new(calls))?;
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    // Equal calls share one copy, which is never freed.
    if let Some(known) = known.get(&calls) {
        return Some(known);
    }
    // A program has a limited number of ways to call verbs.
    let calls = Box::leak(Box::new(calls));
    known.insert(calls);
    Some(calls)
}

/// A line of a file, as debug information names it.
#[derive(Serialize)]
pub(crate) struct Source {
    /// The path that the compiler was given, with its working directory.
    file: String,
    line: u32,
}

/// A line of source.
pub(crate) struct Line {
    pub(crate) source: Source,
    /// It belongs to the C++ library, which calls functions of the program.
    is_of_library: bool,
}

impl Line {
    pub(crate) fn is_of_program(&self) -> bool {
        !self.is_of_library && !self.is_of_header()
    }

    pub(crate) fn is_of_header(&self) -> bool {
        is_header(&self.file())
    }

    /// The name of the file.
    fn file(&self) -> String {
        file_name(Path::new(&self.source.file))
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file(), self.source.line)
    }
}

/// The lines of the call that returns there. Inlined calls come first.
pub(crate) fn lines(address: usize) -> Vec<Line> {
    let mut found = Vec::new();
    // The crate looks up the byte before the address, which belongs to the call.
    resolve(with_exposed_provenance_mut(address), |symbol| {
        // Without debug information both are missing.
        if let (Some(path), Some(line)) = (symbol.filename(), symbol.lineno()) {
            let file = path.to_string_lossy().into_owned();
            found.push(Line {
                is_of_library: file.contains("/include/c++/"),
                source: Source { file, line },
            });
        }
    });
    found
}

fn is_header(file: &str) -> bool {
    HEADERS.contains(&file)
}

/// The way from a call to the caller of the function of the headers that makes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WayOut {
    /// No function of the headers makes the call.
    None,
    /// The chain of frames, from the caller's frame register on.
    ByFrames,
    /// Unwinding, as debuggers do it, which takes longer.
    ByUnwinding,
}

/// Ways out that were looked up, since that takes time.
static KNOWN: PerProcess<Mutex<BTreeMap<usize, WayOut>>> = PerProcess::new();

/// The way out of the function that a call returns to. `frame` is the frame register there.
pub(crate) fn way_out(address: usize, frame: usize) -> WayOut {
    let look = || find_way_out(address, frame);
    match (running(), of_parent()) {
        (Some(_), _) => *KNOWN
            .get_or_default()
            .lock()
            .entry(address)
            .or_insert_with(look),
        // The first call of a child may be on an object of its parent, which is a mistake. It
        // starts the engine, so this happens once.
        (None, Some(_)) => look(),
        // Before the engine starts, a program can make no mistake.
        (None, None) => WayOut::None,
    }
}

fn find_way_out(address: usize, frame: usize) -> WayOut {
    if !all_of_headers(address) {
        return WayOut::None;
    }
    // A frame starts with two words, right below the caller's part of the stack.
    let has_frame =
        |outside: Outside| cfg!(target_arch = "x86_64") && outside.stack == frame.wrapping_add(16);
    if outside(address).is_some_and(has_frame) {
        WayOut::ByFrames
    } else {
        WayOut::ByUnwinding
    }
}

fn all_of_headers(address: usize) -> bool {
    let lines = lines(address);
    !lines.is_empty() && lines.iter().all(Line::is_of_header)
}

/// The caller of a function of the headers.
pub(crate) struct Outside {
    /// The return address of the nearest call that no header makes.
    pub(crate) returns_to: usize,
    /// The end of the first caller's part of the stack.
    stack: usize,
}

/// Unwinds the stack of this thread from the call that returns to this address.
pub(crate) fn outside(returns_to: usize) -> Option<Outside> {
    let frames = frames(&asks());
    let callers = frames
        .iter()
        .skip_while(|(ip, _)| *ip != returns_to)
        .skip(1);
    let stack = callers.clone().next().map(|(_, stack)| *stack);
    let found = callers.map(|(ip, _)| *ip).find(|ip| !all_of_headers(*ip));
    Some(Outside {
        returns_to: found?,
        stack: stack?,
    })
}

/// The calls that this thread is in: their return addresses, and the starts of their stack.
fn frames(_alone: &MutexGuard<'_, ()>) -> Vec<(usize, usize)> {
    let mut frames = Vec::new();
    backtrace::trace(|frame| {
        frames.push((frame.ip().addr(), frame.sp().addr()));
        frames.len() < MOST_CALLS
    });
    frames
}

/// The program or library that has the address, and the offset in it.
pub(crate) fn object(address: usize) -> Option<(String, usize)> {
    let found = loaded(address)?;
    let path = text(found.dli_fname)?;
    Some((
        file_name(Path::new(&path)),
        address - found.dli_fbase.addr(),
    ))
}

/// The function that has the address, by its exported name.
pub(crate) fn exported(address: usize) -> Option<String> {
    text(loaded(address)?.dli_sname)
}

/// The entry of the loader for an address.
pub(crate) fn loaded(address: usize) -> Option<libc::Dl_info> {
    // SAFETY: zero bytes are null pointers.
    let mut found: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: the call looks up the address and fills the structure.
    let is_known = unsafe { libc::dladdr(with_exposed_provenance_mut(address), &mut found) } != 0;
    is_known.then_some(found)
}

/// A name from the loader.
fn text(name: *const c_char) -> Option<String> {
    // SAFETY: it ends with 0, and stays as long as its program or library.
    let name = (!name.is_null()).then(|| unsafe { CStr::from_ptr(name) })?;
    Some(name.to_string_lossy().into_owned())
}

fn file_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or(path.as_os_str());
    name.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_of_the_headers_is_no_place() {
        assert!(is_header("verbs.h") && is_header("rdma_verbs.h"));
        assert!(!is_header("my_verbs.h") && !is_header("main.c"));
    }
}
