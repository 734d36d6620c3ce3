//! The paper's claims about normalized time (sections 3.1, 3.2 and 4).

use super::{adds_up, function, on, row};
use engine::parallelism::{Advice, Kind};

/// "The sequential one requires a factor of P greater elapsed time and will have a much greater impact" (section 3.1).
#[test]
fn a_serial_function_weighs_p_times_a_parallel_one_of_equal_cpu_time() {
    let threads = r#"{"name":"A","ops":[["exec","serial",400],["create","B"],["create","C"],["create","D"],["exec","parallel",100]]},
        {"name":"B","ops":[["exec","parallel",100]]},{"name":"C","ops":[["exec","parallel",100]]},{"name":"D","ops":[["exec","parallel",100]]}"#;
    let run = on(threads, 4);
    let (serial, parallel) = (function(&run, "serial"), function(&run, "parallel"));
    assert_eq!((serial.own.busy.ns, parallel.own.busy.ns), (400, 400));
    assert_eq!((serial.normalized_self_ns, parallel.normalized_self_ns), (400, 100));
    assert_eq!(serial.by_busy, [(1, 400)]);
    assert_eq!(parallel.by_busy, [(4, 100)]);
    assert_eq!(run.advice(serial), Some(Advice::Parallelize { alone: 1.0 }));
    assert_eq!(run.advice(parallel), Some(Advice::Optimize { all_busy: 1.0 }));
    assert_eq!(run.first().expect("a row").0.name.as_deref(), Some("serial"));
}

/// "A serial routine that is always overlapped with other computation will have little effect" (section 3.1).
#[test]
fn an_overlapped_function_weighs_less_than_one_that_runs_alone() {
    let threads = r#"{"name":"A","ops":[["exec","overlapped",100],["join","B"],["join","C"],["exec","alone",100]]},
        {"name":"B","ops":[["exec","other",100]]},{"name":"C","ops":[["exec","other",100]]}"#;
    let run = on(threads, 0);
    let (overlapped, alone) = (function(&run, "overlapped"), function(&run, "alone"));
    assert_eq!(overlapped.own.busy.ns, alone.own.busy.ns, "the elapsed time of the two is the same");
    assert_eq!((overlapped.normalized_self_ns, alone.normalized_self_ns), (33, 100));
}

/// The pipelined compiler of section 3.2: the optimizer limits, the code generator is the secondary bottleneck.
#[test]
fn a_pipeline_s_slow_stage_has_most_and_the_next_one_comes_second() {
    let stage = |name: &str, get: &str, put: &str, ns: u32| {
        let one = format!(r#"["wait","{get}"],["exec","{name}",{ns}],["signal","{put}"]"#);
        format!(r#"{{"name":"{name}","ops":[{}]}}"#, vec![one; 20].join(","))
    };
    let feed = r#"{"name":"feed","ops":["#.to_owned() + &vec![r#"["signal","a"]"#; 20].join(",") + "]}";
    let threads = [
        feed,
        stage("scanner", "a", "b", 10),
        stage("optimizer", "b", "c", 50),
        stage("generator", "c", "d", 45),
    ];
    let run = on(&threads.join(","), 0);
    let of = |name: &str| row(&run, Kind::Thread, name).normalized_self_ns;
    assert!(of("optimizer") > of("generator"), "{} {}", of("optimizer"), of("generator"));
    assert!(of("generator") > of("scanner"));
    assert_eq!(run.first().expect("a row").0.name.as_deref(), Some("optimizer"));
}

/// "One of the threads will execute while other processors are idle, and there will be long average queue lengths at the
/// barrier" (section 3.2).
#[test]
fn imbalance_at_a_barrier_shows_in_the_slow_thread_and_the_barrier() {
    let worker = |name: &str, ns: u32| {
        format!(
            r#"{{"name":"{name}","ops":[["exec","trace",{ns}],["barrier","frame",4],["exec","join_up",10]]}}"#
        )
    };
    let threads = [worker("A", 1000), worker("B", 100), worker("C", 100), worker("D", 100)].join(",");
    let run = on(&threads, 4);
    let busy = row(&run, Kind::Thread, "A");
    assert!(
        matches!(run.advice(busy), Some(Advice::Less { alone }) if alone > 0.9),
        "{:?}",
        run.advice(busy)
    );
    let barrier = row(&run, Kind::Barrier, "frame");
    assert_eq!(barrier.queue, [(0, 110), (3, 900)]);
    assert_eq!((barrier.queue_length(), barrier.calls), (3.0, Some(4)));
    assert_eq!(barrier.average_wait_ns(), Some(2700.0 / 4.0), "time waited divided by accesses");
    assert_eq!(run.advice(barrier), Some(Advice::Balance { queue: 3.0 }));
}

/// "The lock object will have a high normalized processor time since its critical section is always executing while few
/// other processors are" (section 3.1).
#[test]
fn a_busy_critical_section_s_time_is_the_lock_s() {
    let worker = |name: &str| {
        let turn = r#"["exec","outside",10],["lock","m"],["exec","inside",90],["unlock","m"]"#;
        format!(r#"{{"name":"{name}","ops":[{}]}}"#, [turn; 10].join(","))
    };
    let threads = ["A", "B", "C", "D"].map(worker).join(",");
    let run = on(&threads, 4);
    let lock = row(&run, Kind::Lock, "m");
    assert!(lock.normalized_self_ns > run.elapsed_ns * 9 / 10, "{lock:?}");
    assert_eq!(lock.calls, Some(40));
    assert!(lock.queue_length() > 2.0, "{lock:?}");
    let (first, advice) = run.first().expect("a row");
    assert_eq!(first.name.as_deref(), Some("m"));
    assert!(matches!(advice, Advice::Split { queue } if queue > 2.0), "{advice:?}");
    // The lock's callees: functions that run under it.
    let inside = lock.callees.iter().find(|link| link.name.as_deref() == Some("inside")).expect("a link");
    assert_eq!(inside.calls, 40);
    assert_eq!(inside.normalized_ns, lock.normalized_self_ns);
}

/// A user cannot split Python's own lock.
#[test]
fn an_interpreter_s_lock_is_not_advised_to_be_split() {
    let worker = |name: &str| {
        let turn = r#"["lock","lock GIL"],["exec","inside",90],["unlock","lock GIL"]"#;
        format!(r#"{{"name":"{name}","ops":[{}]}}"#, [turn; 10].join(","))
    };
    let run = on(&["A", "B", "C", "D"].map(worker).join(","), 4);
    let advice = run.advice(row(&run, Kind::Lock, "lock GIL"));
    assert!(matches!(advice, Some(Advice::Processes { queue }) if queue >= 2.0), "{advice:?}");
}

/// "Spin time is factored out", "if spinning, then there is no benefit to creating more threads" (section 3.1).
#[test]
fn spinning_is_no_work_and_the_advice_is_that_others_spin() {
    let worker = |name: &str| {
        format!(r#"{{"name":"{name}","ops":[["spin_lock","s"],["exec","inside",100],["spin_unlock","s"]]}}"#)
    };
    let run = on(&["A", "B", "C"].map(worker).join(","), 3);
    let inside = function(&run, "inside");
    assert_eq!((run.elapsed_ns, inside.normalized_self_ns), (300, 300));
    assert_eq!(inside.by_busy, [(1, 300)], "others only spin");
    let lock = row(&run, Kind::Lock, "s");
    assert_eq!((lock.own.spinning.ns, lock.own.busy.ns), (300, 300));
    assert_eq!(inside.own.busy.runnable, 2.0, "3, 2 and 1 runnable threads");
    assert!(matches!(run.advice(inside), Some(Advice::OthersSpin { spinning }) if spinning == 1.0));
}

/// "When a thread is created, we copy the profile stack from the creating thread" (section 3.3); recursive procedures
/// count once.
#[test]
fn a_function_s_total_has_the_threads_it_starts_and_recursion_once() {
    let threads = r#"{"name":"A","ops":[["call","main"],["call","start"],["create","B"],["ret"],["exec","main",100],["join","B"],
            ["call","deep"],["exec",10],["call","deep"],["exec",10],["ret"],["ret"],["ret"]]},
        {"name":"B","ops":[["call","work"],["exec",100],["ret"]]}"#;
    let run = on(threads, 2);
    assert_eq!(run.elapsed_ns, 120);
    assert_eq!(function(&run, "main").normalized_total_ns, 120, "the root's value is the elapsed time");
    assert_eq!(function(&run, "start").normalized_total_ns, 50);
    assert_eq!(function(&run, "work").callers[0].name.as_deref(), Some("start"));
    let deep = function(&run, "deep");
    assert_eq!((deep.normalized_self_ns, deep.normalized_total_ns, deep.calls), (20, 20, Some(2)));
    assert_eq!(row(&run, Kind::Thread, "A").normalized_total_ns, 120, "with the thread that it created");
    assert_eq!(row(&run, Kind::Thread, "B").normalized_total_ns, 50);
}

/// Calls to one function have different parallelism, so each caller gets the time on its own behalf (section 3.1).
#[test]
fn callers_get_the_normalized_time_of_their_own_calls() {
    let threads = r#"{"name":"A","ops":[["call","report"],["exec","format",100],["ret"],["create","B"],["call","render"],["exec","format",100],["ret"]]},
        {"name":"B","ops":[["exec","other",100]]}"#;
    let run = on(threads, 2);
    let format = function(&run, "format");
    let for_caller = |name: &str| {
        format.callers.iter().find(|link| link.name.as_deref() == Some(name)).expect("a caller").normalized_ns
    };
    assert_eq!((for_caller("report"), for_caller("render")), (100, 50));
}

/// Section 4: logging is 2 % of the serial time, but a quarter of the parallel run, since it runs alone. It is split among
/// several print functions.
#[test]
fn a_function_of_2_percent_serial_time_is_a_quarter_of_the_parallel_run() {
    let workers: Vec<String> =
        (0..18).map(|number| format!(r#"{{"name":"W{number}","ops":[["exec","work",5430]]}}"#)).collect();
    let creates = (0..18)
        .map(|n| format!(r#"["create","W{n}"]"#))
        .chain((0..18).map(|n| format!(r#"["join","W{n}"]"#)));
    let creates: Vec<String> = creates.collect();
    let main = format!(
        r#"{{"name":"main","ops":[["call","main"],["exec","input",580],["call","log"],["exec","print_gate",1000],["exec","print_net",1000],["ret"],{},["ret"]]}}"#,
        creates.join(",")
    );
    let threads = format!("{main},{}", workers.join(","));
    let serial = on(&threads, 1);
    let log = function(&serial, "log").normalized_total_ns as f64 / serial.elapsed_ns as f64;
    assert!((log - 0.02).abs() < 0.001, "{log}");
    assert_eq!(serial.first().expect("a row").0.name.as_deref(), Some("work"), "as a plain profile says");
    let run = on(&threads, 18);
    let log = function(&run, "log");
    assert!((log.normalized_total_ns as f64 / run.elapsed_ns as f64 - 0.25).abs() < 0.005, "{log:?}");
    let (first, advice) = run.first().expect("a row");
    assert_eq!(first.name.as_deref(), Some("log"));
    assert_eq!(advice, Advice::Parallelize { alone: 1.0 });
    adds_up(&run);
}

/// A function that starts the stages and waits for them is no code to change (section 3.2: the limiting stage is).
#[test]
fn of_a_pipeline_the_slow_stage_is_named_and_not_the_function_that_starts_it() {
    let stage = |name: &str, get: &str, put: &str, ns: u32| {
        let one = format!(r#"["wait","{get}"],["exec","{name}",{ns}],["signal","{put}"]"#);
        format!(r#"{{"name":"{name}","ops":[["call","stage_{name}"],{},["ret"]]}}"#, vec![one; 20].join(","))
    };
    let feed = vec![r#"["signal","a"]"#; 20].join(",");
    let main = format!(
        r#"{{"name":"main","ops":[["call","main"],["create","alpha"],["create","beta"],["create","gamma"],{feed},
            ["join","alpha"],["join","beta"],["join","gamma"],["ret"]]}}"#
    );
    // No stage has most of the time.
    let threads =
        [main, stage("alpha", "a", "b", 50), stage("beta", "b", "c", 48), stage("gamma", "c", "d", 46)];
    for cpus in [0, 2, 4] {
        let run = on(&threads.join(","), cpus);
        let main = function(&run, "main");
        assert_eq!((main.normalized_others_ns, main.normalized_total_ns), (run.elapsed_ns, run.elapsed_ns));
        assert_eq!(run.first().expect("a row").0.name.as_deref(), Some("alpha"), "{cpus}");
    }
}

/// A function with many callers is not part of the slow one alone.
#[test]
fn a_function_that_other_stages_call_too_is_not_named_for_the_slow_stage() {
    let work = |name: &str, ns: u32| {
        format!(
            r#"{{"name":"{name}","ops":[["call","stage_{name}"],["call","burn"],["exec",{ns}],["ret"],["ret"]]}}"#
        )
    };
    let threads = [work("long", 300), work("short", 100), work("brief", 100)].join(",");
    let run = on(&threads, 4);
    assert_eq!(run.first().expect("a row").0.name.as_deref(), Some("stage_long"));
}

/// A lock with little waiting and little computing under it does not cost the processors.
#[test]
fn a_lock_that_is_little_of_the_run_is_not_named_first() {
    let worker = |number: u32| {
        let turn = r#"["exec","deflate",400],["lock","m"],["exec","list",5],["unlock","m"]"#;
        let last = if number == 0 { r#",["exec","deflate",4000]"# } else { "" };
        format!(r#"{{"name":"W{number}","ops":[{}{last}]}}"#, [turn; 10].join(","))
    };
    let threads: Vec<String> = (0..24).map(worker).collect();
    let run = on(&threads.join(","), 4);
    let (lock, deflate) = (row(&run, Kind::Lock, "m"), function(&run, "deflate"));
    assert!(matches!(run.advice(lock), Some(Advice::Split { .. })), "{lock:?}");
    assert!(matches!(run.advice(deflate), Some(Advice::Optimize { .. })));
    assert!(lock.own.blocked.ns as f64 > run.lost_ns(deflate), "much is waited, of many threads");
    assert_eq!(run.first().expect("a row").0.name.as_deref(), Some("deflate"));
}

/// A timer's time passes by itself: a read that waits for it cannot begin earlier.
#[test]
fn a_timer_is_no_device_and_has_no_advice() {
    let run = |device: &str| {
        on(&format!(r#"{{"name":"A","ops":[["exec","f",100],["io",50,"{device}"],["exec","f",100]]}}"#), 1)
    };
    for (device, of, advice) in
        [("disk", "device", Some(Advice::Overlap)), ("timerfd read", "timer", None), ("timer", "timer", None)]
    {
        let run = run(device);
        let row = row(&run, Kind::Condition, device);
        assert_eq!((row.of.name(), run.advice(row)), (of, advice), "{device}");
    }
}
/// All CPUs are busy with a library's unnamed code, which counts for its caller.
#[test]
fn a_library_s_unnamed_code_counts_for_its_caller_in_the_advice() {
    let worker = |name: &str| {
        format!(
            r#"{{"name":"{name}","ops":[["exec","checksum",20],["call","deflate"],["exec","[libz.so.1]",80],["ret"]]}}"#
        )
    };
    let run = on(&["A", "B"].map(worker).join(","), 2);
    let (first, advice) = run.first().expect("a row");
    assert_eq!((first.name.as_deref(), advice), (Some("deflate"), Advice::Optimize { all_busy: 1.0 }));
}
