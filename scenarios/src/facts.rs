//! What a device says of itself, for the report.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Value, json};
use verbs_api::profile::DeviceLimits;
use verbs_api::{Context, DeviceAttrEx, Mtu, PortAttr, Result, Verbs};

use crate::place::Place;
use crate::runner::Backend;

/// What the device of a run says of itself and of the place where the suite works. Nothing that a
/// call refuses to say is here: scenarios judge the calls.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Facts {
    /// The attributes of the device (`ibv_query_device_ex`), by their names.
    pub device_attr: BTreeMap<&'static str, Value>,
    /// The attributes of the port (`ibv_query_port`), by their names.
    pub port_attr: BTreeMap<&'static str, Value>,
    /// The GID.
    pub gid: Option<GidFacts>,
}

/// The GID that a suite uses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct GidFacts {
    /// The port that has it, from 1.
    pub port: u8,
    /// Its index in the table of the port.
    pub index: u8,
    /// The GID, as an address of IPv6.
    pub gid: String,
    /// The format of packets to it: `IB`, `ROCE_V1` or `ROCE_V2`. `None` if the library is too old
    /// to say.
    pub gid_type: Option<String>,
}

impl Facts {
    /// Asks the first device of a backend, which is the one that the suite judges.
    ///
    /// # Errors
    /// If the backend cannot start, or the device cannot be opened.
    pub fn of(backend: &dyn Backend) -> Result<Self> {
        let (fixture, place) = (backend.start(false)?, backend.place());
        let verbs = fixture.verbs();
        let Some(first) = verbs.devices()?.into_iter().next() else {
            return Ok(Self::default());
        };
        let context = verbs.open_device(&first.name)?;
        let port = verbs.query_port(context, place.port_num);
        let facts = Self {
            device_attr: device_attr(verbs, context).map_or_else(|_| BTreeMap::new(), device),
            port_attr: port.map_or_else(|_| BTreeMap::new(), port_facts),
            gid: gid(verbs, context, place),
        };
        verbs.close_device(context)?;
        Ok(facts)
    }
}

/// Old libraries have only the attributes of old devices.
fn device_attr(verbs: &dyn Verbs, context: Context) -> Result<DeviceAttrEx> {
    verbs.query_device_ex(context).or_else(|_| {
        let mut attr = DeviceAttrEx::default();
        attr.orig_attr = verbs.query_device(context)?;
        Ok(attr)
    })
}

fn device(attr: DeviceAttrEx) -> BTreeMap<&'static str, Value> {
    let of = &attr.orig_attr;
    let odp = &attr.odp;
    let mut facts = BTreeMap::from([
        ("fw_ver", json!(of.fw_ver)),
        ("node_guid", json!(format!("{:#018x}", of.node_guid))),
        ("vendor_id", json!(of.vendor_id)),
        ("vendor_part_id", json!(of.vendor_part_id)),
        ("hw_ver", json!(of.hw_ver)),
        ("phys_port_cnt", json!(of.phys_port_cnt)),
        ("mem_window", json!(of.mem_window)),
        ("mem_window_type_2b", json!(of.mem_window_type_2b)),
        ("xrc", json!(of.xrc)),
        ("atomic_cap", json!(of.atomic_cap.to_string())),
        ("flush_global", json!(attr.flush_global)),
        ("flush_persistent", json!(attr.flush_persistent)),
        ("atomic_write", json!(attr.atomic_write)),
        ("hca_core_clock", json!(attr.hca_core_clock)),
        ("max_dm_size", json!(attr.max_dm_size)),
        ("max_cq_count", json!(attr.cq_moderation.cq_count)),
        ("max_cq_period", json!(attr.cq_moderation.cq_period)),
        ("max_tso", json!(attr.tso_caps.max_tso)),
        ("odp_general", json!(odp.general.bits())),
        ("odp_rc", json!(odp.rc.bits())),
        ("odp_uc", json!(odp.uc.bits())),
        ("odp_ud", json!(odp.ud.bits())),
        ("odp_xrc", json!(odp.xrc.bits())),
    ]);
    let timestamp = format!("{:#x}", attr.completion_timestamp_mask);
    facts.insert("completion_timestamp_mask", json!(timestamp));
    facts.extend(
        DeviceLimits::of(of)
            .iter()
            .map(|(name, limit)| (name, json!(limit))),
    );
    facts
}

fn port_facts(attr: PortAttr) -> BTreeMap<&'static str, Value> {
    let bytes = |mtu: Mtu| json!(mtu.bytes());
    BTreeMap::from([
        ("state", json!(attr.state.to_string())),
        ("max_mtu", bytes(attr.max_mtu)),
        ("active_mtu", bytes(attr.active_mtu)),
        ("active_width", json!(attr.active_width.to_string())),
        ("active_speed", json!(attr.active_speed.to_string())),
        ("gid_tbl_len", json!(attr.gid_tbl_len)),
        ("pkey_tbl_len", json!(attr.pkey_tbl_len)),
        ("max_msg_sz", json!(attr.max_msg_sz)),
        ("lid", json!(attr.lid)),
        ("sm_lid", json!(attr.sm_lid)),
        ("lmc", json!(attr.lmc)),
        ("link_layer", json!(attr.link_layer.to_string())),
        ("grh_required", json!(attr.grh_required)),
        ("bad_pkey_cntr", json!(attr.bad_pkey_cntr)),
        ("qkey_viol_cntr", json!(attr.qkey_viol_cntr)),
    ])
}

fn gid(verbs: &dyn Verbs, context: Context, place: Place) -> Option<GidFacts> {
    let (port, index) = (place.port_num, place.sgid_index);
    let gid = verbs.query_gid(context, port, index.into()).ok()?;
    let entry = verbs.query_gid_ex(context, port, index.into());
    Some(GidFacts {
        port,
        index,
        gid: gid.to_string(),
        gid_type: entry.ok().map(|entry| entry.gid_type.to_string()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The names of the fields of a type, as its `Debug` has them.
    fn fields(debug: &str) -> Vec<&str> {
        let words = debug.split([' ', '{', ',']);
        words.filter_map(|word| word.strip_suffix(':')).collect()
    }

    #[test]
    fn each_attribute_is_a_fact() {
        let attr = DeviceAttrEx::default();
        let of = format!("{:?}", attr.orig_attr);
        let facts = device(attr.clone());
        for field in fields(&of) {
            assert!(facts.contains_key(field), "device_attr.{field}");
        }
        let facts = port_facts(PortAttr::default());
        for field in fields(&format!("{:?}", PortAttr::default())) {
            assert!(facts.contains_key(field), "port_attr.{field}");
        }
    }
}
