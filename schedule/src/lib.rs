//! Runs an unmodified program one thread at a time, in virtual time, in an order drawn from a seed.
//!
//! ```no_run
//! use std::process::Command;
//! use verbs_schedule::Schedule;
//!
//! let run = Schedule::new(7).run(&Command::new("./program"))?;
//! println!("{:?} after {} steps: {:?}", run.status, run.steps.count, run.end);
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! The threads and processes of the program stop at the system calls by which they wait, wake,
//! yield, start and end, by a seccomp filter whose notifications go to a supervisor. No privilege
//! and no change of the program is needed.
#![cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
#![deny(unsafe_code)]

mod calls;
mod changes;
mod clock;
mod draw;
mod filter;
mod futex;
mod memory;
mod namespace;
#[cfg(clippy)]
#[path = "../preload/lib.rs"]
#[expect(unsafe_code, reason = "it replaces functions of the C library")]
mod preload;
mod proc;
mod report;
mod schedule;
mod strategy;
mod supervisor;
#[expect(unsafe_code, reason = "system calls that no safe interface has")]
mod sys;
mod table;
mod timers;

pub use calls::{CLOCK, EMPTY, POINT};
pub use changes::{Change, Then};
pub use namespace::isolate;
pub use nix::sys::wait::WaitStatus;
pub use report::{ByTime, End, Run, Steps, Stuck};
pub use schedule::Schedule;

/// The program of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
