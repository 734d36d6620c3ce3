//! Times the account of a measured run on a generated timeline; `./x bench parallelism` calls it in a release
//! build. usage: parallelism_bench INTERVALS THREADS; prints one line of JSON: intervals, processor time, and
//! the most memory that the account took in addition to the timeline.

use std::hint::black_box;
use std::process::ExitCode;

use engine::event::FunctionFact;
use engine::parallelism::measured;
use engine::time::Timestamp;
use engine::timeline::{External, Interval, State, Step, StepKind, Thread, Timeline, Wait, WaitReason, Wake};
use engine::translation::from_timeline;
use timed::timed;

#[path = "shared/timed.rs"]
mod timed;

fn main() -> ExitCode {
    let arguments: Vec<u64> = std::env::args().skip(1).filter_map(|text| text.parse().ok()).collect();
    let [intervals, threads @ (1..)] = arguments[..] else {
        eprintln!("usage: parallelism_bench INTERVALS THREADS");
        return ExitCode::from(2);
    };
    let timeline = generate(intervals, threads);
    let count: usize = timeline.threads.iter().map(|thread| thread.intervals.len()).sum();
    // The program has only names of threads and functions: operations would only take memory.
    let program = from_timeline(&Timeline {
        threads: timeline
            .threads
            .iter()
            .map(|thread| Thread { intervals: thread.intervals[..1].to_vec(), ..thread.clone() })
            .collect(),
        ..timeline.clone()
    });
    let before = peak_bytes();
    let (run, _, cpu) = timed(|| black_box(measured(&timeline, &program, false)));
    let memory = peak_bytes().saturating_sub(before);
    let functions =
        run.rows.iter().filter(|row| row.kind == engine::parallelism::ParallelismRowKind::Function);
    let sum: u64 = functions.map(|row| row.normalized_self_ns).sum();
    if sum + run.nobody_busy_ns != run.elapsed_ns {
        eprintln!("parallelism_bench: {sum} and {} are not {}", run.nobody_busy_ns, run.elapsed_ns);
        return ExitCode::FAILURE;
    }
    println!("{{\"intervals\":{count},\"cpu_ns\":{cpu},\"memory_bytes\":{memory}}}");
    ExitCode::SUCCESS
}

/// Threads that run, wait for a CPU and sleep in turn for random lengths, each in a function of its own.
fn generate(intervals: u64, threads: u64) -> Timeline {
    let mut random = Random(1);
    let each = intervals / threads;
    let wait = Wait {
        reason: WaitReason::of(1, probe_abi::Call::NONE),
        wake: Wake::External(External::Timer),
        cut_at_start: false,
        moved_to: None,
        from_now: false,
    };
    let threads: Vec<Thread> = (0..threads)
        .map(|number| {
            let mut now = 0;
            let intervals = (0..each).map(|turn| {
                let start = Timestamp(now);
                now += 1 + random.below(20_000);
                let state = match turn % 3 {
                    0 => State::Running { cpu: Some(number as u16) },
                    1 => State::Blocked(0),
                    _ => State::Runnable,
                };
                Interval { start, state, first_step: 1 }
            });
            let intervals: Vec<Interval> = intervals.collect();
            Thread {
                pid: 1,
                tid: 1 + number as u32,
                comm: "bench".to_owned(),
                end: Timestamp(now),
                intervals,
                waits: vec![wait],
                steps: vec![Step { time: Timestamp(0), kind: StepKind::Enter(number as u32) }],
                ..Thread::default()
            }
        })
        .collect();
    let functions = (0..threads.len() as u32).map(|id| FunctionFact {
        id,
        name: format!("f{id}"),
        exits_probed: true,
        ..FunctionFact::default()
    });
    let end = threads.iter().map(|thread| thread.end).max().unwrap_or_default();
    Timeline { end, functions: functions.collect(), threads, ..Timeline::default() }
}

/// Linear congruential generator, of which the upper half is used: the same timeline in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 32) * bound) >> 32
    }
}

/// The largest memory use of this process so far, bytes.
fn peak_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}
