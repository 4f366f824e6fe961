//! Which library the program gets, and where its names are.

use std::fs::{self, Permissions};
use std::io::{Read, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use super::{BOTH_WAYS, build, directory, drop_in, exec_on, refused, run, started};

/// Never a run on the library of the system.
#[test]
fn what_is_no_drop_in_is_refused() {
    let dir = directory("no-drop-in");
    let path = |name: &str| dir.join(name);
    fs::write(path("empty.so"), "").unwrap();
    fs::write(path("text.so"), "no library").unwrap();
    build(&path("other.so"), "ibv_open_device");
    for name in ["empty.so", "text.so", "other.so", "missing.so", "."] {
        let (status, said) = refused(exec_on(&path(name), &["true"]));
        assert_eq!(status, Some(2), "{name}: {said}");
        assert!(
            said.contains("the drop-in for libibverbs"),
            "{name}: {said}"
        );
    }
}

/// The loader finds the library under all names as long as anybody runs that was started with it.
#[test]
fn the_library_is_there_for_daemons_that_outlive_the_program() {
    const PROGRAM: &str = "exec 3<&0; { read line <&3; ls ${LD_LIBRARY_PATH%%:*}; } & echo started";
    for options in BOTH_WAYS {
        let (mut child, mut lines, _) = started(&[options, &["sh", "-c", PROGRAM]].concat());
        let mut stdin = child.stdin.take().unwrap();
        assert!(child.wait().unwrap().success());
        stdin.write_all(b"go on\n").unwrap();
        let mut seen = String::new();
        lines.read_to_string(&mut seen).unwrap();
        assert_eq!(
            seen,
            "libibverbs.so\nlibibverbs.so.1\nlibrdmacm.so\nlibrdmacm.so.1\n"
        );
    }
}

/// The directory that `exec` gives the loader for a library.
fn place_of(library: &Path, cache: &Path) -> PathBuf {
    let mut command = exec_on(library, &["sh", "-c", "echo ${LD_LIBRARY_PATH%%:*}"]);
    command.env("XDG_CACHE_HOME", cache);
    let output = run(command);
    PathBuf::from(String::from_utf8(output.stdout).unwrap().trim())
}

/// A library in a directory without write permission is copied into the cache, once.
#[test]
fn a_library_without_room_for_its_names_is_copied_once() {
    let dir = directory("copied");
    let [library, cache] = ["lib.so", "cache"].map(|name| dir.join(name));
    fs::copy(drop_in(), &library).unwrap();
    fs::write(dir.join("lib.names"), "no directory").unwrap();
    let place = || place_of(&library, &cache);
    let first = place();
    assert!(first.starts_with(&cache), "{first:?}");
    let copy = first.join("libibverbs.so.1");
    assert_eq!(fs::read(&copy).unwrap(), fs::read(&library).unwrap());
    let made = || fs::metadata(&copy).unwrap().modified().unwrap();
    let before = made();
    assert_eq!((place(), made()), (first, before));
    assert_eq!(fs::read_dir(cache.join("verbsim")).unwrap().count(), 1);
}

/// Another user could add a library that the program needs, and it would run as this one.
#[test]
fn a_directory_that_others_may_write_is_not_given_to_the_loader() {
    let dir = directory("shared");
    let [own, cache] = ["own", "cache"].map(|name| dir.join(name));
    let [library, names] = ["lib.so", "lib.names"].map(|name| own.join(name));
    fs::create_dir(&own).unwrap();
    fs::copy(drop_in(), &library).unwrap();
    let allow = |dir: &Path, mode| fs::set_permissions(dir, Permissions::from_mode(mode)).unwrap();
    allow(&own, 0o755);
    assert_eq!(place_of(&library, &cache), names);
    for (of_parent, of_names, is_used) in [
        (0o777, 0o755, false),
        (0o755, 0o777, false),
        (0o755, 0o755, true),
        // Only its owner can replace what is in a sticky directory.
        (0o1777, 0o755, true),
        (0o1777, 0o777, false),
    ] {
        allow(&own, of_parent);
        allow(&names, of_names);
        let place = place_of(&library, &cache);
        assert_eq!(
            place == names,
            is_used,
            "{of_parent:o} {of_names:o}: {place:?}"
        );
        assert!(is_used || place.starts_with(&cache), "{place:?}");
    }
    // The names may be in the library's own directory.
    for name in fs::read_dir(&names).unwrap() {
        symlink("lib.so", own.join(name.unwrap().file_name())).unwrap();
    }
    for (mode, is_used) in [(0o755, true), (0o777, false)] {
        allow(&own, mode);
        assert_eq!(place_of(&library, &cache) == own, is_used, "{mode:o}");
    }
}
