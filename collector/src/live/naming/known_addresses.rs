//! Remembers which addresses of which program were already asked about: each address is asked about once.

use super::lock_stacks::{LockStack, LockStacks};
use engine::event::{Note, NoteKind, ThreadFact, awaited_futex};
use probe_abi::{Call, Record, SyncOperation};
use rustc_hash::{FxHashMap, FxHashSet};

/// Largest number of addresses asked about in one recording: a program may have any number of locks on its heap.
const MOST: usize = 1 << 16;
/// Entries of the cache in front of the set; a power of two. Mostly the same few addresses come again and again.
const FRONT: usize = 1 << 12;

/// A question for the namer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ask {
    /// A process runs a new program.
    Program {
        /// Its pid.
        pid: u32,
        /// Since when (`CLOCK_MONOTONIC` nanoseconds).
        since_ns: u64,
        /// The parent, if the process was forked and so runs the parent's program.
        like: Option<u32>,
        /// Page at which the program is mapped, from the record of its exec ([`probe_abi::Exec::first_page`]); 0 if
        /// unknown.
        first_page: u32,
    },
    /// A process has mapped a library.
    Mapped {
        /// Its pid.
        pid: u32,
    },
    /// A request for the name of a variable or a call, by its address.
    Address {
        /// The process.
        pid: u32,
        /// Time at which the process began to run its present program, ns; 0 if before the recording.
        since_ns: u64,
        /// The address.
        address: u64,
        /// Whether the address is that of a variable or of a call.
        kind: AddressKind,
    },
}

/// See [`Ask::Address`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressKind {
    /// A variable.
    Object,
    /// The call that returns to the address.
    Return,
}

/// See the module.
#[derive(Debug)]
pub struct KnownAddresses {
    /// Process and address that each cache entry last held.
    front: Vec<(u32, u64)>,
    known: FxHashSet<(u32, u64, u64)>,
    /// For each process: time from which it runs its present program, according to its records.
    since: FxHashMap<u32, u64>,
    asks: Vec<Ask>,
    lock_stacks: LockStacks,
}

impl Default for KnownAddresses {
    fn default() -> KnownAddresses {
        KnownAddresses {
            front: vec![(0, 0); FRONT],
            known: FxHashSet::default(),
            since: FxHashMap::default(),
            asks: Vec::new(),
            lock_stacks: LockStacks::default(),
        }
    }
}

impl KnownAddresses {
    /// Notes the addresses in a record.
    pub fn record(&mut self, record: &Record) {
        self.lock_stacks.record(record);
        match record {
            Record::Operation(operation) => {
                let (pid, time_ns) = (operation.header.pid, operation.header.time_ns);
                let Some(kind) = SyncOperation::from_number(operation.operation) else { return };
                if kind as u16 >= SyncOperation::ThreadCreate as u16 {
                    return;
                }
                self.address(pid, time_ns, operation.object, AddressKind::Object);
                self.address(pid, time_ns, operation.caller, AddressKind::Return);
                if matches!(kind, SyncOperation::ConditionWait | SyncOperation::ConditionTimedWait) {
                    self.address(pid, time_ns, operation.second, AddressKind::Object);
                }
            }
            Record::Burst(burst) => {
                let (pid, time_ns) = (burst.header.pid, burst.header.time_ns);
                self.address(pid, time_ns, burst.object, AddressKind::Object);
                self.address(pid, time_ns, burst.caller, AddressKind::Return);
            }
            Record::Switch(switch) => self.call(switch.header.pid, switch.header.time_ns, switch.prev_call),
            Record::Waking(waking) => self.call(waking.wakee_pid, waking.header.time_ns, waking.wakee_call),
            Record::Fork(fork) if fork.child_pid != fork.header.pid => {
                self.program(fork.child_pid, fork.header.time_ns, Some(fork.header.pid), 0);
            }
            Record::Exec(exec) => {
                self.program(exec.header.pid, exec.header.time_ns, None, exec.first_page);
            }
            _ => {}
        }
    }

    /// Notes the addresses in a note: words that threads change together need names.
    pub fn note(&mut self, note: &Note) {
        if let NoteKind::Changed { pid, address, .. } = note.kind {
            self.address(pid, note.time_ns, address, AddressKind::Object);
        }
    }

    /// Notes the address of a thread's last wait: the futex word needs a name.
    pub fn thread(&mut self, thread: &ThreadFact) {
        if let Some(awaits) = thread.awaits {
            self.address(thread.pid, thread.seen_ns, awaits.futex.word, AddressKind::Object);
        }
    }

    fn call(&mut self, pid: u32, time_ns: u64, call: Call) {
        if let Some(futex) = awaited_futex(call) {
            self.address(pid, time_ns, futex.word, AddressKind::Object);
        }
    }

    fn program(&mut self, pid: u32, since_ns: u64, like: Option<u32>, first_page: u32) {
        self.since.insert(pid, since_ns);
        self.front.fill((0, 0));
        // Addresses of the former program cannot be looked up any more.
        self.asks.retain(|ask| !matches!(ask, Ask::Address { pid: other, .. } if *other == pid));
        self.asks.push(Ask::Program { pid, since_ns, like, first_page });
    }

    fn address(&mut self, pid: u32, time_ns: u64, address: u64, kind: AddressKind) {
        if address == 0 || pid == 0 {
            return;
        }
        let hash = (address >> 2) ^ (address >> 14) ^ u64::from(pid);
        let Some(entry) = self.front.get_mut(hash as usize % FRONT) else { return };
        if *entry == (pid, address) {
            return;
        }
        *entry = (pid, address);
        let since_ns = self.since.get(&pid).copied().unwrap_or(0);
        // Places of calls are few; there is still room for them when objects have used up theirs.
        let room = if kind == AddressKind::Return { 2 * MOST } else { MOST };
        // An older record is of the former program, and came late.
        if time_ns < since_ns || self.known.len() >= room || !self.known.insert((pid, since_ns, address)) {
            return;
        }
        self.asks.push(Ask::Address { pid, since_ns, address, kind });
    }

    /// Stacks at waits for locks and at wake-ups that are new since the last call.
    pub fn take_lock_stacks(&mut self) -> Vec<LockStack> {
        self.lock_stacks.take()
    }

    /// Questions that are new since the last call, in order.
    pub fn take(&mut self) -> Vec<Ask> {
        std::mem::take(&mut self.asks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use probe_abi::{Exec, Header, Kind, Operation};

    fn header(kind: Kind, time_ns: u64) -> Header {
        Header { time_ns, sequence: 0, cpu: 0, kind: kind as u8, context: 0, tid: 7, pid: 7 }
    }

    fn lock(time_ns: u64, object: u64, caller: u64) -> Record {
        Record::Operation(Operation {
            header: header(Kind::Operation, time_ns),
            began_ns: time_ns,
            object,
            second: 0x99,
            caller,
            operation: SyncOperation::MutexLock as u16,
            flags: 0,
            outcome: 0,
        })
    }

    fn exec(time_ns: u64) -> Record {
        Record::Exec(Exec { header: header(Kind::Exec, time_ns), old_tid: 7, first_page: 0, comm: [0; 16] })
    }

    #[test]
    fn an_address_is_asked_about_once_per_program() {
        let mut seen = KnownAddresses::default();
        let address = |since_ns, address, kind| Ask::Address { pid: 7, since_ns, address, kind };
        seen.record(&lock(10, 0x40, 0x1000));
        seen.record(&lock(11, 0x40, 0x1000));
        seen.record(&lock(12, 0x80, 0x1000));
        assert_eq!(
            seen.take(),
            [
                address(0, 0x40, AddressKind::Object),
                address(0, 0x1000, AddressKind::Return),
                address(0, 0x80, AddressKind::Object)
            ]
        );
        seen.record(&lock(13, 0xc0, 0));
        seen.record(&exec(20));
        seen.record(&lock(19, 0x100, 0x1000));
        seen.record(&lock(21, 0x40, 0));
        assert_eq!(
            seen.take(),
            [
                Ask::Program { pid: 7, since_ns: 20, like: None, first_page: 0 },
                address(20, 0x40, AddressKind::Object)
            ],
            "what the program before used cannot be found out any more"
        );
    }

    #[test]
    fn the_number_of_known_lock_addresses_is_bounded() {
        let mut seen = KnownAddresses::default();
        for number in 0..2 * MOST as u64 {
            seen.record(&lock(10, 0x1000 + 64 * number, 0));
        }
        assert_eq!(seen.take().len(), MOST);
    }
}
