//! Programs that were not recorded and had CPUs meanwhile (ours).

use crate::event::OtherPrograms;
use serde::{Deserialize, Serialize};

/// A program that had CPUs while another one was recorded.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct OtherUse {
    /// Short name of its processes.
    pub name: String,
    /// How many processes there are of this name.
    pub processes: u32,
    /// How many CPUs they kept busy, on average.
    pub cpus: f64,
}

/// As CPUs that were busy on average, the largest first.
pub(super) fn of(others: Option<&OtherPrograms>) -> Vec<OtherUse> {
    let measured_ns = others.map_or(0, |others| others.measured_ns).max(1) as f64;
    let programs = others.iter().flat_map(|others| &others.programs);
    let mut all: Vec<OtherUse> = programs
        .map(|program| OtherUse {
            name: program.name.clone(),
            processes: program.processes,
            cpus: program.cpu_ns as f64 / measured_ns,
        })
        .collect();
    all.sort_by(|a, b| b.cpus.total_cmp(&a.cpus));
    all
}
