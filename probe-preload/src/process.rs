//! Initializes the library in a process: maps the shared memory, and decides whether the process is recorded.
//!
//! **The epoch** is a number that distinguishes a forked child from its parent, for every way of forking and without a
//! registered handler: the number is in a page that the kernel sets to 0 in the child. A thread's ring is valid only
//! while the thread's copy of the epoch equals the number in the page. A child that shares its parent's memory
//! (`vfork`) shares the epoch, too, so its operations count as its parent's.
//!
//! **At loading, the library only reads one environment variable.** So a program without any synchronization operation
//! does not pay for more than mapping the library. The library is initialized at the first operation, or just before
//! the program makes a call that would prevent the initialization ([`crate::watched::last_moment`]).

use crate::descriptor::Descriptor;
use crate::operations::mutex;
use crate::watched::{restricted, seccomp};
use crate::{clock, memory, real, system};
use core::ffi::c_char;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use probe_abi::interpose::{CONTROL_WORDS, SHARED_MAGIC, SHARED_VERSION, SharedLayout, SharedWord};

/// Smaller epochs belong to no recorded process. 0: the kernel has just set the page to 0. 1: the process is not
/// recorded. 2: the process may not be recorded, so its operations are only counted.
const FIRST_EPOCH: u64 = 3;
const NOT_RECORDED: u64 = 1;
const FORBIDDEN: u64 = 2;

/// The states of the initialization.
const NEW: u32 = 0;
const STARTING: u32 = 1;
const READY: u32 = 2;
const OFF: u32 = 3;
static STATE: AtomicU32 = AtomicU32::new(NEW);

/// The epoch as long as there is no page: nothing is recorded.
static NO_EPOCH: AtomicU64 = AtomicU64::new(0);

/// The values that every operation needs. These values share one cache line, because the program needs the caches for
/// itself between two operations.
#[repr(C, align(64))]
struct Asked {
    epoch: AtomicPtr<AtomicU64>,
    /// The shared memory. This field and the next two are set once, before the first epoch.
    words: AtomicPtr<AtomicU64>,
    rings: AtomicUsize,
    ring_records: AtomicUsize,
    clock: AtomicUsize,
    glibc: AtomicBool,
}
static ASKED: Asked = Asked {
    epoch: AtomicPtr::new((&raw const NO_EPOCH).cast_mut()),
    words: AtomicPtr::new(core::ptr::null_mut()),
    rings: AtomicUsize::new(0),
    ring_records: AtomicUsize::new(0),
    clock: AtomicUsize::new(0),
    glibc: AtomicBool::new(false),
};

/// Address of the vDSO's clock function; 0 if it is not known. Only [`clock`] uses it.
#[inline(always)]
pub fn clock_function() -> &'static AtomicUsize {
    &ASKED.clock
}

/// The kernel's PID of this process, or of the process from which it was forked; 0 if not read yet.
static PID: AtomicU32 = AtomicU32::new(0);
/// Whether the ids and the clock of that process are the same as in the kernel's records.
static KNOWN: AtomicBool = AtomicBool::new(false);
/// Whether the program was started without the right to read the time stamp counter.
static NO_CLOCK: AtomicBool = AtomicBool::new(false);

/// The process's present epoch. 0 or 1 if the process is not recorded, or if that is not known yet.
#[inline(always)]
pub fn epoch() -> u64 {
    let page = ASKED.epoch.load(Ordering::Relaxed);
    // SAFETY: `ASKED.epoch` always points to an atomic number that exists as long as the process.
    unsafe { &*page }.load(Ordering::Relaxed)
}

/// The epoch of a process.
pub fn epoch_of(pid: u32) -> u64 {
    FIRST_EPOCH + u64::from(pid)
}

/// The process to which an epoch belongs.
pub fn process_of(epoch: u64) -> u32 {
    epoch.wrapping_sub(FIRST_EPOCH) as u32
}

/// Whether this is the epoch of a recorded process.
#[inline(always)]
pub fn is_recorded(epoch: u64) -> bool {
    epoch >= FIRST_EPOCH
}

/// Whether this is the epoch of a process whose operations are only counted.
pub fn is_forbidden(epoch: u64) -> bool {
    epoch == FORBIDDEN
}

/// From now on the operations of this process are only counted.
pub fn forbid() {
    let page = ASKED.epoch.load(Ordering::Relaxed);
    if page.cast_const() != &raw const NO_EPOCH {
        // SAFETY: `ASKED.epoch` always points to an atomic number that exists as long as the process.
        unsafe { &*page }.store(FORBIDDEN, Ordering::Relaxed);
    }
}

/// The memory that the process shares with longpole.
#[derive(Clone, Copy)]
pub struct Shared {
    words: *const AtomicU64,
    pub layout: SharedLayout,
}

impl Shared {
    /// A word of the shared memory.
    #[inline(always)]
    pub fn word(&self, index: usize) -> &'static AtomicU64 {
        debug_assert!(index < self.layout.words());
        // SAFETY: `words` is a mapping of the layout's size that is never removed, and indices come from the layout.
        let word = unsafe { self.words.add(index) };
        // SAFETY: aligned, as the mapping is.
        unsafe { &*word }
    }

    /// The word [`SharedWord::BELL`], of which only 32 bits are used.
    fn bell(&self) -> &'static AtomicU32 {
        // SAFETY: the header is one page, and at least one page is mapped.
        let word = unsafe { self.words.add(SharedWord::BELL) }.cast::<AtomicU32>();
        // SAFETY: aligned, as the mapping is; accessed in no other width.
        unsafe { &*word }
    }

    /// Signals the doorbell, so that the ring reader empties the rings before its next regular turn.
    #[cold]
    #[inline(never)]
    pub fn ring(&self) {
        if seccomp::is_filtered() {
            return;
        }
        let bell = self.bell();
        // If another thread has already set the word, that thread has also woken the reader.
        if bell.load(Ordering::Relaxed) == 0 && bell.swap(1, Ordering::AcqRel) == 0 {
            system::wake(bell);
        }
    }

    /// Notes that a process will not signal the doorbell any more, because the system call for it may be forbidden.
    pub fn falls_silent(&self) {
        self.word(SharedWord::SILENT).store(1, Ordering::Relaxed);
        // The doorbell is signalled one last time, so that longpole notices at once.
        if self.bell().swap(1, Ordering::AcqRel) == 0 {
            system::wake(self.bell());
        }
    }

    /// The address of the ring whose control block is at `control`.
    pub fn ring_of(&self, control: usize) -> Option<usize> {
        let words = control.checked_sub(self.words as usize)? / size_of::<u64>();
        let ring = words.checked_sub(self.layout.control(0))? / CONTROL_WORDS;
        (ring < self.layout.rings).then(|| core::ptr::from_ref(self.word(self.layout.ring(ring))) as usize)
    }

    /// The address of the first ring, and the size of each ring in bytes.
    pub fn rings_at(&self) -> (usize, usize) {
        let first = self.layout.ring(0);
        let bytes = (self.layout.ring(1) - first) * size_of::<u64>();
        (self.words as usize + first * size_of::<u64>(), bytes)
    }

    /// The word [`SharedWord::RECORDING`], which says whether longpole wants records.
    #[inline(always)]
    pub fn recording(&self) -> u64 {
        self.word(SharedWord::RECORDING).load(Ordering::Relaxed)
    }
}

/// The shared memory of a recorded process.
#[inline(always)]
pub fn shared() -> Option<Shared> {
    let words = ASKED.words.load(Ordering::Relaxed);
    if words.is_null() {
        return None;
    }
    let layout = SharedLayout {
        rings: ASKED.rings.load(Ordering::Relaxed),
        ring_records: ASKED.ring_records.load(Ordering::Relaxed),
    };
    Some(Shared { words, layout })
}

/// Whether the C library is glibc, so that the layouts of its objects are known.
#[inline(always)]
pub fn is_glibc() -> bool {
    ASKED.glibc.load(Ordering::Relaxed)
}

/// Whether libc knows of no other thread in this process. False if libc has no such variable.
#[inline(always)]
pub fn has_one_thread() -> bool {
    let place = real::single_threaded();
    // SAFETY: this is libc's own `char`, or its copy in the program. Neither is ever unmapped.
    place != 0 && unsafe { AtomicU8::from_ptr(place as *mut u8) }.load(Ordering::Relaxed) != 0
}

/// Initializes the library if no thread has tried yet, and notices a fork. Afterwards [`epoch`] has the result.
#[cold]
#[inline(never)]
pub fn look() {
    let environment = real::environment();
    if environment.is_none() && Descriptor::remembered().is_none() {
        // A sanitizer may call functions before libc itself is initialized. The next operation tries again.
        return;
    }
    if STATE.load(Ordering::Acquire) == NEW
        && STATE.compare_exchange(NEW, STARTING, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    {
        // The functions are looked up now. A look-up later could happen in a signal handler, or in a child that was
        // forked while another thread had the loader's locks.
        crate::export::find_all();
        let up = start(environment);
        STATE.store(if up { READY } else { OFF }, Ordering::Release);
    }
    // While one thread initializes the library, others continue without it: signal handlers, and threads that a
    // library's constructor has started.
    if STATE.load(Ordering::Acquire) == READY && epoch() == 0 {
        enter();
    }
}

/// Like [`look`], but waits while the thread of another test initializes the library. Threads of a program would
/// continue without the library.
#[cfg(test)]
pub fn look_until_up() {
    look();
    while STATE.load(Ordering::Acquire) == STARTING {
        std::thread::yield_now();
    }
}

/// Stores the environment variable when the library is loaded, because programs change or overwrite their environment.
/// An operation may come before this.
#[cfg(not(test))]
extern "C" fn on_load() {
    if let Some(descriptor) = Descriptor::in_environment(real::environment()) {
        descriptor.remember();
    }
}

#[cfg(not(test))]
#[used]
#[unsafe(link_section = ".init_array")]
static ON_LOAD: extern "C" fn() = on_load;

/// Notes a new process: the program itself, or a child that has just been forked.
fn enter() {
    let Some(shared) = shared() else { return };
    let first = PID.load(Ordering::Relaxed) == 0;
    let Some(pid) = own_number(first) else {
        if !first {
            forbid();
        }
        return;
    };
    let is_root = shared.word(SharedWord::ROOT_PID).load(Ordering::Relaxed) == u64::from(pid);
    let wanted = is_root || shared.word(SharedWord::CHILDREN).load(Ordering::Relaxed) == 1;
    // If a filter may forbid the necessary system calls, a child is assumed to be in its parent's namespaces.
    if first || !seccomp::is_filtered() {
        KNOWN.store(is_known(&shared, wanted, is_root), Ordering::Relaxed);
    }
    PID.store(pid, Ordering::Relaxed);
    let wanted = wanted && KNOWN.load(Ordering::Relaxed);
    let epoch = match wanted {
        false => NOT_RECORDED,
        true if may_not_read_the_clock(&shared) => FORBIDDEN,
        true => epoch_of(pid),
    };
    let page = ASKED.epoch.load(Ordering::Relaxed);
    // SAFETY: `ASKED.epoch` always points to an atomic number that exists as long as the process.
    let entered = unsafe { &*page }.compare_exchange(0, epoch, Ordering::Relaxed, Ordering::Relaxed);
    if wanted && entered.is_ok() {
        shared.word(SharedWord::PROCESSES).fetch_add(1, Ordering::Relaxed);
        // The program's functions have no probes until longpole has read about the program in the kernel's rings. So
        // longpole is woken.
        shared.ring();
    }
}

/// The PID of this process. `None` if it is not known now; the next operation may find it.
fn own_number(first: bool) -> Option<u32> {
    if seccomp::is_filtered() {
        // The system call may be forbidden. libc's fork has stored the new number for the child's only thread. After
        // another way of forking, the parent's number is still stored.
        let before = [PID.load(Ordering::Relaxed), crate::tls::tls().ids.get() as u32];
        return mutex::thread_number().filter(|number| !before.contains(number));
    }
    if first && mutex::thread_number().is_some_and(|number| number != system::tid()) {
        // This is a child that shares its parent's memory (`vfork`). An initialization here would give the parent the
        // child's number.
        return None;
    }
    Some(system::pid())
}

/// Whether the ids and the clock of the process are the same as in the kernel's records. If not, the process is
/// counted.
fn is_known(shared: &Shared, wanted: bool, is_root: bool) -> bool {
    let count = |word: usize| {
        if wanted {
            shared.word(word).fetch_add(1, Ordering::Relaxed);
        }
    };
    let [numbers, clock] = system::in_first_namespaces();
    // A kernel without time namespaces has only one clock.
    let [numbers, clock] = [numbers.unwrap_or(is_root), clock.unwrap_or(true)];
    if !numbers {
        count(SharedWord::FOREIGN);
    } else if !clock {
        count(SharedWord::FOREIGN_CLOCK);
    }
    numbers && clock
}

/// Whether the kernel may end this process for reading the clock.
fn may_not_read_the_clock(shared: &Shared) -> bool {
    NO_CLOCK.load(Ordering::Relaxed) || seccomp::is_filtered() && !is_clock_free(shared)
}

/// Whether the clock can be read without a system call.
pub fn is_clock_free(shared: &Shared) -> bool {
    clock_function().load(Ordering::Relaxed) != 0
        && shared.word(SharedWord::CLOCK).load(Ordering::Relaxed) == 1
}

/// Maps the shared memory. `false`: this process is not recorded.
fn start(environment: Option<*const *const c_char>) -> bool {
    ASKED.glibc.store(real::is_glibc(), Ordering::Relaxed);
    let Some(descriptor) = Descriptor::remembered().or_else(|| Descriptor::in_environment(environment))
    else {
        return false;
    };
    // A filter that an ancestor of the program has installed may forbid the next calls. The check uses only system
    // calls that the loader has made, too. longpole's own filters allow everything.
    if system::filters().is_none_or(|filters| filters > descriptor.filters) {
        return false;
    }
    clock::find();
    NO_CLOCK.store(system::has_lost_the_clock(), Ordering::Relaxed);
    if NO_CLOCK.load(Ordering::Relaxed) {
        restricted::clock_is_lost();
    }
    let Some(page) = system::map_wiped_on_fork() else { return false };
    let Some(layout) = descriptor.map(map) else { return false };
    ASKED.rings.store(layout.rings, Ordering::Relaxed);
    ASKED.ring_records.store(layout.ring_records, Ordering::Relaxed);
    ASKED.epoch.store(page.cast(), Ordering::Release);
    true
}

fn map(fd: i32, bytes: usize) -> Option<SharedLayout> {
    if bytes < system::PAGE {
        return None;
    }
    // If the program has a limit on its address space, the shared memory may take only a small part of it.
    let has_room = system::most_addresses() / memory::PART_OF_ADDRESSES >= bytes as u64;
    let Some(words) = has_room.then(|| system::map_shared(fd, bytes)).flatten() else {
        says_not_up(fd);
        return None;
    };
    let words: *mut AtomicU64 = words.cast();
    let word = |index: usize| {
        // SAFETY: the header is one page, and at least one page is mapped.
        let word = unsafe { words.add(index) };
        // SAFETY: aligned, as the mapping is.
        unsafe { &*word }.load(Ordering::Relaxed)
    };
    let good = word(SharedWord::MAGIC) == SHARED_MAGIC && word(SharedWord::VERSION) == SHARED_VERSION;
    let [rings, ring_records] =
        [SharedWord::RINGS, SharedWord::RING_RECORDS].map(|i| usize::try_from(word(i)).unwrap_or(0));
    let layout =
        SharedLayout::new(rings, ring_records).filter(|layout| good && layout.words() * 8 <= bytes)?;
    ASKED.words.store(words, Ordering::Relaxed);
    Some(layout)
}

/// Counts a program whose address space has no room for the shared memory. Maps only the first page for this.
fn says_not_up(fd: i32) {
    let Some(words) = system::map_shared(fd, system::PAGE) else { return };
    // SAFETY: the header is one page, and at least one page is mapped.
    let word = unsafe { words.cast::<AtomicU64>().add(SharedWord::NOT_UP) };
    // SAFETY: aligned, as the mapping is.
    unsafe { &*word }.fetch_add(1, Ordering::Relaxed);
    // SAFETY: nothing refers to the page any more.
    unsafe { system::unmap(words as usize, system::PAGE) };
}
