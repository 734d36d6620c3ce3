//! Work of the kernel and of runtimes for a program, by system calls on x86-64 (Linux
//! `arch/x86/entry/syscalls/syscall_64.tbl`) and by functions of runtimes.

use serde::{Deserialize, Serialize};

/// What the work of the kernel or a runtime is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SupportSubject {
    /// Memory of the process: page faults, and calls that map, unmap or return memory.
    Memory,
    /// Threads that sleep for each other and wake each other: `futex`, `sched_yield`.
    Waiting,
    /// Files and similar: `read`, `write`, `fsync`, `stat`.
    Files,
    /// Sockets, and waiting for descriptors.
    Network,
    /// Starts and ends of threads and processes.
    Processes,
    /// Other system calls.
    #[default]
    Other,
    /// A runtime finds and frees unused objects.
    GarbageCollection,
    /// A runtime compiles code while the program runs.
    Compilation,
    /// Converting objects to bytes for another process, and back.
    Serialization,
    /// Memory allocation: `malloc`, `free` and their families.
    Allocation,
}

/// Parts of names of runtimes' functions. A runtime's function on the stack decides, whatever it calls.
const RUNTIMES: [(SupportSubject, &[&str]); 3] = [
    (
        SupportSubject::GarbageCollection,
        &[
            // The JVM.
            "GangWorker::",
            "WorkerThread::run",
            "GCTaskThread",
            "ConcurrentGCThread",
            "VM_G1",
            "VM_ParallelGC",
            "VM_GenCollect",
            "G1YoungCollector",
            "PSScavenge",
            "PSParallelCompact",
            "DefNewGeneration",
            "GenCollectedHeap::do_collection",
            "ShenandoahConcurrent",
            // V8.
            "v8::internal::MarkCompactCollector",
            "v8::internal::ScavengerCollector",
            "v8::internal::Scavenger",
            "v8::internal::Heap::CollectGarbage",
            "v8::internal::ConcurrentMarking",
            "v8::internal::Sweeper",
            // Go.
            "runtime.gcBgMarkWorker",
            "runtime.gcAssistAlloc",
            "runtime.gcDrain",
            "runtime.gcStart",
            "runtime.bgsweep",
            "runtime.bgscavenge",
            // CPython, Ruby, PHP.
            "gc_collect_main",
            "gc_marks",
            "gc_sweep_",
            "garbage_collect_with_gvl",
            "zend_gc_collect_cycles",
            // GHC's collector and the threads that help it.
            "scavenge_until_all_done",
            "scavenge_capability_mut_lists",
            "gcWorkerThread",
            "scheduleDoGC",
            // OCaml, BEAM, Mono, .NET, Julia, Boehm's collector.
            "caml_empty_minor_heap",
            "caml_major_collection",
            "erts_garbage_collect",
            "sgen_perform_collection",
            "sgen_gray_object_",
            "gc_heap::gc",
            "gc_mark_loop",
            "GC_mark_from",
        ],
    ),
    (
        SupportSubject::Compilation,
        &[
            "CompileBroker::compiler_thread_loop",
            "v8::internal::OptimizingCompileDispatcher",
            "v8::internal::OptimizedCompilationJob",
            "v8::internal::baseline::ConcurrentBaselineCompiler",
            "v8::internal::Compiler::",
        ],
    ),
    (
        SupportSubject::Serialization,
        // CPython's, V8's.
        &[
            "_pickle_",
            "_Pickler_",
            "_Unpickler_",
            "v8::internal::ValueSerializer",
            "v8::internal::ValueDeserializer",
        ],
    ),
];

/// Functions of the allocators of glibc and musl.
const ALLOCATORS: [&str; 16] = [
    "malloc",
    "free",
    "calloc",
    "realloc",
    "cfree",
    "__libc_malloc",
    "__libc_free",
    "__libc_calloc",
    "__libc_realloc",
    "__libc_malloc_impl",
    "_int_malloc",
    "_int_free",
    "_int_realloc",
    "sysmalloc",
    "malloc_consolidate",
    "aligned_alloc",
];

impl SupportSubject {
    /// Whether the kernel does this work.
    pub fn is_kernels(self) -> bool {
        use SupportSubject::{Files, Memory, Network, Other, Processes, Waiting};
        matches!(self, Memory | Waiting | Files | Network | Processes | Other)
    }

    /// Whether all work below such a function counts, including system calls and other functions.
    pub fn is_whole(self) -> bool {
        use SupportSubject::{Compilation, GarbageCollection, Serialization};
        matches!(self, GarbageCollection | Compilation | Serialization)
    }

    /// Short name of a runtime's work.
    pub fn name(self) -> &'static str {
        match self {
            SupportSubject::GarbageCollection => "garbage collection",
            SupportSubject::Compilation => "compiling while it runs",
            SupportSubject::Serialization => "serialization",
            SupportSubject::Allocation => "memory allocation",
            _ => "the kernel",
        }
    }
}

/// The work that a function with this name and binary does for a program; `None`: none that is known.
pub fn runtime_work(name: &str, module: Option<&str>) -> Option<SupportSubject> {
    if module.is_some_and(|module| module.starts_with("_pickle.")) {
        return Some(SupportSubject::Serialization);
    }
    let mut of = RUNTIMES.iter().filter(|(_, parts)| parts.iter().any(|part| name.contains(part)));
    let of_runtime = of.next().map(|(subject, _)| *subject);
    of_runtime.or_else(|| is_allocator(name).then_some(SupportSubject::Allocation))
}

fn is_allocator(name: &str) -> bool {
    let name = name.split('@').next().unwrap_or(name);
    ALLOCATORS.contains(&name) || name.starts_with("operator new") || name.starts_with("operator delete")
}

/// Short name and subject of work in a system call. `None`: outside of one, for a page fault or an interrupt.
pub fn kernel_work(call: Option<u32>) -> (&'static str, SupportSubject) {
    use SupportSubject::{Files, Memory, Network, Other, Processes, Waiting};
    let Some(call) = call else { return ("page faults", Memory) };
    match call {
        0 => ("read", Files),
        1 => ("write", Files),
        2 | 257 | 437 => ("open", Files),
        3 => ("close", Files),
        4..=6 | 262 | 332 => ("stat", Files),
        7 | 271 => ("poll", Network),
        8 => ("lseek", Files),
        9 => ("mmap", Memory),
        10 => ("mprotect", Memory),
        11 => ("munmap", Memory),
        12 => ("brk", Memory),
        16 => ("ioctl", Files),
        17 => ("pread", Files),
        18 => ("pwrite", Files),
        19 | 295 | 327 => ("readv", Files),
        20 | 296 | 328 => ("writev", Files),
        23 | 270 => ("select", Network),
        24 => ("sched_yield", Waiting),
        25 => ("mremap", Memory),
        26 => ("msync", Files),
        28 | 440 => ("madvise", Memory),
        35 | 230 => ("nanosleep", Waiting),
        40 => ("sendfile", Files),
        41 | 53 => ("socket", Network),
        42 => ("connect", Network),
        43 | 288 => ("accept", Network),
        44 | 46 | 307 => ("send", Network),
        45 | 47 | 299 => ("recv", Network),
        56 | 435 => ("clone", Processes),
        57 | 58 => ("fork", Processes),
        59 | 322 => ("execve", Processes),
        60 | 231 => ("exit", Processes),
        61 | 247 => ("wait", Processes),
        62 | 200 | 234 => ("kill", Other),
        72 => ("fcntl", Files),
        73 => ("flock", Files),
        74 | 75 | 162 | 306 => ("fsync", Files),
        78 | 217 => ("getdents", Files),
        82 | 264 | 316 => ("rename", Files),
        87 | 263 => ("unlink", Files),
        149..=152 => ("mlock", Memory),
        202 | 449 | 454..=456 => ("futex", Waiting),
        208 | 426 => ("io_uring_enter", Files),
        232 | 281 | 441 => ("epoll_wait", Network),
        233 => ("epoll_ctl", Network),
        326 => ("copy_file_range", Files),
        _ => ("other system calls", Other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares with the C library's numbers.
    #[test]
    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    fn kernel_work_has_the_c_library_s_call_numbers() {
        let names = [
            (libc::SYS_munmap, "munmap"),
            (libc::SYS_mmap, "mmap"),
            (libc::SYS_mprotect, "mprotect"),
            (libc::SYS_brk, "brk"),
            (libc::SYS_mremap, "mremap"),
            (libc::SYS_madvise, "madvise"),
            (libc::SYS_process_madvise, "madvise"),
            (libc::SYS_mlock, "mlock"),
            (libc::SYS_futex, "futex"),
            (libc::SYS_sched_yield, "sched_yield"),
            (libc::SYS_openat, "open"),
            (libc::SYS_openat2, "open"),
            (libc::SYS_newfstatat, "stat"),
            (libc::SYS_statx, "stat"),
            (libc::SYS_ioctl, "ioctl"),
            (libc::SYS_clone3, "clone"),
            (libc::SYS_vfork, "fork"),
            (libc::SYS_execveat, "execve"),
            (libc::SYS_exit_group, "exit"),
            (libc::SYS_sendmmsg, "send"),
            (libc::SYS_recvmmsg, "recv"),
            (libc::SYS_socketpair, "socket"),
            (libc::SYS_epoll_ctl, "epoll_ctl"),
            (libc::SYS_renameat2, "rename"),
            (libc::SYS_unlinkat, "unlink"),
            (libc::SYS_tgkill, "kill"),
            (libc::SYS_fdatasync, "fsync"),
        ];
        for (number, name) in names {
            assert_eq!(kernel_work(u32::try_from(number).ok()).0, name, "{number}");
        }
        assert_eq!(kernel_work(None), ("page faults", SupportSubject::Memory));
        assert_eq!(kernel_work(Some(u32::MAX)).1, SupportSubject::Other);
    }

    #[test]
    fn functions_of_runtimes_have_a_subject_and_users_functions_none() {
        for (name, module, subject) in [
            ("GangWorker::run(WorkData)", None, Some(SupportSubject::GarbageCollection)),
            (
                "v8::internal::ScavengerCollector::CollectGarbage()",
                None,
                Some(SupportSubject::GarbageCollection),
            ),
            ("runtime.gcBgMarkWorker", None, Some(SupportSubject::GarbageCollection)),
            ("CompileBroker::compiler_thread_loop()", None, Some(SupportSubject::Compilation)),
            ("save", Some("_pickle.cpython-311.so"), Some(SupportSubject::Serialization)),
            ("malloc@GLIBC_2.2.5", Some("libc.so.6"), Some(SupportSubject::Allocation)),
            ("operator new(unsigned long)", None, Some(SupportSubject::Allocation)),
            ("save", Some("shop"), None),
            ("malloc_pages", Some("shop"), None),
            ("Pool::free", Some("shop"), None),
        ] {
            assert_eq!(runtime_work(name, module), subject, "{name}");
        }
    }
}
