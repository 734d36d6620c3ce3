//! Removes probes of functions that are called too often, and keeps recording within the overhead budget.
//!
//! The kernel programs stop recording a function in the very window in which its calls pass the rate limit, and
//! note when. Some ten milliseconds later this thread sees that and removes the probes, so that the function
//! runs at its own speed again. `cost_accounting` adds up what all probes together cost, and `budget` decides which of
//! them must go for a while.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, TryLockError,
        atomic::Ordering,
        mpsc::{Receiver, RecvTimeoutError},
    },
    time::{Duration, Instant},
};

use aya::Ebpf;
use aya_log::EbpfLogger;
use engine::event::{GapReason, Note, NoteKind, Overhead};
use probe_abi::{FunctionCounters, RATE_WINDOW_SHIFT};

use super::{
    adaptive_sampling::AdaptiveSampling,
    budget::{Budget, Decision},
    cost_accounting::CostAccounting,
    packet_watch::{PacketCounts, PacketWatch},
    poll_urgency::PollUrgency,
    spending::Spent,
};
use crate::probe::breakpoints::{FunctionProbes, LockProbes, Programs};
use crate::probe::kernel::{KernelLayout, Link, Shared, attach_network, close_together};
use crate::probe::sources::{Clock, RequestCounter, clocks, kernel_locks, now_ns, sampling_clock};

/// How often the counters are read after probes were attached or removed, or while probes are hit all the time. A
/// function that is called very often passes the limit early in the programs' window of 134 ms. With this interval and
/// the time for attaching a link, its probes are gone within 200 ms. If nothing changes, the interval grows up to
/// [`LOOK_EVERY`], since on a virtual machine every wake-up of a thread takes some tenths of a millisecond.
const TICK: Duration = Duration::from_millis(5);

/// Niceness of the overhead controller's thread, the same as the ring reader's.
const NICE: i32 = -10;

/// Longest time between two checks of costs. It is not shorter because reading the counters of thousands of functions
/// takes some time.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Longest time between two checks while probes are hardly hit: then only samples can become too expensive.
const LOOK_WHEN_IDLE: Duration = Duration::from_millis(400);

/// Longest time between two checks in the first half second: the command is about to begin, and the cost of all its
/// functions is unknown.
const LOOK_AT_FIRST: Duration = Duration::from_millis(20);
const FIRST: Duration = Duration::from_millis(500);

/// With more functions than this, attaching new links for all of them takes too long for a program that hits them all
/// the time.
const MANY: usize = 256;

/// State that is shared by the capture and its overhead controller.
pub(crate) struct Probes {
    pub(crate) ebpf: Ebpf,
    pub(crate) functions: FunctionProbes,
    pub(crate) operations: LockProbes,
    /// The sampling clock.
    pub(crate) clock: Option<Clock>,
    /// The programs that follow packets over the loopback device; empty while they are not attached.
    pub(crate) network: Vec<Link>,
    /// The programs that count waits for locks of the kernel; empty if the kernel refuses them.
    pub(crate) contention: Vec<Link>,
    /// The programs that count requests; `None` if the kernel refuses them.
    pub(crate) requests: Option<RequestCounter>,
    pub(crate) kernel: Arc<KernelLayout>,
    pub(crate) notes: Vec<Note>,
    pub(crate) logger: Option<EbpfLogger<&'static dyn log::Log>>,
    /// CPUs for which the log already says that their ring was full.
    pub(crate) full_rings: BTreeSet<u16>,
    pub(crate) accounting: CostAccounting,
    /// Functions whose probes a user has removed: no budget restores them.
    pub(crate) unwanted: BTreeSet<u32>,
    /// Since when packets are not followed, and how many wake-ups may have been by own packets before that.
    pub(crate) not_followed: Option<(u64, u64)>,
}

impl Probes {
    /// Changes whenever probes are attached or removed.
    fn version(&self) -> u64 {
        self.functions.version().wrapping_add(self.operations.version())
    }

    /// Logs the programs' warnings, and once for each CPU that its ring was full.
    pub(crate) fn warn(&mut self, shared: &Shared) {
        if let Some(logger) = &mut self.logger {
            logger.flush();
        }
        for (cpu, _) in shared.lossy_cpus() {
            if self.full_rings.insert(cpu) {
                log::warn!("the ring of CPU {cpu} is full: records get lost");
            }
        }
    }

    /// Notes the wake-ups that may have been by own packets while packets were not followed; `possible` counts all so far.
    pub(crate) fn note_packets(&mut self, now_ns: u64, possible: u64) {
        let Some((since_ns, before)) = self.not_followed.take() else { return };
        let lost = possible.saturating_sub(before);
        if lost > 0 {
            let reason = GapReason::PacketsNotFollowed;
            let kind = NoteKind::Gap { pid: 0, cpu: None, until_ns: now_ns, lost, reason };
            self.notes.push(Note { time_ns: since_ns, kind });
        }
    }
}

/// [`Probes`], shared by several threads.
pub(crate) struct Common {
    probes: Mutex<Probes>,
    pub(crate) shared: Arc<Shared>,
    /// The cost of recording, as of the controller's last check.
    overhead: Mutex<Overhead>,
    /// Notes of the attaching thread. They have their own lock, because the ring reader takes it.
    notes: Mutex<Vec<Note>>,
    /// CPUs that are online, if that has changed since the list was last taken.
    online: Mutex<Option<Vec<u32>>>,
    programs: Mutex<Programs>,
}

impl Common {
    pub(crate) fn new(probes: Probes, shared: Arc<Shared>) -> Common {
        let overhead = Mutex::new(probes.accounting.overhead());
        Common {
            probes: Mutex::new(probes),
            shared,
            overhead,
            notes: Mutex::default(),
            online: Mutex::default(),
            programs: Mutex::default(),
        }
    }

    /// The program that each process runs.
    pub(crate) fn programs(&self) -> MutexGuard<'_, Programs> {
        self.programs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes probes that were chosen for programs which their processes no longer run.
    pub(crate) fn drop_replaced_programs(&self, probes: &mut Probes) {
        let news = self.programs().take(&|pid| self.shared.is_tracked(pid));
        if news.is_empty() {
            return;
        }
        probes.functions.remove_stale(&news);
        probes.operations.remove_stale(&news);
    }

    /// Adds a note for the ring reader.
    pub(crate) fn note(&self, note: Note) {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner).push(note);
    }

    /// Notes since the last call.
    pub(crate) fn take_notes(&self) -> Vec<Note> {
        std::mem::take(&mut *self.notes.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// CPUs that are online, if that has changed since the last call.
    pub(crate) fn take_online(&self) -> Option<Vec<u32>> {
        self.online.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// The cost of recording, as of the controller's last check.
    pub(crate) fn overhead(&self) -> Overhead {
        *self.overhead.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds up the cost of recording until now.
    pub(crate) fn look(&self, probes: &mut Probes) -> Spent {
        let Probes { ebpf, functions, operations, accounting, .. } = probes;
        let spent = accounting.look(ebpf, &self.shared, functions, operations);
        *self.overhead.lock().unwrap_or_else(PoisonError::into_inner) = accounting.overhead();
        spent
    }

    /// The probes; `None` while another thread uses them: replacing links takes some hundred milliseconds, and
    /// the ring reader must not wait.
    pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, Probes>> {
        match self.probes.try_lock() {
            Ok(probes) => Some(probes),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// The probes. A panic in another thread does not keep them from being removed.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Probes> {
        self.probes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What may begin after events are recorded.
pub(crate) struct Later {
    /// Processes that ran already.
    pub(crate) pids: Vec<u32>,
    /// Whether stacks are taken at sleeps and wake-ups.
    pub(crate) samples: bool,
    /// See [`crate::probe::CaptureOptions::every_request`].
    pub(crate) every_request: bool,
}

/// Starts what may begin after events are recorded. Waits for locks of the kernel and requests are always counted.
pub(crate) fn begin_later(common: &Common, kernel: &KernelLayout, later: &Later) {
    {
        let probes = &mut *common.lock();
        probes.contention = kernel_locks::attach(&mut probes.ebpf, kernel);
        probes.requests = RequestCounter::begin(&mut probes.ebpf, kernel, &later.pids, later.every_request);
    }
    if !later.samples {
        return;
    }
    if let Err(error) = sampling_clock::start_at_events(&mut common.lock().ebpf, kernel) {
        log::warn!("stacks are taken by the clock alone: {error}");
    }
}

/// Runs until `stop` is closed.
pub(crate) fn run(
    common: &Common,
    mut budget: Budget,
    mut samplings: [AdaptiveSampling; 2],
    stop: &Receiver<()>,
) {
    clocks::count_this_thread();
    // If probes have slowed a program to a crawl, all its threads wait for CPUs: this thread must run before them.
    if let Err(error) = rustix::process::setpriority_process(None, NICE) {
        log::debug!("no higher priority: {error}");
    }
    let began = Instant::now();
    let (mut tick, mut looked, mut version) = (TICK, began, 0);
    let mut online = Vec::new();
    let mut packets = common.lock().accounting.has_budget().then(PacketWatch::default);
    while let Err(RecvTimeoutError::Timeout) = stop.recv_timeout(tick) {
        let mut probes = common.lock();
        common.drop_replaced_programs(&mut probes);
        let urgency = probes.accounting.poll_urgency(&common.shared);
        let urgent = urgency == PollUrgency::Urgent;
        let idle = urgency == PollUrgency::Idle && probes.accounting.next_look().is_none();
        if urgent || looked.elapsed() >= if idle { LOOK_WHEN_IDLE } else { LOOK_EVERY } {
            looked = Instant::now();
            probes.warn(&common.shared);
            reap_exited(common, &mut probes);
            forget_the_changed(&mut probes);
            enforce_rate_limit(common, &mut probes, &mut budget);
            enforce_budget(common, &mut probes, &mut budget, &mut samplings);
            follow(common, &mut probes, &mut online);
            if let Some(watch) = &mut packets {
                follow_packets(common, &mut probes, watch);
            }
            count_requests(&mut probes);
        }
        let before = std::mem::replace(&mut version, probes.version());
        let probed = probes.functions.functions().next().is_some();
        let most = match probed {
            true if began.elapsed() < FIRST => LOOK_AT_FIRST,
            true => LOOK_EVERY,
            false => LOOK_WHEN_IDLE,
        };
        let most = probes.accounting.next_look().map_or(most, |wait| wait.min(most));
        tick = if urgent || version != before { TICK } else { (tick * 3 / 2).min(most) };
    }
}

/// Notes which CPUs are online, and lets the sampling clock tick where recorded threads run.
fn follow(common: &Common, probes: &mut Probes, online: &mut Vec<u32>) {
    match aya::util::online_cpus() {
        Ok(now) if now != *online => {
            log::debug!("CPUs {now:?} are online");
            online.clone_from(&now);
            *common.online.lock().unwrap_or_else(PoisonError::into_inner) = Some(now);
        }
        Ok(_) => {}
        Err((path, error)) => return log::debug!("cannot read {path}: {error}"),
    }
    let Probes { ebpf, clock: Some(clock), .. } = probes else { return };
    match clock.follow(ebpf, &common.shared, online) {
        Ok(missed) => drop(common.shared.ticks_missed.fetch_add(missed, Ordering::Relaxed)),
        Err(error) => log::warn!("samples are not taken on all CPUs: {error}"),
    }
}

fn reap_exited(common: &Common, probes: &mut Probes) {
    probes.operations.reap_exited(&mut probes.ebpf);
    let gone = |pid: u32| !common.shared.is_tracked(pid);
    if probes.functions.processes().any(gone) {
        probes.functions.remove_processes(&gone);
    }
}

/// Removes the probes from files that have been written to, so that the next process that maps such a file finds no
/// breakpoint in it.
fn forget_the_changed(probes: &mut Probes) {
    let time_ns = now_ns();
    let Probes { functions, operations, notes, .. } = probes;
    for (pid, why) in functions.drop_changed() {
        log::warn!("process {pid} has no function probes any more: {why}");
        let reason = GapReason::NotProbed;
        let kind = NoteKind::Gap { pid, cpu: None, until_ns: u64::MAX, lost: 0, reason };
        notes.push(Note { time_ns, kind });
    }
    for (pid, why) in operations.drop_changed(time_ns, notes) {
        log::warn!("the locks of process {pid} are not recorded any more: {why}");
    }
}

/// Removes the probes of functions that the kernel programs have cut off.
fn enforce_rate_limit(common: &Common, probes: &mut Probes, budget: &mut Budget) {
    let Probes { ebpf, functions, operations, notes, .. } = probes;
    let hot = operations.remove_hot(ebpf, notes);
    budget.forget(|number| hot.contains(&number));
    let mut hot = BTreeMap::new();
    for function in functions.functions() {
        if let Some(counters) = common.shared.function(function.id)
            && counters.cut_ns != 0
        {
            hot.insert(function.id, counters);
        }
    }
    if hot.is_empty() {
        return;
    }
    // Without a limit, nothing would restore the probes that are removed along with others.
    if budget.is_limited() && functions.functions().nth(MANY).is_some() {
        let over_budget = hot.keys().copied().collect();
        disable_at_once(functions, budget, notes, &over_budget, true);
    } else if let Err(error) = functions.remove_probes(ebpf, &|number| hot.contains_key(&number)) {
        log::warn!("functions called too often keep their probes: {error}");
    }
    budget.forget(|number| hot.contains_key(&number));
    for (number, counters) in hot {
        notes.push(Note {
            time_ns: counters.cut_ns,
            kind: NoteKind::ProbesOff { functions: vec![number], rates: vec![rate_when_cut(&counters)] },
        });
    }
}

/// Attaches or removes the programs that follow packets over the loopback device, depending on how useful they are.
fn follow_packets(common: &Common, probes: &mut Probes, watch: &mut PacketWatch) {
    let total = common.shared.cpu_totals();
    let counts = PacketCounts {
        interrupts: total.network_interrupts,
        own: total.own_packets,
        possible: total.possible_own_packets,
    };
    let time_ns = now_ns();
    match watch.look(time_ns, counts) {
        Some(true) => {
            probes.network = attach_network(&mut probes.ebpf, &probes.kernel);
            probes.note_packets(time_ns, counts.possible);
        }
        Some(false) => {
            // No thread must wait until the last CPU has left the programs.
            drop(close_together(std::mem::take(&mut probes.network)));
            probes.not_followed = Some((time_ns, counts.possible));
        }
        None => return,
    }
    probes.accounting.measure_soon();
    log::debug!("{} programs follow packets; {counts:?}", probes.network.len());
}

/// Counts requests all the time while that is cheap, else in stretches.
fn count_requests(probes: &mut Probes) {
    let Probes { ebpf, requests: Some(requests), accounting, .. } = probes else { return };
    accounting.charge(requests.look(ebpf, accounting.has_budget()));
}

/// When recording costs more than it may, removes probes for some time, the most expensive first; when there is room,
/// restores some. Also adjusts the number of samples.
fn enforce_budget(
    common: &Common,
    probes: &mut Probes,
    budget: &mut Budget,
    samplings: &mut [AdaptiveSampling; 2],
) {
    let unwanted = &probes.unwanted;
    if !unwanted.is_empty() {
        budget.forget(|number| unwanted.contains(&number));
    }
    let spent = common.look(probes);
    let Probes { ebpf, clock, .. } = probes;
    let [of_ticks, of_events] = samplings;
    if let Some(clock) = clock {
        let slower = of_ticks.look(&spent.on_ticks()).map_or(Ok(()), |level| clock.slow(ebpf, level));
        let rarer = of_events
            .look(&spent.on_events())
            .map_or(Ok(()), |level| sampling_clock::space_events(ebpf, level));
        if let Err(error) = slower.and(rarer) {
            log::warn!("samples are not taken any more as they should be: {error}");
        }
    }
    let Decision { remove, restore } = budget.look(&spent);
    if !remove.is_empty() || !restore.is_empty() {
        log::debug!("budget: {spent:?}; off: {remove:?}, on: {restore:?}");
    }
    let Probes { ebpf, functions, operations, notes, .. } = probes;
    let (of_libc, remove): (Vec<u32>, Vec<u32>) =
        remove.into_iter().partition(|number| operations.is_counters(*number));
    if !of_libc.is_empty() {
        // If a lock were recorded only at times, it would seem to be free in between. So these probes are removed
        // permanently.
        operations.remove_probes(ebpf, now_ns(), &|number| of_libc.contains(&number), notes);
        budget.forget(|number| of_libc.contains(&number));
    }
    if !remove.is_empty() {
        // Calls are incomplete from now on; when the last probe is gone is not known as exactly.
        let time_ns = now_ns();
        let over_budget = remove.iter().copied().collect();
        if functions.functions().nth(MANY).is_some() {
            disable_at_once(functions, budget, notes, &over_budget, false);
        } else if let Err(error) = functions.disable(ebpf, &over_budget) {
            log::warn!("functions over the budget keep their probes: {error}");
        }
        let rates = vec![0; remove.len()];
        notes.push(Note { time_ns, kind: NoteKind::ProbesOff { functions: remove, rates } });
    }
    if !restore.is_empty() {
        match functions.enable(ebpf, &restore.iter().copied().collect()) {
            Ok(()) => {
                let kind = NoteKind::ProbesOn { functions: restore, pid: None };
                notes.push(Note { time_ns: now_ns(), kind });
            }
            // Some may have probes again: their hits are ignored, and samples still show all of them.
            Err(error) => log::warn!("functions with room in the budget get no probes: {error}"),
        }
    }
}

/// Removes probes without attaching new links for the other functions on the same links: their probes come back
/// later.
fn disable_at_once(
    functions: &mut FunctionProbes,
    budget: &mut Budget,
    notes: &mut Vec<Note>,
    over_budget: &BTreeSet<u32>,
    for_good: bool,
) {
    let time_ns = now_ns();
    let all = functions.disable_at_once(over_budget, for_good);
    let along: Vec<u32> = all.difference(over_budget).copied().collect();
    log::debug!(
        "{} functions lose their probes at once, {} of them along with others",
        all.len(),
        along.len()
    );
    budget.disabled_along(along.iter().copied(), time_ns);
    if !along.is_empty() {
        let rates = vec![0; along.len()];
        notes.push(Note { time_ns, kind: NoteKind::ProbesOff { functions: along, rates } });
    }
}

/// Calls per second between the start of the window in which the limit was passed and that moment. The rate is at least
/// the limit, since the window had not ended.
fn rate_when_cut(counters: &FunctionCounters) -> u64 {
    let start_ns = counters.window << RATE_WINDOW_SHIFT;
    let elapsed_ns = counters.cut_ns.saturating_sub(start_ns).max(1);
    let rate = u128::from(counters.window_calls) * 1_000_000_000 / u128::from(elapsed_ns);
    u64::try_from(rate).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_function_s_rate_is_that_of_its_last_window() {
        let window = 1u64 << RATE_WINDOW_SHIFT;
        let counters =
            FunctionCounters { calls: 9, window: 3, window_calls: 500, cut_ns: 3 * window + 5_000_000 };
        assert_eq!(rate_when_cut(&counters), 100_000);
        let at_once = FunctionCounters { cut_ns: 3 * window, ..counters };
        assert_eq!(rate_when_cut(&at_once), 500_000_000_000);
    }
}
