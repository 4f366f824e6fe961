//! The environment in which a program and all that it starts preload the drop-in library.

use std::env;
use std::ffi::OsString;
use std::path::Path;

use super::library::NAMES;

/// A name by which a directory of the library has it.
const NAME: &str = NAMES[0];

/// The variables. `dir` is the directory for the loader.
///
/// The loader splits `LD_PRELOAD` at blanks and colons. It finds a library with such a path by its
/// name in `LD_LIBRARY_PATH`.
pub(super) fn variables(dir: &Path) -> [(&'static str, OsString); 2] {
    let path = dir.join(NAME);
    let path = path.to_str().filter(|path| !path.contains([':', ' ']));
    let before = env::var("LD_PRELOAD").unwrap_or_default();
    [
        ("LD_PRELOAD", preloads(path.unwrap_or(NAME), &before).into()),
        ("ASAN_OPTIONS", with_any_order(env::var_os("ASAN_OPTIONS"))),
    ]
}

/// A sanitizer's runtime comes first, then the library, then all else. The library of an `exec`
/// around this one would only be in the way.
fn preloads(library: &str, before: &str) -> String {
    let others = before.split([':', ' ']).filter(|other| !other.is_empty());
    let others = others.filter(|other| Path::new(other).file_name() != Some(NAME.as_ref()));
    let is_sanitizer = |other: &&str| other.contains("libasan") || other.contains("libtsan");
    let (first, last): (Vec<_>, Vec<_>) = others.partition(is_sanitizer);
    let all: Vec<&str> = first.into_iter().chain([library]).chain(last).collect();
    all.join(":")
}

/// A program that is linked with the shared runtime of the address sanitizer refuses to start if
/// that is not the first library. The drop-in replaces nothing that the sanitizer needs to be the
/// first for, such as `malloc`. What the user has set wins.
fn with_any_order(before: Option<OsString>) -> OsString {
    let mut options = OsString::from("verify_asan_link_order=0");
    if let Some(before) = before.filter(|before| !before.is_empty()) {
        options.push(":");
        options.push(before);
    }
    options
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_is_preloaded_behind_a_sanitizer_and_before_all_else() {
        for (before, after) in [
            ("", "/d/libibverbs.so.1"),
            ("a.so b.so", "/d/libibverbs.so.1:a.so:b.so"),
            (
                "a.so:/x/libasan.so.8",
                "/x/libasan.so.8:/d/libibverbs.so.1:a.so",
            ),
            ("/outer/libibverbs.so.1:a.so", "/d/libibverbs.so.1:a.so"),
        ] {
            assert_eq!(preloads("/d/libibverbs.so.1", before), after);
        }
    }
}
