//! Finds a function's origin from its name: the program, a compiler's runtime, or Rust's standard library. All code
//! counts as the standard library's that it instantiates in the program.

/// Parts of Rust's standard library, and crates that are built into it (hash tables, the printing of panic messages).
/// If a program itself uses such a crate, the user can have the crate's functions probed by naming them.
const RUST_STANDARD: [&str; 20] = [
    "core",
    "alloc",
    "std",
    "proc_macro",
    "test",
    "compiler_builtins",
    "panic_unwind",
    "panic_abort",
    "unwind",
    "std_detect",
    "portable_simd",
    "__rustc",
    "rustc_demangle",
    "addr2line",
    "gimli",
    "object",
    "miniz_oxide",
    "adler2",
    "memchr",
    "hashbrown",
];

/// Exact names of start-up code and compiler runtime.
const RUNTIME: [&str; 27] = [
    "_start",
    "_init",
    "_fini",
    "__libc_csu_init",
    "__libc_csu_fini",
    "frame_dummy",
    "register_tm_clones",
    "deregister_tm_clones",
    "__do_global_dtors_aux",
    "__do_global_ctors_aux",
    "_dl_relocate_static_pie",
    "__libc_start_main",
    "__libc_start_call_main",
    "__restore_rt",
    "rust_eh_personality",
    "rust_begin_unwind",
    "rust_panic",
    "__rust_alloc",
    "__rust_dealloc",
    "__rust_realloc",
    "__rust_alloc_zeroed",
    "__rust_no_alloc_shim_is_unstable",
    "__gxx_personality_v0",
    "__gcc_personality_v0",
    "__cpu_indicator_init",
    "__stack_chk_fail",
    "__stack_chk_fail_local",
];

/// Beginnings of names of start-up code and compiler runtime.
const RUNTIME_STARTS: [&str; 19] = [
    "_GLOBAL__sub_I_",
    "_GLOBAL__sub_D_",
    "_GLOBAL__I_",
    "__cxx_global_var_init",
    "__cxx_global_array_dtor",
    "__clang_call_terminate",
    "__x86.get_pc_thunk",
    "__x86_indirect_thunk",
    "__x86_return_thunk",
    "_Unwind_",
    "__asan_",
    "__tsan_",
    "__ubsan_",
    "__msan_",
    "__sanitizer_",
    "__interceptor_",
    "__morestack",
    "__rdl_",
    "__rg_",
];

/// Whether the raw name is that of start-up code or of a compiler's runtime.
pub fn is_compiler_runtime(raw: &str) -> bool {
    RUNTIME.contains(&raw)
        || RUNTIME_STARTS.iter().any(|start| raw.starts_with(start))
        || is_libgcc_arithmetic(raw)
}

/// Whether the function is an arithmetic function of libgcc, such as `__udivti3` or `__mulxc3`. Such a name consists of
/// two underscores, an operation, a mode (`si`, `di`, `ti`, `sf`, `df`, `tf`, `xf`, `hf`, `sc`, `dc`, `xc`, `tc`) and
/// the number of operands.
fn is_libgcc_arithmetic(raw: &str) -> bool {
    let Some(name) = raw.strip_prefix("__").and_then(|name| name.strip_suffix(['2', '3'])) else {
        return false;
    };
    const MODES: [&str; 12] = ["si", "di", "ti", "sf", "df", "tf", "xf", "hf", "sc", "dc", "xc", "tc"];
    const OPERATIONS: [&str; 30] = [
        "add", "sub", "mul", "div", "udiv", "mod", "umod", "divmod", "udivmod", "neg", "abs", "ash", "ashl",
        "ashr", "lshr", "cmp", "ucmp", "clz", "ctz", "ffs", "parity", "popcount", "bswap", "powi", "eq",
        "ne", "lt", "gt", "extend", "trunc",
    ];
    let Some(mode_at) = name.len().checked_sub(2) else { return false };
    let (Some(operation), Some(mode)) = (name.get(..mode_at), name.get(mode_at..)) else { return false };
    MODES.contains(&mode)
        && (OPERATIONS.contains(&operation)
            || OPERATIONS.iter().any(|known| {
                // Names of conversions have two modes: __extendhfsf2, __truncdfhf2.
                operation.strip_prefix(known).is_some_and(|from| MODES.contains(&from))
            }))
}

/// Whether the function's code belongs to Rust's standard library. Generic code of the library counts even if it is
/// instantiated for types of the program. `raw` is the symbol, `demangled` its readable name.
pub fn is_rust_standard(raw: &str, demangled: &str) -> bool {
    if let Some(path) = raw.strip_prefix("_R") {
        return super::rust_v0::defining_crate(path).is_some_and(|name| RUST_STANDARD.contains(&name));
    }
    rustc_demangle::try_demangle(raw).is_ok() && is_standard_path(demangled)
}

/// Decides for legacy names. The crate is the first name of the path, except in `<Type as Trait>::method`. Such code is
/// in the crate of the type or of the trait (orphan rule). So the code belongs to the standard library if neither type
/// nor trait belongs to the program.
fn is_standard_path(demangled: &str) -> bool {
    let Some(inner) = demangled.strip_prefix('<') else {
        return RUST_STANDARD.contains(&demangled.split("::").next().unwrap_or_default());
    };
    let (kind, of_trait) = match inner.split_once(" as ") {
        Some((kind, rest)) => (kind, rest.split("::").next().unwrap_or_default()),
        None => (inner, "core"),
    };
    let standard = |name: &str| RUST_STANDARD.contains(&name);
    // References, slices, tuples and generic parameters belong to no crate, but the paths inside them do.
    let mut words = kind.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':'));
    let foreign = words.any(|word| {
        let mut parts = word.split("::");
        let first = parts.next().unwrap_or_default();
        parts.next().is_some() && !first.is_empty() && !standard(first)
    });
    standard(of_trait) && !foreign
}

#[cfg(test)]
mod tests {
    use super::*;

    fn standard(raw: &str) -> bool {
        is_rust_standard(raw, &crate::names::demangled(raw))
    }

    #[test]
    fn rust_v0_names_tell_whether_the_standard_library_defines_them() {
        assert!(standard("_RNvNtCs8ZKwes1zzDd_3std2io5print"));
        assert!(!standard("_RNvNtCs1234_7mycrate3foo3bar"));
        // Generic code of core, instantiated for the program.
        assert!(standard("_RINvNtCs1_4core3ptr13drop_in_placeNtCs2_7mycrate1AECs2_7mycrate"));
        // The program implements a trait of core for its own type.
        assert!(!standard("_RNvXCs2_7mycrateNtB2_1ANtNtCs1_4core3fmt5Debug3fmt"));
        // A provided method of core's Iterator, called on the program's type.
        assert!(standard("_RNvYNtCs2_7mycrate1ANtNtCs1_4core4iter8Iterator4foldB5_"));
        // A provided method of the program's own trait, called on a standard type.
        assert!(!standard("_RNvYmNtCs2_7mycrate5Trait4workB5_"));
        // A type of the standard library with a trait object and a function pointer in its path.
        assert!(standard(concat!(
            "_RNvYNtNvXsf_NtNtCsgFX3jaOk65H_5alloc5boxed7convertINtBc_3BoxDNtNtCskADBYZwJmSU_4core5error5Error",
            "NtNtB11_6marker4SendNtB1y_4SyncEL_EINtNtB11_7convert4FromNtNtBe_6string6StringE4from11StringError",
            "BX_5causeCs8ZKwes1zzDd_3std"
        )));
        assert!(standard("_RNvYFEuNtNtCs1_4core3ops6FnOnce9call_once"));
        assert!(standard("_RNvYAhj10_NtNtCs1_4core3fmt5Debug3fmt"));
        for hostile in ["_RB_", "_RNvB0_3foo", "_RIIIIIIIIII", "_RNvY", "_RC99999999999999999999x"] {
            standard(hostile);
        }
        standard(&format!("_R{}", "Nv".repeat(100_000)));
        standard(&format!("_RY{}", "R".repeat(100_000)));
    }

    #[test]
    fn legacy_rust_names_tell_whether_they_are_of_the_standard_library() {
        assert!(is_standard_path("core::ptr::drop_in_place<mycrate::A>"));
        assert!(is_standard_path("<alloc::vec::Vec<T> as core::clone::Clone>::clone"));
        assert!(is_standard_path("<&T as core::fmt::Debug>::fmt"));
        assert!(!is_standard_path("<mycrate::A as core::fmt::Debug>::fmt"));
        assert!(!is_standard_path("<alloc::vec::Vec<T> as mycrate::Trait>::run"));
        assert!(!is_standard_path("<&mycrate::A as core::fmt::Debug>::fmt"));
        assert!(!is_standard_path("mycrate::std::run"));
        assert!(!is_rust_standard("std_run", "std_run"));
    }

    #[test]
    fn names_of_the_compiler_s_runtime_are_known() {
        for name in ["_start", "__udivti3", "__extendhfsf2", "_GLOBAL__sub_I_main", "_Unwind_Resume"] {
            assert!(is_compiler_runtime(name), "{name}");
        }
        for name in ["main", "start", "__my_add", "divide3", "__3", "__ß3", "__libc_malloc"] {
            assert!(!is_compiler_runtime(name), "{name}");
        }
    }
}
