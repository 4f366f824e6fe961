//! What the program `verbsim` and the tests of the whole run the conformance suite against.

pub mod backend;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
