//! `verbsim devices`: devices, their ports, what they can do and how they behave.

use std::fmt::Write;

use serde::Serialize;
use verbs_api::behavior::Knob;
use verbs_api::{Context, Gid, Verbs};
use verbsim::backend::Kind;

use crate::output::{Format, Stop, json, note, print};
use crate::style::{Look, Style};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Which devices to list [default: those of this machine, then those of the simulator]
    #[arg(long, value_enum)]
    backend: Option<Kind>,
    /// How to show them
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
}

#[derive(Serialize)]
struct Device {
    name: String,
    backend: Kind,
    driver: String,
    transport: String,
    /// Why it cannot be opened or asked.
    error: Option<String>,
    capabilities: Vec<String>,
    /// Knob and declared value; `null` if the behavior is not described.
    behavior: Vec<(&'static str, Option<&'static str>)>,
    ports: Vec<Port>,
}

#[derive(Serialize)]
struct Port {
    port: u8,
    state: String,
    link_layer: String,
    /// In bytes.
    active_mtu: Option<u32>,
    gids: Vec<String>,
}

pub(crate) fn execute(args: &Args) -> Result<(), Stop> {
    let kinds = match args.backend {
        Some(kind) => vec![kind],
        None => vec![Kind::Hw, Kind::Sim],
    };
    let mut devices = Vec::new();
    for kind in &kinds {
        devices.extend(of(*kind)?);
    }
    print(&match args.format {
        Format::Json => json(&devices),
        Format::Table => table(&devices, Style::of_stdout()),
    })?;
    for obstacle in kinds.iter().flat_map(|kind| kind.obstacles()) {
        note(format_args!("note: {obstacle}"));
    }
    if devices.iter().any(|device| device.error.is_none()) {
        return Ok(());
    }
    Err(Stop::usage("no RDMA device can be used"))
}

fn of(kind: Kind) -> Result<Vec<Device>, Stop> {
    let Some(verbs) = kind.verbs() else {
        return Ok(Vec::new());
    };
    let listed = verbs
        .devices()
        .map_err(|error| Stop::Usage(error.to_string()))?;
    let devices = listed.into_iter().map(|info| {
        let mut device = Device {
            name: info.name,
            backend: kind,
            driver: info.driver,
            transport: format!("{:?}", info.transport).to_lowercase(),
            error: None,
            capabilities: Vec::new(),
            behavior: Vec::new(),
            ports: Vec::new(),
        };
        device.error = fill(verbs.as_ref(), &mut device)
            .err()
            .map(|error| error.to_string());
        device
    });
    Ok(devices.collect())
}

fn fill(verbs: &dyn Verbs, device: &mut Device) -> verbs_api::Result<()> {
    let context = verbs.open_device(&device.name)?;
    let attr = verbs.query_device(context)?;
    let capabilities = verbs.capabilities(context)?;
    let names = capabilities
        .iter_names()
        .map(|(name, _)| name.to_lowercase());
    device.capabilities = names.collect();
    let declared = verbs.behavior(context)?;
    device.behavior = Knob::ALL
        .iter()
        .map(|knob| (knob.name, declared.get(knob.name)))
        .collect();
    for number in 1..=attr.phys_port_cnt {
        let port = verbs.query_port(context, number)?;
        device.ports.push(Port {
            port: number,
            state: port.state.to_string(),
            link_layer: port.link_layer.to_string(),
            active_mtu: port.active_mtu.bytes(),
            gids: gids(verbs, context, number, port.gid_tbl_len)?,
        });
    }
    verbs.close_device(context)
}

/// The GIDs up to the last that is set: the rest of a table is zero.
fn gids(verbs: &dyn Verbs, context: Context, port: u8, len: u32) -> verbs_api::Result<Vec<String>> {
    let mut gids = Vec::new();
    for index in 0..len {
        gids.push(verbs.query_gid(context, port, index)?);
    }
    let set = gids
        .iter()
        .rposition(|gid| *gid != Gid::default())
        .map_or(0, |last| last + 1);
    Ok(gids[..set].iter().map(Gid::to_string).collect())
}

fn table(devices: &[Device], style: Style) -> String {
    let mut text = String::new();
    for device in devices {
        let title = style.paint(Look::Bold, &device.name);
        writeln!(
            text,
            "{title}  {}, driver {}, {}",
            device.backend, device.driver, device.transport
        )
        .expect("a string");
        if let Some(error) = &device.error {
            writeln!(text, "  {}", style.paint(Look::Red, error)).expect("a string");
            continue;
        }
        for port in &device.ports {
            let Port {
                port: number,
                state,
                link_layer,
                active_mtu,
                gids,
            } = port;
            let mtu = active_mtu.map_or_else(|| "unknown".to_owned(), |bytes| bytes.to_string());
            writeln!(text, "  port {number}  {state}, {link_layer}, MTU {mtu}").expect("a string");
            for (index, gid) in gids.iter().enumerate() {
                writeln!(text, "    GID {index}  {gid}").expect("a string");
            }
        }
        writeln!(text, "  can       {}", device.capabilities.join(" ")).expect("a string");
        let known = device
            .behavior
            .iter()
            .filter_map(|(knob, value)| value.map(|value| format!("{knob}={value}")));
        let known: Vec<_> = known.collect();
        let behavior = if known.is_empty() {
            "not described".into()
        } else {
            known.join(" ")
        };
        writeln!(text, "  behavior  {behavior}").expect("a string");
    }
    text
}
