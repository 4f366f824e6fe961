//! The picture in the README: the checker's output for an event loop that loses a wake-up. This
//! command draws it again:
//!
//! ```sh
//! VERBSIM_BLESS=1 RUSTFLAGS="--cfg loom" cargo test -p verbs-models --test picture \
//!     --target-dir target/loom
//! ```
#![cfg(loom)]

use std::{env, fs};

use anstyle_svg::Term;
use verbs_models::library::models;

const WIDTH: usize = 116;

#[test]
fn picture_in_the_readme_is_what_the_checker_says() {
    let mut models = models();
    let model = models
        .find(|model| model.id == "re_poll.before_arming_only")
        .expect("it is in the library");
    let report = model.search.clone().run(model.body).to_string();
    let shown: String = report
        .trim_end()
        .lines()
        .map(|line| coloured(line) + "\n")
        .collect();
    let drawn = Term::new().render_svg(&shown);
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/lost-wakeup.svg");
    if env::var_os("VERBSIM_BLESS").is_some() {
        fs::write(path, &drawn).unwrap();
    }
    assert_eq!(
        fs::read_to_string(path).unwrap(),
        drawn,
        "VERBSIM_BLESS=1 draws it again"
    );
}

/// A line as a terminal shows it: the failure red, the explanation bold.
fn coloured(line: &str) -> String {
    let style = match line {
        line if line.starts_with(">>") || line.contains(" fails in execution ") => "\x1b[1;91m",
        line if !line.starts_with(' ') => "\x1b[1m",
        _ => "",
    };
    let lines: Vec<String> = wrapped(line)
        .iter()
        .map(|line| format!("{style}{line}\x1b[0m"))
        .collect();
    lines.join("\n")
}

/// At spaces, where it is too long.
fn wrapped(line: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in line.split_inclusive(' ') {
        let last = lines.last_mut().expect("there is one");
        if last.len() + word.trim_end().len() > WIDTH && !line.starts_with([' ', '>']) {
            lines.push(word.to_owned());
        } else {
            last.push_str(word);
        }
    }
    lines
}
