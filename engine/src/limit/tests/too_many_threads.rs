//! More threads than CPUs.

use super::*;

/// Threads that compute in rounds; the last one ends each round, and the others spin until then.
fn rounds(count: usize, length: u32) -> String {
    let thread = |number: usize| {
        let round = |round: usize| {
            let edge = |of: usize| format!("spinning #{}", round * count + of);
            let ends: Vec<String> = match number + 1 == count {
                true => (0..number).map(|of| format!(r#"["release","{}"]"#, edge(of))).collect(),
                false => vec![format!(r#"["await","{}"]"#, edge(number))],
            };
            format!(r#"["exec","crunch",{length}],{}"#, ends.join(","))
        };
        let rounds: Vec<String> = (0..40).map(round).collect();
        format!(r#"{{"name":"w{number}","ops":[{}]}}"#, rounds.join(","))
    };
    (0..count).map(thread).collect::<Vec<_>>().join(",")
}

fn two_of(found: &Limits) -> Option<f64> {
    let is_it = |fix: &&Fix| matches!(fix.edit, Edit::FewerThreads { kept: 2, .. });
    found.fixes.iter().find(is_it).map(|fix| fix.gain)
}

/// Four threads of a spinning barrier on two CPUs were "CPUs: 3.1 threads want one", and "4 CPUs instead of 2" what to do.
#[test]
fn threads_that_spin_for_one_without_a_cpu_are_too_many() {
    let found = on(&recorded(program(&rounds(4, 800_000)), &[]), 2);
    let Kind::TooManyThreads { threads: 4, then: 2, function } = &found.at[0].kind else {
        panic!("{found:?}")
    };
    assert_eq!(function.as_deref(), Some("crunch"));
    assert!(two_of(&found).is_some_and(|gain| gain >= WORTH), "{found:?}");
}

/// As many threads as CPUs are not too many, nor are those that only compute, or wait for each other asleep and rarely.
#[test]
fn threads_that_lose_nothing_to_each_other_are_not_too_many() {
    let rarely = alike("w", 4, 10, r#"["exec","f",4000000],["barrier","b",4]"#);
    let alone = alike("w", 4, 1, r#"["exec","f",40000000]"#);
    for threads in [rounds(2, 800_000), alone, rarely] {
        let found = on(&recorded(program(&threads), &[]), 2);
        let told =
            found.at.iter().flat_map(|limit| limit.others.iter().map(|row| &row.kind).chain([&limit.kind]));
        let told: Vec<&Kind> = told.filter(|kind| matches!(kind, Kind::TooManyThreads { .. })).collect();
        assert!(told.is_empty() && two_of(&found).is_none(), "{found:?}");
    }
}

/// What the prediction lacks was "not known", though spinning took it.
#[test]
fn spinning_that_the_prediction_lacks_is_gone_with_fewer_threads() {
    let spun = |spun_ns| {
        let mut program = recorded(program(&rounds(4, 800_000)), &[]);
        program.overhead =
            Some(Overhead { wall_ns: 500_000_000, target_ns: 900_000_000, ..Overhead::default() });
        program.recorded_cpus = Some(2);
        program.findings.push(Finding::Spinning { spun_ns, ran_ns: 0, waits: 9, guessed: 0, hand_overs: 0 });
        on(&program, 2).at[0].clone()
    };
    let limit = spun(700_000_000);
    assert!(matches!(limit.kind, Kind::TooManyThreads { .. }), "{limit:?}");
    assert!(limit.share > 0.7 && limit.gain() < limit.share, "{limit:?}");
    assert!(matches!(spun(10_000_000).kind, Kind::Unexplained { .. }), "something else took it");
}

#[test]
fn what_if_takes_any_number_of_threads() {
    let program = recorded(program(&rounds(4, 800_000)), &[]);
    let search = Search::new(&program, &[], &Model::default()).expect("a program");
    let workers = search.workers().expect("workers");
    let with = |kept| search.with_fewer(&workers, kept, Cpus::count(2).expect("2"));
    let (before, after) = with(2).expect("known");
    assert!(after < before);
    let (_, one) = with(1).expect("known");
    assert!(one > after, "one CPU is idle");
    assert_eq!((with(4), with(0)), (None, None));
}
