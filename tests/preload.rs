//! The drop-in as a preloaded library: it wins over a libibverbs that a program brings, and shows
//! the files of the devices.
//!
//! The programs are those of `tests/clients/preload`.
#![cfg(target_os = "linux")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A directory of a test's own, empty.
fn directory(test: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("preload-{test}"));
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir_all(&dir).unwrap();
    dir
}

fn source(name: &str) -> PathBuf {
    let clients = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients/preload");
    clients.join(name)
}

fn compile(name: &str, built: &Path, arguments: &[&str]) {
    let mut cc = Command::new("cc");
    cc.args(["-Wall", "-Wextra", "-Werror", "-O1", "-g"]);
    cc.arg(source(name)).arg("-o").arg(built).args(arguments);
    assert!(cc.status().unwrap().success());
}

/// A program or library that is linked with a copy of the machine's libibverbs, which has another
/// file name and another SONAME, as `auditwheel` makes it.
fn with_a_libibverbs_of_its_own(dir: &Path, name: &str, options: &[&str]) -> PathBuf {
    // As long as the real one, so the name is replaced in place.
    const SONAME: &[u8] = b"libibverbs.so.1\0";
    const RENAMED: &[u8] = b"libibverbs-a.so\0";
    let machine = Command::new("cc")
        .arg("-print-file-name=libibverbs.so")
        .output();
    let machine = String::from_utf8(machine.unwrap().stdout).unwrap();
    let mut library = fs::read(machine.trim()).unwrap();
    for at in 0..=library.len() - SONAME.len() {
        if library[at..].starts_with(SONAME) {
            library[at..][..RENAMED.len()].copy_from_slice(RENAMED);
        }
    }
    fs::write(dir.join("libibverbs-a.so"), library).unwrap();
    let built = dir.join(Path::new(name).with_extension("so"));
    let dir = dir.display();
    let (find, path) = (format!("-L{dir}"), format!("-Wl,-rpath,{dir}"));
    let link = ["-l:libibverbs-a.so", &*find, &*path];
    compile(name, &built, &[&link, options].concat());
    built
}

fn exec(options: &[&str], program: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_verbsim"));
    command.arg("exec").args(options).arg("--").args(program);
    command
}

/// Status and standard output, and the standard error.
fn run(options: &[&str], program: &[&str]) -> (Option<i32>, String, String) {
    let Output {
        status,
        stdout,
        stderr,
    } = exec(options, program).output().unwrap();
    let [stdout, stderr] = [stdout, stderr].map(|text| String::from_utf8(text).unwrap());
    (status.code(), stdout, stderr)
}

#[test]
#[ignore = "wants cc, libibverbs-dev and the drop-in: `./check libibverbs` runs it"]
fn a_program_with_a_libibverbs_of_its_own_reaches_the_simulator() {
    let dir = directory("wheel");
    let program = with_a_libibverbs_of_its_own(&dir, "wheel.c", &[]);
    let program = [program.to_str().unwrap()];
    let (status, devices, said) = run(&["--diagnose"], &program);
    assert_eq!((status, &*devices), (Some(0), "sim0\nsim1\n"), "{said}");
    let (_, devices, _) = run(&["--no-preload"], &program);
    assert_eq!(devices, "", "without the preload it asks the machine");
}

/// Python opens its modules like this.
#[test]
#[ignore = "wants cc, libibverbs-dev and the drop-in: `./check libibverbs` runs it"]
fn a_library_that_is_opened_with_a_libibverbs_of_its_own_reaches_the_simulator() {
    let dir = directory("opened");
    let library = with_a_libibverbs_of_its_own(&dir, "bundled.c", &["-shared", "-fPIC"]);
    let (library, opener) = (library.to_str().unwrap(), dir.join("opener"));
    compile("opener.c", &opener, &[]);
    let opener = opener.to_str().unwrap();
    assert_eq!(run(&[], &[opener, library, "plain"]).1, "2\n");
    // By the handle of a libibverbs of any name, and where the machine has none of the name.
    for name in [
        dir.join("libibverbs-a.so").to_str().unwrap(),
        "librdmacm-1.so.1",
    ] {
        assert_eq!(run(&[], &[opener, name, "direct"]).1, "2\n", "{name}");
    }
}

#[test]
#[ignore = "wants cc, libibverbs-dev and the drop-in: `./check libibverbs` runs it"]
fn a_libibverbs_that_keeps_the_drop_in_away_is_named() {
    let dir = directory("foreign");
    let library = with_a_libibverbs_of_its_own(&dir, "bundled.c", &["-shared", "-fPIC"]);
    let opener = dir.join("opener");
    compile("opener.c", &opener, &[]);
    let [library, opener] = [&library, &opener].map(|path| path.to_str().unwrap());
    for way in ["deep", "apart"] {
        let (status, devices, said) = run(&["--diagnose"], &[opener, library, way]);
        assert_eq!((status, &*devices), (Some(99), "0\n"), "{way}");
        let foreign = format!(
            "(opener) has loaded {}/libibverbs-a.so, and called",
            dir.display()
        );
        assert!(said.contains(&foreign), "{way}: {said}");
    }
    // Without a look at the devices there is no other library to blame.
    let (_, _, said) = run(&["--diagnose"], &["true"]);
    assert!(said.contains("never loaded libibverbs"), "{said}");
}

#[test]
#[ignore = "wants cc, libibverbs-dev and the drop-in: `./check libibverbs` runs it"]
fn files_of_a_device_say_what_verbs_say() {
    let dir = directory("sysfs");
    let [program, temporary] = ["sysfs", "temporary"].map(|name| dir.join(name));
    compile("sysfs.c", &program, &["-libverbs"]);
    fs::create_dir(&temporary).unwrap();
    for options in [
        &[][..],
        &["--names", "mlx5_0,mlx5_1,a.b"],
        &["--ports", "3"],
        &["--link-layer", "infiniband", "--ports", "2"],
        &["--profile", "siw"],
        &["--profile", "mlx5"],
        &["--profile", "rxe", "--fabric", "private"],
        &["--gids", "sim0/1/0=fe80::1"],
        // `exec` stays as the parent.
        &["--timeout", "100"],
    ] {
        let mut command = exec(options, &[program.to_str().unwrap()]);
        let output = command.env("TMPDIR", &temporary).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{options:?}: {said}");
        assert_eq!(fs::read_dir(&temporary).unwrap().count(), 0, "{options:?}");
    }
}

#[test]
#[ignore = "wants cc, libibverbs-dev and the drop-in: `./check libibverbs` runs it"]
fn programs_without_libibverbs_find_the_files() {
    let script = source("sysfs.py");
    let script = ["/usr/bin/python3", script.to_str().unwrap()];
    let (status, devices, said) = run(&["--names", "left,right"], &script);
    assert_eq!(status, Some(0), "{said}");
    let names: Vec<_> = devices.lines().map(|line| line.split(' ').next()).collect();
    assert_eq!(names, [Some("left"), Some("right")]);
    let (status, ..) = run(&["--no-preload"], &script);
    assert_eq!(status, Some(1));
}

/// What a signal leaves, the next `exec` removes. So does the one that stays as the parent.
#[test]
#[ignore = "wants cc, libibverbs-dev and the drop-in: `./check libibverbs` runs it"]
fn files_of_a_process_that_a_signal_ends_are_removed() {
    const PROGRAM: &str =
        "test -d /sys/class/infiniband && test -r /dev/infiniband/uverbs1 && kill -9 $$";
    let dir = directory("killed");
    let left = |options: &[&str], program: &str| {
        let mut command = exec(options, &["sh", "-c", program]);
        command.env("TMPDIR", &dir).status().unwrap();
        fs::read_dir(&dir).unwrap().count()
    };
    assert_eq!(left(&[], PROGRAM), 1);
    assert_eq!(left(&[], "true"), 0);
    assert_eq!(left(&["--timeout", "100"], PROGRAM), 0);
}

/// A program that has the tree taken away goes on: the devices have no files.
#[test]
#[ignore = "wants cc, libibverbs-dev and the drop-in: `./check libibverbs` runs it"]
fn a_program_goes_on_without_its_files() {
    let dir = directory("gone");
    let program = format!(
        "test -d /sys/class/infiniband && rm -r {}/* && ! test -d /sys/class/infiniband && test -d /sys && ibv_devices",
        dir.display()
    );
    let mut command = exec(&[], &["sh", "-c", &program]);
    assert!(command.env("TMPDIR", &dir).status().unwrap().success());
    let mut command = exec(&[], &["sh", "-c", "ibv_devices; test -d /sys"]);
    assert!(
        command
            .env("TMPDIR", "/nowhere")
            .status()
            .unwrap()
            .success()
    );
}

/// A program that is linked with the shared runtime of the address sanitizer refuses other
/// libraries before that.
#[test]
#[ignore = "wants cc, libibverbs-dev and the drop-in: `./check libibverbs` runs it"]
fn programs_under_sanitizers_start() {
    let dir = directory("sanitizers");
    for sanitizer in ["address", "thread", "undefined"] {
        let built = dir.join(sanitizer);
        let flag = format!("-fsanitize={sanitizer}");
        compile("wheel.c", &built, &[&flag, "-libverbs"]);
        let (status, devices, said) = run(&[], &[built.to_str().unwrap()]);
        assert_eq!(
            (status, &*devices),
            (Some(0), "sim0\nsim1\n"),
            "{sanitizer}: {said}"
        );
    }
}
