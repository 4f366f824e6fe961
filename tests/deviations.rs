//! A recorded deviation hides no more than it names.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use verbs_api::profile::Profile;
use verbs_scenarios::deviations;
use verbs_scenarios::report::Run;
use verbsim::backend::Simulator;

/// The suite on each profile. Its scenarios do not fail: `conformance` looks.
fn runs() -> impl Iterator<Item = (Profile, Run)> {
    let scenarios: Vec<_> = verbs_scenarios::all().collect();
    Profile::ALL.iter().map(move |profile| {
        let backend = Simulator::new(*profile, 0);
        let run =
            verbs_scenarios::run(&backend, &scenarios, |_| ControlFlow::Continue(())).unwrap();
        (*profile, run)
    })
}

/// Rules that nothing judges on a profile, since deviations are in the way.
const UNJUDGED: &[(&str, &str)] = &[
    // No region of it has other addresses than its memory.
    ("siw", "MR-21"),
    // A queue pair that is destroyed is not silent: it ends the connection.
    ("siw", "TMR-02"),
    // What a listener does not take is refused within the call, which ends the scenario.
    ("siw", "CM-26"),
];

/// Each deviation shows, even along with others of its scenario. If a deviation ends a scenario, no
/// rule is left without an assertion: another scenario judges it on the same profile.
#[test]
fn each_deviation_shows_and_hides_no_rule() {
    let mut wrong = Vec::new();
    for (profile, run) in runs() {
        let known = deviations::of_profile(profile.name);
        let judged: BTreeSet<_> = run
            .scenarios
            .iter()
            .flat_map(|entry| &entry.named)
            .collect();
        for entry in &run.scenarios {
            let id = entry.id;
            let is_hidden = |rule: &&&str| {
                !judged.contains(*rule) && !UNJUDGED.contains(&(profile.name, **rule))
            };
            let hidden = entry.rules.iter().filter(is_hidden);
            if entry.ended_by.is_some() {
                wrong.extend(hidden.map(|rule| format!("{profile}: {id}: nothing judges {rule}")));
            }
            let failures: Vec<_> = entry.noted.iter().chain(&entry.ended_by).collect();
            for deviation in known.iter().filter(|of| of.is_of(id) && !of.sometimes) {
                let mut failures = failures.iter();
                if !failures.any(|failure| deviation.explains(failure.rule, &failure.seen)) {
                    wrong.push(format!(
                        "{profile}: {id}: no failure is {}",
                        deviation.symptom
                    ));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
