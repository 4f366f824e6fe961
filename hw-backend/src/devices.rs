//! The devices of this machine.

use std::ffi::CStr;
use std::fs;
use std::path::Path;

use verbs_abi::library::{self, Unopened};
use verbs_abi::{IBV_TRANSPORT_IWARP, ibv_context, ibv_device, slice};
use verbs_api::{Cause, DeviceInfo, Error, ErrorKind, Result, Transport, Verb};

use crate::errno::made;
use crate::objects::Device;
use crate::owner::Owned;
use crate::reactor::Source;

/// The devices of this machine, by name.
pub(crate) fn list() -> Result<Vec<DeviceInfo>> {
    with_list(Verb::GetDeviceList, |devices| {
        // SAFETY: the list is not freed before `with_list` returns.
        Ok(devices
            .iter()
            .map(|device| unsafe { info(*device) })
            .collect())
    })
}

/// Opens a device.
pub(crate) fn open(name: &str, only: Option<&[String]>) -> Result<Device> {
    let verb = Verb::OpenDevice;
    with_list(verb, |devices| {
        // SAFETY: the list is not freed before `with_list` returns.
        let infos: Vec<DeviceInfo> = devices
            .iter()
            .map(|device| unsafe { info(*device) })
            .collect();
        let is_listed = |info: &DeviceInfo| only.is_none_or(|only| only.contains(&info.name));
        let is_it = |info: &DeviceInfo| info.name == name && is_listed(info);
        let Some(at) = infos.iter().position(is_it) else {
            let listed = infos.iter().filter(|info| is_listed(info));
            let names: Vec<&str> = listed.map(|info| info.name.as_str()).collect();
            let there_are = if names.is_empty() {
                "there is none".into()
            } else {
                names.join(", ")
            };
            let text = format!("no device is called {name}: {there_are}");
            return Err(Error::new(
                verb,
                ErrorKind::NoDevice,
                Cause::Text(text.into()),
            ));
        };
        // SAFETY: an entry of a list that has not been freed.
        let context = made(verb, || unsafe { library::ibv_open_device(devices[at]) })?;
        // SAFETY: just opened, and ours.
        Ok(unsafe { device(Owned::new(context), context) })
    })
}

/// The device of a context that another library has opened.
///
/// # Safety
/// The context stays open.
pub(crate) unsafe fn borrowed(context: *mut ibv_context) -> Device {
    // SAFETY: the caller's promise.
    unsafe { device(Owned::borrowed(context), context) }
}

/// # Safety
/// `context` is open.
unsafe fn device(raw: Owned<ibv_context>, context: *mut ibv_context) -> Device {
    // SAFETY: the caller's promise. A context has a device.
    let (device, num_comp_vectors) = unsafe { ((*context).device, (*context).num_comp_vectors) };
    // SAFETY: as above; the library keeps the device of an open context.
    let (info, simulated) = unsafe { (info(device), profile(device).is_some()) };
    Device {
        raw,
        name: info.name,
        driver: info.driver,
        simulated,
        transport: info.transport,
        num_comp_vectors: u32::try_from(num_comp_vectors).unwrap_or(0),
        events: Source::default(),
    }
}

fn with_list<R>(verb: Verb, work: impl FnOnce(&[*mut ibv_device]) -> Result<R>) -> Result<R> {
    match library::open_libibverbs() {
        Ok(()) => {}
        // `obstacles` reports why there are none.
        Err(Unopened::Absent(_)) => return work(&[]),
        Err(wrong) => {
            let cause = Cause::Text(wrong.to_string().into());
            return Err(Error::new(verb, ErrorKind::NoDevice, cause));
        }
    }
    let mut count = 0;
    // SAFETY: the count is ours to write.
    let list = match made(verb, || unsafe { library::ibv_get_device_list(&mut count) }) {
        // The kernel has no RDMA, so there are no devices.
        Err(error) if error.kind() == ErrorKind::NotImplemented => return work(&[]),
        list => list?,
    };
    // SAFETY: the library returned this number of entries.
    let devices = unsafe { slice(list, usize::try_from(count).unwrap_or(0)) };
    let result = work(devices.unwrap_or_default());
    // SAFETY: the list came from `ibv_get_device_list` and is not used any more.
    unsafe { library::ibv_free_device_list(list) };
    result
}

/// # Safety
/// `device` is an entry of a device list that has not been freed.
unsafe fn info(device: *mut ibv_device) -> DeviceInfo {
    // SAFETY: the caller's promise.
    let (name, transport) = unsafe { (name_of(device), (*device).transport_type) };
    // SAFETY: the caller's promise.
    let driver = unsafe { profile(device) }.unwrap_or_else(|| driver(&name));
    let transport = if transport == IBV_TRANSPORT_IWARP {
        Transport::Iwarp
    } else {
        Transport::Ib
    };
    DeviceInfo::new(name, driver, transport)
}

/// Whether a device is simulated, because the drop-in is loaded as libibverbs. Without a name,
/// whether any device is.
pub fn is_simulated(name: Option<&str>) -> bool {
    let found = with_list(Verb::GetDeviceList, |devices| {
        Ok(devices.iter().any(|device| {
            // SAFETY: the list is not freed before `with_list` returns.
            let (found, profile) = unsafe { (name_of(*device), profile(*device)) };
            profile.is_some() && name.is_none_or(|name| name == found)
        }))
    });
    found.unwrap_or(false)
}

/// The profile of a simulated device, which is the last part of its path. It is used as the name of
/// its driver.
///
/// # Safety
/// `device` is an entry of a device list that has not been freed.
unsafe fn profile(device: *mut ibv_device) -> Option<String> {
    // SAFETY: the caller's promise. The path ends with 0.
    let path = unsafe { CStr::from_ptr((*device).ibdev_path.as_ptr()) }.to_string_lossy();
    let (_, rest) = path.split_once("/sys/devices/virtual/verbsim/")?;
    let (profile, _) = rest.split_once('/')?;
    Some(profile.to_owned())
}

/// The driver of a device: the kernel module of its parent, or the description of a software
/// device.
fn driver(name: &str) -> String {
    let dir = Path::new("/sys/class/infiniband").join(name);
    let module = fs::canonicalize(dir.join("device/driver")).ok();
    let module = module
        .as_deref()
        .and_then(Path::file_name)
        .map(|name| name.to_string_lossy());
    if let Some(module) = module {
        return module
            .trim_end_matches("_core")
            .trim_end_matches("_ib")
            .to_owned();
    }
    let desc = fs::read_to_string(dir.join("node_desc")).unwrap_or_default();
    match desc.trim() {
        "rxe" => "rxe".to_owned(),
        "Software iWARP stack" => "siw".to_owned(),
        _ => "unknown".to_owned(),
    }
}

/// The version of the kernel.
pub fn kernel() -> String {
    rustix::system::uname()
        .release()
        .to_string_lossy()
        .into_owned()
}

/// The version of rdma-core, such as `44.0`, that the open libibverbs has in the name of its file;
/// `None` if it is not of rdma-core.
pub fn rdma_core() -> Option<String> {
    let file = library::file_of_libibverbs()?;
    version(file.file_name()?.to_str()?).map(str::to_owned)
}

/// Two numbers of the interface come first.
fn version(file: &str) -> Option<&str> {
    let numbers = file.strip_prefix("libibverbs.so.")?;
    numbers.splitn(3, '.').nth(2)
}

/// The name of a device in C.
///
/// # Safety
/// `device` is an entry of a device list that has not been freed.
unsafe fn name_of(device: *mut ibv_device) -> String {
    // SAFETY: the caller's promise. The name ends with 0.
    unsafe { CStr::from_ptr(library::ibv_get_device_name(device)) }
        .to_string_lossy()
        .into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_rdma_core_has_its_version() {
        for (file, found) in [
            ("libibverbs.so.1.14.44.0", Some("44.0")),
            ("libibverbs.so.1.15.61.0", Some("61.0")),
            ("libibverbs.so.1", None),
            ("libverbsim_ibverbs.so", None),
        ] {
            assert_eq!(version(file), found, "{file}");
        }
        if library::open_libibverbs().is_ok() {
            let file = library::file_of_libibverbs().expect("it is open");
            assert!(file.is_file(), "{}", file.display());
        }
    }
}
