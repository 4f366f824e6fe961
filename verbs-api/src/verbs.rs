//! The trait.

use core::task::Waker;
use core::time::Duration;
#[cfg(unix)]
use std::os::fd::{BorrowedFd, OwnedFd};

use crate::ah::AhAttr;
use crate::batch::BatchEnd;
use crate::behavior::Declared;
use crate::capability::Capabilities;
use crate::cm::Cm;
use crate::cq::{Arm, CqAttr, CqEvent, CqInit, Wc};
use crate::cq_ex::{CqInitEx, CqModeration, WcEx};
use crate::device::{DeviceAttr, DeviceAttrEx, DeviceInfo, Gid, GidEntry, PortAttr, RtValues};
use crate::dm::DmInit;
use crate::ece::Ece;
use crate::error::{Cause, Error, ErrorKind, PostError, Result, Verb};
use crate::event::{AsyncEvent, EventSource};
use crate::handle::{
    Ah, CompChannel, Context, Cq, Dm, DriverObject, Mr, Mw, Pd, Qp, Srq, Td, Xrcd,
};
use crate::in_order::{InOrder, InOrderQuery, WrOpcode};
use crate::lab::Lab;
use crate::mr::{Access, MrAttr, MrChange, MrInit, ReregError, Sge};
use crate::mw::{MwAttr, MwBind, MwType};
use crate::odp::{Advice, AdviseFlags};
use crate::qp::{QpAttr, QpAttrMask, QpInit, QpQuery};
use crate::rc::RcParams;
use crate::srq::{SrqAttr, SrqAttrMask, SrqInit};
use crate::xrc::XrcdInit;
use crate::{RecvWr, SendWr};

/// The time that a verb may wait.
///
/// The machine's clock measures a time, as on hardware, and so it does for a simulator with
/// threads. A simulator whose waits move its own clock uses that clock. Under a model checker,
/// where time does not pass, only [`Lab::advance`] adds to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Without a limit.
    Forever,
    /// Do not wait: [`ErrorKind::WouldBlock`](crate::ErrorKind::WouldBlock), and nothing changed.
    Poll,
    /// Wait at most this long: then [`ErrorKind::TimedOut`](crate::ErrorKind::TimedOut), and
    /// nothing changed.
    For(Duration),
}

/// The libibverbs of a process: the device list, and every verb on handles.
///
/// It is object-safe, so one suite judges any backend. Handles are `Copy`, so a program can also
/// try what it must not do (use after destroy, destroy while in use), and get an error for it.
/// Errors name the verb and the facts; each method lists the kinds a caller should expect.
///
/// Any verb gives [`ErrorKind::Invalid`](crate::ErrorKind::Invalid) for a handle that is zero,
/// stale, or of another context or backend. That is not repeated below.
pub trait Verbs: Send + Sync {
    // Devices

    /// Lists the devices (`ibv_get_device_list`, DEV-01).
    fn devices(&self) -> Result<Vec<DeviceInfo>>;

    /// Opens the device called `name` (`ibv_open_device`). Contexts of one device are independent
    /// (DEV-02).
    ///
    /// # Errors
    /// `NoDevice` if there is none of that name; `TooManyFiles`.
    fn open_device(&self, name: &str) -> Result<Context>;

    /// Closes a context (`ibv_close_device`). Its objects go with it, as when the kernel cleans up
    /// after a process: their handles are stale, and peers get no answer (LIFE-07). Programs should
    /// destroy their objects first (DEV-03).
    fn close_device(&self, context: Context) -> Result<()>;

    /// The capabilities of the device. This is not a verb: no fault rule fires on it, and it works
    /// on a dead device.
    fn capabilities(&self, context: Context) -> Result<Capabilities>;

    /// The device's choices where the rules leave one, as far as known. This is not a verb either.
    fn behavior(&self, context: Context) -> Result<Declared>;

    /// Limits of the device (`ibv_query_device`).
    fn query_device(&self, context: Context) -> Result<DeviceAttr>;

    /// Like [`query_device`](Self::query_device), with the attributes of newer devices
    /// (`ibv_query_device_ex`, DEV-11).
    fn query_device_ex(&self, context: Context) -> Result<DeviceAttrEx>;

    /// State of a port, from 1 (`ibv_query_port`, DEV-05).
    fn query_port(&self, context: Context, port: u8) -> Result<PortAttr>;

    /// An entry of a port's GID table (`ibv_query_gid`, DEV-06).
    fn query_gid(&self, context: Context, port: u8, index: u32) -> Result<Gid>;

    /// An entry of a port's GID table, with its type and interface (`ibv_query_gid_ex`, DEV-11).
    ///
    /// # Errors
    /// `NoData` for an empty entry; `Invalid` outside the table.
    fn query_gid_ex(&self, context: Context, port: u8, index: u32) -> Result<GidEntry>;

    /// Writes the entries of all ports' GID tables that are not empty to the start of `entries`,
    /// and returns how many (`ibv_query_gid_table`, DEV-11).
    ///
    /// # Errors
    /// `Invalid` if `entries` is too short.
    fn query_gid_table(&self, context: Context, entries: &mut [GidEntry]) -> Result<usize>;

    /// An entry of a port's P_Key table (`ibv_query_pkey`), in the machine's order.
    fn query_pkey(&self, context: Context, port: u8, index: u16) -> Result<u16>;

    /// The device's clock (`ibv_query_rt_values_ex`, DEV-19).
    ///
    /// # Errors
    /// `NotSupported` without [`Capabilities::RT_VALUES`].
    fn query_rt_values(&self, context: Context) -> Result<RtValues>;

    // Protection domains and memory

    /// Creates a protection domain (`ibv_alloc_pd`).
    fn alloc_pd(&self, context: Context) -> Result<Pd>;

    /// Removes a protection domain (`ibv_dealloc_pd`).
    ///
    /// # Errors
    /// `Busy` while a QP, MR, memory window, AH or SRQ of it lives (PD-01), for a parent domain
    /// also a CQ; while a parent domain of it lives (PD-06).
    fn dealloc_pd(&self, pd: Pd) -> Result<()>;

    /// Creates a thread domain (`ibv_alloc_td`): a promise that one thread at a time uses what is
    /// made in a parent domain with it. The backends do not rely on the promise.
    ///
    /// # Errors
    /// `NotSupported` without [`Capabilities::PARENT_DOMAIN`]; `NoMemory`.
    fn alloc_td(&self, context: Context) -> Result<Td>;

    /// Removes a thread domain (`ibv_dealloc_td`).
    ///
    /// # Errors
    /// `Busy` while a parent domain with it lives (PD-06).
    fn dealloc_td(&self, td: Td) -> Result<()>;

    /// Creates a parent domain of a domain, with a thread domain or without
    /// (`ibv_alloc_parent_domain`). It takes the place of the domain in every verb: objects made in
    /// either work together (PD-05). [`dealloc_pd`](Self::dealloc_pd) removes it.
    ///
    /// # Errors
    /// `Invalid` for a thread domain of another context (PD-07); `NotSupported` without
    /// [`Capabilities::PARENT_DOMAIN`]; `NoMemory`.
    fn alloc_parent_domain(&self, pd: Pd, td: Option<Td>) -> Result<Pd>;

    /// Creates a region of `length` zero bytes that the backend owns. Its bytes are reached with
    /// [`read_mr`](Self::read_mr) and [`write_mr`](Self::write_mr).
    ///
    /// # Errors
    /// `Invalid` for access bits that do not go together (MR-01) or are unknown (MR-04), or a
    /// length above `max_mr_size`; `NoMemory`.
    fn alloc_mr(&self, pd: Pd, length: usize, access: Access) -> Result<Mr>;

    /// Creates a region as [`alloc_mr`](Self::alloc_mr) does, but of other memory or with other
    /// addresses (`ibv_reg_mr_iova` of memory that the backend owns).
    ///
    /// # Errors
    /// As for `alloc_mr`. `Invalid` also for an `iova` that does not fit the memory's place in its
    /// page, for a part outside the other region, or if that is the caller's own memory; `Fault`
    /// for memory that is not mapped (MR-11), or that is not writable and has to be (MR-12).
    fn alloc_mr_as(&self, pd: Pd, init: &MrInit) -> Result<Mr>;

    /// Creates a null region (`ibv_alloc_null_mr`, MR-18): all addresses lie in it, reads give
    /// zeros and writes are discarded. It has an lkey only.
    ///
    /// # Errors
    /// `NotSupported` without [`Capabilities::NULL_MR`]; `NoMemory`.
    fn alloc_null_mr(&self, pd: Pd) -> Result<Mr>;

    /// Registers the caller's memory (`ibv_reg_mr`). With [`Access::ON_DEMAND`], `addr` 0 and
    /// `length` `usize::MAX`, that is all memory of the process (ODP-06).
    ///
    /// # Errors
    /// As for [`alloc_mr`](Self::alloc_mr). `NotSupported` (simulator) for an on-demand region
    /// where the system does not say which memory is mapped.
    ///
    /// # Safety
    /// From this call until [`dereg_mr`](Self::dereg_mr) or [`close_device`](Self::close_device)
    /// returned, `addr..addr + length` must be valid memory; with `LOCAL_WRITE` it must be
    /// writable. The device reads it (and with `LOCAL_WRITE` writes it) at any time in between, so
    /// no reference to a part may live while work that touches that part can be executed. The
    /// device never writes memory that is registered without `LOCAL_WRITE` (MR-24).
    ///
    /// Memory of an on-demand region may be unmapped and mapped again. What is mapped there while
    /// work that touches it can be executed must be as above.
    #[allow(unsafe_code, reason = "the one promise the caller makes")]
    unsafe fn reg_mr(&self, pd: Pd, addr: *mut u8, length: usize, access: Access) -> Result<Mr>;

    /// Registers `length` bytes of a dma-buf, from `offset` on (`ibv_reg_dmabuf_mr`, DMABUF-01):
    /// memory of another device, such as a GPU, of which a program has a descriptor. Work requests
    /// name its first byte by `iova`. The program may close the descriptor after the call: the
    /// region keeps the memory (DMABUF-06). [`read_mr`](Self::read_mr) and
    /// [`write_mr`](Self::write_mr) reach its bytes. Inline data lies at an address of the process,
    /// so on a device it is not that of a dma-buf.
    ///
    /// In the simulator a dma-buf is any file that can be mapped shared, such as a `memfd`.
    ///
    /// # Errors
    /// `Invalid` for an `iova` that lies elsewhere in its page than `offset` (DMABUF-02), access
    /// bits that such a region cannot have (DMABUF-03) or that do not go together (MR-01), bytes
    /// behind the end (DMABUF-04), and a descriptor of something else (DMABUF-05); `BadFile` for
    /// one that is closed; `Access` (simulator) for `LOCAL_WRITE` to a file that is open to read
    /// only; `NotSupported` without [`Capabilities::DMABUF`]; `NoMemory`.
    #[cfg(unix)]
    fn reg_dmabuf_mr(
        &self,
        pd: Pd,
        offset: u64,
        length: usize,
        iova: u64,
        fd: BorrowedFd<'_>,
        access: Access,
    ) -> Result<Mr>;

    /// Changes the parts of a region that `change` names (`ibv_rereg_mr`, MR-08). It may have other
    /// keys afterwards ([`query_mr`](Self::query_mr)).
    ///
    /// # Errors
    /// `Invalid` for an empty change, a PD of another context, or access bits as for
    /// [`alloc_mr`](Self::alloc_mr), and for a region of a dma-buf (DMABUF-07); `Access` for write
    /// access to memory that was registered
    /// without `LOCAL_WRITE` and is kept (MR-24); `Busy` (simulator) while posted work owns bytes
    /// of memory that would be replaced; `NoMemory`; `NotSupported` without
    /// [`Capabilities::REREG_MR`]. The error says what is left of the region (MR-09).
    fn rereg_mr(&self, mr: Mr, change: &MrChange) -> Result<(), ReregError>;

    /// Removes a region (`ibv_dereg_mr`, MR-05).
    ///
    /// # Errors
    /// `Busy` while a memory window is bound to it (MR-07).
    fn dereg_mr(&self, mr: Mr) -> Result<()>;

    /// Advises the device about parts of on-demand regions of a PD (`ibv_advise_mr`, ODP-07). Work
    /// may use them without advice, too.
    ///
    /// # Errors
    /// `NotSupported` without [`Capabilities::ODP`], or for an unknown advice; `Invalid` for
    /// unknown flags or an empty list; `NotFound` for an lkey that no on-demand region has;
    /// `Permission` for a region of another PD, or without `LOCAL_WRITE` for
    /// [`Advice::PrefetchWrite`]. With [`AdviseFlags::FLUSH`] `Fault` for bytes outside the region
    /// or, except for [`Advice::PrefetchNoFault`], not mapped.
    fn advise_mr(&self, pd: Pd, advice: Advice, flags: AdviseFlags, list: &[Sge]) -> Result<()>;

    /// Creates an unbound memory window (`ibv_alloc_mw`, MW-01).
    ///
    /// # Errors
    /// `Invalid` or `NotSupported` for a type the device does not have (MW-26); `NoMemory`.
    fn alloc_mw(&self, pd: Pd, mw_type: MwType) -> Result<Mw>;

    /// Removes a window, bound or not, and its key (`ibv_dealloc_mw`, MW-19).
    fn dealloc_mw(&self, mw: Mw) -> Result<()>;

    /// Type and key of a window (the fields of `struct ibv_mw`).
    fn query_mw(&self, mw: Mw) -> Result<MwAttr>;

    /// Posts a bind of a window of type 1 on a QP (`ibv_bind_mw`), which completes as a send does.
    /// [`query_mw`](Self::query_mw) has the new key at once; peers can use it when the bind is done
    /// (MW-02). A bind that fails when it is executed completes with `MW_BIND_ERR`, and leaves the
    /// window as it was (MW-23). Windows of type 2 are bound by
    /// [`SendOp::BindMw`](crate::SendOp::BindMw).
    ///
    /// # Errors
    /// `Invalid` for a window of type 2 (MW-05), a zero-based one, a QP of a transport without
    /// binds, or in a state that does not allow posting; `Permission` if window and region are of
    /// different PDs (MW-09); `NoMemory` when the queue is full.
    fn bind_mw(&self, qp: Qp, mw: Mw, bind: &MwBind) -> Result<()>;

    /// Address, length and keys of a region (the fields of `struct ibv_mr`, MR-16).
    fn query_mr(&self, mr: Mr) -> Result<MrAttr>;

    /// Copies bytes out of a region of a dma-buf, or of one that the backend owns.
    ///
    /// # Errors
    /// `Invalid` outside the region, or for the caller's own memory; `Fault` if it is not mapped
    /// ([`map_mr`](Self::map_mr)) or (simulator) if the exporter of its dma-buf has withdrawn it
    /// (DMABUF-08); `Usage` (simulator) if posted work may still write these bytes: its completion
    /// has not been polled.
    fn read_mr(&self, mr: Mr, offset: usize, bytes: &mut [u8]) -> Result<()>;

    /// Copies bytes into such a region. Errors as for [`read_mr`](Self::read_mr);
    /// `Usage` also if posted work may still read these bytes (SQ-17).
    fn write_mr(&self, mr: Mr, offset: usize, bytes: &[u8]) -> Result<()>;

    /// Unmaps the memory of an on-demand region, or maps new zero bytes there, as a program does
    /// with its own memory (`munmap`, `mmap`). Unmapped memory cannot be read and written.
    ///
    /// # Errors
    /// `Invalid` for other regions than those of [`MrMemory::New`](crate::MrMemory::New) with
    /// [`Access::ON_DEMAND`]; `NoMemory`.
    fn map_mr(&self, mr: Mr, mapped: bool) -> Result<()>;
    // Device memory

    /// Allocates memory of the device itself (`ibv_alloc_dm`, DM-01). What its bytes are at first
    /// is undefined; the simulator has zeros.
    ///
    /// # Errors
    /// `Invalid` for a length of 0 or above `max_dm_size` (DM-02), or an alignment that the device
    /// does not have (DM-03); `NoMemory` if less is free (DM-02); `NotSupported` without
    /// [`Capabilities::DEVICE_MEMORY`].
    fn alloc_dm(&self, context: Context, init: &DmInit) -> Result<Dm>;

    /// Frees a device memory (`ibv_free_dm`).
    ///
    /// # Errors
    /// `Busy` while a region of it lives (DM-10).
    fn free_dm(&self, dm: Dm) -> Result<()>;

    /// Registers `length` bytes of a device memory from `offset` on (`ibv_reg_dm_mr`). Addresses in
    /// the region are offsets from its first byte (DM-07). Its bytes are reached by the copies of
    /// the device memory, not by [`read_mr`](Self::read_mr) and [`write_mr`](Self::write_mr).
    ///
    /// # Errors
    /// `Invalid` without [`Access::ZERO_BASED`] (DM-06), with [`Access::MW_BIND`],
    /// [`Access::HUGETLB`] or [`Access::ON_DEMAND`] (DM-12), for bytes that are not in the memory
    /// (DM-06), a memory of another context (DM-14), or access bits as for
    /// [`alloc_mr`](Self::alloc_mr); `NoMemory`.
    fn reg_dm_mr(&self, pd: Pd, dm: Dm, offset: u64, length: usize, access: Access) -> Result<Mr>;

    /// Copies bytes to a device memory, from `offset` on (`ibv_memcpy_to_dm`). Work that is posted
    /// afterwards finds them (DM-09). Work under way that names the same bytes is not waited for.
    ///
    /// # Errors
    /// `Fault` for bytes that are not in the memory (DM-04); `Invalid` for an offset or a length
    /// that is not a multiple of 4 (DM-05).
    fn copy_to_dm(&self, dm: Dm, offset: u64, bytes: &[u8]) -> Result<()>;

    /// Copies bytes from a device memory, from `offset` on (`ibv_memcpy_from_dm`). It finds what
    /// work has written whose completion has been polled (DM-09). Errors as for
    /// [`copy_to_dm`](Self::copy_to_dm).
    fn copy_from_dm(&self, dm: Dm, offset: u64, bytes: &mut [u8]) -> Result<()>;

    // Completion channels

    /// Creates a completion channel (`ibv_create_comp_channel`).
    ///
    /// # Errors
    /// `TooManyFiles` (CHAN-09), `NoMemory` (CHAN-10).
    fn create_comp_channel(&self, context: Context) -> Result<CompChannel>;

    /// Removes a channel (`ibv_destroy_comp_channel`).
    ///
    /// # Errors
    /// `Busy` while a CQ is attached (CHAN-38); `Usage` (simulator) while a thread waits on it
    /// (CHAN-44).
    fn destroy_comp_channel(&self, channel: CompChannel) -> Result<()>;

    /// Takes the oldest event of a channel (`ibv_get_cq_event`). Each must be acknowledged.
    ///
    /// # Errors
    /// `WouldBlock`, `TimedOut`; in the simulator `Stalled` if nothing can bring an event any more.
    fn get_cq_event(&self, channel: CompChannel, wait: Wait) -> Result<CqEvent>;

    // Completion queues

    /// Creates a CQ (`ibv_create_cq`).
    ///
    /// # Errors
    /// `Invalid` for `cqe` below 1 or above `max_cqe`, for a completion vector that does not exist,
    /// for a channel of another context; `NoMemory`.
    fn create_cq(&self, context: Context, init: &CqInit) -> Result<Cq>;

    /// The fields of `struct ibv_cq`.
    fn query_cq(&self, cq: Cq) -> Result<CqAttr>;

    /// Changes the size of a CQ to at least `cqe` (`ibv_resize_cq`).
    ///
    /// # Errors
    /// `Invalid` for `cqe` below 1, above `max_cqe`, or below the completions present
    /// (CQ-RESIZE-06); `NoMemory`; `NotImplemented` or `NotSupported` if the device cannot.
    fn resize_cq(&self, cq: Cq, cqe: i32) -> Result<()>;

    /// Asks for one notification (`ibv_req_notify_cq`).
    fn req_notify_cq(&self, cq: Cq, arm: Arm) -> Result<()>;

    /// Writes the oldest completions to the start of `wc`, and returns how many (`ibv_poll_cq`).
    fn poll_cq(&self, cq: Cq, wc: &mut [Wc]) -> Result<usize>;

    /// Acknowledges `nevents` events of a CQ (`ibv_ack_cq_events`).
    ///
    /// # Errors
    /// `Usage` for more events than were read and are not acknowledged yet (CHAN-37).
    fn ack_cq_events(&self, cq: Cq, nevents: u32) -> Result<()>;

    /// Removes a CQ and its unpolled completions (`ibv_destroy_cq`). Waits until every event of it
    /// that was read has been acknowledged (CHAN-35).
    ///
    /// # Errors
    /// `Busy` while a QP uses it, whatever `wait` is (CQ-DESTROY-04); `WouldBlock`, `TimedOut`;
    /// in the simulator `Stalled` if no other thread can acknowledge.
    fn destroy_cq(&self, cq: Cq, wait: Wait) -> Result<()>;

    // Extended completion queues, and moderation

    /// Creates an extended CQ (`ibv_create_cq_ex`): a CQ like any other that can also be polled by
    /// an iteration.
    ///
    /// # Errors
    /// As for [`create_cq`](Self::create_cq); `Invalid` for a parent domain that is not one, or of
    /// another context (PD-07); `NotSupported` without [`Capabilities::CQ_EX`], or
    /// for fields or flags that the device lacks (CQ-CREATE-14).
    fn create_cq_ex(&self, context: Context, init: &CqInitEx) -> Result<Cq>;

    /// Starts an iteration, at the oldest completion (`ibv_start_poll`, CQ-CREATE-15). The
    /// completions that it visits keep their places in the CQ until [`end_poll`](Self::end_poll).
    ///
    /// Drivers hold the CQ's lock during the iteration. Calls that would wait for it give `Usage`
    /// as long as the iteration is open: polling the CQ, starting another iteration, resizing or
    /// destroying the CQ, and changing or destroying one of its QPs.
    ///
    /// # Errors
    /// `NotFound` if the CQ is empty: no iteration is open then. `Invalid` for a CQ that is not an
    /// extended one; after an overrun as for [`poll_cq`](Self::poll_cq).
    fn start_poll(&self, cq: Cq) -> Result<()>;

    /// Goes to the next completion (`ibv_next_poll`).
    ///
    /// # Errors
    /// `NotFound` if there is none: the iteration is at its end, and has to be ended. `Usage` if
    /// none is open, or it is at its end already.
    fn next_poll(&self, cq: Cq) -> Result<()>;

    /// The completion that the iteration is at (`ibv_wc_read_*`, CQ-CREATE-16).
    ///
    /// # Errors
    /// `Usage` if no iteration is open, or it is at its end.
    fn read_wc(&self, cq: Cq) -> Result<WcEx>;

    /// Ends an iteration (`ibv_end_poll`).
    ///
    /// # Errors
    /// `Usage` if none is open.
    fn end_poll(&self, cq: Cq) -> Result<()>;

    /// Sets how many completions, or how long, an event of a CQ waits for (`ibv_modify_cq`).
    ///
    /// # Errors
    /// `Invalid` above the limits of the device
    /// ([`DeviceAttrEx::cq_moderation`](crate::DeviceAttrEx::cq_moderation)); `NotSupported`
    /// without [`Capabilities::CQ_MODERATION`].
    fn modify_cq(&self, cq: Cq, moderation: &CqModeration) -> Result<()>;

    // Queue pairs

    /// Creates a QP in RESET (`ibv_create_qp`). XRC_RECV QPs are made by
    /// [`create_xrc_recv_qp`](Self::create_xrc_recv_qp).
    ///
    /// # Errors
    /// `Invalid` for sizes above the device's, CQs or an SRQ of another context, an SRQ where the
    /// transport has none (QP-CREATE-04); `NotSupported` for a transport, or operations of a batch,
    /// that the device lacks (SQ-28); `NoMemory`.
    fn create_qp(&self, pd: Pd, init: &QpInit) -> Result<Qp>;

    /// The QP number.
    fn qp_num(&self, qp: Qp) -> Result<u32>;

    /// Attributes of a QP (`ibv_query_qp`). `mask` is a hint; more may be filled (QP-CREATE-09).
    fn query_qp(&self, qp: Qp, mask: QpAttrMask) -> Result<QpQuery>;

    /// Whether the bytes of one message become visible in order, so that a program may poll memory
    /// for the last of them (`ibv_query_qp_data_in_order`, RO-06). The messages are the Sends and
    /// RDMA Writes that arrive at this QP, or the RDMA Reads that it posts. The answer does not
    /// cover other operations, the order of messages (RO-01), and memory registered with
    /// [`Access::RELAXED_ORDERING`].
    ///
    /// Nothing is promised to flags that the backend does not know (RO-08), by a library without
    /// the function, and by the simulator and ConnectX devices for a QP outside of RTS.
    fn query_qp_data_in_order(
        &self,
        qp: Qp,
        opcode: WrOpcode,
        flags: InOrderQuery,
    ) -> Result<InOrder>;

    /// Changes a QP (`ibv_modify_qp`); a failure changes nothing (QP-STATE-06). Attributes of the
    /// half that an XRC QP lacks are ignored ([`ignored`](crate::transition::ignored)).
    ///
    /// # Errors
    /// `Invalid` for a transition that does not exist, a mask that does not fit it, or a value out
    /// of range; `TimedOut`, `NetworkUnreachable` or `HostUnreachable` if no device has the GID of
    /// the peer (AH-07).
    fn modify_qp(&self, qp: Qp, attr: &QpAttr, mask: QpAttrMask) -> Result<()>;

    /// The options of a QP (`ibv_query_ece`): all that the device supports if it is new, none after
    /// [`set_ece`](Self::set_ece), and from the next [`modify_qp`](Self::modify_qp) on those that
    /// the device has accepted (ECE-01 and the following).
    ///
    /// # Errors
    /// `NotSupported` without [`Capabilities::ECE`].
    fn query_ece(&self, qp: Qp) -> Result<Ece>;

    /// Asks for options of a QP, which take effect with the next [`modify_qp`](Self::modify_qp)
    /// (`ibv_set_ece`). The device ignores those that it does not support.
    ///
    /// # Errors
    /// `Invalid` for another vendor than the device's and for a `comp_mask` that is not 0;
    /// `NotSupported` for the vendor 0 and without [`Capabilities::ECE`].
    fn set_ece(&self, qp: Qp, ece: &Ece) -> Result<()>;

    /// Removes a QP in any state (`ibv_destroy_qp`). Waits until its async events that were read
    /// have been acknowledged (QP-DESTROY-03).
    ///
    /// # Errors
    /// `Busy` while it is attached to a multicast group (QP-DESTROY-02); `WouldBlock`, `TimedOut`;
    /// in the simulator `Stalled` if no other thread can acknowledge.
    fn destroy_qp(&self, qp: Qp, wait: Wait) -> Result<()>;

    /// Connects two RC QPs in RESET, or an XRC_SEND QP and an XRC_RECV QP, and brings both to RTS:
    /// by attributes, or by rdma_cm where the transport needs it.
    fn connect_rc(&self, a: Qp, b: Qp, params: &RcParams) -> Result<()>;

    /// Posts sends in order (`ibv_post_send`); stops at the first that cannot be posted.
    ///
    /// # Errors
    /// `Invalid` in a state that does not allow it, for too many SGEs, too much inline data or an
    /// opcode the transport does not have; `NoMemory` when the queue is full.
    fn post_send(&self, qp: Qp, list: &[SendWr<'_>]) -> Result<(), PostError>;

    /// Builds a batch of sends (`ibv_wr_start`, then `ibv_wr_send` and the like for each) and ends
    /// it (`ibv_wr_complete`, `ibv_wr_abort`). None of it runs before it is complete, and an
    /// aborted batch never runs (SQ-26). After an error none of it is posted (SQ-27).
    ///
    /// # Errors
    /// As for [`post_send`](Self::post_send); `Invalid` also for an operation that is not among the
    /// [`send_ops`](QpInit::send_ops) of the QP.
    fn post_batch(&self, qp: Qp, list: &[SendWr<'_>], end: BatchEnd) -> Result<()>;

    /// Posts receives in order (`ibv_post_recv`); stops at the first that cannot be posted. Errors
    /// as for [`post_send`](Self::post_send); `Invalid` also for a QP with an SRQ (RQ-09), or an
    /// XRC QP (XRC-03).
    fn post_recv(&self, qp: Qp, list: &[RecvWr<'_>]) -> Result<(), PostError>;

    // Address handles

    /// Creates an address handle (`ibv_create_ah`, AH-01).
    ///
    /// # Errors
    /// `Invalid` for a port or GID index that does not exist, or no GRH where the port requires
    /// one; `TimedOut`, `NetworkUnreachable` or `HostUnreachable` if no device has the destination
    /// GID (AH-07); `NoMemory`.
    fn create_ah(&self, pd: Pd, attr: &AhAttr) -> Result<Ah>;

    /// Removes an address handle (`ibv_destroy_ah`).
    ///
    /// # Errors
    /// `Usage` (simulator) while work names it whose completion has not been polled (UD-16).
    fn destroy_ah(&self, ah: Ah) -> Result<()>;

    // Multicast

    /// Attaches a UD QP to a multicast group, in any state (`ibv_attach_mcast`): from now on it
    /// gets a copy of each datagram that a port of its device receives for the group, including its
    /// own. Attaching it again changes nothing (MCAST-03). `lid` is the group's LID (LID-08),
    /// ignored on Ethernet.
    ///
    /// The network decides what a port receives: on InfiniBand the program has to ask the subnet
    /// administrator (MCAST-10).
    ///
    /// To send to a group, use an address handle with the group's GID and the QP number
    /// [`MULTICAST_QPN`](crate::MULTICAST_QPN).
    ///
    /// # Errors
    /// `Invalid` for another transport (MCAST-01), a GID that names no group (MCAST-02), or on
    /// InfiniBand a LID that is of none (LID-08); `NoMemory` at the limits of the device
    /// (MCAST-08); `NotSupported` without [`Capabilities::MCAST`].
    fn attach_mcast(&self, qp: Qp, group: Gid, lid: u16) -> Result<()>;

    /// Detaches a QP from a multicast group (`ibv_detach_mcast`).
    ///
    /// # Errors
    /// `Invalid` if it is not attached (MCAST-05), or for such a LID.
    fn detach_mcast(&self, qp: Qp, group: Gid, lid: u16) -> Result<()>;

    // Shared receive queues

    /// Creates a shared receive queue (`ibv_create_srq`, SRQ-01). [`QpInit::srq`] makes QPs with
    /// it.
    ///
    /// # Errors
    /// `Invalid` for sizes above the device's, or a size of 0 (SRQ-02), and for an XRC domain or CQ
    /// of another context; `NoMemory`; `NotSupported` for an XRC SRQ without [`Capabilities::XRC`].
    fn create_srq(&self, pd: Pd, init: &SrqInit) -> Result<Srq>;

    /// The parameters an SRQ was created with. The sizes are the actual ones, at least those
    /// requested (what `ibv_create_srq` writes back, SRQ-01).
    fn srq_init(&self, srq: Srq) -> Result<SrqInit>;

    /// The present sizes and limit of an SRQ (`ibv_query_srq`, SRQ-16).
    ///
    /// # Errors
    /// `NotSupported` on drivers that cannot query.
    fn query_srq(&self, srq: Srq) -> Result<SrqAttr>;

    /// Changes an SRQ (`ibv_modify_srq`): its size, or the limit below which `SRQ_LIMIT_REACHED` is
    /// raised. A failure changes nothing (SRQ-10).
    ///
    /// # Errors
    /// `Invalid` for a limit above `max_wr` (SRQ-08), a size above the device's or below the work
    /// requests present (SRQ-09); `NotSupported` for a size without
    /// [`Capabilities::SRQ_RESIZE`]; `NoMemory`.
    fn modify_srq(&self, srq: Srq, attr: &SrqAttr, mask: SrqAttrMask) -> Result<()>;

    /// Removes an SRQ and the receives in it (`ibv_destroy_srq`). Waits until its async events that
    /// were read have been acknowledged (SRQ-18).
    ///
    /// # Errors
    /// `Busy` while a QP uses it, whatever `wait` is (SRQ-11); `WouldBlock`, `TimedOut`.
    fn destroy_srq(&self, srq: Srq, wait: Wait) -> Result<()>;

    /// Posts receives in order (`ibv_post_srq_recv`, SRQ-04); stops at the first that cannot be
    /// posted. Their lkeys belong to the SRQ's PD (SRQ-12). Messages of all QPs take them in the
    /// order of posting. Each completes on the QP that took it, so completions may come in another
    /// order.
    ///
    /// # Errors
    /// `Invalid` for too many SGEs; `NoMemory` when the queue is full.
    fn post_srq_recv(&self, srq: Srq, list: &[RecvWr<'_>]) -> Result<(), PostError>;

    // Extended reliable connections

    /// Opens an XRC domain (`ibv_open_xrcd`, XRC-01). It belongs to the device: contexts share a
    /// domain that a file names, each by a handle of its own.
    ///
    /// # Errors
    /// `NotFound` if the file, or the domain that it names, does not exist and creating was not
    /// asked for (Linux gives `WouldBlock` for the domain); `Invalid` if it has to be new and
    /// exists; `NoMemory`; `NotSupported` or `NotImplemented` without [`Capabilities::XRC`]
    /// (XRC-07).
    fn open_xrcd(&self, context: Context, init: &XrcdInit<'_>) -> Result<Xrcd>;

    /// Closes an XRC domain (`ibv_close_xrcd`). The last close ends it (XRC-02).
    ///
    /// # Errors
    /// `Busy` while an SRQ or a QP lives that was made or opened by this handle.
    fn close_xrcd(&self, xrcd: Xrcd) -> Result<()>;

    /// Creates an XRC_RECV QP in RESET (`ibv_create_qp_ex` with a domain): the receiving end of a
    /// connection, whose messages take receives from the SRQs that they name. It has no queues, CQs
    /// or protection domain: peers reach the memory of the protection domain of the SRQ that they
    /// name. All contexts that have opened it get its asynchronous events.
    ///
    /// # Errors
    /// `NoMemory`; `NotSupported` without [`Capabilities::XRC`].
    fn create_xrc_recv_qp(&self, xrcd: Xrcd) -> Result<Qp>;

    /// Opens the XRC_RECV QP with this number in an XRC domain (`ibv_open_qp`, XRC-05). The new
    /// handle can query and change it. The QP is destroyed when the last of its handles is
    /// destroyed.
    ///
    /// # Errors
    /// `Invalid` or `NotFound` if the domain has no such QP; `NoMemory`.
    fn open_qp(&self, xrcd: Xrcd, qp_num: u32) -> Result<Qp>;

    /// The number of an SRQ, by which peers name it (`ibv_get_srq_num`).
    ///
    /// # Errors
    /// `Invalid` (some drivers return a meaningless number) for a plain SRQ; `NotSupported` without
    /// [`Capabilities::XRC`].
    fn srq_num(&self, srq: Srq) -> Result<u32>;

    // Asynchronous events

    /// Takes the oldest asynchronous event of a context (`ibv_get_async_event`). Each must be
    /// acknowledged. Errors as for [`get_cq_event`](Self::get_cq_event).
    fn get_async_event(&self, context: Context, wait: Wait) -> Result<AsyncEvent>;

    /// Acknowledges an asynchronous event (`ibv_ack_async_event`).
    ///
    /// # Errors
    /// `Usage` if no event of the object waits for an acknowledgement.
    fn ack_async_event(&self, context: Context, event: &AsyncEvent) -> Result<()>;

    // Beyond verbs

    /// Wakes a task when the next event is queued at `source`: at once if one is queued already,
    /// and if the source is destroyed. The task takes the event with [`Wait::Poll`]. It is woken
    /// once for each call, and may find nothing. Only the waker of the last call is kept; the
    /// futures of [`owned`](crate::owned) serve any number of tasks.
    ///
    /// This is not a verb: no fault rule fires on it, and no trace shows it.
    ///
    /// In a simulator whose waits move its clock, the call takes the next step if no event is
    /// queued, and wakes the task at once. So a task that waits moves the clock, under any
    /// executor. When no step is left, the other tasks get their turns for a while; then the call
    /// fails, since the task would wait forever. What acts later, such as a timer of the executor,
    /// is too late: a program with such timers runs in `verbs_sim::tokio`, `verbs_sim::rt` or real
    /// time.
    ///
    /// # Errors
    /// They name the verb that takes the event. `Stalled` if the simulation is closed
    /// ([`Lab::close`]), or nothing can bring an event; `NotSupported` by a backend that cannot
    /// wake tasks.
    fn wake_on(&self, source: EventSource, _waker: &Waker) -> Result<()> {
        let lacks = "cannot wake tasks: wait in a thread, or watch the descriptor";
        Err(unsupported(source.verb(), lacks))
    }

    /// The file descriptor of a channel (the field `fd` of `struct ibv_comp_channel`, CHAN-03):
    /// readable exactly while an event is queued (CHAN-30), for `poll`, `epoll` and what builds on
    /// them. It is a duplicate: the caller closes it, and may keep it longer than the channel. Take
    /// events with [`get_cq_event`](Self::get_cq_event) and [`Wait::Poll`]: reading from it loses
    /// events, and writing to it invents them.
    ///
    /// A program that sleeps until it is readable does not move the clock of a simulator whose
    /// waits do. A task waits by [`wake_on`](Self::wake_on), which does.
    ///
    /// # Errors
    /// `NotSupported` without [`Capabilities::FD`]; `TooManyFiles`.
    #[cfg(unix)]
    fn channel_fd(&self, _channel: CompChannel) -> Result<OwnedFd> {
        Err(unsupported(Verb::ChannelFd, "has no file descriptors"))
    }

    /// The file descriptor of a context's asynchronous events (the field `async_fd` of
    /// `struct ibv_context`), as [`channel_fd`](Self::channel_fd).
    #[cfg(unix)]
    fn async_fd(&self, _context: Context) -> Result<OwnedFd> {
        Err(unsupported(Verb::AsyncFd, "has no file descriptors"))
    }

    /// Exports `length` new zero bytes as a dma-buf, as the driver of another device does, so that
    /// there is one to test with: a `memfd` in the simulator, a `udmabuf` of the kernel for a real
    /// device.
    ///
    /// # Errors
    /// `NotSupported` without [`Capabilities::DMABUF`], or without an exporter; `NoMemory`,
    /// `TooManyFiles`.
    #[cfg(unix)]
    fn export_dmabuf(&self, _context: Context, _length: usize) -> Result<OwnedFd> {
        Err(unsupported(Verb::ExportDmabuf, "exports no dma-buf"))
    }

    /// Corrupts the number by which the driver knows an object (the field `handle` of the C
    /// structure), or restores it. So a bad handle gets past the checks of this trait to the
    /// driver. Verbs that stay in the process never see the number.
    ///
    /// A hazard: C libraries trust it. An object that is still corrupt when its context closes may
    /// live until the process ends.
    ///
    /// # Errors
    /// `NotSupported` without [`Capabilities::CORRUPT_HANDLE`].
    fn corrupt_handle(&self, _object: DriverObject, _corrupt: bool) -> Result<()> {
        Err(unsupported(Verb::CorruptHandle, "cannot corrupt handles"))
    }

    /// Connection management, if the backend has it ([`Capabilities::CM`]).
    fn cm(&self) -> Option<&dyn Cm> {
        None
    }

    /// The test controls, if the backend is a simulator.
    fn lab(&self) -> Option<&dyn Lab> {
        None
    }
}

pub(crate) fn unsupported(verb: Verb, lacks: &str) -> Error {
    let cause = Cause::Text(format!("the backend {lacks}").into());
    Error::new(verb, ErrorKind::NotSupported, cause)
}
