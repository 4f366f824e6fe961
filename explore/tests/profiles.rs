//! Several profiles in one exploration.

use std::sync::Mutex;

use verbs_api::lab::{Fault, PacketFilter};
use verbs_api::owned::{Context, Qp, RecvWr, SendWr};
use verbs_api::profile::Profile;
use verbs_api::{QpType, RcParams, Result};
use verbs_explore::{Exploration, World};
use verbs_faults::Plan;

const PROFILES: [Profile; 3] = [Profile::SPEC, Profile::MLX5, Profile::ADVERSARIAL];

fn exploration() -> Exploration {
    let lossy = vec![Fault::drop(PacketFilter::EVERY).per_million(300_000)];
    Exploration::new("profiles")
        .seeds(0..60)
        .faults(Plan::new(lossy).unwrap())
        .profiles(PROFILES)
}

fn qp(world: &World, device: &str) -> Result<Qp> {
    let pd = Context::open(world.verbs(), device)?.alloc_pd()?;
    let cq = pd.context().cq(4).create()?;
    pd.qp(QpType::Rc, &cq, &cq).create()
}

/// Relies on the length of a completion. On a device of profile `adversarial` that of a failed one
/// means nothing.
fn reads_the_length(world: &World) -> Result<()> {
    let (near, far) = (qp(world, "sim0")?, qp(world, "sim1")?);
    let params = RcParams {
        retry_cnt: 1,
        ..RcParams::default()
    };
    near.connect_rc(&far, &params)?;
    far.post_recv(RecvWr::new(0, &[]))?;
    near.post_send(SendWr::send(0, &[]))?;
    let wc = loop {
        if let Some(wc) = near.send_cq().poll()?.next() {
            break wc;
        }
    };
    assert_eq!(wc.byte_len, 0);
    Ok(())
}

#[test]
fn each_profile_has_its_seeds_and_its_devices() {
    let seen = Mutex::new(Vec::new());
    let explored = exploration().seeds(0..6).run(|world| {
        let profile = world.profile().expect("profiles are set");
        let verbs = world.verbs();
        let vendor = verbs.query_device(verbs.open_device("sim0")?)?.vendor_id;
        seen.lock().unwrap().push((world.seed(), profile, vendor));
        Ok::<_, verbs_api::Error>(())
    });
    assert_eq!(explored.unwrap().tried, 6);
    let mut expected = PROFILES.iter().cycle();
    for (seed, profile, vendor) in seen.into_inner().unwrap() {
        let expected = expected.next().unwrap();
        assert_eq!(&profile, expected, "seed {seed}");
        assert_eq!(vendor, expected.reported.vendor_id);
    }
}

/// The failure of one profile needs two lost packets, and is repeated as long as its seed has that
/// profile.
#[test]
fn a_failure_names_its_profile_and_is_replayed_with_it() {
    let exploration = exploration();
    let harmless = exploration.clone().profiles([Profile::SPEC, Profile::MLX5]);
    assert_eq!(harmless.run(reads_the_length).unwrap().tried, 60);

    let found = exploration.run(reads_the_length).unwrap_err();
    assert_eq!(found.profile, Some(Profile::ADVERSARIAL));
    assert_eq!(found.faults.parts().len(), 2, "{found}");
    let seed = found.seed;
    let line = format!("seed {seed}, profile adversarial, with these faults:\n");
    assert!(found.to_string().contains(&line), "{found}");
    assert_eq!(found.replay.subject, "profiles@adversarial");

    let replay = found.replay.to_string().parse().unwrap();
    for same in [&exploration, &exploration.clone().twice()] {
        let again = same.replay(&replay, reads_the_length).unwrap();
        assert_eq!(again.expect("it fails").to_string(), found.to_string());
    }
    let only = exploration.clone().profiles([Profile::ADVERSARIAL]);
    assert!(only.replay(&replay, reads_the_length).unwrap().is_some());
    for (other, ours) in [
        (
            harmless,
            ["profiles@spec", "profiles@mlx5"][seed as usize % 2],
        ),
        (exploration.profiles([]), "profiles"),
    ] {
        let refused = other.replay(&replay, reads_the_length).unwrap_err();
        let expected = format!("the replay is of subject profiles@adversarial, but this is {ours}");
        assert_eq!(refused.to_string(), expected);
    }
}

#[test]
fn two_runs_of_a_seed_have_the_same_profile() {
    let passes = |world: &World| qp(world, "sim0").map(drop);
    assert_eq!(exploration().twice().run(passes).unwrap().tried, 60);
}
