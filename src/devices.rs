//! `verbsim devices`: devices, their ports, what they can do and how they behave.

use serde::Serialize;
use verbs_api::behavior::{Behavior, Knob};
use verbs_api::{Context, Gid, Verbs};
use verbs_scenarios::asked::ask_in;
use verbsim::backend::Kind;

use crate::output::{Format, Stop, json, note, print};
use crate::style::{Look, Style};
use crate::table::Plain;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Which devices to list [default: those of this machine, then those of the simulator]
    #[arg(long, value_enum)]
    backend: Option<Kind>,
    /// How to show them
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
    /// Show all choices of the behavior, not only those that differ from profile spec
    #[arg(long)]
    verbose: bool,
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
        Format::Table => table(&devices, args.verbose, Style::of_stdout()),
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
    // Nothing that may crash a kernel is asked for a list.
    let says = verbs.capabilities(context)?;
    // A device whose objects are all in use says what it can.
    let asked = ask_in(verbs, context, says, 1, &|_| true);
    let capabilities = asked.map_or(says, |asked| asked.has);
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

fn table(devices: &[Device], verbose: bool, style: Style) -> String {
    let shown = devices.iter().map(|device| shown(device, verbose, style));
    shown.collect()
}

fn shown(device: &Device, verbose: bool, style: Style) -> String {
    let Device {
        backend,
        driver,
        transport,
        ..
    } = device;
    let title = style.paint(Look::Bold, &device.name);
    let title = format!("{title}  {backend}, driver {driver}, {transport}\n");
    if let Some(error) = &device.error {
        return format!("{title}  {}\n", style.paint(Look::Red, error));
    }
    let mut table = Plain::narrow(style);
    let mut row = |name: String, value: &str| {
        table.row([
            style.cell(Look::Plain, format!("{name:<9}")),
            style.cell(Look::Plain, value),
        ]);
    };
    for port in &device.ports {
        let mtu = port.active_mtu.map(|bytes| bytes.to_string());
        let mtu = mtu.as_deref().unwrap_or("unknown");
        let about = format!("{}, {}, MTU {mtu}", port.state, port.link_layer);
        row(format!("port {}", port.port), &about);
        for (index, gid) in port.gids.iter().enumerate() {
            row(format!("  GID {index}"), gid);
        }
    }
    row("can".to_owned(), &device.capabilities.join(" "));
    row("behavior".to_owned(), &behavior(device, verbose));
    title + &table.text_at(2)
}

/// The choices of a device: those that are not `spec`'s, or all.
fn behavior(device: &Device, all: bool) -> String {
    let known = device
        .behavior
        .iter()
        .filter_map(|(knob, value)| Some((*knob, (*value)?)));
    let known: Vec<_> = known.collect();
    let differs = |(knob, value): &&(&str, &str)| all || Behavior::SPEC.get(knob) != Some(value);
    let shown = known.iter().filter(differs);
    let shown: Vec<_> = shown
        .map(|(knob, value)| format!("{knob}={value}"))
        .collect();
    let shown = shown.join(" ");
    let count = known.len();
    match (count, all) {
        (0, _) => "not described".to_owned(),
        (_, true) => shown,
        _ if shown.is_empty() => format!("as spec (--verbose shows its {count} choices)"),
        _ => format!("as spec, except {shown} (--verbose shows all {count} choices)"),
    }
}
