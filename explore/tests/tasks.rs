//! Explorations of async programs, on the executor of the simulator.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use verbs_api::lab::{Fault, PacketFilter, PacketOpcode};
use verbs_api::owned::{Context, Qp, RecvWr, SendWr};
use verbs_api::{Access, Error, QpType, RcParams, Result, Verbs, WcStatus};
use verbs_explore::{Exploration, World};
use verbs_faults::Plan;
use verbs_sim::rt::{self, Order};

fn end(verbs: &Arc<dyn Verbs>, device: &str) -> Result<Qp> {
    let pd = Context::open(verbs.clone(), device)?.alloc_pd()?;
    let channel = pd.context().create_comp_channel()?;
    let cq = pd.context().cq(16).channel(&channel).create()?;
    pd.qp(QpType::Rc, &cq, &cq).create()
}

/// A client whose patience with the server is too short for a message that is sent again, and a
/// second client, which works.
fn impatient(world: &World) -> Result<()> {
    let verbs = world.verbs();
    let pair = || Ok::<_, Error>([end(&verbs, "sim0")?, end(&verbs, "sim1")?]);
    let pairs = [pair()?, pair()?];
    let ended = Cell::new(0);
    rt::block_on(&*verbs, Order::Seed(world.seed()), async |rt| {
        let mut tasks = Vec::new();
        for [near, far] in pairs {
            near.connect_rc(&far, &RcParams::default())?;
            let (times, ended) = (rt.clone(), &ended);
            tasks.push(rt.spawn("client", async move {
                let mr = far.pd().alloc_mr(64, Access::LOCAL_WRITE)?;
                far.post_recv(RecvWr::new(0, &[mr.sge(..)]))?;
                near.post_send(SendWr::send(0, &[]))?;
                let patience = Duration::from_micros(50);
                let arrived = times.timeout(patience, far.recv_cq().next()).await;
                assert!(arrived.is_some(), "no message in time");
                let sent = near.send_cq().next().await?.next();
                assert_eq!(sent.map(|wc| wc.status), Some(WcStatus::Success));
                ended.set(ended.get() + 1);
                Ok::<_, Error>(())
            }));
        }
        for task in tasks {
            task.await?;
        }
        Ok(())
    })?;
    assert_eq!(ended.get(), 2);
    Ok(())
}

/// A run of tasks is one of the seed: it is found, reduced to one fault, and repeated.
#[test]
fn an_async_program_is_explored_and_a_failure_replayed() {
    let plan = |rate| {
        let sends = PacketFilter::EVERY.opcode(PacketOpcode::RcSendOnly);
        Plan::new(vec![Fault::drop(sends).per_million(rate)]).unwrap()
    };
    let exploration = Exploration::new("impatient").seeds(0..200);
    let right = exploration.clone().faults(plan(0)).run(impatient);
    assert_eq!(right.unwrap().tried, 200);

    let exploration = exploration.faults(plan(30_000));
    let found = exploration.run(impatient).unwrap_err();
    assert_eq!(found.faults.parts().len(), 1, "{found:?}");
    let line = format!("panicked at {}:", file!());
    assert!(found.failure.starts_with(&line), "{}", found.failure);
    let named = "task client panicked at 50µs: no message in time";
    assert!(found.failure.ends_with(named), "{}", found.failure);

    let again = exploration.replay(&found.replay, impatient);
    let again = again.unwrap().expect("it fails again");
    assert_eq!(again.failure, found.failure);
    assert!(!again.trace.is_empty() && again.trace == found.trace);
}
