//! Embeds the files that are checked in for the target's architecture: the kernel programs (a longpole without them can
//! only read recordings) and the library that is put before libc of launched programs. `./x embed` makes both.

use std::{env, path::PathBuf};

fn main() {
    let arch = env::var("CARGO_CFG_TARGET_ARCH").unwrap_or_default();
    let own = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let folder = own.join("embedded").join(&arch);
    for (name, condition, variable, without) in [
        (
            "probe-ebpf.o",
            "longpole_probe",
            "LONGPOLE_PROBE_OBJECT",
            "it can read recordings but not make them",
        ),
        (
            "longpole-preload.so",
            "longpole_preload",
            "LONGPOLE_PRELOAD_LIBRARY",
            "locks cost a trap to record",
        ),
    ] {
        let file = folder.join(name);
        println!("cargo::rustc-check-cfg=cfg({condition})");
        // Watched even if the file does not exist yet, so that making it later is noticed.
        println!("cargo::rerun-if-changed={}", file.display());
        if file.is_file() {
            println!("cargo::rustc-cfg={condition}");
            println!("cargo::rustc-env={variable}={}", file.display());
        } else {
            println!(
                "cargo::warning=no {name} for {arch}, so {without}; hint: `./x embed` makes it from its sources"
            );
        }
    }
}
