//! The effect of each operation on unlimited processors: when segments start and end.

use engine::program::json;
use engine::report::{Cpus, Detail, Finding, Report, report};

fn analysed(threads: &str) -> Report {
    let text = format!(r#"{{"format":"longpole-program","version":1,"threads":[{threads}]}}"#);
    let program = json::read(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    report(&program, &[Cpus::Infinite], Detail::Segments)
}

/// All segments as `thread function start-end`, and kinds of findings.
fn check(threads: &str, segments: &[&str], findings: &[&str]) {
    let report = analysed(threads);
    let shown: Vec<String> = report.results[0]
        .segments
        .iter()
        .map(|segment| {
            let function = segment.function.as_deref().unwrap_or("?");
            format!("{} {function} {}-{}", segment.thread, segment.start_ns, segment.end_ns)
        })
        .collect();
    assert_eq!(shown, segments, "{threads}");
    let found: Vec<&str> = report.findings.iter().map(Finding::kind).collect();
    assert_eq!(found, findings, "{threads}");
}

#[test]
fn semaphores_are_first_come_first_served() {
    check(
        r#"{"name":"A","ops":[["exec","a",2],["wait","s"],["exec","b",1]]},
           {"name":"B","ops":[["exec","a",1],["sem_wait","s"],["exec","b",1]]},
           {"name":"C","ops":[["exec","c",5],["sem_post","s"],["exec","c",5],["signal","s"]]}"#,
        &["A a 0-2", "A b 10-11", "B a 0-1", "B b 5-6", "C c 0-5", "C c 5-10"],
        &[],
    );
}

#[test]
fn a_semaphore_starts_with_the_count_it_is_set_to() {
    check(
        r#"{"name":"A","ops":[["sem_init","s",2],["create","B"],["exec","a",3],["sem_post","s"]]},
           {"name":"B","ops":[["sem_wait","s"],["exec","b",1],["sem_wait","s"],["exec","b",1],["sem_wait","s"],["exec","b",1]]}"#,
        &["A a 0-3", "B b 0-1", "B b 1-2", "B b 3-4"],
        &[],
    );
}

#[test]
fn a_mutex_is_not_handed_over_to_the_thread_that_it_wakes() {
    // A takes the lock again before B, which it woke, runs.
    check(
        r#"{"name":"A","ops":[["lock","m"],["exec","a",2],["unlock","m"],["lock","m"],["exec","a",2],["unlock","m"]]},
           {"name":"B","ops":[["exec","b",1],["lock","m"],["exec","b",1],["unlock","m"]]}"#,
        &["A a 0-2", "A a 2-4", "B b 0-1", "B b 4-5"],
        &[],
    );
    // With work in between, B gets the lock.
    check(
        r#"{"name":"A","ops":[["lock","m"],["exec","a",2],["unlock","m"],["exec","c",1],["lock","m"],["exec","a",2],["unlock","m"]]},
           {"name":"B","ops":[["exec","b",1],["lock","m"],["exec","b",3],["unlock","m"]]}"#,
        &["A a 0-2", "A c 2-3", "A a 5-7", "B b 0-1", "B b 2-5"],
        &[],
    );
}

#[test]
fn readers_share_a_lock_and_writers_do_not() {
    check(
        r#"{"name":"W","ops":[["wrlock","r"],["exec","w",2],["rwunlock","r"]]},
           {"name":"A","ops":[["exec","a",1],["rdlock","r"],["exec","r",3],["rwunlock","r"]]},
           {"name":"B","ops":[["exec","a",1],["rdlock","r"],["exec","r",4],["rwunlock","r"]]},
           {"name":"X","ops":[["exec","a",1],["wrlock","r"],["exec","w",1],["rwunlock","r"]]},
           {"name":"C","ops":[["exec","a",3],["rdlock","r"],["exec","r",1],["rwunlock","r"]]}"#,
        &["W w 0-2", "A a 0-1", "A r 2-5", "B a 0-1", "B r 2-6", "X a 0-1", "X w 6-7", "C a 0-3", "C r 3-4"],
        &[],
    );
}

#[test]
fn a_read_write_lock_is_handed_over_between_readers_and_writers() {
    // A reads again before W, which waits, runs: the lock has passed to W all the same when A released it.
    check(
        r#"{"name":"A","ops":[["rdlock","r"],["exec","r",2],["rwunlock","r"],["rdlock","r"],["exec","r",2],["rwunlock","r"]]},
           {"name":"W","ops":[["exec","a",1],["wrlock","r"],["exec","w",3],["rwunlock","r"]]}"#,
        &["A r 0-2", "A r 5-7", "W a 0-1", "W w 2-5"],
        &[],
    );
    // All waiting readers get in when a writer leaves, though that writer wants to write again at once; then the next
    // writer is woken.
    check(
        r#"{"name":"W","ops":[["wrlock","r"],["exec","w",3],["rwunlock","r"],["wrlock","r"],["exec","w",1],["rwunlock","r"]]},
           {"name":"A","ops":[["exec","a",1],["rdlock","r"],["exec","r",2],["rwunlock","r"]]},
           {"name":"B","ops":[["exec","a",1],["rdlock","r"],["exec","r",3],["rwunlock","r"]]}"#,
        &["W w 0-3", "W w 6-7", "A a 0-1", "A r 3-5", "B a 0-1", "B r 3-6"],
        &[],
    );
}

#[test]
fn barriers_conditions_once_threads_and_edges_have_this_schedule() {
    check(
        r#"{"name":"A","ops":[["exec","a",1],["barrier","b",2],["exec","a",1],["barrier","b",2],["exec","a",1]]},
           {"name":"B","ops":[["exec","b",3],["barrier","b",2],["exec","b",2],["barrier","b",2]]}"#,
        &["A a 0-1", "A a 3-4", "A a 5-6", "B b 0-3", "B b 3-5"],
        &[],
    );
    check(
        r#"{"name":"A","ops":[["lock","m"],["exec","a",1],["cond_wait","c","m"],["exec","a",1],["unlock","m"]]},
           {"name":"B","ops":[["exec","b",2],["lock","m"],["cond_broadcast","c"],["exec","b",3],["unlock","m"]]},
           {"name":"C","ops":[["exec","c",1],["lock","m"],["cond_wait","c","m"],["exec","c",1],["unlock","m"]]}"#,
        &["A a 0-1", "A a 5-6", "B b 0-2", "B b 2-5", "C c 0-1", "C c 6-7"],
        &[],
    );
    check(
        r#"{"name":"A","ops":[["exec","a",1],["call","init"],["once","o",4],["ret"],["exec","a",1]]},
           {"name":"B","ops":[["exec","b",2],["once","o",9],["exec","b",1]]},
           {"name":"C","ops":[["exec","c",7],["once","o",9],["exec","c",1]]}"#,
        &["A a 0-1", "A init 1-5", "A a 5-6", "B b 0-2", "B b 5-6", "C c 0-7", "C c 7-8"],
        &[],
    );
    check(
        r#"{"name":"A","ops":[["exec","a",1],["create","B"],["exec","a",1],["join","B"],["exec","a",1],["join","B"]]},
           {"name":"B","ops":[["exec","b",1],["io",3,"disk"],["exec","b",1],["sleep",2]]}"#,
        &["A a 0-1", "A a 1-2", "A a 8-9", "B b 1-2", "B b 5-6"],
        &[],
    );
    check(
        r#"{"name":"A","ops":[["exec","a",2],["release","e"],["exec","a",1]]},
           {"name":"B","ops":[["exec","b",1],["await","e"],["exec","b",1]]},
           {"name":"C","ops":[["exec","c",4],["await","e"],["exec","c",1]]}"#,
        &["A a 0-2", "A a 2-3", "B b 0-1", "B b 2-3", "C c 0-4", "C c 4-5"],
        &[],
    );
}

#[test]
fn a_spin_lock_s_wait_keeps_a_processor_busy() {
    let text = |lock: &str| {
        format!(
            r#"{{"format":"longpole-program","version":1,"threads":[
            {{"name":"A","ops":[["{lock}lock","s"],["exec","a",4],["{lock}unlock","s"]]}},
            {{"name":"B","ops":[["exec","b",1],["{lock}lock","s"],["exec","b",1],["{lock}unlock","s"]]}}]}}"#
        )
    };
    let time = |lock: &str| {
        let program = json::read(&text(lock)).expect("a program");
        let report = report(&program, &Cpus::parse_list("1,2").expect("counts"), Detail::Functions);
        report.results.iter().map(|result| result.time_ns).collect::<Vec<_>>()
    };
    assert_eq!(time(""), [6.0, 5.0]);
    assert_eq!(time("spin_"), [9.0, 5.0]);
}

#[test]
fn threads_at_one_instant_act_in_the_order_in_which_they_became_ready() {
    // At 2 both arrive: A has computed since 0, B began its last computation at 1.
    check(
        r#"{"name":"B","ops":[["exec","b",1],["exec","b",1],["lock","m"],["exec","b",1],["unlock","m"]]},
           {"name":"A","ops":[["exec","a",2],["lock","m"],["exec","a",1],["unlock","m"]]}"#,
        &["B b 0-1", "B b 1-2", "B b 3-4", "A a 0-2", "A a 2-3"],
        &[],
    );
    // At the start in list order; a woken thread goes to the end of the queue.
    check(
        r#"{"name":"A","ops":[["wait","s"],["lock","m"],["exec","a",1],["unlock","m"]]},
           {"name":"B","ops":[["signal","s"],["sleep",0],["lock","m"],["exec","b",1],["unlock","m"]]},
           {"name":"C","ops":[["lock","m"],["exec","c",1],["unlock","m"]]}"#,
        &["A a 1-2", "B b 2-3", "C c 0-1"],
        &[],
    );
}

#[test]
fn a_deadlock_is_a_finding_and_keeps_the_result_up_to_it() {
    check(
        r#"{"name":"T1","ops":[["lock","left"],["exec","a",2],["lock","right"],["exec","never",1]]},
           {"name":"T2","ops":[["lock","right"],["exec","b",3],["lock","left"],["exec","never",1]]}"#,
        &["T1 a 0-2", "T2 b 0-3"],
        &["deadlock"],
    );
}

#[test]
fn nested_and_recursive_functions_have_these_calls_and_times() {
    let report = analysed(
        r#"{"name":"T1","ops":[["call","f"],["exec",1],["call","g"],["exec",2],["call","f"],["exec",4],["exec","g",8],
            ["ret"],["ret"],["exec",16],["ret"],["exec",32],["call","late"]]}"#,
    );
    let rows: Vec<_> = report.results[0]
        .functions
        .iter()
        .map(|row| (row.function.as_str(), row.calls, row.tet_ns, row.tetid_ns))
        .collect();
    assert_eq!(rows, [("f", 2, 21.0, 31.0), ("g", 2, 10.0, 14.0), ("late", 1, 0.0, 0.0)]);
    assert_eq!(report.results[0].time_ns, 63.0);
}

#[test]
fn an_empty_program_takes_no_time() {
    for threads in ["", r#"{"name":"T1","ops":[]}"#] {
        let report = analysed(threads);
        assert_eq!((report.results[0].time_ns, report.results[0].speedup), (0.0, 1.0));
        assert_eq!(report.findings, []);
    }
}

#[test]
fn a_schedule_is_a_stream_of_vertices_in_time_order() {
    use engine::schedule::{Simulation, Vertex};
    for seed in 0..200 {
        let program = engine::synth::random_program(seed, engine::synth::Lengths::Tied);
        let stream: Vec<Vertex> = Simulation::new(&program).expect("a program").collect();
        assert!(stream.is_sorted_by_key(|vertex| vertex.time), "seed {seed}");
        let mut simulation = Simulation::new(&program).expect("a program");
        let (mut instants, mut instant) = (Vec::new(), Vec::new());
        while let Some(now) = simulation.next_instant(&mut instant) {
            assert!(instant.iter().all(|vertex| vertex.time == now), "seed {seed}");
            instants.extend_from_slice(&instant);
        }
        assert_eq!(stream, instants, "seed {seed}");
        let mut executing = 0;
        for vertex in &stream {
            executing += vertex.change;
            assert!((0..=program.threads.len() as i32).contains(&executing), "seed {seed}");
        }
    }
}
