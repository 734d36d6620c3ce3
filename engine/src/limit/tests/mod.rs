//! Programs with known answers.

mod changes;
mod connections;
mod cpu_costs;
mod goroutines;
mod idle;
mod kinds;
mod ledger;
mod not_recorded;
mod permits;
mod polling;
mod pools;
mod sleepers;
mod small_tasks;
mod starved_writers;
mod threads;
mod too_many_threads;
mod turns;
mod woken_for_nothing;

use super::{Fix, LimitKind, Limits, Search, WORTH, limits};
use crate::cpus::Cpus;
use crate::event::{OperationsTried, Overhead};
use crate::experiment::Edit;
use crate::finding::Finding;
use crate::predict::Model;
use crate::program::{
    Function, FunctionRef, Place, PlaceId, Program, PutBackUses, Recorded, RecordedObject, RecordedWait,
    Sample, Share, json,
};

fn program(threads: &str) -> Program {
    json::read(&format!("{{\"format\":\"longpole-program\",\"version\":1,\"threads\":[{threads}]}}"))
        .expect("a program")
}

/// JSON of `count` threads of one kind, which repeat `operations` `rounds` times.
fn alike(name: &str, count: usize, rounds: usize, operations: &str) -> String {
    let operations = vec![operations; rounds].join(",");
    let thread = |number| format!("{{\"name\":\"{name}{number}\",\"ops\":[{operations}]}}");
    (0..count).map(thread).collect::<Vec<_>>().join(",")
}

fn on(program: &Program, cpus: u32) -> Limits {
    limits(program, &[Cpus::count(cpus).expect("a count")], &Model::default())
}

fn kind(program: &Program, cpus: u32) -> LimitKind {
    on(program, cpus).at.first().expect("a limit").kind.clone()
}

const HOT: &str = r#"["exec","parse",40],["lock","m"],["exec","hash",60],["exec","store",2],["unlock","m"]"#;

/// The program with a recording: its length, and waits of threads, each kind 2 s long.
fn recorded(program: Program, waits: &[(&str, bool, &str)]) -> Program {
    let wait = |(name, idle, by): &(&str, bool, &str)| RecordedWait {
        name: (*name).into(),
        idle: *idle,
        wait_ns: 2_000_000_000,
        ended_by: vec![Share { name: (*by).into(), count: 1 }],
        ..RecordedWait::default()
    };
    let recorded = Recorded { waits: waits.iter().map(wait).collect(), ..Recorded::default() };
    let overhead = Some(Overhead { wall_ns: 2_000_000_000, ..Overhead::default() });
    Program { recorded, overhead, machine: Some(crate::program::MachineFacts::default()), ..program }
}

/// A producer and a consumer that takes four times as long.
fn pipeline() -> Program {
    let producer = alike("p", 1, 100, r#"["sem_wait","room"],["exec","produce",10],["sem_post","items"]"#);
    let consumer = alike("c", 1, 100, r#"["sem_wait","items"],["exec","consume",40],["sem_post","room"]"#);
    let room = r#"{"name":"i","ops":[["sem_init","room",4],["sem_init","items",0]]}"#;
    program(&format!("{room},{producer},{consumer}"))
}
