//! Entry point of libFuzzer, which searches for inputs that break a property. `FUZZ_TARGET` selects the property.

#![no_main]

mod targets;

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;

static CHECK: LazyLock<fn(&[u8])> = LazyLock::new(|| {
    let name = std::env::var("FUZZ_TARGET").unwrap_or_default();
    let target = targets::TARGETS.iter().find(|target| target.name == name);
    target.unwrap_or_else(|| panic!("FUZZ_TARGET is `{name}`, which is no target")).check
});

fuzz_target!(|data: &[u8]| (*CHECK)(data));
