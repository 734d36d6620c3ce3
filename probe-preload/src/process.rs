//! Coming up in a process: the shared memory, and whose records are wanted.
//!
//! **The epoch** tells a forked child from its parent without a handler that would have to be registered, and whatever
//! way it was forked: it lies in a page that the kernel wipes in the child. A thread's ring counts only as long as
//! the thread's copy of the epoch is the page's. A child that shares its parent's memory (`vfork`) shares the epoch,
//! too: what it does on its parent's stack counts as its parent's.

use crate::{clock, filter, real, system};
use core::ffi::c_char;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use probe_abi::interpose::{SHARED_MAGIC, SHARED_VARIABLE, SHARED_VERSION, SharedLayout, SharedWord};

/// Epochs below this are no process: 0 is a page just wiped, 1 a process that is not recorded.
const FIRST_EPOCH: u64 = 2;
const NOT_RECORDED: u64 = 1;

/// How far coming up has got.
const NEW: u32 = 0;
const STARTING: u32 = 1;
const READY: u32 = 2;
const OFF: u32 = 3;
static STATE: AtomicU32 = AtomicU32::new(NEW);

/// Before there is a page: nobody is recorded.
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

/// Address of the vDSO's clock, 0 as long as it is not known: for [`clock`] alone.
#[inline(always)]
pub fn clock_function() -> &'static AtomicUsize {
    &ASKED.clock
}

/// Whether the process, or the one it was forked from, is in the machine's first PID namespace; whether that was asked.
static KNOWN: AtomicBool = AtomicBool::new(false);
static SEEN: AtomicBool = AtomicBool::new(false);

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

/// Whether this epoch is that of a recorded process.
#[inline(always)]
pub fn is_recorded(epoch: u64) -> bool {
    epoch >= FIRST_EPOCH
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
        // SAFETY: aligned, as the mapping is; nobody touches it in another width.
        unsafe { &*word }
    }

    /// Somebody should come, before it would by itself.
    #[cold]
    #[inline(never)]
    pub fn ring(&self) {
        if filter::is_filtered() {
            return;
        }
        let bell = self.bell();
        // Whoever rang before has woken the reader.
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
    if STATE.load(Ordering::Acquire) == NEW
        && STATE.compare_exchange(NEW, STARTING, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    {
        let up = start(real::environment());
        STATE.store(if up { READY } else { OFF }, Ordering::Release);
    }
    // Others come by while one starts: a signal handler, or threads of a library's constructor. They are let through.
    if STATE.load(Ordering::Acquire) == READY && epoch() == 0 {
        enter();
    }
}

/// When the library is loaded, before the program's own constructors; calls from other libraries' may come earlier.
pub extern "C" fn on_load() {
    look();
    crate::export::find_all();
}

#[cfg(not(test))]
#[used]
#[unsafe(link_section = ".init_array")]
static ON_LOAD: extern "C" fn() = on_load;

/// A process that has not been seen: the program itself, or a child just forked.
fn enter() {
    let Some(shared) = shared() else { return };
    let pid = system::pid();
    let is_root = shared.word(SharedWord::ROOT_PID).load(Ordering::Relaxed) == u64::from(pid);
    let wanted = is_root || shared.word(SharedWord::CHILDREN).load(Ordering::Relaxed) == 1;
    // In a PID namespace of its own it does not know the numbers that the kernel's records have. A child under a filter,
    // which may forbid to ask, is taken to be where its parent was.
    let known = if filter::is_filtered() && SEEN.load(Ordering::Relaxed) {
        KNOWN.load(Ordering::Relaxed)
    } else {
        system::in_first_pid_namespace().unwrap_or(is_root)
    };
    KNOWN.store(known, Ordering::Relaxed);
    SEEN.store(true, Ordering::Relaxed);
    if wanted && !known {
        shared.word(SharedWord::FOREIGN).fetch_add(1, Ordering::Relaxed);
    }
    let wanted = wanted && known;
    let epoch = if wanted { epoch_of(pid) } else { NOT_RECORDED };
    let page = ASKED.epoch.load(Ordering::Relaxed);
    // SAFETY: `ASKED.epoch` always points to an atomic number that lives as long as the process.
    let entered = unsafe { &*page }.compare_exchange(0, epoch, Ordering::Relaxed, Ordering::Relaxed);
    if wanted && entered.is_ok() {
        shared.word(SharedWord::PROCESSES).fetch_add(1, Ordering::Relaxed);
        // Until somebody has read in the kernel's rings that there is another program, its functions have no probes.
        shared.ring();
    }
}

/// Maps what is needed. `false`: this process is not recorded.
fn start(environment: Option<*const *const c_char>) -> bool {
    clock::find();
    ASKED.glibc.store(real::is_glibc(), Ordering::Relaxed);
    let Some(descriptor) = environment.and_then(variable).and_then(Descriptor::parse) else { return false };
    let Some(page) = system::map_wiped_on_fork() else { return false };
    let Some(layout) = descriptor.map() else { return false };
    ASKED.rings.store(layout.rings, Ordering::Relaxed);
    ASKED.ring_records.store(layout.ring_records, Ordering::Relaxed);
    if let Some(shared) = shared() {
        filter::look_at_start(shared.word(SharedWord::FILTERS).load(Ordering::Relaxed));
        if filter::is_filtered() {
            shared.word(SharedWord::SILENT).store(1, Ordering::Relaxed);
        }
    }
    ASKED.epoch.store(page.cast(), Ordering::Release);
    true
}

fn map(fd: i32, bytes: usize) -> Option<SharedLayout> {
    if bytes < system::PAGE {
        return None;
    }
    let words: *mut AtomicU64 = system::map_shared(fd, bytes)?.cast();
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

/// Where the shared memory is, as longpole has put it into the environment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Descriptor {
    fd: i32,
    device: u64,
    inode: u64,
    /// Processes that have it under this number.
    others: [u32; 2],
}

impl Descriptor {
    fn parse(mut text: Text) -> Option<Descriptor> {
        let fd = i32::try_from(text.number(b':')?).ok()?;
        let (device, inode) = (text.number(b':')?, text.number(b':')?);
        let others = [text.number(b':')?, text.number(0)?];
        let [Ok(a), Ok(b)] = others.map(u32::try_from) else { return None };
        Some(Descriptor { fd, device, inode, others: [a, b] })
    }

    /// Maps the shared memory. The inherited descriptor may have been closed, or be another file's by now: there are
    /// programs that close what they do not know before they start others.
    fn map(self) -> Option<SharedLayout> {
        if let Some(bytes) = self.bytes(self.fd) {
            return map(self.fd, bytes);
        }
        self.others.into_iter().find_map(|pid| {
            let fd = system::open_of(pid, u32::try_from(self.fd).ok()?)?;
            let layout = self.bytes(fd).and_then(|bytes| map(fd, bytes));
            system::close(fd);
            layout
        })
    }

    /// Size of the file, if the descriptor is that file's.
    fn bytes(self, fd: i32) -> Option<usize> {
        let (device, inode, bytes) = system::status(fd)?;
        if (device, inode) != (self.device, self.inode) {
            return None;
        }
        usize::try_from(bytes).ok()
    }
}

/// A NUL-ended text, read byte by byte: what compares and measures texts elsewhere is libc, or allocates.
#[derive(Clone, Copy)]
pub struct Text(*const c_char);

impl Text {
    /// # Safety
    /// The text is NUL-ended and stays as it is.
    pub unsafe fn new(text: *const c_char) -> Text {
        Text(text)
    }

    /// The next byte; 0 at the end, however often it is asked for.
    fn next(&mut self) -> u8 {
        // SAFETY: this is inside the text or its NUL, behind which nobody steps.
        let byte = unsafe { self.0.read() } as u8;
        if byte != 0 {
            self.0 = self.0.wrapping_add(1);
        }
        byte
    }

    /// What is behind these bytes, if the text begins with them.
    fn behind(mut self, beginning: &[u8]) -> Option<Text> {
        beginning.iter().all(|&byte| self.next() == byte).then_some(self)
    }

    /// Whether it is this text.
    pub fn is(self, text: &[u8]) -> bool {
        self.behind(text).is_some_and(|mut rest| rest.next() == 0)
    }

    /// The decimal number up to this byte.
    fn number(&mut self, end: u8) -> Option<u64> {
        let mut number = None;
        loop {
            let byte = self.next();
            if byte == end {
                return number;
            }
            let digit = byte.checked_sub(b'0').filter(|&digit| digit < 10)?;
            number = Some(number.unwrap_or(0u64).checked_mul(10)?.checked_add(u64::from(digit))?);
        }
    }
}

/// The value of [`SHARED_VARIABLE`].
fn variable(mut list: *const *const c_char) -> Option<Text> {
    loop {
        // SAFETY: an entry of the environment; the last one is null and ends the loop.
        let entry = unsafe { list.read() };
        if entry.is_null() {
            return None;
        }
        // SAFETY: entries of the environment are NUL-ended.
        let entry = unsafe { Text::new(entry) };
        let value = entry.behind(SHARED_VARIABLE.as_bytes()).and_then(|rest| rest.behind(b"="));
        if value.is_some() {
            return value;
        }
        // SAFETY: this was not the last entry.
        list = unsafe { list.add(1) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::ffi::CStr;

    fn text(text: &'static CStr) -> Text {
        // SAFETY: it is NUL-ended and static.
        unsafe { Text::new(text.as_ptr()) }
    }

    #[test]
    fn a_descriptor_is_three_numbers_and_nothing_else() {
        let good = Descriptor { fd: 700, device: 1, inode: u64::MAX, others: [5, 6] };
        assert_eq!(Descriptor::parse(text(c"700:1:18446744073709551615:5:6")), Some(good));
        for bad in [
            c"",
            c"7:1:2:3:4:5",
            c"7:1:2:3:4294967296",
            c"7",
            c"7:1",
            c"7:1:",
            c"7:1:2:",
            c"7:1:2:3",
            c"-7:1:2",
            c"x:1:2",
            c"7:1:18446744073709551616",
        ] {
            assert_eq!(Descriptor::parse(text(bad)), None, "{bad:?}");
        }
    }

    #[test]
    fn the_variable_is_found_by_its_whole_name() {
        let list = [c"A=1", c"LONGPOLE_INTERPOSER=9", c"LONGPOLE_INTERPOSE=7:1:2", c"Z="].map(CStr::as_ptr);
        let mut ended = std::vec::Vec::from(list);
        ended.push(core::ptr::null());
        assert!(variable(ended.as_ptr()).is_some_and(|value| value.is(b"7:1:2")));
        let none = [c"A=1".as_ptr(), core::ptr::null()];
        assert!(variable(none.as_ptr()).is_none());
    }
}
