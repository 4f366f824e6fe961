//! Hosts that crash and start again, under the invariants and the standard faults.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use verbs_api::cm::{ConnParam, PortSpace};
use verbs_api::owned::{Cm, Cq, Listener, RecvWr, SendWr};
use verbs_api::{Error, QpType, Result, Verbs};
use verbs_explore::{Exploration, World};
use verbs_sim::Suppressions;
use verbs_sim::rt::{self, Executor, Order};

const SERVER: ([u8; 4], u16) = ([10, 0, 1, 1], 7471);
const MESSAGES: usize = 8;
const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);

/// A client sends messages, and connects again whenever its connection breaks. The server crashes
/// at some time.
fn client_gets_through(world: &World) -> Result<()> {
    let verbs = world.verbs();
    let order = Order::Seed(world.seed());
    rt::block_on(&*verbs, order, async |rt| {
        let server = || Ok::<_, Error>(serve(rt.clone(), world.lab().host("sim1")?));
        let serving = rt.spawn("server", server()?);
        let client = world.lab().host("sim0")?;
        let sending = rt.spawn("client", send_all(rt.clone(), client));
        rt.sleep(MS * (world.seed() % 40) as u32 / 4).await;
        world.lab().crash("sim1")?;
        serving.abort();
        rt.sleep(5 * MS).await;
        world.lab().restart("sim1")?;
        drop(rt.spawn("server", server()?));
        sending.await
    })
}

async fn serve(rt: Executor<'_>, host: Arc<dyn Verbs>) -> Result<()> {
    let cm = Cm::new(host)?;
    let listener = Listener::bind(&cm, PortSpace::Tcp, SocketAddr::from(SERVER))?;
    loop {
        // A client that fails may be silent, and comes again.
        let _ = rt.timeout(SECOND, serve_one(&listener)).await;
    }
}

async fn serve_one(listener: &Listener) -> Result<()> {
    let request = listener.next_request().await?;
    let pd = request.context()?.alloc_pd()?;
    let channel = request.context()?.create_comp_channel()?;
    let cq = request
        .context()?
        .cq(MESSAGES as u32)
        .channel(&channel)
        .create()?;
    let qp = pd.qp(QpType::Rc, &cq, &cq).create_for(&request)?;
    let receives = [const { RecvWr::new(0, &[]) }; MESSAGES];
    qp.post_recv(receives)?;
    let connection = request.accept(&ConnParam::default())?;
    connection.until_established().await?;
    for _ in 0..MESSAGES {
        check(&cq).await?;
    }
    connection.until_disconnected().await.map(drop)
}

async fn send_all(rt: Executor<'_>, host: Arc<dyn Verbs>) -> Result<()> {
    let cm = Cm::new(host)?;
    for _ in 0..100 {
        if send_some(&cm).await.is_ok() {
            return Ok(());
        }
        rt.sleep(MS).await;
    }
    panic!("the client never got through")
}

async fn send_some(cm: &Cm) -> Result<()> {
    let mut resolving = cm
        .route(PortSpace::Tcp, SocketAddr::from(SERVER))
        .resolve()?;
    let route = resolving.until_resolved().await?;
    let pd = route.context()?.alloc_pd()?;
    let channel = route.context()?.create_comp_channel()?;
    let cq = route.context()?.cq(4).channel(&channel).create()?;
    let qp = pd.qp(QpType::Rc, &cq, &cq).create_for(&route)?;
    let connection = route.connect(&ConnParam::default())?;
    connection.until_established().await?;
    for number in 0..MESSAGES {
        qp.post_send(SendWr::send(number as u64, &[]))?;
        check(&cq).await?;
    }
    connection.disconnect()
}

/// Waits for a completion, which must be a success.
async fn check(cq: &Cq) -> Result<()> {
    for wc in cq.next().await? {
        wc.ok()?;
    }
    Ok(())
}

#[test]
fn client_of_a_server_that_crashes_gets_through_and_no_invariant_breaks() {
    // A client may give up before the server knows that it is connected.
    let allowed = Suppressions::parse("VS-CQ-03").unwrap();
    let exploration = Exploration::new("hosts").strict(allowed).seeds(0..200);
    if let Err(found) = exploration.run(client_gets_through) {
        panic!("{found}");
    }
}
