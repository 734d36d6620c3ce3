//! Which edges, or parts of edges, were computed on which CPU when the program was recorded.

use super::activity::{ActivityGraph, ActivityKind};
use super::subjects::Subject;
use crate::program::{Move, Program, Thread};
use rustc_hash::FxHashMap;

/// Puts the subjects' edges that take time into `parts`. `timed`: by thread, its edges that take time, in the order of
/// its operations.
pub(super) fn placed(
    program: &Program,
    graph: &ActivityGraph,
    timed: &[Vec<u32>],
    parts: &mut FxHashMap<Subject, Vec<(u32, u64)>>,
) {
    for (thread, edges) in program.threads.iter().zip(timed) {
        of_thread(thread, graph, edges, parts);
    }
}

fn of_thread(
    thread: &Thread,
    graph: &ActivityGraph,
    edges: &[u32],
    parts: &mut FxHashMap<Subject, Vec<(u32, u64)>>,
) {
    let mut cpu = None;
    let mut moves = thread.moves.iter().peekable();
    for edge in edges {
        let operation = graph.operation(*edge as usize);
        if graph.kind(*edge as usize) != ActivityKind::Compute {
            continue;
        }
        while let Some(before) = moves.next_if(|step| step.operation < operation) {
            cpu = before.cpu;
        }
        let length = graph.length(*edge as usize);
        let mut over = 0;
        let mut piece = |cpu: Option<u16>, until: u64| {
            let part = until.saturating_sub(over);
            if let (Some(cpu), true) = (cpu, part > 0) {
                let of_cpu = parts.entry(Subject::Cpu(cpu)).or_default();
                // The thread may return to a CPU within one operation.
                match of_cpu.last_mut() {
                    Some((last, sum)) if *last == *edge => *sum += part,
                    _ => of_cpu.push((*edge, part)),
                }
            }
            over = over.max(until);
        };
        while let Some(Move { after, cpu: next, .. }) = moves.next_if(|step| step.operation == operation) {
            piece(cpu, after.0.min(length));
            cpu = *next;
        }
        piece(cpu, length);
    }
}
