//! Synchronization operations that have begun and not ended, as probes on C libraries recorded them.

use aya::Ebpf;
use aya::maps::{HashMap, MapData};
use engine::event::PendingOperation;
use probe_abi::{LibcCookie, MAX_OPEN_OPERATIONS, OpenOperations, SyncOperation};

/// The operations in progress now.
pub(crate) fn pending(ebpf: &Ebpf) -> Vec<PendingOperation> {
    const WORDS: usize = size_of::<OpenOperations>() / 8;
    let map =
        ebpf.map("OPERATIONS").and_then(|map| HashMap::<&MapData, u32, [u64; WORDS]>::try_from(map).ok());
    let Some(map) = map else { return Vec::new() };
    let mut pending = Vec::new();
    for (tid, words) in map.iter().filter_map(Result::ok) {
        let calls: OpenOperations = zerocopy::transmute!(words);
        let depth = usize::try_from(calls.depth).unwrap_or(0).min(MAX_OPEN_OPERATIONS);
        for call in &calls.open[..depth] {
            let operation = u16::from(LibcCookie::from_bits(call.cookie).function.operation);
            if operation == SyncOperation::ThreadExit as u16 {
                continue;
            }
            pending.push(PendingOperation {
                pid: u32::try_from(calls.pid).unwrap_or(0),
                tid,
                began_ns: call.began_ns,
                object: call.object,
                second: call.second,
                caller: call.caller,
                operation,
            });
        }
    }
    pending.sort_by_key(|call| (call.pid, call.tid, call.began_ns));
    pending
}
