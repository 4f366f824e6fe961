//! What a scenario says that it checks is what its assertions name.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use verbs_api::profile::Profile;
use verbsim::backend::Simulator;

/// A row's rules are those that assertions of its scenario name, each on some profile and link
/// layer: a rule that no assertion names is not checked, and one that is named and not in the row
/// is not found.
#[test]
fn each_scenario_claims_the_rules_that_its_assertions_name() {
    let scenarios: Vec<_> = verbs_scenarios::all().collect();
    let mut named = BTreeMap::<_, BTreeSet<_>>::new();
    let places = Profile::ALL.iter().flat_map(|profile| {
        let places = profile.link_layers.iter();
        places.map(move |link_layer| (*profile, *link_layer))
    });
    for (profile, link_layer) in places {
        let backend = Simulator {
            link_layer,
            ..Simulator::new(profile, 0)
        };
        let run =
            verbs_scenarios::run(&backend, &scenarios, |_| ControlFlow::Continue(())).unwrap();
        for entry in run.scenarios {
            named.entry(entry.id).or_default().extend(entry.named);
        }
    }
    let mut wrong = Vec::new();
    for scenario in scenarios {
        let claimed = BTreeSet::from_iter(scenario.rules.iter().copied());
        let named = &named[scenario.id];
        for rule in claimed.difference(named) {
            wrong.push(format!("{}: no assertion names {rule}", scenario.id));
        }
        for rule in named.difference(&claimed) {
            wrong.push(format!("{}: its row lacks {rule}", scenario.id));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
