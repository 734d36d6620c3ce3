//! A prediction as JSON: schema `longpole-predict/1`.
//!
//! Fields may be added; readers ignore those they do not know. Times are nanoseconds, whole ones without a
//! fraction.

use super::finding_json::Findings;
use super::json::{cpus, number};
use super::limit_json::LimitsJson;
use engine::limit::Limits;
use engine::predict::{
    Assumptions, CpuPrediction, Crossover, DeviceLoad, Known, LockLoad, Prediction, Saturation, Scheduler,
};
use engine::report::{Cpus, Trust};
use serde::Serialize;
use std::io::{self, Write};

/// The schema's name and version.
pub const SCHEMA: &str = "longpole-predict/1";

/// Writes the prediction as one line.
pub fn write(prediction: &Prediction, limits: &Limits, mut out: impl Write) -> io::Result<()> {
    let json = PredictionJson {
        schema: SCHEMA,
        limit: LimitsJson::new(limits),
        results: prediction.results.iter().map(ResultJson::new).collect(),
        machine: prediction.assumptions.as_ref().map(MachineJson::new),
        saturation: prediction.saturation.as_ref().map(SaturationJson::new),
        crossovers: prediction.crossovers.iter().map(CrossoverJson::new).collect(),
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
    /// As in `longpole-report/1`.
    limit: LimitsJson<'a>,
    results: Vec<ResultJson<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    machine: Option<MachineJson<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    saturation: Option<SaturationJson>,
    crossovers: Vec<CrossoverJson<'a>>,
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
struct ResultJson<'a> {
    #[serde(serialize_with = "cpus")]
    cpus: Cpus,
    #[serde(serialize_with = "number")]
    time_ns: f64,
    #[serde(serialize_with = "number")]
    low_ns: f64,
    #[serde(serialize_with = "number")]
    high_ns: f64,
    #[serde(serialize_with = "number")]
    speedup: f64,
    #[serde(serialize_with = "number")]
    efficiency: f64,
    complete: bool,
    /// The cgroup's quota took effect.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    throttled: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    leader: Option<&'a str>,
    #[serde(serialize_with = "number")]
    busy_ns: f64,
    #[serde(serialize_with = "number")]
    spinning_ns: f64,
    #[serde(serialize_with = "number")]
    ready_ns: f64,
    #[serde(serialize_with = "number")]
    blocked_ns: f64,
    busy_cpus_ns: Vec<Number>,
    switches: u64,
    preemptions: u64,
    migrations: u64,
    locks: Vec<LockJson<'a>>,
    devices: Vec<DeviceJson<'a>>,
    threads: Vec<ThreadJson<'a>>,
}

#[derive(Serialize)]
#[serde(transparent)]
struct Number(#[serde(serialize_with = "number")] f64);

impl<'a> ResultJson<'a> {
    fn new(result: &'a CpuPrediction) -> ResultJson<'a> {
        let threads = result.threads.iter().map(|thread| ThreadJson {
            thread: &thread.thread,
            busy_ns: thread.busy_ns,
            spinning_ns: thread.spinning_ns,
            ready_ns: thread.ready_ns,
            blocked_ns: thread.blocked_ns,
        });
        ResultJson {
            cpus: result.cpus,
            time_ns: result.time_ns,
            low_ns: result.low_ns,
            high_ns: result.high_ns,
            speedup: result.speedup,
            efficiency: result.efficiency,
            complete: result.complete,
            throttled: result.throttled,
            leader: result.leader.as_ref().map(|(name, _)| name.as_str()),
            busy_ns: result.busy_ns,
            spinning_ns: result.spinning_ns,
            ready_ns: result.ready_ns,
            blocked_ns: result.blocked_ns,
            busy_cpus_ns: result.busy_cpus_ns.iter().map(|ns| Number(*ns)).collect(),
            switches: result.switches,
            preemptions: result.preemptions,
            migrations: result.migrations,
            locks: result.locks.iter().map(LockJson::new).collect(),
            devices: result.devices.iter().map(DeviceJson::new).collect(),
            threads: threads.collect(),
        }
    }
}

#[derive(Serialize)]
struct MachineJson<'a> {
    model: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    slice: Option<KnownJson>,
    switch_cost: KnownJson,
    wake_latency: KnownJson,
    wake_cost: KnownJson,
    #[serde(skip_serializing_if = "Option::is_none")]
    slow_wakes_ns: Option<[u64; 2]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    idle_found: Option<u16>,
    idle_tick: KnownJson,
    #[serde(skip_serializing_if = "Option::is_none")]
    quota_percent: Option<u32>,
    devices: Vec<ServersJson<'a>>,
}

#[derive(Serialize)]
struct KnownJson {
    ns: u64,
    from: &'static str,
}

#[derive(Serialize)]
struct ServersJson<'a> {
    device: &'a str,
    servers: u32,
}

impl<'a> MachineJson<'a> {
    fn new(assumptions: &'a Assumptions) -> MachineJson<'a> {
        let known = |known: Known| KnownJson { ns: known.ns, from: known.from };
        let devices = assumptions.devices.iter();
        MachineJson {
            model: match assumptions.scheduler {
                Scheduler::Eevdf => "eevdf",
                Scheduler::Ideal => "ideal",
            },
            slice: assumptions.slice.map(known),
            switch_cost: known(assumptions.switch_cost),
            wake_latency: known(assumptions.wake_latency),
            wake_cost: known(assumptions.wake_cost),
            slow_wakes_ns: Some(assumptions.slow_wakes).filter(|slow| *slow != [0; 2]),
            idle_found: assumptions.idle_found,
            idle_tick: known(assumptions.idle_tick),
            quota_percent: assumptions.quota,
            devices: devices.map(|(device, servers)| ServersJson { device, servers: *servers }).collect(),
        }
    }
}

#[derive(Serialize)]
struct SaturationJson {
    #[serde(serialize_with = "cpus")]
    cpus: Cpus,
    #[serde(serialize_with = "number")]
    most_speedup: f64,
}

impl SaturationJson {
    fn new(saturation: &Saturation) -> SaturationJson {
        SaturationJson { cpus: saturation.cpus, most_speedup: saturation.most_speedup }
    }
}

#[derive(Serialize)]
struct CrossoverJson<'a> {
    #[serde(serialize_with = "cpus")]
    cpus: Cpus,
    function: &'a str,
    over: &'a str,
}

impl<'a> CrossoverJson<'a> {
    fn new(crossover: &'a Crossover) -> CrossoverJson<'a> {
        CrossoverJson { cpus: crossover.cpus, function: &crossover.function, over: &crossover.over }
    }
}

#[derive(Serialize)]
struct LockJson<'a> {
    lock: &'a str,
    held_share: f64,
    taken: u64,
    waits: u64,
    #[serde(serialize_with = "number")]
    blocked_ns: f64,
    #[serde(serialize_with = "number")]
    spun_ns: f64,
}

impl<'a> LockJson<'a> {
    fn new(lock: &'a LockLoad) -> LockJson<'a> {
        LockJson {
            lock: &lock.lock,
            held_share: lock.held_share,
            taken: lock.taken,
            waits: lock.waits,
            blocked_ns: lock.blocked_ns,
            spun_ns: lock.spun_ns,
        }
    }
}

#[derive(Serialize)]
struct DeviceJson<'a> {
    device: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    servers: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    busy_share: Option<f64>,
    waits: u64,
    #[serde(serialize_with = "number")]
    blocked_ns: f64,
}

impl<'a> DeviceJson<'a> {
    fn new(device: &'a DeviceLoad) -> DeviceJson<'a> {
        DeviceJson {
            device: &device.device,
            servers: device.servers,
            busy_share: device.busy_share,
            waits: device.waits,
            blocked_ns: device.blocked_ns,
        }
    }
}

#[derive(Serialize)]
struct ThreadJson<'a> {
    thread: &'a str,
    #[serde(serialize_with = "number")]
    busy_ns: f64,
    #[serde(serialize_with = "number")]
    spinning_ns: f64,
    #[serde(serialize_with = "number")]
    ready_ns: f64,
    #[serde(serialize_with = "number")]
    blocked_ns: f64,
}
