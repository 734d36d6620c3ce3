//! The kernel's tracing folder, where perf reads its tracepoints.

use std::path::Path;
use std::process::Command;

use crate::command;

/// The kernel's tracing folder, unmounted again if it was mounted here.
pub struct Tracefs;

impl Tracefs {
    const PLACE: &str = "/sys/kernel/tracing";

    /// Mounts it, unless it is there.
    pub fn mounted() -> Option<Self> {
        if Path::new(Self::PLACE).join("events").exists() {
            return None;
        }
        // If it cannot be mounted, perf says what it lacks, and so does the result.
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
