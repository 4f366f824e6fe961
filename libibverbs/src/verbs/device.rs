//! The list of devices.

use std::ffi::{c_char, c_int};
use std::mem::offset_of;
use std::ptr::from_ref;

use verbs_abi::{
    IBV_NODE_CA, IBV_NODE_RNIC, IBV_TRANSPORT_IB, IBV_TRANSPORT_IWARP, ibv_device, int, text,
    verbs_device,
};
use verbs_api::{Transport, Verbs};

use super::sysfs::paths::paths;
use crate::base::per_process::PerProcess;
use crate::c::{Refusal, Result, not_null, or_minus_one, or_zero, pointer};
use crate::engine::{engine, sim};

/// Programs keep pointers to devices, so a child after `fork` has the list of its parent.
static DEVICES: PerProcess<Vec<Device>> = PerProcess::new();

struct Device(verbs_device);

// SAFETY: devices are never written, and no pointer in them is followed.
unsafe impl Send for Device {}
// SAFETY: as above.
unsafe impl Sync for Device {}

/// The pointers by which programs know the devices, in the order of the list.
pub(crate) fn devices() -> impl Iterator<Item = *mut ibv_device> {
    let own = DEVICES.get().or_else(|| DEVICES.of_parent());
    let devices = own.unwrap_or_else(|| DEVICES.get_or_make(make));
    devices
        .iter()
        .map(|device| from_ref(&device.0.device).cast_mut())
}

fn make() -> Vec<Device> {
    let engine = engine();
    let transport = engine
        .sim
        .devices()
        .map_or(Transport::Ib, |all| all[0].transport);
    let (node_type, transport_type) = match transport {
        Transport::Iwarp => (IBV_NODE_RNIC, IBV_TRANSPORT_IWARP),
        _ => (IBV_NODE_CA, IBV_TRANSPORT_IB),
    };
    let device = |(number, name): (usize, &String)| {
        let [ibdev_path, dev_path] = paths(engine.config, number);
        let device = ibv_device {
            ops: [0; 2],
            node_type,
            transport_type,
            name: text(name),
            dev_name: text(&format!("uverbs{number}")),
            dev_path: text(&dev_path),
            ibdev_path: text(&ibdev_path),
        };
        let of_driver = [0; 8];
        Device(verbs_device { device, of_driver })
    };
    engine
        .config
        .names()
        .iter()
        .enumerate()
        .map(device)
        .collect()
}

/// The position of a device in the list.
pub(super) fn number_of(device: *mut ibv_device) -> Result<usize> {
    devices().position(|of| of == device).ok_or_else(|| {
        let what = "the pointer names no device of ibv_get_device_list";
        Refusal::new(libc::ENODEV, what)
    })
}

/// A list for the program, which frees it. A null pointer ends it. Its length goes to `count` if
/// the program wants to know it.
pub(crate) fn null_terminated<T>(all: &[*mut T], count: *mut c_int) -> Result<*mut *mut T> {
    // SAFETY: the size is above zero. Zero bytes are null pointers, the last of which ends the
    // list.
    let list = unsafe { libc::calloc(all.len() + 1, size_of::<*mut T>()) };
    let list: *mut *mut T = list.cast();
    if list.is_null() {
        return Err(Refusal::by_system("calloc"));
    }
    // SAFETY: there is room for one more than these.
    unsafe { list.copy_from_nonoverlapping(all.as_ptr(), all.len()) };
    if !count.is_null() {
        // SAFETY: the program's, to be written (C's contract).
        unsafe { count.write_unaligned(int(all.len() as u32)) };
    }
    Ok(list)
}

pub(crate) extern "C" fn get_device_list(count: *mut c_int) -> *mut *mut ibv_device {
    pointer("ibv_get_device_list", (), |()| {
        null_terminated(&devices().collect::<Vec<_>>(), count)
    })
}

pub(crate) extern "C" fn get_device_name(device: *mut ibv_device) -> *const c_char {
    pointer("ibv_get_device_name", (), |()| {
        not_null(device)?;
        // Programs also pass structures of their own, so nothing of the structure is read.
        let name = device.wrapping_byte_add(offset_of!(ibv_device, name));
        Ok(name.cast())
    })
}

pub(crate) extern "C" fn get_device_index(device: *mut ibv_device) -> c_int {
    or_minus_one("ibv_get_device_index", (), |()| {
        Ok(number_of(device)? as c_int)
    })
}

/// `ibv_get_device_guid`, in network order.
pub(crate) extern "C" fn get_device_guid(device: *mut ibv_device) -> u64 {
    or_zero("ibv_get_device_guid", (), |()| {
        let number = number_of(device)? as u32;
        Ok(sim().node_guid(number).to_be())
    })
}
