//! Threads and processes being born, changing and dying.

use aya_ebpf::{macros::btf_tracepoint, programs::BtfTracePointContext};
use probe_abi::{Context, Exec, Exit, Fork, Kind, Rename};

use crate::{
    filter, function,
    kernel::{Task, read_name},
    operation, ring, sched,
    settings::setting,
    thread_context,
};

/// A thread has made another thread or process, which has not run yet. Arguments: `parent`, `child`.
#[btf_tracepoint(function = "sched_process_fork")]
pub fn sched_process_fork(arguments: BtfTracePointContext) -> i32 {
    let parent = Task(arguments.arg(0));
    let pid = parent.pid();
    let tracked = filter::is_tracked(pid);
    let child = Task(arguments.arg(1));
    let (child_tid, child_pid) = (child.tid(), child.pid());
    if child_pid != pid {
        // A new process may get the id of a process that has ended before that one is freed.
        filter::born(child_pid, child.start_ns(), tracked && setting!(children) != 0);
    }
    if !tracked {
        return 0;
    }
    if child_pid != pid {
        thread_context::inherit(pid, child_pid);
    }
    let time_ns = ring::now_ns();
    let comm = read_name(child.name());
    ring::write(Kind::Fork, Context::Task, time_ns, parent.tid(), pid, |header| Fork {
        header,
        child_tid,
        child_pid,
        child_start_ns: child.start_ns(),
        comm,
    });
    0
}

/// A process runs a new program from now on. Arguments: `task`, `pid_t old_pid`, `linux_binprm`.
#[btf_tracepoint(function = "sched_process_exec")]
pub fn sched_process_exec(arguments: BtfTracePointContext) -> i32 {
    let task = Task(arguments.arg(0));
    let pid = task.pid();
    if !filter::is_tracked(pid) {
        return 0;
    }
    let time_ns = ring::now_ns();
    let tid = task.tid();
    let old_tid = arguments.arg::<u64>(1) as u32;
    for gone in [old_tid, tid] {
        function::forget_thread(gone);
        operation::forget_thread(gone);
    }
    thread_context::ends(time_ns, tid, pid);
    thread_context::executes(pid);
    operation::forget_libraries(pid);
    sched::current_is(tid);
    let comm = read_name(task.name());
    let first_page = task.first_page();
    ring::write(Kind::Exec, Context::Task, time_ns, tid, pid, |header| Exec {
        header,
        old_tid,
        first_page,
        comm,
    });
    0
}

/// A thread ends. Arguments: `task` and, since Linux 6.16, `bool group_dead`.
#[btf_tracepoint(function = "sched_process_exit")]
pub fn sched_process_exit(arguments: BtfTracePointContext) -> i32 {
    let task = Task(arguments.arg(0));
    let pid = task.pid();
    if !filter::is_tracked(pid) {
        return 0;
    }
    let time_ns = ring::now_ns();
    let last = if setting!(exit_has_group_dead) != 0 {
        arguments.arg::<u64>(1) as u8 != 0
    } else {
        task.is_last_of_process()
    };
    let tid = task.tid();
    function::forget_thread(tid);
    operation::forget_thread(tid);
    thread_context::ends(time_ns, tid, pid);
    sched::current_ends(task);
    let placement = task.placement();
    ring::write(Kind::Exit, Context::Task, time_ns, tid, pid, |header| Exit {
        header,
        last_of_process: u32::from(last),
        placement,
    });
    0
}

/// A thread is freed: if it was a process's leader, its process id can be used again. Argument: the task.
/// Not recorded: this comes some time after the last switch away from the thread.
#[btf_tracepoint(function = "sched_process_free")]
pub fn sched_process_free(arguments: BtfTracePointContext) -> i32 {
    let task = Task(arguments.arg(0));
    let pid = task.pid();
    if task.tid() == pid && filter::is_tracked(pid) {
        thread_context::forget_process(pid);
        filter::gone(pid, task.start_ns());
    }
    0
}

/// A thread is about to get a new name. Arguments: `task`, `const char *comm`.
#[btf_tracepoint(function = "task_rename")]
pub fn task_rename(arguments: BtfTracePointContext) -> i32 {
    let task = Task(arguments.arg(0));
    let renamed_pid = task.pid();
    if !filter::is_tracked(renamed_pid) {
        return 0;
    }
    let time_ns = ring::now_ns();
    let comm = read_name(arguments.arg(1));
    let current = Task::current();
    ring::write(Kind::Rename, Context::Task, time_ns, current.tid(), current.pid(), |header| Rename {
        header,
        renamed_tid: task.tid(),
        renamed_pid,
        comm,
    });
    0
}
