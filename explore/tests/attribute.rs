//! Tests with the attribute `verbs_explore::test`.

use std::env;
use std::process::Command;
use std::time::Duration;

use verbs_api::lab::{Fault, FaultGuard};
use verbs_api::owned::{Context, Qp, RecvWr, SendWr};
use verbs_api::{Access, Error, QpType, RcParams, Result, WcStatus};
use verbs_explore::{Executor, REPLAY, World};
use verbs_sim::SimConfig;

#[verbs_explore::test]
fn a_device_opens(world: &World) {
    world.verbs().open_device("sim0").unwrap();
}

#[verbs_explore::test(config = SimConfig::new().nodes(3), seeds = 0..10, faults = none, profiles = [mlx5], strict)]
fn arguments_set_the_exploration(world: &World) -> Result<()> {
    assert!(world.seed() < 10);
    assert_eq!(world.profile().map(|profile| profile.name), Some("mlx5"));
    Context::open(world.verbs(), "sim2").map(drop)
}

#[verbs_explore::test(seeds = 3..4, faults = none, strict)]
#[should_panic(expected = "VS-OBJ")]
fn mistakes_fail_a_strict_test(world: &World) -> Result<()> {
    let context = world.verbs().open_device("sim0")?;
    world.verbs().close_device(context)?;
    let _ = world.verbs().close_device(context);
    Ok(())
}

#[verbs_explore::test(seeds = 7..8)]
#[should_panic(expected = "no such luck\nseed 7, with these faults:\n")]
fn an_error_of_any_type_is_reported(
    _: &World,
) -> std::result::Result<(), Box<dyn std::error::Error>> {
    Err("no such luck".into())
}

/// The names in the generated code are its own.
#[verbs_explore::test(seeds = 0..1)]
async fn world(rt: &World, world: Executor<'_>) {
    world.sleep(Duration::from_secs(1)).await;
    assert_eq!(world.now(), rt.lab().now());
}

#[cfg(any())]
#[verbs_explore::test]
fn what_is_not_compiled_is_not_looked_at(world: &World) -> Nothing {}

fn end(world: &World, device: &str) -> Result<Qp> {
    let pd = Context::open(world.verbs(), device)?.alloc_pd()?;
    let channel = pd.context().create_comp_channel()?;
    let cq = pd.context().cq(16).channel(&channel).create()?;
    pd.qp(QpType::Rc, &cq, &cq).create()
}

/// A server that waits for a message, for as long as the client may repeat it, or less.
async fn serve(world: &World, rt: Executor<'_>, patience: Duration) -> Result<()> {
    let (client, server) = (end(world, "sim0")?, end(world, "sim1")?);
    client.connect_rc(&server, &RcParams::default())?;
    let clock = rt.clone();
    let serving = rt.spawn("server", async move {
        let mr = server.pd().alloc_mr(64, Access::LOCAL_WRITE)?;
        server.post_recv(RecvWr::new(0, &[mr.sge(..)]))?;
        let arrived = clock.timeout(patience, server.recv_cq().next()).await;
        arrived.expect("a message in time")?;
        // It may have to answer again.
        Ok::<_, Error>(server)
    });
    client.post_send(SendWr::send(0, &[]))?;
    let _server = serving.await?;
    let sent = client.send_cq().next().await?.next();
    assert_eq!(sent.map(|wc| wc.status), Some(WcStatus::Success));
    Ok(())
}

#[verbs_explore::test(seeds = 0..100, profiles = [spec, rxe, mlx5, adversarial])]
async fn a_message_arrives(world: &World, rt: Executor<'_>) -> Result<()> {
    serve(world, rt, Duration::from_secs(60)).await
}

#[verbs_explore::test(seeds = 0..20)]
async fn tasks_may_borrow_the_world<'a>(world: &'a World, rt: Executor<'a>) -> Result<()> {
    let clock = rt.clone();
    let cut = rt.spawn("partition", async move {
        let link = FaultGuard::new(world.lab(), Fault::link_down(0));
        clock.sleep(Duration::from_millis(1)).await;
        drop(link);
    });
    serve(world, rt, Duration::from_secs(60)).await?;
    cut.await;
    Ok(())
}

/// Fails if a message is lost, because its repetition is late. Prints a line for each run.
#[verbs_explore::test(profiles = [spec, adversarial])]
#[ignore = "fails: another test runs it"]
async fn planted(world: &World, rt: Executor<'_>) -> Result<()> {
    println!("a run");
    serve(world, rt, Duration::from_micros(50)).await
}

/// Runs the planted failure, or one replay of it. Returns the number of runs, and the report.
fn run_planted(replay: Option<&str>) -> (usize, String) {
    let mut child = Command::new(env::current_exe().unwrap());
    child.args(["planted", "--exact", "--ignored", "--nocapture"]);
    child.env_remove(REPLAY).env("RUST_BACKTRACE", "0");
    let output = child
        .envs(replay.map(|word| (REPLAY, word)))
        .output()
        .unwrap();
    assert!(!output.status.success(), "{output:?}");
    let [runs, report] =
        [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
    // The number of the thread is before it.
    let start = report.find("task server panicked").expect("the failure");
    (runs.matches("a run\n").count(), report[start..].to_owned())
}

#[test]
fn the_report_of_a_failure_has_the_word_that_repeats_it() {
    let (runs, report) = run_planted(None);
    assert!(runs > 2, "{report}");
    assert!(report.contains(": a message in time\n"), "{report}");
    assert!(report.contains(", profile "), "{report}");
    assert_eq!(report.matches("[[rule]]").count(), 1, "{report}");
    let word = report.split_once("VERBSIM_REPLAY=").unwrap().1;
    let word = word.split(' ').next().unwrap();
    assert!(word.contains(":attribute/planted@"), "{word}");
    assert_eq!(run_planted(Some(word)), (1, report.clone()));
}
