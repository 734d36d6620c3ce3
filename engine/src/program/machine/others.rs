//! Programs that were not recorded and used CPUs during the recording (a method of longpole's own).

use crate::event::{OtherProgram, OtherPrograms};
use serde::{Deserialize, Serialize};

/// Programs of one name that used CPUs while another program was recorded.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct OtherUse {
    /// Short name of the processes.
    pub name: String,
    /// Number of processes with this name.
    pub processes: u32,
    /// Number of CPUs that these processes kept busy, on average.
    pub cpus: f64,
}

/// Other programs with the number of CPUs that they kept busy on average, the largest first.
pub(in crate::program) fn of(others: Option<&OtherPrograms>) -> Vec<OtherUse> {
    let measured_ns = others.map_or(0, |others| others.measured_ns).max(1) as f64;
    let programs = others.iter().flat_map(|others| &others.programs);
    let mut all: Vec<OtherUse> = programs.map(|program| used(program, measured_ns)).collect();
    all.sort_by(|a, b| b.cpus.total_cmp(&a.cpus));
    all
}

/// Descendants of the recorded processes that were not recorded.
pub(in crate::program) fn children(others: Option<&OtherPrograms>) -> Option<OtherUse> {
    let others = others?;
    others.children.as_ref().map(|program| used(program, others.measured_ns.max(1) as f64))
}

fn used(program: &OtherProgram, measured_ns: f64) -> OtherUse {
    OtherUse {
        name: program.name.clone(),
        processes: program.processes,
        cpus: program.cpu_ns as f64 / measured_ns,
    }
}
