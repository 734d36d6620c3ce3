//! Puts the kernel programs into the binary, or builds a longpole that can only read recordings.
//!
//! The object comes from `LONGPOLE_EBPF_OBJECT`, or from where `./x build` leaves it in the workspace.

use std::{env, path::PathBuf};

fn main() {
    println!("cargo::rustc-check-cfg=cfg(longpole_probe)");
    println!("cargo::rerun-if-env-changed=LONGPOLE_EBPF_OBJECT");
    let named = env::var_os("LONGPOLE_EBPF_OBJECT").filter(|value| !value.is_empty()).map(PathBuf::from);
    let usual = env::var_os("CARGO_MANIFEST_DIR")
        .map(|dir| PathBuf::from(dir).join("../target/ebpf/probe-ebpf.o"))
        .unwrap_or_default();
    let object = named.unwrap_or(usual);
    // Watched whether it is there or not, so that building it later is noticed.
    println!("cargo::rerun-if-changed={}", object.display());
    match object.canonicalize() {
        Ok(path) if path.is_file() => {
            println!("cargo::rustc-cfg=longpole_probe");
            println!("cargo::rustc-env=LONGPOLE_PROBE_OBJECT={}", path.display());
        }
        _ => println!(
            "cargo::warning=no kernel programs at {}: this longpole can read recordings but not make them (./x build \
             makes both)",
            object.display()
        ),
    }
}
