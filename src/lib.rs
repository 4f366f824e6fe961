//! What the program `verbsim` and the tests of the whole run the conformance suite against.
#![deny(
    clippy::print_stderr,
    reason = "`eprintln!` panics if the standard error is closed or full"
)]

pub mod backend;
pub mod workers;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
