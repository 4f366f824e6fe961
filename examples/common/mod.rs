//! Which devices an example works on.
//!
//! Two devices of the simulator, or those of this machine: `ring` takes their names, the others an
//! address of one.
//!
//! ```sh
//! cargo run --release --example echo
//! cargo run --release --example echo -- 192.168.1.7
//! ```
#![allow(dead_code, reason = "each example uses a part of it")]

use std::env;
use std::error::Error;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use verbs_api::owned::{Cm, CmId, Context, Cq, Mr, Pd, Qp, QpBuilder};
use verbs_api::{Access, QpType, Verbs, Wc, WcStatus};
use verbs_sim::{Mode, Sim, SimConfig};

pub(crate) type Result<T = ()> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// How sides meet, and the address of the server: the argument, or that of the first simulated
/// device.
pub(crate) fn meeting() -> Result<(Cm, IpAddr)> {
    let given = env::args().nth(1);
    let cm = Cm::new(backend(given.is_some())?)?;
    let simulated = Ipv4Addr::new(10, 0, 0, 1);
    let server = given.map_or(Ok(simulated.into()), |given| given.parse())?;
    Ok((cm, server))
}

/// The device of each side: the first two arguments, of which the second may be left out.
pub(crate) fn contexts() -> Result<[Context; 2]> {
    let names: Vec<String> = env::args().skip(1).collect();
    let verbs = backend(!names.is_empty())?;
    let devices = verbs.devices()?;
    let name = |place: usize| {
        let given = names.get(place).or(names.first());
        let there = devices.get(place).or(devices.first());
        given.or(there.map(|device| &device.name))
    };
    let open = |place| {
        let name = name(place).ok_or("there is no RDMA device")?;
        Ok::<_, Box<dyn Error + Send + Sync>>(Context::open(verbs.clone(), name)?)
    };
    Ok([open(0)?, open(1)?])
}

fn backend(named: bool) -> Result<Arc<dyn Verbs>> {
    match named {
        #[cfg(target_os = "linux")]
        true => Ok(Arc::new(verbs_hw::Hw::new())),
        #[cfg(not(target_os = "linux"))]
        true => Err("devices of this machine can be used on Linux alone".into()),
        false => Ok(simulator()),
    }
}

/// Two devices for programs with threads, with the clock of the machine. A mistake that the program
/// makes is a panic at its end.
fn simulator() -> Arc<dyn Verbs> {
    Arc::new(Sim::new(SimConfig::new().mode(Mode::RealTime)).strict())
}

/// One side of a connection: a queue pair with a CQ and some memory of its own.
pub(crate) struct Side {
    pub(crate) qp: Qp,
    pub(crate) cq: Cq,
    pub(crate) mr: Mr,
    pub(crate) pd: Pd,
}

impl Side {
    /// With room for `depth` sends and as many receives, and `bytes` of memory.
    pub(crate) fn new(context: &Context, depth: u32, bytes: usize) -> Result<Self> {
        Self::by(context, QpType::Rc, depth, bytes, |qp| Ok(qp.create()?))
    }

    /// The same, with a queue pair that is made for a request or a route.
    pub(crate) fn of(id: &CmId, qp_type: QpType, depth: u32, bytes: usize) -> Result<Self> {
        Self::by(id.context()?, qp_type, depth, bytes, |qp| {
            Ok(qp.create_for(id)?)
        })
    }

    /// The same, with a queue pair that is made by `create`.
    pub(crate) fn by(
        context: &Context,
        qp_type: QpType,
        depth: u32,
        bytes: usize,
        create: impl FnOnce(QpBuilder<'_>) -> Result<Qp>,
    ) -> Result<Self> {
        let pd = context.alloc_pd()?;
        let channel = context.create_comp_channel()?;
        let cq = context.cq(2 * depth).channel(&channel).create()?;
        let qp = pd.qp(qp_type, &cq, &cq);
        let qp = create(qp.max_send_wr(depth).max_recv_wr(depth))?;
        let mr = pd.alloc_mr(bytes, Access::LOCAL_WRITE | Access::REMOTE_WRITE)?;
        Ok(Self { qp, cq, mr, pd })
    }
}

/// An error for a failed completion.
pub(crate) fn succeeded(wc: &Wc) -> Result {
    match wc.status {
        WcStatus::Success => Ok(()),
        _ => Err(wc.to_string().into()),
    }
}
