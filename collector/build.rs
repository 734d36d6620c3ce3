//! Puts the kernel programs into the binary, or builds a longpole that can only read recordings. The same with the
//! library that is put before libc of launched programs; without it there is only less to record.
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
    library();
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

/// `LONGPOLE_PRELOAD_OBJECT`, or where `./x build` leaves it.
fn library() {
    println!("cargo::rustc-check-cfg=cfg(longpole_preload)");
    println!("cargo::rerun-if-env-changed=LONGPOLE_PRELOAD_OBJECT");
    let named = env::var_os("LONGPOLE_PRELOAD_OBJECT").filter(|value| !value.is_empty()).map(PathBuf::from);
    let usual = env::var_os("CARGO_MANIFEST_DIR")
        .map(|dir| PathBuf::from(dir).join("../target/preload/longpole-preload.so"))
        .unwrap_or_default();
    let library = named.unwrap_or(usual);
    println!("cargo::rerun-if-changed={}", library.display());
    if let Some(path) = library.canonicalize().ok().filter(|path| path.is_file()) {
        println!("cargo::rustc-cfg=longpole_preload");
        println!("cargo::rustc-env=LONGPOLE_PRELOAD_LIBRARY={}", path.display());
    }
}
