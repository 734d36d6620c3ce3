//! Starts programs without the library where the library cannot be loaded, because their loader would print a complaint
//! to standard error. This concerns programs in another root folder or with mounts of their own, where the library's
//! file is invisible, and programs for another machine or of 32 bits. The third case are programs with a library that
//! ends the program unless it is the first one. So this module checks each call that starts a program, and gives such a
//! program an environment without the library.

use crate::real::{self, Real, find_each};
use crate::system;
use crate::watched::caller::{Memory, Unreadable};
use crate::watched::executable::refuses_library;
use crate::watched::seccomp;
use crate::watched::watch::watch;
use core::ffi::c_char;
use core::sync::atomic::{AtomicPtr, Ordering};
use probe_abi::interpose::SHARED_VARIABLE;

type List = *const *const c_char;

const PRELOAD: &[u8] = b"LD_PRELOAD=";
const LIBRARY: &[u8] = b"/longpole-preload.so";

/// Whether this byte ends a name in `LD_PRELOAD`.
fn ends(byte: u8) -> bool {
    matches!(byte, 0 | b':' | b' ')
}

/// Whether this text, which ends with a NUL, is the library's name. Compares byte by byte, because the compiler would
/// otherwise call a function of libc.
fn has_end(name: &[u8]) -> bool {
    let ended = LIBRARY.iter().chain(&[0]);
    name.len() > LIBRARY.len()
        && name.iter().rev().zip(ended.rev()).all(|(a, b)| core::hint::black_box(a) == b)
}

/// A name in the value of `LD_PRELOAD`.
struct Name<'a> {
    /// Address and length of the name.
    place: (usize, usize),
    /// The name with a NUL at its end; empty if the name is too long to be the library's.
    text: &'a [u8],
    is_ours: bool,
}

/// Passes the names in `LD_PRELOAD` to `take`, one after the other. Returns the address of the NUL after them.
fn each_name(memory: &mut Memory, list: usize, mut take: impl FnMut(&Name<'_>)) -> Result<usize, Unreadable> {
    // Longer than the library's path, and small enough that the compiler clears it without a call of memset.
    let mut name = [0u8; 128];
    let mut length = 0;
    let mut at = list;
    loop {
        let byte = memory.byte(at)?;
        if !ends(byte) {
            if let Some(place) = name.get_mut(length) {
                *place = byte;
            }
            length += 1;
        } else if length > 0 {
            if let Some(end) = name.get_mut(length) {
                *end = 0;
            }
            let text = name.get(..=length).unwrap_or_default();
            take(&Name { place: (at.wrapping_sub(length), length), text, is_ours: has_end(text) });
            length = 0;
        }
        if byte == 0 {
            return Ok(at);
        }
        at = at.wrapping_add(1);
    }
}

/// Whether the library must not be loaded before the libraries of the program in this file.
fn refuses(memory: &mut Memory, path: usize) -> Result<bool, Unreadable> {
    if path == 0 {
        return Ok(false);
    }
    // If the name has no slash, the program is searched for in PATH, so its file is not known here.
    for at in 0.. {
        match memory.byte(path.wrapping_add(at))? {
            0 => return Ok(false),
            b'/' => break,
            _ => {}
        }
    }
    Ok(refuses_library(path as *const c_char))
}

/// The environment with which to start a program. `path` is the program's file, if it is known. An environment that
/// cannot be read is passed on unchanged, and the kernel then returns the error.
fn environment(list: List, path: *const c_char) -> List {
    // A filter may forbid the system calls that the check needs.
    if list.is_null() || seccomp::is_filtered() {
        return list;
    }
    changed(list as usize, path as usize).ok().flatten().unwrap_or(list)
}

/// A changed environment; `None` if no change is needed.
fn changed(list: usize, path: usize) -> Result<Option<List>, Unreadable> {
    let mut memory = Memory::new();
    let Some(preload) = memory.find(list, PRELOAD)? else { return Ok(None) };
    let (mut has_ours, mut is_missing) = (false, false);
    let end = each_name(&mut memory, preload, |name| {
        has_ours |= name.is_ours;
        is_missing |= name.is_ours && !system::is_readable(name.text.as_ptr().cast());
    })?;
    if !has_ours || !(is_missing || refuses(&mut memory, path)?) {
        return Ok(None);
    }
    without(&mut memory, list, preload, end.wrapping_sub(preload))
}

/// Memory that is filled from its beginning and never written beyond its end.
struct Filling {
    at: *mut u8,
    left: usize,
}

impl Filling {
    fn put(&mut self, byte: u8) {
        let Some(left) = self.left.checked_sub(1) else { return };
        // SAFETY: the address is inside the memory, which nothing else uses.
        unsafe { self.at.write(byte) };
        self.at = self.at.wrapping_add(1);
        self.left = left;
    }

    fn put_address(&mut self, address: usize) {
        for byte in address.to_ne_bytes() {
            self.put(byte);
        }
    }
}

/// Makes a copy of the environment without the library, in new memory. The memory is never freed, because the new
/// program replaces this one.
fn without(
    memory: &mut Memory,
    list: usize,
    preload: usize,
    length: usize,
) -> Result<Option<List>, Unreadable> {
    let mut count = 0;
    while memory.entry(list, count)? != 0 {
        count += 1;
    }
    // The memory is all 0, so unwritten parts end the list and the text. If another thread makes the list or a text
    // longer in the meantime, the additional part is omitted.
    let (pointers, text) = (count * size_of::<usize>(), PRELOAD.len() + length);
    let bytes = (pointers + size_of::<usize>() + text + 1).next_multiple_of(system::PAGE);
    let Some(new) = system::map_private(bytes) else { return Ok(None) };
    let names = new.wrapping_add(pointers + size_of::<usize>());
    let mut filling = Filling { at: names, left: text };
    PRELOAD.iter().for_each(|&byte| filling.put(byte));
    let mut others = 0;
    let mut kept = Ok(());
    // A second reader, because `memory` is reading the names at the same time.
    let mut again = Memory::new();
    each_name(memory, preload, |name| {
        if name.is_ours {
            return;
        }
        if others > 0 {
            filling.put(b':');
        }
        others += 1;
        let (place, length) = name.place;
        for at in 0..length {
            match again.byte(place.wrapping_add(at)) {
                Ok(byte) => filling.put(byte),
                Err(Unreadable) => kept = Err(Unreadable),
            }
        }
    })?;
    kept?;
    let mut filling = Filling { at: new, left: pointers };
    for index in 0..count {
        let entry = memory.entry(list, index)?;
        if entry == 0 {
            break;
        }
        let shared = memory.behind(entry, SHARED_VARIABLE.as_bytes())?;
        let is_shared = match shared {
            Some(rest) => memory.byte(rest)? == b'=',
            None => false,
        };
        let is_preload = memory.behind(entry, PRELOAD)?.is_some();
        match () {
            () if is_shared || is_preload && others == 0 => {}
            () if is_preload => filling.put_address(names as usize),
            () => filling.put_address(entry),
        }
    }
    Ok(Some(new.cast_const().cast()))
}

/// Replaces the program's own environment by one without the library, if a change is needed.
fn change_own(path: *const c_char) {
    let Some(place) = real::environment_place() else { return };
    // SAFETY: libc's variable `environ`, a pointer.
    let place = unsafe { AtomicPtr::from_ptr(place) };
    let own = place.load(Ordering::Relaxed);
    let new = environment(own.cast_const().cast(), path);
    if new.cast_mut().cast() != own {
        place.store(new.cast_mut().cast(), Ordering::Relaxed);
    }
}

/// `own!(MODULE = "name" as c"name", PATH)` wraps a function that starts a program with the environment of the calling
/// one.
macro_rules! own {
    ($($module:ident = $name:literal as $c:literal, $has_path:literal,)+) => {
        $(
            mod $module {
                pub static REAL: crate::real::Real = crate::real::Real::new($c);

                pub extern "C" fn before(path: *const core::ffi::c_char) -> usize {
                    let errno = crate::real::errno();
                    super::change_own(if $has_path { path } else { core::ptr::null() });
                    let address = REAL.get();
                    crate::real::set_errno(errno);
                    address
                }
            }
            watch!($name, $module::before);
        )+
    };
}

own! {
    vector = "execv" as c"execv", true,
    vector_searched = "execvp" as c"execvp", true,
    list = "execl" as c"execl", true,
    list_searched = "execlp" as c"execlp", true,
    shell = "system" as c"system", false,
    pipe = "popen" as c"popen", false,
}

/// `given!(FUNCTION = "name", REAL = c"name", (ARGUMENTS), ENVIRONMENT, PATH)` wraps a function that starts a program
/// with the environment in an argument.
macro_rules! given {
    ($($function:ident = $name:literal, $real:ident = $c:literal, ($($argument:ident),+), $list:ident, $path:expr;)+) => {
        $(
            static $real: Real = Real::new($c);

            extern "C" fn $function($($argument: usize),+) -> i32 {
                type Function = extern "C" fn($(given!(@ $argument)),+) -> i32;
                let errno = real::errno();
                let $list = environment($list as List, $path) as usize;
                // SAFETY: libc's function of this name takes this number of registers.
                let real: Function = unsafe { core::mem::transmute($real.get()) };
                real::set_errno(errno);
                real($($argument),+)
            }

            #[cfg(not(test))]
            core::arch::global_asm!(
                concat!(".pushsection .text.longpole.", $name, ",\"ax\",@progbits"),
                concat!(".globl ", $name),
                concat!(".type ", $name, ",@function"),
                concat!($name, ":"),
                ".cfi_startproc",
                #[cfg(target_arch = "x86_64")]
                "endbr64\n jmp {to}",
                #[cfg(target_arch = "aarch64")]
                "hint #34\n b {to}",
                ".cfi_endproc",
                concat!(".size ", $name, ", . - ", $name),
                ".popsection",
                to = sym $function,
            );
        )+
    };
    (@ $argument:ident) => { usize };
}

given! {
    execve = "execve", EXECVE = c"execve", (path, words, list), list, path as *const c_char;
    execvpe = "execvpe", EXECVPE = c"execvpe", (path, words, list), list, path as *const c_char;
    fexecve = "fexecve", FEXECVE = c"fexecve", (fd, words, list), list, core::ptr::null();
    execveat = "execveat", EXECVEAT = c"execveat", (folder, path, words, list, flags), list, core::ptr::null();
    spawn = "posix_spawn", SPAWN = c"posix_spawn", (pid, path, actions, attributes, words, list), list, path as *const c_char;
    spawnp = "posix_spawnp", SPAWNP = c"posix_spawnp", (pid, path, actions, attributes, words, list), list, path as *const c_char;
}

/// Looks up the functions that every C library has.
pub fn find() {
    find_each!(
        EXECVE,
        FEXECVE,
        SPAWN,
        SPAWNP,
        vector::REAL,
        vector_searched::REAL,
        list::REAL,
        list_searched::REAL,
        shell::REAL,
        pipe::REAL
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::ffi::CStr;
    use std::vec::Vec;

    fn ended(list: &[&'static CStr]) -> Vec<*const c_char> {
        list.iter().map(|entry| entry.as_ptr()).chain([core::ptr::null()]).collect()
    }

    fn read(list: List) -> Vec<std::string::String> {
        let mut memory = Memory::new();
        let entries = (0..).map(|index| memory.entry(list as usize, index).expect("a list"));
        entries
            .take_while(|&entry| entry != 0)
            // SAFETY: these are entries of an environment.
            .map(|entry| unsafe { CStr::from_ptr(entry as *const c_char) }.to_string_lossy().into_owned())
            .collect()
    }

    /// This test would fail if a library of the program were missing, because then every readable environment is
    /// changed.
    #[test]
    fn an_environment_that_the_kernel_would_refuse_is_passed_on_unchanged() {
        let bad = 8 as *const c_char;
        let preload = c"LD_PRELOAD=/tmp/longpole-0-0/longpole-preload.so".as_ptr();
        for list in [&[bad, core::ptr::null()][..], &[preload, bad, core::ptr::null()]] {
            assert_eq!(environment(list.as_ptr(), core::ptr::null()), list.as_ptr());
        }
        assert_eq!(environment(bad.cast(), core::ptr::null()), bad.cast());
        let folder = tempfile();
        let there = std::format!("LD_PRELOAD={}/longpole-preload.so\0", folder.display());
        std::fs::write(folder.join("longpole-preload.so"), "").expect("file");
        let list = [there.as_ptr().cast(), core::ptr::null()];
        assert_eq!(environment(list.as_ptr(), bad), list.as_ptr());
        std::fs::remove_dir_all(folder).expect("removed");
    }

    fn tempfile() -> std::path::PathBuf {
        let folder = std::env::temp_dir().join(std::format!("longpole-exec-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("folder");
        folder
    }

    #[test]
    fn a_preload_entry_whose_file_is_gone_is_removed_and_nothing_else() {
        let gone = ended(&[
            c"A=1",
            c"LD_PRELOAD=/lib/first.so:/tmp/longpole-0-0/longpole-preload.so /lib/last.so",
            c"LONGPOLE_INTERPOSE=1:2:3:4:5:6",
            c"LONGPOLE_INTERPOSER=7",
            c"Z=",
        ]);
        let left = read(environment(gone.as_ptr(), core::ptr::null()));
        assert_eq!(left, ["A=1", "LD_PRELOAD=/lib/first.so:/lib/last.so", "LONGPOLE_INTERPOSER=7", "Z="]);
        let alone = ended(&[c"LD_PRELOAD=/tmp/longpole-0-0/longpole-preload.so", c"B=2"]);
        assert_eq!(read(environment(alone.as_ptr(), core::ptr::null())), ["B=2"]);
        for other in [&[c"A=1", c"LD_PRELOAD=/lib/other.so"][..], &[c"LD_PRELOAD="], &[]] {
            let list = ended(other);
            assert_eq!(environment(list.as_ptr(), core::ptr::null()), list.as_ptr());
        }
        assert_eq!(environment(core::ptr::null(), core::ptr::null()), core::ptr::null());
    }

    #[test]
    fn a_preload_entry_is_kept_except_for_programs_of_another_kind() {
        let folder = std::env::temp_dir().join(std::format!("longpole-test-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("folder");
        let library = folder.join("longpole-preload.so");
        std::fs::write(&library, "").expect("file");
        let entry = std::format!("LD_PRELOAD={}\0", library.display());
        let entry = CStr::from_bytes_with_nul(entry.as_bytes()).expect("a text");
        let list = [entry.as_ptr(), core::ptr::null()];
        assert_eq!(environment(list.as_ptr(), c"/bin/sh".as_ptr()), list.as_ptr());
        assert_eq!(environment(list.as_ptr(), c"sh".as_ptr()), list.as_ptr());
        let mut head = std::fs::read("/bin/sh").expect("a program");
        head.truncate(64);
        head[4] = 1;
        let other = folder.join("program");
        std::fs::write(&other, &head).expect("file");
        let path = std::format!("{}\0", other.display());
        let path = CStr::from_bytes_with_nul(path.as_bytes()).expect("a text");
        assert_eq!(read(environment(list.as_ptr(), path.as_ptr())), Vec::<std::string::String>::new());
        std::fs::remove_dir_all(folder).expect("removed");
    }
}
