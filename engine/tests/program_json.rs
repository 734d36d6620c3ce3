//! The program's JSON form: writing and reading, and errors for text that is no program.

use engine::program::{EdgeId, Function, Operation, Program, Thread, json};
use engine::report::{Cpus, Detail, Finding, Trust, report};
use engine::synth::{Lengths, large_program, random_program};
use engine::time::Ticks;
use proptest::prelude::*;

fn written(program: &Program) -> String {
    let mut bytes = Vec::new();
    json::write(program, &mut bytes).expect("a valid program");
    String::from_utf8(bytes).expect("UTF-8")
}

const EVERY_OPERATION: &str = r#"{"format":"longpole-program","version":1,
"trust":{"events":7,"wakes":6,"lost":5,"unmatched":4,"unknown_ns":3,"censored":2},
"findings":[{"kind":"loss","text":"5 records are missing"}],
"functions":[{"name":"f","location":"x.c:3"},
{"name":"g","folded":true}],
"threads":[
{"name":"T1","ops":[
["exec","f",1000],
["exec",250.5],
["call","g"],
["exec",0.001],
["ret"],
["signal","X"],
["wait","X"],
["lock","m"],
["cond_wait","c","m"],
["unlock","m"],
["rdlock","r"],
["rwunlock","r"],
["wrlock","r"],
["rwunlock","r"],
["spin_lock","s"],
["spin_unlock","s"],
["barrier","b",4],
["cond_signal","c"],
["cond_broadcast","c"],
["sem_init","s",0],
["sem_wait","s"],
["sem_post","s"],
["once","o",100],
["create","T2"],
["join","T2"],
["io",1000,"disk"],
["sleep",1000.25],
["sleep_until",5000],
["sleep_next",1000],
["release","e"],
["await","e"]]},
{"name":"T2","ops":[]}]}
"#;

#[test]
fn every_operation_is_read_and_written_as_the_format_says() {
    let program = json::read(EVERY_OPERATION).expect("a program");
    let kinds: std::collections::HashSet<_> =
        program.threads[0].operations.iter().map(std::mem::discriminant).collect();
    assert_eq!(kinds.len(), 29, "all operations that there are but held and freed");
    assert_eq!(program.threads[0].operations[1], Operation::Exec(Ticks(250_500)));
    assert_eq!(program.threads[0].operations[3], Operation::Exec(Ticks(1)));
    assert_eq!(program.trust.lost, Some(5));
    assert_eq!(program.findings[0].kind(), "loss");
    assert_eq!(program.functions[0].location.as_deref(), Some("x.c:3"));
    assert!(program.functions[1].probes_removed);
    assert_eq!(written(&program), EVERY_OPERATION);
}

#[test]
fn unknown_fields_other_orders_and_exponents_are_read() {
    let text = r#" {"threads":[{"cpu":[[[1]]],"ops":[["create","T2"],["exec",1.5e3],["exec",-0.0]],"name":"T1"},
        {"name":"T2","ops":[["exec","\u0066",2]]}],"version":1,"made_by":{"a":[1,{"b":null}]},"format":"longpole-program"} "#;
    let program = json::read(text).expect("a program");
    assert_eq!(program.threads[0].operations[1], Operation::Exec(Ticks::from_ns(1500)));
    assert_eq!(program.threads[0].operations[2], Operation::Exec(Ticks(0)));
    assert_eq!(program.functions[0].name, "f");
}

#[test]
fn edges_without_a_name_get_one_that_is_unlike_all_others() {
    let operations =
        (0..4).flat_map(|edge| [Operation::Release(EdgeId(edge)), Operation::Await(EdgeId(edge))]);
    let program = Program {
        edges: vec!["e3".to_owned()],
        threads: vec![Thread { name: "T".to_owned(), operations: operations.collect(), ..Thread::default() }],
        ..Program::default()
    };
    let back = json::read(&written(&program)).expect("a program");
    assert_eq!(back.edges, ["e3", "e_1", "e_2", "e_3"]);
    assert_eq!(back.threads, program.threads);
}

#[test]
fn writing_a_program_that_the_format_cannot_hold_is_an_error() {
    let thread = |name: &str, operations| Thread { name: name.to_owned(), operations, ..Thread::default() };
    let twice = Program { threads: vec![thread("T", vec![]), thread("T", vec![])], ..Program::default() };
    let error = json::write(&twice, std::io::sink()).expect_err("two threads with one name");
    assert_eq!(error.to_string(), "two threads of the program are called \"T\"");
    let invalid = Program { threads: vec![thread("T", vec![Operation::Return])], ..Program::default() };
    assert!(json::write(&invalid, std::io::sink()).is_err());
}

/// The error for a program with these threads, or for this text if it starts with `!`.
fn complaint(threads: &str) -> String {
    let text = match threads.strip_prefix('!') {
        Some(text) => text.to_owned(),
        None => format!(r#"{{"format":"longpole-program","version":1,"threads":[{threads}]}}"#),
    };
    let error = json::read(&text).expect_err(threads);
    let line = error.to_string();
    assert!(!error.hint().is_empty());
    assert!(!line.chars().any(char::is_control) && line.chars().count() < 400, "{line:?}");
    line
}

fn operations(list: &str) -> String {
    complaint(&format!(r#"{{"name":"T1","ops":[["exec",1],{list}]}}"#))
}

#[test]
fn text_that_is_no_program_is_refused_with_the_reason() {
    for (text, message) in [
        ("!", "this is not a longpole program: it is empty"),
        ("! \n", "this is not a longpole program: it is empty"),
        ("!{}", "this is not a longpole program: it has no \"format\""),
        ("!{\"a\":1}", "this is not a longpole program: it has no \"format\""),
        ("!{\"format\":\"x\\u001b[2J\"}", "this is not a longpole program: its format is \"x\\u{1b}[2J\""),
        ("!{\"format\":\"longpole-program\"}", "this is not a longpole program: it has no \"version\""),
        (
            "!{\"format\":\"longpole-program\",\"version\":1}",
            "this is not a longpole program: it has no \"threads\"",
        ),
        (
            "!{\"format\":\"longpole-program\",\"version\":2,\"threads\":[[]]}",
            "version 2 of the program format is not known, only 1",
        ),
    ] {
        assert_eq!(complaint(text), message);
    }
    let starts = |text: &str, start: &str| {
        let message = complaint(text);
        assert!(message.starts_with(start), "{message}");
    };
    starts("![1]", "this is not a longpole program: invalid type: sequence");
    starts(
        "!{\"format\":\"longpole-program\",\"version\":\"1\"}",
        "this is not a longpole program: invalid type",
    );
    starts("!{\"format\":\"longpole-program\",\"version\":1,\"threads\":[", "the program is cut off");
    starts(
        "!{\"format\":\"longpole-program\",\"version\":1,\"threads\":[]} x",
        "the program is not valid JSON",
    );
    starts("!\u{0}\u{1}", "the program is not valid JSON");
    starts(&format!("!{{\"x\":{}", "[".repeat(1_000_000)), "the program is");
    starts(&format!("!{}", "[".repeat(1_000_000)), "this is not a longpole program");
    starts(&format!("![{}", "{\"a\":".repeat(1_000_000)), "this is not a longpole program");
}

#[test]
fn threads_without_a_name_or_operations_are_refused_with_the_reason() {
    assert_eq!(complaint(r#"{"ops":[]}"#), "thread number 0 (from 0) has no \"name\"");
    assert_eq!(complaint(r#"{"name":"T"}"#), "thread number 0 (from 0) has no \"ops\"");
    assert_eq!(complaint(r#"{"name":"T","ops":[],"ops":[]}"#), "thread number 0 has \"ops\" twice");
    assert_eq!(complaint(r#"{"name":"T","ops":[]},{"name":"T","ops":[]}"#), "two threads are called \"T\"");
}

#[test]
fn invalid_operations_are_refused_with_their_place_and_reason() {
    let starts = |list: &str, start: &str| {
        let message = operations(list);
        let expected = format!("thread \"T1\", operation 1: {start}");
        assert!(message.starts_with(&expected), "{message}\nand not\n{expected}");
    };
    starts(r#"["ret"]"#, "\"ret\" without a \"call\" before it");
    starts(r#"["exec",-5]"#, "a negative length of -5 ns");
    starts(r#"["exec",-0.5]"#, "a negative length of -0.5 ns");
    starts(r#"["exec","f",1e300]"#, "a length of 1e300 ns is more than");
    starts(r#"["exec",-1e300]"#, "a negative length of -1e300 ns");
    starts(r#"["exec",18446744073709551615]"#, "a length of 18446744073709551615 ns is more than");
    starts(r#"["exec",9223372036854775]"#, "the lengths up to here add up to more than");
    starts(r#"["exec",1e999]"#, "number out of range");
    starts(r#"["exec",NaN]"#, "expected");
    starts(r#"["exec","f"]"#, "fewer values than the operation needs");
    starts(r#"["exec","f","1"]"#, "invalid type: string \"1\", expected a length in nanoseconds");
    starts(r#"["exec",1,2]"#, "more values than the operation has");
    starts(r#"["wait"]"#, "fewer values than the operation needs");
    starts(r#"["wait","X",["#, "");
    starts(r#"["fork","X"]"#, "there is no operation \"fork\"");
    starts(r#"[]"#, "an operation without a name");
    starts(r#"[1]"#, "invalid type: integer `1`, expected the name of an operation");
    starts(r#""exec""#, "invalid type: string \"exec\", expected an operation such as");
    starts(r#"["barrier","b",0]"#, "a barrier for 0 threads");
    starts(r#"["barrier","b",4294967296]"#, "invalid value");
    starts(r#"["sem_init","s",-1]"#, "invalid value");
    starts(r#"["create","T9"]"#, "there is no thread \"T9\"");
    starts(r#"["join","T9"]"#, "there is no thread \"T9\"");
    starts(r#"["unlock","m"]"#, "\"m\" is unlocked or waited under, but the thread does not hold it");
    starts(r#"["rwunlock","m"]"#, "\"m\" is unlocked");
    starts(r#"["spin_unlock","m"]"#, "\"m\" is unlocked");
    starts(r#"["cond_wait","c","m"]"#, "\"m\" is unlocked");
    let twice =
        r#"{"name":"A","ops":[["create","B"]]},{"name":"B","ops":[]},{"name":"C","ops":[["create","B"]]}"#;
    assert_eq!(complaint(twice), "thread \"C\", operation 0: thread \"B\" is created a second time");
    assert_eq!(
        complaint(r#"{"ops":[["ret",1]],"name":"T"}"#).split(" at line").next(),
        Some("thread \"number 0\", operation 0: more values than the operation has")
    );
}

#[test]
fn a_program_of_a_million_threads_is_read_and_analysed() {
    let threads: Vec<String> = (0..1_000_000)
        .map(|thread| format!(r#"{{"name":"{thread}","ops":[["exec",1],["lock","m"]]}}"#))
        .collect();
    let text = format!(r#"{{"format":"longpole-program","version":1,"threads":[{}]}}"#, threads.join(","));
    let program = json::read(&text).expect("a program");
    let report = report(&program, &[Cpus::ONE], Detail::Functions);
    assert_eq!(report.results[0].time_ns, 1_000_000.0);
    assert_eq!(report.findings[0].deadlock().map(|stuck| stuck.more), Some(999_991));
}

/// Compares reports: reading renumbers everything in order of appearance.
fn same_report(a: &Program, b: &Program) {
    let cpus = Cpus::parse_list("1,2,3,inf").expect("counts");
    assert_eq!(report(a, &cpus, Detail::Segments), report(b, &cpus, Detail::Segments));
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof!["[a-z]{1,6}", any::<String>(), "e[0-9]{1,2}", "[\\\\\"\u{0}-\u{20}]{0,4}"]
}

proptest! {
    #[test]
    fn a_program_written_and_read_again_has_the_same_report(
        seed in any::<u64>(),
        tied in any::<bool>(),
        names in prop::collection::hash_set(name(), 30),
        fractions in prop::collection::vec(0..1u64 << 50, 8),
        trust in any::<[u8; 6]>(),
        located in any::<u8>(),
    ) {
        let mut program = random_program(seed, if tied { Lengths::Tied } else { Lengths::Spread });
        let mut names = names.into_iter();
        let mut next = || names.next().expect("enough names");
        for function in &mut program.functions {
            *function = Function { name: next(), ..Function::default() };
        }
        program.objects = program.objects.iter().map(|_| next()).collect();
        for thread in &mut program.threads {
            thread.name = next();
        }
        program.edges = vec![next(), next()];
        if located & 1 != 0 {
            program.functions[2].location = Some("a \"b\".c:1".to_owned());
            program.functions[3].probes_removed = true;
        }
        program.trust = Trust {
            events: u64::from(trust[0]), wakes: u64::from(trust[1]), lost: (trust[2] > 0).then(|| u64::from(trust[2])),
            unmatched: u64::from(trust[3]), unknown_ns: u64::from(trust[4]), truncated_waits: u64::from(trust[5]), spurious: u64::from(trust[0]),
        };
        if located & 2 != 0 {
            program.findings.push(Finding::Other { kind: "k".to_owned(), text: "t\n\u{1b}".to_owned() });
            program.recorded_cpus = Some(u32::from(trust[0]));
        }
        for (operation, fraction) in program.threads[0].operations.iter_mut().zip(fractions) {
            if let Operation::Exec(length) = operation {
                *length = Ticks(fraction);
            }
        }
        let read = json::read(&written(&program)).expect("a program");
        same_report(&program, &read);
        prop_assert_eq!(&json::read(&written(&read)).expect("a program"), &read);
    }

    #[test]
    fn any_text_is_read_as_a_program_or_refused(text in any::<String>()) {
        let _ = json::read(&text);
    }

    #[test]
    fn any_bytes_put_into_a_program_are_read_or_refused(
        seed in any::<u64>(),
        places in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
    ) {
        let mut bytes = written(&random_program(seed, Lengths::Tied)).into_bytes();
        for (place, byte) in places {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        if let Ok(program) = json::read(&String::from_utf8_lossy(&bytes)) {
            report(&program, &[Cpus::ONE, Cpus::Infinite], Detail::Segments);
        }
    }

    #[test]
    fn any_list_of_known_words_is_read_and_analysed_or_refused(words in prop::collection::vec((0..28usize, 0..3u8, 0..3u8), 0..40)) {
        const KINDS: [&str; 28] = ["exec", "call", "ret", "signal", "wait", "lock", "unlock", "rdlock", "wrlock",
            "rwunlock", "spin_lock", "spin_unlock", "barrier", "cond_wait", "cond_signal", "cond_broadcast", "sem_init",
            "sem_wait", "sem_post", "once", "create", "join", "io", "sleep", "sleep_until",
            "sleep_next", "release", "await"];
        let mut lists = [Vec::new(), Vec::new(), Vec::new()];
        for (kind, name, thread) in words {
            let kind = KINDS[kind];
            let operation = match kind {
                "ret" => format!(r#"["{kind}"]"#),
                "sleep" | "sleep_until" | "sleep_next" => format!(r#"["{kind}",{name}]"#),
                "io" => format!(r#"["{kind}",1,"T{name}"]"#),
                "exec" | "barrier" | "once" | "sem_init" => format!(r#"["{kind}","T{name}",{}]"#, u8::from(kind == "barrier") + name),
                "cond_wait" => format!(r#"["{kind}","T1","T{name}"]"#),
                _ => format!(r#"["{kind}","T{name}"]"#),
            };
            lists[thread as usize].push(operation);
        }
        let threads: Vec<String> = lists.iter().enumerate()
            .map(|(thread, list)| format!(r#"{{"name":"T{thread}","ops":[{}]}}"#, list.join(","))).collect();
        let text = format!(r#"{{"format":"longpole-program","version":1,"threads":[{}]}}"#, threads.join(","));
        if let Ok(program) = json::read(&text) {
            report(&program, &[Cpus::ONE, Cpus::Infinite], Detail::Segments);
        }
    }
}

#[test]
fn a_program_built_by_hand_with_an_invalid_operation_is_a_finding() {
    use engine::program::{FunctionRef, ObjectId, ThreadId};
    let any = u32::MAX;
    for operation in [
        Operation::Return,
        Operation::Call(FunctionRef(any)),
        Operation::ExecIn(FunctionRef(0), Ticks(1)),
        Operation::Exec(Ticks(u64::MAX)),
        Operation::Lock(ObjectId(any)),
        Operation::CondWait(ObjectId(0), ObjectId(any)),
        Operation::Create(ThreadId(any)),
        Operation::Join(ThreadId(1)),
        Operation::Release(EdgeId(any)),
        Operation::Await(EdgeId(5)),
    ] {
        let thread = Thread { name: "T".to_owned(), operations: vec![operation], ..Thread::default() };
        let program = Program { objects: vec!["o".to_owned()], threads: vec![thread], ..Program::default() };
        let report = report(&program, &[Cpus::ONE], Detail::Segments);
        assert_eq!(report.findings.len(), 1, "{operation:?}");
        assert_eq!(report.findings[0].kind(), "invalid_program");
    }
}

#[test]
fn contradictions_of_a_recorded_program_are_passed_over_with_a_finding() {
    use engine::program::{ObjectId, ThreadId};
    let steps = vec![
        Operation::Unlock(ObjectId(0)),
        Operation::SpinUnlock(ObjectId(0)),
        Operation::ReadWriteUnlock(ObjectId(0)),
        Operation::Create(ThreadId(1)),
        Operation::Create(ThreadId(1)),
        Operation::Release(EdgeId(0)),
        Operation::Release(EdgeId(0)),
        Operation::Exec(Ticks(1000)),
    ];
    let threads = vec![
        Thread { name: "A".to_owned(), operations: steps, ..Thread::default() },
        Thread { name: "B".to_owned(), operations: vec![], ..Thread::default() },
    ];
    let program = Program { objects: vec!["m".to_owned()], threads, ..Program::default() };
    let report = report(&program, &[Cpus::ONE], Detail::Functions);
    assert_eq!(report.results[0].time_ns, 1.0);
    let (thread, object, created, edge) = ("A".to_owned(), "m".to_owned(), "B".to_owned(), "e0".to_owned());
    assert_eq!(
        report.findings,
        [
            Finding::UnlockNotHeld { thread: thread.clone(), operation: 0, object, more: 2 },
            Finding::CreatedTwice { thread: thread.clone(), operation: 4, created, more: 0 },
            Finding::ReleasedTwice { thread, operation: 6, edge, more: 0 },
        ]
    );
}

#[test]
fn a_large_program_written_and_read_again_has_the_same_report() {
    let program = large_program(100_000, 8, 3);
    let read = json::read(&written(&program)).expect("a program");
    same_report(&program, &read);
}
