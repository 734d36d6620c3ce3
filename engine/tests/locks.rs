//! Locks: which thread holds which, and computing on the critical path while they are held.

use engine::event::{Facts, FunctionFact, Recording, WindowEnd};
use engine::program::{Program, json};
use engine::report::{Cpus, Detail, Report, report};
use engine::time::Ticks;
use engine::timeline::build;
use engine::translation::from_timeline;
use probe_abi::{
    Context, FunctionEnter, FunctionExit, Header, Kind, Operation, OperationFlags, Record, Switch,
    SwitchFlags, SyncOperation,
};

const PID: u32 = 7;

fn cpus() -> Vec<Cpus> {
    vec![Cpus::ONE, Cpus::count(2).expect("2"), Cpus::count(4).expect("4"), Cpus::Infinite]
}

fn of(program: &str) -> Report {
    let program = json::read(program).expect("a program");
    report(&program, &cpus(), Detail::Functions)
}

/// A lock held exactly while a function is open has that function's share, at every CPU count.
#[test]
fn a_lock_held_as_long_as_a_function_has_its_share() {
    for (take, give_back) in
        [(r#"["held","m",0]"#, r#"["freed","m",900]"#), (r#"["lock","m"]"#, r#"["unlock","m"]"#)]
    {
        let thread = |name: &str, before: u32| {
            format!(
                r#"{{"name":"{name}","ops":[["exec",{before}],{take},["call","f"],["exec",700],["exec","g",200],["ret"],{give_back},["exec",300]]}}"#
            )
        };
        let text = format!(
            r#"{{"format":"longpole-program","version":1,"threads":[{},{},{}]}}"#,
            thread("A", 100),
            thread("B", 450),
            thread("C", 2000)
        );
        let report = of(&text);
        let [lock] = report.locks.as_slice() else { panic!("{:?}", report.locks) };
        assert_eq!((lock.lock.as_str(), lock.acquisitions), ("m", 3));
        let mut some = 0.0;
        for result in &report.results {
            let f = result.functions.iter().find(|row| row.function == "f").expect("f");
            assert_eq!(result.locks_held_ns, [f.tetid_ns], "{:?}", result.cpus);
            some += f.tetid_ns;
        }
        assert!(some > 0.0, "nothing was compared");
    }
}

/// Locks need not be released in the order of functions, nor at all.
#[test]
fn holds_of_locks_may_overlap_and_last_to_the_end() {
    let report = of(r#"{"format":"longpole-program","version":1,"threads":[{"name":"A","ops":[
        ["exec",10],["held","m",5],["exec",100],["held","n",0],["exec",1000],["freed","m",1100],["exec",20],
        ["call","f"],["held","m",0],["ret"],["exec",3]]}]}"#);
    let row = |name: &str| report.locks.iter().position(|lock| lock.lock == name).expect("a row");
    let (m, n) = (row("m"), row("n"));
    for result in &report.results {
        assert_eq!(result.locks_held_ns[m], 1100.0 + 3.0);
        assert_eq!(result.locks_held_ns[n], 1000.0 + 20.0 + 3.0);
    }
    let lock = &report.locks[m];
    assert_eq!((lock.acquisitions, lock.contended), (2, Some(1)));
    assert_eq!((lock.wait_ns, lock.hold_ns), (Some(5.0), Some(1100.0)));
    assert_eq!(lock.holder.as_deref(), Some("f"));
    assert_eq!(m, 0, "the largest share first");
}

#[test]
fn holds_of_locks_without_time_change_no_prediction() {
    let with = r#"{"format":"longpole-program","version":1,"threads":[{"name":"A","ops":[["exec",10],["held","m",5],["exec",7],["freed","m",7],["signal","s"],["exec",4]]},{"name":"B","ops":[["wait","s"],["exec",30]]}]}"#;
    let without = with.replace(r#"["held","m",5],"#, "").replace(r#"["freed","m",7],"#, "");
    let (with, without) = (of(with), of(&without));
    for (a, b) in with.results.iter().zip(&without.results) {
        assert_eq!((a.time_ns, a.speedup), (b.time_ns, b.speedup));
    }
}

fn header(kind: Kind, time_ns: u64, tid: u32) -> Header {
    Header { time_ns, sequence: 0, cpu: 0, kind: kind as u8, context: Context::Task as u8, tid, pid: PID }
}

fn operation(tid: u32, operation: SyncOperation, object: u64, times: (u64, u64), outcome: i32) -> Record {
    let header = Header { cpu: Header::NO_CPU, ..header(Kind::Operation, times.1, tid) };
    let (began_ns, caller) = (times.0, 0);
    Record::Operation(Operation {
        header,
        began_ns,
        object,
        second: 0,
        caller,
        operation: operation as u16,
        flags: 0,
        outcome,
    })
}

fn contended(record: Record) -> Record {
    let Record::Operation(operation) = record else { panic!("no operation") };
    Record::Operation(Operation { flags: OperationFlags::CONTENDED, ..operation })
}

/// Thread 1 runs all the time, on CPU 0.
fn recorded(operations: Vec<Record>) -> Program {
    let mut events = vec![Record::Switch(Switch {
        header: Header { tid: 0, pid: 0, ..header(Kind::Switch, 10, 0) },
        next_tid: 1,
        next_pid: PID,
        prev_state: 0,
        flags: SwitchFlags::NEXT_TRACKED,
        prev_user_sp: 0,
        prev_call: probe_abi::Call::NONE,
    })];
    let mut number = 0;
    for record in operations {
        events.push(match record {
            Record::Operation(operation) if operation.header.sequence == 0 => {
                let header = Header { sequence: number, ..operation.header };
                number += 1;
                Record::Operation(Operation { header, ..operation })
            }
            record => record,
        });
    }
    let function =
        |id: u32, name: &str| FunctionFact { id, name: name.to_owned(), ..FunctionFact::default() };
    let facts = Facts {
        functions: vec![function(1, "f")],
        end: Some(WindowEnd { end_ns: 1000, ..WindowEnd::default() }),
        ..Facts::default()
    };
    from_timeline(&build(&Recording { facts, events, ..Recording::default() }))
}

/// A lock's name, number of acquisitions, number of contended ones, and times waited and held, nanoseconds.
type Row = (String, u64, Option<u64>, Option<f64>, Option<f64>);

fn rows(program: &Program) -> Vec<Row> {
    let report = report(program, &[Cpus::Infinite], Detail::Functions);
    let mut rows: Vec<_> = report
        .locks
        .into_iter()
        .map(|lock| (lock.lock, lock.acquisitions, lock.contended, lock.wait_ns, lock.hold_ns))
        .collect();
    rows.sort_by(|a, b| a.0.cmp(&b.0));
    rows
}

#[test]
fn recorded_operations_become_holds() {
    use SyncOperation as S;
    const EBUSY: i32 = 16;
    let program = recorded(vec![
        operation(1, S::MutexLock, 0x40, (100, 110), 0),
        operation(1, S::MutexTryLock, 0x80, (120, 125), EBUSY),
        // Recursive: one hold from the first acquisition to the last release.
        operation(1, S::MutexLock, 0x40, (130, 131), 0),
        operation(1, S::MutexUnlock, 0x40, (140, 141), 0),
        operation(1, S::MutexUnlock, 0x40, (210, 215), 0),
        contended(operation(1, S::MutexLock, 0x40, (300, 350), 0)),
        operation(1, S::MutexUnlock, 0x40, (400, 410), 0),
        // An unlock by a thread that does not hold the mutex.
        operation(1, S::MutexUnlock, 0xc0, (420, 421), 1),
        operation(1, S::RwLockRead, 0x100, (500, 501), 0),
        operation(1, S::RwLockUnlock, 0x100, (541, 542), 0),
    ]);
    assert_eq!(
        rows(&program),
        [
            ("mutex 0x40".to_owned(), 2, Some(1), Some(50.0), Some(100.0 + 50.0)),
            ("rwlock 0x100".to_owned(), 1, Some(0), Some(0.0), Some(40.0)),
        ]
    );
    let sides: Vec<_> =
        program.locks.iter().map(|lock| (lock.reading.acquisitions, lock.reading.held)).collect();
    assert_eq!(sides, [(0, Ticks(0)), (1, Ticks::from_ns(40))]);
    let mut text = Vec::new();
    engine::program::json::write(&program, &mut text).expect("written");
    let again = engine::program::json::read(&String::from_utf8(text).expect("text")).expect("a program");
    // The JSON form has no numbers for objects without a lock, so only sides are compared.
    let reading = |program: &Program| program.locks.iter().map(|lock| lock.reading).collect::<Vec<_>>();
    assert_eq!(reading(&again), reading(&program));
    assert!(program.findings.iter().all(|finding| finding.kind() != "uncontended"), "{:?}", program.findings);
}

#[test]
fn a_condition_wait_releases_its_mutex_meanwhile() {
    use SyncOperation as S;
    let mut wait = operation(1, S::ConditionWait, 0x200, (200, 600), 0);
    if let Record::Operation(wait) = &mut wait {
        wait.second = 0x40;
    }
    let program = recorded(vec![
        operation(1, S::MutexLock, 0x40, (99, 100), 0),
        wait,
        operation(1, S::MutexUnlock, 0x40, (650, 651), 0),
    ]);
    assert_eq!(rows(&program), [("mutex 0x40".to_owned(), 2, Some(0), Some(0.0), Some(100.0 + 50.0))]);
}

#[test]
fn a_lock_made_anew_at_the_same_address_is_another_lock() {
    use SyncOperation as S;
    let program = recorded(vec![
        operation(1, S::MutexLock, 0x40, (100, 101), 0),
        operation(1, S::MutexUnlock, 0x40, (111, 112), 0),
        operation(1, S::MutexDestroy, 0x40, (120, 121), 0),
        operation(1, S::MutexInit, 0x40, (130, 131), 0),
        operation(1, S::MutexLock, 0x40, (200, 201), 0),
        operation(1, S::MutexUnlock, 0x40, (301, 302), 0),
    ]);
    assert_eq!(
        rows(&program),
        [
            ("mutex 0x40".to_owned(), 1, Some(0), Some(0.0), Some(10.0)),
            ("mutex 0x40 #2".to_owned(), 1, Some(0), Some(0.0), Some(100.0)),
        ]
    );
}

/// The report from one run without random choices, in place of a mean.
fn by_one_run(program: &Program, cpus: &[Cpus], detail: Detail) -> engine::report::Report {
    let model = engine::predict::Model { runs: 1, ..Default::default() };
    engine::report::report_by(program, cpus, detail, engine::attribution::Grouping::Function, &model)
}

/// The function that takes the lock is named, and the exported program gives the same report.
#[test]
fn a_program_written_and_read_again_has_the_same_locks() {
    use SyncOperation as S;
    let enter = |time| {
        let header = header(Kind::FunctionEnter, time, 1);
        Record::FunctionEnter(FunctionEnter { header, function: 1, silent: 0, stack_pointer: 900 })
    };
    let leave = |time| {
        let header = header(Kind::FunctionExit, time, 1);
        Record::FunctionExit(FunctionExit { header, function: 1, silent: 0, stack_pointer: 900 })
    };
    let program = recorded(vec![
        enter(50),
        contended(operation(1, S::MutexLock, 0x40, (100, 140), 0)),
        leave(200),
        operation(1, S::MutexUnlock, 0x40, (260, 270), 0),
    ]);
    let before = by_one_run(&program, &cpus(), Detail::Segments);
    assert_eq!(before.locks[0].holder.as_deref(), Some("f"));
    // From the end of the acquisition to the beginning of the release.
    assert_eq!(before.results[3].locks_held_ns, [260.0 - 140.0]);
    let kinds: Vec<&str> = before.findings.iter().map(|finding| finding.kind()).collect();
    assert!(kinds.is_empty(), "{kinds:?}");
    let mut text = Vec::new();
    json::write(&program, &mut text).expect("written");
    let again = json::read(std::str::from_utf8(&text).expect("text")).expect("a program");
    assert_eq!(by_one_run(&again, &cpus(), Detail::Segments), before);
}

/// A lost release would make a lock seem held to the end, so no lock of that family is known.
#[test]
fn locks_of_a_family_with_lost_operations_are_not_known() {
    use SyncOperation as S;
    let numbered = |sequence: u32, record: Record| {
        let Record::Operation(operation) = record else { panic!("no operation") };
        Record::Operation(Operation { header: Header { sequence, ..operation.header }, ..operation })
    };
    let program = recorded(vec![
        numbered(7, operation(1, S::MutexLock, 0x40, (100, 101), 0)),
        // 8, the release, is lost.
        numbered(9, operation(1, S::MutexLock, 0x40, (200, 201), 0)),
        numbered(10, operation(1, S::MutexUnlock, 0x40, (231, 232), 0)),
    ]);
    assert!(rows(&program).is_empty());
    assert_eq!(program.findings.iter().filter(|finding| finding.kind() == "operations_lost").count(), 1);
}
