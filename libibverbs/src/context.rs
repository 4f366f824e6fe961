//! Devices, contexts, and what they say of themselves.

use std::ffi::{CStr, c_char, c_int};
use std::mem::offset_of;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::ptr::null_mut;
use std::sync::OnceLock;

use verbs_api::sync::Mutex;
use verbs_api::{
    Capabilities, CqModeration, DeviceAttr, GidEntry, GidType, Lab, LinkLayer, Pd, PortAttr,
    PortState, Verbs,
};

use crate::c::{self, ibv_context, ibv_device};
use crate::engine::{engine, text, unobserved};
use crate::object::{ArenaOf, Kind, Object, Objects, context_of, int};
use crate::result::{Errno, Result, UNSUPPORTED, not_null, or_minus_one, or_zero, pointer, status};
use crate::{batch, cq, cq_ex, dm, domain, import, mw, post, region, srq, xrc};

/// Contexts.
pub(crate) struct OpenDevice;

/// What a context has beside its structure.
pub(crate) struct More {
    async_fd: Mutex<Option<OwnedFd>>,
    /// Programs duplicate it, and import the duplicate.
    cmd_fd: Mutex<Option<OwnedFd>>,
    /// The domain of the regions that inline data is copied to.
    inline_pd: OnceLock<Pd>,
}

impl Kind for OpenDevice {
    type Raw = c::verbs_context;
    type Seen = ibv_context;
    type Handle = verbs_api::Context;
    type More = More;
    const OFFSET: usize = offset_of!(c::verbs_context, context);

    fn arena_in(objects: &Objects) -> &ArenaOf<Self> {
        &objects.contexts
    }
}

impl Object<OpenDevice> {
    /// The descriptor of its asynchronous events.
    pub(crate) fn fd(&self) -> Result<RawFd> {
        let fd = self.more.async_fd.lock();
        Ok(fd.as_ref().ok_or(Errno(libc::EINVAL))?.as_raw_fd())
    }

    /// Which device it is of, from 0.
    pub(crate) fn device(&self) -> Result<usize> {
        // SAFETY: one of ours, which are never freed.
        number_of(unsafe { (*self.seen()).device })
    }

    /// The descriptor that names it, until it is closed.
    pub(crate) fn cmd_fd(&self) -> Option<RawFd> {
        self.more.cmd_fd.lock().as_ref().map(AsRawFd::as_raw_fd)
    }

    /// A protection domain that no program knows of.
    pub(crate) fn inline_pd(&self) -> Result<Pd> {
        if let Some(pd) = self.more.inline_pd.get() {
            return Ok(*pd);
        }
        let pd = unobserved().alloc_pd(self.handle)?;
        let kept = *self.more.inline_pd.get_or_init(|| pd);
        if kept != pd {
            unobserved().dealloc_pd(pd)?;
        }
        unobserved().hide_pd(kept)?;
        Ok(kept)
    }
}

pub(crate) extern "C" fn get_device_list(count: *mut c_int) -> *mut *mut ibv_device {
    pointer(|| {
        let devices: Vec<_> = engine().devices().collect();
        // SAFETY: the size is above zero. Zero bytes are null pointers, the last of which ends the
        // list.
        let list = unsafe { libc::calloc(devices.len() + 1, size_of::<*mut ibv_device>()) };
        let list: *mut *mut ibv_device = list.cast();
        if list.is_null() {
            return Err(Errno(libc::ENOMEM));
        }
        // SAFETY: there is room for so many and one more.
        unsafe { list.copy_from_nonoverlapping(devices.as_ptr(), devices.len()) };
        if !count.is_null() {
            // SAFETY: the program's, to be written (C's contract).
            unsafe { count.write(int(devices.len() as u32)) };
        }
        Ok(list)
    })
}

pub(crate) extern "C" fn free_device_list(list: *mut *mut ibv_device) {
    // SAFETY: one of `get_device_list`, or null (C's contract).
    unsafe { libc::free(list.cast()) }
}

pub(crate) extern "C" fn get_device_name(device: *mut ibv_device) -> *const c_char {
    pointer(|| {
        not_null(device)?;
        // Programs make structures of their own; nothing of them is read here.
        let name = device.wrapping_byte_add(offset_of!(ibv_device, name));
        Ok(name.cast())
    })
}

pub(crate) extern "C" fn get_device_index(device: *mut ibv_device) -> c_int {
    or_minus_one(|| Ok(number_of(device)? as c_int))
}

/// In network order.
pub(crate) extern "C" fn get_device_guid(device: *mut ibv_device) -> u64 {
    or_zero(|| {
        let number = number_of(device)? as u32;
        Ok(engine().sim.node_guid(number).to_be())
    })
}

fn number_of(device: *mut ibv_device) -> Result<usize> {
    engine().device(device).ok_or(Errno(libc::ENODEV))
}

pub(crate) extern "C" fn open_device(device: *mut ibv_device) -> *mut ibv_context {
    pointer(|| {
        let number = number_of(device)?;
        let sim = &engine().sim;
        let handle = sim.open_device(&format!("sim{number}"))?;
        make(device, handle, import::command_fd).inspect_err(|_| {
            let _ = sim.close_device(handle);
        })
    })
}

/// A context for one of the engine, with a command descriptor that is made at last.
pub(crate) fn make(
    device: *mut ibv_device,
    handle: verbs_api::Context,
    cmd_fd: impl FnOnce() -> Result<OwnedFd>,
) -> Result<*mut ibv_context> {
    let async_fd = engine().sim.async_fd(handle)?;
    let vectors = int(unobserved().query_device(handle)?.num_comp_vectors);
    cq::set_blocking(&async_fd)?;
    let cmd_fd = cmd_fd()?;
    let fds = [&async_fd, &cmd_fd].map(AsRawFd::as_raw_fd);
    let more = More {
        async_fd: Mutex::new(Some(async_fd)),
        cmd_fd: Mutex::new(Some(cmd_fd)),
        inline_pd: OnceLock::new(),
    };
    let context = Object::<OpenDevice>::make(handle, more, || filled(device, fds, vectors));
    Ok(context?.seen())
}

/// The engine's is closed with the last context of its descriptor.
pub(crate) extern "C" fn close_device(context: *mut ibv_context) -> c_int {
    status(|| {
        let _alone = engine().contexts_change.lock();
        let context = Object::<OpenDevice>::find(context)?;
        let mut open = OpenDevice::arena()
            .iter()
            .filter(|of| of.cmd_fd().is_some());
        if open.any(|of| of.handle == context.handle && !std::ptr::eq(of, context)) {
            context.end()?;
        } else {
            engine().sim.close_device(context.handle)?;
            dm::free_all(context.handle);
        }
        drop(context.more.async_fd.lock().take());
        drop(context.more.cmd_fd.lock().take());
        Ok(())
    })
}

/// A context with its operations. What is 0 a program finds missing, and says `EOPNOTSUPP`.
fn filled(
    device: *mut ibv_device,
    [async_fd, cmd_fd]: [RawFd; 2],
    vectors: c_int,
) -> c::verbs_context {
    let ops = c::ibv_context_ops {
        compat_to_dereg_mr: [0; 7],
        alloc_mw: Some(mw::alloc_mw),
        bind_mw: Some(mw::bind_mw),
        dealloc_mw: Some(mw::dealloc_mw),
        compat_create_cq: 0,
        poll_cq: Some(cq::poll_cq),
        req_notify_cq: Some(cq::req_notify_cq),
        compat_to_destroy_srq: [0; 7],
        post_srq_recv: Some(srq::post_srq_recv),
        compat_to_destroy_qp: [0; 4],
        post_send: Some(post::post_send),
        post_recv: Some(post::post_recv),
        compat_to_async_event: [0; 5],
    };
    c::verbs_context {
        newest: [0; 6],
        query_port: Some(query_port_sized),
        advise_mr: 0,
        alloc_null_mr: Some(region::alloc_null_mr),
        counters: [0; 4],
        reg_dm_mr: Some(dm::reg_dm_mr),
        alloc_dm: Some(dm::alloc_dm),
        free_dm: Some(dm::free_dm),
        flow_actions: [0; 3],
        modify_qp_rate_limit: 0,
        alloc_parent_domain: Some(domain::alloc_parent_domain),
        dealloc_td: Some(domain::dealloc_td),
        alloc_td: Some(domain::alloc_td),
        modify_cq: Some(cq_ex::modify_cq),
        post_srq_ops: 0,
        work_queues: [0; 5],
        query_rt_values: Some(query_rt_values),
        create_cq_ex: Some(cq_ex::create_cq_ex),
        own: null_mut(),
        query_device_ex: Some(query_device_ex),
        destroy_flow: 0,
        placeholder2: 0,
        create_flow: 0,
        placeholder1: 0,
        open_qp: Some(xrc::open_qp),
        create_qp_ex: Some(batch::create_qp_ex),
        get_srq_num: Some(xrc::get_srq_num),
        create_srq_ex: Some(srq::create_srq_ex),
        open_xrcd: Some(xrc::open_xrcd),
        close_xrcd: Some(xrc::close_xrcd),
        placeholder3: 0,
        sz: size_of::<c::verbs_context>(),
        context: ibv_context {
            device,
            ops,
            cmd_fd,
            async_fd,
            num_comp_vectors: vectors,
            mutex: [0; 5],
            // All bits: the context is the last member of an extended one.
            abi_compat: usize::MAX as *mut _,
        },
    }
}

pub(crate) extern "C" fn query_device(
    context: *mut ibv_context,
    attr: *mut c::ibv_device_attr,
) -> c_int {
    status(|| {
        not_null(attr)?;
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
    attr: *mut c::ibv_device_attr,
    size: usize,
) -> c_int {
    status(|| {
        not_null(attr)?;
        // SAFETY: the program's, valid for the call; its mask comes first (C's contract).
        let asks = !input.is_null() && unsafe { input.read() } != 0;
        if asks || size < size_of::<c::ibv_device_attr>() {
            return Err(Errno(libc::EINVAL));
        }
        let found = describe(context)?;
        let more = engine().sim.query_device_ex(context_of(context)?)?;
        let CqModeration {
            cq_count,
            cq_period,
        } = more.cq_moderation;
        let later = c::Later {
            completion_timestamp_mask: more.completion_timestamp_mask,
            hca_core_clock: more.hca_core_clock,
            max_cq_count: cq_count,
            max_cq_period: cq_period,
            max_dm_size: dm::max_size() as u64,
            phys_port_cnt_ex: found.phys_port_cnt.into(),
            ..c::Later::default()
        };
        let bytes = attr.cast::<u8>();
        let known = (size - size_of_val(&found)).min(size_of_val(&later));
        // SAFETY: the program's, so large (C's contract).
        unsafe {
            bytes.write_bytes(0, size);
            attr.write(found);
            let behind = bytes.add(size_of_val(&found));
            behind.copy_from((&raw const later).cast(), known);
        }
        Ok(())
    })
}

/// `IBV_VALUES_MASK_RAW_CLOCK`
const RAW_CLOCK: u32 = 1 << 0;

/// The clock of completions: its ticks stand in the nanoseconds, as drivers have it.
extern "C" fn query_rt_values(context: *mut ibv_context, values: *mut c::ibv_values_ex) -> c_int {
    status(|| {
        let context = context_of(context)?;
        not_null(values)?;
        let sim = &engine().sim;
        let more = unobserved().query_device_ex(context)?;
        let ticks_a_ms = more.hca_core_clock;
        if ticks_a_ms == 0 {
            return Err(UNSUPPORTED);
        }
        // SAFETY: the program's, valid for the call (C's contract).
        let asked = unsafe { (*values).comp_mask };
        if asked & !RAW_CLOCK != 0 {
            return Err(Errno(libc::EINVAL));
        }
        if asked & RAW_CLOCK != 0 {
            let ticks = sim.now().as_nanos() * u128::from(ticks_a_ms) / 1_000_000;
            // SAFETY: as above, to be written.
            unsafe { (*values).raw_clock = [0, ticks as i64] };
        }
        Ok(())
    })
}

fn describe(context: *mut ibv_context) -> Result<c::ibv_device_attr> {
    let context = context_of(context)?;
    let found = unobserved().query_device(context)?;
    let pkeys = unobserved().query_port(context, 1)?.pkey_tbl_len;
    let has = unobserved().capabilities(context)?;
    let resize = has.contains(Capabilities::SRQ_RESIZE);
    Ok(device_attr(&found, pkeys, resize))
}

/// Flags of `enum ibv_device_cap_flags`.
mod flag {
    pub(super) const CURR_QP_STATE_MOD: u32 = 1 << 7;
    pub(super) const PORT_ACTIVE_EVENT: u32 = 1 << 10;
    pub(super) const SYS_IMAGE_GUID: u32 = 1 << 11;
    pub(super) const RC_RNR_NAK_GEN: u32 = 1 << 12;
    pub(super) const SRQ_RESIZE: u32 = 1 << 13;
    pub(super) const MEM_WINDOW: u32 = 1 << 17;
    pub(super) const XRC: u32 = 1 << 20;
    pub(super) const MEM_MGT_EXTENSIONS: u32 = 1 << 21;
    pub(super) const MEM_WINDOW_TYPE_2B: u32 = 1 << 24;
}

fn device_attr(attr: &DeviceAttr, max_pkeys: u16, srq_resize: bool) -> c::ibv_device_attr {
    let mut flags = flag::CURR_QP_STATE_MOD
        | flag::PORT_ACTIVE_EVENT
        | flag::SYS_IMAGE_GUID
        | flag::RC_RNR_NAK_GEN
        | flag::MEM_MGT_EXTENSIONS;
    for (has, of) in [
        (srq_resize, flag::SRQ_RESIZE),
        (attr.xrc, flag::XRC),
        (attr.mem_window, flag::MEM_WINDOW),
        (attr.mem_window_type_2b, flag::MEM_WINDOW_TYPE_2B),
    ] {
        flags |= if has { of } else { 0 };
    }
    c::ibv_device_attr {
        fw_ver: text(&attr.fw_ver),
        node_guid: attr.node_guid.to_be(),
        sys_image_guid: attr.node_guid.to_be(),
        max_mr_size: attr.max_mr_size,
        // Pages of 4 KiB and all larger ones.
        page_size_cap: !0xfff,
        // As other devices in software have it.
        vendor_id: 0x00ff_ffff,
        vendor_part_id: 0,
        hw_ver: 0,
        max_qp: int(attr.max_qp),
        max_qp_wr: int(attr.max_qp_wr),
        device_cap_flags: flags,
        max_sge: int(attr.max_sge),
        max_sge_rd: int(attr.max_sge),
        max_cq: int(attr.max_cq),
        max_cqe: int(attr.max_cqe),
        max_mr: int(attr.max_mr),
        max_pd: int(attr.max_pd),
        max_qp_rd_atom: attr.max_qp_rd_atom.into(),
        max_ee_rd_atom: 0,
        max_res_rd_atom: int(u32::from(attr.max_qp_rd_atom).saturating_mul(attr.max_qp)),
        max_qp_init_rd_atom: attr.max_qp_init_rd_atom.into(),
        max_ee_init_rd_atom: 0,
        atomic_cap: u32::from(attr.atomic_cap) as c_int,
        max_ee: 0,
        max_rdd: 0,
        max_mw: int(attr.max_mw),
        max_raw_ipv6_qp: 0,
        max_raw_ethy_qp: 0,
        max_mcast_grp: int(attr.max_mcast_grp),
        max_mcast_qp_attach: int(attr.max_mcast_qp_attach),
        max_total_mcast_qp_attach: int(attr.max_mcast_grp.saturating_mul(attr.max_mcast_qp_attach)),
        max_ah: int(attr.max_ah),
        max_fmr: 0,
        max_map_per_fmr: 0,
        max_srq: int(attr.max_srq),
        max_srq_wr: int(attr.max_srq_wr),
        max_srq_sge: int(attr.max_srq_sge),
        max_pkeys,
        local_ca_ack_delay: 15,
        phys_port_cnt: attr.phys_port_cnt,
    }
}

/// As programs call it: they say how much of the structure they know.
extern "C" fn query_port_sized(
    context: *mut ibv_context,
    port: u8,
    attr: *mut c::ibv_port_attr,
    size: usize,
) -> c_int {
    query(context, port, attr, size)
}

/// The exported function, which writes what the oldest programs know.
pub(crate) extern "C" fn query_port(
    context: *mut ibv_context,
    port: u8,
    attr: *mut c::ibv_port_attr,
) -> c_int {
    query(context, port, attr, c::OLD_PORT_ATTR)
}

fn query(context: *mut ibv_context, port: u8, attr: *mut c::ibv_port_attr, size: usize) -> c_int {
    status(|| {
        let context = context_of(context)?;
        not_null(attr)?;
        let found = port_attr(&engine().sim.query_port(context, port)?);
        let size = size.min(size_of_val(&found));
        // SAFETY: the program's, so large (C's contract).
        unsafe { attr.cast::<u8>().copy_from((&raw const found).cast(), size) };
        Ok(())
    })
}

fn port_attr(attr: &PortAttr) -> c::ibv_port_attr {
    /// `IBV_PORT_CM_SUP`
    const CM_SUP: u32 = 1 << 16;
    /// `IBV_PORT_IP_BASED_GIDS`
    const IP_BASED_GIDS: u32 = 1 << 26;
    /// `IBV_QPF_GRH_REQUIRED`
    const GRH_REQUIRED: u8 = 1;
    /// 4 lanes.
    const WIDTH: u8 = 2;
    /// 25 Gbit/s each.
    const SPEED: u8 = 32;
    let (disabled, link_up) = (3, 5);
    let infiniband = attr.link_layer == LinkLayer::InfiniBand;
    c::ibv_port_attr {
        state: attr.state.into(),
        max_mtu: attr.max_mtu.into(),
        active_mtu: attr.active_mtu.into(),
        gid_tbl_len: int(attr.gid_tbl_len),
        port_cap_flags: CM_SUP | if infiniband { 0 } else { IP_BASED_GIDS },
        max_msg_sz: attr.max_msg_sz,
        bad_pkey_cntr: attr.bad_pkey_cntr,
        qkey_viol_cntr: attr.qkey_viol_cntr,
        pkey_tbl_len: attr.pkey_tbl_len,
        lid: attr.lid,
        // Of the first port: there is no subnet manager, and nothing to ask it.
        sm_lid: infiniband.into(),
        lmc: 0,
        max_vl_num: 1,
        sm_sl: 0,
        subnet_timeout: 0,
        init_type_reply: 0,
        active_width: WIDTH,
        active_speed: SPEED,
        phys_state: if attr.state == PortState::Active {
            link_up
        } else {
            disabled
        },
        link_layer: u32::from(attr.link_layer) as u8,
        flags: if attr.grh_required { GRH_REQUIRED } else { 0 },
        port_cap_flags2: 0,
        active_speed_ex: 0,
    }
}

pub(crate) extern "C" fn query_gid(
    context: *mut ibv_context,
    port: u8,
    index: c_int,
    gid: *mut c::ibv_gid,
) -> c_int {
    or_minus_one(|| {
        let context = context_of(context)?;
        not_null(gid)?;
        let index = u32::try_from(index).map_err(|_| Errno(libc::EINVAL))?;
        let found = engine().sim.query_gid(context, port, index)?;
        // SAFETY: the program's, to be written, aligned as it may be (C's contract).
        unsafe { gid.write_unaligned(c::ibv_gid { raw: found.0 }) };
        Ok(0)
    })
}

/// The type of GIDs as sysfs numbers it: that of InfiniBand and of RoCE version 1, or of version 2.
fn sysfs_type(link_layer: LinkLayer) -> u32 {
    match link_layer {
        LinkLayer::InfiniBand => 0,
        _ => 1,
    }
}

pub(crate) extern "C" fn query_gid_type(
    context: *mut ibv_context,
    port: u8,
    index: u32,
    gid_type: *mut u32,
) -> c_int {
    or_minus_one(|| {
        let context = context_of(context)?;
        not_null(gid_type)?;
        engine().sim.query_gid(context, port, index)?;
        let port = unobserved().query_port(context, port)?;
        let found = sysfs_type(port.link_layer);
        // SAFETY: the program's, to be written (C's contract).
        unsafe { gid_type.write(found) };
        Ok(0)
    })
}

pub(crate) extern "C" fn query_gid_ex(
    context: *mut ibv_context,
    port: u32,
    index: u32,
    entry: *mut c::ibv_gid_entry,
    flags: u32,
    size: usize,
) -> c_int {
    status(|| {
        let context = context_of(context)?;
        not_null(entry)?;
        if flags != 0 {
            return Err(UNSUPPORTED);
        }
        let port_num = u8::try_from(port).map_err(|_| Errno(libc::EINVAL))?;
        let found = engine().sim.query_gid_ex(context, port_num, index)?;
        // SAFETY: the program's, so large (C's contract).
        unsafe { put_entry(entry, size, gid_entry(&found)) };
        Ok(())
    })
}

pub(crate) extern "C" fn query_gid_table(
    context: *mut ibv_context,
    entries: *mut c::ibv_gid_entry,
    max_entries: usize,
    flags: u32,
    size: usize,
) -> isize {
    /// 250 ports have fewer.
    const MOST: usize = 1024;
    let table = || {
        let context = context_of(context)?;
        if flags != 0 {
            return Err(UNSUPPORTED);
        }
        let sim = &engine().sim;
        let mut found = vec![GidEntry::default(); max_entries.min(MOST)];
        let count = sim.query_gid_table(context, &mut found)?;
        for (at, entry) in found[..count].iter().enumerate() {
            // SAFETY: the program's, so many of this size (C's contract).
            unsafe { put_entry(entries.wrapping_byte_add(at * size), size, gid_entry(entry)) };
        }
        Ok(count as c_int)
    };
    crate::result::count(table) as isize
}

fn gid_entry(entry: &GidEntry) -> c::ibv_gid_entry {
    c::ibv_gid_entry {
        gid: c::ibv_gid { raw: entry.gid.0 },
        gid_index: entry.gid_index,
        port_num: entry.port_num,
        gid_type: entry.gid_type.into(),
        ndev_ifindex: match entry.gid_type {
            GidType::RoceV1 | GidType::RoceV2 => network_interface(),
            _ => 0,
        },
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

/// # Safety
/// There is room for `size` bytes.
unsafe fn put_entry(to: *mut c::ibv_gid_entry, size: usize, entry: c::ibv_gid_entry) {
    let size = size.min(size_of_val(&entry));
    // SAFETY: the caller's promise.
    unsafe { to.cast::<u8>().copy_from((&raw const entry).cast(), size) };
}

pub(crate) extern "C" fn query_pkey(
    context: *mut ibv_context,
    port: u8,
    index: c_int,
    pkey: *mut u16,
) -> c_int {
    or_minus_one(|| {
        let context = context_of(context)?;
        not_null(pkey)?;
        let index = u16::try_from(index).map_err(|_| Errno(libc::EINVAL))?;
        let found = engine().sim.query_pkey(context, port, index)?;
        // SAFETY: the program's, to be written (C's contract).
        unsafe { pkey.write(found.to_be()) };
        Ok(0)
    })
}

/// The place of a P_Key, which comes in network order.
pub(crate) extern "C" fn get_pkey_index(context: *mut ibv_context, port: u8, pkey: u16) -> c_int {
    or_minus_one(|| {
        let context = context_of(context)?;
        let keys = unobserved().query_port(context, port)?.pkey_tbl_len;
        for index in 0..keys {
            let key = unobserved().query_pkey(context, port, index)?;
            if key == u16::from_be(pkey) {
                return Ok(c_int::from(index));
            }
        }
        Err(Errno(libc::ENOENT))
    })
}
