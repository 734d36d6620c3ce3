//! Functions of the language and of the C library, by their binary (`libc.so.6`), by the place of their source (`/rustc/…`,
//! `/usr/include/…`), or by their names where nothing else is known (`core::…`, `std::…`).

use super::Function;

/// Whether a function is one of the language's or of the C library; `line`: `file:line` in it, if known.
pub(crate) fn is_standard(function: &Function, line: Option<&str>) -> bool {
    // Stubs through which a library is called.
    if function.name.ends_with("@plt") || function.module.as_deref().is_some_and(is_standard_module) {
        return true;
    }
    match line.or(function.location.as_deref()) {
        // Debug information without folders says nothing.
        Some(line) if line.starts_with('/') => is_standard_source(line),
        _ => is_standard_name(&function.name),
    }
}

fn is_standard_module(module: &str) -> bool {
    const STARTS: [&str; 14] = [
        "libc.so",
        "libc-",
        "libc.musl",
        "ld-linux",
        "ld-musl",
        "libm.so",
        "libm-",
        "libpthread",
        "librt.so",
        "libdl.so",
        "libstdc++",
        "libc++",
        "libgcc_s",
        "libatomic",
    ];
    module == "[vdso]" || STARTS.iter().any(|start| module.starts_with(start))
}

fn is_standard_source(line: &str) -> bool {
    ["/rustc/", "/usr/include/", "/usr/lib/gcc/"].iter().any(|start| line.starts_with(start))
        || ["/rustlib/src/rust/library/", "/include/c++/", "/go/src/runtime/"]
            .iter()
            .any(|part| line.contains(part))
}

/// By the name alone: Rust's and C++'s own paths, and Rust's methods of built-in types
/// (`<u64>::wrapping_mul`, `<&T as core::fmt::Debug>::fmt`), unless the type or the trait belongs to another
/// crate.
fn is_standard_name(name: &str) -> bool {
    const OWN: [&str; 5] = ["core", "alloc", "std", "__gnu_cxx", "__rust_alloc"];
    let is_own = |word: &str| OWN.contains(&word.split("::").next().unwrap_or_default());
    let Some(inner) = name.strip_prefix('<') else {
        // A return type goes before a template's name.
        let path = name.split(['<', '(']).next().unwrap_or(name);
        let path = path.rsplit(' ').next().unwrap_or(path);
        return path.contains("::") && is_own(path);
    };
    let (kind, of_trait) = match inner.split_once(" as ") {
        Some((kind, rest)) => (kind, rest),
        None => (inner.split(">::").next().unwrap_or(inner), "core::"),
    };
    let mut words = kind.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':'));
    let somebodys =
        words.any(|word| word.trim_matches(':').contains("::") && !is_own(word.trim_matches(':')));
    is_own(of_trait) && !somebodys
}

#[cfg(test)]
mod tests {
    use super::*;

    fn function(name: &str, module: &str) -> Function {
        Function { name: name.to_owned(), module: Some(module.to_owned()), ..Function::default() }
    }

    #[test]
    fn what_the_language_brings_along_is_standard() {
        for name in [
            "core::hint::black_box",
            "<u64>::wrapping_mul",
            "<u64 as core::cmp::PartialOrd>::lt",
            "<[T]>::sort_unstable",
            "<&T as core::fmt::Debug>::fmt",
            "<alloc::vec::Vec<T> as core::clone::Clone>::clone",
            "std::unordered_map<unsigned int, shop::Cart>::operator[](unsigned int const&)",
            "void std::sort<int*>(int*, int*)",
        ] {
            assert!(is_standard(&function(name, "shop"), None), "{name}");
        }
        for name in [
            "shop::Cart::sum(std::vector<int>&)",
            "<shop::Cart as core::cmp::PartialOrd>::lt",
            "<alloc::vec::Vec<T> as shop::Total>::total",
            "<shop::Cart>::sum",
            "hash",
            "std",
            "stdlib_like::f",
            "py::work:/srv/shop.py",
            "JS:*add /srv/shop.js:3:9",
        ] {
            assert!(!is_standard(&function(name, "shop"), None), "{name}");
        }
        assert!(is_standard(&function("malloc", "libc.so.6"), None));
        assert!(is_standard(&function("malloc@plt", "shop"), None));
        assert!(is_standard(&function("clock_gettime", "[vdso]"), None));
        assert!(!is_standard(&function("compress", "libz.so.1"), None));
    }

    #[test]
    fn the_place_of_the_source_says_more_than_the_name() {
        let line = |name: &str, line: &str| is_standard(&function(name, "shop"), Some(line));
        assert!(line("lt", "/rustc/58cf8f/library/core/src/cmp.rs:1"));
        assert!(line(
            "push",
            "/root/.rustup/toolchains/x/lib/rustlib/src/rust/library/alloc/src/vec/mod.rs:2"
        ));
        assert!(line("operator[]", "/usr/include/c++/12/bits/stl_vector.h:3"));
        assert!(!line("std::hash<Cart>::operator()(Cart const&)", "/srv/shop/cart.cpp:7"), "the user's own");
        assert!(line("core::hint::black_box", "hint.rs:4"), "no folder: the name decides");
    }
}
