//! What a place of the program is called: its file and line, for the diagnosis.
//!
//! Only what the process has loaded says that, so it is found here and not by who reads the diagnosis.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{CStr, c_char, c_void};
use std::fmt;
use std::path::Path;
use std::ptr::with_exposed_provenance_mut;
use std::sync::{MutexGuard, PoisonError};

use backtrace::Symbol;
use serde::Serialize;
use verbs_api::site::{Calls, Site};
use verbs_api::sync::Mutex;

use crate::engine::{of_parent, running};

/// Their functions are part of the program that includes them, which is not where it calls a verb.
const HEADERS: [&str; 3] = ["verbs.h", "rdma_verbs.h", "verbsim.h"];

/// So many calls in each other are looked at.
const MOST_CALLS: usize = 32;

/// Held while the crate is asked, which has a lock of its own: a child would find that as another thread of its parent's
/// had it. So nobody asks while the process forks.
static ASKS: std::sync::Mutex<()> = std::sync::Mutex::new(());

std::thread_local!(static HELD: Cell<Option<MutexGuard<'static, ()>>> = const { Cell::new(None) });

fn asks() -> MutexGuard<'static, ()> {
    ASKS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The process is about to fork.
pub(crate) extern "C" fn before_fork() {
    HELD.set(Some(asks()));
}

/// It has, here and in the child.
pub(crate) extern "C" fn after_fork() {
    drop(HELD.take());
}

fn resolve(address: *mut c_void, see: impl FnMut(&Symbol)) {
    let _alone = asks();
    backtrace::resolve(address, see);
}

/// A place as it is to be read, such as `client.c:17`. Without debug information it is the function and its object, or
/// what `addr2line` would take.
pub(crate) fn name(site: Site) -> String {
    let of_call = |address| line(address).unwrap_or_else(|| function(address));
    match site {
        Site::Address(address) => of_call(address),
        Site::Calls(calls) => of_call(calls.innermost()),
        _ => site.to_string(),
    }
}

/// The same, and the lines of the calls around it, as far as they are known: `client.c:17, from client.c:40`.
pub(crate) fn name_with_calls(site: Site) -> String {
    let around = around(site).into_iter();
    let around: String = around.map(|line| format!(", from {line}")).collect();
    name(site) + &around
}

/// The lines of the calls around a place, from the inside out. Those that were made part of what they are in are known of
/// any place; the others if they were noted.
pub(crate) fn around(site: Site) -> Vec<String> {
    let (place, around) = outwards(site);
    let lines = place.into_iter().skip(1).chain(around);
    lines
        .take(MOST_CALLS)
        .map(|line| line.to_string())
        .collect()
}

/// Where the sources of a place and of the calls around it are, from the inside out, as far as debug
/// information says.
pub(crate) fn sources(site: Site) -> Vec<Source> {
    let (place, around) = outwards(site);
    let lines = place.into_iter().chain(around).take(MOST_CALLS);
    lines.map(|line| line.source).collect()
}

/// The lines of a place, and those of the calls around it, from the inside out.
fn outwards(site: Site) -> (Vec<Line>, Vec<Line>) {
    let (place, around) = match site {
        Site::Calls(calls) => (calls.innermost(), calls.around()),
        Site::Address(address) => (address, &[][..]),
        _ => return Default::default(),
    };
    let of_program = around.iter().filter(|address| !is_of_system(**address));
    let around = of_program.flat_map(|address| lines_of_program(*address));
    (lines_of_program(place), around.collect())
}

/// The calls that this thread is in, from that on which returns to this address.
pub(crate) fn calls_around(returns_to: usize) -> Option<&'static Calls> {
    static KNOWN: std::sync::Mutex<BTreeSet<&'static Calls>> =
        std::sync::Mutex::new(BTreeSet::new());
    // So a child finds it free too.
    let alone = asks();
    let frames = frames(&alone).into_iter().map(|(ip, _)| ip);
    let calls: Vec<_> = frames.skip_while(|ip| *ip != returns_to).collect();
    let calls = (!calls.is_empty()).then(|| Calls::new(calls))?;
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = known.get(&calls) {
        return Some(known);
    }
    // There are as many as the program has ways to call verbs.
    let calls = Box::leak(Box::new(calls));
    known.insert(calls);
    Some(calls)
}

/// Whether it is in what starts programs and threads.
fn is_of_system(address: usize) -> bool {
    let object = object(address)
        .map(|(object, _)| object)
        .unwrap_or_default();
    ["libc.so", "libpthread.so", "ld-linux"]
        .iter()
        .any(|name| object.starts_with(name))
}

/// The line of the call that returns there.
fn line(address: usize) -> Option<String> {
    let lines = lines(address);
    let of_program = lines.iter().find(|line| line.is_of_program());
    let line = of_program.or_else(|| lines.iter().find(|line| !line.is_of_header()))?;
    Some(line.to_string())
}

/// The lines of the call that returns there which the program's author knows.
fn lines_of_program(address: usize) -> Vec<Line> {
    let lines = lines(address).into_iter();
    lines.filter(Line::is_of_program).collect()
}

/// A line of a file, as debug information names it.
#[derive(Serialize)]
pub(crate) struct Source {
    /// As the compiler was given it, from its working directory on.
    file: String,
    line: u32,
}

/// A line of source.
struct Line {
    source: Source,
    /// It is of the C++ library, which calls back what a program gives it.
    is_of_library: bool,
}

impl Line {
    fn is_of_program(&self) -> bool {
        !self.is_of_library && !self.is_of_header()
    }

    fn is_of_header(&self) -> bool {
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

/// The lines of the call that returns there: what is inline comes before what it is part of.
fn lines(address: usize) -> Vec<Line> {
    let mut found = Vec::new();
    // The crate looks at the byte before the address.
    resolve(with_exposed_provenance_mut(address), |symbol| {
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

/// How a call from a function of the headers leads to who called that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WayOut {
    /// It is not from there.
    None,
    /// By the frame that the caller's register points to.
    ByFrames,
    /// Only as debuggers do it, which takes longer.
    ByUnwinding,
}

/// What was found out of addresses, since that takes time.
#[derive(Default)]
pub(crate) struct Known(Mutex<BTreeMap<usize, WayOut>>);

/// The way out of the function that a call returns to, whose register for the frame has this value.
pub(crate) fn way_out(address: usize, frame: usize) -> WayOut {
    let look = || find_way_out(address, frame);
    match (running(), of_parent()) {
        (Some(engine), _) => *engine.known.0.lock().entry(address).or_insert_with(look),
        // The first that a child does may be with what its parent has made. The next finds an engine.
        (None, Some(_)) => look(),
        // Nothing can be wrong with what a program does before there is one.
        (None, None) => WayOut::None,
    }
}

fn find_way_out(address: usize, frame: usize) -> WayOut {
    if !all_of_headers(address) {
        return WayOut::None;
    }
    // What a frame begins with lies below what the caller had on its stack.
    let has_frame =
        |outside: Outside| cfg!(target_arch = "x86_64") && outside.stack == frame.wrapping_add(16);
    match outside(address).is_some_and(has_frame) {
        true => WayOut::ByFrames,
        false => WayOut::ByUnwinding,
    }
}

fn all_of_headers(address: usize) -> bool {
    let lines = lines(address);
    !lines.is_empty() && lines.iter().all(Line::is_of_header)
}

/// Where a function of the headers was called.
pub(crate) struct Outside {
    /// What its caller, or the caller of that, returns to that is of no header.
    pub(crate) returns_to: usize,
    /// Where the stack of the first caller ends.
    stack: usize,
}

/// Unwinds the stack of this thread from a call in a function of the headers, that returns to this address.
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

/// The calls that this thread is in: what each returns to, and where its stack begins.
fn frames(_alone: &MutexGuard<'_, ()>) -> Vec<(usize, usize)> {
    let mut frames = Vec::new();
    backtrace::trace(|frame| {
        frames.push((frame.ip().addr(), frame.sp().addr()));
        frames.len() < MOST_CALLS
    });
    frames
}

/// The function of the call that returns there, and the file that it is in.
fn function(address: usize) -> String {
    let mut function = None;
    resolve(with_exposed_provenance_mut(address), |symbol| {
        function = symbol.name().map(|name| name.to_string());
    });
    match (function, object(address)) {
        (Some(function), Some((object, _))) => format!("{function} in {object}"),
        (Some(function), None) => function,
        (None, Some((object, offset))) => format!("{object}+{offset:#x}"),
        (None, None) => Site::Address(address).to_string(),
    }
}

/// The program or library that has the address, and how far from its start that is.
fn object(address: usize) -> Option<(String, usize)> {
    let found = loaded(address)?;
    let path = text(found.dli_fname)?;
    Some((
        file_name(Path::new(&path)),
        address - found.dli_fbase.addr(),
    ))
}

/// The function that has the address, by the name under which others find it.
pub(crate) fn exported(address: usize) -> Option<String> {
    text(loaded(address)?.dli_sname)
}

/// What the loader knows of an address.
fn loaded(address: usize) -> Option<libc::Dl_info> {
    // SAFETY: zero bytes are null pointers.
    let mut found: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: looks the address up; the structure is ours to be filled.
    let is_known = unsafe { libc::dladdr(with_exposed_provenance_mut(address), &mut found) } != 0;
    is_known.then_some(found)
}

/// A name that the loader has given.
fn text(name: *const c_char) -> Option<String> {
    // SAFETY: it has an end, and stays as long as what was loaded with it.
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
    fn a_place_is_named_by_its_line() {
        let line = line!() + 2;
        #[inline(never)]
        fn here() -> usize {
            // As what a call of the first instruction would return to.
            here as *const () as usize + 1
        }
        let named = |address| name(Site::Address(address));
        assert_eq!(named(here()), format!("place.rs:{line}"));
        assert_eq!(named(1), "0x1");
        assert_eq!(name(Site::here()), format!("{}:{}", file!(), line!()));
        let (object, offset) = object(here()).unwrap();
        assert!(object.starts_with("verbsim_ibverbs-") && offset > 0);
    }

    #[test]
    fn a_function_of_the_headers_is_no_place() {
        assert!(is_header("verbs.h") && is_header("rdma_verbs.h"));
        assert!(!is_header("my_verbs.h") && !is_header("main.c"));
    }
}
