//! Tells the linker the name of the library and the versions of its symbols.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=versions.map");
    println!("cargo::rustc-check-cfg=cfg(drop_in)");
    let of_target = |what: &str| env::var(format!("CARGO_CFG_TARGET_{what}")).unwrap_or_default();
    if of_target("OS") != "linux" || !["x86_64", "aarch64"].contains(&of_target("ARCH").as_str()) {
        return;
    }
    // Other linkers refuse a second list of versions in addition to that of rustc.
    let Some(place) = lld() else {
        println!(
            "cargo::warning=the drop-in for libibverbs is left empty: it needs the linker lld"
        );
        return;
    };
    println!("cargo::rustc-cfg=drop_in");
    let map = Path::new(&env::var("CARGO_MANIFEST_DIR").unwrap()).join("versions.map");
    for argument in [
        format!("-B{}", place.display()),
        "-fuse-ld=lld".to_owned(),
        format!("-Wl,--version-script={}", map.display()),
        "-Wl,-soname,libibverbs.so.1".to_owned(),
        // Its thread may still run when a program closes the library.
        "-Wl,-z,nodelete".to_owned(),
    ] {
        println!("cargo::rustc-cdylib-link-arg={argument}");
    }
}

/// The directory of the linker: the one that comes with Rust, or one of the system.
fn lld() -> Option<PathBuf> {
    let rustc = Command::new(env::var_os("RUSTC")?)
        .args(["--print", "sysroot"])
        .output()
        .ok()?;
    let sysroot = String::from_utf8(rustc.stdout).ok()?;
    let of_rust = Path::new(sysroot.trim())
        .join("lib/rustlib")
        .join(env::var_os("HOST")?)
        .join("bin/gcc-ld");
    let path = env::var_os("PATH").unwrap_or_default();
    let mut places = std::iter::once(of_rust).chain(env::split_paths(&path));
    places.find(|place| place.join("ld.lld").exists())
}
