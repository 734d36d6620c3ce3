//! Reads the caller's memory through the kernel. A caller may pass an invalid address to `execve`, for which the kernel
//! returns `EFAULT`. So no instruction of the library accesses the memory directly.

use crate::system;

/// Number of bytes that are read at a time: few enough that the compiler clears and moves them without calls of memset
/// and memcpy.
const WINDOW: usize = 64;

/// The error for memory that cannot be read, at least not in this way. The program's call then goes to the kernel
/// unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unreadable;

/// The bytes that were read last. The texts of an environment are mostly consecutive, so the next text is often among
/// them.
struct Window {
    start: usize,
    length: usize,
    held: [u8; WINDOW],
}

impl Window {
    fn new() -> Window {
        Window { start: 0, length: 0, held: [0; WINDOW] }
    }

    fn byte(&mut self, address: usize) -> Result<u8, Unreadable> {
        if address.wrapping_sub(self.start) >= self.length {
            // Reading stops at the end of a page, because the next page may not be mapped.
            let room = (system::PAGE - address % system::PAGE).min(WINDOW);
            self.start = address;
            self.length = self.held.get_mut(..room).map_or(0, |held| system::read_own(address, held));
        }
        let at = address.wrapping_sub(self.start);
        self.held.get(..self.length).and_then(|held| held.get(at)).copied().ok_or(Unreadable)
    }
}

/// Reads the caller's lists and texts.
pub struct Memory {
    lists: Window,
    texts: Window,
}

impl Memory {
    /// A reader that has read nothing yet.
    pub fn new() -> Memory {
        Memory { lists: Window::new(), texts: Window::new() }
    }

    /// An entry of a list of addresses. The list ends with 0.
    ///
    /// # Errors
    /// The entry cannot be read.
    pub fn entry(&mut self, list: usize, index: usize) -> Result<usize, Unreadable> {
        let address = list.wrapping_add(index.wrapping_mul(size_of::<usize>()));
        let mut bytes = [0u8; size_of::<usize>()];
        for (at, byte) in bytes.iter_mut().enumerate() {
            *byte = self.lists.byte(address.wrapping_add(at))?;
        }
        Ok(usize::from_ne_bytes(bytes))
    }

    /// A byte of a text.
    ///
    /// # Errors
    /// The byte cannot be read.
    pub fn byte(&mut self, address: usize) -> Result<u8, Unreadable> {
        self.texts.byte(address)
    }

    /// The address after `beginning` in the text at the address `text`. `None` if the text begins with something else.
    ///
    /// # Errors
    /// The text cannot be read.
    pub fn behind(&mut self, text: usize, beginning: &[u8]) -> Result<Option<usize>, Unreadable> {
        for (at, &expected) in beginning.iter().enumerate() {
            if self.byte(text.wrapping_add(at))? != expected {
                return Ok(None);
            }
        }
        Ok(Some(text.wrapping_add(beginning.len())))
    }

    /// Finds the first text in this list that begins with `beginning`, and returns the address after `beginning`.
    ///
    /// # Errors
    /// The list, or a text before the wanted one, cannot be read.
    pub fn find(&mut self, list: usize, beginning: &[u8]) -> Result<Option<usize>, Unreadable> {
        for index in 0.. {
            let text = self.entry(list, index)?;
            if text == 0 {
                break;
            }
            let behind = self.behind(text, beginning)?;
            if behind.is_some() {
                return Ok(behind);
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::ffi::CStr;

    #[test]
    fn reading_memory_that_is_not_mapped_is_an_error_and_no_fault() {
        let mut memory = Memory::new();
        let long = std::format!("NAME={}\0", "x".repeat(9000));
        let text = long.as_ptr() as usize;
        assert_eq!(memory.behind(text, b"NAME="), Ok(Some(text + 5)));
        assert_eq!(memory.behind(text, b"OTHER="), Ok(None));
        assert_eq!((memory.byte(text + 9004), memory.byte(text + 9005)), (Ok(b'x'), Ok(0)));
        for bad in [0, 8, usize::MAX, 1 << 63] {
            assert_eq!(memory.byte(bad), Err(Unreadable), "{bad:x}");
            assert_eq!(memory.entry(bad, 0), Err(Unreadable), "{bad:x}");
        }
        // The last byte of a page can be read even if nothing is mapped after the page.
        let page = system::map_private(2 * system::PAGE).expect("memory") as usize;
        // SAFETY: the second page belongs to this test and is unused.
        unsafe { system::unmap(page + system::PAGE, system::PAGE) };
        assert_eq!(memory.byte(page + system::PAGE - 1), Ok(0));
        assert_eq!(memory.byte(page + system::PAGE), Err(Unreadable));
        assert_eq!(memory.entry(page + system::PAGE - 4, 0), Err(Unreadable));
        let list = [c"A=1".as_ptr(), c"B=2".as_ptr(), 8 as *const _, core::ptr::null()];
        let address = list.as_ptr() as usize;
        let found = memory.find(address, b"B=").expect("readable").expect("there");
        // SAFETY: the address is inside an existing text.
        assert_eq!(unsafe { CStr::from_ptr(found as *const _) }, c"2");
        assert_eq!(memory.find(address, b"C="), Err(Unreadable));
    }
}
