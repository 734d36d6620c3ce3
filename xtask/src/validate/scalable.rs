//! Workloads whose functions can be made faster from outside, and that run on an emulated machine (tests/workloads/common.h).

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use longpole_tests::workload;

/// No run of one, and no answer about it, takes this long.
pub(super) const LIMIT: Duration = Duration::from_secs(120);
/// The flags of workloads (tests/src/workload.rs), and what makes them scalable.
const FLAGS: [&str; 6] = ["-O2", "-g", "-pthread", "-fno-optimize-sibling-calls", "-w", "-DSCALABLE"];

/// The program of a C file in tests/workloads.
pub(super) fn built(source: &str) -> Result<PathBuf> {
    let read = |name: &str| std::fs::read_to_string(workload::source(name)).with_context(|| name.to_owned());
    // In one piece: programs are compiled once per content.
    let text = read(source)?.replace("#include \"common.h\"", &read("common.h")?);
    let name = source.trim_end_matches(".c");
    workload::compile_text(name, "cc", &FLAGS, &text).map_err(|why| anyhow!("{source}: {why}"))
}
