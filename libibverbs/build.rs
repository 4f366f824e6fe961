//! Tells the linker the name of the library and the versions of its symbols.

use std::env;

fn main() {
    println!("cargo::rerun-if-changed=versions.map");
    if env::var("CARGO_CFG_TARGET_OS").as_deref() != Ok("linux") {
        return;
    }
    let map = format!("{}/versions.map", env::var("CARGO_MANIFEST_DIR").unwrap());
    println!("cargo::rustc-cdylib-link-arg=-Wl,--version-script={map}");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libibverbs.so.1");
    // Its thread may still run when a program closes the library.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
    // Other linkers refuse a second list of versions beside that of rustc.
    if env::var("CARGO_CFG_TARGET_ARCH").as_deref() != Ok("x86_64") {
        println!("cargo::rustc-cdylib-link-arg=-fuse-ld=lld");
    }
}
