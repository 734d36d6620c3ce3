//! One program with every operation is recorded by the library, by probes from its start, and by probes after
//! attaching.

use super::support::{Names, OPERATIONS, Recorded, calls, program};
use longpole_tests::{skip_unless_built, skip_unless_live};
use probe_abi::{OperationFlags, Record, SyncOperation};
use std::collections::BTreeMap;

/// Checks that two recordings are equal, thread by thread, and shows the first difference.
fn check_same(one: &[Vec<String>], other: &[Vec<String>], what: &str) {
    for (number, (one, other)) in one.iter().zip(other).enumerate() {
        let differs = one.iter().zip(other).position(|(a, b)| a != b).unwrap_or(one.len().min(other.len()));
        let around = |list: &[String]| {
            list.iter().skip(differs.saturating_sub(2)).take(5).cloned().collect::<Vec<_>>()
        };
        assert!(
            one == other,
            "{what}: thread {number}, call {differs} of {} and {}: {:#?} and {:#?}",
            one.len(),
            other.len(),
            around(one),
            around(other)
        );
    }
    assert_eq!(one.len(), other.len(), "{what}: threads");
}

fn counts(lists: &[Vec<String>]) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for call in lists.iter().flatten() {
        let operation = call.split(": ").nth(1).unwrap_or_default();
        let words: Vec<&str> = operation.split(' ').take(2).collect();
        *counts.entry(words.join(" ")).or_default() += 1;
    }
    counts
}

/// The flags of all operations of a kind, sorted.
fn flags(recorded: &Recorded, kind: SyncOperation) -> Vec<u16> {
    let mut flags: Vec<u16> = recorded
        .recording
        .events
        .iter()
        .filter_map(|event| match event {
            Record::Operation(operation) if operation.operation == kind as u16 => Some(operation.flags),
            _ => None,
        })
        .collect();
    flags.sort_unstable();
    flags
}

fn check_probes(recorded: &Recorded, library: &str) {
    assert!(
        recorded.ended.stderr.contains(&format!("recorded by probes on the functions of {library}")),
        "{}",
        recorded.ended.stderr
    );
}

#[test]
fn probes_and_the_preloaded_library_record_the_same_operations() {
    let program = skip_unless_live!(program(OPERATIONS, "cc", &["-no-pie"]));
    let names = Names::of(&program.path);
    let probed = program.launched(&["--interpose", "never"], &[]);
    check_probes(&probed, "libc.so.6");
    let by_probes = calls(&probed, &names);
    let attached = program.attached(&[]);
    check_probes(&attached, "libc.so.6");
    check_same(&by_probes, &calls(&attached, &names), "from the start and attached");

    let counts = counts(&by_probes);
    for (operation, expected) in [
        ("mutex init", 3 + 1),
        ("mutex trylock", 1 + 4 + 2),
        ("mutex timedlock", 13 + 7 + 1),
        ("condition timedwait", 17 + 5 + 2),
        ("condition wait", 1),
        ("condition signal", 19 + 1 + 4),
        ("condition broadcast", 23 + 6),
        ("rwlock rdlock", 31),
        ("rwlock timedrdlock", 41 + 3),
        ("rwlock timedwrlock", 2 + 3),
        ("barrier wait", 2 * 29),
        ("spin lock", 43),
        ("semaphore trywait", 47),
        ("semaphore timedwait", 3 + 2),
        ("semaphore post", 53 + 1 + 1),
        ("semaphore open", 2),
        ("once once.", 0),
        ("thread create", 1 + 1 + 1 + 22 + 2),
        ("thread exit", 10 + 2),
    ] {
        assert_eq!(counts.get(operation).copied().unwrap_or(0), expected, "{operation} in {counts:?}");
    }
    let ran = flags(&probed, SyncOperation::Once).iter().filter(|&&f| f & OperationFlags::RAN != 0).count();
    assert!(ran >= 8, "{ran} calls of `once` ran an initialization");

    let inside = program.launched(&["--interpose", "always"], &[]);
    check_same(&calls(&inside, &names), &by_probes, "from inside and by probes");
    for kind in [
        SyncOperation::MutexInit,
        SyncOperation::MutexTryLock,
        SyncOperation::MutexTimedLock,
        SyncOperation::Once,
    ] {
        assert_eq!(flags(&inside, kind), flags(&probed, kind), "{}", kind.name());
    }
    // The operations that the program's libraries do among themselves must be the same, too.
    let all = |recorded: &Recorded| {
        recorded.recording.events.iter().filter(|event| matches!(event, Record::Operation(_))).count()
    };
    assert_eq!(all(&inside), all(&probed));
}

#[test]
fn a_static_program_has_the_same_operations_as_a_dynamic_one() {
    let dynamic = skip_unless_live!(program(OPERATIONS, "cc", &["-no-pie"]));
    let fixed = skip_unless_built!(program(OPERATIONS, "cc", &["-static", "-no-pie"]));
    let expected = calls(&dynamic.launched(&["--interpose", "never"], &[]), &Names::of(&dynamic.path));
    let names = Names::of(&fixed.path);
    let launched = fixed.launched(&[], &[]);
    check_probes(&launched, "program (the program is statically linked");
    check_same(&expected, &only_of_the_workload(calls(&launched, &names), &expected), "dynamic and static");
    let attached = fixed.attached(&[]);
    check_same(
        &expected,
        &only_of_the_workload(calls(&attached, &names), &expected),
        "dynamic and attached static",
    );
}

/// Removes calls that functions of libc make. In a static program, these functions have names, too.
fn only_of_the_workload(lists: Vec<Vec<String>>, expected: &[Vec<String>]) -> Vec<Vec<String>> {
    let callers: std::collections::BTreeSet<&str> =
        expected.iter().flatten().filter_map(|call| call.split(": ").next()).collect();
    let ours = |call: &String| call.split(": ").next().is_some_and(|caller| callers.contains(caller));
    lists.into_iter().map(|list| list.into_iter().filter(ours).collect()).collect()
}

#[test]
fn musl_programs_have_the_same_operations_dynamic_and_static() {
    let dynamic = skip_unless_live!(program(OPERATIONS, "musl-gcc", &["-no-pie"]));
    let fixed = skip_unless_built!(program(OPERATIONS, "musl-gcc", &["-static"]));
    let names = Names::of(&dynamic.path);
    let probed = dynamic.launched(&["--interpose", "never"], &[]);
    let by_probes = calls(&probed, &names);
    check_same(&by_probes, &calls(&dynamic.attached(&[]), &names), "from the start and attached");
    let static_calls =
        only_of_the_workload(calls(&fixed.launched(&[], &[]), &Names::of(&fixed.path)), &by_probes);
    check_same(&by_probes, &static_calls, "dynamic and static");
    let inside = dynamic.launched(&["--interpose", "always"], &[]);
    check_same(&calls(&inside, &names), &by_probes, "from inside and by probes");
}
