//! Links the program that the tests start at a fixed address, so that it starts faster.

use std::env;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // The tests start this program thousands of times. At a fixed address, the system need not relocate it each time.
    let is = |name: &str, value: &str| env::var(name).as_deref() == Ok(value);
    if is("CARGO_CFG_TARGET_OS", "linux") && is("CARGO_CFG_TARGET_ENV", "gnu") {
        println!("cargo:rustc-link-arg-bin=campaign-with-failpoints=-no-pie");
    }
}
