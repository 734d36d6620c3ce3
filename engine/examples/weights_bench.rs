//! Times the extended critical path of a generated program; `./x bench weights` calls it in a release build.
//! usage: weights_bench (sweep | warm | oracle) OPERATIONS TIMES; prints one line of JSON, the mean of TIMES
//! runs. `warm` is the sweep after one that is not timed, so that the allocator already has the memory.

use std::hint::black_box;
use std::num::NonZeroU32;
use std::process::ExitCode;

use engine::critical_path::{CriticalPath, oracle};
use engine::program::Program;
use engine::report::Cpus;
use timed::timed;
use token_ring::token_ring;

#[path = "shared/timed.rs"]
mod timed;
#[path = "shared/token_ring.rs"]
mod token_ring;

const THREADS: u32 = 32;
const CPUS: [u32; 8] = [1, 2, 3, 4, 8, 16, 24, 32];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (way, operations, times) = match arguments.as_slice() {
        [way, operations, times] => {
            (way.as_str(), operations.parse().unwrap_or(0), times.parse().unwrap_or(0_u32))
        }
        _ => ("", 0, 0),
    };
    let work: fn(&Program, &[Cpus]) -> Result<(), String> = match way {
        "sweep" | "warm" if operations > 0 && times > 0 => sweep,
        "oracle" if operations > 0 && times > 0 => brute_force,
        _ => {
            eprintln!("usage: weights_bench (sweep | warm | oracle) OPERATIONS TIMES");
            return ExitCode::from(2);
        }
    };
    let program = token_ring(operations, THREADS, false);
    let count: usize = program.threads.iter().map(|thread| thread.operations.len()).sum();
    let cpus: Vec<Cpus> = CPUS.into_iter().filter_map(NonZeroU32::new).map(Cpus::Count).collect();
    let before = if way == "warm" { work(&program, &cpus) } else { Ok(()) };
    let (done, wall, cpu) = timed(|| (0..times).try_for_each(|_| work(&program, &cpus)));
    if let Err(error) = before.and(done) {
        eprintln!("weights_bench: {error}");
        return ExitCode::FAILURE;
    }
    let (wall, cpu) = (wall / u128::from(times), cpu / u64::from(times));
    println!("{{\"operations\":{count},\"wall_ns\":{wall},\"cpu_ns\":{cpu}}}");
    ExitCode::SUCCESS
}

fn sweep(program: &Program, cpus: &[Cpus]) -> Result<(), String> {
    let path = CriticalPath::of(program).map_err(|error| error.to_string())?;
    if let Some(finding) = path.findings().first() {
        return Err(format!("{finding:?}"));
    }
    for weights in path.weights(cpus) {
        for segment in path.segments() {
            for place in 0..weights.cpus().len() {
                black_box(weights.scaled(segment.point, place));
            }
        }
    }
    Ok(())
}

fn brute_force(program: &Program, cpus: &[Cpus]) -> Result<(), String> {
    for count in cpus {
        black_box(oracle::weights(program, *count).map_err(|error| error.to_string())?);
    }
    Ok(())
}
