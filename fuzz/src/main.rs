//! libFuzzer's program: it calls the target that `LONGPOLE_FUZZ` names with one input after the other.

#![no_main]

use std::sync::LazyLock;

use fuzz::{Target, target};

/// The environment variable that names the target: libFuzzer owns the command line.
const VARIABLE: &str = "LONGPOLE_FUZZ";

static CHOSEN: LazyLock<&'static Target> = LazyLock::new(|| {
    let name = std::env::var(VARIABLE).unwrap_or_default();
    target(&name)
        .unwrap_or_else(|| panic!("{VARIABLE}={name} names no target: fuzz/corpus has a folder for each"))
});

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| (CHOSEN.run)(bytes));
