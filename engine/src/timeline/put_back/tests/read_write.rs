//! Tests with threads on one CPU that read and write under one lock, as the kernel shows them.

use super::{BINARY, HOT, LIBRARY, PID, Run, Shape, WORD, empty, speed_up};
use crate::event::{CodeFact, SyncObject};
use crate::program::{Program, json};
use crate::time::Timestamp;
use crate::timeline::model::{Stack, State};
use crate::timeline::put_back::put_back;
use probe_abi::{SampleReason, SyncOperation};

const THREADS: usize = 4;
/// Nanoseconds of a read, of a write, and between two operations.
const READ: u64 = 50_000;
const WRITE: u64 = 100_000;
const APART: u64 = 25_000;
/// Places in the binary: the calls that take the lock to read and to write, and code under the latter.
const READ_TAKES: u64 = 0x100;
const WRITE_TAKES: u64 = 0x140;
const WRITING: u64 = 0x150;

/// Whether a thread writes in this round: one round in ten, at random.
fn writes(thread: usize, round: u64) -> bool {
    let mixed = (round * 4 + thread as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 32).is_multiple_of(10)
}

#[derive(Clone, Copy, PartialEq)]
enum Doing {
    Apart,
    Wants,
    Has,
}

/// The true sums: nanoseconds under the lock, and number of acquisitions.
struct Truth {
    reading_ns: u64,
    writing_ns: u64,
    taken: u64,
}

/// A run before its first step.
fn begin(end_ns: u64) -> Run {
    let shape = Shape { threads: THREADS as u32, waits_in: "pthread_rwlock_rdlock", ..HOT };
    let mut timeline = empty(shape, end_ns);
    let of_write = [vec![LIBRARY + 0x30, BINARY + WRITE_TAKES + 1], vec![BINARY + WRITING]];
    let stacks = of_write.map(|frames| Stack { pid: PID, time: Timestamp(1), frames, ..Stack::default() });
    timeline.stacks.extend(stacks);
    let place = timeline.code.first().cloned().expect("a place");
    let code = |path: &str, offset, name: &str, under: &[u64]| CodeFact {
        path: path.to_owned(),
        offset,
        function: Some(name.to_owned()),
        under: under.to_vec(),
        ..place.clone()
    };
    timeline.code.extend([
        code("/program", WRITE_TAKES, "worker", &[]),
        code("/program", WRITING, "worker", &[WRITE_TAKES]),
        code("/libc.so.6", 0x30, "pthread_rwlock_wrlock", &[]),
    ]);
    Run { timeline, acquisitions: 0, held_ns: 0, ran_ns: 0 }
}

/// Threads on one CPU that run in slices. Readers share the lock; the last reader wakes a writer, and a writer wakes
/// all readers.
fn run(end_ns: u64) -> (Run, Truth) {
    let mut run = begin(end_ns);
    let mut truth = Truth { reading_ns: 0, writing_ns: 0, taken: 0 };
    let mut doing = [(Doing::Apart, APART, 0u64); THREADS];
    let mut ready: Vec<usize> = (0..THREADS).collect();
    let (mut waiting, mut readers, mut writer): (Vec<usize>, usize, bool) = (Vec::new(), 0, false);
    let (mut now, mut tick) = (1_000u64, 1_000_000u64);
    while now < end_ns && !ready.is_empty() {
        let thread = ready.remove(0);
        run.state(thread, now, State::Running { cpu: Some(0) });
        let slice_ends = now + 2_500_000 + now / 7 % 1_000_003;
        loop {
            let (does, left, round) = doing[thread];
            let is_write = writes(thread, round);
            let length = left.min(slice_ends - now).min(end_ns.saturating_sub(now));
            while tick <= now + length {
                let stack = match does {
                    Doing::Has if is_write => 5,
                    Doing::Has => 0,
                    _ => 1,
                };
                run.sample(thread, tick.max(now), stack, SampleReason::Tick);
                tick += 997_331;
            }
            now += length;
            run.ran_ns += length;
            if does == Doing::Has {
                *if is_write { &mut truth.writing_ns } else { &mut truth.reading_ns } += length;
            }
            doing[thread].1 -= length;
            if doing[thread].1 > 0 || now >= end_ns {
                run.state(thread, now, State::Runnable);
                ready.push(thread);
                break;
            }
            match does {
                Doing::Apart => doing[thread].0 = Doing::Wants,
                Doing::Wants if writer || (is_write && readers > 0) => {
                    let (stack, word) = if is_write { (4, WORD + 4) } else { (2, WORD) };
                    run.waits_for(thread, now, stack, word);
                    waiting.push(thread);
                    break;
                }
                Doing::Wants => {
                    truth.taken += 1;
                    (writer, readers) = if is_write { (true, 0) } else { (false, readers + 1) };
                    doing[thread] = (Doing::Has, if is_write { WRITE } else { READ }, round);
                }
                Doing::Has => {
                    doing[thread] = (Doing::Apart, APART, round + 1);
                    (writer, readers) = if is_write { (false, 0) } else { (false, readers - 1) };
                    let wants_write = |waiter: &&usize| writes(**waiter, doing[**waiter].2);
                    let woken: Vec<usize> = match readers {
                        0 if is_write && waiting.iter().any(|waiter| !wants_write(&waiter)) => {
                            waiting.iter().filter(|waiter| !wants_write(waiter)).copied().collect()
                        }
                        0 => waiting.iter().find(wants_write).copied().into_iter().collect(),
                        _ => Vec::new(),
                    };
                    waiting.retain(|waiter| !woken.contains(waiter));
                    // As in glibc, woken threads have the lock when they return.
                    for woken in woken {
                        let is_write = writes(woken, doing[woken].2);
                        (writer, readers) = if is_write { (true, 0) } else { (false, readers + 1) };
                        truth.taken += 1;
                        doing[woken] = (Doing::Has, if is_write { WRITE } else { READ }, doing[woken].2);
                        run.wakes(thread, woken, now);
                        ready.push(woken);
                    }
                }
            }
        }
    }
    for thread in &mut run.timeline.threads {
        thread.samples.sort_by_key(|seen| seen.time);
    }
    (run, truth)
}

/// A program that does the same work with recorded operations.
fn program(rounds: u64) -> Program {
    let round = |thread, round| {
        let (takes, length) = if writes(thread, round) { ("wrlock", WRITE) } else { ("rdlock", READ) };
        format!(r#"["exec","f",{APART}],["{takes}","r"],["exec","g",{length}],["rwunlock","r"]"#)
    };
    let thread = |thread| {
        let rounds: Vec<String> = (0..rounds).map(|number| round(thread, number)).collect();
        format!(r#"{{"name":"w{thread}","ops":[{}]}}"#, rounds.join(","))
    };
    let threads = (0..THREADS).map(thread).collect::<Vec<_>>().join(",");
    json::read(&format!(r#"{{"format":"longpole-program","version":1,"threads":[{threads}]}}"#))
        .expect("a program")
}

/// If the waits were replayed, the speed-up of four readers and writers on 16 CPUs would be half of the true one.
#[test]
fn a_read_write_lock_is_put_back_with_both_of_its_sides() {
    let (run, truth) = run(1_500_000_000);
    let mut timeline = run.timeline.clone();
    put_back(&mut timeline);
    let [fact] = timeline.put_back[..] else { panic!("one lock: {:?}", timeline.put_back) };
    let [lock] = timeline.locks[..] else { panic!("one lock: {:?}", timeline.locks) };
    assert_eq!((lock.kind, lock.address), (SyncObject::RwLock, WORD));
    let share = (truth.reading_ns + truth.writing_ns) as f64 / run.ran_ns as f64;
    assert!((fact.share - share).abs() < 0.05, "{fact:?} of {share}");
    let many = (fact.seen + fact.added) as f64 / truth.taken as f64;
    assert!((many - 1.0).abs() < 0.15, "{fact:?} of {}", truth.taken);
    let of = |operation| timeline.lock_operations.iter().filter(|used| used.operation == operation).count();
    let (reads, writes) = (of(SyncOperation::RwLockRead), of(SyncOperation::RwLockWrite));
    let part = writes as f64 / (reads + writes) as f64;
    assert!((0.07..0.14).contains(&part), "{writes} of {}", reads + writes);

    let made = crate::translation::from_timeline(&timeline);
    let of_it = |kind: &str| made.findings.iter().any(|finding| finding.kind() == kind);
    assert!(of_it("put_back") && !of_it("replayed"), "{:?}", made.findings);
    let (found, right) = (speed_up(&made, 4), speed_up(&program(200), 4));
    let replayed = speed_up(&crate::translation::from_timeline(&run.timeline), 4);
    assert!((found / right - 1.0).abs() < 0.2, "{found} of {right}, {replayed} with wake-ups as recorded");
    assert!((replayed / right - 1.0).abs() > 0.25, "{replayed} of {right}");
}

#[test]
fn a_read_write_lock_of_which_one_side_is_unknown_is_not_put_back() {
    let (mut run, _) = run(300_000_000);
    for code in &mut run.timeline.code {
        code.under.retain(|call| *call == READ_TAKES);
    }
    put_back(&mut run.timeline);
    assert_eq!((run.timeline.put_back.len(), run.timeline.lock_operations.len()), (0, 0));
    assert!(run.timeline.findings.iter().any(|finding| finding.kind() == "held_not_measured"));
}
