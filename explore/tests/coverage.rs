//! What an exploration reports of what it has met.

use std::sync::Arc;

use verbs_api::lab::{Fault, PacketFilter};
use verbs_api::owned::{Context, Cq, Pd, Qp, RecvWr, SendWr};
use verbs_api::{Error, QpType, RcParams, Result, Verbs, WcStatus};
use verbs_explore::{Coverage, Exploration, World};
use verbs_faults::Plan;

const MESSAGES: u64 = 20;

struct Side {
    pd: Pd,
    cq: Cq,
}

impl Side {
    fn new(verbs: &Arc<dyn Verbs>, device: &str) -> Result<Self> {
        let pd = Context::open(verbs.clone(), device)?.alloc_pd()?;
        let cq = pd.context().cq(64).create()?;
        Ok(Self { pd, cq })
    }

    fn qp(&self) -> Result<Qp> {
        let qp = self.pd.qp(QpType::Rc, &self.cq, &self.cq);
        qp.max_recv_wr(64).create()
    }
}

/// Sends messages one by one, and connects again after a failure if it `recovers`.
fn sends(world: &World, recovers: bool) -> Result<()> {
    let verbs = world.verbs();
    let (near, far) = (Side::new(&verbs, "sim0")?, Side::new(&verbs, "sim1")?);
    let connect = || {
        let qps = (near.qp()?, far.qp()?);
        qps.0.connect_rc(&qps.1, &RcParams::default())?;
        Ok::<_, Error>(qps)
    };
    let (mut qp, mut peer) = connect()?;
    for number in 0..MESSAGES {
        peer.post_recv(RecvWr::new(number, &[]))?;
        qp.post_send(SendWr::send(number, &[]))?;
        let status = loop {
            if let Some(wc) = near.cq.poll()?.next() {
                break wc.status;
            }
        };
        far.cq.poll()?.for_each(drop);
        match status {
            WcStatus::Success => {}
            _ if recovers => (qp, peer) = connect()?,
            _ => return Ok(()),
        }
    }
    Ok(())
}

fn met(plan: Plan, recovers: bool) -> Coverage {
    let exploration = Exploration::new("coverage").seeds(0..50).faults(plan);
    let explored = exploration.run(|world| sends(world, recovers));
    explored.unwrap()
}

#[test]
fn passed_exploration_names_what_its_faults_have_not_reached() {
    let standard = met(Plan::standard(), true);
    assert_eq!((standard.tried, standard.failed), (50, 0));
    let hints = standard.hints();
    assert!(
        hints.iter().any(|hint| hint.contains("`harsh`")),
        "{hints:?}"
    );

    let harsh = met(Plan::harsh(), true);
    assert!(harsh.failed > 10, "{harsh}");
    assert_eq!(harsh.failed, harsh.reconnected);
    assert_eq!(harsh.hints(), [""; 0], "{harsh}");

    let gives_up = met(Plan::harsh(), false);
    assert_eq!(gives_up.reconnected, 0);
    assert!(
        gives_up
            .to_string()
            .ends_with("connected after one had failed"),
        "{gives_up}"
    );

    let never = Fault::drop(PacketFilter::EVERY).nth(1_000_000);
    let never = met(Plan::new(vec![never]).unwrap(), true).hints();
    assert_eq!(never[0], "rule 1 of the plan never fired");

    assert_eq!(met(Plan::default(), true).hints(), [""; 0]);
}
