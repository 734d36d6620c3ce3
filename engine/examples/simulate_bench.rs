//! Times the simulation of a generated program on a number of processors; `./x bench simulate` calls it in a release build.
//! usage: simulate_bench (eevdf | ideal) OPERATIONS CPUS; prints one line of JSON.

use std::process::ExitCode;
use std::time::Instant;

use engine::program::{Function, FunctionRef, ObjectId, Operation, Program, Thread};
use engine::schedule::{Rules, Setup, Sharing, run};
use engine::time::Ticks;

const THREADS: u32 = 64;
const LOCKS: u32 = 32;
const FUNCTIONS: u32 = 64;
/// Operations of a round; every 64th round has a barrier more.
const ROUND: usize = 8;
const ROUNDS_PER_BARRIER: usize = 64;

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
    let rules = Rules {
        wake_latency: Ticks::from_ns(3_000),
        switch_cost: Ticks::from_ns(1_000),
        ..Rules::free(cpus)
    };
    let processors = match way.as_str() {
        "eevdf" => Sharing::Scheduled(rules),
        "ideal" => Sharing::Ideal { hundredths: u64::from(cpus) * 100 },
        _ => return usage(),
    };
    let setup = Setup { processors, servers: Vec::new() };
    let rounds = operations / THREADS as usize / ROUND;
    let program = whole(rounds);
    let before_bytes = status_bytes("VmRSS:");
    let (start, start_cpu) = (Instant::now(), processor_ns());
    let outcome = run(&program, &setup).ok();
    let (wall, cpu) = (start.elapsed().as_nanos(), processor_ns().saturating_sub(start_cpu));
    let Some(outcome) = outcome else {
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

fn whole(rounds: usize) -> Program {
    let mut program = skeleton();
    for (thread, own) in program.threads.iter_mut().zip(0..) {
        let mut random = Random::of(own);
        thread.operations.reserve(rounds * ROUND + rounds / ROUNDS_PER_BARRIER);
        (0..rounds).for_each(|round| random.round(own, round, &mut thread.operations));
    }
    program
}

/// Threads that compute in functions, share locks, pass a token to their neighbour in every round and meet at a barrier
/// every 64 rounds. Every post comes before the wait of the same round, so nothing can stick.
fn skeleton() -> Program {
    let names = (0..LOCKS).map(|n| format!("m{n}")).chain((0..THREADS).map(|n| format!("s{n}")));
    let function = |n| Function { name: format!("f{n}"), ..Function::default() };
    Program {
        functions: (0..FUNCTIONS).map(function).collect(),
        objects: names.chain([String::from("b")]).collect(),
        threads: (0..THREADS).map(|own| Thread { name: format!("T{own}"), ..Thread::default() }).collect(),
        ..Program::default()
    }
}

/// Linear congruential, the upper half used: the same program in every run.
struct Random(u64);

impl Random {
    fn of(own: u32) -> Random {
        Random(u64::from(own) + 1)
    }

    fn below(&mut self, bound: u32) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        u32::try_from(((self.0 >> 32) * u64::from(bound)) >> 32).unwrap_or(0)
    }

    fn length(&mut self, most_ns: u32) -> Ticks {
        Ticks::from_ns(u64::from(self.below(most_ns)) + 1)
    }

    fn round(&mut self, own: u32, round: usize, to: &mut Vec<Operation>) {
        let lock = ObjectId(self.below(LOCKS));
        to.extend([
            Operation::Call(FunctionRef(self.below(FUNCTIONS))),
            Operation::Exec(self.length(20_000)),
            Operation::Lock(lock),
            Operation::Exec(self.length(500)),
            Operation::Unlock(lock),
            Operation::Return,
            Operation::Signal(ObjectId(LOCKS + own)),
            Operation::Wait(ObjectId(LOCKS + (own + THREADS - 1) % THREADS)),
        ]);
        if round % ROUNDS_PER_BARRIER == ROUNDS_PER_BARRIER - 1 {
            to.push(Operation::Barrier(ObjectId(LOCKS + THREADS), THREADS));
        }
    }
}

/// A number of /proc/self/status, in bytes.
fn status_bytes(name: &str) -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
    line.split_whitespace().next().and_then(|kib| kib.parse::<u64>().ok()).unwrap_or(0) * 1024
}

/// Processor time of this thread so far: on a shared machine the wall clock says little.
fn processor_ns() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split(' ').next().and_then(|ns| ns.parse().ok()).unwrap_or(0)
}
