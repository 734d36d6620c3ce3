//! Recorded synchronization operations become the program's operations again, whatever contention the recorded machine had:
//! programs executed on few CPUs and recorded must come back unchanged.

mod cases;
mod conditions;
mod lossy;
mod nonsense;
mod programs;
mod script;

use engine::program::{ObjectId, Operation, Program};
use engine::schedule::Simulation;
use engine::synth::{Execution, Generated, generate};
use engine::timeline::build;
use engine::translation::from_timeline;
use probe_abi::{Record, SyncOperation};
use programs::{Kinds, NAMES};
use proptest::prelude::*;

/// The program's threads with objects numbered as in the executed program, by their addresses.
fn numbered_as_executed(program: &Program) -> Vec<(String, Vec<Operation>)> {
    let number = |object: ObjectId| {
        let name = &program.objects[object.0 as usize];
        let address = name.split("0x").nth(1).and_then(|hex| u64::from_str_radix(hex, 16).ok());
        ObjectId(address.map_or(NAMES.len() as u32, |address| ((address - 0x5500_0000_0000) / 64) as u32))
    };
    let threads = program.threads.iter().map(|thread| {
        let operations = thread.operations.iter().map(|operation| match *operation {
            Operation::Lock(object) => Operation::Lock(number(object)),
            Operation::Unlock(object) => Operation::Unlock(number(object)),
            Operation::ReadLock(object) => Operation::ReadLock(number(object)),
            Operation::WriteLock(object) => Operation::WriteLock(number(object)),
            Operation::ReadWriteUnlock(object) => Operation::ReadWriteUnlock(number(object)),
            Operation::SpinLock(object) => Operation::SpinLock(number(object)),
            Operation::SpinUnlock(object) => Operation::SpinUnlock(number(object)),
            Operation::Barrier(object, count) => Operation::Barrier(number(object), count),
            Operation::SemInit(object, count) => Operation::SemInit(number(object), count),
            Operation::SemWait(object) => Operation::SemWait(number(object)),
            Operation::SemPost(object) => Operation::SemPost(number(object)),
            Operation::Once(object, length) => Operation::Once(number(object), length),
            Operation::Io(object, length) => Operation::Io(number(object), length),
            Operation::Held(..) | Operation::Freed(..) => panic!("{operation:?} is not decided anew"),
            other => other,
        });
        (thread.name.clone(), operations.collect())
    });
    threads.collect()
}

fn threads(program: &Program) -> Vec<(String, Vec<Operation>)> {
    program.threads.iter().map(|thread| (thread.name.clone(), thread.operations.clone())).collect()
}

fn execution(seed: u64, cpus: u16) -> Execution {
    Execution {
        cpus,
        slice_ns: 1_000 * (1 + seed % 9),
        latency_ns: 64 * (1 + seed % 30),
        rings: 1 + seed as usize % 3,
        seed,
        noise: seed.is_multiple_of(2),
        operations: true,
        ..Execution::default()
    }
}

fn translated(generated: &Generated) -> Program {
    from_timeline(&build(&generated.recording()))
}

#[track_caller]
fn assert_comes_back(program: &Program, execution: &Execution) -> Program {
    let generated = generate(program, execution).expect("supported");
    let translated = translated(&generated);
    // A generated sleep is a futex wait without a recorded operation.
    let told = translated.findings.iter().filter(|finding| finding.kind() != "uncontended");
    let findings: Vec<_> = told.collect();
    let (got, wanted) = (numbered_as_executed(&translated), threads(&generated.expected));
    for (got, wanted) in got.iter().zip(&wanted) {
        assert_eq!(got, wanted, "{findings:?}");
    }
    assert_eq!(got.len(), wanted.len());
    assert!(findings.is_empty(), "{findings:?}");
    translated
}

/// Conditions for which threads waited in the recording.
fn awaited(generated: &Generated) -> Vec<ObjectId> {
    let operations = generated.rings.iter().flatten().filter_map(|record| match record {
        Record::Operation(operation) if operation.operation == SyncOperation::ConditionWait as u16 => {
            Some(ObjectId(((operation.object - 0x5500_0000_0000) / 64) as u32))
        }
        _ => None,
    });
    operations.collect()
}

/// Merges computations that have no operation between them.
fn merged((name, operations): &(String, Vec<Operation>)) -> (String, Vec<Operation>) {
    let mut out: Vec<Operation> = Vec::new();
    for operation in operations {
        match (out.last_mut(), operation) {
            (Some(Operation::Exec(sum)), Operation::Exec(length)) => sum.0 += length.0,
            _ => out.push(*operation),
        }
    }
    (name.clone(), out)
}

fn length_ns(program: &Program) -> u64 {
    let schedule = Simulation::new(program).expect("a valid program").finish();
    assert!(schedule.findings.is_empty(), "{:?}", schedule.findings);
    schedule.length.0 / 1_000
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Every operation is restored in its place, on any recorded machine.
    #[test]
    fn programs_with_locks_come_back_from_any_recorded_machine(seed in any::<u64>(), cpus in 1u16..5) {
        let program = programs::program(seed, &Kinds { locks: true, waits: true });
        assert_comes_back(&program, &execution(seed, cpus));
    }

    /// Bounded buffers made of a mutex and two condition variables come back with their meaning and size, except conditions
    /// for which no thread waited in the recording.
    #[test]
    fn queues_of_condition_variables_come_back_with_their_size(seed in any::<u64>(), cpus in 1u16..5) {
        let program = programs::pipeline(seed);
        let execution = Execution { hand_made: true, ..execution(seed, cpus) };
        let generated = generate(&program, &execution).expect("supported");
        let awaited = awaited(&generated);
        let translated = translated(&generated);
        prop_assert!(translated.findings.iter().all(|finding| finding.kind() == "never_awaited"), "{:?}", translated.findings);
        let known = |operation: &Operation| match operation {
            Operation::SemWait(object) | Operation::SemPost(object) | Operation::SemInit(object, _) => awaited.contains(object),
            _ => true,
        };
        let mut got = numbered_as_executed(&translated);
        let mut wanted = threads(&generated.expected);
        for (_, operations) in got.iter_mut().chain(&mut wanted) {
            let first = operations.iter().take_while(|operation| matches!(operation, Operation::SemInit(..))).count();
            operations[..first].sort_by_key(|operation| format!("{operation:?}"));
            operations.retain(|operation| known(operation));
        }
        for (got, wanted) in got.iter().zip(&wanted) {
            prop_assert_eq!(merged(got), merged(wanted));
        }
    }

    /// Where the order of arrival has no effect, the time on unlimited processors is the executed program's, plus 64 ns for
    /// each operation.
    #[test]
    fn restored_programs_with_locks_take_the_executed_program_s_time(seed in any::<u64>(), cpus in 1u16..5) {
        let program = programs::program(seed, &Kinds { locks: false, waits: true });
        let translated = assert_comes_back(&program, &execution(seed, cpus));
        let operations: usize = program.threads.iter().map(|thread| thread.operations.len()).sum();
        let (before, after) = (length_ns(&program), length_ns(&translated));
        prop_assert!(before <= after && after <= before + 64 * operations as u64, "{before} {after}");
    }
}
