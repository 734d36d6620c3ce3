//! A program that is started where the library cannot be loaded: its loader would say so on the program's standard error.
//! There the file is not seen (another root folder, mounts of its own), or the program is another machine's or has 32
//! bits. So whoever starts a program is looked at, and hands on an environment without the library then.

use crate::descriptor::Text;
use crate::real::{self, Real};
use crate::watch::watch;
use crate::{filter, system};
use core::ffi::c_char;
use core::sync::atomic::{AtomicPtr, Ordering};
use probe_abi::interpose::SHARED_VARIABLE;

type List = *const *const c_char;

const PRELOAD: &[u8] = b"LD_PRELOAD=";
const LIBRARY: &[u8] = b"/longpole-preload.so";

/// Whether this byte ends an entry of `LD_PRELOAD`.
fn ends(byte: u8) -> bool {
    matches!(byte, 0 | b':' | b' ')
}

/// The entries of a list of strings.
fn entries(list: List) -> impl Iterator<Item = *const c_char> {
    (0..).map_while(move |i| {
        // SAFETY: an entry of the list; the last one is null and ends it.
        let entry = unsafe { list.wrapping_add(i).read() };
        (!entry.is_null()).then_some(entry)
    })
}

fn text(entry: *const c_char) -> Text {
    // SAFETY: entries of an environment are NUL-ended.
    unsafe { Text::new(entry) }
}

/// The bytes of a text.
fn bytes(mut text: Text) -> impl Iterator<Item = u8> {
    core::iter::from_fn(move || Some(text.next()).filter(|&byte| byte != 0))
}

/// Whether this NUL-ended name is the library's. Byte by byte, or the compiler makes a call of libc's out of it.
fn has_end(name: &[u8]) -> bool {
    let ended = LIBRARY.iter().chain(&[0]);
    name.len() > LIBRARY.len()
        && name.iter().rev().zip(ended.rev()).all(|(a, b)| core::hint::black_box(a) == b)
}

/// Reads the names in `LD_PRELOAD`, one after the other, each NUL-ended, and whether it is this library's; one that is too
/// long to be is empty.
fn each_name(list: Text, mut take: impl FnMut(&[u8], bool)) {
    // Longer than longpole's names, and small enough to be cleared without a call of memset.
    let mut name = [0u8; 128];
    let mut length = 0;
    for byte in bytes(list).chain([0]) {
        if !ends(byte) {
            if let Some(place) = name.get_mut(length) {
                *place = byte;
            }
            length += 1;
        } else if length > 0 {
            if let Some(end) = name.get_mut(length) {
                *end = 0;
            }
            let name = name.get(..=length).unwrap_or_default();
            take(name, has_end(name));
            length = 0;
        }
    }
}

/// Whether this `LD_PRELOAD` names the library and the file is not there.
fn is_missing(list: Text) -> bool {
    let mut missing = false;
    each_name(list, |name, is_ours| {
        missing |= is_ours && !system::is_readable(name.as_ptr().cast());
    });
    missing
}

/// Whether the library is for another kind of program than this file.
fn is_foreign(path: *const c_char) -> bool {
    const ELF: &[u8] = b"\x7fELF";
    const CLASS_64: u8 = 2;
    #[cfg(target_arch = "x86_64")]
    const MACHINE: [u8; 2] = [62, 0];
    #[cfg(target_arch = "aarch64")]
    const MACHINE: [u8; 2] = [183, 0];
    // Without a slash it is searched for.
    if path.is_null() || bytes(text(path)).all(|byte| byte != b'/') {
        return false;
    }
    let mut head = [0u8; 20];
    system::read_head(path, &mut head) == head.len()
        && head.iter().zip(ELF).all(|(a, b)| core::hint::black_box(a) == b)
        && (head[4] != CLASS_64 || [head[18], head[19]] != MACHINE)
}

/// The environment to start a program with; `path`: its file, if that is known.
fn environment(list: List, path: *const c_char) -> List {
    // A filter may forbid to look.
    if list.is_null() || filter::is_filtered() {
        return list;
    }
    let preload = entries(list).find_map(|entry| text(entry).behind(PRELOAD));
    let Some(preload) = preload else { return list };
    let mut has_ours = false;
    each_name(preload, |_, is_ours| has_ours |= is_ours);
    if !has_ours || !(is_missing(preload) || is_foreign(path)) {
        return list;
    }
    without(list, preload).unwrap_or(list)
}

/// The same environment without the library, in memory of its own, which is never given back: the program that it is for
/// takes the place of this one.
fn without(list: List, preload: Text) -> Option<List> {
    let count = entries(list).count();
    // The memory is all 0: what is not written ends the list and the text.
    let room = (count + 1) * size_of::<usize>() + PRELOAD.len() + bytes(preload).count() + 1;
    let memory = system::map_private(room.next_multiple_of(system::PAGE))?;
    let new = memory.cast::<*const c_char>();
    // SAFETY: behind the pointers, of which there are at most so many.
    let names = unsafe { memory.add((count + 1) * size_of::<usize>()) };
    let mut length = 0;
    let mut put = |byte: u8| {
        // SAFETY: what is written is a part of the old list, and there is room for all of it.
        unsafe { names.wrapping_add(length).write(byte) };
        length += 1;
    };
    PRELOAD.iter().for_each(|&byte| put(byte));
    let mut others = 0;
    let mut rest = preload;
    each_name(preload, |_, is_ours| {
        // The same name in the text itself, which may be longer than what is looked at.
        let mut byte = rest.next();
        while byte != 0 && ends(byte) {
            byte = rest.next();
        }
        if !is_ours && others > 0 {
            put(b':');
        }
        others += usize::from(!is_ours);
        while !ends(byte) {
            if !is_ours {
                put(byte);
            }
            byte = rest.next();
        }
    });
    let mut written = 0;
    for entry in entries(list) {
        let is_preload = text(entry).behind(PRELOAD).is_some();
        let is_shared =
            text(entry).behind(SHARED_VARIABLE.as_bytes()).is_some_and(|mut rest| rest.next() == b'=');
        let entry = match () {
            () if is_shared || is_preload && others == 0 => continue,
            () if is_preload => names.cast_const().cast(),
            () => entry,
        };
        // SAFETY: no more than the old list has.
        unsafe { new.wrapping_add(written).write(entry) };
        written += 1;
    }
    Some(new.cast_const())
}

/// The program's own environment becomes one without the library if need be.
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

/// `own!(MODULE = "name" as c"name", PATH)`: starts a program with the environment that this one has.
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

/// `given!(FUNCTION = "name", REAL = c"name", (ARGUMENTS), ENVIRONMENT, PATH)`: starts a program with this environment.
macro_rules! given {
    ($($function:ident = $name:literal, $real:ident = $c:literal, ($($argument:ident),+), $list:ident, $path:expr;)+) => {
        $(
            static $real: Real = Real::new($c);

            extern "C" fn $function($($argument: usize),+) -> i32 {
                type Function = extern "C" fn($(given!(@ $argument)),+) -> i32;
                let errno = real::errno();
                let $list = environment($list as List, $path) as usize;
                // SAFETY: libc's function of this name takes so many registers.
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

/// Functions that every C library has.
pub const ALL: &[&Real] = &[
    &EXECVE,
    &FEXECVE,
    &SPAWN,
    &SPAWNP,
    &vector::REAL,
    &vector_searched::REAL,
    &list::REAL,
    &list_searched::REAL,
    &shell::REAL,
    &pipe::REAL,
];

#[cfg(test)]
mod tests {
    use super::*;
    use core::ffi::CStr;
    use std::vec::Vec;

    fn ended(list: &[&'static CStr]) -> Vec<*const c_char> {
        list.iter().map(|entry| entry.as_ptr()).chain([core::ptr::null()]).collect()
    }

    fn read(list: List) -> Vec<std::string::String> {
        entries(list)
            // SAFETY: entries of an environment.
            .map(|entry| unsafe { CStr::from_ptr(entry) }.to_string_lossy().into_owned())
            .collect()
    }

    #[test]
    fn a_library_that_cannot_be_loaded_is_taken_out_and_nothing_else() {
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
    fn a_library_that_is_there_stays_but_for_programs_of_another_kind() {
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
