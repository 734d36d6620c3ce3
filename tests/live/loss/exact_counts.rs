//! A workload does each operation a known (prime) number of times, and exactly this number must be recorded.

use longpole_tests::{Recorded, skip_unless_live};

/// Options that keep every call. By default, the overhead controller removes probes of functions that are called very
/// often or cost too much.
const KEEP_ALL: [&str; 5] = ["--exact", "--max-rate", "1000000000", "--overhead", "none"];

#[test]
fn calls_of_all_threads_in_fork_and_join_are_counted_exactly() {
    let program = skip_unless_live!("forkjoin.c");
    let recorded = Recorded::good(&KEEP_ALL, &program, &["11", "7", "20000"]);
    let program = recorded.program();
    assert_eq!(program.entries("ShortBranch"), 77);
    assert_eq!(program.entries("LongBranch"), 11);
    assert_eq!(program.entries("Between"), 11);
    assert_eq!(program.threads(), 1 + 88);
}

#[test]
fn calls_of_every_pipeline_stage_are_counted_exactly() {
    let program = skip_unless_live!("pipeline.c");
    let recorded = Recorded::good(&KEEP_ALL, &program, &["401", "4", "2000"]);
    let program = recorded.program();
    for stage in ["StageParse", "StageTransform", "StageWrite"] {
        assert_eq!(program.entries(stage), 401, "{stage}");
    }
    assert_eq!(program.entries("put"), 802);
    assert_eq!(program.entries("take"), 802);
}

/// Every hand-off is one wake-up: the next holder sleeps before it is woken.
#[test]
fn wake_ups_of_a_hand_off_chain_are_counted_exactly() {
    let program = skip_unless_live!("handoff.c");
    let recorded = Recorded::good(&["--interpose", "never"], &program, &["499", "3", "20000"]);
    let program = recorded.program();
    let (edges, created) = (program.count("await"), 3);
    // Apart from the hand-offs, only main may wait, once for each of the three threads.
    assert!((499..=499 + created).contains(&edges), "{edges} waits for 499 hand-offs");
    assert!(program.count("release") >= 499, "{} wakes", program.count("release"));
}

/// The same program recorded by the library. The token is a semaphore, which is simulated, so no wake-up edge remains.
#[test]
fn semaphore_operations_of_a_hand_off_chain_are_counted_exactly() {
    let program = skip_unless_live!("handoff.c");
    let recorded = Recorded::good(&KEEP_ALL, &program, &["499", "3", "20000"]);
    let program = recorded.program();
    assert_eq!((program.count("sem_wait"), program.count("sem_post")), (499, 499));
    assert_eq!((program.count("create"), program.count("join")), (3, 3));
    // Threads of a process sometimes wait for each other in the kernel, for example for the lock on their memory map.
    let edges = (program.count("await"), program.count("release"));
    assert!(edges.0 == edges.1 && edges.0 <= 2, "{edges:?}");
    assert_eq!(program.entries("HoldToken"), 499);
    assert_eq!(program.count_where("sem_wait", "HoldToken"), 499);
}

/// Issue 2: recursive calls inside the first open frame of a function count as one call.
#[test]
fn a_recursion_a_thousand_deep_counts_once() {
    let program = skip_unless_live!("recursion.c");
    let recorded = Recorded::good(&KEEP_ALL, &program, &["13", "1000"]);
    let program = recorded.program();
    assert_eq!(program.entries("Top"), 26);
    assert_eq!(program.entries("Down"), 26);
    assert_eq!(program.entries("diver"), 2);
}

/// Every call counts, on the critical path or not. A report has only calls on the path. On one CPU, a wait (the machine
/// gave the program no time) can be longer than all work of one thread, and then that work is not on the path.
#[test]
fn calls_that_end_by_an_exception_are_counted_exactly() {
    let program = skip_unless_live!("exceptions.cpp");
    let recorded = Recorded::good(&KEEP_ALL, &program, &["101"]);
    let program = recorded.program();
    assert_eq!(program.entries("Catcher(unsigned long, unsigned long&)"), 202);
    assert_eq!(program.entries("Deep(long, unsigned long, unsigned long&)"), 202);
    assert_eq!(program.entries("Thrower(long, unsigned long*, unsigned long*)"), 2);
}

#[test]
fn calls_left_by_longjmp_are_counted_exactly() {
    let program = skip_unless_live!("longjmp.c");
    let recorded = Recorded::good(&KEEP_ALL, &program, &["211"]);
    let program = recorded.program();
    assert_eq!(program.entries("Surface"), 211);
    assert_eq!(program.entries("Dive"), 211);
    assert_eq!(program.entries("main"), 1);
}

#[test]
fn threads_that_come_and_go_are_counted_exactly() {
    let program = skip_unless_live!("churn.c");
    let recorded = Recorded::good(&KEEP_ALL, &program, &["211", "4"]);
    let program = recorded.program();
    assert_eq!(program.entries("ShortLife"), 211);
    assert_eq!(program.threads(), 212);
}

#[test]
fn only_functions_chosen_by_name_have_probes() {
    let program = skip_unless_live!("pipeline.c");
    let options = ["--functions", "Stage*", "--exclude", "*Write"];
    let recorded = Recorded::good(&options, &program, &["101", "4", "2000"]);
    let program = recorded.program();
    assert_eq!(program.entries("StageParse"), 101);
    assert_eq!(program.entries("StageTransform"), 101);
    assert_eq!(program.entries("StageWrite"), 0);
    assert_eq!(program.entries("put"), 0);
}

/// The depth limit of 2001, section 3.2: main is the first level, the function that it calls is the second.
#[test]
fn the_depth_limit_keeps_only_the_outer_calls() {
    let program = skip_unless_live!("longjmp.c");
    for (depth, surface, dive) in [("1", 0, 0), ("2", 101, 0), ("3", 101, 101)] {
        let options = ["--exact", "--depth", depth, "--max-rate", "1000000000", "--overhead", "none"];
        let recorded = Recorded::good(&options, &program, &["101"]);
        let program = recorded.program();
        assert_eq!(program.entries("main"), 1, "depth {depth}");
        assert_eq!(program.entries("Surface"), surface, "depth {depth}");
        assert_eq!(program.entries("Dive"), dive, "depth {depth}");
        assert_eq!(recorded.report("1").trust("unmatched"), 0.0, "depth {depth}");
    }
}

/// A thread's first function is the first level. Here `work` calls `compute` and `locked`, and `locked` calls
/// `compute`.
#[test]
fn the_depth_limit_counts_from_each_thread_s_first_function() {
    let program = skip_unless_live!("turns.c");
    let recorded = Recorded::good(&["--exact", "--overhead", "none", "--depth", "2"], &program, &["97"]);
    let program = recorded.program();
    assert_eq!((program.entries("work"), program.entries("locked")), (2, 2 * 97));
    assert_eq!(program.entries("compute"), 2 * 97);
    assert_eq!(recorded.report("1").trust("unmatched"), 0.0, "every recorded call has its end");
}

#[test]
fn children_are_recorded_unless_no_children_is_given() {
    let program = skip_unless_live!("family.c");
    // The child begins its work only after longpole has had time to probe it, too.
    let recorded = Recorded::good(&["--exact"], &program, &["2", "1500"]);
    // The time before the child has its probes is a gap.
    assert_eq!(recorded.report("1").findings("probes_late").len(), 1, "{}", recorded.ended.stderr);
    let with = recorded.program();
    assert_eq!(with.entries("ParentWork"), 2);
    assert_eq!(with.entries("ChildWork"), 2);
    assert_eq!(with.threads(), 3);
    let options = [&KEEP_ALL[..], &["--no-children"]].concat();
    let without = Recorded::good(&options, &program, &["3", "1"]).program();
    assert_eq!(without.entries("ParentWork"), 3);
    assert_eq!(without.entries("ChildWork"), 0);
    assert_eq!(without.threads(), 1);
}
