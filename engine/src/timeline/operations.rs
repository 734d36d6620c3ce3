//! Records of synchronization operations: assigns each to its thread, and notes from when on operations are missing.

use super::builder::Builder;
use super::locks::RecordedBurst;
use super::model::{Hit, LockOperation, NO_OBJECT, StepKind};
use crate::event::HitCost;
use crate::time::Timestamp;
use probe_abi::{Burst, Header, Operation, SyncOperation};

impl Builder {
    pub(super) fn operation(&mut self, record: &Operation) {
        let header = record.header;
        let found = if header.cpu == Header::NO_CPU {
            self.find_or_add(header.pid, header.tid, true)
        } else {
            self.seen_running(&header)
        };
        let Some(thread) = found else { return };
        self.settle_pending_wakeup(Some(thread));
        self.operation_hits(thread, record);
        let Some(operation) = SyncOperation::from_number(record.operation) else { return };
        let after_hole = self.locks.is_after_hole(thread, &header, operation.family());
        let is_silent = operation == SyncOperation::ThreadSilent;
        self.locks.holes += u64::from(is_silent && !after_hole);
        let after_hole = after_hole || is_silent;
        let began_ns = record.began_ns.min(header.time_ns);
        let (object, second) = self.locks.objects(record, operation, began_ns, thread);
        let number = u32::try_from(self.locks.lock_operations.len()).unwrap_or(u32::MAX);
        self.locks.lock_operations.push(LockOperation {
            began: Timestamp(began_ns),
            ended: Timestamp(header.time_ns),
            value: if object == NO_OBJECT { record.object } else { record.second },
            caller: record.caller,
            thread,
            object,
            second,
            outcome: record.outcome,
            operation,
            flags: record.flags,
            after_hole,
            times: 1,
        });
        self.step(thread, header.time_ns, StepKind::Operated(number));
        if self.unprobed_locks.is_cut(header.pid, operation.family(), began_ns) {
            // The thread may have taken a lock while probes were removed, for example: the lock's release may not be
            // recorded.
            self.forgets_what_it_holds(thread, header.time_ns);
        }
    }

    pub(super) fn burst(&mut self, burst: &Burst) {
        let header = burst.header;
        let Some(thread) = self.find_or_add(header.pid, header.tid, true) else { return };
        self.settle_pending_wakeup(Some(thread));
        let taking = Burst::taking(burst.flags);
        let after_hole = self.locks.is_after_hole(thread, &header, taking.family());
        let began_ns = burst.began_ns();
        let first = Operation {
            header: Header { time_ns: began_ns, ..header },
            began_ns,
            object: burst.object,
            second: 0,
            caller: burst.caller,
            operation: taking as u16,
            flags: burst.flags,
            outcome: 0,
        };
        let (object, _) = self.locks.objects(&first, taking, began_ns, thread);
        self.locks.bursts.push(RecordedBurst { burst: *burst, thread, object, after_hole });
    }

    /// Adds the two probe hits of an operation: one at its begin, one at its end.
    fn operation_hits(&mut self, thread: u32, record: &Operation) {
        if record.header.cpu == Header::NO_CPU {
            return;
        }
        let Some((entry, exit)) = self.costs.operation() else { return };
        let Some(thread) = self.threads.get_mut(thread as usize) else { return };
        let ended_ns = record.header.time_ns;
        let hit = |time_ns: u64, cost: HitCost| Hit {
            time: Timestamp(time_ns),
            before_ns: cost.before_ns,
            after_ns: cost.after_ns,
        };
        // Keeps hits in order of time: others may lie between begin and end.
        if record.began_ns < ended_ns {
            let at = thread.out.hits.partition_point(|hit| hit.time.0 <= record.began_ns);
            thread.out.hits.insert(at, hit(record.began_ns, entry));
        }
        thread.out.hits.push(hit(ended_ns, exit));
    }

    /// Ends the known holds of all threads of a process whose operations go missing, up to `time_ns`.
    pub(super) fn operations_go_missing(&mut self, time_ns: u64) {
        while let Some((from_ns, pid)) = self.unprobed_locks.next(time_ns) {
            let mut threads: Vec<u32> = self.by_process.get(&pid).cloned().unwrap_or_default();
            threads.sort_unstable();
            threads.dedup();
            for thread in threads {
                self.forgets_what_it_holds(thread, from_ns);
            }
        }
    }

    /// From here on, the thread is not known to hold any lock.
    fn forgets_what_it_holds(&mut self, thread: u32, time_ns: u64) {
        let hole = self.unprobed_locks.hole();
        self.step(thread, time_ns, hole);
    }
}
