//! Makes names from untrusted files printable: demangled, bounded in length, and without control characters for
//! terminals.

use crate::catch_panic::catch_panic;
use std::fmt::{self, Write};
use std::path::Path;

/// Largest length of a returned name, in bytes. Real C++ names have some hundred bytes, those of large templates some
/// thousand.
pub const MAX_NAME_BYTES: usize = 2048;

/// Largest number of bytes that are read of a symbol's name.
pub const MAX_RAW_BYTES: usize = 16 * 1024;

/// Replaces characters that must not reach a terminal ([`is_unsafe`]), and cuts to [`MAX_NAME_BYTES`].
pub fn safe(text: &str) -> String {
    safe_within(text, MAX_NAME_BYTES)
}

/// Like [`safe`], for bytes that may not be UTF-8.
pub fn safe_bytes(bytes: &[u8]) -> String {
    let cut = &bytes[..bytes.len().min(MAX_NAME_BYTES * 2)];
    safe(&String::from_utf8_lossy(cut))
}

/// Like [`safe`], for a path.
pub fn safe_path(path: &Path) -> String {
    safe(&path.to_string_lossy())
}

/// Like [`safe`], with another limit of length.
pub fn safe_within(text: &str, max_bytes: usize) -> String {
    let mut bounded = Bounded { text: String::new(), max_bytes };
    // The only possible error is that the text is longer than the limit.
    let _ = bounded.write_str(text);
    bounded.finish()
}

/// The readable name of a symbol, always safe to print. Names of C++ (Itanium) and Rust (legacy and v0) are demangled.
/// Parameters stay, and Rust's hash is removed. Other names do not change.
pub fn demangled(raw: &str) -> String {
    if let Some(name) = demangled_rust(raw) {
        return name;
    }
    if is_itanium(raw)
        && let Some(name) = demangled_cpp(raw, cpp_demangle::DemangleOptions::new())
    {
        return name;
    }
    safe(raw)
}

/// A C++ name without parameters and return type, as users type names in patterns. `None` for names of other languages.
pub fn demangled_without_parameters(raw: &str) -> Option<String> {
    if !is_itanium(raw) || rustc_demangle::try_demangle(raw).is_ok() {
        return None;
    }
    demangled_cpp(raw, cpp_demangle::DemangleOptions::new().no_params().no_return_type())
}

/// The Rust name, or `None` if the symbol is not mangled by rustc.
pub fn demangled_rust(raw: &str) -> Option<String> {
    if raw.len() >= MAX_RAW_BYTES {
        return None;
    }
    catch_panic(|| {
        let name = rustc_demangle::try_demangle(raw).ok()?;
        let mut bounded = Bounded { text: String::new(), max_bytes: MAX_NAME_BYTES };
        let _ = write!(bounded, "{name:#}");
        (!bounded.text.is_empty()).then(|| bounded.finish())
    })?
}

fn is_itanium(raw: &str) -> bool {
    raw.starts_with("_Z") || raw.starts_with("__Z") || raw.starts_with("_GLOBAL_")
}

fn demangled_cpp(raw: &str, options: cpp_demangle::DemangleOptions) -> Option<String> {
    if raw.len() >= MAX_RAW_BYTES {
        return None;
    }
    // A short symbol can describe a very long name, because mangled names may refer back to their own parts. The
    // writer's limit stops the demangler.
    catch_panic(|| {
        let symbol = cpp_demangle::Symbol::new(raw).ok()?;
        let mut bounded = Bounded { text: String::new(), max_bytes: MAX_NAME_BYTES };
        let complete = symbol.structured_demangle(&mut bounded, &options).is_ok();
        (complete || bounded.is_full()).then(|| bounded.finish())
    })?
}

/// Writes safe characters up to a limit and then returns an error, which is the only way to stop a demangler.
struct Bounded {
    text: String,
    max_bytes: usize,
}

impl Bounded {
    fn is_full(&self) -> bool {
        self.text.len() >= self.max_bytes
    }

    /// The text. A text that was cut ends with "…".
    fn finish(mut self) -> String {
        if self.is_full() {
            let keep = self.max_bytes.saturating_sub('…'.len_utf8());
            let boundary = (0..=keep.min(self.text.len())).rev().find(|&at| self.text.is_char_boundary(at));
            self.text.truncate(boundary.unwrap_or(0));
            self.text.push('…');
        }
        self.text
    }
}

impl fmt::Write for Bounded {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for c in text.chars() {
            if self.is_full() {
                return Err(fmt::Error);
            }
            self.text.push(if is_unsafe(c) { '\u{fffd}' } else { c });
        }
        Ok(())
    }
}

/// Whether the character can do harm in a terminal. Such are control characters, invisible characters, and characters
/// that change the order or position of text (direction marks, line and paragraph separators).
pub fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{180e}' | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}' | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpp_names_and_both_kinds_of_rust_names_are_demangled() {
        assert_eq!(demangled("_ZN3foo3barEi"), "foo::bar(int)");
        assert_eq!(demangled_without_parameters("_ZN3foo3barEi").as_deref(), Some("foo::bar"));
        assert_eq!(demangled("_ZN4core3ptr13drop_in_place17h0123456789abcdefE"), "core::ptr::drop_in_place");
        assert_eq!(demangled("_RNvNtCs1234_7mycrate3foo3bar"), "mycrate::foo::bar");
        assert_eq!(demangled("pthread_mutex_lock"), "pthread_mutex_lock");
        assert_eq!(demangled("_Znonsense"), "_Znonsense");
    }

    #[test]
    fn characters_that_control_a_terminal_are_replaced_in_names() {
        assert_eq!(safe("a\u{1b}[2Jb\u{202e}c\n\u{9b}d"), "a\u{fffd}[2Jb\u{fffd}c\u{fffd}\u{fffd}d");
        assert_eq!(safe_bytes(b"x\xff\x07y"), "x\u{fffd}\u{fffd}y");
        assert_eq!(safe("größe::<T>"), "größe::<T>");
    }

    #[test]
    fn a_long_name_is_cut_to_its_limit() {
        let name = safe(&"ä".repeat(1_000_000));
        assert!(name.len() <= MAX_NAME_BYTES && name.ends_with('…'), "{}", name.len());
        assert_eq!(safe(&"a".repeat(100)).len(), 100);
    }

    #[test]
    fn a_demangling_bomb_stops_at_the_limit() {
        // Each parameter is a pair of the previous parameter with itself: O(n) bytes of symbol describe a name with 2^n
        // parts.
        let mut raw = String::from("_Z1fSt4pairIiiE");
        let digits = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
        for (i, digit) in digits.iter().enumerate().take(30) {
            let s = if i == 0 { "S0_".to_owned() } else { format!("S{}_", char::from(*digit)) };
            raw.push_str(&format!("St4pairI{s}{s}E"));
        }
        assert!(demangled(&raw).len() <= MAX_NAME_BYTES.max(raw.len()));
    }

    #[test]
    fn demangling_damaged_names_never_panics() {
        let names = [
            "_ZNSt8_Rb_treeISsSt4pairIKSsiESt10_Select1stIS2_ESt4lessISsESaIS2_EE24_M_get_insert_unique_posERS1_",
            "_ZZN4shop6cookieEvENKUlT_E_clIiEEDaS0_",
            "_ZN1AIXadL_Z1fvEELi3ELb1EE1gIJicEEEDTcl1hspfp_EEDpT_",
            "_RNvYNtNvXsf_NtNtCsgFX3jaOk65H_5alloc5boxed7convertINtBc_3BoxDNtNtCskADBYZwJmSU_4core5error5Error",
            "_RINvMNtNtCs8ZKwes1zzDd_3std4sync9once_lockINtB3_8OnceLockhKj12_E10initializeNCNvB3c_7cleanup0E0zEB7_",
            "_ZN4core3ptr85drop_in_place$LT$std..rt..lang_start$LT$$LP$$RP$$GT$..$u7b$$u7b$closure$u7d$17h01E",
        ];
        let mut random = 0x9e37_79b9_7f4a_7c15u64;
        let mut next = |limit: usize| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            (random % limit as u64) as usize
        };
        let letters: Vec<char> = "_SRTNIEXKLZ0123459sBMYDFGpzavclé$.".chars().collect();
        for round in 0..30_000 {
            let mut name: Vec<char> = names[round % names.len()].chars().collect();
            for _ in 0..=next(4) {
                let at = 2 + next(name.len() - 2);
                match next(3) {
                    0 => name[at] = letters[next(letters.len())],
                    1 => drop(name.remove(at)),
                    _ => name.insert(at, letters[next(letters.len())]),
                }
            }
            let name: String = name.into_iter().collect();
            assert!(demangled(&name).len() <= MAX_NAME_BYTES, "{name}");
            demangled_without_parameters(&name);
            crate::names::origin::is_rust_standard(&name, &name);
        }
    }
}
