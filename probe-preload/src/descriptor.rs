//! Reads from the environment where the shared memory is, without libc. libc's text functions may allocate memory, and
//! the program may have replaced them.

use crate::system;
use core::ffi::c_char;
use core::sync::atomic::{AtomicU64, Ordering};
use probe_abi::interpose::{SHARED_VARIABLE, SharedLayout};

/// A descriptor in six words. The first word is the descriptor's number plus one. All words are 0 if no descriptor is
/// known.
static REMEMBERED: [AtomicU64; 6] = [const { AtomicU64::new(0) }; 6];

/// Where the shared memory is, as longpole has written it into the environment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Descriptor {
    fd: i32,
    device: u64,
    inode: u64,
    /// Two processes that have the memory under the same descriptor number.
    others: [u32; 2],
    /// Number of seccomp filters that longpole itself has.
    pub filters: u64,
}

impl Descriptor {
    /// Reads the descriptor from an environment.
    pub fn in_environment(list: Option<*const *const c_char>) -> Option<Descriptor> {
        list.and_then(variable).and_then(Descriptor::parse)
    }

    /// Stores the descriptor. Must be called before the process has a second thread.
    pub fn remember(self) {
        let [a, b] = self.others.map(u64::from);
        let words = [self.fd as u64 + 1, self.device, self.inode, a, b, self.filters];
        REMEMBERED.iter().zip(words).for_each(|(place, word)| place.store(word, Ordering::Relaxed));
    }

    /// The stored descriptor.
    pub fn remembered() -> Option<Descriptor> {
        let [fd, device, inode, a, b, filters] =
            REMEMBERED.each_ref().map(|word| word.load(Ordering::Relaxed));
        let fd = i32::try_from(fd.checked_sub(1)?).ok()?;
        Some(Descriptor { fd, device, inode, others: [a as u32, b as u32], filters })
    }

    /// Parses the value of the environment variable.
    fn parse(mut text: Text) -> Option<Descriptor> {
        let fd = i32::try_from(text.number(b':')?).ok()?;
        let (device, inode) = (text.number(b':')?, text.number(b':')?);
        let others = [text.number(b':')?, text.number(b':')?];
        let [Ok(a), Ok(b)] = others.map(u32::try_from) else { return None };
        Some(Descriptor { fd, device, inode, others: [a, b], filters: text.number(0)? })
    }

    /// Maps the shared memory. The inherited descriptor may be closed or belong to another file by now, because some
    /// programs close unknown descriptors before they start other programs. Then another process's descriptor is
    /// opened.
    pub fn map(self, map: impl Fn(i32, usize) -> Option<SharedLayout>) -> Option<SharedLayout> {
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

    /// Size of the shared memory in bytes. `None` if the descriptor belongs to another file.
    fn bytes(self, fd: i32) -> Option<usize> {
        let (device, inode, bytes) = system::status(fd)?;
        if (device, inode) != (self.device, self.inode) {
            return None;
        }
        usize::try_from(bytes).ok()
    }
}

/// A text that ends with a NUL. The text is read byte by byte, because libc's text functions must not be called.
#[derive(Clone, Copy)]
pub struct Text(*const c_char);

impl Text {
    /// # Safety
    /// The text ends with a NUL and does not change.
    pub unsafe fn new(text: *const c_char) -> Text {
        Text(text)
    }

    /// The next byte. At the end 0, as often as this is called.
    pub fn next(&mut self) -> u8 {
        // Volatile, because the compiler would otherwise replace a loop by a call of strlen. SAFETY: the address is
        // inside the text or is its NUL, and nothing after the NUL is read.
        let byte = unsafe { self.0.read_volatile() } as u8;
        if byte != 0 {
            self.0 = self.0.wrapping_add(1);
        }
        byte
    }

    /// The text after `beginning`; `None` if the text begins with something else.
    pub fn behind(mut self, beginning: &[u8]) -> Option<Text> {
        beginning.iter().all(|&byte| self.next() == byte).then_some(self)
    }

    /// Whether the text equals `text`.
    pub fn is(self, text: &[u8]) -> bool {
        self.behind(text).is_some_and(|mut rest| rest.next() == 0)
    }

    /// Reads a decimal number up to the byte `end`.
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
        // SAFETY: this is an entry of the environment. The last entry is null and ends the loop.
        let entry = unsafe { list.read() };
        if entry.is_null() {
            return None;
        }
        // SAFETY: entries of the environment end with a NUL.
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
        // SAFETY: the text ends with a NUL and is static.
        unsafe { Text::new(text.as_ptr()) }
    }

    #[test]
    fn a_descriptor_variable_is_six_numbers_and_nothing_else() {
        let good = Descriptor { fd: 700, device: 1, inode: u64::MAX, others: [5, 6], filters: 2 };
        assert_eq!(Descriptor::parse(text(c"700:1:18446744073709551615:5:6:2")), Some(good));
        for bad in [
            c"",
            c"7:1:2:3:4",
            c"7:1:2:3:4:5:6",
            c"7:1:2:3:4294967296:0",
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
        assert_eq!(Descriptor::remembered(), None);
        good.remember();
        assert_eq!(Descriptor::remembered(), Some(good));
        REMEMBERED.iter().for_each(|word| word.store(0, Ordering::Relaxed));
    }

    #[test]
    fn the_descriptor_variable_is_found_by_its_whole_name() {
        let list = [c"A=1", c"LONGPOLE_INTERPOSER=9", c"LONGPOLE_INTERPOSE=7:1:2", c"Z="].map(CStr::as_ptr);
        let mut ended = std::vec::Vec::from(list);
        ended.push(core::ptr::null());
        assert!(variable(ended.as_ptr()).is_some_and(|value| value.is(b"7:1:2")));
        let none = [c"A=1".as_ptr(), core::ptr::null()];
        assert!(variable(none.as_ptr()).is_none());
    }
}
