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
//! `at_exit` writes the trace and the diagnosis at the end (`json` for programs), `interrupted` if that is a signal's, with what threads are `stuck` in;
//! `names` are those of a finding. `output` is where that goes. `verdict` tells `verbsim exec` of it. `report` is for who wants to know of a mistake when it happens. `export` has the names and their versions; the
//! structures are in `verbs_abi`, the settings in `verbs_settings`. An entry point finds its objects
//! (`object`, in an `arena`, for which `pin` says who uses it), calls the `engine`, and returns as C does (`result`). Each kind of object has
//! a file, and so have `import` and `xrc`. Calls that wait for events are `blocking`. `caller` notes where the program calls, and `place` names that.
//!
//! `control` has the functions behind `verbsim.h`, which tests of programs call.
//!
//! `preload` is the library in `LD_PRELOAD`, `loaded` the libraries of the process, `sysfs` the files
//! of the devices.
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

mod absent;
mod ah;
mod arena;
mod at_exit;
mod batch;
mod blocking;
mod buffer;
mod caller;
mod cm;
mod context;
mod control;
mod cq;
mod cq_ex;
mod dm;
mod domain;
mod engine;
mod event;
#[cfg(not(test))]
mod export;
mod import;
mod interrupted;
mod json;
#[cfg_attr(test, allow(dead_code, reason = "tests do not preload"))]
mod loaded;
mod mapped;
mod mw;
mod names;
mod object;
mod output;
mod pin;
mod place;
mod post;
#[cfg(not(test))]
mod preload;
mod qp;
mod region;
mod report;
mod result;
mod srq;
mod stuck;
mod sysfs;
mod text;
mod verdict;
mod xrc;
