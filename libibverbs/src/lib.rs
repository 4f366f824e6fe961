//! A drop-in `libibverbs.so.1` on the simulator. Unmodified programs, in any language, find
//! simulated devices where they look for those of the machine. Under the name `librdmacm.so.1` the
//! same file is librdmacm.
//!
//! `verbsim exec -- PROGRAM` sets everything up. To do it by hand, put this library into a
//! directory under the names `libibverbs.so.1` and `libibverbs.so`, name the directory in
//! `LD_LIBRARY_PATH`, and name the library in `LD_PRELOAD`. The crate `verbs-settings` reads the
//! settings of the devices.
//!
//! The features of the simulator, by the functions of libibverbs and the operations of its
//! contexts: devices, ports and their tables, protection domains, regions, buffers, windows,
//! completion queues and channels, iterations over extended queues (`ibv_start_poll`), moderation,
//! queue pairs and batches on them (`ibv_wr_*`), shared receive queues, XRC, address handles,
//! multicast, asynchronous events. Without the engine: parent and thread domains, device memory,
//! and imports of objects of the same process. All functions of librdmacm 1.5 except rsockets.
//! Descriptors of channels and contexts work with `poll`, `epoll` and `O_NONBLOCK`. One engine
//! serves the process, in real time.
//!
//! `EOPNOTSUPP`: tag matching, segmented sends, atomic writes, flushes, raw packets, flow steering,
//! work queues, counters, on-demand paging, dma-bufs, DMA handles, rate limits, enhanced connection
//! establishment, imports from another process. A profile of a driver also rejects what that driver
//! lacks: `rxe` and `siw` have no XRC and no device memory.
//!
//! # Divergence from libibverbs
//! - A pointer to no object, or to a destroyed one, is `EINVAL` where C would crash. The memory of
//!   an object is used again after 4,096 further objects of its kind have been destroyed. Then the
//!   pointer may name a new object, as after `free`. Pointers to structures that a call reads or
//!   writes are trusted, as in C. The exceptions are pointers that Rust cannot use: null or
//!   misaligned is `EINVAL`, or `EFAULT` where bytes, lists or work requests are passed.
//! - Excess acknowledgements are ignored, where C's destroy would never return.
//! - Memory has to stay mapped while work uses its region. The device does not pin pages, and
//!   asking the kernel for each copy would take too long (docs/drop-in.md has figures).
//! - Memory functions of a parent domain are accepted and never called: queues are not in the
//!   program's memory. A thread domain does not remove a lock.
//! - Every object made through a parent domain keeps it busy; drivers count only some.
//! - An imported context shares the asynchronous events of the context that it was imported from.
//!   Each event goes to the first caller that asks.
//! - A child after `fork` cannot use objects that its parent has made.
//! - A batch (`ibv_wr_start`) belongs to the thread that started it. Other threads get `EINVAL`. A
//!   second start before the end is `EINVAL` too, where C would wait forever. Destroying the queue
//!   pair ends the batch.
//! - The thread that started an iteration ends it. Until then, calls that would make that thread
//!   wait for itself, such as `ibv_poll_cq` on the same queue, are `EINVAL` where C would wait
//!   forever.
//!
//! # Where things are
//! Each folder names only those above it in this table, and itself.
//!
//! | folder | |
//! |---|---|
//! | `base` | memory of objects, words of threads, values of a process, output |
//! | `engine` | the simulator and its configuration |
//! | `c` | a call from C: its caller, its object, its result; objects of any kind |
//! | `verbs` | libibverbs |
//! | `cm` | librdmacm |
//! | `process` | loading, forking, ends, the diagnosis; `verbsim.h`; `LD_PRELOAD` |
//! | `export` | the names of all functions, with their versions |
//!
//! The structures are in `verbs_abi`, the settings in `verbs_settings`.
//!
//! The code trusts that a program passes valid arguments, as the manual pages ask: *C's contract*
//! in the comments. Everything else is looked up.
#![cfg(drop_in)]
#![allow(non_camel_case_types, reason = "structures have the names of C")]
#![cfg_attr(
    test,
    allow(
        dead_code,
        reason = "without the symbols nothing calls the entry points"
    )
)]
#![allow(
    clippy::not_unsafe_ptr_arg_deref,
    reason = "entry points of C, which are called by C alone"
)]

mod base;
mod c;
mod cm;
mod engine;
#[cfg(not(test))]
mod export;
mod process;
mod verbs;
