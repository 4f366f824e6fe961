//! What `/proc` says of threads and processes.

use std::fs;

/// What a thread does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// It has ended, and nothing of it is left.
    Gone,
    Runs,
    Sleeps,
    /// Sleeps, and only a signal that ends it wakes it.
    Deep,
    Stopped,
    Zombie,
}

/// A field of `/proc/TID/status`.
fn field(tid: i32, name: &str) -> Option<String> {
    let text = fs::read_to_string(format!("/proc/{tid}/status")).ok()?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    Some(line.trim().to_owned())
}

/// The fields of `/proc/TID/stat` that follow the name.
fn stat(tid: i32) -> Vec<String> {
    let text = fs::read_to_string(format!("/proc/{tid}/stat")).unwrap_or_default();
    // The name of the program may have any character.
    let fields = text.rsplit_once(')').map_or("", |(_, fields)| fields);
    fields.split_whitespace().map(str::to_owned).collect()
}

/// Whether a process has run another program since it was started.
pub(crate) fn has_executed(pid: i32) -> bool {
    const FORKED: u32 = 0x40;
    let flags = stat(pid).get(6).and_then(|flags| flags.parse().ok());
    flags.is_some_and(|flags: u32| flags & FORKED == 0)
}

pub(crate) fn state(tid: i32) -> State {
    let fields = stat(tid);
    let letter = fields.first().and_then(|state| state.chars().next());
    match letter {
        None => State::Gone,
        Some('R') => State::Runs,
        Some('D') => State::Deep,
        Some('T' | 't') => State::Stopped,
        Some('Z' | 'X') => State::Zombie,
        Some(_) => State::Sleeps,
    }
}

/// The process of a thread.
pub(crate) fn process(tid: i32) -> Option<i32> {
    field(tid, "Tgid")?.parse().ok()
}

pub(crate) fn parent(pid: i32) -> Option<i32> {
    field(pid, "PPid")?.parse().ok()
}

pub(crate) fn name(tid: i32) -> String {
    let name = fs::read_to_string(format!("/proc/{tid}/comm")).unwrap_or_default();
    name.trim().to_owned()
}

/// The threads of a process.
pub(crate) fn threads(pid: i32) -> Vec<i32> {
    let Ok(entries) = fs::read_dir(format!("/proc/{pid}/task")) else {
        return Vec::new();
    };
    let names = entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    names.collect()
}

/// The number of a thread in its own namespace, as its futexes have it.
pub(crate) fn own_number(tid: i32) -> i32 {
    let numbers = field(tid, "NSpid");
    let last = numbers
        .as_deref()
        .and_then(|text| text.split_whitespace().next_back());
    last.and_then(|number| number.parse().ok()).unwrap_or(tid)
}

/// The process group of a process.
pub(crate) fn group(pid: i32) -> Option<i32> {
    stat(pid).get(2)?.parse().ok()
}

/// How long a thread has run, in nanoseconds.
pub(crate) fn ran(tid: i32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{tid}/schedstat")).ok()?;
    text.split_whitespace().next()?.parse().ok()
}

/// The number of the call that a thread sleeps in.
pub(crate) fn call(tid: i32) -> Option<usize> {
    let text = fs::read_to_string(format!("/proc/{tid}/syscall")).ok()?;
    text.split_whitespace().next()?.parse().ok()
}

/// What a descriptor of a thread is.
pub(crate) fn file(tid: i32, fd: i32) -> Option<String> {
    let path = fs::read_link(format!("/proc/{tid}/fd/{fd}")).ok()?;
    Some(path.to_string_lossy().into_owned())
}

/// The descriptors of a process.
pub(crate) fn descriptors(pid: i32) -> Vec<i32> {
    let entries = fs::read_dir(format!("/proc/{pid}/fd"));
    let names = entries.into_iter().flatten().flatten();
    names
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect()
}

/// How many descriptors a thread may have now, without growth of its table.
pub(crate) fn most_descriptors(tid: i32) -> Option<i32> {
    field(tid, "FDSize")?.parse().ok()
}

/// The descriptors that an epoll descriptor has.
pub(crate) fn of_epoll(tid: i32, fd: i32) -> Vec<i32> {
    let text = fs::read_to_string(format!("/proc/{tid}/fdinfo/{fd}")).unwrap_or_default();
    let entries = text.lines().filter_map(|line| line.strip_prefix("tfd:"));
    entries
        .filter_map(|entry| entry.split_whitespace().next()?.parse().ok())
        .collect()
}

/// The signals that a descriptor of signals is readable by. None for another one.
pub(crate) fn of_signals(tid: i32, fd: i32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{tid}/fdinfo/{fd}")).unwrap_or_default();
    let set = text.lines().find_map(|line| line.strip_prefix("sigmask:"));
    set.and_then(|set| u64::from_str_radix(set.trim(), 16).ok())
        .unwrap_or(0)
}

/// The child processes of a process.
pub(crate) fn children(pid: i32) -> Vec<i32> {
    let of =
        |tid| fs::read_to_string(format!("/proc/{pid}/task/{tid}/children")).unwrap_or_default();
    let lists: Vec<String> = threads(pid).into_iter().map(of).collect();
    let words = lists.iter().flat_map(|list| list.split_whitespace());
    words.filter_map(|word| word.parse().ok()).collect()
}

/// The signals that wait for a thread.
pub(crate) fn pending(tid: i32) -> u64 {
    let set = |name| field(tid, name).and_then(|text| u64::from_str_radix(&text, 16).ok());
    set("SigPnd").unwrap_or(0) | set("ShdPnd").unwrap_or(0)
}

/// Whether a process handles, ignores or blocks a signal. So does one that has ended.
pub(crate) fn expects(pid: i32, signal: i32) -> bool {
    ["SigCgt", "SigIgn", "SigBlk"].into_iter().any(|name| {
        let set = field(pid, name).and_then(|text| u64::from_str_radix(&text, 16).ok());
        set.is_none_or(|set| set >> (signal - 1) & 1 != 0)
    })
}

/// The shared file that is mapped at an address, and the place in it. `None` if the memory is the
/// process's own.
pub(crate) fn shared_at(pid: i32, at: u64) -> Option<(String, u64)> {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).ok()?;
    maps.lines().find_map(|line| {
        let mut words = line.split_whitespace();
        let (start, end) = words.next()?.split_once('-')?;
        let number = |text| u64::from_str_radix(text, 16).ok();
        let start = number(start)?;
        if !(start..number(end)?).contains(&at) {
            return None;
        }
        let is_shared = words.next()?.ends_with('s');
        let offset = number(words.next()?)?;
        let file = format!("{} {}", words.next()?, words.next()?);
        is_shared.then_some((file, offset + at - start))
    })
}
