//! The library of event loops: the checker accepts every right one and no wrong one.

use std::collections::BTreeSet;

use verbs_models::library::{Model, Verdict, models};
use verbs_models::{CHECKER, Checker};

/// What is wrong with the verdict of the checker on a model.
fn complaint(model: &Model) -> Option<String> {
    let started = std::time::Instant::now();
    let report = model.search.clone().run(model.body);
    println!(
        "{:55} {:>8} {:>9.1?} {}",
        model.id,
        report.executions,
        started.elapsed(),
        report.coverage
    );
    match (model.verdict, &report.counterexample) {
        (Verdict::Holds, _) if report.holds() => None,
        (Verdict::Holds, _) => Some(format!("is right, but: {report}")),
        (Verdict::Fails(_), None) => Some(format!("is wrong, but: {report}")),
        (Verdict::Fails(says), Some(found)) => {
            let shown = found.to_string();
            let (_, failure) = found.failure();
            let is_named = failure.to_string().contains(says) && shown.contains("\n>> ");
            (!is_named).then(|| format!("fails, but without {says:?} and a fatal step: {shown}"))
        }
    }
}

/// Every wrong loop is found, with the words that name its mistake and the fatal step; every right
/// one holds, and the search was complete. Without a checker the wrong ones may pass and are not
/// run. `MODEL` in the environment chooses those whose id contains it.
#[test]
fn checker_accepts_right_loops_and_finds_what_is_wrong_with_the_others() {
    let only = std::env::var("MODEL").unwrap_or_default();
    let complaints: Vec<String> = models()
        .filter(|model| CHECKER != Checker::None || model.verdict == Verdict::Holds)
        .filter(|model| model.id.contains(&only))
        .filter_map(|model| complaint(model).map(|text| format!("{}: {text}", model.id)))
        .collect();
    assert!(complaints.is_empty(), "{}", complaints.join("\n\n"));
}

/// Each matter has a right loop and a wrong one, except the simulator's own.
#[test]
fn each_group_has_a_right_loop_and_a_wrong_one() {
    let groups: BTreeSet<_> = models().map(Model::group).collect();
    for group in groups {
        let of_group = || models().filter(|model| model.group() == group);
        assert!(
            of_group().any(|model| model.verdict == Verdict::Holds),
            "{group}"
        );
        let has_wrong = of_group().any(|model| model.verdict != Verdict::Holds);
        assert_eq!(has_wrong, group != "device", "{group}");
    }
    let ids: BTreeSet<_> = models().map(|model| model.id).collect();
    assert_eq!(ids.len(), models().count(), "ids are unique");
}

#[test]
fn each_model_cites_rules_that_exist() {
    let rules = include_str!("../../scenarios/rules.json");
    for model in models() {
        assert!(!model.rules.is_empty(), "{}", model.id);
        for rule in model.rules {
            assert!(
                rules.contains(&format!("\"{rule}\"")),
                "{} of {}",
                rule,
                model.id
            );
        }
    }
}
