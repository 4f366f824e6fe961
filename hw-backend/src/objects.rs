//! The objects of handles. Each holds its parents in fields after its C object. Fields are dropped
//! in order, so an object is destroyed before its parents.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ffi::c_int;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};

use parking_lot::{Mutex, RwLock};
use verbs_abi as c;
use verbs_api::{
    Access, Context, MwType, QpInit, QpType, Result, SrqInit, Transport, Verb, WcFields,
};

use crate::cm::objects::{Connection, Id};
use crate::errno::invalid;
use crate::owner::Owned;
use crate::reactor::Source;
use crate::wait::duplicate;

/// An open device.
#[derive(Debug)]
pub(crate) struct Device {
    pub(crate) raw: Owned<c::ibv_context>,
    pub(crate) name: String,
    pub(crate) driver: String,
    /// The device is simulated.
    pub(crate) simulated: bool,
    pub(crate) transport: Transport,
    pub(crate) num_comp_vectors: u32,
    /// Its asynchronous events.
    pub(crate) events: Source,
}

impl Device {
    /// A duplicate of the descriptor of its asynchronous events.
    pub(crate) fn fd(&self, verb: Verb) -> Result<OwnedFd> {
        // SAFETY: the context is live.
        let fd = |context: *mut c::ibv_context| duplicate(verb, unsafe { (*context).async_fd });
        self.raw.with(verb, fd)?
    }
}

#[derive(Debug)]
pub(crate) struct Pd {
    pub(crate) raw: Owned<c::ibv_pd>,
    pub(crate) context: Context,
    pub(crate) device: Arc<Device>,
    /// The domains of a parent domain.
    pub(crate) _of: Option<(Arc<Pd>, Option<Arc<Td>>)>,
}

#[derive(Debug)]
pub(crate) struct Td {
    pub(crate) raw: Owned<c::ibv_td>,
    pub(crate) context: Context,
    pub(crate) _device: Arc<Device>,
}

#[derive(Debug)]
pub(crate) struct Mr {
    pub(crate) raw: Owned<c::ibv_mr>,
    pub(crate) memory: RwLock<Memory>,
    /// The address by which work requests name its first byte, if it differs from that of the
    /// memory.
    pub(crate) iova: Mutex<Option<u64>>,
    /// Memory that the region had before. It is kept as long as the region: a post may be copying
    /// from it, and the device may still use it.
    pub(crate) before: Mutex<Vec<Memory>>,
    /// The domains that the region is or was in.
    pub(crate) pds: Mutex<Vec<Arc<Pd>>>,
    pub(crate) context: Context,
}

impl Drop for Mr {
    /// If the driver does not deregister the region, its memory is never freed: the device may
    /// still write it.
    fn drop(&mut self) {
        if self.raw.address() != 0 && self.raw.destroy(Verb::DeregMr, || Ok(())).is_err() {
            std::mem::forget(std::mem::replace(self.memory.get_mut(), Memory::None));
            std::mem::forget(std::mem::take(self.before.get_mut()));
        }
    }
}

#[derive(Debug)]
pub(crate) struct Mw {
    pub(crate) raw: Owned<c::ibv_mw>,
    pub(crate) mw_type: MwType,
    pub(crate) context: Context,
    pub(crate) pd: Arc<Pd>,
}

#[derive(Debug)]
pub(crate) struct Dm {
    pub(crate) raw: Owned<c::ibv_dm>,
    pub(crate) context: Context,
    pub(crate) _device: Arc<Device>,
}

#[derive(Debug)]
pub(crate) struct Channel {
    pub(crate) raw: Owned<c::ibv_comp_channel>,
    pub(crate) waiters: AtomicU32,
    pub(crate) events: Source,
    pub(crate) context: Context,
    pub(crate) _device: Arc<Device>,
}

impl Channel {
    /// A duplicate of its descriptor.
    pub(crate) fn fd(&self, verb: Verb) -> Result<OwnedFd> {
        // SAFETY: the channel is live.
        let fd = |channel: *mut c::ibv_comp_channel| duplicate(verb, unsafe { (*channel).fd });
        self.raw.with(verb, fd)?
    }
}

#[derive(Debug)]
pub(crate) struct Cq {
    pub(crate) raw: Owned<c::ibv_cq>,
    pub(crate) context: Context,
    pub(crate) cq_context: u64,
    pub(crate) comp_vector: u32,
    pub(crate) channel: Option<(verbs_api::CompChannel, Arc<Channel>)>,
    /// The fields of its completions, if it is an extended one.
    pub(crate) extended: Option<WcFields>,
    /// Locked while it is polled.
    pub(crate) iteration: Mutex<Iteration>,
    /// Events read and not acknowledged.
    pub(crate) unacked: AtomicU32,
    pub(crate) async_unacked: AtomicU32,
    pub(crate) _parent: Option<Arc<Pd>>,
    pub(crate) device: Arc<Device>,
}

/// The state of an iteration over a CQ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Iteration {
    /// No iteration is open.
    #[default]
    None,
    /// It has reached a completion.
    AtCompletion,
    /// There was no further completion.
    AtEnd,
}

#[derive(Debug)]
pub(crate) struct Qp {
    pub(crate) raw: Owned<c::ibv_qp>,
    pub(crate) context: Context,
    pub(crate) init: QpInit,
    pub(crate) qp_num: u32,
    pub(crate) async_unacked: AtomicU32,
    /// The connection that rdma_cm made. It ends after the QP.
    pub(crate) connection: Mutex<Option<Arc<Connection>>>,
    /// The id that it was made for, and is destroyed through.
    pub(crate) id: Option<Arc<Id>>,
    pub(crate) cqs: Vec<Arc<Cq>>,
    pub(crate) srq: Option<Arc<Srq>>,
    pub(crate) pd: Option<Arc<Pd>>,
    pub(crate) _xrcd: Option<Arc<Xrcd>>,
    pub(crate) device: Arc<Device>,
}

impl Qp {
    /// Refuses work on a queue pair without queues: libraries do not check that.
    pub(crate) fn check_has_queues(&self, verb: Verb) -> Result<()> {
        match self.init.qp_type {
            QpType::XrcRecv => Err(invalid(verb, "qp", "is of XRC_RECV, and has no queues")),
            _ => Ok(()),
        }
    }
}

#[derive(Debug)]
pub(crate) struct Srq {
    pub(crate) raw: Owned<c::ibv_srq>,
    pub(crate) init: SrqInit,
    pub(crate) async_unacked: AtomicU32,
    pub(crate) _xrc: Option<(Arc<Xrcd>, Arc<Cq>)>,
    pub(crate) pd: Arc<Pd>,
}

#[derive(Debug)]
pub(crate) struct Xrcd {
    pub(crate) raw: Owned<c::ibv_xrcd>,
    pub(crate) context: Context,
    pub(crate) device: Arc<Device>,
}

#[derive(Debug)]
pub(crate) struct Ah {
    pub(crate) raw: Owned<c::ibv_ah>,
    pub(crate) pd: Arc<Pd>,
}

/// An object of a context, which its handle must name.
pub(crate) trait InContext {
    fn context(&self) -> Context;
}

macro_rules! in_context {
    ($($name:ident: $($path:ident).+;)*) => { $(
        impl InContext for $name {
            fn context(&self) -> Context {
                self.$($path).+
            }
        }
    )* };
}

in_context! {
    Pd: context;
    Td: context;
    Mr: context;
    Mw: context;
    Dm: context;
    Channel: context;
    Cq: context;
    Qp: context;
    Ah: pd.context;
    Srq: pd.context;
    Xrcd: context;
}

/// The bytes of a region.
#[derive(Debug)]
pub(crate) enum Memory {
    /// Allocated here, page-aligned, and freed with the region.
    Owned { start: *mut u8, layout: Layout },
    /// Mapped here, and unmapped with the region: zero bytes that cannot be written.
    ReadOnly { start: *mut u8, length: usize },
    /// Mapped here, or only its addresses are kept, without `mapped`. Unmapped with the region.
    OnDemand {
        start: *mut u8,
        length: usize,
        mapped: bool,
    },
    /// Memory of another region, which is held.
    Part {
        start: *mut u8,
        length: usize,
        _of: Arc<Mr>,
    },
    /// Memory of the device, which is held.
    Device { _of: Arc<Dm> },
    /// Memory of the caller, who has promised that it can be written if `writable` is set.
    Caller {
        start: *mut u8,
        length: usize,
        writable: bool,
    },
    /// Memory of a file, mapped here from `first` on, and unmapped with the region, which starts
    /// `before` bytes later.
    Mapped {
        first: *mut u8,
        before: usize,
        length: usize,
    },
    /// None: the addresses from 0 on, a null region, or memory that this process cannot reach.
    None,
}

// SAFETY: the bytes are accessed only by atomic copies, so threads may read and write them at the
// same time. No function returns references to them.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

/// Regions start on a page.
const PAGE: usize = 4096;
/// Zero bytes of the process alone.
const PRIVATE: c_int = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;

/// Maps zero bytes with these rights. `None` without memory for them.
fn mapping(length: usize, rights: c_int) -> Option<*mut u8> {
    let anywhere = std::ptr::null_mut();
    // SAFETY: a new mapping at an address that the kernel chooses changes no other memory.
    let start = unsafe { libc::mmap(anywhere, length, rights, PRIVATE, -1, 0) };
    (start != libc::MAP_FAILED).then_some(start.cast())
}

impl Memory {
    /// Zero bytes for a region with these rights. `None` without memory for them.
    pub(crate) fn owned(length: usize, access: Access) -> Option<Self> {
        if access.contains(Access::ON_DEMAND) {
            let length = length.max(1);
            let start = mapping(length, libc::PROT_READ | libc::PROT_WRITE)?;
            let mapped = true;
            return Some(Self::OnDemand {
                start,
                length,
                mapped,
            });
        }
        let layout = Layout::from_size_align(length.max(1), PAGE).ok()?;
        // SAFETY: the layout has a size above zero.
        let start = unsafe { alloc_zeroed(layout) };
        (!start.is_null()).then_some(Self::Owned { start, layout })
    }

    /// Zero bytes that cannot be written. `None` without memory for them.
    pub(crate) fn read_only(length: usize) -> Option<Self> {
        let length = length.max(1);
        let start = mapping(length, libc::PROT_READ)?;
        Some(Self::ReadOnly { start, length })
    }

    /// Unmaps on-demand memory, or maps new zeros there. `None` without memory for them.
    pub(crate) fn map(&mut self, map: bool) -> Option<()> {
        let Self::OnDemand {
            start,
            length,
            mapped,
        } = self
        else {
            return None;
        };
        let rights = if map {
            libc::PROT_READ | libc::PROT_WRITE
        } else {
            libc::PROT_NONE
        };
        let flags = PRIVATE | libc::MAP_FIXED;
        // SAFETY: it replaces the mapping that was made for this region alone.
        let start = unsafe { libc::mmap(start.cast(), *length, rights, flags, -1, 0) };
        if start == libc::MAP_FAILED {
            return None;
        }
        *mapped = map;
        Some(())
    }

    /// Bytes of a file. `None` if it cannot be mapped, or does not have them.
    pub(crate) fn mapped(fd: BorrowedFd<'_>, offset: u64, length: usize) -> Option<Self> {
        let size = rustix::fs::fstat(fd).ok()?.st_size;
        let end = i64::try_from(offset.checked_add(length as u64)?).ok()?;
        // A mapping starts on a page of any size.
        let before = (offset % (64 << 10)) as usize;
        let start = (offset - before as u64) as libc::off_t;
        let (rights, anywhere) = (libc::PROT_READ | libc::PROT_WRITE, std::ptr::null_mut());
        let (all, fd) = ((before + length).max(1), fd.as_raw_fd());
        if end > size {
            return None;
        }
        // SAFETY: a new mapping at an address that the kernel chooses changes no other memory.
        let first = unsafe { libc::mmap(anywhere, all, rights, libc::MAP_SHARED, fd, start) };
        (first != libc::MAP_FAILED).then_some(Self::Mapped {
            first: first.cast(),
            before,
            length,
        })
    }

    /// A part of the memory of another region, which has these bytes.
    pub(crate) fn part(of: &Arc<Mr>, offset: usize, length: usize) -> Option<Self> {
        let memory = of.memory.read();
        let end = offset.checked_add(length)?;
        match &*memory {
            Self::Owned { start, layout } if end <= layout.size() => Some(Self::Part {
                // The part is within the memory.
                start: start.wrapping_add(offset),
                length,
                _of: of.clone(),
            }),
            Self::Part {
                start,
                length: size,
                _of,
            } if end <= *size => Some(Self::Part {
                start: start.wrapping_add(offset),
                length,
                _of: _of.clone(),
            }),
            _ => None,
        }
    }

    pub(crate) fn start(&self) -> *mut u8 {
        match self {
            Self::Owned { start, .. }
            | Self::ReadOnly { start, .. }
            | Self::OnDemand { start, .. }
            | Self::Part { start, .. }
            | Self::Caller { start, .. } => *start,
            // It is within the mapping.
            Self::Mapped { first, before, .. } => first.wrapping_add(*before),
            Self::Device { .. } | Self::None => std::ptr::null_mut(),
        }
    }

    /// Whether the program may read or write it through the backend.
    pub(crate) fn is_ours(&self, for_write: bool) -> bool {
        match self {
            Self::Owned { .. }
            | Self::OnDemand { .. }
            | Self::Part { .. }
            | Self::Mapped { .. } => true,
            Self::ReadOnly { .. } => !for_write,
            Self::Caller { .. } | Self::Device { .. } | Self::None => false,
        }
    }

    /// Whether it may be unmapped, so that a copy would end the process.
    pub(crate) fn is_on_demand(&self) -> bool {
        matches!(self, Self::OnDemand { .. })
    }

    pub(crate) fn is_unmapped(&self) -> bool {
        matches!(self, Self::OnDemand { mapped: false, .. })
    }

    /// Whether the device may write it. Memory of the caller only if that is promised.
    pub(crate) fn may_be_written(&self) -> bool {
        !matches!(
            self,
            Self::Caller {
                writable: false,
                ..
            }
        )
    }

    /// Whether a range of addresses is within the memory, which can be read.
    pub(crate) fn holds(&self, addr: u64, length: u64) -> bool {
        let size = match self {
            Self::Owned { layout, .. } => layout.size(),
            _ if self.is_unmapped() => return false,
            Self::ReadOnly { length, .. }
            | Self::OnDemand { length, .. }
            | Self::Part { length, .. }
            | Self::Mapped { length, .. }
            | Self::Caller { length, .. } => *length,
            Self::Device { .. } | Self::None => return false,
        };
        let start = self.start() as u64;
        addr >= start && addr - start <= size as u64 && length <= size as u64 - (addr - start)
    }

    /// Copies bytes out. The device or another thread may write them at the same time.
    ///
    /// # Safety
    /// The range lies within the memory.
    pub(crate) unsafe fn read(&self, offset: usize, into: &mut [u8]) {
        for (i, byte) in into.iter_mut().enumerate() {
            // SAFETY: the range lies within the memory, which lives as long as `self`.
            *byte = unsafe { self.byte(offset + i) }.load(Ordering::Relaxed);
        }
    }

    /// Copies bytes in.
    ///
    /// # Safety
    /// The range lies within the memory.
    pub(crate) unsafe fn write(&self, offset: usize, from: &[u8]) {
        for (i, byte) in from.iter().enumerate() {
            // SAFETY: as in `read`.
            unsafe { self.byte(offset + i) }.store(*byte, Ordering::Relaxed);
        }
    }

    /// One byte, for atomic access only.
    ///
    /// # Safety
    /// The offset lies within the memory.
    unsafe fn byte(&self, offset: usize) -> &AtomicU8 {
        // SAFETY: the byte lies within the memory, which lives as long as `self`; the copies of
        // this type are all atomic.
        unsafe { AtomicU8::from_ptr(self.start().add(offset)) }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        if let Self::Owned { start, layout } = *self {
            // SAFETY: allocated in `owned` with this layout. The region that used it was dropped
            // first, by the order of fields.
            unsafe { dealloc(start, layout) };
        }
        if let Self::ReadOnly { start, length } | Self::OnDemand { start, length, .. } = *self {
            // SAFETY: mapped by `mapping` with this length; as above.
            unsafe { libc::munmap(start.cast(), length) };
        }
        if let Self::Mapped {
            first,
            before,
            length,
        } = *self
        {
            // SAFETY: mapped in `mapped` with this length; as above.
            unsafe { libc::munmap(first.cast(), (before + length).max(1)) };
        }
    }
}
