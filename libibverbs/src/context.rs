//! Devices, contexts, and their attributes.

use std::collections::BTreeMap;
use std::ffi::{CStr, c_char, c_int};
use std::mem::offset_of;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::ptr::from_ref;

use verbs_abi::{
    EXTENDED, IBV_DEVICE_CURR_QP_STATE_MOD, IBV_DEVICE_MEM_MGT_EXTENSIONS,
    IBV_DEVICE_PORT_ACTIVE_EVENT, IBV_DEVICE_RC_RNR_NAK_GEN, IBV_DEVICE_SRQ_RESIZE,
    IBV_DEVICE_SYS_IMAGE_GUID, IBV_PORT_CM_SUP, IBV_PORT_IP_BASED_GIDS, IBV_VALUES_MASK_RAW_CLOCK,
    OLD_PORT_ATTR, ibv_context, ibv_context_ops, ibv_device, ibv_device_attr, ibv_device_attr_ex,
    ibv_gid, ibv_gid_entry, ibv_port_attr, ibv_values_ex, int, verbs_context,
};
use verbs_api::lab::Lab;
use verbs_api::sync::Mutex;
use verbs_api::{Capabilities, Cause, GidEntry, GidType, LinkLayer, PortAttr, PortState, Verbs};
use verbs_sim::Sim;

use crate::caller::way_to;
use crate::engine::{engine, unobserved};
use crate::import::{self, File};
use crate::object::{ArenaOf, CObject, Holding, Kind, Objects, context_of};
use crate::output::say;
use crate::result::{
    Refusal, Result, known_bits, not_null, or_minus_one, or_zero, pointer, present, status,
};
use crate::{absent, batch, cq, cq_ex, dm, domain, mw, post, region, srq, sysfs, verdict, xrc};

/// Contexts.
pub(crate) struct OpenDevice;

/// Contexts that are not closed, by the file of their command descriptors. Those of one file are one for the engine.
pub(crate) type Open = BTreeMap<File, Vec<Holding<OpenDevice>>>;

/// What a context has in addition to its structure.
pub(crate) struct More {
    /// That of its asynchronous events.
    pub(crate) async_fd: Mutex<Option<OwnedFd>>,
    /// Programs duplicate it, and import the duplicate.
    cmd_fd: Mutex<Option<OwnedFd>>,
    /// The file of that descriptor.
    file: File,
}

impl Kind for OpenDevice {
    const NAME: &'static str = "struct ibv_context";
    type Raw = verbs_context;
    type Seen = ibv_context;
    type Handle = verbs_api::Context;
    type More = More;
    const OFFSET: usize = offset_of!(verbs_context, context);

    fn arena_in(objects: &Objects) -> &ArenaOf<Self> {
        &objects.contexts
    }
}

impl CObject<OpenDevice> {
    /// Which device it is of, from 0.
    pub(crate) fn device(&self) -> Result<usize> {
        // SAFETY: one of ours, which stays for the call.
        number_of(unsafe { (*self.seen()).device })
    }

    /// The descriptor that names it, until it is closed.
    pub(crate) fn cmd_fd(&self) -> Option<RawFd> {
        self.more.cmd_fd.lock().as_ref().map(AsRawFd::as_raw_fd)
    }
}

pub(crate) extern "C" fn get_device_list(count: *mut c_int) -> *mut *mut ibv_device {
    pointer("ibv_get_device_list", (), || {
        let devices: Vec<_> = engine().devices().collect();
        // SAFETY: the size is above zero. Zero bytes are null pointers, the last of which ends the
        // list.
        let list = unsafe { libc::calloc(devices.len() + 1, size_of::<*mut ibv_device>()) };
        let list: *mut *mut ibv_device = list.cast();
        if list.is_null() {
            return Err(Refusal::by_system("calloc"));
        }
        // SAFETY: there is room for so many and one more.
        unsafe { list.copy_from_nonoverlapping(devices.as_ptr(), devices.len()) };
        if !count.is_null() {
            // SAFETY: the program's, to be written (C's contract).
            unsafe { count.write_unaligned(int(devices.len() as u32)) };
        }
        Ok(list)
    })
}

pub(crate) extern "C" fn free_device_list(list: *mut *mut ibv_device) {
    // SAFETY: one of `get_device_list`, or null (C's contract).
    unsafe { libc::free(list.cast()) }
}

pub(crate) extern "C" fn get_device_name(device: *mut ibv_device) -> *const c_char {
    pointer("ibv_get_device_name", (), || {
        not_null(device)?;
        // Programs make structures of their own; nothing of them is read here.
        let name = device.wrapping_byte_add(offset_of!(ibv_device, name));
        Ok(name.cast())
    })
}

pub(crate) extern "C" fn get_device_index(device: *mut ibv_device) -> c_int {
    or_minus_one("ibv_get_device_index", (), || {
        Ok(number_of(device)? as c_int)
    })
}

/// In network order.
pub(crate) extern "C" fn get_device_guid(device: *mut ibv_device) -> u64 {
    or_zero("ibv_get_device_guid", (), || {
        let number = number_of(device)? as u32;
        Ok(engine().sim.node_guid(number).to_be())
    })
}

fn number_of(device: *mut ibv_device) -> Result<usize> {
    engine().device(device).ok_or_else(|| {
        let what = "the pointer names no device of ibv_get_device_list";
        Refusal::new(libc::ENODEV, what)
    })
}

pub(crate) extern "C" fn open_device(device: *mut ibv_device) -> *mut ibv_context {
    pointer("ibv_open_device", (), || {
        let number = number_of(device)?;
        let sim = &engine().sim;
        let handle = sim.open_device(&format!("sim{number}"));
        let handle = handle.inspect_err(|error| {
            // Why it has no address: no number says that.
            if matches!(error.cause(), Cause::Text(_)) {
                say(error);
            }
        })?;
        let context = make(device, handle, import::command_fd).inspect_err(|_| {
            let _ = sim.close_device(handle);
        })?;
        sysfs::opened(number, handle);
        Ok(context)
    })
}

/// A context for one of the engine, with a command descriptor that is made at last.
pub(crate) fn make(
    device: *mut ibv_device,
    handle: verbs_api::Context,
    cmd_fd: impl FnOnce() -> Result<OwnedFd>,
) -> Result<*mut ibv_context> {
    make_among(&mut engine().contexts.lock(), device, handle, cmd_fd)
}

/// Makes a context, which is open from then on.
pub(crate) fn make_among(
    open: &mut Open,
    device: *mut ibv_device,
    handle: verbs_api::Context,
    cmd_fd: impl FnOnce() -> Result<OwnedFd>,
) -> Result<*mut ibv_context> {
    let async_fd = engine().sim.async_fd(handle)?;
    let vectors = int(unobserved().query_device(handle)?.num_comp_vectors);
    cq::set_blocking(&async_fd)?;
    let cmd_fd = cmd_fd()?;
    let file = import::file_of(cmd_fd.as_raw_fd()).ok_or_else(|| Refusal::by_system("fstat"))?;
    let fds = [&async_fd, &cmd_fd].map(AsRawFd::as_raw_fd);
    let more = More {
        async_fd: Mutex::new(Some(async_fd)),
        cmd_fd: Mutex::new(Some(cmd_fd)),
        file,
    };
    let context = CObject::<OpenDevice>::make(handle, more, || filled(device, fds, vectors))?;
    open.entry(file).or_default().push(context.hold());
    verdict::opened(engine());
    Ok(context.seen())
}

/// The engine's is closed with the last context of its descriptor.
pub(crate) extern "C" fn close_device(context: *mut ibv_context) -> c_int {
    status("ibv_close_device", context, || {
        let context = CObject::<OpenDevice>::find(context)?;
        let mut open = engine().contexts.lock();
        let is_this = |of: &Holding<OpenDevice>| std::ptr::eq(&**of, &*context);
        match open.get_mut(&context.more.file) {
            Some(same) if !same.iter().all(is_this) => {
                context.end()?;
                same.retain(|of| !is_this(of));
            }
            _ => {
                engine().sim.close_device(context.handle)?;
                open.remove(&context.more.file);
                dm::free_all(context.handle);
                context.retire();
            }
        }
        drop(context.more.async_fd.lock().take());
        drop(context.more.cmd_fd.lock().take());
        Ok(())
    })
}

/// An operation whose further arguments do not matter.
fn address<T, R>(way: extern "C" fn(*mut T) -> R) -> usize {
    way as usize
}

/// A context with its operations. What is 0 needs an object that no device here can make.
fn filled(
    device: *mut ibv_device,
    [async_fd, cmd_fd]: [RawFd; 2],
    vectors: c_int,
) -> verbs_context {
    verbs_context {
        query_port: Some(way_to!(query_port_sized)),
        advise_mr: address(way_to!(absent::advise_mr)),
        counters: [0, 0, address(way_to!(absent::create_counters)), 0],
        flow_actions: [0, 0, address(way_to!(absent::create_flow_action_esp))],
        modify_qp_rate_limit: address(way_to!(absent::modify_qp_rate_limit)),
        post_srq_ops: address(way_to!(absent::post_srq_ops)),
        work_queues: [
            0,
            address(way_to!(absent::create_rwq_ind_table)),
            0,
            0,
            address(way_to!(absent::create_wq)),
        ],
        create_flow: address(way_to!(absent::create_flow)),
        alloc_null_mr: Some(way_to!(region::alloc_null_mr)),
        reg_dm_mr: Some(way_to!(dm::reg_dm_mr)),
        alloc_dm: Some(way_to!(dm::alloc_dm)),
        free_dm: Some(way_to!(dm::free_dm)),
        alloc_parent_domain: Some(way_to!(domain::alloc_parent_domain)),
        dealloc_td: Some(way_to!(domain::dealloc_td)),
        alloc_td: Some(way_to!(domain::alloc_td)),
        modify_cq: Some(way_to!(cq_ex::modify_cq)),
        query_rt_values: Some(way_to!(query_rt_values)),
        create_cq_ex: Some(way_to!(cq_ex::create_cq_ex)),
        query_device_ex: Some(way_to!(query_device_ex)),
        open_qp: Some(way_to!(xrc::open_qp)),
        create_qp_ex: Some(way_to!(batch::create_qp_ex)),
        get_srq_num: Some(way_to!(xrc::get_srq_num)),
        create_srq_ex: Some(way_to!(srq::create_srq_ex)),
        open_xrcd: Some(way_to!(xrc::open_xrcd)),
        // Programs call it without a look whether it is there.
        close_xrcd: Some(way_to!(xrc::close_xrcd)),
        sz: size_of::<verbs_context>(),
        context: ibv_context {
            device,
            ops: ibv_context_ops {
                alloc_mw: Some(way_to!(mw::alloc_mw)),
                bind_mw: Some(way_to!(mw::bind_mw)),
                dealloc_mw: Some(way_to!(mw::dealloc_mw)),
                poll_cq: Some(way_to!(cq::poll_cq)),
                req_notify_cq: Some(way_to!(cq::req_notify_cq)),
                post_srq_recv: Some(way_to!(srq::post_srq_recv)),
                post_send: Some(way_to!(post::post_send)),
                post_recv: Some(way_to!(post::post_recv)),
                ..ibv_context_ops::default()
            },
            cmd_fd,
            async_fd,
            num_comp_vectors: vectors,
            abi_compat: EXTENDED,
            ..ibv_context::default()
        },
        ..verbs_context::default()
    }
}

pub(crate) extern "C" fn query_device(
    context: *mut ibv_context,
    attr: *mut ibv_device_attr,
) -> c_int {
    status("ibv_query_device", context, || {
        present(attr)?;
        engine().sim.query_device(context_of(context)?)?;
        let found = describe(context)?;
        // SAFETY: the program's, to be written (C's contract).
        unsafe { attr.write(found) };
        Ok(())
    })
}

/// Of what came later the devices have a clock, limits of moderation, and the number of ports once more.
extern "C" fn query_device_ex(
    context: *mut ibv_context,
    input: *const u32,
    attr: *mut ibv_device_attr_ex,
    size: usize,
) -> c_int {
    status("ibv_query_device_ex", context, || {
        present(attr)?;
        // SAFETY: the program's, valid for the call; its mask comes first (C's contract).
        let asks = !input.is_null() && unsafe { input.read_unaligned() } != 0;
        if asks || size < size_of::<ibv_device_attr>() {
            let what = match asks {
                true => "comp_mask of the input is not 0".to_owned(),
                false => format!(
                    "there is room for {size} bytes, which are fewer than ibv_query_device writes"
                ),
            };
            return Err(Refusal::new(libc::EINVAL, what));
        }
        let orig_attr = describe(context)?;
        let found = ibv_device_attr_ex {
            orig_attr,
            max_dm_size: dm::max_size() as u64,
            phys_port_cnt_ex: orig_attr.phys_port_cnt.into(),
            ..ibv_device_attr_ex::to_c(&engine().sim.query_device_ex(context_of(context)?)?)
        };
        // SAFETY: the program's, so large (C's contract).
        unsafe {
            attr.cast::<u8>().write_bytes(0, size);
            put(attr, size, &found);
        }
        Ok(())
    })
}

/// Writes as much of a structure as the program knows.
///
/// # Safety
/// There is room for `size` bytes.
unsafe fn put<T>(to: *mut T, size: usize, from: &T) {
    let size = size.min(size_of::<T>());
    // SAFETY: the caller's promise.
    unsafe { to.cast::<u8>().copy_from(from_ref(from).cast(), size) };
}

/// The clock of completions: its ticks stand in the nanoseconds, as drivers have it.
extern "C" fn query_rt_values(context: *mut ibv_context, values: *mut ibv_values_ex) -> c_int {
    status("ibv_query_rt_values_ex", context, || {
        let context = context_of(context)?;
        present(values)?;
        let sim = &engine().sim;
        let more = unobserved().query_device_ex(context)?;
        let ticks_a_ms = more.hca_core_clock;
        if ticks_a_ms == 0 {
            return Err(Refusal::unsupported("the device has no clock"));
        }
        // SAFETY: the program's, valid for the call (C's contract).
        let asked = unsafe { (*values).comp_mask };
        if asked & !IBV_VALUES_MASK_RAW_CLOCK != 0 {
            let what = format!("comp_mask is {asked:#x}, allowed is IBV_VALUES_MASK_RAW_CLOCK");
            return Err(Refusal::new(libc::EINVAL, what));
        }
        if asked & IBV_VALUES_MASK_RAW_CLOCK != 0 {
            let ticks = sim.now().as_nanos() * u128::from(ticks_a_ms) / 1_000_000;
            // SAFETY: as above, to be written.
            unsafe { (*values).raw_clock = [0, ticks as i64] };
        }
        Ok(())
    })
}

fn describe(context: *mut ibv_context) -> Result<ibv_device_attr> {
    Ok(attributes(unobserved(), context_of(context)?)?)
}

/// What `ibv_query_device` says.
pub(crate) fn attributes(
    sim: &Sim,
    context: verbs_api::Context,
) -> verbs_api::Result<ibv_device_attr> {
    let found = ibv_device_attr::to_c(&sim.query_device(context)?);
    let has = sim.capabilities(context)?;
    let srq_resize = match has.contains(Capabilities::SRQ_RESIZE) {
        true => IBV_DEVICE_SRQ_RESIZE,
        false => 0,
    };
    Ok(ibv_device_attr {
        // Pages of 4 KiB and all larger ones.
        page_size_cap: !0xfff,
        // As other devices in software have it.
        vendor_id: 0x00ff_ffff,
        device_cap_flags: found.device_cap_flags
            | srq_resize
            | IBV_DEVICE_CURR_QP_STATE_MOD
            | IBV_DEVICE_PORT_ACTIVE_EVENT
            | IBV_DEVICE_SYS_IMAGE_GUID
            | IBV_DEVICE_RC_RNR_NAK_GEN
            | IBV_DEVICE_MEM_MGT_EXTENSIONS,
        max_sge_rd: found.max_sge,
        max_res_rd_atom: found.max_qp_rd_atom.saturating_mul(found.max_qp),
        max_total_mcast_qp_attach: found
            .max_mcast_grp
            .saturating_mul(found.max_mcast_qp_attach),
        max_pkeys: sim.query_port(context, 1)?.pkey_tbl_len,
        local_ca_ack_delay: 15,
        ..found
    })
}

/// As programs call it: they say how much of the structure they know.
extern "C" fn query_port_sized(
    context: *mut ibv_context,
    port: u8,
    attr: *mut ibv_port_attr,
    size: usize,
) -> c_int {
    query(context, port, attr, size)
}

/// The exported function, which writes what the oldest programs know.
pub(crate) extern "C" fn query_port(
    context: *mut ibv_context,
    port: u8,
    attr: *mut ibv_port_attr,
) -> c_int {
    query(context, port, attr, OLD_PORT_ATTR)
}

fn query(context: *mut ibv_context, port: u8, attr: *mut ibv_port_attr, size: usize) -> c_int {
    status("ibv_query_port", context, || {
        let context = context_of(context)?;
        present(attr)?;
        let found = port_attr(&engine().sim.query_port(context, port)?);
        // SAFETY: the program's, so large (C's contract).
        unsafe { put(attr, size, &found) };
        Ok(())
    })
}

/// The lanes of each port.
const LANES: u64 = 4;
/// How fast each lane is, in Gbit/s.
const LANE_GBITS: u64 = 25;

pub(crate) fn port_attr(attr: &PortAttr) -> ibv_port_attr {
    let (disabled, link_up) = (3, 5);
    let infiniband = attr.link_layer == LinkLayer::InfiniBand;
    let ip_based_gids = if infiniband {
        0
    } else {
        IBV_PORT_IP_BASED_GIDS
    };
    ibv_port_attr {
        port_cap_flags: IBV_PORT_CM_SUP | ip_based_gids,
        max_vl_num: 1,
        // As C encodes `LANES` and `LANE_GBITS`.
        active_width: 2,
        active_speed: 32,
        phys_state: if attr.state == PortState::Active {
            link_up
        } else {
            disabled
        },
        ..ibv_port_attr::to_c(attr)
    }
}

/// In units of 100 Mbit/s.
pub(crate) extern "C" fn query_port_speed(
    context: *mut ibv_context,
    port: u32,
    speed: *mut u64,
) -> c_int {
    status("ibv_query_port_speed", context, || {
        let context = context_of(context)?;
        present(speed)?;
        engine().sim.query_port(context, port_num(port)?)?;
        // SAFETY: the program's, to be written (C's contract).
        unsafe { speed.write(LANES * LANE_GBITS * 10) };
        Ok(())
    })
}

/// A port as newer functions take it.
fn port_num(port: u32) -> Result<u8> {
    u8::try_from(port).map_err(|_| {
        let what = format!("port_num is {port}, and no device has so many ports");
        Refusal::new(libc::EINVAL, what)
    })
}

/// A device has no completion counters, so all limits are 0.
pub(crate) extern "C" fn query_comp_cntr_caps(
    context: *mut ibv_context,
    caps: *mut u64,
    size: usize,
) -> c_int {
    status("ibv_query_comp_cntr_caps", context, || {
        context_of(context)?;
        present(caps)?;
        // SAFETY: the program's, with room for `size` bytes (C's contract).
        unsafe { caps.cast::<u8>().write_bytes(0, size) };
        Ok(())
    })
}

pub(crate) extern "C" fn query_gid(
    context: *mut ibv_context,
    port: u8,
    index: c_int,
    gid: *mut ibv_gid,
) -> c_int {
    or_minus_one("ibv_query_gid", context, || {
        let context = context_of(context)?;
        not_null(gid)?;
        let index = u32::try_from(index).map_err(|_| no_index(index))?;
        let found = engine().sim.query_gid(context, port, index)?;
        // SAFETY: the program's, to be written, aligned as it may be (C's contract).
        unsafe { gid.write_unaligned(ibv_gid { raw: found.0 }) };
        Ok(0)
    })
}

#[cold]
fn no_index(index: c_int) -> Refusal {
    Refusal::new(libc::EINVAL, format!("index is {index}"))
}

/// The type of a GID as sysfs numbers it. InfiniBand and RoCE version 1 share one.
fn sysfs_type(gid_type: GidType) -> u32 {
    match gid_type {
        GidType::Ib | GidType::RoceV1 => 0,
        _ => 1,
    }
}

pub(crate) extern "C" fn query_gid_type(
    context: *mut ibv_context,
    port: u8,
    index: u32,
    gid_type: *mut u32,
) -> c_int {
    or_minus_one("ibv_query_gid_type", context, || {
        let context = context_of(context)?;
        present(gid_type)?;
        engine().sim.query_gid(context, port, index)?;
        let entry = unobserved().query_gid_ex(context, port, index);
        // sysfs has no type for an empty entry, and the library says that it is of InfiniBand.
        let found = entry.map_or(0, |entry| sysfs_type(entry.gid_type));
        // SAFETY: the program's, to be written (C's contract).
        unsafe { gid_type.write(found) };
        Ok(0)
    })
}

pub(crate) extern "C" fn query_gid_ex(
    context: *mut ibv_context,
    port: u32,
    index: u32,
    entry: *mut ibv_gid_entry,
    flags: u32,
    size: usize,
) -> c_int {
    status("ibv_query_gid_ex", context, || {
        let context = context_of(context)?;
        present(entry)?;
        known_bits("flags", flags, 0)?;
        let found = engine().sim.query_gid_ex(context, port_num(port)?, index)?;
        // SAFETY: the program's, so large (C's contract).
        unsafe { put(entry, size, &gid_entry(&found)) };
        Ok(())
    })
}

pub(crate) extern "C" fn query_gid_table(
    context: *mut ibv_context,
    entries: *mut ibv_gid_entry,
    max_entries: usize,
    flags: u32,
    size: usize,
) -> isize {
    /// 250 ports have fewer.
    const MOST: usize = 1024;
    let table = || {
        let context = context_of(context)?;
        if max_entries > 0 {
            present(entries)?;
        }
        known_bits("flags", flags, 0)?;
        let sim = &engine().sim;
        let mut found = vec![GidEntry::default(); max_entries.min(MOST)];
        let count = sim.query_gid_table(context, &mut found)?;
        for (at, entry) in found[..count].iter().enumerate() {
            // SAFETY: the program's, so many of this size (C's contract).
            unsafe {
                put(
                    entries.wrapping_byte_add(at * size),
                    size,
                    &gid_entry(entry),
                )
            };
        }
        Ok(count as c_int)
    };
    crate::result::count("ibv_query_gid_table", context, table) as isize
}

pub(crate) fn gid_entry(entry: &GidEntry) -> ibv_gid_entry {
    ibv_gid_entry {
        ndev_ifindex: match entry.gid_type {
            GidType::RoceV1 | GidType::RoceV2 => network_interface(),
            _ => 0,
        },
        ..ibv_gid_entry::to_c(entry)
    }
}

/// The number of a network interface of the machine, one that leads to others if there is one; 0 without any.
/// A port has none of its own, and programs look up the name of what they are told.
fn network_interface() -> u32 {
    // SAFETY: gives a list that is ours, or null.
    let list = unsafe { libc::if_nameindex() };
    if list.is_null() {
        return 0;
    }
    // SAFETY: the list ends with an entry of number 0.
    let all = (0..).map(|at| unsafe { &*list.add(at) });
    let mut all = all.take_while(|entry| entry.if_index != 0);
    // SAFETY: the names have an end.
    let leads_on = |entry: &&libc::if_nameindex| unsafe { CStr::from_ptr(entry.if_name) } != c"lo";
    let found = all.clone().find(leads_on).or_else(|| all.next());
    let found = found.map_or(0, |entry| entry.if_index);
    // SAFETY: nothing of it is used any more.
    unsafe { libc::if_freenameindex(list) };
    found
}

pub(crate) extern "C" fn query_pkey(
    context: *mut ibv_context,
    port: u8,
    index: c_int,
    pkey: *mut u16,
) -> c_int {
    or_minus_one("ibv_query_pkey", context, || {
        let context = context_of(context)?;
        present(pkey)?;
        let index = u16::try_from(index).map_err(|_| no_index(index))?;
        let found = engine().sim.query_pkey(context, port, index)?;
        // SAFETY: the program's, to be written (C's contract).
        unsafe { pkey.write(found.to_be()) };
        Ok(0)
    })
}

/// The place of a P_Key, which comes in network order.
pub(crate) extern "C" fn get_pkey_index(context: *mut ibv_context, port: u8, pkey: u16) -> c_int {
    or_minus_one("ibv_get_pkey_index", context, || {
        let context = context_of(context)?;
        let attr = unobserved().query_port(context, port);
        let keys = attr.map_err(Refusal::unobserved)?.pkey_tbl_len;
        for index in 0..keys {
            let key = unobserved().query_pkey(context, port, index)?;
            if key == u16::from_be(pkey) {
                return Ok(c_int::from(index));
            }
        }
        let what = format!("port {port} has no P_Key {:#06x}", u16::from_be(pkey));
        Err(Refusal::new(libc::ENOENT, what))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// To close a context is to look at those of its descriptor, however many there were.
    #[test]
    fn what_is_closed_is_not_among_the_open_contexts() {
        let device = engine().devices().next().unwrap();
        let open = || {
            let context = open_device(device);
            assert!(!context.is_null());
            context
        };
        let counts = || {
            let all = engine().contexts.lock();
            all.values().map(Vec::len).collect::<Vec<_>>()
        };
        let kept = open();
        for _ in 0..1000 {
            assert_eq!(close_device(open()), 0);
        }
        assert_eq!(counts(), [1]);
        // SAFETY: it is open; a descriptor may be duplicated.
        let duplicate = unsafe { libc::dup((*kept).cmd_fd) };
        let imported = import::import_device(duplicate);
        assert!(!imported.is_null());
        assert_eq!(counts(), [2]);
        assert_eq!(close_device(kept), 0);
        assert_eq!(close_device(kept), libc::EINVAL);
        assert_eq!(counts(), [1], "the engine's is open for the other");
        let pd = domain::alloc_pd(imported);
        assert!(!pd.is_null());
        assert_eq!(domain::dealloc_pd(pd), 0);
        assert_eq!(close_device(imported), 0);
        assert_eq!(counts(), [0; 0]);
    }
}
