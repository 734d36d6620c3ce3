//! Coming up in a process: the shared memory, and whose records are wanted.
//!
//! **The epoch** distinguishes a forked child from its parent without a registered handler, for any way of
//! forking: it is in a page that the kernel wipes in the child. A thread's ring counts only as long as the
//! thread's copy of the epoch is the page's. A child that shares its parent's memory (`vfork`) shares the
//! epoch, too: what it does on its parent's stack counts as its parent's.
//!
//! **When the library is loaded it only reads one variable**, so that a program without any synchronization operation pays
//! for the mapping and little else. It comes up with the first operation, or just before the program does what would keep
//! it from coming up later ([`crate::last_moment`]).

use crate::descriptor::Descriptor;
use crate::{clock, memory, mutex, real, restricted, seccomp, system};
use core::ffi::c_char;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use probe_abi::interpose::{CONTROL_WORDS, SHARED_MAGIC, SHARED_VERSION, SharedLayout, SharedWord};

/// Epochs below this are no process: 0 is a page just wiped, 1 a process that is not recorded, 2 one that may not be:
/// its operations are counted.
const FIRST_EPOCH: u64 = 3;
const NOT_RECORDED: u64 = 1;
const FORBIDDEN: u64 = 2;

/// How far coming up has got.
const NEW: u32 = 0;
const STARTING: u32 = 1;
const READY: u32 = 2;
const OFF: u32 = 3;
static STATE: AtomicU32 = AtomicU32::new(NEW);

/// Before there is a page: nothing is recorded.
static NO_EPOCH: AtomicU64 = AtomicU64::new(0);

/// What every operation asks for, in one cache line: between two operations the program has used the caches for itself.
#[repr(C, align(64))]
struct Asked {
    epoch: AtomicPtr<AtomicU64>,
    /// The shared memory. Set once, before the first epoch; so are the next two.
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

/// Address of the vDSO's clock, 0 as long as it is not known; only for [`clock`].
#[inline(always)]
pub fn clock_function() -> &'static AtomicUsize {
    &ASKED.clock
}

/// The process, or the one it was forked from, as far as the kernel was asked; 0: it was not.
static PID: AtomicU32 = AtomicU32::new(0);
/// Whether that one's numbers and clock are those of the kernel's records.
static KNOWN: AtomicBool = AtomicBool::new(false);
/// Whether the program was started without the time stamp counter.
static NO_CLOCK: AtomicBool = AtomicBool::new(false);

/// The process's epoch now; 0 or 1 if it is not recorded, or has not yet asked.
#[inline(always)]
pub fn epoch() -> u64 {
    let page = ASKED.epoch.load(Ordering::Relaxed);
    // SAFETY: `ASKED.epoch` always points to an atomic number that lives as long as the process.
    unsafe { &*page }.load(Ordering::Relaxed)
}

/// The epoch of a process.
pub fn epoch_of(pid: u32) -> u64 {
    FIRST_EPOCH + u64::from(pid)
}

/// The process of a recorded process's epoch.
pub fn process_of(epoch: u64) -> u32 {
    epoch.wrapping_sub(FIRST_EPOCH) as u32
}

/// Whether this epoch is that of a recorded process.
#[inline(always)]
pub fn is_recorded(epoch: u64) -> bool {
    epoch >= FIRST_EPOCH
}

/// Whether this epoch is that of a process whose operations are only counted.
pub fn is_forbidden(epoch: u64) -> bool {
    epoch == FORBIDDEN
}

/// From here on this process's operations are only counted.
pub fn forbid() {
    let page = ASKED.epoch.load(Ordering::Relaxed);
    if page.cast_const() != &raw const NO_EPOCH {
        // SAFETY: `ASKED.epoch` always points to an atomic number that lives as long as the process.
        unsafe { &*page }.store(FORBIDDEN, Ordering::Relaxed);
    }
}

/// The memory shared with longpole.
#[derive(Clone, Copy)]
pub struct Shared {
    words: *const AtomicU64,
    pub layout: SharedLayout,
}

impl Shared {
    /// A word of it.
    #[inline(always)]
    pub fn word(&self, index: usize) -> &'static AtomicU64 {
        debug_assert!(index < self.layout.words());
        // SAFETY: `words` is a mapping of the layout's size that is never taken away, and indices come from the layout.
        let word = unsafe { self.words.add(index) };
        // SAFETY: aligned, as the mapping is.
        unsafe { &*word }
    }

    /// [`SharedWord::BELL`], which is half as wide as the others.
    fn bell(&self) -> &'static AtomicU32 {
        // SAFETY: the header is one page, and that much is mapped.
        let word = unsafe { self.words.add(SharedWord::BELL) }.cast::<AtomicU32>();
        // SAFETY: aligned, as the mapping is; accessed in no other width.
        unsafe { &*word }
    }

    /// The ring reader should come earlier than it would by itself.
    #[cold]
    #[inline(never)]
    pub fn ring(&self) {
        if seccomp::is_filtered() {
            return;
        }
        let bell = self.bell();
        // The thread that rang before has woken the reader.
        if bell.load(Ordering::Relaxed) == 0 && bell.swap(1, Ordering::AcqRel) == 0 {
            system::wake(bell);
        }
    }

    /// A process will not ring from now on: it may be forbidden.
    pub fn falls_silent(&self) {
        self.word(SharedWord::SILENT).store(1, Ordering::Relaxed);
        // For the last time, so that it is known at once.
        if self.bell().swap(1, Ordering::AcqRel) == 0 {
            system::wake(self.bell());
        }
    }

    /// The address of the ring whose control block is at this one.
    pub fn ring_of(&self, control: usize) -> Option<usize> {
        let words = control.checked_sub(self.words as usize)? / size_of::<u64>();
        let ring = words.checked_sub(self.layout.control(0))? / CONTROL_WORDS;
        (ring < self.layout.rings).then(|| core::ptr::from_ref(self.word(self.layout.ring(ring))) as usize)
    }

    /// Where the rings are mapped from, and how large each is, in bytes.
    pub fn rings_at(&self) -> (usize, usize) {
        let first = self.layout.ring(0);
        let bytes = (self.layout.ring(1) - first) * size_of::<u64>();
        (self.words as usize + first * size_of::<u64>(), bytes)
    }

    /// Whether longpole still listens.
    #[inline(always)]
    pub fn is_recording(&self) -> bool {
        self.word(SharedWord::RECORDING).load(Ordering::Relaxed) == 1
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

/// Whether objects are laid out as glibc does it.
#[inline(always)]
pub fn is_glibc() -> bool {
    ASKED.glibc.load(Ordering::Relaxed)
}

/// Whether libc knows of no other thread in this process.
#[inline(always)]
pub fn has_one_thread() -> bool {
    let place = real::single_threaded();
    // SAFETY: libc's own `char`, or its copy in the program, which is never taken away.
    place != 0 && unsafe { AtomicU8::from_ptr(place as *mut u8) }.load(Ordering::Relaxed) != 0
}

/// Comes up, if that has not been tried yet, and takes note of a fork. Afterwards [`epoch`] tells.
#[cold]
#[inline(never)]
pub fn look() {
    let environment = real::environment();
    if environment.is_none() && Descriptor::remembered().is_none() {
        // Before libc itself has come up: sanitizers do things then. It will be asked again.
        return;
    }
    if STATE.load(Ordering::Acquire) == NEW
        && STATE.compare_exchange(NEW, STARTING, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    {
        // Before a first call from a signal handler, or from a child that was forked while another thread had the
        // loader's locks.
        crate::export::find_all();
        let up = start(environment);
        STATE.store(if up { READY } else { OFF }, Ordering::Release);
    }
    // Others come by while one starts: a signal handler, or threads of a library's constructor. They are let through.
    if STATE.load(Ordering::Acquire) == READY && epoch() == 0 {
        enter();
    }
}

/// As [`look`], and waits where another test's thread is at it: other threads pass meanwhile, without a
/// result.
#[cfg(test)]
pub fn look_until_up() {
    look();
    while STATE.load(Ordering::Acquire) == STARTING {
        std::thread::yield_now();
    }
}

/// When the library is loaded: programs change their environment, or write over it. Operations may come before.
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

/// A new process: the program itself, or a child just forked.
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
    // A child under a filter, which may forbid to ask, is taken to be where its parent was.
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
    // SAFETY: `ASKED.epoch` always points to an atomic number that lives as long as the process.
    let entered = unsafe { &*page }.compare_exchange(0, epoch, Ordering::Relaxed, Ordering::Relaxed);
    if wanted && entered.is_ok() {
        shared.word(SharedWord::PROCESSES).fetch_add(1, Ordering::Relaxed);
        // Until longpole has read in the kernel's rings that there is another program, its functions have no
        // probes.
        shared.ring();
    }
}

/// The number of this process; `None` if it is unknown: the next operation may know it.
fn own_number(first: bool) -> Option<u32> {
    if seccomp::is_filtered() {
        // Asking may be forbidden. The C library's fork has noted the only thread's number, another one has left the
        // parent's there.
        let before = [PID.load(Ordering::Relaxed), crate::tls::tls().ids.get() as u32];
        return mutex::thread_number().filter(|number| !before.contains(number));
    }
    if first && mutex::thread_number().is_some_and(|number| number != system::tid()) {
        // A child that shares its parent's memory (`vfork`): the parent is to come up as itself.
        return None;
    }
    Some(system::pid())
}

/// Whether a process's numbers and its clock are those of the kernel's records; says so if not.
fn is_known(shared: &Shared, wanted: bool, is_root: bool) -> bool {
    let count = |word: usize| {
        if wanted {
            shared.word(word).fetch_add(1, Ordering::Relaxed);
        }
    };
    let [numbers, clock] = system::in_first_namespaces();
    // Kernels without time namespaces have one clock.
    let [numbers, clock] = [numbers.unwrap_or(is_root), clock.unwrap_or(true)];
    if !numbers {
        count(SharedWord::FOREIGN);
    } else if !clock {
        count(SharedWord::FOREIGN_CLOCK);
    }
    numbers && clock
}

/// Whether reading the clock may end this process.
fn may_not_read_the_clock(shared: &Shared) -> bool {
    NO_CLOCK.load(Ordering::Relaxed) || seccomp::is_filtered() && !is_clock_free(shared)
}

/// Whether the clock is read without a system call.
pub fn is_clock_free(shared: &Shared) -> bool {
    clock_function().load(Ordering::Relaxed) != 0
        && shared.word(SharedWord::CLOCK).load(Ordering::Relaxed) == 1
}

/// Maps what is needed. `false`: this process is not recorded.
fn start(environment: Option<*const *const c_char>) -> bool {
    ASKED.glibc.store(real::is_glibc(), Ordering::Relaxed);
    let Some(descriptor) = Descriptor::remembered().or_else(|| Descriptor::in_environment(environment))
    else {
        return false;
    };
    // A filter that came with the program may forbid what follows: it is asked for with calls that the loader has made
    // as well. longpole's own filters let everything through.
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
    // What the program was given is its own.
    let has_room = system::most_addresses() / memory::PART_OF_ADDRESSES >= bytes as u64;
    let Some(words) = has_room.then(|| system::map_shared(fd, bytes)).flatten() else {
        says_not_up(fd);
        return None;
    };
    let words: *mut AtomicU64 = words.cast();
    let word = |index: usize| {
        // SAFETY: the header is one page, and that much is mapped.
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

/// There is no room for all of it: a page will do to say so.
fn says_not_up(fd: i32) {
    let Some(words) = system::map_shared(fd, system::PAGE) else { return };
    // SAFETY: the header is one page, and that much is mapped.
    let word = unsafe { words.cast::<AtomicU64>().add(SharedWord::NOT_UP) };
    // SAFETY: aligned, as the mapping is.
    unsafe { &*word }.fetch_add(1, Ordering::Relaxed);
    // SAFETY: nothing refers to the page any more.
    unsafe { system::unmap(words as usize, system::PAGE) };
}
