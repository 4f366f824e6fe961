//! Explored under faults, a program that recovers passes as strict, and one that is wrong does not.

use std::sync::Arc;

use verbs_api::owned::{Context, Cq, Mr, Pd, Qp, SendWr};
use verbs_api::{Access, QpType, RcParams, Result, Verbs, WcStatus};
use verbs_explore::{Exploration, World};
use verbs_sim::Suppressions;

const BYTES: usize = 8;

/// A client writes numbers into the memory of a server, over a new connection after each failure.
struct Writer {
    client: Side,
    server: Side,
    /// It names the memory that the server had when the program began, though each connection has
    /// its own.
    keeps_key: bool,
    /// How many connections have failed.
    failed: u64,
}

/// A connection, and the memory that the server has for it.
struct Link {
    qp: Qp,
    _peer: Qp,
    target: Mr,
}

struct Side {
    pd: Pd,
    cq: Cq,
}

impl Side {
    fn new(verbs: &Arc<dyn Verbs>, device: &str) -> Result<Self> {
        let pd = Context::open(verbs.clone(), device)?.alloc_pd()?;
        let cq = pd.context().cq(16).create()?;
        Ok(Self { pd, cq })
    }

    fn memory(&self) -> Result<Mr> {
        self.pd.alloc_mr(BYTES, Access::ALL_RDMA)
    }
}

impl Writer {
    fn write(&mut self, numbers: u64) -> Result<()> {
        let source = self.client.memory()?;
        let mut link = self.connect()?;
        let first = link.target.remote(0);
        let mut number = 0;
        while number < numbers {
            let fresh = link.target.remote(0);
            let remote = if self.keeps_key { first } else { fresh };
            let list = [source.sge(..)];
            link.qp
                .post_send(SendWr::rdma_write(number, &list, remote))?;
            let status = loop {
                if let Some(wc) = self.client.cq.poll()?.next() {
                    break wc.status;
                }
            };
            if status == WcStatus::Success {
                number += 1;
            } else {
                self.failed += 1;
                link = self.connect()?;
                // It would be refused forever.
                if status == WcStatus::RemAccessErr {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// No retry, so that connections fail.
    fn connect(&self) -> Result<Link> {
        let side = |side: &Side| side.pd.qp(QpType::Rc, &side.cq, &side.cq).create();
        let (qp, peer) = (side(&self.client)?, side(&self.server)?);
        let params = RcParams {
            retry_cnt: 0,
            ..RcParams::default()
        };
        qp.connect_rc(&peer, &params)?;
        let target = self.server.memory()?;
        Ok(Link {
            qp,
            _peer: peer,
            target,
        })
    }
}

fn writes(world: &World, keeps_key: bool) -> Result<u64> {
    let verbs = world.verbs();
    let mut writer = Writer {
        client: Side::new(&verbs, "sim0")?,
        server: Side::new(&verbs, "sim1")?,
        keeps_key,
        failed: 0,
    };
    writer.write(20)?;
    Ok(writer.failed)
}

fn exploration(name: &str) -> Exploration {
    Exploration::new(name)
        .seeds(0..200)
        .strict(Suppressions::default())
}

#[test]
fn a_program_that_recovers_passes_as_strict_under_faults() {
    let failed = std::sync::atomic::AtomicU64::new(0);
    let explored = exploration("recovers").run(|world| {
        let count = writes(world, false)?;
        failed.fetch_add(count, std::sync::atomic::Ordering::Relaxed);
        Ok::<_, verbs_api::Error>(())
    });
    assert_eq!(
        explored.unwrap_or_else(|found| panic!("{found}")).tried,
        200
    );
    let failed = failed.into_inner();
    assert!(failed > 10, "{failed} connections failed");
}

/// RDMA-05: the key of deregistered memory. A run is as another: it fails again with the same
/// words.
#[test]
fn a_program_with_a_stale_key_fails_as_strict_under_faults() {
    let run = || {
        let found = exploration("stale_key").run(|world| writes(world, true).map(drop));
        found.expect_err("the key is stale").failure.to_string()
    };
    let failure = run();
    assert!(
        failure.starts_with("the program made mistakes:\nsim0: VS-MR-02: "),
        "{failure}"
    );
    assert!(!failure.contains("VS-LAB-01"), "hints pass: {failure}");
    assert_eq!(run(), failure);
}

/// The same entries as elsewhere.
#[test]
fn what_is_allowed_passes_an_exploration() {
    let allowed = Suppressions::parse("VS-MR-02\nVS-KEY-01").unwrap();
    let exploration = exploration("allowed").strict(allowed);
    let explored = exploration.run(|world| writes(world, true).map(drop));
    assert_eq!(
        explored.unwrap_or_else(|found| panic!("{found}")).tried,
        200
    );
}
