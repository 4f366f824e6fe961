//! The capabilities and the declared behavior of devices.

use verbs_abi::{
    IBV_DEVICE_AUTO_PATH_MIG, IBV_DEVICE_MEM_WINDOW, IBV_DEVICE_MEM_WINDOW_TYPE_2B,
    IBV_DEVICE_SRQ_RESIZE, IBV_DEVICE_XRC, ibv_device_attr,
};
use verbs_api::behavior::Declared;
use verbs_api::profile::Profile;
use verbs_api::{AtomicCap, Capabilities, DeviceAttrEx, OdpGeneral, Transport};

use crate::cm::objects::is_here;
use crate::objects::Device;

/// Capabilities by transport and attributes. What they do not tell, such as whether there are null
/// regions, is among them: the device must be asked.
pub(crate) fn capabilities(
    device: &Device,
    attr: &ibv_device_attr,
    newer: &DeviceAttrEx,
) -> Capabilities {
    // Segmented sends need a header, which the trait does not have.
    let mut all = Capabilities::all() - Capabilities::LAB - Capabilities::TSO;
    if device.num_comp_vectors < 2 {
        all -= Capabilities::COMP_VECTORS;
    }
    if attr.max_srq <= 0 {
        all -= Capabilities::SRQ;
    }
    if attr.device_cap_flags & IBV_DEVICE_XRC == 0 {
        all -= Capabilities::XRC;
    }
    if attr.device_cap_flags & IBV_DEVICE_SRQ_RESIZE == 0 {
        all -= Capabilities::SRQ_RESIZE;
    }
    if device.transport == Transport::Iwarp {
        all -= Capabilities::IWARP_LACKS;
    }
    if AtomicCap::from(attr.atomic_cap) == AtomicCap::None {
        all -= Capabilities::ATOMICS;
    }
    if attr.device_cap_flags & IBV_DEVICE_MEM_WINDOW == 0 {
        all -= Capabilities::MW_TYPE_1;
    }
    if attr.device_cap_flags & IBV_DEVICE_MEM_WINDOW_TYPE_2B == 0 {
        all -= Capabilities::MW_TYPE_2;
    }
    if !newer.odp.general.contains(OdpGeneral::SUPPORT) {
        all -= Capabilities::ODP;
    }
    if !newer.odp.general.contains(OdpGeneral::IMPLICIT) {
        all -= Capabilities::ODP_IMPLICIT;
    }
    if attr.max_mcast_grp == 0 {
        all -= Capabilities::MCAST;
    }
    if !is_here() {
        all -= Capabilities::CM;
    }
    if newer.max_dm_size == 0 {
        all -= Capabilities::DEVICE_MEMORY;
    }
    if !newer.flush_global && !newer.flush_persistent {
        all -= Capabilities::FLUSH;
    }
    if !newer.atomic_write {
        all -= Capabilities::ATOMIC_WRITE;
    }
    if attr.device_cap_flags & IBV_DEVICE_AUTO_PATH_MIG == 0 {
        all -= Capabilities::PATH_MIG;
    }
    // What these two claim or accept, and lack, shows with traffic alone.
    match device.driver.as_str() {
        "rxe" => all - Capabilities::PATH_MIG,
        // It ignores the address.
        "siw" => all - Capabilities::REG_MR_IOVA,
        _ => all,
    }
}

/// The behavior of a driver. Without a profile nothing is known.
pub(crate) fn behavior(driver: &str) -> Declared {
    Profile::named(driver).map_or_else(|_| Declared::default(), |profile| profile.behavior.into())
}
