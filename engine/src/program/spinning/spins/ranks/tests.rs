//! Ranks of MPI that wait for each other, with a known answer.

use crate::event::{CodeFact, MappingFact};
use crate::finding::Finding;
use crate::program::spinning::spins::tests::{Part, US, computes_ns, timeline, unlimited_ns};
use crate::program::{Operation, Program};
use crate::time::Timestamp;
use crate::timeline::{External, Interval, Stack, State, Thread, Timeline, Wait, WaitReason, Wake};
use crate::translation::from_timeline;

/// First addresses of the binaries in each process.
const BINARIES: [(&str, u64); 4] = [
    ("/bin/app", 0x1000),
    ("/lib/libopen-pal.so.40.30.2", 0x2000),
    ("/lib/libmpi.so.40.30.4", 0x3000),
    ("/lib/libc.so.6", 0x4000),
];
const COPIES: u64 = 0x4110;
const PROGRESS: u64 = 0x2110;
const CALL: u64 = 0x3110;
const MAIN: u64 = 0x1310;

/// Ranks with a sample every 2 ms: where a part waits, the thread is in this call of MPI, and innermost in `inner`.
fn job(ranks: &[Vec<Part>], call: &str, inner: u64) -> Timeline {
    let mut timeline = timeline(ranks, 2_000, false, "");
    let code = |path: &str, offset: u64, name: &str| CodeFact {
        path: path.to_owned(),
        offset,
        function: Some(name.to_owned()),
        entry: Some(offset & !0xff),
        ..CodeFact::default()
    };
    timeline.code = vec![
        code("/bin/app", 0x110, "work"),
        code("/bin/app", 0x30f, "main"),
        code("/lib/libopen-pal.so.40.30.2", 0x110, "opal_progress"),
        code("/lib/libopen-pal.so.40.30.2", 0x10f, "opal_progress"),
        code("/lib/libmpi.so.40.30.4", 0x10f, call),
        code("/lib/libc.so.6", 0x110, "__memcpy_avx512_unaligned_erms"),
    ];
    (timeline.mappings, timeline.stacks) = (Vec::new(), Vec::new());
    for (pid, thread) in (100..).step_by(10).zip(&mut timeline.threads) {
        (thread.pid, thread.tid) = (pid, pid);
        let mappings = BINARIES.map(|(path, start)| MappingFact {
            pid,
            start,
            end: start + 0x1000,
            path: path.to_owned(),
            ..MappingFact::default()
        });
        timeline.mappings.extend(mappings);
        let first = timeline.stacks.len() as u32;
        thread.samples.iter_mut().for_each(|sample| sample.stack += first);
        for frames in [vec![0x1110, MAIN], vec![inner, PROGRESS, CALL, MAIN]] {
            timeline.stacks.push(Stack { pid, time: Timestamp(0), frames, ..Stack::default() });
        }
    }
    timeline
}

/// How many waits end by a guess, of all.
fn guessed(program: &Program) -> Option<(u32, u32)> {
    program.findings.iter().find_map(|finding| match finding {
        Finding::Spinning { guessed, waits, .. } => Some((*guessed, *waits)),
        _ => None,
    })
}

fn is_near(ns: u64, wanted_us: u64) -> bool {
    ns.abs_diff(wanted_us * US) <= wanted_us * US / 30
}

/// Processes were no peers of each other, so all waiting in MPI counted as computing: 800 ms.
#[test]
fn a_rank_that_waits_for_a_slower_one_does_not_compute() {
    let slow = vec![(40_000, false); 10];
    let quick: Vec<Part> = (0..10).flat_map(|_| [(10_000, false), (30_000, true)]).collect();
    let program = from_timeline(&job(&[slow, quick], "PMPI_Allreduce", PROGRESS));
    assert_eq!(program.check(), Ok(()));
    let (all, alone) = (computes_ns(&program), unlimited_ns(&program));
    assert!(is_near(all, 500_000) && is_near(alone, 400_000), "{all}, {alone}");
    assert_eq!(guessed(&program).map(|(guessed, _)| guessed), Some(0), "there is no other rank");
    assert!(program.edges.iter().all(|edge| edge.ends_with(" in MPI_Allreduce")), "{:?}", program.edges);
}

/// A call that does not block, and a copy inside a call that does, are work.
#[test]
fn sending_without_waiting_and_copying_are_work() {
    let threads = || vec![vec![(400_000, false)], vec![(200_000, false), (200_000, true)]];
    for (call, inner) in [("PMPI_Isend", PROGRESS), ("PMPI_Test", PROGRESS), ("PMPI_Recv", COPIES)] {
        let program = from_timeline(&job(&threads(), call, inner));
        assert_eq!((computes_ns(&program), guessed(&program)), (800_000 * US, None), "{call}");
    }
    let program = from_timeline(&job(&threads(), "PMPI_Recv", PROGRESS));
    assert!(is_near(computes_ns(&program), 600_000));
}

/// A collective call ends after the last rank to enter. The middle rank was not the last one, although it computes, too.
#[test]
fn a_collective_call_of_three_ranks_ends_after_the_last_one() {
    let rank = |work: u64| (0..10).flat_map(|_| [(work, false), (40_000 - work, true)]).collect::<Vec<_>>();
    let program = from_timeline(&job(&[rank(10_000), rank(20_000), rank(40_000)], "MPI_Barrier", PROGRESS));
    let (all, alone) = (computes_ns(&program), unlimited_ns(&program));
    assert!(is_near(all, 700_000) && is_near(alone, 400_000), "{all}, {alone}");
    let releases = |thread: usize| {
        let operations = program.threads[thread].operations.iter();
        operations.filter(|operation| matches!(operation, Operation::Release(_))).count()
    };
    let (guesses, waits) = guessed(&program).expect("a note");
    assert_eq!(guesses, waits, "any of two ranks may have ended each wait");
    assert!(releases(2) >= 16 && releases(0) + releases(1) <= 4, "{} of {waits}", releases(2));
}

/// The root of a broadcast sleeps while the other rank waits: the sleep is on the other rank's path.
#[test]
fn a_wait_for_a_rank_that_sleeps_ends_after_the_sleep() {
    let root = vec![(20_000, false), (50_000, false), (30_000, false)];
    let mut timeline =
        job(&[root, vec![(20_000, false), (50_300, true), (29_700, false)]], "MPI_Bcast", PROGRESS);
    let root = &mut timeline.threads[0];
    root.waits.push(Wait {
        reason: WaitReason::of(0, probe_abi::Call::NONE),
        wake: Wake::External(External::Timer),
        cut_at_start: false,
        moved_to: None,
        from_now: false,
    });
    let runs = |start: u64| Interval {
        start: Timestamp(start * US),
        state: State::Running { cpu: Some(0) },
        first_step: 0,
    };
    let sleep = Interval { start: Timestamp(20_000 * US), state: State::Blocked(0), first_step: 0 };
    root.intervals = vec![runs(0), sleep, runs(70_000)];
    root.samples.retain(|sample| !(20_000 * US..70_000 * US).contains(&sample.time.0));
    // Sampling lets the wait end before or after the sleep, by up to half a period.
    for shift_us in [0, 400, 900, 1_400] {
        let mut timeline = timeline.clone();
        for sample in &mut timeline.threads[1].samples {
            sample.time = Timestamp(sample.time.0 + shift_us * US);
        }
        let program = from_timeline(&timeline);
        let (all, alone) = (computes_ns(&program), unlimited_ns(&program));
        assert!(all.abs_diff(100_000 * US) <= 2_000 * US, "{shift_us}: {all}");
        assert!(alone.abs_diff(100_000 * US) <= 2_000 * US, "{shift_us}: {alone}");
    }
}

/// The samples around a stretch decide if it has none, or if its stack lacks the call.
#[test]
fn a_rank_that_yields_its_cpu_or_has_stacks_cut_off_waits_all_the_same() {
    let threads = [vec![(400_000, false)], vec![(100_000, false), (300_000, true)]];
    let mut timeline = job(&threads, "MPI_Recv", PROGRESS);
    let yields = |thread: &mut Thread| {
        let interval = |at: u64| {
            let state = if at.is_multiple_of(2) { State::Running { cpu: Some(1) } } else { State::Runnable };
            Interval { start: Timestamp(at * 100 * US), state, first_step: 0 }
        };
        thread.intervals = (0..4_000).map(interval).collect();
    };
    let cut = Stack { pid: 110, time: Timestamp(0), frames: vec![PROGRESS], ..Stack::default() };
    let number = timeline.stacks.len() as u32;
    timeline.stacks.push(cut);
    for sample in timeline.threads[1].samples.iter_mut().skip(60).step_by(10) {
        (sample.stack, sample.truncated) = (number, true);
    }
    let program = from_timeline(&timeline);
    assert!(is_near(computes_ns(&program), 500_000), "{}", computes_ns(&program));
    yields(&mut timeline.threads[1]);
    let program = from_timeline(&timeline);
    assert!(is_near(computes_ns(&program), 450_000), "{}", computes_ns(&program));
}

/// When both ranks are in MPI, nothing but the messages takes the time.
#[test]
fn time_in_which_all_ranks_wait_stays_computing() {
    let threads = [vec![(100_000, false), (300_000, true)], vec![(400_000, true)]];
    let program = from_timeline(&job(&threads, "MPI_Recv", PROGRESS));
    let (all, alone) = (computes_ns(&program), unlimited_ns(&program));
    assert!(is_near(all, 700_000) && is_near(alone, 400_000), "{all}, {alone}");
}

/// Messages do not take the time in which the other rank had no CPU.
#[test]
fn a_rank_without_a_cpu_in_a_call_holds_up_the_other() {
    let threads = [vec![(50_000, false), (350_000, true)], vec![(100_000, false), (300_000, true)]];
    let mut timeline = job(&threads, "MPI_Recv", PROGRESS);
    let interval = |start: u64, state: State| Interval { start: Timestamp(start * US), state, first_step: 0 };
    let runs = State::Running { cpu: Some(0) };
    let thread = &mut timeline.threads[1];
    thread.intervals = vec![interval(0, runs), interval(110_000, State::Runnable), interval(380_000, runs)];
    thread.samples.retain(|sample| !(110_000 * US..380_000 * US).contains(&sample.time.0));
    let all = computes_ns(&from_timeline(&timeline));
    // Work of 50 and 100 ms; messages for 20 ms in each rank, and for 10 ms in one.
    assert!(is_near(all, 200_000), "{all}");
}
