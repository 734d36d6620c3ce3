//! Programs that wait for work, or sleep.

use super::*;

#[test]
fn a_server_that_waits_for_work_is_idle_without_fixes() {
    let mut program = program(&alike("w", 1, 10, r#"["io",900,"socket receive"],["exec","serve",100]"#));
    assert!(matches!(kind(&program, 2), LimitKind::Device { .. }));
    let idle =
        RecordedWait { name: "socket receive".into(), idle: true, wait_ns: 9000, ..RecordedWait::default() };
    program.recorded.waits.push(idle);
    let found = on(&program, 2);
    assert!(matches!(found.at[0].kind, LimitKind::Idle { busy } if (busy - 0.1).abs() < 0.01), "{found:?}");
    assert!(found.fixes.is_empty());
}

/// An attached `sleep 100`, a server without requests and a program that mostly sleeps are idle: neither computing at the start
/// nor the sleep limits them.
#[test]
fn a_program_that_waits_for_work_or_time_is_idle() {
    let is_idle = |program: &Program| {
        let found = on(program, 2);
        let idle = matches!(found.at[0].kind, LimitKind::Idle { busy } if busy < 0.1);
        assert!(!idle || found.fixes.is_empty(), "{found:?}");
        idle
    };
    let attached = || program(r#"{"name":"sleep","ops":[]}"#);
    assert!(is_idle(&recorded(attached(), &[("in the kernel", false, "not ended")])));
    let starts = || program(r#"{"name":"server","ops":[["exec","read_settings",14000000]]}"#);
    assert!(is_idle(&recorded(starts(), &[("poll", true, "not ended")])));
    // Waits like Redis's, with threads that never have a job.
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

/// A program computes for a tenth of its recording and then waits for input: only the time in which it is awake counts
/// for its busy CPUs.
#[test]
fn a_program_asleep_for_most_of_the_recording_has_its_limit_while_awake() {
    let computes = || program(&alike("w", 2, 40, r#"["exec","f",5000000]"#));
    let asleep = |asleep_ns: u64, waits: &[(&str, bool, &str)]| {
        let mut program = recorded(computes(), waits);
        program.recorded.asleep_ns = asleep_ns;
        on(&program, 2)
    };
    let found = asleep(1_800_000_000, &[("poll", true, "not ended")]);
    assert!(matches!(found.at[0].kind, LimitKind::Work { .. }), "{found:?}");
    let asleep_for = found.asleep.expect("mostly asleep");
    assert_eq!((asleep_for.awake_ns, asleep_for.wall_ns), (2e8, 2e9));
    // The run is as predicted, so the limit has no doubts.
    assert_eq!(found.doubts(recorded(computes(), &[]).overhead), []);
    assert_eq!(asleep(900_000_000, &[]).asleep, None);
    // The sleep is in the predicted time.
    let mut sleeps = recorded(program(&alike("w", 1, 40, r#"["exec","f",9000000],["sleep",41000000]"#)), &[]);
    sleeps.recorded.asleep_ns = 1_640_000_000;
    assert_eq!(on(&sleeps, 2).asleep, None);
}

/// A server is woken by its clients, as Redis is under load: waiting for the wake-up is waiting for work.
#[test]
fn a_server_woken_for_each_request_is_idle() {
    let program = program(&alike("w", 1, 200, r#"["io",20,"idle"],["exec","serve",100]"#));
    let model = Model { wake_latency_ns: Some(30), ..Model::default() };
    let found = limits(&program, &[Cpus::count(2).expect("2")], &model);
    assert!(matches!(found.at[0].kind, LimitKind::Idle { busy } if busy > 0.5), "{:?}", found.at[0]);
}

/// Threads that never have a job, as in Redis under load, are not what the server waits for.
#[test]
fn a_server_with_threads_that_have_no_jobs_is_idle() {
    let mut program = program(&alike("w", 1, 10, r#"["io",900,"idle"],["exec","serve",100]"#));
    let wait = |name: &str, idle, wait_ns| RecordedWait {
        name: name.into(),
        idle,
        wait_ns,
        ..RecordedWait::default()
    };
    program.recorded.waits = vec![wait("condition wait", false, 10_000), wait("poll", true, 9_000)];
    let found = on(&program, 2);
    assert!(matches!(found.at[0].kind, LimitKind::Idle { .. }) && found.fixes.is_empty(), "{found:?}");
}

/// A server waits for work whether it is busy for 78 % or 85 % of the time, so that `report` and `top` agree.
#[test]
fn a_server_is_idle_unless_it_is_busy_nearly_all_the_time() {
    for (busy, is_idle) in [(60, true), (78, true), (85, true), (92, true), (98, false)] {
        let round = format!(r#"["exec","serve",{busy}],["io",{},"idle"]"#, 100 - busy);
        let kind = kind(&program(&alike("server", 1, 100, &round)), 2);
        assert_eq!(matches!(kind, LimitKind::Idle { .. }), is_idle, "{busy} %: {kind:?}");
        assert!(is_idle || matches!(kind, LimitKind::Serial { threads: 1, .. }), "{kind:?}");
    }
}
