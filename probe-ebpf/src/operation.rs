//! Synchronization operations of processes into which no library could be put: probes on libc's own functions.
//! There is one program for every probe, distinguished by its cookie, and one record for each finished call, as the
//! library writes it.
//!
//! A thread's calls in progress are kept with their stack pointers: a `ret` ends the call whose frame is at the stack
//! pointer. A call left in another way (`longjmp`, cancellation) has ended as soon as another one begins
//! above its frame on the same stack. libc calls its own functions, too: such a call is part of the program's
//! call, and gets no record.

use core::mem::offset_of;

use aya_ebpf::{
    EbpfContext,
    bindings::{BPF_ANY, BPF_F_MMAPABLE, BPF_F_NO_PREALLOC, bpf_pidns_info, pt_regs},
    helpers::{
        bpf_get_current_pid_tgid,
        generated::{bpf_get_attach_cookie, bpf_get_ns_current_pid_tgid},
    },
    macros::{map, uprobe},
    maps::{Array, HashMap},
    programs::ProbeContext,
};
use probe_abi::{
    Context, Kind, LibcCookie, LibcProcess, LibcSite, MAX_LIBC_SITES, MAX_OPEN_OPERATIONS, MAX_OWN_RANGES,
    MutexLayout, ObjectFrom, OpenOperation, OpenOperations, Operation, OperationFlags, Part, SecondFrom,
    SyncOperation,
};

use crate::{
    filter,
    function::{OTHER_STACK_BYTES, count_call, read_return_address},
    libc_memory::{kind, outcome, read_half, read_word},
    memory,
    ring::{self, count},
    settings::setting,
};

const ONCE: u8 = SyncOperation::Once as u8;
const EOWNERDEAD: i32 = 130;

/// A call whose frame is less than this far below that of another call is libc's own: the frame of a signal handler is
/// further below (red zone, registers, 512 bytes of FP state).
const OWN_CALL_BYTES: u64 = 1024;

const MASK: usize = MAX_OPEN_OPERATIONS - 1;

static NONE_OPEN: OpenOperations = OpenOperations::NONE;

/// Calls in progress by thread id.
#[map]
static OPERATIONS: HashMap<u32, OpenOperations> = HashMap::with_max_entries(65_536, BPF_F_NO_PREALLOC);

/// The sites of functions, by number, written by the user side.
#[map]
static LIBC_SITES: Array<LibcSite> = Array::with_max_entries(MAX_LIBC_SITES as u32, BPF_F_MMAPABLE);

/// Facts about processes with probes, written by the user side.
#[map]
static LIBC_PROCESSES: HashMap<u32, LibcProcess> = HashMap::with_max_entries(4_096, BPF_F_NO_PREALLOC);

/// Facts about a hit that every part of a call needs.
#[derive(Clone, Copy)]
struct Hit {
    time_ns: u64,
    tid: u32,
    pid: u32,
    regs: *const pt_regs,
    cookie: LibcCookie,
}

/// A probe was hit.
#[uprobe(multi)]
pub fn operation_probe(context: ProbeContext) -> u32 {
    let both = bpf_get_current_pid_tgid();
    let (tid, pid) = (both as u32, (both >> 32) as u32);
    if !filter::is_tracked(pid) {
        return 0;
    }
    // SAFETY: the helper takes this program's context.
    let cookie = LibcCookie::from_bits(unsafe { bpf_get_attach_cookie(context.as_ptr()) });
    count!(libc_hits);
    let regs: *const pt_regs = context.regs.cast_const();
    let hit = Hit { time_ns: ring::now_ns(), tid, pid, regs, cookie };
    match cookie.part {
        Part::Leave => leave(&hit),
        Part::Ran => ran(&hit),
        Part::Loader => loader_starts(&hit),
        Part::Enter | Part::Whole | Part::Gone => begin(&hit),
    }
    0
}

impl Hit {
    #[inline(always)]
    fn stack_pointer(&self) -> u64 {
        // SAFETY: the context of this program is the thread's user registers.
        unsafe { (*self.regs).rsp }
    }

    #[inline(always)]
    fn instruction(&self) -> u64 {
        // SAFETY: the context of this program is the thread's user registers.
        unsafe { (*self.regs).rip }
    }

    #[inline(always)]
    fn argument(&self) -> u64 {
        // SAFETY: the context of this program is the thread's user registers.
        unsafe { (*self.regs).rdi }
    }

    #[inline(always)]
    fn second(&self) -> u64 {
        // SAFETY: the context of this program is the thread's user registers.
        let second = unsafe { (*self.regs).rsi };
        // SAFETY: the context of this program is the thread's user registers.
        let third = unsafe { (*self.regs).rdx };
        // SAFETY: the context of this program is the thread's user registers.
        let fourth = unsafe { (*self.regs).rcx };
        match self.cookie.function.second {
            SecondFrom::Nothing => 0,
            SecondFrom::Mutex => second,
            SecondFrom::Count2 => u64::from(third as u32),
            SecondFrom::Count3 => u64::from(fourth as u32),
        }
    }

    #[inline(always)]
    fn result(&self) -> u64 {
        // SAFETY: the context of this program is the thread's user registers.
        unsafe { (*self.regs).rax }
    }
}

#[inline(always)]
fn begin(hit: &Hit) {
    let counters = setting!(first_libc_counters).wrapping_add(u32::from(hit.cookie.counters));
    let on = count_call(counters, hit.time_ns);
    let Some(site) = LIBC_SITES.get_ptr(u32::from(hit.cookie.site)) else { return };
    let stack_pointer = hit.stack_pointer();
    let caller = read_return_address(stack_pointer);
    // SAFETY: a map value.
    let base = hit.instruction().wrapping_sub(unsafe { (*site).entry });
    if is_libcs_own(hit.pid, site, base, caller) {
        return;
    }
    if !on {
        return;
    }
    let function = hit.cookie.function;
    if hit.cookie.part == Part::Whole {
        let outcome = outcome(site, base, function.outcome, hit.result());
        return write(hit, hit.time_ns, hit.argument(), 0, caller, function.operation, 0, outcome);
    }
    let Some(open) = open_of(hit.tid, hit.pid) else {
        count!(unfolded);
        return;
    };
    drop_gone(open, stack_pointer);
    // SAFETY: a word of a map value.
    let mut depth = unsafe { memory::load(depth_of(open)) };
    if depth > 0 {
        // SAFETY: the index is below the array's length, in a map value that only this thread uses.
        let outer = unsafe { (*open).open[depth.wrapping_sub(1) as usize & MASK] };
        if is_part_of(&outer, hit, stack_pointer, caller) {
            return;
        }
        // A call with the same frame as the new one was left without a `ret`.
        depth -= u64::from(outer.stack_pointer == stack_pointer);
    }
    if depth as usize >= MAX_OPEN_OPERATIONS {
        count!(unfolded);
        return;
    }
    let object = match function.object {
        ObjectFrom::Argument | ObjectFrom::Created => hit.argument(),
        ObjectFrom::Nothing | ObjectFrom::Result => 0,
    };
    let mut flags = 0;
    if function.looks_at_mutex && is_acquisition(function.operation) && held_by_another(hit, site, object) {
        flags = OperationFlags::CONTENDED;
    }
    let new = OpenOperation {
        stack_pointer,
        caller,
        began_ns: hit.time_ns,
        object,
        second: hit.second(),
        cookie: hit.cookie.to_bits(),
        base,
        flags: u64::from(flags),
    };
    // SAFETY: the index is below the array's length, in a map value that only this thread uses.
    unsafe { (*open).open[depth as usize & MASK] = new };
    // SAFETY: a word of a map value.
    unsafe { memory::store(depth_of(open), depth + 1) };
    if hit.cookie.part == Part::Gone {
        write(hit, hit.time_ns, 0, 0, caller, function.operation, 0, 0);
    }
}

#[inline(always)]
fn leave(hit: &Hit) {
    let Some(open) = OPERATIONS.get_ptr_mut(&hit.tid) else { return };
    let Some(top) = take_at(open, hit.stack_pointer()) else { return };
    let cookie = LibcCookie::from_bits(top.cookie);
    let function = cookie.function;
    let Some(site) = LIBC_SITES.get_ptr(u32::from(cookie.site)) else { return };
    let result = hit.result();
    let outcome = outcome(site, top.base, function.outcome, result);
    let object = match function.object {
        ObjectFrom::Argument => top.object,
        ObjectFrom::Nothing => 0,
        ObjectFrom::Result => result,
        ObjectFrom::Created if outcome == 0 => read_word(top.object).unwrap_or(0),
        ObjectFrom::Created => 0,
    };
    let mut flags = top.flags as u16;
    // Only the holder of a mutex, or the thread that has just initialized it, knows that its memory is valid.
    if function.looks_at_mutex && (outcome == 0 || outcome == EOWNERDEAD) {
        flags |= kind(site, object);
    }
    write(hit, top.began_ns, object, top.second, top.caller, function.operation, flags, outcome);
}

/// The routine of `once` is about to be called.
#[inline(always)]
fn ran(hit: &Hit) {
    let Some(open) = OPERATIONS.get_ptr_mut(&hit.tid) else { return };
    // SAFETY: a word of a map value.
    let depth = unsafe { memory::load(depth_of(open)) };
    if depth == 0 {
        return;
    }
    // SAFETY: the index is below the array's length, in a map value that only this thread uses.
    let top = unsafe { &mut (*open).open[depth.wrapping_sub(1) as usize & MASK] };
    if LibcCookie::from_bits(top.cookie).function.operation == ONCE
        && hit.stack_pointer() <= top.stack_pointer
    {
        top.flags |= u64::from(OperationFlags::RAN);
    }
}

/// The loader of a new program starts: notes its addresses, which are known from now on.
#[inline(always)]
fn loader_starts(hit: &Hit) {
    let Some(site) = LIBC_SITES.get_ptr(u32::from(hit.cookie.site)) else { return };
    let Some(process) = LIBC_PROCESSES.get_ptr_mut(&hit.pid) else { return };
    // SAFETY: a map value.
    let entry = unsafe { (*site).entry };
    // SAFETY: a map value.
    let from = unsafe { (*site).text_from };
    // SAFETY: a map value.
    let to = unsafe { (*site).text_to };
    let base = hit.instruction().wrapping_sub(entry);
    // SAFETY: a map value.
    unsafe { (*process).own[0] = [base.wrapping_add(from), base.wrapping_add(to)] };
}

/// Whether a call comes from libc's own code: from the function's library, or from another file that belongs to it.
#[inline(always)]
fn is_libcs_own(pid: u32, site: *const LibcSite, base: u64, caller: u64) -> bool {
    // SAFETY: a map value.
    let from = unsafe { (*site).text_from };
    // SAFETY: a map value.
    let to = unsafe { (*site).text_to };
    let linked = caller.wrapping_sub(base);
    if linked >= from && linked < to {
        return true;
    }
    let Some(process) = LIBC_PROCESSES.get_ptr(&pid) else { return false };
    for index in 0..MAX_OWN_RANGES {
        // SAFETY: the index is below the array's length, in a map value.
        let [from, to] = unsafe { (*process).own[index] };
        if caller >= from && caller < to {
            return true;
        }
    }
    false
}

/// Whether a call is a part of the outer one: a jump to another function (C11's names for old ones) with the same
/// frame, or a call by libc itself from unknown addresses.
#[inline(always)]
fn is_part_of(outer: &OpenOperation, hit: &Hit, stack_pointer: u64, caller: u64) -> bool {
    let below = outer.stack_pointer.wrapping_sub(stack_pointer);
    let outer_cookie = LibcCookie::from_bits(outer.cookie);
    if below == 0 {
        return outer.caller == caller && outer_cookie.site != hit.cookie.site;
    }
    if below >= OWN_CALL_BYTES {
        return false;
    }
    // The routine of `once`, and functions that run when a thread ends, are the program's. An outer call that was left
    // in another way contains no further calls.
    let (outer_operation, operation) = (outer_cookie.function.operation, hit.cookie.function.operation);
    let calls_back = outer_operation == ONCE || outer_operation == SyncOperation::ThreadExit as u8;
    (!calls_back || outer_operation == operation) && read_return_address(outer.stack_pointer) == outer.caller
}

/// The calls in progress of a thread; made if it has none yet; `None` without memory.
#[inline(always)]
fn open_of(tid: u32, pid: u32) -> Option<*mut OpenOperations> {
    if let Some(open) = OPERATIONS.get_ptr_mut(&tid) {
        return Some(open);
    }
    let _ = OPERATIONS.insert(&tid, &NONE_OPEN, u64::from(BPF_ANY));
    let open = OPERATIONS.get_ptr_mut(&tid)?;
    // SAFETY: a word of a map value.
    unsafe { memory::store(memory::word(open, offset_of!(OpenOperations, pid)), u64::from(pid)) };
    Some(open)
}

#[inline(always)]
fn depth_of(open: *mut OpenOperations) -> *mut u64 {
    memory::word(open, offset_of!(OpenOperations, depth))
}

/// Removes the call whose frame is at `stack_pointer`, with all calls inside it. `None`: this is the `ret` of a
/// function that libc itself uses, or of a call that began before the probes were attached.
#[inline(always)]
fn take_at(open: *mut OpenOperations, stack_pointer: u64) -> Option<OpenOperation> {
    // SAFETY: a word of a map value.
    let mut index = unsafe { memory::load(depth_of(open)) };
    for _ in 0..MAX_OPEN_OPERATIONS {
        if index == 0 || index > MAX_OPEN_OPERATIONS as u64 {
            return None;
        }
        index -= 1;
        // SAFETY: the index is below the array's length, in a map value that only this thread uses.
        let call = unsafe { (*open).open[index as usize & MASK] };
        if call.stack_pointer == stack_pointer {
            // SAFETY: a word of a map value.
            unsafe { memory::store(depth_of(open), index) };
            return Some(call);
        }
    }
    None
}

/// Drops the innermost calls that must have ended when a call begins at `stack_pointer`: those below it on the same
/// stack. A call with the same frame is kept, since the new one may be a part of it.
#[inline(always)]
fn drop_gone(open: *mut OpenOperations, stack_pointer: u64) {
    for _ in 0..MAX_OPEN_OPERATIONS {
        // SAFETY: a word of a map value.
        let depth = unsafe { memory::load(depth_of(open)) };
        if depth == 0 || depth > MAX_OPEN_OPERATIONS as u64 {
            return;
        }
        // SAFETY: the index is below the array's length, in a map value that only this thread uses.
        let top = unsafe { (*open).open[(depth - 1) as usize & MASK].stack_pointer };
        let above = stack_pointer.wrapping_sub(top);
        if above == 0 || above > OTHER_STACK_BYTES {
            return;
        }
        // SAFETY: a word of a map value.
        unsafe { memory::store(depth_of(open), depth - 1) };
    }
}

#[inline(always)]
fn is_acquisition(operation: u8) -> bool {
    operation == SyncOperation::MutexLock as u8
        || operation == SyncOperation::MutexTryLock as u8
        || operation == SyncOperation::MutexTimedLock as u8
}

/// Whether another thread holds a mutex.
#[inline(always)]
fn held_by_another(hit: &Hit, site: *const LibcSite, mutex: u64) -> bool {
    const MUSL_OWNER: u32 = 0x3fff_ffff;
    // SAFETY: a map value.
    let layout = unsafe { (*site).layout };
    let owner = if layout == MutexLayout::Glibc as u32 {
        match (read_half(mutex), read_half(mutex.wrapping_add(8))) {
            (Some(lock), Some(owner)) if lock != 0 => owner,
            _ => return false,
        }
    } else if layout == MutexLayout::Musl as u32 {
        match read_half(mutex.wrapping_add(4)) {
            Some(lock) if lock & MUSL_OWNER != 0 => lock & MUSL_OWNER,
            _ => return false,
        }
    } else {
        return false;
    };
    owner != own_number(hit)
}

/// The id of the current thread in its own PID namespace.
#[inline(always)]
fn own_number(hit: &Hit) -> u32 {
    let Some(process) = LIBC_PROCESSES.get_ptr(&hit.pid) else { return hit.tid };
    // SAFETY: a map value.
    let device = unsafe { (*process).namespace_device };
    // SAFETY: a map value.
    let inode = unsafe { (*process).namespace_inode };
    if inode == 0 {
        return hit.tid;
    }
    let mut ids = bpf_pidns_info { pid: 0, tgid: 0 };
    // SAFETY: the helper writes the struct, whose size it gets.
    let failed = unsafe {
        bpf_get_ns_current_pid_tgid(device, inode, &raw mut ids, size_of::<bpf_pidns_info>() as u32)
    };
    if failed == 0 { ids.pid } else { hit.tid }
}

#[expect(clippy::too_many_arguments, reason = "the fields of one record")]
#[inline(always)]
fn write(
    hit: &Hit,
    began_ns: u64,
    object: u64,
    second: u64,
    caller: u64,
    operation: u8,
    flags: u16,
    outcome: i32,
) {
    count!(libc_records);
    ring::write(Kind::Operation, Context::Task, hit.time_ns, hit.tid, hit.pid, |header| Operation {
        header,
        began_ns,
        object,
        second,
        caller,
        operation: u16::from(operation),
        flags,
        outcome,
    });
}

/// Forgets the addresses of a process's libraries, since the process runs another program.
#[inline(always)]
pub fn forget_libraries(pid: u32) {
    let Some(process) = LIBC_PROCESSES.get_ptr_mut(&pid) else { return };
    for index in 0..MAX_OWN_RANGES {
        // SAFETY: the index is below the array's length, in a map value.
        unsafe { (*process).own[index] = [0; 2] };
    }
}

/// Drops the calls of a thread that has ended or runs another program.
#[inline(always)]
pub fn forget_thread(tid: u32) {
    // Most threads have no entry; then nothing happens.
    let _ = OPERATIONS.remove(&tid);
}
