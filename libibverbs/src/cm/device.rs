//! The contexts of ids: one for each device, which is never closed.

use std::collections::BTreeMap;
use std::ffi::c_int;
use std::ptr::null_mut;

use verbs_abi::{ibv_context, ibv_pd};
use verbs_api::cm::Cm;
use verbs_api::sync::Mutex;
use verbs_api::{Context, Pd as PdHandle};

use crate::base::per_process::PerProcess;
use crate::c::{CObject, Refusal, Result, pointer};
use crate::engine::unobserved;
use crate::verbs::context;
use crate::verbs::device::{self, null_terminated};
use crate::verbs::domain::{self, Pd};
use crate::verbs::open::{self, command_fd};

/// The context and the protection domain of the ids of a device.
struct OfIds {
    context: *mut ibv_context,
    pd: *mut ibv_pd,
}

// SAFETY: the pointers are those of objects, which any thread may have.
unsafe impl Send for OfIds {}

static DEVICES: PerProcess<Mutex<BTreeMap<Context, OfIds>>> = PerProcess::new();

/// `rdma_get_devices`: the contexts in the order of the device list, with a null pointer at the
/// end.
pub(crate) extern "C" fn get_devices(count: *mut c_int) -> *mut *mut ibv_context {
    pointer("rdma_get_devices", (), |()| {
        let handles = unobserved().cm_devices()?;
        let contexts: Result<Vec<_>> = handles.into_iter().map(context_of_ids).collect();
        null_terminated(&contexts?, count)
    })
}

/// The structure of a context of `cm_devices`.
pub(super) fn context_of_ids(handle: Context) -> Result<*mut ibv_context> {
    let mut devices = DEVICES.get_or_default().lock();
    if let Some(known) = devices.get(&handle) {
        return Ok(known.context);
    }
    let handles = unobserved().cm_devices()?;
    let number = handles.iter().position(|of| *of == handle);
    let device = number.and_then(|number| device::devices().nth(number));
    let device = device.ok_or(Refusal::expected(libc::ENODEV))?;
    let context = open::make(&mut context::open().lock(), device, handle, command_fd)?;
    let pd = null_mut();
    devices.insert(handle, OfIds { context, pd });
    Ok(context)
}

/// The structure of the protection domain of all ids of a device.
pub(super) fn pd_of_ids(context: Context, handle: PdHandle) -> Result<*mut ibv_pd> {
    let seen = context_of_ids(context)?;
    let mut devices = DEVICES.get_or_default().lock();
    let known = devices
        .get_mut(&context)
        .ok_or(Refusal::expected(libc::EIO))?;
    // This is the first id of the device.
    if known.pd.is_null() {
        let raw = || ibv_pd {
            context: seen,
            handle: 0,
        };
        known.pd = CObject::<Pd>::make(handle, domain::More::default(), raw)?.seen();
    }
    Ok(known.pd)
}
