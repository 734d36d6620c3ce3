//! One command that is recorded from inside: the environment it gets, and the records it writes.

use super::doorbell::Doorbell;
use super::library_file::{LibraryFile, mapped};
use super::memory_pool;
use super::pauses::{Pauses, Turnover};
use super::rings::{Rings, Turned};
use super::shared::Shared;
use crate::probe::{PreloadCost, now_ns};
use engine::event::{DISORDER_NS, Note, PendingOperation};
use probe_abi::Record;
use probe_abi::interpose::{SHARED_VARIABLE, SharedLayout, SharedWord};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicU32, Ordering};

/// Largest number of threads that can be recorded at the same time.
const RINGS: usize = 16_384;
/// Records in a thread's ring unless the user asks otherwise: a thread that only locks makes as many in some 8 ms.
const RING_RECORDS: usize = 32_768;
/// How often the available memory is checked, ns.
const RECKON_EVERY_NS: u64 = 1_000_000_000;
const RECORD_BYTES: usize = size_of::<probe_abi::Operation>();

/// The memory or the library's file could not be made.
#[derive(Debug, thiserror::Error)]
#[error("cannot prepare the library before the command's libc: {0}")]
pub struct InterposeError(#[from] io::Error);

/// See the module.
#[derive(Debug)]
pub struct Interposed {
    rings: Rings,
    place: LibraryFile,
    first: Vec<String>,
    /// The command's process; 0: not started yet.
    pid: AtomicU32,
    /// Largest number of bytes that the rings may use. Records that were taken from them and wait for their order may
    /// use the same number again.
    most_bytes: u64,
    /// Time at which `most_bytes` was last computed, ns.
    reckoned_ns: u64,
    /// Time at which the rings were last emptied, ns.
    drained_ns: u64,
    /// Operations that were taken out of rings and discarded, since too many records waited.
    thrown_away: u64,
    pauses: Pauses,
}

impl Interposed {
    /// Prepares everything; nothing is recorded yet. `ring_bytes`: size of one thread's ring; `children`: child processes
    /// are recorded, too; `budget_ppm`: what recording may cost of a thread's time, in millionths; `pauses`: whether
    /// recording pauses where it costs more.
    ///
    /// # Errors
    /// There is no memory, or no folder for the library.
    pub fn new(
        first: Vec<String>,
        ring_bytes: Option<u32>,
        children: bool,
        budget_ppm: Option<u32>,
        pauses: bool,
    ) -> Result<Interposed, InterposeError> {
        let records = ring_bytes.map_or(RING_RECORDS, |bytes| {
            let records = (bytes as usize / RECORD_BYTES).clamp(1024, 1 << 17);
            1 << records.ilog2()
        });
        let layout = SharedLayout::new(RINGS, records).ok_or(io::Error::from(io::ErrorKind::InvalidInput))?;
        let shared = Shared::new(layout)?;
        shared.word(SharedWord::CHILDREN).store(u64::from(children), Ordering::Release);
        let share = budget_ppm.map(|ppm| f64::from(ppm) / 1e6);
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        let mut rings = Rings::new(shared, share);
        let most_bytes = memory_pool::bytes_now(None, 0, (records * RECORD_BYTES) as u64);
        rings.may_use(most_bytes);
        let pid = AtomicU32::new(0);
        Ok(Interposed {
            rings,
            place: LibraryFile::new()?,
            first,
            pid,
            most_bytes,
            reckoned_ns: 0,
            drained_ns: 0,
            thrown_away: 0,
            pauses: Pauses::new(share.filter(|_| pauses), cpus),
        })
    }

    /// Computes again how much memory the rings may use, if the last time is long ago.
    fn reckon(&mut self, now_ns: u64) {
        if now_ns.saturating_sub(self.reckoned_ns) < RECKON_EVERY_NS {
            return;
        }
        self.reckoned_ns = now_ns;
        let pid = Some(self.pid.load(Ordering::Relaxed)).filter(|pid| *pid != 0);
        let ring_bytes = (self.rings.shared.layout().ring_records * RECORD_BYTES) as u64;
        self.most_bytes = memory_pool::bytes_now(pid, self.rings.used_bytes(), ring_bytes);
        self.rings.may_use(self.most_bytes);
    }

    /// Whether the rings must not be emptied for now, since `held_bytes` of records taken earlier still wait for their
    /// place in time order. In the meantime the rings fill, and records that do not fit are counted.
    pub fn is_throttled(&self, held_bytes: u64) -> bool {
        held_bytes > self.most_bytes
            && self.is_recording()
            && now_ns().saturating_sub(self.drained_ns) <= DISORDER_NS
    }

    fn is_recording(&self) -> bool {
        self.rings.shared.word(SharedWord::RECORDING).load(Ordering::Relaxed) != 0
    }

    /// The descriptor that the command has to inherit.
    pub fn descriptor(&self) -> RawFd {
        self.rings.shared.descriptor()
    }

    /// The path of the preloaded library, as the command sees it.
    pub fn library(&self) -> &std::path::Path {
        self.place.path()
    }

    /// The doorbell that the command signals when one of its rings fills up.
    ///
    /// # Errors
    ///
    /// The doorbell's memory cannot be mapped.
    pub fn bell(&self) -> io::Result<Doorbell> {
        self.rings.shared.bell()
    }

    /// Variables for the environment of the command, which is still this process. `preloaded` is its `LD_PRELOAD` so far: those
    /// libraries stay in front, since some insist on it.
    ///
    /// # Errors
    /// The shared memory's file cannot be examined.
    pub fn environment(
        &self,
        preloaded: Option<&OsStr>,
        pid: u32,
    ) -> Result<Vec<(OsString, OsString)>, InterposeError> {
        let mut list = OsString::new();
        let own = preloaded.filter(|list| !list.is_empty());
        let names = self.first.iter().map(OsStr::new).chain(own).chain([self.place.path().as_os_str()]);
        for name in names {
            if !list.is_empty() {
                list.push(":");
            }
            list.push(name);
        }
        let variable = self.rings.shared.variable(pid)?;
        Ok(vec![("LD_PRELOAD".into(), list), (SHARED_VARIABLE.into(), variable.into())])
    }

    /// Records this process, and if wanted its children, from now on.
    pub fn start(&self, pid: u32) {
        let shared = &self.rings.shared;
        self.pid.store(pid, Ordering::Relaxed);
        shared.word(SharedWord::ROOT_PID).store(u64::from(pid), Ordering::Release);
        shared.word(SharedWord::RECORDING).store(1, Ordering::Release);
    }

    /// Stops recording. Records written before can still be drained.
    pub fn end(&mut self) {
        self.rings.shared.word(SharedWord::RECORDING).store(0, Ordering::Release);
        self.pauses.end(now_ns());
    }

    /// Records without pauses: for a window that is analysed as a whole.
    pub fn without_pauses(&mut self) {
        self.pauses = Pauses::new(None, 1);
    }

    /// Notes about pauses that have ended since the last call.
    pub fn take_notes(&mut self) -> Vec<Note> {
        self.pauses.take_notes()
    }

    /// Pauses, or records again. Threads see it at their next operation.
    fn turn_over(&self) {
        self.rings.shared.word(SharedWord::RECORDING).fetch_add(1, Ordering::Release);
    }

    /// Sentences for the user about operations that were not recorded although that was wanted.
    pub fn shortcomings(&self) -> Vec<String> {
        let word = |word| self.rings.shared.word(word).load(Ordering::Relaxed);
        let mut sentences = Vec::new();
        let mut say = |count: u64, programs: &str, why: &str| {
            if count > 0 {
                let s = if count == 1 { "" } else { "s" };
                sentences.push(format!("synchronization operations of {count} {programs}{s} {why}"));
            }
        };
        say(
            word(SharedWord::NOT_UP),
            "program",
            "are not in the recording: a limit on the address space left no room for the library's memory",
        );
        let by_probes = "are recorded by probes, where there are probes, instead of from inside";
        say(word(SharedWord::FOREIGN), "process", &format!("in PID namespaces of their own {by_probes}"));
        say(
            word(SharedWord::FOREIGN_CLOCK),
            "process",
            &format!("with a clock of their own (time namespaces) {by_probes}"),
        );
        if self.short() > 0 {
            sentences.push(format!(
                "the rings of all threads together may use {} MiB, an eighth of the available memory: operations that found no memory are lost",
                self.most_bytes >> 20
            ));
        }
        sentences
    }

    /// Whether a process of the command fills its rings without being able to signal the doorbell.
    pub fn is_silent(&self) -> bool {
        self.rings.shared.word(SharedWord::SILENT).load(Ordering::Relaxed) != 0
    }

    /// Number of rings that have been in use.
    pub fn ring_count(&self) -> usize {
        self.rings.count()
    }

    /// Notes that a thread has ended according to the kernel's records.
    pub fn thread_ended(&mut self, pid: u32, tid: u32) {
        self.rings.thread_ended(pid, tid);
    }

    /// Passes the records in the rings to `sink`, with the number of their ring. Never waits. Returns the number of
    /// records, and if the rings were emptied, the time up to which all records have been passed on. If the receiver
    /// has far too many bytes `held`, records are only counted and discarded: a thread that is stopped while it writes
    /// a record may keep all other records waiting for a while.
    pub fn drain(&mut self, held_bytes: u64, sink: &mut dyn FnMut(usize, &[u8])) -> (usize, Option<u64>) {
        self.drained_ns = now_ns();
        self.reckon(self.drained_ns);
        let too_much = held_bytes > self.most_bytes.saturating_mul(2);
        let thrown_away = &mut self.thrown_away;
        let mut sink = |ring: usize, bytes: &[u8]| {
            if too_much {
                *thrown_away = thrown_away.saturating_add(operations_of(bytes));
            } else {
                sink(ring, bytes);
            }
        };
        let Turned { records, complete_to_ns, cost_ns, busy } =
            self.rings.drain(&mut now_ns, &mut lives, &mut sink);
        if self.is_recording() {
            match self.pauses.turn(now_ns(), cost_ns, busy) {
                Some(Turnover::Pause) => self.turn_over(),
                Some(Turnover::Resume) => {
                    self.turn_over();
                    self.pauses.end(now_ns());
                }
                None => {}
            }
        }
        (records, complete_to_ns)
    }

    /// Records that did not fit or were discarded, and pieces of rings that could not be records.
    pub fn loss(&self) -> (u64, u64) {
        (self.rings.dropped().saturating_add(self.thrown_away), self.rings.undecodable())
    }

    /// Lost records for which there was no memory.
    pub fn short(&self) -> u64 {
        self.rings.short().saturating_add(self.thrown_away)
    }

    /// See [`Rings::cost`].
    pub fn cost(&self) -> PreloadCost {
        self.rings.cost()
    }

    /// Operations that were not recorded on purpose, see [`engine::event::LossCounts::operations_left_out`].
    pub fn left_out(&self) -> u64 {
        self.rings.left_out()
    }

    /// See [`engine::event::LossCounts::operations_counted`].
    pub fn counted(&self) -> u64 {
        self.rings.counted()
    }

    /// Operations that were only counted, see [`engine::event::LossCounts::operations_forbidden`].
    pub fn forbidden(&self) -> u64 {
        self.rings.forbidden()
    }

    /// Operations that threads have begun and not finished, or had not finished when they ended.
    pub fn take_pending(&mut self) -> Vec<PendingOperation> {
        self.rings.take_pending()
    }
}

impl Drop for Interposed {
    fn drop(&mut self) {
        self.end();
        // A process that has the library may still start programs. They inherit the variable that loads it
        // and would complain about a missing file.
        if mapped().contains(self.place.path()) {
            log::info!("{} stays: the command still uses it", self.place.path().display());
            self.place.leave();
        }
    }
}

/// Number of operations for which a record stands.
fn operations_of(bytes: &[u8]) -> u64 {
    match Record::decode(bytes) {
        Ok(Record::Burst(burst)) => 2 * u64::from(burst.count),
        _ => 1,
    }
}

/// Whether a thread exists and is not just a zombie.
fn lives(pid: u32, tid: u32) -> bool {
    let (Ok(process), Ok(thread)) = (libc::pid_t::try_from(pid), libc::pid_t::try_from(tid)) else {
        return false;
    };
    if process <= 0 || thread <= 0 {
        return false;
    }
    // SAFETY: signal 0 sends nothing: this only checks whether one could be sent.
    let found = unsafe { libc::syscall(libc::SYS_tgkill, process, thread, 0) } == 0;
    if !found && io::Error::last_os_error().raw_os_error() == Some(libc::ESRCH) {
        return false;
    }
    // A thread that has ended disappears. Only a leader stays, as a zombie, until all threads have ended and its
    // parent waits for it.
    pid != tid || leader_lives(pid)
}

fn leader_lives(pid: u32) -> bool {
    let Ok(stat) = std::fs::read(format!("/proc/{pid}/task/{pid}/stat")) else { return false };
    // The state follows the name, which is in parentheses and may hold any byte.
    let state = stat.iter().rposition(|&byte| byte == b')').and_then(|at| stat.get(at + 2));
    !matches!(state, None | Some(b'Z' | b'X' | b'x'))
}
