//! `verbsim devices`, with what may stand in the place of libibverbs.
#![cfg(all(target_os = "linux", not(target_feature = "crt-static")))]

use std::process::{Command, Output};

fn devices(library: &str, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_verbsim"))
        .arg("devices")
        .args(arguments)
        .env("VERBSIM_LIBIBVERBS", library)
        .output()
        .expect("the program was built")
}

#[test]
fn what_is_no_libibverbs_is_said_in_words() {
    const ABSENT: &str = "/nonexistent/libibverbs.so.1";
    for (library, words) in [
        (
            ABSENT,
            "note: libibverbs cannot be opened: /nonexistent/libibverbs.so.1: cannot open shared",
        ),
        ("/dev/null", "libibverbs cannot be opened: /dev/null: "),
        (file!(), "libibverbs cannot be opened: "),
        (
            "libc.so.6",
            "libc.so.6 is not libibverbs: it has no ibv_get_device_list",
        ),
        ("", "VERBSIM_LIBIBVERBS is empty"),
    ] {
        let output = devices(library, &["--backend", "hw"]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains(words), "{library}: {said}");
        assert_eq!(output.status.code(), Some(2), "{library}: {said}");
    }
}

#[test]
fn a_machine_without_libibverbs_has_simulated_devices() {
    let output = devices("no-such-library.so", &[]);
    assert!(String::from_utf8_lossy(&output.stdout).contains("sim0  sim, driver sim"));
    assert_eq!(output.status.code(), Some(0));
}
