//! Times the way from records to a program, on a generated recording.
//! usage: recording_bench RECORDS; prints one line of JSON.

use std::hint::black_box;
use std::process::ExitCode;
use std::time::Instant;

use engine::event::{Merger, Recording};
use engine::program::{Function, FunctionRef, ObjectId, Operation, Program, Thread};
use engine::synth::{Execution, Numbers, generate};
use engine::time::Ticks;
use engine::timeline::build;
use engine::translation::from_timeline;

const THREADS: u32 = 32;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let wanted: u64 = arguments.first().and_then(|word| word.parse().ok()).unwrap_or(0);
    if wanted == 0 || arguments.len() != 1 {
        eprintln!("usage: recording_bench RECORDS");
        return ExitCode::from(2);
    }
    let execution = Execution { cpus: 8, rings: 4, noise: true, ..Execution::default() };
    // About seven records for each round of a thread.
    let generated = match generate(&program(wanted / 7 / u64::from(THREADS)), &execution) {
        Ok(generated) => generated,
        Err(error) => {
            eprintln!("recording_bench: {error}");
            return ExitCode::FAILURE;
        }
    };
    let mut merger = Merger::new(generated.rings.len());
    let mut events = Vec::new();
    let records: usize = generated.rings.iter().map(Vec::len).sum();
    let start = Instant::now();
    // Each ring a batch at a time, as they are drained.
    let mut rings: Vec<_> = generated.rings.iter().map(|ring| ring.chunks(4096)).collect();
    while rings.iter().any(|ring| ring.len() > 0) {
        for (ring, chunks) in rings.iter_mut().enumerate() {
            chunks.next().into_iter().flatten().for_each(|record| merger.push(ring, *record));
        }
        events.extend(merger.release());
    }
    events.extend(merger.finish());
    let merged = start.elapsed();
    let recording = Recording { facts: generated.facts.clone(), events, notes: merger.take_notes() };
    let start = Instant::now();
    let timeline = build(&recording);
    let built = start.elapsed();
    let start = Instant::now();
    let program = from_timeline(&timeline);
    let translated = start.elapsed();
    let operations: usize = program.threads.iter().map(|thread| thread.operations.len()).sum();
    let waits = timeline.counts.wakes;
    black_box((timeline, program));
    let rate = records as f64 / (built + translated).as_secs_f64();
    println!(
        "{{\"records\":{records},\"operations\":{operations},\"waits\":{waits},\"merge_s\":{:.3},\"timeline_s\":{:.3},\"program_s\":{:.3},\"records_per_s\":{rate:.0}}}",
        merged.as_secs_f64(),
        built.as_secs_f64(),
        translated.as_secs_f64(),
    );
    ExitCode::SUCCESS
}

/// Threads that compute in functions, and hand over to one another now and then.
fn program(rounds: u64) -> Program {
    let mut numbers = Numbers::new(1);
    let threads = (0..THREADS).map(|index| {
        let mut operations = Vec::new();
        for _ in 0..rounds {
            operations.push(Operation::Call(FunctionRef(numbers.below(40) as u32)));
            let leaf = FunctionRef(40 + numbers.below(24) as u32);
            operations.push(Operation::ExecIn(leaf, Ticks::from_ns(500 + numbers.below(3_000))));
            operations.push(Operation::Exec(Ticks::from_ns(numbers.below(1_000))));
            operations.push(Operation::Return);
            if numbers.chance(1, 3) {
                operations.push(Operation::Signal(ObjectId((index + 1) % THREADS)));
                operations.push(Operation::Wait(ObjectId(index)));
            }
        }
        Thread { name: format!("worker-{index}"), operations, ..Thread::default() }
    });
    Program {
        threads: threads.collect(),
        functions: (0..64).map(|n| Function { name: format!("f{n}"), ..Function::default() }).collect(),
        objects: (0..THREADS).map(|n| format!("s{n}")).collect(),
        ..Program::default()
    }
}
