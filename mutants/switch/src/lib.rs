//! Which mutant of a woven source is the live one: the environment says it, once for a process.
//!
//! Woven code asks [`is`] at each place that has a mutant, so one build has all of them.
//!
//! | variable | value |
//! |---|---|
//! | [`MUTANT`] | the number of the live mutant; none: the code is as it was written |
//! | [`REACHED`] | a file: each mutant that the process reaches is added to it, a number a line; none lives |

use std::env;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{LazyLock, Mutex};

/// Name of the variable that has the number of the live mutant.
pub const MUTANT: &str = "MUTANT";

/// Name of the variable that has the file for what is reached.
pub const REACHED: &str = "MUTANTS_REACHED";

/// No mutant has a greater number.
pub const MAX: u32 = (1 << 16) - 1;

static LIVE: AtomicU32 = AtomicU32::new(UNREAD);

/// Whether this is the live mutant.
#[inline(always)]
pub fn is(mutant: u32) -> bool {
    match LIVE.load(Ordering::Relaxed) {
        UNREAD => first(mutant),
        RECORDED => record(mutant),
        live => live == mutant,
    }
}

/// Numbers of no mutant: the environment was not read yet; what is reached is recorded.
const UNREAD: u32 = u32::MAX;
const RECORDED: u32 = u32::MAX - 1;

#[cold]
fn first(mutant: u32) -> bool {
    let number = || env::var(MUTANT).ok()?.parse().ok();
    let live = match env::var_os(REACHED) {
        Some(_) => RECORDED,
        None => number().unwrap_or(0),
    };
    LIVE.store(live, Ordering::Relaxed);
    is(mutant)
}

/// Notes the first time that a mutant is reached, at once, since a process may end in any way.
#[cold]
fn record(mutant: u32) -> bool {
    static SEEN: [AtomicBool; MAX as usize + 1] =
        [const { AtomicBool::new(false) }; MAX as usize + 1];
    static FILE: LazyLock<Option<Mutex<File>>> = LazyLock::new(|| {
        let path = env::var_os(REACHED)?;
        let file = OpenOptions::new().create(true).append(true).open(path);
        file.ok().map(Mutex::new)
    });
    if !SEEN[mutant as usize].swap(true, Ordering::Relaxed)
        && let Some(file) = &*FILE
        && let Ok(mut file) = file.lock()
    {
        // What cannot be written is a mutant that no check seems to reach.
        let _ = writeln!(file, "{mutant}");
    }
    false
}
