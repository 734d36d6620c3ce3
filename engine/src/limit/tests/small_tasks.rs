//! Pools whose threads are woken for tasks that are smaller than a wake-up.

use super::*;
use crate::event::SupportSubject;
use crate::program::SupportWork;

/// One thread hands 4,000 tasks of `task` nanoseconds to two workers, one at a time. `kernels`: the percentage of samples in
/// which the kernel puts threads to sleep and wakes them. `by_worker`: each worker wakes the other one instead.
fn pool(task: u32, kernels: u64, by_worker: bool) -> Program {
    let tasks = 0..4_000;
    let give = |number: i32| format!(r#"["exec","spawn",3000],["release","t{number}"]"#);
    let feed: Vec<String> = tasks.clone().filter(|number| !by_worker || *number == 0).map(give).collect();
    let worker = |own: i32| {
        let rounds = tasks.clone().filter(|number| number % 2 == own).map(|number| {
            let next = if by_worker { format!(r#",["release","t{}"]"#, number + 1) } else { String::new() };
            format!(r#"["await","t{number}"],["exec","transaction",{task}]{next}"#)
        });
        format!(r#"{{"name":"w{own}","ops":[{}]}}"#, rounds.collect::<Vec<_>>().join(","))
    };
    let main = format!(r#"{{"name":"main","ops":[{}]}}"#, feed.join(","));
    let mut program = program(&[main, worker(0), worker(1)].join(","));
    let subject = SupportSubject::Waiting;
    program.recorded.support =
        vec![SupportWork { subject, threads: 3, samples: kernels, all: 100, ..SupportWork::default() }];
    program
}

fn small(program: &Program) -> Option<LimitKind> {
    let limit = on(program, 2).at.remove(0);
    let kinds = limit.others.into_iter().map(|row| row.kind).chain([limit.kind]);
    kinds.into_iter().find(|kind| matches!(kind, LimitKind::SmallTasks { .. }))
}

/// `aptos-core#10464`: a task for each item. The limit was CPUs, or "wake one thread instead of all" by `notify_one`.
#[test]
fn threads_that_are_woken_for_each_small_task_are_handed_too_little_at_a_time() {
    let found = on(&pool(6_000, 20, false), 2);
    let expected = LimitKind::SmallTasks {
        threads: 2,
        function: Some("transaction".into()),
        wakings: 4_000,
        task_ns: 6_000,
    };
    assert_eq!(found.at[0].kind, expected);
    assert!((0.1..0.21).contains(&found.at[0].gain()), "the kernel's part: {:?}", found.at[0]);
    let fix = found.fixes.iter().find(|fix| matches!(fix.edit, Edit::LargerTasks { .. }));
    assert!(fix.is_some_and(|fix| fix.edit.is_at_best()), "{found:?}");
}

#[test]
fn larger_tasks_few_wake_ups_and_threads_that_wake_each_other_are_no_small_tasks() {
    assert!(small(&pool(6_000, 20, false)).is_some());
    assert_eq!(small(&pool(60_000, 20, false)), None, "a task takes longer than a wake-up");
    assert_eq!(small(&pool(6_000, 4, false)), None, "the kernel hardly wakes any");
    assert_eq!(small(&pool(6_000, 20, true)), None, "they wait for each other");
}
