//! Writes a prediction as JSON: schema `longpole-predict/1`.
//!
//! Fields may be added; readers ignore fields that they do not know. Times are nanoseconds; integers have no fraction.

use super::finding::Findings;
use super::limit::LimitsJson;
use engine::limit::Limits;
use engine::predict::{Assumptions, CpuPrediction, Crossover, KnownNs, Prediction, Saturation, Scheduler};
use engine::report::Trust;
use serde::Serialize;
use std::io::{self, Write};

/// The schema's name and version.
pub const SCHEMA: &str = "longpole-predict/1";

/// Writes the prediction as one line.
pub fn write(prediction: &Prediction, limits: &Limits, mut out: impl Write) -> io::Result<()> {
    let json = PredictionJson {
        schema: SCHEMA,
        limit: LimitsJson::new(limits),
        results: &prediction.results,
        machine: prediction.assumptions.as_ref().map(MachineJson::new),
        saturation: prediction.saturation.as_ref(),
        crossovers: &prediction.crossovers,
        threads: prediction.threads,
        most_computing: prediction.most_computing,
        recordings: prediction.recordings,
        recorded_cpus: prediction.recorded_cpus,
        inflation: "not modelled",
        trust: prediction.trust,
        findings: Findings(&prediction.findings),
    };
    engine::program::json::write_value(&json, &mut out)?;
    out.write_all(b"\n")
}

#[derive(Serialize)]
struct PredictionJson<'a> {
    schema: &'static str,
    /// The same fields as `limit` in `longpole-report/1`.
    limit: LimitsJson<'a>,
    results: &'a [CpuPrediction],
    #[serde(skip_serializing_if = "Option::is_none")]
    machine: Option<MachineJson<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    saturation: Option<&'a Saturation>,
    crossovers: &'a [Crossover],
    threads: usize,
    most_computing: usize,
    recordings: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    recorded_cpus: Option<u32>,
    /// Whether compute times grow with the number of CPUs in use.
    inflation: &'static str,
    trust: Trust,
    findings: Findings<'a>,
}

#[derive(Serialize)]
struct MachineJson<'a> {
    model: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    slice: Option<KnownNs>,
    switch_cost: KnownNs,
    wake_latency: KnownNs,
    wake_cost: KnownNs,
    #[serde(skip_serializing_if = "Option::is_none")]
    slow_wakes_ns: Option<[u64; 2]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    idle_found: Option<u16>,
    idle_tick: KnownNs,
    #[serde(skip_serializing_if = "Option::is_none")]
    quota_percent: Option<u32>,
    devices: Vec<ServersJson<'a>>,
}

#[derive(Serialize)]
struct ServersJson<'a> {
    device: &'a str,
    servers: u32,
}

impl<'a> MachineJson<'a> {
    fn new(assumptions: &'a Assumptions) -> MachineJson<'a> {
        let devices = assumptions.devices.iter();
        MachineJson {
            model: match assumptions.scheduler {
                Scheduler::Eevdf => "eevdf",
                Scheduler::Ideal => "ideal",
            },
            slice: assumptions.slice,
            switch_cost: assumptions.switch_cost,
            wake_latency: assumptions.wake_latency,
            wake_cost: assumptions.wake_cost,
            slow_wakes_ns: Some(assumptions.slow_wakes).filter(|slow| *slow != [0; 2]),
            idle_found: assumptions.idle_found,
            idle_tick: assumptions.idle_tick,
            quota_percent: assumptions.quota,
            devices: devices.map(|(device, servers)| ServersJson { device, servers: *servers }).collect(),
        }
    }
}
