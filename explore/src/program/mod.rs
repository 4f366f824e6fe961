//! Random verbs programs: made from a seed, run on any backend, shrunk when something is wrong.
//!
//! | module | holds |
//! |---|---|
//! | [`Call`] | what a program can do |
//! | `generate` | a program of a seed |
//! | [`run()`], [`Outcome`] | running one, and its outcome |
//! | [`shrink()`] | making one short |
//! | [`print()`] | one as Rust code |
//! | [`compare()`], [`known()`] | the same program on a device and on the simulator |

mod act;
mod call;
mod code;
mod compare;
mod dice;
mod end;
mod generate;
mod known;
mod objects;
mod outcome;
mod print;
mod rare;
mod run;
mod shrink;
mod work;

pub use call::{Call, Key, Link, Number, Op, QKEY, QpMake, Remote, Send, Sge, Target};
pub use compare::{Difference, compare};
pub use known::{Known, known};
pub use outcome::{Completion, Outcome, Region, Seen};
pub use print::print;
pub use run::{Conditions, run, run_under};
pub use shrink::shrink;

/// A program: calls of one thread, on devices of up to four nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// Whether work may race.
    pub pace: Pace,
    /// The calls, in order.
    pub calls: Vec<Call>,
}

/// Whether started work may race with later calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// It runs at the same time as the next calls.
    Free,
    /// What a call started is finished before the next call. The outcome is then the same on any
    /// device that behaves like its profile on the simulator, however fast it is.
    Settled,
}
