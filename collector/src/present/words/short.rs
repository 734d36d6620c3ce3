//! Short names: without template arguments, parameters and all but the last two parts of their path.

use engine::program::is_unnamed;

/// `HashMap::insert` of `std::collections::hash::map::HashMap<alloc::string::String, u32>::insert`,
/// `operator()` and names in brackets unchanged. Anything else stays unchanged.
pub fn short(name: &str) -> String {
    if let Some(name) = of_runtime(name) {
        return name;
    }
    // A binary without names, or a method of Go's.
    if is_unnamed(name) || name.contains(".(") {
        return name.to_owned();
    }
    let plain = without_arguments(name);
    let parts: Vec<&str> = plain.split("::").filter(|part| !part.is_empty()).collect();
    let kept = match parts[..] {
        [.., a, b] => format!("{}::{b}", last_word(a)),
        _ => plain.clone(),
    };
    let kept = kept.trim();
    match kept {
        "" => name.to_owned(),
        // A return type stands only next to parameters or template arguments.
        kept if name.contains(['(', '<']) => last_word(kept).to_owned(),
        kept => kept.to_owned(),
    }
}

/// The function in a name that a runtime gives to code that it generates: Node's `JS:*render /srv/app.js:12:3` (and
/// older prefixes), Python's `py::work:/srv/app.py`. A function without a name is described by its place.
fn of_runtime(name: &str) -> Option<String> {
    let of_node = ["JS:", "LazyCompile:", "Function:", "Script:", "Eval:"];
    if let Some(code) = of_node.iter().find_map(|kind| name.strip_prefix(kind)) {
        // These signs show how far Node.js has compiled the code.
        let code = code.trim_start_matches(['*', '~', '^', '+', '\'']);
        let (function, place) = code.split_once(' ').unwrap_or((code, ""));
        let file = place.rsplit('/').next().unwrap_or(place);
        return match (function, file) {
            ("" | "<anonymous>", "") => None,
            ("" | "<anonymous>", file) => Some(format!("({file})")),
            (function, _) => Some(function.to_owned()),
        };
    }
    let (function, file) = name.strip_prefix("py::")?.split_once(':')?;
    match function {
        "<module>" => Some(file.rsplit('/').next().unwrap_or(file).to_owned()),
        _ => Some(function.to_owned()),
    }
}

/// Drops the return type before a template's name.
fn last_word(part: &str) -> &str {
    if part.contains("operator") || part.contains('{') {
        return part;
    }
    part.rsplit(' ').next().unwrap_or(part)
}

/// Removes what is in `<>` and `()`, except at the beginning of a name: `<u64 as Trait>::method` keeps its type.
fn without_arguments(name: &str) -> String {
    let name = name.split("::h").next().filter(|_| has_hash(name)).unwrap_or(name);
    let (head, rest) = match name.strip_prefix('<').and_then(own_type) {
        Some((head, rest)) => (head, rest),
        None => ("", name),
    };
    let mut out = String::with_capacity(name.len());
    if !head.is_empty() {
        out.push_str(&without_arguments(head));
    }
    let mut depth = 0u32;
    let mut rest = rest;
    while let Some(c) = rest.chars().next() {
        // Brackets of an operator are part of its name.
        let operators =
            ["operator()", "operator<=>", "operator<<", "operator>>", "operator<", "operator>", "->"];
        let operator = operators.iter().find(|operator| rest.starts_with(**operator));
        let (taken, is_plain) = match (operator, c) {
            (Some(operator), _) => (operator.len(), true),
            (None, '<' | '(') => {
                depth += 1;
                (1, false)
            }
            (None, '>' | ')') => {
                depth = depth.saturating_sub(1);
                (1, false)
            }
            (None, c) => (c.len_utf8(), true),
        };
        if is_plain && depth == 0 {
            out.push_str(&rest[..taken]);
        }
        rest = &rest[taken..];
    }
    // `[clone .isra.0]` marks a copy that the compiler made.
    if let Some((name, _)) = out.split_once(" [clone ") {
        out.truncate(name.len());
    }
    if let Some(name) = out.strip_suffix(" const") {
        out.truncate(name.len());
    }
    out
}

/// The type in `<type as trait>::…`, and the text that follows.
fn own_type(inner: &str) -> Option<(&str, &str)> {
    let mut depth = 1u32;
    for (place, c) in inner.char_indices() {
        match c {
            '<' => depth += 1,
            '>' => {
                depth -= 1;
                if depth == 0 {
                    let kind = &inner[..place];
                    let kind = kind.split_once(" as ").map_or(kind, |(kind, _)| kind);
                    return Some((kind.trim_start_matches('&'), &inner[place + 1..]));
                }
            }
            _ => {}
        }
    }
    None
}

/// Whether a name ends with the hash of a Rust symbol.
fn has_hash(name: &str) -> bool {
    name.rsplit_once("::h")
        .is_some_and(|(_, hash)| hash.len() == 16 && hash.bytes().all(|b| b.is_ascii_hexdigit()))
}

#[cfg(test)]
mod tests {
    use super::short;

    #[test]
    fn a_long_function_name_is_shortened_to_its_last_parts() {
        for (long, expected) in [
            ("main", "main"),
            ("expensive_hash(unsigned int)", "expensive_hash"),
            ("std::collections::hash::map::HashMap<alloc::string::String, u32>::insert", "HashMap::insert"),
            ("my::server::run::h0123456789abcdef", "server::run"),
            (
                "std::_Hashtable<unsigned int, std::pair<int const, long> >::_M_insert(int) const",
                "_Hashtable::_M_insert",
            ),
            (
                "void std::vector<std::thread>::_M_realloc_insert<void (&)(int, int), int&>(int&)",
                "vector::_M_realloc_insert",
            ),
            ("<u64 as core::cmp::PartialOrd>::lt", "u64::lt"),
            ("<my::Table<K, V> as core::ops::Drop>::drop", "Table::drop"),
            ("std::less<int>::operator()(int const&) const", "less::operator()"),
            ("[libz.so.1.2.13]", "[libz.so.1.2.13]"),
            ("runtime.futex", "runtime.futex"),
            ("int Work.burn(int)", "Work.burn"),
            ("JS:*renderTemplate /srv/my app/npool.js:2:24", "renderTemplate"),
            ("JS:renderTemplate file:///srv/npool.mjs:2:24", "renderTemplate"),
            ("LazyCompile:~get size node:internal/fs:1:2", "get"),
            ("JS:* /srv/npool.js:4:117", "(npool.js:4:117)"),
            ("py::Shop.work:/srv/my app/shop.py", "Shop.work"),
            ("py::<module>:/srv/shop.py", "shop.py"),
            ("RegExp:a b c", "RegExp:a b c"),
            ("main.(*Server).handle", "main.(*Server).handle"),
            ("app::worker::{{closure}}", "worker::{{closure}}"),
            ("", ""),
            ("<<>>", "<<>>"),
        ] {
            assert_eq!(short(long), expected, "{long}");
        }
    }
}
