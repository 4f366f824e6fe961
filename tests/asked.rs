//! What a device has is asked: it says that it has all, and refuses what it lacks.

use std::ops::ControlFlow;

use verbs_api::lab::{Fault, Lab};
use verbs_api::profile::{DeviceLimits, Profile};
use verbs_api::{Capabilities, ErrorKind, Verb, Verbs};
use verbs_scenarios::asked::{ASKED_FOR, MOST_INLINE, ask_in};
use verbs_scenarios::report::{BackendInfo, Entry, Outcome};
use verbs_scenarios::{Asked, Backend, Fixture, Scenario, run, select};
use verbs_sim::{Mode, Sim, SimConfig};
use verbsim::backend::Simulator;

/// Asks a device that says that it has everything. Nothing is left of the questions.
fn ask(config: SimConfig, is_dangerous: &dyn Fn(&str) -> bool) -> Asked {
    let sim = Sim::new(config);
    let context = sim.open_device("sim0").unwrap();
    let before = sim.live(context).unwrap();
    let asked = ask_in(&sim, context, Capabilities::all(), 1, is_dangerous).unwrap();
    assert_eq!(sim.live(context).unwrap(), before);
    sim.close_device(context).unwrap();
    asked
}

fn ask_all(config: SimConfig) -> Asked {
    ask(config, &|_| false)
}

#[test]
fn each_capability_is_found_to_be_there_or_to_be_lacking() {
    let whole = ask_all(SimConfig::new());
    assert_eq!(
        (whole.has, whole.lacks),
        (Capabilities::all(), Capabilities::empty())
    );
    // A simulated device has RC, and only ignores the address of a region if it lacks that.
    for what in ASKED_FOR - Capabilities::RC - Capabilities::REG_MR_IOVA {
        let asked = ask_all(SimConfig::new().lacks(what));
        assert!(asked.lacks.contains(what), "{what}: {asked:?}");
        assert!(!asked.has.intersects(what), "{what}: {asked:?}");
    }
}

#[test]
fn devices_of_all_profiles_lack_what_their_profile_says() {
    for profile in Profile::ALL {
        let asked = ask_all(SimConfig::new().profile(*profile));
        let seen = ASKED_FOR - Capabilities::REG_MR_IOVA;
        assert_eq!(seen - asked.has, profile.lacks & seen, "{profile}");
        assert!(
            profile.lacks.contains(asked.lacks),
            "{profile}: {}",
            asked.lacks
        );
    }
}

#[test]
fn inline_data_is_asked_for_by_powers_of_two() {
    for (most, expected) in [
        (0, 0),
        (1, 1),
        (32, 32),
        (100, 64),
        (MOST_INLINE, MOST_INLINE),
    ] {
        let mut profile = Profile::SPEC;
        profile.limits.max_inline_data = most;
        let asked = ask_all(SimConfig::new().profile(profile));
        assert_eq!(asked.inline_data, expected);
    }
}

/// Not even of a device that lacks it.
#[test]
fn what_crashed_a_kernel_is_not_asked() {
    let resize = Capabilities::SRQ_RESIZE;
    let is_dangerous = |id: &str| id == "srq.resize_below_what_is_posted_is_refused";
    let asked = ask(SimConfig::new().lacks(resize), &is_dangerous);
    assert_eq!(asked.has, Capabilities::all());
}

/// Devices of which nothing is known beforehand, where a call fails once they were asked.
struct Unknown {
    sim: Simulator,
    fault: Option<Fault>,
}

impl Backend for Unknown {
    fn info(&self) -> BackendInfo {
        self.sim.info()
    }

    fn start(&self, threads: bool) -> verbs_api::Result<Fixture> {
        let mode = if threads { Mode::Inline } else { Mode::Stepped };
        let sim = Sim::new(SimConfig::new().profile(self.sim.profile).mode(mode));
        if let Some(fault) = &self.fault {
            sim.inject(fault.clone())?;
        }
        Ok(Fixture::new(Box::new(sim) as Box<dyn Verbs>))
    }

    fn replay(&self, scenario: &Scenario) -> String {
        self.sim.replay(scenario)
    }
}

fn entry(profile: Profile, fault: Option<Fault>, id: &str) -> Entry {
    let sim = Simulator::new(profile, 0);
    let backend = Unknown { sim, fault };
    let run = run(&backend, &select(id), |_| ControlFlow::Continue(())).unwrap();
    run.scenarios.into_iter().next().unwrap()
}

fn limited(lower: impl FnOnce(&mut DeviceLimits)) -> Profile {
    let mut profile = Profile::SPEC;
    lower(&mut profile.limits);
    profile
}

/// The second queue pair is the first of UC that is asked for, and of a pair of RC the other end.
/// The device said that it has RC.
#[test]
fn what_is_refused_when_asked_is_lacking_and_what_is_given_must_be_there() {
    let fault = || Some(Fault::fail(Verb::CreateQp, ErrorKind::NotSupported).nth(2));
    let skipped = entry(
        Profile::SPEC,
        fault(),
        "cq_poll.completions_come_in_posting_order",
    );
    assert_eq!(skipped.outcome, Outcome::Skipped);
    let reason = skipped.reason.unwrap();
    assert!(
        reason.starts_with("needs uc: ibv_create_qp: EOPNOTSUPP"),
        "{reason}"
    );
    let failed = entry(Profile::SPEC, fault(), "cq_poll.empty_cq_gives_zero");
    assert_eq!(failed.outcome, Outcome::Failed);
}

/// The sixth queue pair is the one that is to have batches of flushes.
#[test]
fn flushes_that_cannot_be_posted_and_reach_regions_are_neither_needed_nor_lacking() {
    let fault = || Some(Fault::fail(Verb::CreateQp, ErrorKind::NotSupported).nth(6));
    for (id, expected) in [
        (
            "mpe.region_must_allow_each_type_of_a_flush",
            "needs flush: ibv_create_qp: EOPNOTSUPP",
        ),
        ("lacks.flushes_are_refused", "for devices without flush"),
    ] {
        let skipped = entry(Profile::SPEC, fault(), id);
        assert_eq!(skipped.outcome, Outcome::Skipped, "{id}: {skipped:?}");
        let reason = skipped.reason.unwrap();
        assert!(reason.starts_with(expected), "{id}: {reason}");
    }
}

#[test]
fn more_than_a_limit_is_a_skip_and_no_failure() {
    for (profile, id) in [
        (
            limited(|limits| limits.max_inline_data = 0),
            "sq.inline_data_is_gathered",
        ),
        (
            limited(|limits| limits.max_sge = 1),
            "sq.inline_data_is_gathered",
        ),
        (
            limited(|limits| limits.max_cqe = 16),
            "cq_resize.larger_cq_holds_more_completions",
        ),
    ] {
        let skipped = entry(profile, None, id);
        assert_eq!(skipped.outcome, Outcome::Skipped, "{id}: {skipped:?}");
        let reason = skipped.reason.unwrap();
        assert!(
            reason.starts_with("refused by the device: ibv_"),
            "{id}: {reason}"
        );
    }
}
