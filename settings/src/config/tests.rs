use super::*;

fn config(file: &str, variables: &[(&str, &str)]) -> Result<Config, String> {
    let variables = variables
        .iter()
        .map(|(name, value)| ((*name).into(), value.into()));
    let variables = variables.collect();
    let from = Sources {
        variables: &variables,
        file: file.parse().unwrap(),
        file_name: "its file".to_owned(),
    };
    from.check_keys()?;
    Config::from_sources(&from)
}

#[test]
fn variables_win_over_the_file_and_the_file_over_the_defaults() {
    let default = config("", &[]).unwrap();
    assert_eq!(
        (default.names.len(), default.ports, default.seed),
        (2, 1, None)
    );
    let file = "names = [\"a\", \"b\", \"c\"]\nseed = 3\nports = 2\nlimits = { max_qp = 16 }";
    let both = config(file, &[("VERBSIM_SEED", "4"), ("VERBSIM_PROFILE", "rxe")]).unwrap();
    assert_eq!((both.names.len(), both.ports, both.seed), (3, 2, Some(4)));
    assert_eq!(both.profile, Profile::RXE);
    let same = config(
        file,
        &[("VERBSIM_LIMITS", "max_qp = 16"), ("VERBSIM_SEED", "3")],
    );
    assert_eq!(same, config(file, &[]));
    let memory = |file, variables| config(file, variables).unwrap().memory();
    assert!(!memory("", &[]) && memory("memory = true", &[]));
    assert!(!memory("memory = true", &[("VERBSIM_MEMORY", "off")]));
    assert!(memory("", &[("VERBSIM_MEMORY", "on")]));
    let gids = "sim1/1/0=fe80::1, sim0/1/1=::ffff:10.9.0.1";
    let gids = config("", &[("VERBSIM_GIDS", gids)]);
    assert_eq!(gids.unwrap().gids[0].device, 1);
    let fabric = |file: &str| config(file, &[]).unwrap().fabric.to_string();
    for private in ["profile = \"siw\"", "fabric = \"private\""] {
        assert_eq!(fabric(private), "private");
    }
    assert_eq!(fabric("fabric = \"job1\""), "job1");
    assert_eq!(
        fabric(""),
        if cfg!(target_os = "linux") {
            "default"
        } else {
            "private"
        }
    );
    let addresses = config("fabric = \"10.0.0.1, fd00::2\"", &[]).unwrap();
    assert_eq!(addresses.fabric.to_string(), "10.0.0.1,fd00::2");
    assert_eq!(addresses.names.len(), 2);
    let patience = |file: &str| config(file, &[]).unwrap().patience.as_secs();
    assert_eq!([patience(""), patience("patience = 0")], [30, 0]);
    let halts = config("", &[("VERBSIM_HALT_ON_ERROR", "1")]).unwrap();
    assert_eq!((halts.halts_on_error, halts.diagnose()), (true, Some("-")));
    let backtraces = config("backtrace = true", &[]).unwrap();
    assert_eq!(
        (backtraces.backtraces(), backtraces.diagnose()),
        (true, Some("-"))
    );
    let json = config("", &[("VERBSIM_DIAGNOSE_FORMAT", "json")]).unwrap();
    assert_eq!(json.diagnose_format(), DiagnoseFormat::Json);
    assert_eq!((json.halts_on_error, json.diagnose()), (false, None));
    let standard = config("faults = \"standard\"", &[]).unwrap();
    assert_eq!(standard.faults, Plan::standard());
}

#[test]
fn rules_on_what_cannot_fail_in_c_are_refused() {
    for (verb, can) in [
        ("ibv_post_send", true),
        ("ibv_end_poll", false),
        ("ibv_ack_cq_events", false),
        ("query_mr", false),
    ] {
        let path = std::env::temp_dir().join(format!("verbsim-{}-{verb}", std::process::id()));
        let rule =
            format!("[[rule]]\nkind = \"call\"\nverb = \"{verb}\"\nerror = \"EIO\"\nnth = 1\n");
        fs::write(&path, rule).unwrap();
        let reported = config("", &[("VERBSIM_FAULTS", path.to_str().unwrap())]);
        fs::remove_file(&path).unwrap();
        match reported {
            Ok(_) => assert!(can, "{verb}"),
            Err(reported) => assert!(
                !can && reported.contains(verb) && reported.contains("rule 1"),
                "{reported}"
            ),
        }
    }
}

/// With where it is, its value, and what would be allowed.
#[test]
fn what_makes_no_sense_is_named() {
    for (file, named) in [
        ("color = 1", &["color in its file", "link_layer"][..]),
        ("config = \"x\"", &["config in its file is not a setting"]),
        ("patience = -1", &["patience in its file is -1", "from 0"]),
        ("ports = \"x\"", &["ports in its file is \"x\"", "a number"]),
        ("devices = -1", &["devices in its file is -1"]),
        (
            "memory = \"on\"",
            &["memory in its file is \"on\"", "true or false"],
        ),
        ("devices = 0", &["devices in its file is 0", "1 to 65535"]),
        (
            "devices = 1\nnames = [\"a\", \"b\"]",
            &["names in its file is a,b", "devices in its file is 1"],
        ),
        ("names = []", &["names in its file is", "1 to 65535"]),
        (
            "names = [\"a\", \"a\"]",
            &["names in its file is a,a", "two devices"],
        ),
        ("names = [\"a/b\"]", &["\"a/b\"", "letters"]),
        ("ports = 251", &["ports in its file is 251", "1 to 250"]),
        (
            "profile = \"fast\"",
            &["profile in its file is fast", "rxe"],
        ),
        (
            "link_layer = \"token ring\"",
            &["link_layer in its file is token ring", "infiniband"],
        ),
        (
            "link_layer = \"infiniband\"\ndevices = 65535",
            &["link-layer", "49151"],
        ),
        (
            "limits = { max_fun = 1 }",
            &["limits in its file is max_fun=1", "max_qp"],
        ),
        (
            "fabric = \"10.0.0.1,10.0.0.2\"\ndevices = 1",
            &[
                "fabric in its file is 10.0.0.1,10.0.0.2",
                "1 ports need as many",
            ],
        ),
        (
            "fabric = \"10.0.0.1,fd00::2,10.0.0.1\"",
            &["10.0.0.1 is there twice"],
        ),
        (
            "fabric = \"::ffff:10.0.0.1, 10.0.0.1\"",
            &["10.0.0.1 is there twice"],
        ),
        (
            "fabric = \"job\"\nprofile = \"siw\"",
            &["fabric in its file is job", "siw reach no other process"],
        ),
        (
            "fabric = \"10.0.0.1,10.0.0.2\"\nlink_layer = \"infiniband\"",
            &["fabric in its file is 10.0.0.1,10.0.0.2", "give a name"],
        ),
        (
            "fabric = \"job\"\ngids = [\"sim0/1/0=fe80::1\"]",
            &["fabric in its file is job", "gids are set"],
        ),
        (
            "gids = [\"sim7/1/0=fe80::1\"]",
            &["gids in its file is sim7/1/0", "no such device"],
        ),
        ("gids = [\"sim0/2/0=fe80::1\"]", &["ports 1 to 1"]),
        ("gids = [\"sim0/1/0=xyz\"]", &["xyz", "IPv6"]),
        ("gids = [\"sim0/1/9=fe80::1\"]", &["sim0", "index"]),
        (
            "gids = [\"sim0/1/0=fe80::1\", \"sim1/1/0=fe80::1\"]",
            &["fe80::1 of sim1", "another entry"],
        ),
        (
            "trace = \"/nowhere/trace\"",
            &["trace in its file is /nowhere/trace", "No such file"],
        ),
        (
            "faults = \"/nowhere.toml\"",
            &["faults in its file is /nowhere.toml", "No such file"],
        ),
        (
            "diagnose_format = \"xml\"",
            &["diagnose_format in its file is xml", "text, json"],
        ),
        (
            "halt_on_error = 1",
            &["halt_on_error in its file is 1", "on or off"],
        ),
        (
            "suppressions = \"/nowhere\"",
            &["suppressions in its file is /nowhere", "No such file"],
        ),
    ] {
        is_refused(file, &[], named);
    }
    let long = &*"n".repeat(64);
    for (variable, value, named) in [
        (
            "VERBSIM_MEMORY",
            "yes",
            &["VERBSIM_MEMORY (--memory) is yes", "on or off"][..],
        ),
        (
            "VERBSIM_NAMES",
            long,
            &["VERBSIM_NAMES (--names)", long, "1 to 63 letters"],
        ),
        (
            "VERBSIM_LIMITS",
            "max_qp=0",
            &["VERBSIM_LIMITS (--limits) is max_qp=0", "1 to 13"],
        ),
        (
            "VERBSIM_LIMITS",
            "max_qp",
            &["VERBSIM_LIMITS (--limits) is max_qp", "NAME=NUMBER"],
        ),
        (
            "VERBSIM_FABRIC",
            "a/b",
            &[
                "VERBSIM_FABRIC (--fabric) is a/b",
                "1 to 63 letters",
                "private",
            ],
        ),
        (
            "VERBSIM_FABRIC",
            "10.0.0.256",
            &["is 10.0.0.256", "not an address, and a name needs a letter"],
        ),
        (
            "VERBSIM_FABRIC",
            "0.0.0.0",
            &["0.0.0.0 is not the address of one interface"],
        ),
        (
            "VERBSIM_FABRIC",
            "ff02::1",
            &["ff02::1 is not the address of one interface"],
        ),
        (
            "VERBSIM_SEED",
            "x",
            &["VERBSIM_SEED (--seed) is x", "a number"],
        ),
        (
            "VERBSIM_SUPPRESSIONS",
            "Cargo.toml",
            &[
                "VERBSIM_SUPPRESSIONS (--suppressions) is Cargo.toml",
                "Cargo.toml:1: no class of mistakes is called [package]",
            ],
        ),
        (
            "VERBSIM_FAULTS",
            "Cargo.toml",
            &["VERBSIM_FAULTS (--faults) is Cargo.toml", "Cargo.toml:1"],
        ),
    ] {
        is_refused("", &[(variable, value)], named);
    }
}

fn is_refused(file: &str, variables: &[(&str, &str)], named: &[&str]) {
    let error = config(file, variables).unwrap_err();
    for part in named {
        assert!(error.contains(part), "{error:?} says nothing of {part:?}");
    }
}

/// A plan is read before the program begins, and so is what it needs that is not there.
#[test]
fn a_rule_for_a_device_that_is_not_there_is_named() {
    let path = std::env::temp_dir().join(format!("verbsim-plan-{}.toml", std::process::id()));
    let rule = "[[rule]]\nkind = \"link\"\nnode = 7\n";
    fs::write(&path, rule).unwrap();
    let path = path.to_str().unwrap();
    let error = config("", &[("VERBSIM_FAULTS", path)]).unwrap_err();
    assert!(
        error.contains("rule 1") && error.contains("0 to 1"),
        "{error}"
    );
    assert!(config("devices = 8", &[("VERBSIM_FAULTS", path)]).is_ok());
    fs::remove_file(path).unwrap();
}
