//! Times the simulation of a generated program on a number of processors; `./x bench simulate` calls it in a release build.
//! usage: simulate_bench (eevdf | ideal) OPERATIONS CPUS; prints one line of JSON.

use std::process::ExitCode;

use engine::schedule::{SchedulerParameters, Setup, Sharing, run};
use engine::time::Ticks;
use timed::timed;
use token_ring::token_ring;

#[path = "shared/timed.rs"]
mod timed;
#[path = "shared/token_ring.rs"]
mod token_ring;

const THREADS: u32 = 64;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let usage = || {
        eprintln!("usage: simulate_bench (eevdf | ideal) OPERATIONS CPUS");
        ExitCode::from(2)
    };
    let [way, operations, cpus] = arguments.as_slice() else { return usage() };
    let (Ok(operations), Ok(cpus)) = (operations.parse::<usize>(), cpus.parse::<u32>()) else {
        return usage();
    };
    let parameters = SchedulerParameters {
        wake_latency: Ticks::from_ns(3_000),
        switch_cost: Ticks::from_ns(1_000),
        ..SchedulerParameters::free(cpus)
    };
    let processors = match way.as_str() {
        "eevdf" => Sharing::Scheduled(parameters),
        "ideal" => Sharing::Ideal { hundredths: u64::from(cpus) * 100 },
        _ => return usage(),
    };
    let setup = Setup { processors, servers: Vec::new() };
    let program = token_ring(operations, THREADS, true);
    let before_bytes = status_bytes("VmRSS:");
    let (outcome, wall, cpu) = timed(|| run(&program, &setup));
    let Ok(outcome) = outcome else {
        eprintln!("simulate_bench: the program is wrong");
        return ExitCode::FAILURE;
    };
    if let Some(finding) = outcome.findings.first() {
        eprintln!("simulate_bench: {finding:?}");
        return ExitCode::FAILURE;
    }
    let done: usize = outcome.done.iter().sum();
    println!(
        "{{\"operations\":{done},\"wall_ns\":{wall},\"cpu_ns\":{cpu},\"peak_bytes\":{},\"own_bytes\":{},\"time_ns\":{},\"switches\":{}}}",
        status_bytes("VmHWM:"),
        status_bytes("VmHWM:").saturating_sub(before_bytes),
        outcome.length.as_ns_f64(),
        outcome.counts.switches,
    );
    ExitCode::SUCCESS
}

/// A value in /proc/self/status, in bytes.
fn status_bytes(name: &str) -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
    line.split_whitespace().next().and_then(|kib| kib.parse::<u64>().ok()).unwrap_or(0) * 1024
}
