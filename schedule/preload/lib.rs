//! The library that a program under a schedule is started with.
//!
//! It answers the clocks of the C library from the page that the supervisor writes, and makes
//! points of the schedule where the program makes no system call: at mutexes, condition variables,
//! read-write locks, spin locks, semaphores and new threads. It asks the kernel for random bytes,
//! which the supervisor answers, where the C library would take them from the vDSO.
//!
//! Without `VERBS_SCHEDULE_CLOCK`, the name of that page, each function is that of the C library.

mod clocks;
mod libc;
mod page;
mod pthread;
mod random;
