//! Turns feature `fd` on for Linux: Cargo has no default features of a system.

use std::env;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("linux") {
        println!("cargo::rustc-cfg=feature=\"fd\"");
    }
}
