//! Links the program that the tests start.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // The tests start this program thousands of times. With a fixed address, the system need not relocate it each time.
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("linux") {
        println!("cargo:rustc-link-arg-bin=campaign-with-failpoints=-no-pie");
    }
}
