//! Who owns a function: the user, the language, the C library or a runtime. Only this file decides the
//! [`FunctionOrigin`], when a program is made: no other file compares names of functions or binaries for this purpose.
//!
//! What a function does (whether it waits or takes a lock) is decided in `busy_wait` and `recorded::stacks`.

use crate::program::Function;
use FunctionOrigin::{
    Allocator, CLibrary, CLibraryByName, Kernel, Language, Nowhere, Recorder, StartUp, User,
};

/// The owner of a function.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FunctionOrigin {
    /// The program itself, or a library that has no entry in this file.
    #[default]
    User,
    /// The language's standard library, also where its code is inlined or instantiated in the program.
    Language,
    /// The C library and its loader, the clock in the vDSO, and stubs that call a library.
    CLibrary,
    /// The C library by the function's name; the binary is another one or not known.
    CLibraryByName,
    /// The first functions of a program or a thread, before its own code.
    StartUp,
    /// A language's or library's runtime.
    Runtime(Runtime),
    /// A library that only allocates memory.
    Allocator,
    /// The kernel.
    Kernel,
    /// longpole's own library.
    Recorder,
    /// Nothing is known at the address.
    Nowhere,
}

/// A runtime: it runs a program's code, or divides the code among threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Runtime {
    /// Go's, by name. Where its source is known, it is [`FunctionOrigin::Language`].
    Go,
    /// The JVM.
    Java,
    /// Node.
    Node,
    /// An MPI library, or a library that carries its messages.
    Mpi,
    /// GNU's, LLVM's or Intel's OpenMP.
    OpenMp,
    /// A Python interpreter.
    Python,
}

/// Name of a function that stands for code which a program generated while it ran and did not name.
pub const CODE_WITHOUT_A_FILE: &str = "[code without a file]";
/// Name of code at an address where nothing is known.
pub(in crate::program) const UNKNOWN: &str = "[unknown]";
/// Used in place of a binary for code that a program generated while it ran: that code is in no file.
pub(in crate::program) const MADE_CODE: &str = "[jit]";

/// Binaries of languages and of the C library, by the beginning of their file names.
const STANDARD: [(&str, FunctionOrigin); 15] = [
    ("libc.so", CLibrary),
    ("libc-", CLibrary),
    ("libc.musl", CLibrary),
    ("ld-linux", CLibrary),
    ("ld-musl", CLibrary),
    ("libm.so", CLibrary),
    ("libm-", CLibrary),
    ("libpthread", CLibrary),
    ("librt.so", CLibrary),
    ("libdl.so", CLibrary),
    ("[vdso]", CLibrary),
    ("libstdc++", Language),
    ("libc++", Language),
    ("libgcc_s", Language),
    ("libatomic", Language),
];

/// Other binaries that users do not change, by the beginning of their file names.
const FIXED: [(&str, FunctionOrigin); 12] = [
    ("longpole-preload", Recorder),
    ("libgomp", FunctionOrigin::Runtime(Runtime::OpenMp)),
    ("libomp.", FunctionOrigin::Runtime(Runtime::OpenMp)),
    ("libomp5", FunctionOrigin::Runtime(Runtime::OpenMp)),
    ("libomp-", FunctionOrigin::Runtime(Runtime::OpenMp)),
    ("libiomp", FunctionOrigin::Runtime(Runtime::OpenMp)),
    ("libjvm", FunctionOrigin::Runtime(Runtime::Java)),
    ("libpython", FunctionOrigin::Runtime(Runtime::Python)),
    ("libnode", FunctionOrigin::Runtime(Runtime::Node)),
    ("libjemalloc", Allocator),
    ("libtcmalloc", Allocator),
    ("[kernel", Kernel),
];

/// Libraries of MPI (Open MPI, MPICH and those made from it), and those that carry its messages, by the beginning of their
/// file names.
const OF_MPI: [&str; 22] = [
    "libmpi.",
    "libmpi_",
    "libmpich",
    "libmpicxx",
    "libmpifort",
    "libmpifh",
    "libopen-pal",
    "libopen-rte",
    "libprrte",
    "mca_",
    "libpmi.",
    "libpmi2",
    "libpmix",
    "libucp",
    "libuct",
    "libucs.",
    "libucs_",
    "libucm",
    "libfabric",
    "libpsm",
    "libhcoll",
    "libmxm",
];

/// Further binaries, for functions that are named after their binary (`[libc.so.6]`) if the binary itself is not known.
const IN_BRACKETS: [(&str, FunctionOrigin); 5] = [
    ("libc.so", CLibraryByName),
    ("libc-", CLibraryByName),
    ("ld-linux", CLibraryByName),
    ("vdso", CLibraryByName),
    ("unknown", Nowhere),
];

impl FunctionOrigin {
    /// The origin of a function with this name in this binary. `line`: `file:line` in it, if known.
    pub fn of(name: &str, module: Option<&str>, line: Option<&str>) -> FunctionOrigin {
        let module = module.unwrap_or_default();
        if name.ends_with("@plt") {
            return CLibrary;
        }
        if let Some(origin) = of_file(&STANDARD, module) {
            return origin;
        }
        let is_language = match line {
            // Debug information without folders does not show the origin.
            Some(line) if line.starts_with('/') => is_standard_source(line),
            _ => is_standard_name(name),
        };
        if is_language {
            return Language;
        }
        let name = without_version(name);
        if is_start_up(name) || name.starts_with("std::thread::_State_impl") {
            return StartUp;
        }
        let inside = name.strip_prefix('[').unwrap_or_default();
        if is_mpi(module) || is_mpi(inside) {
            return FunctionOrigin::Runtime(Runtime::Mpi);
        }
        let of_binary = of_file(&FIXED, module).or_else(|| of_file(&FIXED, inside));
        of_binary.or_else(|| of_file(&IN_BRACKETS, inside)).unwrap_or(match name {
            "epoll_wait" | "futex" | "syscall" | "sched_yield" | "poll" => CLibraryByName,
            "_PyEval_EvalFrameDefault" => FunctionOrigin::Runtime(Runtime::Python),
            _ if name.starts_with("runtime.") => FunctionOrigin::Runtime(Runtime::Go),
            _ => User,
        })
    }

    /// Whether the function belongs to the language or the C library: its time counts for its caller.
    pub fn is_standard(self) -> bool {
        matches!(self, Language | CLibrary)
    }

    /// Whether the user of a program can change the function.
    pub fn can_be_changed(self) -> bool {
        self == User
    }
}

impl Function {
    /// Returns the function with the origin that follows from its name, binary and location.
    #[must_use]
    pub fn with_origin(self) -> Function {
        let origin = FunctionOrigin::of(&self.name, self.module.as_deref(), self.location.as_deref());
        Function { origin, ..self }
    }

    /// The origin of the code on a line of the function, where another function may be inlined.
    pub(crate) fn origin_at(&self, line: Option<&str>) -> FunctionOrigin {
        line.map_or(self.origin, |line| FunctionOrigin::of(&self.name, self.module.as_deref(), Some(line)))
    }

    /// Whether a user can look up the function's name. All code of a binary without names counts as one function, which
    /// is named after the binary.
    pub(crate) fn has_name(&self) -> bool {
        !is_unnamed(&self.name)
    }

    /// Whether the function stands for all code of a library without names.
    pub(crate) fn is_unnamed_library(&self) -> bool {
        is_unnamed(&self.name) && self.name.contains(".so")
    }

    /// Whether the function has a name and belongs neither to the language nor to the C library.
    pub(crate) fn is_authors(&self) -> bool {
        self.has_name() && !self.origin.is_standard()
    }

    /// Whether the function is the outermost one on a stack: a program or a thread starts with it.
    pub(crate) fn is_outermost(&self) -> bool {
        ["_start", "clone", "clone3", "__clone3"].contains(&self.name.as_str())
    }

    /// Whether the function is code that the program generated while it ran.
    pub fn is_made_code(&self) -> bool {
        self.module.as_deref() == Some(MADE_CODE)
    }

    /// Whether the function is a system call of the C library that a program can make less often.
    pub(crate) fn is_system_call(&self) -> bool {
        const CALLS: [&str; 26] = [
            "write",
            "writev",
            "pwrite64",
            "pwritev",
            "send",
            "sendto",
            "sendmsg",
            "sendmmsg",
            "read",
            "readv",
            "pread64",
            "preadv",
            "recv",
            "recvfrom",
            "recvmsg",
            "recvmmsg",
            "open",
            "open64",
            "openat",
            "close",
            "stat",
            "fstat",
            "fstatat64",
            "fsync",
            "munmap",
            "madvise",
        ];
        let is_libc = self.module.as_deref().is_some_and(|module| module.starts_with("libc"));
        is_libc && CALLS.contains(&system_call_name(without_version(&self.name)))
    }
}

/// The kernel's name of a C library function for a system call: `__GI___libc_write` is `write`.
pub fn system_call_name(function: &str) -> &str {
    let name = function.trim_start_matches("__GI_").trim_start_matches('_');
    name.strip_prefix("libc_").unwrap_or(name)
}

/// Whether a program or a thread starts with this function, before its own code.
pub fn is_start_up(function: &str) -> bool {
    const NAMES: [&str; 8] = [
        "clone",
        "clone3",
        "__clone3",
        "__clone",
        "start_thread",
        "_start",
        "__libc_start_main",
        "__libc_start_call_main",
    ];
    NAMES.contains(&without_version(function))
}

/// Whether the function stands for code without names and is named after its binary.
pub fn is_unnamed(function: &str) -> bool {
    function.starts_with('[')
}

/// Name for all code without names in a binary.
pub(in crate::program) fn unnamed(module: &str) -> String {
    if is_unnamed(module) { module.to_owned() } else { format!("[{module}]") }
}

/// Whether the function is the one by which a Python interpreter takes its global lock.
pub(in crate::program) fn takes_the_gil(function: &str) -> bool {
    function == "take_gil"
}

/// Whether a binary is an OpenMP library. It computes nothing itself: on top of a stack, threads wait there for each other.
/// Copies in Python packages have a number in their names.
pub(in crate::program) fn is_openmp(module: &str) -> bool {
    of_file(&FIXED, module) == Some(FunctionOrigin::Runtime(Runtime::OpenMp))
}

/// Whether a binary belongs to MPI.
pub(in crate::program) fn is_mpi(module: &str) -> bool {
    OF_MPI.iter().any(|start| module.starts_with(start))
}

/// Whether a binary is the C library, its loader, or the clock in the vDSO.
pub(in crate::program) fn is_c_library(module: &str) -> bool {
    of_file(&STANDARD, module) == Some(CLibrary)
}

/// Removes a version such as `@GLIBC_2.34` from the name.
pub(in crate::program) fn without_version(name: &str) -> &str {
    name.split('@').next().unwrap_or(name)
}

fn of_file(table: &[(&str, FunctionOrigin)], file: &str) -> Option<FunctionOrigin> {
    table.iter().find(|(start, _)| file.starts_with(start)).map(|(_, origin)| *origin)
}

fn is_standard_source(line: &str) -> bool {
    ["/rustc/", "/usr/include/", "/usr/lib/gcc/"].iter().any(|start| line.starts_with(start))
        || ["/rustlib/src/rust/library/", "/include/c++/", "/go/src/runtime/"]
            .iter()
            .any(|part| line.contains(part))
}

/// Whether a name is Rust's or C++'s own: their paths, and Rust's methods of built-in types (`<u64>::wrapping_mul`, `<&T as
/// core::fmt::Debug>::fmt`), unless the type or the trait belongs to another crate.
fn is_standard_name(name: &str) -> bool {
    const OWN: [&str; 5] = ["core", "alloc", "std", "__gnu_cxx", "__rust_alloc"];
    let is_own = |word: &str| OWN.contains(&word.split("::").next().unwrap_or_default());
    let Some(inner) = name.strip_prefix('<') else {
        // In C++ names, a return type precedes the name of a template.
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

    fn is_standard(name: &str, module: &str, line: Option<&str>) -> bool {
        FunctionOrigin::of(name, Some(module), line).is_standard()
    }

    #[test]
    fn functions_of_the_language_s_library_are_standard() {
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
            assert!(is_standard(name, "shop", None), "{name}");
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
            assert!(!is_standard(name, "shop", None), "{name}");
        }
        assert!(is_standard("malloc", "libc.so.6", None));
        assert!(is_standard("malloc@plt", "shop", None));
        assert!(is_standard("clock_gettime", "[vdso]", None));
        assert!(!is_standard("compress", "libz.so.1", None));
    }

    #[test]
    fn a_function_s_source_place_decides_before_its_name() {
        let line = |name: &str, line: &str| is_standard(name, "shop", Some(line));
        assert!(line("lt", "/rustc/58cf8f/library/core/src/cmp.rs:1"));
        assert!(line(
            "push",
            "/root/.rustup/toolchains/x/lib/rustlib/src/rust/library/alloc/src/vec/mod.rs:2"
        ));
        assert!(line("operator[]", "/usr/include/c++/12/bits/stl_vector.h:3"));
        assert!(!line("std::hash<Cart>::operator()(Cart const&)", "/srv/shop/cart.cpp:7"), "the user's own");
        assert!(line("core::hint::black_box", "hint.rs:4"), "no folder: the name decides");
    }

    #[test]
    fn a_function_s_origin_follows_from_its_binary_and_name() {
        for (name, module, origin) in [
            ("parse", Some("shop"), User),
            ("compress", Some("libz.so.1"), User),
            ("[libz.so.1]", None, User),
            (CODE_WITHOUT_A_FILE, None, User),
            ("[libc.so.6]", Some("libc.so.6"), CLibrary),
            ("[libc.so.6]", None, CLibraryByName),
            ("epoll_wait", Some("shop"), CLibraryByName),
            ("start_thread@GLIBC_2.34", Some("shop"), StartUp),
            ("PyList_Append", Some("libpython3.11.so.1.0"), FunctionOrigin::Runtime(Runtime::Python)),
            ("[libgomp.so.1.0.0]", None, FunctionOrigin::Runtime(Runtime::OpenMp)),
            ("f", Some("libgomp-a34b3233.so.1.0.0"), FunctionOrigin::Runtime(Runtime::OpenMp)),
            ("f", Some("libiomp5.so"), FunctionOrigin::Runtime(Runtime::OpenMp)),
            ("plan", Some("libompl.so.16"), User),
            ("opal_progress", Some("libopen-pal.so.40.30.2"), FunctionOrigin::Runtime(Runtime::Mpi)),
            ("[mca_btl_vader.so]", None, FunctionOrigin::Runtime(Runtime::Mpi)),
            ("PMPI_Recv", Some("libmpich.so.12.2.2"), FunctionOrigin::Runtime(Runtime::Mpi)),
            ("mul", Some("libmpir.so.23"), User),
            ("f", Some("longpole-preload.so"), Recorder),
            ("runtime.mallocgc", Some("shop"), FunctionOrigin::Runtime(Runtime::Go)),
            ("je_malloc", Some("libjemalloc.so.2"), Allocator),
            (UNKNOWN, None, Nowhere),
        ] {
            assert_eq!(FunctionOrigin::of(name, module, None), origin, "{name} in {module:?}");
        }
    }

    #[test]
    fn unnamed_code_is_called_after_its_binary() {
        assert_eq!([unnamed("libz.so.1"), unnamed("[vdso]")], ["[libz.so.1]", "[vdso]"]);
        let library = Function { name: unnamed("libz.so.1"), ..Function::default() };
        assert!(library.is_unnamed_library() && !library.has_name() && !library.is_authors());
    }
}
