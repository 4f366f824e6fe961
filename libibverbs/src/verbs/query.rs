//! Attributes of devices and ports: `ibv_query_*`.

use std::ffi::{CStr, c_int};
use std::ptr::from_ref;

use verbs_abi::{
    IBV_DEVICE_SRQ_RESIZE, IBV_PORT_IP_BASED_GIDS, IBV_VALUES_MASK_RAW_CLOCK, OLD_PORT_ATTR,
    ibv_context, ibv_device_attr, ibv_device_attr_ex, ibv_gid, ibv_gid_entry, ibv_port_attr,
    ibv_values_ex,
};
use verbs_api::{Capabilities, Context, GidEntry, GidType, LinkLayer, PortAttr, PortState, Verbs};
use verbs_sim::Sim;

use super::context::context_of;
use crate::c::{
    Later, Refusal, Result, count, not_null, or_minus_one, present, status, zero_or_minus_one,
};
use crate::engine::{config, sim, unobserved};

pub(crate) extern "C" fn query_device(
    context: *mut ibv_context,
    attr: *mut ibv_device_attr,
) -> c_int {
    status("ibv_query_device", Later(context), |()| {
        present(attr)?;
        let context = context_of(context)?;
        sim().query_device(context)?;
        let found = attributes(unobserved(), context)?;
        // SAFETY: the program's, to be written (C's contract).
        unsafe { attr.write(found) };
        Ok(())
    })
}

/// The devices have these later fields: a clock, all capability flags, limits of moderation, and
/// the number of ports.
pub(super) extern "C" fn query_device_ex(
    context: *mut ibv_context,
    input: *const u32,
    attr: *mut ibv_device_attr_ex,
    size: usize,
) -> c_int {
    status("ibv_query_device_ex", Later(context), |()| {
        present(attr)?;
        // SAFETY: the program's, valid for the call; its mask comes first (C's contract).
        let asks = !input.is_null() && unsafe { input.read_unaligned() } != 0;
        // No input attributes are defined.
        if asks || size < size_of::<ibv_device_attr>() {
            let what = if asks {
                "comp_mask of the input is not 0".to_owned()
            } else {
                format!(
                    "there is room for {size} bytes, which are fewer than ibv_query_device writes"
                )
            };
            return Err(Refusal::invalid(what));
        }
        let context = context_of(context)?;
        let orig_attr = attributes(unobserved(), context)?;
        let more = ibv_device_attr_ex::to_c(&sim().query_device_ex(context)?);
        let found = ibv_device_attr_ex {
            orig_attr,
            device_cap_flags_ex: more.device_cap_flags_ex | u64::from(orig_attr.device_cap_flags),
            phys_port_cnt_ex: orig_attr.phys_port_cnt.into(),
            ..more
        };
        // SAFETY: the program's, of `size` bytes (C's contract).
        unsafe {
            attr.cast::<u8>().write_bytes(0, size);
            put(attr, size, &found);
        }
        Ok(())
    })
}

/// Writes the part of a structure that the program knows: the first `size` bytes.
///
/// # Safety
/// There is room for `size` bytes.
unsafe fn put<T>(to: *mut T, size: usize, from: &T) {
    let size = size.min(size_of::<T>());
    // SAFETY: the caller's promise.
    unsafe { to.cast::<u8>().copy_from(from_ref(from).cast(), size) };
}

/// The clock of completions. Its ticks are in the field for nanoseconds, as drivers write it.
pub(super) extern "C" fn query_rt_values(
    context: *mut ibv_context,
    values: *mut ibv_values_ex,
) -> c_int {
    status("ibv_query_rt_values_ex", context, |context| {
        present(values)?;
        let now = sim().query_rt_values(context.handle)?;
        // SAFETY: the program's, valid for the call (C's contract).
        let asked = unsafe { (*values).comp_mask };
        if asked & !IBV_VALUES_MASK_RAW_CLOCK != 0 {
            return Err(Refusal::invalid(format!(
                "comp_mask is {asked:#x}, allowed is IBV_VALUES_MASK_RAW_CLOCK"
            )));
        }
        if asked & IBV_VALUES_MASK_RAW_CLOCK != 0 {
            // SAFETY: as above, to be written.
            unsafe { (*values).raw_clock = [0, now.raw_clock as i64] };
        }
        Ok(())
    })
}

/// The result of `ibv_query_device`.
pub(super) fn attributes(sim: &Sim, context: Context) -> verbs_api::Result<ibv_device_attr> {
    let found = ibv_device_attr::to_c(&sim.query_device(context)?);
    let has = sim.capabilities(context)?;
    let srq_resize = if has.contains(Capabilities::SRQ_RESIZE) {
        IBV_DEVICE_SRQ_RESIZE
    } else {
        0
    };
    let reported = config().profile().reported;
    let all_reads = found.max_qp_rd_atom.saturating_mul(found.max_qp);
    Ok(ibv_device_attr {
        page_size_cap: reported.page_size_cap,
        device_cap_flags: found.device_cap_flags | srq_resize | reported.device_cap_flags,
        max_sge_rd: reported
            .max_sge_rd
            .map_or(found.max_sge, |most| most as c_int),
        max_res_rd_atom: reported
            .max_res_rd_atom
            .map_or(all_reads, |all| all as c_int),
        max_total_mcast_qp_attach: found
            .max_mcast_grp
            .saturating_mul(found.max_mcast_qp_attach),
        max_pkeys: reported.max_pkeys,
        local_ca_ack_delay: reported.local_ca_ack_delay,
        ..found
    })
}

/// `ibv_query_port` as programs call it, with the size of the structure that they know.
pub(super) extern "C" fn query_port_sized(
    context: *mut ibv_context,
    port: u8,
    attr: *mut ibv_port_attr,
    size: usize,
) -> c_int {
    query(context, port, attr, size)
}

/// The exported `ibv_query_port`, which writes the structure of the oldest programs.
pub(crate) extern "C" fn query_port(
    context: *mut ibv_context,
    port: u8,
    attr: *mut ibv_port_attr,
) -> c_int {
    query(context, port, attr, OLD_PORT_ATTR)
}

fn query(context: *mut ibv_context, port: u8, attr: *mut ibv_port_attr, size: usize) -> c_int {
    status("ibv_query_port", context, |context| {
        present(attr)?;
        let found = port_attr(&sim().query_port(context.handle, port)?);
        // SAFETY: the program's, of `size` bytes (C's contract).
        unsafe { put(attr, size, &found) };
        Ok(())
    })
}

/// The lanes of a port, and the speed of each, in tenths of Gbit/s and by its name.
pub(super) fn lanes(attr: &ibv_port_attr) -> (u32, u32, &'static str) {
    let width = match attr.active_width {
        2 => 4,
        4 => 8,
        8 => 12,
        16 => 2,
        _ => 1,
    };
    let (speed, name) = match attr.active_speed {
        2 => (50, "DDR"),
        4 => (100, "QDR"),
        8 => (100, "FDR10"),
        16 => (140, "FDR"),
        32 => (250, "EDR"),
        64 => (500, "HDR"),
        128 => (1000, "NDR"),
        _ => (25, "SDR"),
    };
    (width, speed, name)
}

pub(super) fn port_attr(attr: &PortAttr) -> ibv_port_attr {
    let (disabled, link_up) = (3, 5);
    let reported = config().profile().reported;
    // A GID of InfiniBand is not an IP address.
    let without = match attr.link_layer {
        LinkLayer::InfiniBand => IBV_PORT_IP_BASED_GIDS,
        _ => 0,
    };
    ibv_port_attr {
        port_cap_flags: reported.port_cap_flags & !without,
        max_vl_num: reported.max_vl_num,
        phys_state: if attr.state == PortState::Active {
            link_up
        } else {
            disabled
        },
        ..ibv_port_attr::to_c(attr)
    }
}

/// `ibv_query_port_speed`, in units of 100 Mbit/s.
pub(crate) extern "C" fn query_port_speed(
    context: *mut ibv_context,
    port: u32,
    speed: *mut u64,
) -> c_int {
    status("ibv_query_port_speed", context, |context| {
        present(speed)?;
        let found = sim().query_port(context.handle, port_num(port)?)?;
        let (width, tenths, _) = lanes(&port_attr(&found));
        // SAFETY: the program's, to be written (C's contract).
        unsafe { speed.write((width * tenths).into()) };
        Ok(())
    })
}

/// A port number as newer functions take it.
fn port_num(port: u32) -> Result<u8> {
    u8::try_from(port).map_err(|_| {
        Refusal::invalid(format!(
            "port_num is {port}, and no device has that many ports"
        ))
    })
}

/// `ibv_query_comp_cntr_caps`. A device has no completion counters, so all limits are 0.
pub(crate) extern "C" fn query_comp_cntr_caps(
    context: *mut ibv_context,
    caps: *mut u64,
    size: usize,
) -> c_int {
    status("ibv_query_comp_cntr_caps", context, |_| {
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
    zero_or_minus_one("ibv_query_gid", context, |context| {
        not_null(gid)?;
        let index = u32::try_from(index).map_err(|_| no_index(index))?;
        let found = sim().query_gid(context.handle, port, index)?;
        // SAFETY: the program's, to be written, aligned as it may be (C's contract).
        unsafe { gid.write_unaligned(ibv_gid { raw: found.0 }) };
        Ok(())
    })
}

fn no_index(index: c_int) -> Refusal {
    Refusal::invalid(format!("index is {index}"))
}

pub(crate) extern "C" fn query_gid_type(
    context: *mut ibv_context,
    port: u8,
    index: u32,
    gid_type: *mut u32,
) -> c_int {
    zero_or_minus_one("ibv_query_gid_type", context, |context| {
        present(gid_type)?;
        sim().query_gid(context.handle, port, index)?;
        let entry = unobserved().query_gid_ex(context.handle, port, index);
        let found = match entry.map(|entry| entry.gid_type) {
            // As in sysfs, InfiniBand and RoCE version 1 share a number. sysfs has no type for an
            // empty entry, and libibverbs then returns that of InfiniBand.
            Err(_) | Ok(GidType::Ib | GidType::RoceV1) => 0,
            Ok(_) => 1,
        };
        // SAFETY: the program's, to be written (C's contract).
        unsafe { gid_type.write(found) };
        Ok(())
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
    status("ibv_query_gid_ex", context, |context| {
        present(entry)?;
        no_flags(flags)?;
        let found = sim().query_gid_ex(context.handle, port_num(port)?, index)?;
        // SAFETY: the program's, of `size` bytes (C's contract).
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
    /// More entries than 250 ports have.
    const MOST: usize = 1024;
    let filled = count("ibv_query_gid_table", context, |context| {
        // Without room for entries the pointer is not used.
        if max_entries > 0 {
            present(entries)?;
        }
        no_flags(flags)?;
        let mut found = vec![GidEntry::default(); max_entries.min(MOST)];
        let filled = sim().query_gid_table(context.handle, &mut found)?;
        for (at, entry) in found[..filled].iter().enumerate() {
            // SAFETY: the program's, with room for `max_entries` of this size (C's contract).
            unsafe {
                put(
                    entries.wrapping_byte_add(at * size),
                    size,
                    &gid_entry(entry),
                )
            };
        }
        Ok(filled as c_int)
    });
    filled as isize
}

/// The kernel refuses flags, of which there are none.
fn no_flags(flags: u32) -> Result<()> {
    match flags {
        0 => Ok(()),
        _ => Err(Refusal::invalid(format!(
            "flags are {flags:#x}, and there are none"
        ))),
    }
}

pub(super) fn gid_entry(entry: &GidEntry) -> ibv_gid_entry {
    ibv_gid_entry {
        ndev_ifindex: match entry.gid_type {
            GidType::RoceV1 | GidType::RoceV2 => network_interface(),
            _ => 0,
        },
        ..ibv_gid_entry::to_c(entry)
    }
}

/// The index of a network interface of the machine, or 0 if it has none. It is not the loopback
/// interface if there is another one.
///
/// A port has no interface of its own, but programs look up the name of the index.
fn network_interface() -> u32 {
    // SAFETY: returns a list that is ours, or null.
    let list = unsafe { libc::if_nameindex() };
    if list.is_null() {
        return 0;
    }
    // SAFETY: an entry with index 0 ends the list.
    let all = (0..).map(|at| unsafe { &*list.add(at) });
    let mut all = all.take_while(|entry| entry.if_index != 0);
    // SAFETY: names end with 0.
    let leads_on = |entry: &&libc::if_nameindex| unsafe { CStr::from_ptr(entry.if_name) } != c"lo";
    // The loopback interface leads to no other machine.
    let found = all.clone().find(leads_on).or_else(|| all.next());
    let found = found.map_or(0, |entry| entry.if_index);
    // SAFETY: the list is not used any more.
    unsafe { libc::if_freenameindex(list) };
    found
}

pub(crate) extern "C" fn query_pkey(
    context: *mut ibv_context,
    port: u8,
    index: c_int,
    pkey: *mut u16,
) -> c_int {
    zero_or_minus_one("ibv_query_pkey", context, |context| {
        present(pkey)?;
        let index = u16::try_from(index).map_err(|_| no_index(index))?;
        let all = unobserved().query_port(context.handle, port);
        let found = sim().query_pkey(context.handle, port, index);
        // A P_Key is a file of sysfs.
        if found.is_err() && all.is_ok_and(|port| index >= port.pkey_tbl_len) {
            return Err(Refusal::new(
                libc::ENOENT,
                format!("there is no P_Key {index}"),
            ));
        }
        let found = found?;
        // SAFETY: the program's, to be written (C's contract).
        unsafe { pkey.write(found.to_be()) };
        Ok(())
    })
}

/// `ibv_get_pkey_index`: the index of a P_Key, which is in network order.
pub(crate) extern "C" fn get_pkey_index(context: *mut ibv_context, port: u8, pkey: u16) -> c_int {
    or_minus_one("ibv_get_pkey_index", context, |context| {
        let attr = unobserved().query_port(context.handle, port);
        let keys = attr.map_err(Refusal::unobserved)?.pkey_tbl_len;
        for index in 0..keys {
            let key = unobserved().query_pkey(context.handle, port, index)?;
            if key == u16::from_be(pkey) {
                return Ok(c_int::from(index));
            }
        }
        let what = format!("port {port} has no P_Key {:#06x}", u16::from_be(pkey));
        Err(Refusal::new(libc::ENOENT, what))
    })
}
