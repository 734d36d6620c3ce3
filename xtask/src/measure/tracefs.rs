//! Mounts the kernel's tracing folder, from which perf reads the tracepoints.

use std::path::Path;
use std::process::Command;

use crate::command;

/// The kernel's tracing folder. If it was mounted here, it is unmounted when this value is dropped.
pub struct Tracefs;

impl Tracefs {
    const PLACE: &str = "/sys/kernel/tracing";

    /// Mounts the folder, unless it is mounted already.
    pub fn mounted() -> Option<Self> {
        if Path::new(Self::PLACE).join("events").exists() {
            return None;
        }
        // If mounting fails, perf prints what it lacks, and the result contains that.
        let mut mount = command::line("mount", "-t tracefs nodev");
        command::text(mount.arg(Self::PLACE)).ok().map(|_| Self)
    }
}

impl Drop for Tracefs {
    fn drop(&mut self) {
        if let Err(error) = command::text(Command::new("umount").arg(Self::PLACE)) {
            eprintln!("xtask: {} stays mounted: {error:#}", Self::PLACE);
        }
    }
}
