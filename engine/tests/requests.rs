//! Paths of single requests, on timelines given as drawings: a line for each thread, a sign for each 100 ns.
//!
//! | sign | the thread |
//! |---|---|
//! | `R` | is on CPU 0; `S`: on CPU 1 |
//! | `r` | wants a CPU |
//! | a digit | sleeps until the thread with this number wakes it |
//! | `l`, `m` | waits for a lock until thread 1, or thread 2, wakes it |
//! | `d`, `n`, `t`, `x` | sleeps until the disk, the network, a timer, or something unknown wakes it |
//! | `?` | does something unknown |

use engine::event::FutexFact;
use engine::program::{Occurrences, Program};
use engine::requests::{
    Calls, Cause, CauseKind, Latencies, PathPart, Paths, Request, RequestSummary, SlowGroup, Source, calls,
    summarize, time_of_requests, traces,
};
use engine::time::Timestamp;
use engine::timeline::{
    External, FirstUse, Interval, Lock, LockOperation, NO_OBJECT, SocketRequest, State, Step, StepKind,
    Thread, Timeline, TraceStretch, UnknownReason, Wait, WaitReason, Wake, Wakeup,
};
use engine::translation::unsimulated_from_timeline;
use probe_abi::{Call, Descriptor, SyncOperation};

const UNIT: u64 = 100;

fn waiting(number: u32) -> WaitReason {
    let call = Call { number, ..Call::NONE };
    WaitReason::Kernel { task_state: 1, call, descriptor: Descriptor::Socket }
}

fn wake(sign: char) -> Option<u32> {
    match sign {
        'l' => Some(1),
        'm' => Some(2),
        _ => sign.to_digit(10),
    }
}

/// The timeline of a drawing; see the module.
fn drawn(lines: &[&str]) -> Timeline {
    let end = lines.iter().map(|line| line.len()).max().unwrap_or(0) as u64 * UNIT;
    let mut timeline = Timeline { end: Timestamp(end), ..Timeline::default() };
    timeline.locks = vec![Lock {
        pid: 7,
        address: 0x40,
        kind: engine::event::SyncObject::Mutex,
        first: FirstUse::default(),
        put_back: false,
    }];
    for (index, line) in (0u32..).zip(lines) {
        let mut thread = Thread {
            pid: 7,
            tid: 7 + index,
            comm: format!("T{index}"),
            end: Timestamp(line.len() as u64 * UNIT),
            ..Thread::default()
        };
        let signs: Vec<char> = line.chars().collect();
        let mut operations = Vec::new();
        let mut from = 0;
        while let Some(&sign) = signs.get(from) {
            let to = from + signs[from..].iter().take_while(|other| **other == sign).count();
            let (start, woken) = (Timestamp(from as u64 * UNIT), Timestamp(to as u64 * UNIT));
            let state = match sign {
                'R' => State::Running { cpu: Some(0) },
                'S' => State::Running { cpu: Some(1) },
                'r' => State::Runnable,
                '?' => State::Unknown(UnknownReason::Gap),
                _ => {
                    let number = thread.waits.len() as u32;
                    let ended = match wake(sign) {
                        Some(waker) => {
                            let wakeup = Wakeup { time: woken, waker, wakee: index, ended: Some(number) };
                            timeline.wakeups.push(wakeup);
                            Wake::By(timeline.wakeups.len() as u32 - 1)
                        }
                        None => Wake::External(match sign {
                            'd' => External::Block,
                            'n' => External::Network,
                            't' => External::Timer,
                            _ => External::NotSeen,
                        }),
                    };
                    let call = if sign == 't' {
                        35
                    } else if sign == 'd' {
                        75
                    } else {
                        45
                    };
                    let is_lock = sign.is_ascii_lowercase() && wake(sign).is_some();
                    let word = FutexFact { word: 0x40, operation: 128, words: 0 };
                    let wait = Wait {
                        reason: if is_lock { WaitReason::Futex(word) } else { waiting(call) },
                        wake: ended,
                        cut_at_start: false,
                        moved_to: None,
                        from_now: false,
                    };
                    thread.waits.push(wait);
                    if is_lock {
                        operations.push((start, woken));
                    }
                    State::Blocked(number)
                }
            };
            let first_step = operations.iter().filter(|(_, ended)| *ended <= start).count() as u32;
            thread.intervals.push(Interval { start, state, first_step });
            from = to;
        }
        add_locks(&mut timeline, &mut thread, index, &operations);
        timeline.threads.push(thread);
    }
    timeline
}

/// Adds acquisitions of the lock, from each first time to the second.
fn add_locks(timeline: &mut Timeline, thread: &mut Thread, index: u32, taken: &[(Timestamp, Timestamp)]) {
    for &(began, ended) in taken {
        let used = timeline.lock_operations.len() as u32;
        timeline.lock_operations.push(LockOperation {
            began,
            ended,
            value: 0,
            caller: 0,
            thread: index,
            object: 0,
            second: NO_OBJECT,
            outcome: 0,
            operation: SyncOperation::MutexLock,
            flags: 0,
            after_hole: false,
            times: 1,
        });
        thread.steps.push(Step { time: ended, kind: StepKind::Operated(used) });
    }
}

fn request(begin: (u32, u64), end: (u32, u64)) -> Request {
    Request {
        begin_thread: begin.0,
        begin: Timestamp(begin.1 * UNIT),
        taken: Timestamp(begin.1 * UNIT),
        end_thread: end.0,
        end: Some(Timestamp(end.1 * UNIT)),
        ..Request::default()
    }
}

#[track_caller]
pub(crate) fn assert_adds_up(parts: &[PathPart], request: &Request) {
    let sum: u64 = parts.iter().map(PathPart::length_ns).sum();
    assert_eq!(Some(sum), request.latency_ns(), "{request:?} {parts:?}");
    let mut at = request.begin;
    for part in parts {
        assert_eq!(part.from, at, "{parts:?}");
        assert!(part.to > part.from, "{parts:?}");
        at = part.to;
    }
}

/// The path of the first request: thread, letter of the cause, number of units; a star if it counts for a lock.
fn path(lines: &[&str], requests: &[Request]) -> String {
    path_in(&drawn(lines), &Calls { requests: requests.to_vec(), ..Calls::default() })
}

fn path_in(timeline: &Timeline, calls: &Calls) -> String {
    let program = unsimulated_from_timeline(timeline);
    let occurrences = Occurrences::of(timeline, &program);
    let mut paths = Paths::of(timeline, &program, &occurrences, calls);
    let parts = paths.path(&calls.requests[0]).to_vec();
    assert_adds_up(&parts, &calls.requests[0]);
    let words = parts.iter().map(|part| {
        let letter = match part.cause {
            Cause::Computing(_) => 'c',
            Cause::Woken => 'w',
            Cause::NoCpu => 'r',
            Cause::NoCpuOthers => 'o',
            Cause::Queued => 'q',
            Cause::Unknown => 'x',
            Cause::NotFollowed => '-',
            Cause::Waiting(outside) => match outside.source {
                Source::Disk => 'd',
                Source::Peer => 'n',
                Source::Timer => 't',
                Source::Process | Source::Other => '!',
            },
        };
        let lock = if part.lock.is_some() { "*" } else { "" };
        format!("{}{letter}{}{lock}", part.thread, part.length_ns() / UNIT)
    });
    words.collect::<Vec<_>>().join(" ")
}

#[test]
fn a_wait_within_a_request_is_what_the_thread_that_ended_it_did() {
    let one = |line: &str| path(&[line, "SSSSSSSSSSSSSSSS"], &[request((0, 0), (0, 10))]);
    assert_eq!(one("RRRdddrRRR"), "0c3 0d3 0w1 0c3");
    assert_eq!(one("RRRnnnrRRR"), "0c3 0n3 0w1 0c3");
    assert_eq!(one("RRRtttrRRR"), "0c3 0t3 0w1 0c3");
    assert_eq!(one("RRRxxxr?RR"), "0c3 0x3 0w1 0x1 0c2");
    assert_eq!(one("RRR1111rRR"), "0c3 1c4 0w1 0c2");
    let two = ["RR111111rR", "222ddddSSS", "RRSRRRRRRR"];
    assert_eq!(path(&two, &[request((0, 0), (0, 10))]), "0c2 2c1 1d4 1c1 0r1 0c1");
    // The request begins within an interval, and ends within a wait.
    assert_eq!(path(&two, &[request((0, 1), (0, 9))]), "0c1 2c1 1d4 1c1 0r1");
}

#[test]
fn a_request_s_wait_for_a_cpu_is_for_own_threads_others_or_the_wake_up() {
    let of = |own: &str, other: &str| path(&[own, other], &[request((0, 0), (0, own.len() as u64))]);
    assert_eq!(of("RRrrrrRR", "rrRRRRdd"), "0c2 0r4 0c2");
    assert_eq!(of("RRrrrrRR", "SSSSSSSS"), "0c2 0o4 0c2");
    assert_eq!(of("RdrrrrRR", "SSRRSSSS"), "0c1 0d1 0r2 0w2 0c2");
    let long = format!("Rd{}R", "r".repeat(3_000));
    assert_eq!(of(&long, "SSSS"), "0c1 0d1 0o3000 0c1");
}

#[test]
fn what_a_lock_s_holder_does_is_marked_as_waiting_for_the_lock() {
    let lines = ["RRllllrRR", "SSSddSSSS"];
    assert_eq!(path(&lines, &[request((0, 0), (0, 9))]), "0c2 1c1* 1d2* 1c1* 0w1 0c2");
    // The holder waited for another thread that held the lock.
    let two = ["RRllllllrR", "SmmmmrSSSS", "RRRRRRRRRR"];
    assert_eq!(path(&two, &[request((0, 0), (0, 10))]), "0c2 2c3* 1w1* 1c2* 0r1 0c1");
}

/// Until a worker has answered another request, it worked for that other request.
#[test]
fn a_worker_is_not_there_before_its_answer_to_another_request() {
    let lines = ["RR11111111", "SSSSSSSSSS", "R11111rrRR"];
    let requests = [request((0, 0), (0, 10)), request((2, 0), (2, 10))];
    assert_eq!(path(&lines, &requests), "0c2 1q4 1c4");
    assert_eq!(path(&lines, &requests[..1]), "0c2 1c8");
}

/// PostgreSQL's row locks and Java's monitors were "queue: other work", "end of a thread" or "sleeping".
#[test]
fn threads_that_each_answer_a_request_and_end_each_other_s_waits_share_a_lock() {
    // The other request began later: which request had the lock before is not known.
    let lines = ["RR1111111R", "nnnSddddSS"];
    let both = [request((0, 0), (0, 10)), request((1, 3), (1, 10))];
    assert_eq!(path(&lines, &both), "0c2 1q1* 1c1* 1d4* 1c1* 0c1");
    // Without a request of its own, the other thread works for this one.
    assert_eq!(path(&lines, &both[..1]), "0c2 1n1 1c1 1d4 1c1 0c1");
    // The other request waited for a third one, which had the lock before.
    let lines = ["RR1111111R", "SSS2222SSS", "dddddddRRR"];
    let all = [request((0, 0), (0, 10)), request((1, 1), (1, 10)), request((2, 0), (2, 8))];
    assert_eq!(path(&lines, &all), "0c2 2d5* 1c2* 0c1");
}

/// An executor with too few threads was "socket receive" in its threads (public report: hatchet, issue 4803).
#[test]
fn before_its_last_result_an_event_loop_s_worker_did_another_request() {
    let lines = ["R11111R1111R", "SSSSSSSSSSSS"];
    let both = [request((0, 0), (0, 12)), request((0, 0), (0, 7))];
    assert_eq!(path(&lines, &both), "0c1 1q5 1c5 0c1");
}

#[test]
fn the_mean_time_of_requests_is_divided_among_its_causes() {
    let lines = ["RR1111111R", "nnnSddddSS"].map(|line| line.repeat(10));
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let mut timeline = drawn(&lines);
    for round in 0..10 {
        let at = |unit: u64| Timestamp((10 * round + unit) * UNIT);
        for (reader, arrived) in [(0, 0), (1, 3)] {
            timeline.socket_requests.push(SocketRequest {
                inner: false,
                port: 80,
                family: 2,
                arrived: at(arrived),
                read: at(arrived),
                reader,
                answered: Some((reader, at(10))),
            });
        }
    }
    let program = unsimulated_from_timeline(&timeline);
    let (name, spent) = time_of_requests(&timeline, &program).expect("20 requests");
    let parts = spent.iter().map(|part| (part.kind, (part.share * 170.0).round()));
    let expected = [(CauseKind::OtherRequest, 70.0), (CauseKind::Computing, 60.0), (CauseKind::Disk, 40.0)];
    assert_eq!((name.as_str(), parts.collect::<Vec<_>>()), ("port 80", expected.to_vec()));
    let under = spent[0].under.iter().map(|part| (part.kind, (part.share * 170.0).round()));
    let expected = [(CauseKind::Disk, 40.0), (CauseKind::Computing, 20.0), (CauseKind::Queue, 10.0)];
    assert_eq!(under.collect::<Vec<_>>(), expected);
    timeline.socket_requests.truncate(9);
    assert_eq!(time_of_requests(&timeline, &program), None);
}

/// A request received in one thread and answered in another.
#[test]
fn a_request_that_changes_threads_is_followed_from_where_it_began() {
    let lines = ["RRRRRRnnnn", "0000rSSSSS"];
    assert_eq!(path(&lines, &[request((0, 1), (1, 10))]), "0c3 1w1 1c5");
    // The other thread was busy with an earlier request until 6.
    let busy = ["RRRRnnnnnn", "SSSSSSSSSS"];
    let both = [request((0, 2), (1, 10)), request((0, 0), (1, 6))];
    assert_eq!(path(&busy, &both), "0c2 1q2 1c4");
}

/// Before its thread took it, a request waits: behind the thread's other requests, then for anything else that it does.
#[test]
fn a_request_waits_in_its_socket_for_the_thread_that_reads_it() {
    let taken = |at: u64, request: Request| Request { taken: Timestamp(at * UNIT), ..request };
    let late = taken(6, request((0, 1), (0, 9)));
    assert_eq!(path(&["SSSSSSSSS"], &[late, request((0, 0), (0, 4))]), "0q3 0c5");
    // Without another request, the thread itself kept it waiting.
    assert_eq!(path(&["SSSdddSSS"], &[late]), "0c2 0d3 0c3");
    // An idle thread is woken by the request.
    assert_eq!(
        path(&["nnrSSSSSS"], &[taken(4, request((0, 2), (0, 9))), request((0, 0), (0, 1))]),
        "0w1 0c6"
    );
    // Another thread answers it.
    let both = [taken(4, request((0, 1), (1, 9))), request((0, 0), (0, 3))];
    assert_eq!(path(&["RRRRRnnnn", "0000rSSSS"], &both), "0q2 0c1 1w1 1c4");
}

#[test]
fn requests_with_cycles_and_impossible_threads_come_to_an_end() {
    // Each thread woke the other at the same time.
    assert_eq!(path(&["R11111rR", "S00000rS"], &[request((0, 0), (0, 8))]), "0c1 0-5 0w1 0c1");
    // A waker that does not exist, and one that had ended.
    assert_eq!(path(&["R9999rRR"], &[request((0, 0), (0, 8))]), "0c1 0x4 0w1 0c2");
    assert_eq!(path(&["R1111rRR", "SS"], &[request((0, 0), (0, 8))]), "0c1 1c1 1x3 0w1 0c2");
    assert_eq!(path(&["RR"], &[request((0, 0), (5, 8))]), "5x8");
    let backwards = Request { end: Some(Timestamp(0)), ..request((0, 5), (0, 5)) };
    assert_eq!(backwards.latency_ns(), None);
}

/// A thousand threads wait for one with many intervals: the work is bounded, and the rest is counted.
#[test]
fn many_requests_on_one_long_stretch_are_followed_within_bounds() {
    const WAITERS: usize = 1_000;
    let waiter = format!("R{}R", "1".repeat(5_000));
    let worker = "Sd".repeat(2_501);
    let mut lines = vec![waiter.as_str(); WAITERS];
    lines[1] = &worker;
    let timeline = drawn(&lines);
    let requests: Vec<Request> = (0..WAITERS as u32)
        .filter(|thread| *thread != 1)
        .map(|thread| request((thread, 0), (thread, 5_002)))
        .collect();
    let calls = Calls { requests, ..Calls::default() };
    let summary = summarize(&timeline, &unsimulated_from_timeline(&timeline), &calls);
    assert_eq!(summary.count, WAITERS - 1);
    assert!(summary.not_followed > 0);
    assert_sums(&summary);
}

#[track_caller]
pub(crate) fn assert_sums(summary: &RequestSummary) {
    let alike =
        |a: f64, b: f64| assert!((a - b).abs() <= 1e-6 * a.abs().max(b.abs()) + 1e-3, "{a} is not {b}");
    let RequestSummary { rows, latencies, .. } = summary;
    if summary.fast > 0 {
        alike(rows.iter().map(|row| row.fast_ns).sum(), latencies.fast_mean_ns);
    }
    if summary.slow > 0 {
        alike(rows.iter().map(|row| row.slow_ns).sum(), latencies.slow_mean_ns);
    }
    for row in rows.iter().filter(|row| row.kind == CauseKind::Lock) {
        alike(row.details.iter().map(|detail| detail.slow_ns).sum(), row.slow_ns);
    }
    for without in &summary.without {
        assert!(without.p99_ns < latencies.p99_ns, "{summary:?}");
    }
}

/// One of 40 requests waits ten times as long for the disk.
#[test]
fn the_first_row_of_requests_is_what_slow_ones_have_more_of() {
    let mut line = String::new();
    let mut requests = Vec::new();
    for number in 0..40u64 {
        let begin = line.len() as u64;
        line +=
            &if number == 17 { "RR".to_owned() + &"d".repeat(80) + "rR" } else { "RRddddddddrR".to_owned() };
        requests.push(request((0, begin), (0, line.len() as u64)));
    }
    requests.push(Request { end: None, ..request((0, line.len() as u64 - 5), (0, 0)) });
    let timeline = drawn(&[&line]);
    let calls = Calls { requests, ..Calls::default() };
    let summary = summarize(&timeline, &unsimulated_from_timeline(&timeline), &calls);
    assert_sums(&summary);
    assert_eq!((summary.count, summary.unfinished, summary.unfinished_ns), (40, 1, 5 * UNIT));
    assert_eq!((summary.fast, summary.slow, summary.slow_group), (20, 4, SlowGroup::Tenth));
    let Latencies { p50_ns, p99_ns, .. } = summary.latencies;
    assert_eq!((p50_ns, p99_ns), (12 * UNIT, 84 * UNIT));
    let first = &summary.rows[0];
    assert_eq!((first.kind, first.name.as_str()), (CauseKind::Disk, "sync"));
    assert_eq!((first.fast_ns, first.slow_ns), (8.0 * UNIT as f64, (80.0 + 3.0 * 8.0) / 4.0 * UNIT as f64));
    assert_eq!(summary.without[0].kind, CauseKind::Disk);
    assert_eq!(summary.without[0].p99_ns, 4 * UNIT);
    assert_eq!(program_without_requests(), 0);
}

fn program_without_requests() -> usize {
    let summary = summarize(&Timeline::default(), &Program::default(), &calls(&Timeline::default(), &[1]));
    assert_eq!(summary, RequestSummary::default());
    summary.count
}

/// A timeline whose threads work for traces: number of the trace, thread, begin, end (0: not seen to end).
fn working(lines: &[&str], stretches: &[(u64, u32, u64, u64)]) -> Timeline {
    let stretch = |&(trace, thread, begin, end): &(u64, u32, u64, u64)| TraceStretch {
        trace: [trace, 0],
        thread,
        begin: Timestamp(begin * UNIT),
        end: (end > 0).then_some(Timestamp(end * UNIT)),
        began_before: false,
    };
    Timeline { traces: stretches.iter().map(stretch).collect(), ..drawn(lines) }
}

#[test]
fn a_trace_is_one_request_on_all_its_threads() {
    let lines = ["RRnnnnnnnn", "SSSSSSddSS", "SSSSSSSSSR"];
    // Thread 0 hands it over; thread 1 does other work until 4.
    let two = working(&lines, &[(9, 0, 0, 2), (9, 1, 4, 9)]);
    let calls = traces(&two);
    assert_eq!((calls.requests.len(), calls.requests[0].latency_ns()), (1, Some(9 * UNIT)));
    assert_eq!(path_in(&two, &calls), "0c2 1q2 1c2 1d2 1c1");
    // On two threads at once; and again on the first one: a trace that comes again is the same request.
    let both = working(&lines, &[(9, 0, 0, 9), (9, 1, 1, 8)]);
    assert_eq!(path_in(&both, &traces(&both)), "0c2 0n7");
    let again = working(&lines, &[(9, 1, 0, 3), (9, 2, 2, 4), (9, 1, 5, 7)]);
    assert_eq!(path_in(&again, &traces(&again)), "1c2 2c2 1q1 1c1 1d1");
}

#[test]
fn a_trace_that_is_not_seen_to_end_is_a_request_without_a_latency() {
    let lines = ["RRRRRRRRRR", "SSSSSSSSSS"];
    let open = working(&lines, &[(8, 0, 1, 3), (9, 0, 3, 0), (9, 1, 2, 5)]);
    let calls = traces(&open);
    let latencies: Vec<Option<u64>> = calls.requests.iter().map(Request::latency_ns).collect();
    assert_eq!(latencies, [Some(2 * UNIT), None]);
    let summary = summarize(&open, &unsimulated_from_timeline(&open), &calls);
    assert_eq!((summary.count, summary.unfinished, summary.unfinished_ns), (1, 1, 7 * UNIT));
    assert_eq!(traces(&working(&lines, &[])), Calls::default());
}
