//! A drop-in `libibverbs.so.1` on the simulator: unmodified programs, in any language, find
//! simulated devices where they look for those of the machine. Under the name `librdmacm.so.1` it is that too.
//!
//! `verbsim exec -- PROGRAM` sets it all up. By hand: a directory with this library under the names
//! `libibverbs.so.1` and `libibverbs.so`, named by `LD_LIBRARY_PATH`; and the library in
//! `LD_PRELOAD`. The crate `verbs-settings` says how the devices are set up.
//!
//! # What is supported
//! What the simulator has, by the functions of libibverbs and the operations of its contexts:
//! devices, ports and their tables, protection domains, regions, buffers, windows, completion
//! queues and channels, iterations over extended queues (`ibv_start_poll`), moderation, queue pairs
//! and batches on them (`ibv_wr_*`), shared receive queues, XRC, address handles, multicast,
//! asynchronous events. Besides, without the engine: parent and thread domains, device memory, and
//! imports of what the process has already. All functions of librdmacm 1.5 but rsockets.
//! Descriptors of channels and contexts work with `poll`, `epoll` and `O_NONBLOCK`. One engine
//! serves the process, in real time: writes of peers arrive while a program looks at its memory
//! only.
//!
//! # What is rejected
//! `EOPNOTSUPP`: matching of tags, segmented sends, atomic writes, flushes, raw packets, flow
//! steering, work queues, counters, on-demand paging, dma-bufs, DMA handles, rate limits, enhanced
//! connection establishment, imports from another process. A driver's profile also rejects what
//! that driver lacks: `rxe` and `siw` have no XRC and no device memory.
//!
//! # Divergence from libibverbs
//! - A pointer to no object, or to a destroyed one, is `EINVAL` where C would crash. When 4,096
//!   further objects of the kind have been destroyed, the memory is used again, and the pointer may
//!   name a new object, as after `free`. Pointers to structures that a call reads or writes are
//!   trusted, as in C, but for what Rust cannot have: null or misaligned is `EINVAL`, and `EFAULT`
//!   where bytes, lists or work requests are passed.
//! - An acknowledgement too many is ignored, where C's destroy would never return.
//! - Memory has to stay mapped while work uses its region: the device has no pages of its own, and to ask
//!   the kernel for each copy would take too long (docs/drop-in.md has figures).
//! - Functions for memory of a parent domain are accepted, and never called: queues are not in the
//!   program's memory. A thread domain takes no lock away.
//! - Every object made through a parent domain keeps it busy; drivers count only some.
//! - An imported context has the asynchronous events of the one that it was imported from, and shares
//!   them with it: each comes to whoever asks first.
//! - A child after `fork` cannot use objects that its parent has made.
//! - A batch (`ibv_wr_start`) belongs to the thread that started it. Other threads get `EINVAL`, and so
//!   does a second start before its end, where C would wait for ever. It ends with its queue pair.
//! - The thread that started an iteration ends it. Calls that would make that thread wait for itself
//!   meanwhile, such as `ibv_poll_cq` on the same queue, are `EINVAL` where C would wait for ever.
//!
//! # Where things are
//! Each folder names only those above it in this table, and itself.
//!
//! | folder | |
//! |---|---|
//! | `base` | memory of objects, words of threads, values of a process, output: no simulator, no objects |
//! | `engine` | the simulator and its configuration |
//! | `c` | a call from C: its caller, its object, its result; objects of any kind |
//! | `verbs` | libibverbs |
//! | `cm` | librdmacm |
//! | `process` | loading, forking, ends, the diagnosis; `verbsim.h`; `LD_PRELOAD` |
//! | `export` | the names of all functions, with their versions |
//!
//! The structures are in `verbs_abi`, the settings in `verbs_settings`.
//!
//! # Unsafe
//! The code trusts that a program passes what the manual pages ask for: *C's contract* in the comments. All
//! else is looked up.
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
