//! The effect of each operation on processors with a scheduler; results computed by hand.

use engine::program::{Program, json};
use engine::report::{Holder, StuckThread, WaitsFor};
use engine::schedule::{
    Interval, RunOutcome, SchedulerParameters, Setup, Sharing, SimulatedState, run_watched,
};
use engine::time::Ticks;

fn program(threads: &str) -> Program {
    program_with("", threads)
}

fn program_with(fields: &str, threads: &str) -> Program {
    let text = format!(r#"{{"format":"longpole-program","version":1,{fields}"threads":[{threads}]}}"#);
    json::read(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// Slices of 1000 ns, which do not matter for small lengths.
fn parameters(cpus: u32) -> SchedulerParameters {
    SchedulerParameters { slice: Ticks::from_ns(1000), ..SchedulerParameters::free(cpus) }
}

fn run(program: &Program, parameters: SchedulerParameters) -> (RunOutcome, Vec<Interval>) {
    run_on(program, parameters, &[])
}

fn run_on(
    program: &Program,
    parameters: SchedulerParameters,
    servers: &[u32],
) -> (RunOutcome, Vec<Interval>) {
    let mut intervals = Vec::new();
    let setup = Setup { processors: Sharing::Scheduled(parameters), servers: servers.to_vec() };
    let watcher = |interval| intervals.push(interval);
    let outcome = run_watched(program, &setup, Some(Box::new(watcher))).expect("a program");
    (outcome, intervals)
}

fn ns(ticks: Ticks) -> f64 {
    ticks.as_ns_f64()
}

/// Each stretch of a thread on a processor as `T1@0 0-5`, in order of time and of the threads.
fn used(program: &Program, intervals: &[Interval]) -> Vec<String> {
    let mut busy: Vec<&Interval> = intervals
        .iter()
        .filter(|interval| matches!(interval.doing, SimulatedState::Busy | SimulatedState::Spinning(_)))
        .collect();
    busy.sort_by_key(|interval| (interval.start, interval.thread));
    let shown = busy.iter().map(|interval| {
        let name = &program.threads[interval.thread.0 as usize].name;
        let mark = if matches!(interval.doing, SimulatedState::Spinning(_)) { "~" } else { "" };
        let cpu = interval.cpu.expect("a processor");
        format!("{name}@{cpu} {mark}{}-{}", ns(interval.start), ns(interval.end))
    });
    shown.collect()
}

#[track_caller]
fn check(threads: &str, parameters: SchedulerParameters, expected: &[&str]) {
    let program = program(threads);
    let (outcome, intervals) = run(&program, parameters);
    assert_eq!(used(&program, &intervals), expected);
    assert_eq!(outcome.findings, []);
}

#[test]
fn threads_queue_where_there_are_too_few_processors() {
    let threads =
        r#"{"name":"A","ops":[["exec",5]]},{"name":"B","ops":[["exec",3]]},{"name":"C","ops":[["exec",4]]}"#;
    // C queues on the first processor; the second one, idle at 3, pulls it.
    check(threads, parameters(2), &["A@0 0-5", "B@1 0-3", "C@1 3-7"]);
    check(threads, parameters(1), &["A@0 0-5", "B@0 5-8", "C@0 8-12"]);
    check(threads, parameters(9), &["A@0 0-5", "B@1 0-3", "C@2 0-4"]);
}

#[test]
fn a_woken_thread_goes_back_to_its_processor_or_to_an_idle_one() {
    check(
        r#"{"name":"A","ops":[["exec",2],["sleep",3],["exec",2]]},{"name":"B","ops":[["exec",20]]}"#,
        parameters(3),
        &["A@0 0-2", "B@1 0-20", "A@0 5-7"],
    );
    // C gets a processor at 2, sleeps until 4, and has A's processor when A wakes up.
    check(
        r#"{"name":"A","ops":[["exec",2],["sleep",3],["exec",2]]},{"name":"B","ops":[["exec",4]]},
           {"name":"C","ops":[["sleep",2],["exec",9]]}"#,
        parameters(2),
        &["A@0 0-2", "B@1 0-4", "C@0 4-13", "A@1 5-7"],
    );
}

#[test]
fn threads_on_one_processor_alternate_by_slices_which_are_counted() {
    let threads = r#"{"name":"A","ops":[["exec",4000]]},{"name":"B","ops":[["exec",4000]]}"#;
    let program = program(threads);
    let (outcome, intervals) = run(&program, parameters(1));
    // New threads start with half a slice.
    assert_eq!(
        used(&program, &intervals),
        ["A@0 0-500", "B@0 500-2000", "A@0 2000-4000", "B@0 4000-6000", "A@0 6000-7500", "B@0 7500-8000"]
    );
    assert_eq!(outcome.counts.preemptions, 4);
    assert_eq!(ns(outcome.length), 8000.0);
    assert_eq!(outcome.threads[0].ready + outcome.threads[0].busy, Ticks::from_ns(7500).0);
    // Every switch has the same cost; the first thread of a processor replaces none.
    let costly = SchedulerParameters { switch_cost: Ticks::from_ns(10), ..parameters(1) };
    assert_eq!(ns(run(&program, costly).0.length), 8050.0);
}

#[test]
fn waking_takes_its_latency_on_an_idle_processor_only() {
    let threads = r#"{"name":"A","ops":[["exec",10],["release","e"],["exec",10]]},{"name":"B","ops":[["await","e"],["exec",10]]}"#;
    let slow = |cpus| SchedulerParameters { wake_latency: Ticks::from_ns(3), ..parameters(cpus) };
    // Starting a thread has the latency, too.
    check(threads, slow(2), &["A@0 3-23", "B@1 16-26"]);
    check(threads, slow(1), &["A@0 3-23", "B@0 23-33"]);
}

#[test]
fn a_thread_that_wakes_several_on_idle_processors_spends_time_on_each() {
    let threads = r#"{"name":"A","ops":[["exec",10],["release","e"],["release","f"],["exec",10]]},
        {"name":"B","ops":[["await","e"],["exec",10]]},{"name":"C","ops":[["await","f"],["exec",10]]}"#;
    let slow = |cpus| SchedulerParameters {
        wake_latency: Ticks::from_ns(3),
        wake_cost: Ticks::from_ns(2),
        ..parameters(cpus)
    };
    // A wakes C after it has woken B, and computes for 10 after both.
    check(threads, slow(3), &["A@0 3-27", "B@1 16-26", "C@2 18-28"]);
    // With one processor, none is idle when A wakes B and C.
    check(threads, slow(1), &["A@0 3-23", "B@0 23-33", "C@0 33-43"]);
}

/// Three threads on two processors; the second processor is soon free. Without a seed the first random number is 633, which
/// means not to pull, and the second 242, which means to pull.
#[test]
fn an_idle_processor_that_does_not_pull_at_once_waits_for_the_tick() {
    let threads = r#"{"name":"A","ops":[["exec",500]]},{"name":"B","ops":[["exec",150]]},
        {"name":"C","ops":[["exec",500]]}"#;
    let at_once = SchedulerParameters { slice: Ticks::from_ns(100_000), ..SchedulerParameters::free(2) };
    check(threads, at_once, &["A@0 0-500", "B@1 0-150", "C@1 150-650"]);
    // The clock ticks at 200, and then the latency passes.
    let ticking = SchedulerParameters { tick: Ticks::from_ns(100), ..at_once };
    check(threads, ticking, &["A@0 0-500", "B@1 0-150", "C@1 200-700"]);
    let slow = SchedulerParameters { wake_latency: Ticks::from_ns(3), ..ticking };
    check(threads, slow, &["A@0 3-503", "B@1 3-153", "C@1 203-703"]);
    // A ends before the clock ticks, and its processor continues with its own queue.
    let rarely = SchedulerParameters { tick: Ticks::from_ns(10_000), ..at_once };
    check(threads, rarely, &["A@0 0-500", "B@1 0-150", "C@0 500-1000"]);
    // D is woken on the idle processor; when it leaves, the dice say to ask.
    let woken = r#"{"name":"A","ops":[["exec",160],["release","e"],["exec",340]]},{"name":"B","ops":[["exec",150]]},
        {"name":"C","ops":[["exec",500]]},{"name":"D","ops":[["await","e"],["exec",10]]}"#;
    check(woken, rarely, &["A@0 0-500", "B@1 0-150", "D@1 160-170", "C@1 170-670"]);
}

#[test]
fn a_mutex_is_taken_by_a_running_thread_before_a_woken_one() {
    let threads = r#"{"name":"A","ops":[["lock","m"],["exec",10],["unlock","m"],["lock","m"],["exec",10],["unlock","m"],
            ["lock","m"],["exec",10],["unlock","m"]]},
        {"name":"B","ops":[["exec",1],["lock","m"],["exec",10],["unlock","m"]]}"#;
    // B is woken at 15 and at 25, comes 5 later and finds the lock taken again. With direct hand-over the lock would idle for
    // 5 each time: a convoy of 45 for A alone.
    let slow = SchedulerParameters { wake_latency: Ticks::from_ns(5), ..parameters(2) };
    let program = program(threads);
    let (outcome, intervals) = run(&program, slow);
    assert_eq!(used(&program, &intervals), ["A@0 5-35", "B@1 5-6", "B@1 40-50"]);
    let lock = outcome.objects[0];
    assert_eq!((lock.taken, lock.waits), (4, 3));
    assert_eq!(ns(Ticks(lock.held)), 40.0);
}

#[test]
fn locks_queues_and_barriers_on_few_processors_have_this_schedule() {
    // Condition: B signals at 2 + 3; A takes the mutex again when B frees it.
    check(
        r#"{"name":"A","ops":[["lock","m"],["cond_wait","c","m"],["exec",1],["unlock","m"]]},
           {"name":"B","ops":[["exec",2],["lock","m"],["exec",3],["cond_signal","c"],["exec",4],["unlock","m"]]},
           {"name":"C","ops":[["exec",7]]}"#,
        parameters(2),
        &["B@1 0-9", "C@0 0-7", "A@0 9-10"],
    );
    // Three threads at a barrier on two processors: A, which came first, gets the idle one; B queues.
    check(
        r#"{"name":"A","ops":[["exec",2],["barrier","b",3],["exec",2]]},{"name":"B","ops":[["exec",4],["barrier","b",3],["exec",2]]},
           {"name":"C","ops":[["exec",3],["barrier","b",3],["exec",2]]}"#,
        parameters(2),
        &["A@0 0-2", "B@1 0-4", "C@0 2-7", "A@1 5-7", "B@0 7-9"],
    );
    // A semaphore of count 1, posted twice.
    check(
        r#"{"name":"A","ops":[["sem_init","s",1],["create","B"],["create","C"],["exec",6],["sem_post","s"]]},
           {"name":"B","ops":[["sem_wait","s"],["exec",2],["sem_post","s"]]},
           {"name":"C","ops":[["sem_wait","s"],["exec",2],["sem_post","s"]]}"#,
        parameters(2),
        &["A@0 0-6", "B@1 0-2", "C@1 2-4"],
    );
    // Only the first thread computes the body of the `once`; C finds it done.
    check(
        r#"{"name":"A","ops":[["once","o",5],["exec",1]]},{"name":"B","ops":[["exec",1],["once","o",5],["exec",1]]},
           {"name":"C","ops":[["exec",7],["once","o",5],["exec",1]]}"#,
        parameters(2),
        &["A@0 0-6", "B@1 0-1", "C@1 1-9", "B@0 6-7"],
    );
    // Joining waits until the thread has had a processor and ended.
    check(
        r#"{"name":"A","ops":[["create","B"],["create","C"],["exec",1],["join","B"],["join","C"],["exec",1]]},
           {"name":"B","ops":[["exec",5]]},{"name":"C","ops":[["exec",5]]}"#,
        parameters(1),
        &["A@0 0-1", "B@0 1-6", "C@0 6-11", "A@0 11-12"],
    );
}

const READERS_AND_WRITERS: &str = r#"{"name":"A","ops":[["rdlock","r"],["exec",10],["rwunlock","r"]]},
    {"name":"W","ops":[["exec",1],["wrlock","r"],["exec",5],["rwunlock","r"]]},
    {"name":"B","ops":[["exec",2],["rdlock","r"],["exec",10],["rwunlock","r"]]}"#;

#[test]
fn readers_pass_a_waiting_writer_unless_the_lock_prefers_writers() {
    check(READERS_AND_WRITERS, parameters(3), &["A@0 0-10", "W@1 0-1", "B@2 0-12", "W@1 12-17"]);
    let program = program_with(r#""writers_first":["r"],"#, READERS_AND_WRITERS);
    let (outcome, intervals) = run(&program, parameters(3));
    assert_eq!(used(&program, &intervals), ["A@0 0-10", "W@1 0-1", "B@2 0-2", "W@1 10-15", "B@2 15-25"]);
    assert_eq!(outcome.findings, []);
    // A reader that reads again does not wait for a writer that waits for it.
    let again = r#"{"name":"A","ops":[["rdlock","r"],["exec",3],["rdlock","r"],["exec",3],["rwunlock","r"],["rwunlock","r"]]},
        {"name":"W","ops":[["exec",1],["wrlock","r"],["exec",5],["rwunlock","r"]]}"#;
    let program = program_with(r#""writers_first":["r"],"#, again);
    assert_eq!(used(&program, &run(&program, parameters(2)).1), ["A@0 0-6", "W@1 0-1", "W@1 6-11"]);
    let mut text = Vec::new();
    json::write(&program, &mut text).expect("written");
    let text = String::from_utf8(text).expect("UTF-8");
    assert_eq!(json::read(&text).expect("a program"), program);
}

#[test]
fn a_semaphore_s_first_count_is_there_whichever_thread_comes_first() {
    // On one processor A, which posts, acts before B, which initializes the semaphore.
    let threads = r#"{"name":"A","ops":[["sem_post","s"],["exec",1]]},
        {"name":"B","ops":[["sem_init","s",1],["sem_wait","s"],["sem_wait","s"],["exec",1]]}"#;
    check(threads, parameters(1), &["A@0 0-1", "B@0 1-2"]);
}

#[test]
fn a_thread_that_spins_uses_its_processor() {
    let threads = r#"{"name":"A","ops":[["spin_lock","s"],["exec",3000],["spin_unlock","s"]]},
        {"name":"B","ops":[["exec",100],["spin_lock","s"],["exec",1000],["spin_unlock","s"]]}"#;
    check(threads, parameters(2), &["A@0 0-3000", "B@1 0-100", "B@1 ~100-3000", "B@1 3000-4000"]);
    // On one processor B spins for its slices while A, which holds the lock, waits for the processor.
    let program = program(threads);
    let (outcome, intervals) = run(&program, parameters(1));
    assert_eq!(
        used(&program, &intervals),
        [
            "A@0 0-500",
            "B@0 500-600",
            "B@0 ~600-2000",
            "A@0 2000-4000",
            "B@0 ~4000-6000",
            "A@0 6000-6500",
            "B@0 6500-7500"
        ]
    );
    assert_eq!(ns(Ticks(outcome.objects[0].spun)), 3400.0);
    assert_eq!(ns(outcome.length), 3000.0 + 100.0 + 1000.0 + 3400.0);
}

#[test]
fn a_quota_stops_all_threads_until_the_next_period() {
    let ms = |ms: u64| ms * 1_000_000;
    let quota =
        |cpus, hundredths| SchedulerParameters { quota: Some(hundredths), ..SchedulerParameters::free(cpus) };
    let one = program(&format!(r#"{{"name":"A","ops":[["exec",{}]]}}"#, ms(150)));
    let (outcome, intervals) = run(&one, quota(1, 50));
    assert_eq!(
        used(&one, &intervals),
        ["A@0 0-50000000", "A@0 100000000-150000000", "A@0 200000000-250000000"]
    );
    assert_eq!(outcome.counts.throttled, 2);
    // Two threads use up a quota of one CPU in half the time.
    let two = program(&format!(
        r#"{{"name":"A","ops":[["exec",{0}]]}},{{"name":"B","ops":[["exec",{0}]]}}"#,
        ms(100)
    ));
    assert_eq!(run(&two, quota(2, 100)).0.length.0, Ticks::from_ns(ms(150)).0);
    // A quota above the threads' use has no effect; a sleeping thread's unused quota returns.
    assert_eq!(run(&two, quota(2, 200)).0.length.0, Ticks::from_ns(ms(100)).0);
    let sleeper =
        program(&format!(r#"{{"name":"A","ops":[["exec",{0}],["sleep",{0}],["exec",{0}]]}}"#, ms(3)));
    assert_eq!(run(&sleeper, quota(1, 6)).0.length.0, Ticks::from_ns(ms(9)).0);
    // Ideal sharing has no periods.
    let ideal = Setup { processors: Sharing::Ideal { hundredths: 50 }, servers: Vec::new() };
    assert_eq!(engine::schedule::run(&one, &ideal).expect("a program").length.0, Ticks::from_ns(ms(300)).0);
}

#[test]
fn pinned_threads_keep_to_their_processors() {
    let pinned = r#"{"name":"A","cpus":[1],"ops":[["exec",5]]},{"name":"B","cpus":[1],"ops":[["exec",5]]},
        {"name":"C","ops":[["exec",20]]}"#;
    check(pinned, parameters(4), &["A@1 0-5", "C@0 0-20", "B@1 5-10"]);
    // The machine lacks that processor, so the mask does not apply.
    check(pinned, parameters(1), &["A@0 0-5", "B@0 5-10", "C@0 10-30"]);
    // C, which may use any processor, leaves processor 0 to A.
    let program = program(
        r#"{"name":"C","ops":[["exec",3000]]},{"name":"A","cpus":[0],"ops":[["sleep",5],["exec",3000]]},
           {"name":"D","ops":[["exec",100]]}"#,
    );
    let (outcome, _) = run(&program, parameters(2));
    assert_eq!(outcome.counts.migrations, 1);
    assert!(ns(outcome.length) < 4100.0, "{}", ns(outcome.length));
}

#[test]
fn threads_with_a_higher_nice_value_get_less() {
    let program =
        program(r#"{"name":"A","ops":[["exec",100000]]},{"name":"B","nice":5,"ops":[["exec",100000]]}"#);
    let (outcome, intervals) = run(&program, parameters(1));
    let end = intervals.iter().filter(|interval| interval.thread.0 == 0).map(|interval| interval.end).max();
    // B has 335/1024 of A's share until A ends.
    let expected = 100_000.0 * (1.0 + 335.0 / 1024.0);
    let end = ns(end.expect("A has run"));
    assert!((end - expected).abs() < 4000.0, "{end} instead of about {expected}");
    assert_eq!(ns(outcome.length), 200_000.0);
}

#[test]
fn a_device_serves_as_many_at_once_as_it_has_servers() {
    let program = program(
        r#"{"name":"A","ops":[["io",10,"disk"],["exec",1]]},{"name":"B","ops":[["io",10,"disk"],["exec",1]]},
           {"name":"C","ops":[["exec",1],["io",10,"disk"],["exec",1]]}"#,
    );
    let length = |servers: &[u32]| ns(run_on(&program, parameters(3), servers).0.length);
    assert_eq!(length(&[]), 12.0);
    assert_eq!(length(&[3]), 12.0);
    assert_eq!(length(&[2]), 21.0);
    assert_eq!(length(&[1]), 31.0);
    let (outcome, _) = run_on(&program, parameters(3), &[1]);
    assert_eq!(ns(Ticks(outcome.objects[0].served)), 30.0);
    assert_eq!(ns(Ticks(outcome.objects[0].blocked)), 10.0 + 20.0 + 29.0);
}

#[test]
fn a_sleep_until_a_time_ends_then_however_late_it_began() {
    check(
        r#"{"name":"A","ops":[["exec",3],["sleep_until",10],["exec",1],["sleep_until",5],["exec",1]]}"#,
        parameters(1),
        &["A@0 0-3", "A@0 10-12"],
    );
    // On unlimited processors as well; work before the sleep decides nothing.
    let program = program(r#"{"name":"A","ops":[["exec","f",3],["sleep_until",10],["exec","g",1]]}"#);
    let report = engine::report::report(
        &program,
        &[engine::report::Cpus::Infinite],
        engine::report::Detail::Functions,
    );
    assert_eq!(report.results[0].time_ns, 11.0);
    let rows = report.results[0].functions.iter();
    assert_eq!(rows.map(|row| (row.function.as_str(), row.tet_ns)).collect::<Vec<_>>(), [("g", 1.0)]);
}

/// As with `next += period; clock_nanosleep(TIMER_ABSTIME, next)`: the work in a period moves no deadline, and the
/// thread does not wait for a deadline that it missed.
#[test]
fn a_timer_that_repeats_keeps_its_ends_whatever_is_computed_between() {
    check(
        r#"{"name":"A","ops":[["exec",3],["sleep_next",10],["exec",4],["sleep_next",10],["exec",15],["sleep_next",10],["exec",2],
            ["sleep_next",10],["exec",1]]}"#,
        parameters(1),
        &["A@0 0-3", "A@0 13-17", "A@0 23-40", "A@0 43-44"],
    );
    let program = program(
        r#"{"name":"A","ops":[["exec","f",3],["sleep_next",10],["exec","g",4],["sleep_next",10],["exec","h",5]]}"#,
    );
    let report = engine::report::report(
        &program,
        &[engine::report::Cpus::Infinite],
        engine::report::Detail::Functions,
    );
    assert_eq!(report.results[0].time_ns, 28.0);
    let rows = report.results[0].functions.iter().filter(|row| row.tet_ns != 0.0);
    // Work before the timer's first end moves all ends; work between two ends moves nothing.
    assert_eq!(
        rows.map(|row| (row.function.as_str(), row.tet_ns)).collect::<Vec<_>>(),
        [("h", 5.0), ("f", 3.0)]
    );
}

#[test]
fn a_deadlock_with_spinning_ends_and_names_the_threads_that_wait() {
    for cpus in [1, 2] {
        let program = program(
            r#"{"name":"A","ops":[["spin_lock","s"],["exec",2],["spin_lock","t"],["exec",1]]},
               {"name":"B","ops":[["spin_lock","t"],["exec",3],["spin_lock","s"],["exec",1]]},
               {"name":"C","ops":[["exec",9]]}"#,
        );
        let short = SchedulerParameters { slice: Ticks::from_ns(1), ..parameters(cpus) };
        let (outcome, _) = run(&program, short);
        let spin = |thread: &str, name: &str, holder: &str| {
            let holder = Holder { thread: holder.to_owned(), itself: false, ended: false };
            let waits_for = WaitsFor::SpinLock { name: name.to_owned(), holder: Some(holder) };
            StuckThread { thread: thread.to_owned(), waits_for, function: None }
        };
        let [finding] = &outcome.findings[..] else { unreachable!("{:?}", outcome.findings) };
        let stuck = finding.deadlock().expect("a deadlock");
        assert_eq!(stuck.threads, [spin("A", "t", "B"), spin("B", "s", "A")]);
        assert_eq!(outcome.done, [2, 2, 1]);
        assert!(ns(outcome.length) >= 9.0);
    }
}

#[test]
fn intervals_cover_each_thread_s_life() {
    for seed in 0..300 {
        let program = engine::synth::random_program(seed, engine::synth::Lengths::Tied);
        let costly = SchedulerParameters {
            wake_latency: Ticks::from_ns(1),
            switch_cost: Ticks::from_ns(1),
            slice: Ticks::from_ns(2),
            ..SchedulerParameters::free(2)
        };
        let (outcome, intervals) = run(&program, costly);
        for thread in 0..program.threads.len() {
            let own: Vec<&Interval> =
                intervals.iter().filter(|interval| interval.thread.0 as usize == thread).collect();
            assert!(own.windows(2).all(|pair| pair[0].end == pair[1].start), "seed {seed}");
            let used = outcome.threads[thread];
            let life = own.last().map_or(0, |last| last.end.0) - own.first().map_or(0, |first| first.start.0);
            assert_eq!(used.busy + used.spinning + used.ready + used.blocked, life, "seed {seed}");
        }
        assert_eq!(outcome.busy.iter().sum::<u64>(), outcome.length.0, "seed {seed}");
    }
}

#[test]
fn a_woken_thread_may_queue_next_to_an_idle_processor() {
    let threads = r#"{"name":"A","cpus":[0],"ops":[["exec",50]]},
        {"name":"B","ops":[["exec",10],["sleep",100],["exec",50]]},
        {"name":"C","cpus":[1],"ops":[["exec",400]]}"#;
    let ticking = SchedulerParameters { tick: Ticks::from_ns(100), ..parameters(2) };
    check(threads, ticking, &["A@0 0-50", "B@1 0-10", "C@1 10-410", "B@0 110-160"]);
    // The idle processor takes the thread after the clock's tick and the interrupt.
    let never = SchedulerParameters { idle_found: 0, ..ticking };
    check(threads, never, &["A@0 0-50", "B@1 0-10", "C@1 10-410", "B@0 200-250"]);
    // A thread's own processor is always found if it is idle.
    let alone = r#"{"name":"A","ops":[["exec",10],["sleep",100],["exec",50]]}"#;
    check(alone, never, &["A@0 0-10", "A@0 110-160"]);
}

#[test]
fn wake_up_latencies_have_the_given_percentiles() {
    let turns = r#"["exec",1],["sleep",1000],"#.repeat(2000);
    let program = program(&format!(r#"{{"name":"A","ops":[{turns}["exec",1]]}}"#));
    for seed in [0, 7] {
        let slow_wakes = [Ticks::from_ns(300), Ticks::from_ns(900)];
        let told =
            SchedulerParameters { wake_latency: Ticks::from_ns(100), slow_wakes, seed, ..parameters(1) };
        let (_, intervals) = run(&program, told);
        let busy: Vec<&Interval> =
            intervals.iter().filter(|interval| interval.doing == SimulatedState::Busy).collect();
        let latency = |pair: &[&Interval]| ns(pair[1].start) - ns(pair[0].end) - 1000.0;
        let mut latencies: Vec<f64> = busy.windows(2).map(latency).collect();
        latencies.sort_by(f64::total_cmp);
        assert_eq!(latencies.len(), 2000);
        let near = |percent: usize, ns: f64, by: f64| {
            let found = latencies[latencies.len() * percent / 100];
            assert!((found - ns).abs() < by, "seed {seed}: {percent} % below {found}, told {ns}");
        };
        near(50, 100.0, 10.0);
        near(90, 300.0, 40.0);
        near(99, 900.0, 200.0);
        assert!(latencies[0] >= 50.0 && latencies[1999] <= 1800.0, "{latencies:?}");
    }
}
