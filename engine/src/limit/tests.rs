//! A program with known answer for each kind of limit.

use super::{Change, Kind, Limits, limits};
use crate::cpus::Cpus;
use crate::event::{OperationsTried, Overhead};
use crate::finding::Finding;
use crate::predict::Model;
use crate::program::{
    FunctionRef, Place, PlaceId, Program, PutBackUses, Recorded, RecordedObject, RecordedWait, Sample, Share,
    json,
};

fn program(threads: &str) -> Program {
    json::read(&format!("{{\"format\":\"longpole-program\",\"version\":1,\"threads\":[{threads}]}}"))
        .expect("a program")
}

/// Threads of one kind: `name`, their number, and operations that each repeats `rounds` times.
fn alike(name: &str, count: usize, rounds: usize, operations: &str) -> String {
    let operations = vec![operations; rounds].join(",");
    let thread = |number| format!("{{\"name\":\"{name}{number}\",\"ops\":[{operations}]}}");
    (0..count).map(thread).collect::<Vec<_>>().join(",")
}

fn on(program: &Program, cpus: u32) -> Limits {
    limits(program, &[Cpus::count(cpus).expect("a count")], &Model::default())
}

fn kind(program: &Program, cpus: u32) -> Kind {
    on(program, cpus).at.first().expect("a limit").kind.clone()
}

const HOT: &str = r#"["exec","parse",40],["lock","m"],["exec","hash",60],["exec","store",2],["unlock","m"]"#;

#[test]
fn a_hot_lock_and_what_its_holder_runs() {
    let program = program(&alike("w", 4, 100, HOT));
    let found = on(&program, 4);
    let limit = found.at.first().expect("a limit");
    let Kind::Lock { lock, locks: 1, waiting, threads: 4, holder: Some(holder) } = &limit.kind else {
        panic!("{limit:?}")
    };
    assert_eq!((lock.as_str(), holder.function.as_str()), ("m", "hash"));
    assert!((0.95..0.98).contains(&holder.share) && (2.0..3.1).contains(waiting), "{limit:?}");
    assert!((0.55..0.62).contains(&limit.gain()), "24,840 ns become 10,200: {limit:?}");
    let used = found.locks.first().expect("a lock");
    assert!(used.held_share > 0.98 && used.waits > 290, "{used:?}");
    let threads = found.threads.first().expect("threads");
    assert_eq!((found.threads.len(), threads.names.len()), (1, 4), "all alike");
    assert!(threads.lock > 0.5 && (threads.running + threads.lock - 1.0).abs() < 0.02, "{threads:?}");
    let changes: Vec<&Change> = found.fixes.iter().map(|fix| &fix.change).collect();
    assert!(changes.iter().any(|change| matches!(change, Change::SplitLock(_, 8))), "{changes:?}");
    let moved = found.fixes.iter().find(|fix| matches!(fix.change, Change::MoveOut(..))).expect("moved");
    assert_eq!((moved.function.as_deref(), moved.lock.as_deref()), (Some("hash"), Some("m")));
    assert!(moved.gain > 0.5, "{moved:?}");
    assert!(found.fixes.len() <= 3 && found.fixes.is_sorted_by(|a, b| a.gain >= b.gain), "{changes:?}");
}

/// Removing the lock must not let a condition variable's waiters hang: they use a lock of each thread's own.
#[test]
fn a_hot_lock_that_conditions_are_used_with() {
    let waiter =
        r#"{"name":"W","ops":[["lock","m"],["cond_wait","c","m"],["unlock","m"],["exec","rest",10]]}"#;
    let waker = r#"{"name":"S","ops":[["sleep",9000],["lock","m"],["cond_signal","c"],["unlock","m"]]}"#;
    let program = program(&format!("{},{waiter},{waker}", alike("w", 4, 100, HOT)));
    assert!(matches!(kind(&program, 8), Kind::Lock { lock, .. } if lock == "m"));
}

/// A lock with known waits only is replayed as recorded; without them its threads run at once.
#[test]
fn a_replayed_lock() {
    let first = r#"["held","g",0],["exec","eval",100],["freed","g",100],["release","e{}"]"#;
    let second = r#"["await","e{}"],["held","g",100],["exec","eval",100],["freed","g",100]"#;
    let rounds = |text: &str| {
        (0..50).map(|round| text.replace("{}", &round.to_string())).collect::<Vec<_>>().join(",")
    };
    let threads = format!(
        "{{\"name\":\"a\",\"ops\":[{}]}},{{\"name\":\"b\",\"ops\":[{}]}}",
        rounds(first),
        rounds(second)
    );
    // One holds the other up only by the time of a round: its gain is reported, and it is not the limit.
    let program = program(&threads);
    assert!(matches!(kind(&program, 2), Kind::Work { .. }));
    let back = r#"["await","f{}"],["held","g",100],["exec","eval",100],["freed","g",100],["release","e{}"]"#;
    let forth =
        r#"["await","e{}"],["held","g",100],["exec","eval",100],["freed","g",100],["release","f{+}"]"#;
    let rounds = |text: &str| {
        let round =
            |round: usize| text.replace("{}", &round.to_string()).replace("{+}", &(round + 1).to_string());
        (0..50).map(round).collect::<Vec<_>>().join(",")
    };
    let program = self::program(&format!(
        "{{\"name\":\"a\",\"ops\":[[\"release\",\"f0\"],{}]}},{{\"name\":\"b\",\"ops\":[{}]}}",
        rounds(back),
        rounds(forth)
    ));
    let found = on(&program, 2);
    let limit = found.at.first().expect("a limit");
    assert!(matches!(&limit.kind, Kind::Lock { lock, .. } if lock == "g"), "{limit:?}");
    assert!((limit.gain() - 0.5).abs() < 0.02, "{limit:?}");
}

#[test]
fn too_few_cpus() {
    let program = program(&alike("w", 8, 1, r#"["exec","f",1000]"#));
    let found = on(&program, 2);
    let limit = found.at.first().expect("a limit");
    assert!(matches!(limit.kind, Kind::Cpus { wanting } if (7.0..=8.0).contains(&wanting)), "{limit:?}");
    assert!((limit.gain() - 0.75).abs() < 0.01, "{limit:?}");
    assert!(found.fixes.iter().any(|fix| fix.change == Change::Cpus(Cpus::count(4).expect("4"))));
}

#[test]
fn too_few_threads() {
    let program = program(&alike("w", 2, 1, r#"["exec","f",1000]"#));
    let expected = Kind::Threads { threads: 2, function: Some("f".into()) };
    assert_eq!(kind(&program, 8), expected);
    // On two CPUs they are enough.
    assert!(matches!(kind(&program, 2), Kind::Work { busy, .. } if (busy - 2.0).abs() < 0.01));
}

#[test]
fn one_serial_stretch() {
    let workers = alike("w", 4, 1, r#"["exec","map",1000]"#);
    let main = r#"["exec","read",1500],["create","w0"],["create","w1"],["create","w2"],["create","w3"],["join","w0"],["join","w1"],["join","w2"],["join","w3"]"#;
    let program = program(&format!("{{\"name\":\"main\",\"ops\":[{main}]}},{workers}"));
    let Kind::Serial { thread, function, length_ns, threads } = kind(&program, 4) else {
        panic!("{:?}", on(&program, 4))
    };
    assert_eq!((thread.as_str(), function.as_deref(), threads), ("main", Some("read"), 5));
    assert!((length_ns - 1500.0).abs() < 1.0);
    // Of 2,500 ns 1,200 go if four CPUs share what is read, and 750 if it is read twice as fast.
    let fixes = on(&program, 4).fixes;
    let gain = |wanted: fn(&Change) -> bool| {
        let fix = fixes.iter().find(|fix| fix.function.as_deref() == Some("read") && wanted(&fix.change));
        fix.unwrap_or_else(|| panic!("{fixes:?}")).gain
    };
    let divided = gain(|change| matches!(change, Change::Divide(_, 5)));
    assert!((divided - 1500.0 * 0.75 / 2500.0).abs() < 0.01, "{divided}");
    let faster = gain(|change| matches!(change, Change::Faster(..)));
    assert!((faster - 0.3).abs() < 0.01, "{faster}");
}

/// A compressor without names that computed alone got no advice at all.
#[test]
fn a_serial_stretch_of_code_without_names_can_be_divided() {
    let main = r#"["exec","[zstd]",3000],["create","w0"],["create","w1"],["join","w0"],["join","w1"]"#;
    let workers = alike("w", 2, 1, r#"["exec","[zstd]",500]"#);
    let program = program(&format!("{{\"name\":\"main\",\"ops\":[{main}]}},{workers}"));
    let fixes = on(&program, 4).fixes;
    let [fix] = &fixes[..] else { panic!("{fixes:?}") };
    assert!(matches!(fix.change, Change::Divide(_, 4)) && fix.function.is_none(), "{fix:?}");
    assert!((fix.gain - 3000.0 * 0.75 / 3500.0).abs() < 0.01, "{fix:?}");
}

/// Only the stretch: what the thread computes before and after stays.
#[test]
fn a_part_of_a_threads_computing_is_divided() {
    let operations = r#"["exec","read",100],["exec","parse",100],["exec","read",200]"#;
    let program = program(&format!("{{\"name\":\"T\",\"ops\":[{operations}]}}"));
    let owners = super::owner::Owners::of(&program);
    let ns = |ns: u64| crate::time::Ticks::from_ns(ns).0;
    let part = |function| super::StretchPart { thread: 0, from: ns(50), to: ns(300), function };
    let computed = |function| {
        let divided = super::divide::divided(&program, &owners, &part(function), 0.5);
        divided.compute_times().functions.iter().map(|own| own.0 / ns(1)).collect::<Vec<_>>()
    };
    assert_eq!(computed(None), [50 + 25 + 50 + 100, 50]);
    assert_eq!(computed(Some(FunctionRef(0))), [50 + 25 + 50 + 100, 100]);
}

/// A busy server without names got no advice: nobody can change its C library, but anybody can call it less.
#[test]
fn a_server_without_names_is_told_its_system_calls() {
    let mut program =
        program(&alike("server", 1, 100, r#"["exec","write",40],["exec","[redis]",30],["io",30,"idle"]"#));
    for function in &mut program.functions {
        function.module = Some(if function.name == "write" { "libc.so.6" } else { "redis" }.to_owned());
    }
    let place = |number| Place { function: FunctionRef(number), line: None, inlined: false };
    program.samples.places = vec![place(0), place(1)];
    program.samples.stacks = vec![vec![PlaceId(0), PlaceId(1)]];
    program.samples.threads = vec![vec![Sample { operation: 0, stack: 0 }]];
    let found = on(&program, 2);
    assert!(matches!(found.at[0].kind, Kind::Idle { .. }), "{found:?}");
    let [fix] = &found.fixes[..] else { panic!("{:?}", found.fixes) };
    assert!(
        matches!(fix.change, Change::FewerCalls(_)) && fix.function.as_deref() == Some("write"),
        "{fix:?}"
    );
    assert!((fix.gain - 0.2).abs() < 0.01, "{fix:?}");
}

#[test]
fn one_thread_is_one_serial_stretch_where_there_are_more_cpus() {
    let program = program(&alike("w", 1, 10, r#"["exec","f",100]"#));
    assert!(matches!(kind(&program, 4), Kind::Serial { threads: 1, .. }));
    assert!(matches!(kind(&program, 1), Kind::Work { .. }));
}

#[test]
fn imbalance_at_barriers_and_at_the_end() {
    let less = alike("l", 3, 20, r#"["exec","phase",100],["barrier","b",4]"#);
    let more = alike("m", 1, 20, r#"["exec","phase",500],["barrier","b",4]"#);
    let program = self::program(&format!("{less},{more}"));
    assert_eq!(kind(&program, 4), Kind::Imbalance { function: Some("phase".into()) });
    let main = r#"["create","s0"],["create","s1"],["create","t0"],["join","s0"],["join","s1"],["join","t0"]"#;
    let (short, long) =
        (alike("s", 2, 1, r#"["exec","part",500]"#), alike("t", 1, 1, r#"["exec","part",2000]"#));
    let program = self::program(&format!("{{\"name\":\"main\",\"ops\":[{main}]}},{short},{long}"));
    let found = on(&program, 4);
    let limit = found.at.first().expect("a limit");
    assert_eq!(limit.kind, Kind::Imbalance { function: Some("part".into()) });
    assert!((limit.without_ns - 1000.0).abs() < 1.0, "{limit:?}");
    assert!(found.fixes.iter().any(|fix| fix.change == Change::Balance));
}

#[test]
fn a_pipelines_stage() {
    let producer = alike("p", 1, 100, r#"["sem_wait","room"],["exec","produce",10],["sem_post","items"]"#);
    let consumer = alike("c", 1, 100, r#"["sem_wait","items"],["exec","consume",40],["sem_post","room"]"#);
    let room = r#"{"name":"i","ops":[["sem_init","room",4],["sem_init","items",0]]}"#;
    let program = program(&format!("{room},{producer},{consumer}"));
    assert_eq!(kind(&program, 4), Kind::Stage { thread: "c0".into(), function: Some("consume".into()) });
}

/// The first and the last stage of a pipeline that compute the same function were taken for two threads of a pool: neither was
/// always busy, and "the work itself" limited.
#[test]
fn stages_that_compute_the_same_function_are_no_pool() {
    let stage = |name: &str, takes: &str, work: u32, gives: &str| {
        let round = format!(r#"["sem_wait","{takes}"],["exec","burn",{work}],["sem_post","{gives}"]"#);
        alike(name, 1, 100, &round)
    };
    let first = alike("first", 1, 100, r#"["exec","burn",60],["sem_post","one"]"#);
    let last = alike("last", 1, 100, r#"["sem_wait","two"],["exec","burn",10]"#);
    let counts = r#"{"name":"i","ops":[["sem_init","one",0],["sem_init","two",0]]}"#;
    let program = program(&format!("{counts},{first},{},{last}", stage("middle", "one", 30, "two")));
    for cpus in [2, 16] {
        let expected = Kind::Stage { thread: "first0".into(), function: Some("burn".into()) };
        assert_eq!(kind(&program, cpus), expected, "on {cpus} CPUs");
    }
}

/// It may not be known when replayed locks were released: nothing that their threads computed later could be
/// divided, and a pool's limit depended on the recording.
#[test]
fn a_lock_that_is_never_given_back_does_not_hide_a_small_pool() {
    let round = r#"["held","g",0],["exec","pack",100],["io",2,"disk"]"#;
    let program = program(&alike("w", 4, 50, round));
    assert_eq!(kind(&program, 16), Kind::Threads { threads: 4, function: Some("pack".into()) });
}

/// No user can change a library without names, and a function that is all that is computed under a lock
/// cannot leave it.
#[test]
fn advice_can_be_followed() {
    let found = on(&program(&alike("w", 4, 100, r#"["exec","[libz.so.1.2.13]",40]"#)), 2);
    assert!(found.fixes.iter().all(|fix| fix.function.is_none()), "{:?}", found.fixes);
    let found = on(&program(&alike("w", 4, 100, r#"["lock","m"],["exec","hash",60],["unlock","m"]"#)), 4);
    let moves = found.fixes.iter().any(|fix| matches!(fix.change, Change::MoveOut(..)));
    assert!(!moves && !found.fixes.is_empty(), "{:?}", found.fixes);
}

#[test]
fn devices_timers_and_work() {
    let waits = |wait: &str| program(&alike("w", 2, 10, &format!(r#"["exec","f",100],{wait}"#)));
    assert_eq!(kind(&waits(r#"["io",900,"disk"]"#), 2), Kind::Device { device: "disk".into() });
    assert_eq!(kind(&waits(r#"["sleep",900]"#), 2), Kind::Timers);
    assert!(matches!(kind(&waits(r#"["io",1,"disk"]"#), 2), Kind::Work { .. }));
}

/// Where threads sleep and another one reads a timer, neither wait limited by itself, and "the work itself"
/// did.
#[test]
fn a_timer_that_is_read_is_a_sleep() {
    let thread = |name: &str, wait: &str| format!(r#"{{"name":"{name}","ops":[["exec","f",100],{wait}]}}"#);
    let both =
        program(&[thread("a", r#"["sleep",900]"#), thread("b", r#"["io",900,"timerfd read"]"#)].join(","));
    assert_eq!(kind(&both, 2), Kind::Timers);
}

/// Two threads keep two CPUs from two others, for two locks: one lock less is not enough.
#[test]
fn spinning() {
    let holder = |lock: &str| {
        format!(
            r#"{{"name":"h{lock}","ops":[["spin_lock","{lock}"],["exec","f",1000],["spin_unlock","{lock}"]]}}"#
        )
    };
    let waiter = |lock: &str| {
        format!(
            r#"{{"name":"w{lock}","ops":[["exec","g",1],["spin_lock","{lock}"],["spin_unlock","{lock}"]]}}"#
        )
    };
    let program = program(&[holder("a"), holder("b"), waiter("a"), waiter("b")].join(","));
    assert_eq!(kind(&program, 2), Kind::Spinning);
}

/// Spinning is a state of its own, whether the lock is known or only the thread that ended it.
#[test]
fn who_asks_again_and_again_is_shown_spinning() {
    let ends = r#"{"name":"a","ops":[["exec","f",1000],["release","spinning #0"]]}"#;
    let spins = r#"{"name":"b","ops":[["await","spinning #0"],["exec","g",10]]}"#;
    let found = on(&program(&format!("{ends},{spins}")), 2);
    let of = found.threads.iter().find(|of| of.names == ["b"]).expect("b");
    assert!(of.spinning > 0.9 && of.lock == 0.0 && of.other < 0.05, "{of:?}");
}

#[test]
fn handing_over() {
    let ping = alike("p", 1, 100, r#"["exec","f",100],["sem_post","there"],["sem_wait","back"]"#);
    let pong = alike("q", 1, 100, r#"["sem_wait","there"],["exec","g",100],["sem_post","back"]"#);
    let model = Model { wake_latency_ns: Some(2_000), ..Model::default() };
    let found = limits(&program(&format!("{ping},{pong}")), &[Cpus::count(2).expect("2")], &model);
    let limit = found.at.first().expect("a limit");
    assert!(matches!(limit.kind, Kind::HandOver { .. }) && limit.gain() > 0.9, "{limit:?}");
}

#[test]
fn a_server_that_waits_for_work_has_no_limit() {
    let mut program = program(&alike("w", 1, 10, r#"["io",900,"socket receive"],["exec","serve",100]"#));
    assert!(matches!(kind(&program, 2), Kind::Device { .. }));
    let idle =
        RecordedWait { name: "socket receive".into(), idle: true, wait_ns: 9000, ..RecordedWait::default() };
    program.recorded.waits.push(idle);
    let found = on(&program, 2);
    assert!(matches!(found.at[0].kind, Kind::Idle { busy } if (busy - 0.1).abs() < 0.01), "{found:?}");
    assert!(found.fixes.is_empty());
}

/// What was recorded of a program: how long, and what its threads waited for, each kind 2 s long.
fn recorded(program: Program, waits: &[(&str, bool, &str)]) -> Program {
    let wait = |(name, idle, by): &(&str, bool, &str)| RecordedWait {
        name: (*name).into(),
        idle: *idle,
        wait_ns: 2_000_000_000,
        ended_by: vec![Share { name: (*by).into(), count: 1 }],
        ..RecordedWait::default()
    };
    let recorded = Recorded { waits: waits.iter().map(wait).collect(), ..Recorded::default() };
    let overhead = Some(Overhead { wall_ns: 2_000_000_000, ..Overhead::default() });
    Program { recorded, overhead, machine: Some(crate::program::MachineFacts::default()), ..program }
}

/// An attached `sleep 100` was limited by "the work itself", a server without requests by the milliseconds of
/// its start, and a program that sleeps by its sleeping.
#[test]
fn who_waits_for_work_or_time_is_idle() {
    let is_idle = |program: &Program| {
        let found = on(program, 2);
        let idle = matches!(found.at[0].kind, Kind::Idle { busy } if busy < 0.1);
        assert!(!idle || found.fixes.is_empty(), "{found:?}");
        idle
    };
    let attached = || program(r#"{"name":"sleep","ops":[]}"#);
    assert!(is_idle(&recorded(attached(), &[("in the kernel", false, "not ended")])));
    let starts = || program(r#"{"name":"server","ops":[["exec","read_settings",14000000]]}"#);
    assert!(is_idle(&recorded(starts(), &[("poll", true, "not ended")])));
    // Redis's threads that never have a job, and end with it.
    let jobs = [("futex", false, "thread"), ("condition wait", false, "thread")];
    assert!(is_idle(&recorded(starts(), &[jobs[0], jobs[1], ("poll", true, "timer")])));
    let sleeps = || program(&alike("w", 1, 40, r#"["exec","f",400000],["sleep",50000000]"#));
    assert!(is_idle(&recorded(sleeps(), &[("sleep", false, "timer")])));
    // A program that computes, or waits for a lock that is never released or for a slow peer, is not idle.
    let computes = program(&alike("w", 1, 40, r#"["exec","f",10000000],["sleep",40000000]"#));
    assert!(!is_idle(&recorded(computes, &[("sleep", false, "timer")])));
    assert!(!is_idle(&recorded(attached(), &[("mutex lock", false, "not ended")])));
    assert!(!is_idle(&recorded(starts(), &[("socket receive", false, "network")])));
}

/// A program that computed for a tenth of its recording and then waited for input had "2.0 CPUs busy".
#[test]
fn who_sleeps_for_most_of_the_recording_is_limited_by_that() {
    let computes = || program(&alike("w", 2, 40, r#"["exec","f",5000000]"#));
    let asleep = |asleep_ns: u64, waits: &[(&str, bool, &str)]| {
        let mut program = recorded(computes(), waits);
        program.recorded.asleep_ns = asleep_ns;
        on(&program, 2)
    };
    let found = asleep(1_800_000_000, &[("poll", true, "not ended")]);
    assert!(matches!(found.at[0].kind, Kind::Work { .. }), "{found:?}");
    let asleep_for = found.asleep.expect("mostly asleep");
    assert_eq!((asleep_for.awake_ns, asleep_for.wall_ns), (2e8, 2e9));
    // The run is as was predicted: nobody has to doubt it.
    assert_eq!(found.doubts(recorded(computes(), &[]).overhead), []);
    assert_eq!(asleep(900_000_000, &[]).asleep, None);
    // What it sleeps for is in the predicted time.
    let mut sleeps = recorded(program(&alike("w", 1, 40, r#"["exec","f",9000000],["sleep",41000000]"#)), &[]);
    sleeps.recorded.asleep_ns = 1_640_000_000;
    assert_eq!(on(&sleeps, 2).asleep, None);
}

/// What limited a program with one hot lock was "handing over", or CPUs, where the lock had got no probes.
#[test]
fn locks_that_were_not_recorded_are_not_passed_over() {
    let ping = alike("p", 1, 100, r#"["exec","f",100],["sem_post","there"],["sem_wait","back"]"#);
    let pong = alike("q", 1, 100, r#"["sem_wait","there"],["exec","g",100],["sem_post","back"]"#);
    let word = |wait_ns, put_back| RecordedObject {
        name: "futex registry.gate".into(),
        kind: crate::program::FUTEX.into(),
        waits: 1_000,
        wait_ns,
        put_back,
        ..RecordedObject::default()
    };
    let kind = |family: &str, object: RecordedObject| {
        let mut program = recorded(program(&format!("{ping},{pong}")), &[]);
        let family = family.into();
        let tried = Some(OperationsTried { calls: Some(20_000), cost_ppm: 390_000 });
        program.findings.push(Finding::OperationsOff { family, processes: 1, after_ns: None, tried });
        program.recorded.objects.push(object);
        let model = Model { wake_latency_ns: Some(2_000), ..Model::default() };
        let found = limits(&program, &[Cpus::count(2).expect("2")], &model);
        (found.at[0].kind.clone(), found.fixes.len())
    };
    let mutexes = "mutexes and condition variables";
    let expected = |is_lock| Kind::LocksNotRecorded {
        word: "futex registry.gate".into(),
        waiting: 1.5,
        is_lock,
        is_lost: false,
        cost: Some(0.39),
    };
    assert_eq!(kind(mutexes, word(3_000_000_000, None)), (expected(false), 0));
    // Threads that wait for it end each other's waits, as those of a lock do.
    let passed_on = RecordedObject { by_waiters: 900, ..word(3_000_000_000, None) };
    assert_eq!(kind(mutexes, passed_on), (expected(true), 0));
    let is_hand_over = |found: (Kind, usize)| matches!(found.0, Kind::HandOver { .. });
    assert!(is_hand_over(kind(mutexes, word(1_000_000, None))), "hardly anybody waits");
    assert!(
        is_hand_over(kind(mutexes, word(3_000_000_000, Some(PutBackUses::default())))),
        "it is simulated"
    );
    // Java's service threads wait four times for all of a second.
    let for_work = RecordedObject { waits: 4, ..word(3_000_000_000, None) };
    assert!(is_hand_over(kind(mutexes, for_work)), "they wait for work");
    assert!(is_hand_over(kind("semaphores", word(3_000_000_000, None))), "mutexes were recorded");
}

/// Node's four workers behind a lock of their own were limited by "CPUs", as sure as if OpenSSL had not filled the rings.
#[test]
fn locks_whose_operations_were_lost_are_not_passed_over() {
    let ping = alike("p", 1, 100, r#"["exec","f",100],["sem_post","there"],["sem_wait","back"]"#);
    let pong = alike("q", 1, 100, r#"["sem_wait","there"],["exec","g",100],["sem_post","back"]"#);
    let mut program = recorded(program(&format!("{ping},{pong}")), &[]);
    let families = vec![probe_abi::SyncFamily::Mutex.name().to_owned()];
    program.findings.push(Finding::OperationsLost { families });
    let condition = |number: u32| RecordedObject {
        name: format!("condition first used in wait #{number}"),
        kind: "condition".into(),
        group: Some("first used in wait".into()),
        waits: 1_000,
        wait_ns: 1_000_000_000,
        ..RecordedObject::default()
    };
    program.recorded.objects = (1..=4).map(condition).collect();
    let model = Model { wake_latency_ns: Some(2_000), ..Model::default() };
    let found = limits(&program, &[Cpus::count(2).expect("2")], &model);
    let expected = Kind::LocksNotRecorded {
        word: "condition first used in wait".into(),
        waiting: 2.0,
        is_lock: false,
        is_lost: true,
        cost: None,
    };
    assert_eq!(found.at[0].kind, expected);
}

/// Of a Redis under load waking it took "20 % of the time", as if its own threads woke it.
#[test]
fn a_server_that_is_woken_for_each_request_waits_for_work() {
    let program = program(&alike("w", 1, 200, r#"["io",20,"idle"],["exec","serve",100]"#));
    let model = Model { wake_latency_ns: Some(30), ..Model::default() };
    let found = limits(&program, &[Cpus::count(2).expect("2")], &model);
    assert!(matches!(found.at[0].kind, Kind::Idle { busy } if busy > 0.5), "{:?}", found.at[0]);
}

/// A Redis under load was held up by "waiting for idle: 93 % of the time": its other threads never had a job.
#[test]
fn a_server_beside_threads_without_jobs_waits_for_work() {
    let mut program = program(&alike("w", 1, 10, r#"["io",900,"idle"],["exec","serve",100]"#));
    let wait = |name: &str, idle, wait_ns| RecordedWait {
        name: name.into(),
        idle,
        wait_ns,
        ..RecordedWait::default()
    };
    program.recorded.waits = vec![wait("condition wait", false, 10_000), wait("poll", true, 9_000)];
    let found = on(&program, 2);
    assert!(matches!(found.at[0].kind, Kind::Idle { .. }) && found.fixes.is_empty(), "{found:?}");
}

#[test]
fn what_has_no_limit_or_no_end() {
    assert_eq!(kind(&program(r#"{"name":"T","ops":[]}"#), 2), Kind::Nothing);
    assert_eq!(limits(&Program::default(), &[], &Model::default()), Limits::default());
    let stuck = program(r#"{"name":"T","ops":[["exec",5],["sem_wait","never"]]}"#);
    assert!(matches!(kind(&stuck, 2), Kind::Deadlock { stuck } if stuck.threads.len() == 1));
    // What was recorded came to its end.
    let recorded = Program { machine: Some(crate::program::MachineFacts::default()), ..stuck };
    assert_eq!(kind(&recorded, 2), Kind::NotKnown { missing: 0.0 });
}

/// On the recorded machine and on the largest, in this order; each once.
#[test]
fn two_machines() {
    let mut program = program(&alike("w", 4, 100, HOT));
    let counts = [1, 2, 8].map(|count| Cpus::count(count).expect("a count"));
    program.recorded_cpus = Some(2);
    let found = limits(&program, &[counts[0], counts[2], Cpus::Infinite], &Model::default());
    assert_eq!(found.at.iter().map(|limit| limit.cpus).collect::<Vec<_>>(), [counts[1], counts[2]]);
    assert!(found.fixes[0].gain_at_largest.is_some(), "{:?}", found.fixes);
    program.recorded_cpus = Some(8);
    assert_eq!(limits(&program, &counts, &Model::default()).at.len(), 1);
}

/// "Waiting for unknown" limited a recording that had lost nearly everything.
#[test]
fn what_is_missing_is_not_known() {
    let program = program(&alike("w", 2, 10, r#"["exec","f",100],["io",900,"unknown"]"#));
    let Kind::NotKnown { missing } = kind(&program, 2) else { panic!("{:?}", on(&program, 2)) };
    assert!((missing - 0.9).abs() < 0.01, "{missing}");
    assert!(on(&program, 2).fixes.is_empty());
}

/// Advice is about what a person can change.
#[test]
fn nobody_is_told_to_change_a_runtime() {
    let round = r#"["exec","parse",40],["call","digest"],["exec","epoll_wait",60],["exec","start_thread",60],["ret"]"#;
    let found = on(&program(&alike("w", 2, 50, round)), 2);
    let functions: Vec<&str> = found.fixes.iter().filter_map(|fix| fix.function.as_deref()).collect();
    assert!(functions.iter().all(|function| ["parse", "digest"].contains(function)), "{functions:?}");
}

/// The main thread and its workers were "zstd x3", and one of them was the limit.
#[test]
fn threads_are_one_row_only_if_they_are_alike() {
    let workers =
        [alike("w/", 3, 1, r#"["exec","f",900]"#), alike("io/", 2, 1, r#"["exec","f",300]"#)].join(",");
    let creates = r#"["create","w/0"],["create","w/1"],["create","w/2"],["create","io/0"],["create","io/1"]"#;
    let main = format!(r#"{{"name":"w/9","ops":[["exec","f",9000],{creates},["exec","f",1000]]}}"#);
    let found = on(&program(&format!("{main},{workers}")), 8);
    assert!(matches!(&found.at[0].kind, Kind::Serial { thread, .. } if thread == "w/9"), "{:?}", found.at);
    let mut rows: Vec<Vec<&str>> =
        found.threads.iter().map(|of| of.names.iter().map(String::as_str).collect()).collect();
    rows.sort_unstable();
    assert_eq!(rows, [vec!["io/0", "io/1"], vec!["w/0", "w/1", "w/2"], vec!["w/9"]]);
}

/// Random programs: a limit is never worse than the program, and nothing panics.
#[test]
fn without_a_constraint_it_is_never_slower() {
    for seed in 0..200 {
        let program = crate::synth::random_program(seed, crate::synth::Lengths::Spread);
        for limit in limits(&program, &[Cpus::ONE, Cpus::count(3).expect("3")], &Model::default()).at {
            assert!(limit.without_ns <= limit.time_ns && limit.gain() >= 0.0, "{seed}: {limit:?}");
        }
    }
}

/// "Would more threads help?" was answered only where too few threads limit.
#[test]
fn whether_one_more_thread_helps_is_known_of_threads_that_do_the_same() {
    let waiting = on(&program(&alike("w", 4, 100, HOT)), 8).more_threads.expect("known");
    assert!(waiting.threads == 4 && waiting.gain < super::WORTH, "the lock is full: {waiting:?}");
    let busy = on(&program(&alike("w", 2, 1, r#"["exec","f",1000]"#)), 8).more_threads.expect("known");
    assert!(busy.threads == 2 && (busy.gain - 1.0 / 3.0).abs() < 0.01, "{busy:?}");
    let full = on(&program(&alike("w", 2, 1, r#"["exec","f",1000]"#)), 2).more_threads.expect("known");
    assert!(full.gain.abs() < 0.01, "there is no CPU for it: {full:?}");
    assert_eq!(on(&program(&alike("w", 1, 1, r#"["exec","f",1000]"#)), 8).more_threads, None);
}

/// FIX had "5 threads instead of 4", and nothing else could try six.
#[test]
fn more_threads_are_tried_by_any_number() {
    let workers = |program: &Program| super::Search::new(program, &[], &Model::default()).expect("a program");
    let on =
        |search: &super::Search, more, cpus| search.with_workers(more, Cpus::count(cpus).expect("a count"));
    let busy = program(&alike("w", 2, 1, r#"["exec","f",1000]"#));
    let search = workers(&busy);
    assert_eq!(search.workers(), Some(2));
    let near = |found: Option<(f64, f64)>, after: f64| {
        let (before, found) = found.expect("known");
        assert!((before - 1000.0).abs() < 1.0 && (found - after).abs() < 1.0, "{found}, not {after}");
    };
    near(on(&search, 1, 8), 1000.0 * 2.0 / 3.0);
    near(on(&search, 6, 8), 250.0);
    near(on(&search, 6, 4), 500.0);
    near(on(&search, 1, 2), 1000.0);
    // It is the number that LIMIT has.
    let of_limit = self::on(&busy, 8).more_threads.expect("known").gain;
    assert!((of_limit - 1.0 / 3.0).abs() < 0.01);
    let alone = program(&alike("w", 1, 1, r#"["exec","f",1000]"#));
    assert_eq!((workers(&alone).workers(), on(&workers(&alone), 1, 8)), (None, None));
}

/// `report` said of a server that it waits for work and `top` that only one thread computes, by whether it was busy for 78 %
/// or 85 % of the time.
#[test]
fn a_server_waits_for_work_however_busy_it_is() {
    for (busy, is_idle) in [(60, true), (78, true), (85, true), (92, true), (98, false)] {
        let round = format!(r#"["exec","serve",{busy}],["io",{},"idle"]"#, 100 - busy);
        let kind = kind(&program(&alike("server", 1, 100, &round)), 2);
        assert_eq!(matches!(kind, Kind::Idle { .. }), is_idle, "{busy} %: {kind:?}");
        assert!(is_idle || matches!(kind, Kind::Serial { threads: 1, .. }), "{kind:?}");
    }
}

/// Of a compressor whose first job is the largest, a fifth was promised for one more thread, and came from none.
#[test]
fn one_more_thread_does_not_divide_what_a_thread_does_alone() {
    let threads =
        [alike("w", 1, 1, r#"["exec","f",3000]"#), alike("v", 3, 1, r#"["exec","f",200]"#)].join(",");
    let found = on(&program(&threads), 8);
    assert_eq!(found.more_threads, None);
    assert!(!found.fixes.iter().any(|fix| matches!(fix.change, Change::OneMore(_))), "{:?}", found.fixes);
}

/// "Split the lock in 8" was the only advice for a Python program.
#[test]
fn an_interpreters_lock_is_not_split() {
    let program = program(&alike("w", 4, 100, &HOT.replace("\"m\"", "\"lock GIL\"")));
    let found = on(&program, 4);
    assert!(matches!(&found.at[0].kind, Kind::Lock { lock, .. } if lock == "lock GIL"), "{:?}", found.at);
    let is_of_lock = |change: &Change| matches!(change, Change::SplitLock(..) | Change::MoveOut(..));
    assert!(!found.fixes.iter().any(|fix| is_of_lock(&fix.change)), "{:?}", found.fixes);
    // 4 threads on 4 CPUs: 24,840 ns become 10,200 if each has an interpreter of its own.
    let first = found.fixes.first().expect("a change");
    assert!(matches!(first.change, Change::Processes(_)) && first.change.is_at_best(), "{first:?}");
    assert!((0.55..0.62).contains(&first.gain), "{first:?}");
    assert!(found.fixes.len() > 1, "what runs under it can be made faster: {:?}", found.fixes);
}
