//! A driver and the simulator's profile of it agree.
//!
//! `VERBSIM_REPORTS` names a directory with JSON reports of the suite on real drivers
//! (`verbsim run --backend hw --format json --out FILE`); `./check hardware` makes them in a
//! virtual machine. Without it there is nothing to compare.

use std::io::Write;
use std::ops::ControlFlow;
use std::path::Path;
use std::{env, fs, io};

use serde_json::Value;
use verbs_api::profile::Profile;
use verbs_scenarios::deviations;
use verbsim::backend::Simulator;

#[test]
fn reports_of_a_driver_and_of_its_profile_agree() {
    let Some(dir) = env::var_os("VERBSIM_REPORTS") else {
        // Not by a macro: those of a test that passes are not shown.
        let why = "skipped: VERBSIM_REPORTS names no directory with reports of drivers";
        writeln!(io::stderr(), "{why}").unwrap();
        return;
    };
    let mut compared = 0;
    for entry in fs::read_dir(&dir).unwrap() {
        let path = entry.unwrap().path();
        if path
            .extension()
            .is_some_and(|extension| extension == "json")
        {
            compare(&path);
            compared += 1;
        }
    }
    assert!(
        compared > 0,
        "there is no report in {}",
        Path::new(&dir).display()
    );
}

/// The same outcome for each scenario that ran on both, except for differences that the profile
/// does not model, and intermittent ones.
fn compare(path: &Path) {
    let report: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    let of_driver = &report["runs"][0];
    let driver = of_driver["driver"].as_str().unwrap().to_owned();
    let profile = Profile::named(&driver).unwrap();
    let scenarios: Vec<_> = verbs_scenarios::all().collect();
    let link_layer = of_driver["link_layer"].as_str().unwrap();
    let simulator = Simulator {
        link_layer: verbs_settings::link_layer(link_layer).unwrap(),
        ..Simulator::new(profile, 0)
    };
    let of_profile =
        verbs_scenarios::run(&simulator, &scenarios, |_| ControlFlow::Continue(())).unwrap();
    let excused: Vec<_> = deviations::of_driver(&driver, of_driver["kernel"].as_str().unwrap())
        .into_iter()
        .filter(|deviation| deviation.not_modelled.is_some() || deviation.sometimes)
        .flat_map(|deviation| deviation.scenarios)
        .collect();
    let (mut both, mut differ) = (0, Vec::new());
    for seen in of_driver["scenarios"].as_array().unwrap() {
        let id = seen["id"].as_str().unwrap();
        let Some(entry) = of_profile.scenarios.iter().find(|entry| entry.id == id) else {
            continue;
        };
        let (seen, modelled) = (
            &seen["outcome"],
            serde_json::to_value(entry.outcome).unwrap(),
        );
        if *seen == "skipped" || modelled == "skipped" || excused.iter().any(|of| of == id) {
            continue;
        }
        both += 1;
        if *seen != modelled {
            differ.push(format!("{id}: {driver} {seen}, its profile {modelled}"));
        }
    }
    println!("{driver}, {link_layer}: {both} scenarios ran on the driver and on its profile");
    assert!(both > 0, "{driver}: nothing ran on both");
    assert!(differ.is_empty(), "{}", differ.join("\n"));
}
