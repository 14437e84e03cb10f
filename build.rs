//! Linker option for the program that the tests start: a fixed load address, so that the program starts faster.

use std::env;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // The tests start this program thousands of times. At a fixed address, it does not have to be relocated each time.
    let is_set_to = |name: &str, value: &str| env::var(name).as_deref() == Ok(value);
    if is_set_to("CARGO_CFG_TARGET_OS", "linux") && is_set_to("CARGO_CFG_TARGET_ENV", "gnu") {
        println!("cargo:rustc-link-arg-bin=campaign-with-failpoints=-no-pie");
    }
}
