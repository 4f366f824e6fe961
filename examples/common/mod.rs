//! Which devices an example works on.
//!
//! Two devices of the simulator, or devices of this machine:
//!
//! ```sh
//! cargo run --release --example echo
//! cargo run --release --example echo -- rxe0
//! ```
#![allow(dead_code, reason = "each example uses a part of it")]

use std::env;
use std::error::Error;
use std::sync::Arc;

use verbs_api::owned::{Context, Cq, Mr, Pd, Qp};
use verbs_api::{Access, QpType, Verbs, Wc, WcStatus};
use verbs_sim::{Mode, Sim, SimConfig};

pub(crate) type Result<T = ()> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

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

/// Two devices for programs with threads, with the clock of the machine.
fn simulator() -> Arc<dyn Verbs> {
    Arc::new(Sim::new(SimConfig::new().mode(Mode::RealTime)))
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
    pub(crate) fn new(
        context: &Context,
        qp_type: QpType,
        depth: u32,
        bytes: usize,
    ) -> Result<Self> {
        let pd = context.alloc_pd()?;
        let channel = context.create_comp_channel()?;
        let cq = context.cq(2 * depth).channel(&channel).create()?;
        let qp = pd.qp(qp_type, &cq, &cq);
        let qp = qp.max_send_wr(depth).max_recv_wr(depth).create()?;
        let mr = pd.alloc_mr(bytes, Access::LOCAL_WRITE | Access::REMOTE_WRITE)?;
        Ok(Self { qp, cq, mr, pd })
    }
}

/// An error for a completion that is none of a success.
pub(crate) fn succeeded(wc: &Wc) -> Result {
    match wc.status {
        WcStatus::Success => Ok(()),
        _ => Err(wc.to_string().into()),
    }
}
