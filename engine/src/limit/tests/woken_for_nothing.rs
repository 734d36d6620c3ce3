//! Wake-ups that find nothing to do.

use super::*;

/// The program of a one-second recording in which all threads that wait for a condition are woken for each task.
fn woken(for_nothing: u64, for_nothing_ns: u64) -> Program {
    let mut program = recorded(program(&alike("w", 2, 10, r#"["exec","f",10000000]"#)), &[]);
    let (waits, name) = (10_000, "condition have_work".to_owned());
    program.recorded.objects.push(RecordedObject {
        name,
        waits,
        for_nothing,
        for_nothing_ns,
        ..RecordedObject::default()
    });
    program.overhead =
        Some(Overhead { wall_ns: 1_000_000_000, target_ns: 1_500_000_000, ..Overhead::default() });
    program.recorded_cpus = Some(2);
    program
}

/// Wake-ups for nothing, as of 32 workers by `notify_all`, explain the time that a prediction lacks.
#[test]
fn wake_ups_for_nothing_are_the_limit_that_a_prediction_lacks() {
    let limits = on(&woken(9_000, 800_000_000), 2);
    let limit = &limits.at[0];
    let LimitKind::WokenForNothing { object, wakings: 10_000, for_nothing: 9_000 } = &limit.kind else {
        panic!("{limit:?}")
    };
    assert_eq!(object, "condition have_work");
    assert!((0.85..0.95).contains(&limit.share) && limit.gain() == 0.0, "{limit:?}");
    let fix = limits.fixes.first().expect("a change");
    assert!(matches!(fix.edit, Edit::WakeOne(0)) && fix.edit.is_at_best(), "{fix:?}");
}

#[test]
fn wake_ups_that_find_work_or_take_no_time_are_no_limit() {
    let told = |program: &Program| {
        let limits = on(program, 2);
        let found = limits
            .at
            .iter()
            .flat_map(|limit| limit.others.iter().map(|row| row.kind.clone()).chain([limit.kind.clone()]));
        found.filter(|kind| matches!(kind, LimitKind::WokenForNothing { .. })).count()
    };
    assert_eq!(told(&woken(9_000, 800_000_000)), 1);
    assert_eq!(told(&woken(3_000, 800_000_000)), 0, "most find something");
    assert_eq!(told(&woken(9_000, 20_000_000)), 0, "1 % of the CPUs' time");
}
