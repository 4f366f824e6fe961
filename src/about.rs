//! What a run on a device of a machine was on: the firmware, the place, the versions.

use serde_json::Value;
use verbs_scenarios::report::{GidFacts, Run};

/// Lines about it, each with a title. A simulated device has none: its profile says all.
pub(crate) fn lines(run: &Run) -> Vec<(&'static str, String)> {
    let Some(kernel) = &run.info.kernel else {
        return Vec::new();
    };
    let library = match &run.info.rdma_core {
        Some(version) => format!("rdma-core {version}"),
        None => "a libibverbs without a version".to_owned(),
    };
    let of_device = |name: &str| text(run.facts.device_attr.get(name));
    let of_port = |name: &str| text(run.facts.port_attr.get(name));
    let device = format!(
        "{}, driver {}, firmware {}, vendor {}, part {}, hardware {}",
        run.info.device,
        run.info.driver,
        of_device("fw_ver"),
        hex(run.facts.device_attr.get("vendor_id")),
        of_device("vendor_part_id"),
        of_device("hw_ver"),
    );
    let link = format!(
        "{}, MTU {}, {} {}",
        of_port("link_layer"),
        of_port("active_mtu"),
        of_port("active_width"),
        of_port("active_speed"),
    );
    let port = match &run.facts.gid {
        None => link,
        Some(of) => format!("{}, {link}, {}", of.port, gid(of)),
    };
    let machine = format!("kernel {kernel}, {library}");
    vec![("device", device), ("port", port), ("machine", machine)]
}

/// The same and all attributes, by their names in the JSON.
pub(crate) fn properties(run: &Run) -> Vec<(String, String)> {
    if run.info.kernel.is_none() {
        return Vec::new();
    }
    let about = [
        ("driver", Some(run.info.driver.clone())),
        ("kernel", run.info.kernel.clone()),
        ("rdma_core", run.info.rdma_core.clone()),
        ("gid", run.facts.gid.as_ref().map(gid)),
    ];
    let about = about
        .into_iter()
        .filter_map(|(name, value)| Some((name.to_owned(), value?)));
    let [device, port] = [
        ("device_attr", &run.facts.device_attr),
        ("port_attr", &run.facts.port_attr),
    ]
    .map(|(of, facts)| {
        let named = move |(name, value)| (format!("{of}.{name}"), text(Some(value)));
        facts.iter().map(named)
    });
    about.chain(device).chain(port).collect()
}

fn gid(of: &GidFacts) -> String {
    let format = of.gid_type.as_deref().unwrap_or("of unknown type");
    format!("GID {} {} {format}", of.index, of.gid)
}

/// A number as lists of vendors have it.
fn hex(fact: Option<&Value>) -> String {
    let number = fact.and_then(Value::as_u64);
    number.map_or_else(|| text(None), |number| format!("{number:#06x}"))
}

/// A fact without the quotes of JSON.
fn text(fact: Option<&Value>) -> String {
    match fact {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Null) | None => "unknown".to_owned(),
        Some(other) => other.to_string(),
    }
}
