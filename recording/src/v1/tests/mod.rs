//! Tests with whole files: the reader returns what was written, and a prefix of a cut or damaged file.

mod damage;
mod generations;
mod hostile;
mod killed;
mod limits;
mod outline;
mod ring;
mod writing;

use super::Writer;
use crate::{ClockAnchor, Meta, SessionError, SessionInfo, read_from};
use engine::event::{
    AddressFact, AwaitedFact, CallGraph, Facts, FunctionFact, GapReason, GoroutineAct, GoroutineFact,
    GoroutineStart, HitCost, HitCosts, KernelLockWaits, KernelLocks, LeftOut, LossCounts, MappingFact, Note,
    NoteKind, OpenRequest, OtherProgram, OtherPrograms, Overhead, PendingOperation, ProcessFact, Recording,
    RequestSums, Requests, SampleCounts, SamplingFact, ThreadFact, ThreadState, WindowEnd,
};
use probe_abi::{Kind, Record};
use std::io::Cursor;

fn others() -> OtherPrograms {
    let program = OtherProgram { name: "wrk".into(), processes: 1, cpu_ns: 3_600_000_000 };
    OtherPrograms {
        measured_ns: 4_000_000_000,
        children: Some(Box::new(program.clone())),
        programs: vec![program],
    }
}

fn meta() -> Meta {
    Meta {
        longpole_version: "0.0.0-test".into(),
        abi_version: probe_abi::ABI_VERSION,
        kernel_release: "6.18.0".into(),
        host: "here".into(),
        clock: ClockAnchor { monotonic_ns: 5, realtime_ns: 1_700_000_000_000_000_000 },
        command: vec!["sort".into(), "-x".into()],
        pids: vec![7],
        ..Meta::default()
    }
}

/// A record as kernels write them: small numbers, and time that increases.
fn likely_record(i: u64) -> Record {
    let mut bytes = [0u8; 64];
    let kind = Kind::ALL[(i * 7) as usize % Kind::ALL.len()];
    // Times are never quite regular.
    let jitter = (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) % 1_500;
    bytes[..8].copy_from_slice(&(1_000_000_000 + i * 1_777 + jitter).to_le_bytes());
    bytes[8..12].copy_from_slice(&((i / 2) as u32).to_le_bytes());
    bytes[12] = (i % 2) as u8;
    bytes[14] = kind as u8;
    bytes[16..20].copy_from_slice(&(4_000 + (i % 5) as u32).to_le_bytes());
    bytes[20..24].copy_from_slice(&4_000u32.to_le_bytes());
    bytes[24..28].copy_from_slice(&(4_000 + (i % 3) as u32).to_le_bytes());
    if matches!(kind, Kind::Answer | Kind::Exchange) {
        let time = 1_000_000_000 + i * 1_777 + jitter;
        bytes[24..32].copy_from_slice(&(time - 300_000).to_le_bytes());
        bytes[32..40].copy_from_slice(&(time - 290_000).to_le_bytes());
        if kind == Kind::Exchange {
            bytes[40..48].copy_from_slice(&(time - 280_000).to_le_bytes());
        } else {
            bytes[40..44].copy_from_slice(&4_001u32.to_le_bytes());
        }
    }
    Record::decode(&bytes).expect("64 bytes hold any record")
}

fn facts() -> Facts {
    Facts {
        start_ns: 99,
        processes: vec![ProcessFact {
            pid: 7,
            comm: "sort".into(),
            executable: "/bin/sort".into(),
            inner_pids: vec![3],
        }],
        threads: vec![ThreadFact { tid: 7, pid: 7, state: ThreadState::Running, ..ThreadFact::default() }],
        functions: vec![FunctionFact { id: 1, name: "par_sort".into(), ..FunctionFact::default() }],
        addresses: vec![AddressFact {
            pid: 7,
            address: 0x40,
            name: Some("lock".into()),
            ..AddressFact::default()
        }],
        modules: vec![engine::event::ModuleFact {
            name: "prog".into(),
            path: "/bin/prog".into(),
            build_id: Some("ab".into()),
            missing: Some("no debug info".into()),
            own_locks: Some("Rust".into()),
        }],
        hit_costs: Some(HitCosts {
            exit: HitCost { before_ns: 7, after_ns: 8, spread_ns: 1 },
            ..HitCosts::default()
        }),
        sampling: Some(SamplingFact { rate_hz: 499, call_graph: CallGraph::Dwarf }),
        code: vec![engine::event::CodeFact {
            path: "/bin/sort".into(),
            build_id: Some("ab".into()),
            offset: 0x1234,
            since_ns: 77,
            function: Some("sort".into()),
            entry: Some(0x1200),
            declared: Some("sort.c:1".into()),
            line: Some("sort.c:9".into()),
            inlined: vec![engine::event::InlinedFact { function: "swap".into(), line: None }],
            waits: true,
            tries: true,
            under: vec![0x1230],
        }],
        spin: vec!["await_*".into()],
        cpu_runs: vec![engine::event::CpuRun {
            cpus: 2,
            round: 1,
            time_ns: 7,
            cpu_ns: 13,
            others_ns: 2,
            samples: 5,
            functions: vec![engine::event::FunctionSamples { name: "f".into(), samples: 3 }],
        }],
        hosts: vec![engine::event::HostFact {
            name: "db".into(),
            first_cpu: 2,
            cpus: 4,
            clock_ahead_ns: -5,
            clock_error_ns: 3,
            messages: 8,
        }],
        mappings: vec![MappingFact {
            pid: 7,
            start: 0x1000,
            end: 0x3000,
            path: "/bin/prog".into(),
            ..MappingFact::default()
        }],
        idle_wake: Some(engine::event::IdleWake { latency_ns: 20_000, cost_ns: 9_000 }),
        line_transfer: Some(engine::event::LineTransfer { alone_ps: 3_100, shared_ps: 7_500 }),
        tick_ns: Some(4_000_000),
        idle_tick_ns: Some(4_000_000),
        cpu_quota: Some(150),
        launched: Some(7),
        end: None,
    }
}

fn notes() -> Vec<Note> {
    vec![
        Note { time_ns: 3, kind: NoteKind::ProbesOff { functions: vec![1], rates: vec![70_000] } },
        Note {
            time_ns: 4,
            kind: NoteKind::Gap { pid: 0, cpu: Some(1), until_ns: 9, lost: 5, reason: GapReason::RingFull },
        },
        Note {
            time_ns: 5,
            kind: NoteKind::Stack { id: 1, pid: 7, frames: vec![0x1234, 0x2000, 0x1fff], cut: false },
        },
        Note {
            time_ns: 5,
            kind: NoteKind::Stack { id: 2, pid: 7, frames: vec![0x1, 0x2000, 0x1fff], cut: true },
        },
    ]
}

fn end() -> WindowEnd {
    WindowEnd {
        end_ns: 1_000,
        threads: facts().threads,
        loss: LossCounts { dropped: 5, ..LossCounts::default() },
        overhead: Some(Overhead { budget_ppm: Some(20_000), hits: 3, ..Overhead::default() }),
        samples: Some(SampleCounts {
            taken: 9,
            truncated: 2,
            without_stack: 3,
            no_room: 1,
            unread: 1,
            lost: 3,
            left_out: 4,
        }),
        pending: vec![PendingOperation {
            pid: 1,
            tid: 2,
            began_ns: 3,
            object: 4,
            ..PendingOperation::default()
        }],
        kernel_locks: Some(KernelLocks {
            waits: vec![KernelLockWaits { pid: 1, call: Some(11), count: 2, ..KernelLockWaits::default() }],
            lost: 1,
        }),
        goroutines: vec![GoroutineFact {
            pid: 7,
            looks: 3,
            idle: 1,
            starts: vec![GoroutineStart { start: 0x40, most: 2, busy: 1, there: 3 }],
            acts: vec![GoroutineAct {
                start: 0x40,
                reason: "chan send".to_owned(),
                frames: vec![0x50, 0x60],
                capacity: Some(5),
                count: 4,
                looks: 2,
                ..GoroutineAct::default()
            }],
        }],
        awaited: vec![AwaitedFact { number: 7, file: "wal/0001".to_owned(), ..AwaitedFact::default() }],
        requests: Some(Requests {
            open: vec![OpenRequest { reader: 3, port: 80, family: 2, arrived_ns: 7, read_ns: 8 }],
            sums: vec![RequestSums {
                pid: 1,
                served: true,
                count: 2,
                buckets: vec![0, 2],
                ..RequestSums::default()
            }],
            counted_ns: 9,
            pauses: 1,
            dropped_connections: 4,
            lost: 1,
        }),
        others: Some(others()),
        left_out: LeftOut::default(),
    }
}

/// A session of several chunks. The writer is flushed after every `per_chunk` records.
fn session(records: &[Record], per_chunk: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes, &meta()).expect("started");
    writer.facts(&facts()).expect("facts");
    for chunk in records.chunks(per_chunk) {
        for record in chunk {
            writer.push(record).expect("pushed");
        }
        writer.flush().expect("flushed");
    }
    for note in notes() {
        writer.note(&note).expect("noted");
    }
    let summary = writer.finish(end()).expect("finished");
    assert_eq!(summary.bytes, bytes.len() as u64);
    assert_eq!(summary.events, records.len() as u64);
    bytes
}

fn opened(bytes: &[u8]) -> Result<(Recording, SessionInfo), SessionError> {
    read_from(Cursor::new(bytes))
}
