//! Handles: `Copy` names for the objects of a backend.
//!
//! A handle is an index and a generation, and carries the context it belongs to. It owns nothing:
//! using one after its object was destroyed, or on another backend, is an error and never reaches
//! another object. Generation 0 is never given out, so the default value is the zero handle.

use core::cmp::Ordering;
use core::fmt;

use crate::shown::debug_is_display;

/// The kind of object that a handle names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Object {
    /// A context: an open device.
    Context,
    /// A protection domain, or a parent domain.
    Pd,
    /// A thread domain.
    Td,
    /// A memory region.
    Mr,
    /// A memory window.
    Mw,
    /// A device memory.
    Dm,
    /// A completion channel.
    CompChannel,
    /// A completion queue.
    Cq,
    /// A queue pair.
    Qp,
    /// An address handle.
    Ah,
    /// A shared receive queue.
    Srq,
    /// An XRC domain.
    Xrcd,
    /// An event channel of rdma_cm.
    CmChannel,
    /// An id of rdma_cm.
    CmId,
}

impl Object {
    /// Short name in handles and messages, such as `cq`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Context => "ctx",
            Self::Pd => "pd",
            Self::Td => "td",
            Self::Mr => "mr",
            Self::Mw => "mw",
            Self::Dm => "dm",
            Self::CompChannel => "channel",
            Self::Cq => "cq",
            Self::Qp => "qp",
            Self::Ah => "ah",
            Self::Srq => "srq",
            Self::Xrcd => "xrcd",
            Self::CmChannel => "cm channel",
            Self::CmId => "cm id",
        }
    }
}

impl fmt::Display for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

fn show(f: &mut fmt::Formatter<'_>, object: Object, index: u32, generation: u32) -> fmt::Result {
    match generation {
        0 => write!(f, "{object}#null"),
        1 => write!(f, "{object}#{index}"),
        _ => write!(f, "{object}#{index}.{generation}"),
    }
}

/// The interface of all handles.
pub trait Handle: Copy + fmt::Display {
    /// What the handle names.
    const OBJECT: Object;

    /// The context in which the object was created; a context names itself. Objects of rdma_cm are
    /// of none: the zero handle.
    fn context(self) -> Context;

    /// The backend's index of the object. Its meaning is the backend's own.
    fn index(self) -> u32;

    /// The number of objects that have had this index, including this one; 0 for the zero handle.
    fn generation(self) -> u32;
}

/// An open device (`struct ibv_context`).
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Context {
    generation: u32,
    index: u32,
}

impl Context {
    /// Creates a handle; for backends. Generation 0 makes a handle that no backend accepts.
    pub const fn from_parts(index: u32, generation: u32) -> Self {
        Self { index, generation }
    }
}

macro_rules! handle {
    ($name:ident, $handle:ident => $context:expr) => {
        impl Handle for $name {
            const OBJECT: Object = Object::$name;

            fn context($handle) -> Context {
                $context
            }

            fn index(self) -> u32 {
                self.index
            }

            fn generation(self) -> u32 {
                self.generation
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                show(f, Object::$name, self.index, self.generation)
            }
        }

        debug_is_display!($name);

        impl Ord for $name {
            #[inline]
            fn cmp(&self, other: &Self) -> Ordering {
                order(*self).cmp(&order(*other))
            }
        }

        impl PartialOrd for $name {
            #[inline]
            fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
                Some(self.cmp(other))
            }
        }
    };
}

/// The context, the index, the generation, as one number: maps of handles compare all the time. The
/// fields stand in memory as in the number, so that on most machines nothing has to be computed.
fn order(handle: impl Handle) -> u128 {
    let order = |index: u32, generation: u32| u64::from(index) << 32 | u64::from(generation);
    let context = handle.context();
    let context = order(context.index, context.generation);
    u128::from(context) << 64 | u128::from(order(handle.index(), handle.generation()))
}

handle!(Context, self => self);

macro_rules! handles {
    ($( $(#[$meta:meta])* $name:ident; )*) => { $(
        $(#[$meta])*
        #[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
        pub struct $name {
            generation: u32,
            index: u32,
            context: Context,
        }

        impl $name {
            /// Creates a handle; for backends. Generation 0 makes a handle that no backend accepts.
            pub const fn from_parts(context: Context, index: u32, generation: u32) -> Self {
                Self { context, index, generation }
            }
        }

        handle!($name, self => self.context);
    )* };
}

handles! {
    /// A protection domain, or a parent domain (`struct ibv_pd`).
    Pd;
    /// A thread domain (`struct ibv_td`).
    Td;
    /// A memory region (`struct ibv_mr`).
    Mr;
    /// A memory window (`struct ibv_mw`).
    Mw;
    /// A device memory (`struct ibv_dm`).
    Dm;
    /// A completion channel (`struct ibv_comp_channel`).
    CompChannel;
    /// A completion queue (`struct ibv_cq`).
    Cq;
    /// A queue pair (`struct ibv_qp`).
    Qp;
    /// An address handle (`struct ibv_ah`).
    Ah;
    /// A shared receive queue (`struct ibv_srq`).
    Srq;
    /// An XRC domain (`struct ibv_xrcd`).
    Xrcd;
}

macro_rules! without_context {
    ($( $(#[$meta:meta])* $name:ident; )*) => { $(
        $(#[$meta])*
        #[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
        pub struct $name {
            generation: u32,
            index: u32,
        }

        impl $name {
            /// Creates a handle; for backends. Generation 0 makes a handle that no backend accepts.
            pub const fn from_parts(index: u32, generation: u32) -> Self {
                Self { index, generation }
            }
        }

        handle!($name, self => Context::default());
    )* };
}

without_context! {
    /// An event channel of rdma_cm (`struct rdma_event_channel`).
    CmChannel;
    /// An id of rdma_cm (`struct rdma_cm_id`).
    CmId;
}

/// An object that the driver knows by a number of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DriverObject {
    /// A protection domain.
    Pd(Pd),
    /// A memory region.
    Mr(Mr),
    /// A memory window.
    Mw(Mw),
    /// A completion queue.
    Cq(Cq),
    /// A queue pair.
    Qp(Qp),
    /// An address handle.
    Ah(Ah),
    /// A shared receive queue.
    Srq(Srq),
}

impl DriverObject {
    /// The kind of object.
    pub fn kind(self) -> Object {
        match self {
            Self::Pd(_) => Object::Pd,
            Self::Mr(_) => Object::Mr,
            Self::Mw(_) => Object::Mw,
            Self::Cq(_) => Object::Cq,
            Self::Qp(_) => Object::Qp,
            Self::Ah(_) => Object::Ah,
            Self::Srq(_) => Object::Srq,
        }
    }

    /// The context in which it was created.
    pub fn context(self) -> Context {
        match self {
            Self::Pd(pd) => pd.context(),
            Self::Mr(mr) => mr.context(),
            Self::Mw(mw) => mw.context(),
            Self::Cq(cq) => cq.context(),
            Self::Qp(qp) => qp.context(),
            Self::Ah(ah) => ah.context(),
            Self::Srq(srq) => srq.context(),
        }
    }
}
