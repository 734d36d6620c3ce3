//! Requests over stream sockets. They are counted, and those that recorded processes answer are also recorded one by one.
//!
//! A server's socket is one on whose port a recorded process listens, or a Unix socket with a name of its own. There a message
//! that comes in is a request, and the first message sent after it begins the answer. On other sockets it is the other way
//! round: a message sent is a request, and the first message that comes in begins the answer. A request begins when it lies in
//! the socket, not when a thread reads it, also on a connection that no thread has accepted yet; for the first request on a
//! Unix socket that time is unknown. Several requests sent together count as one.

use core::mem::offset_of;

use aya_ebpf::{
    bindings::{BPF_F_MMAPABLE, BPF_F_NO_PREALLOC},
    helpers::generated::bpf_get_socket_cookie,
    macros::{btf_tracepoint, map},
    maps::{Array, HashMap, PerCpuArray, PerCpuHashMap},
    programs::BtfTracePointContext,
};
use probe_abi::{
    Answer, Context, Exchange, Kind, MAX_LISTENING, MAX_REQUEST_KEYS, OPEN_SOCKETS, OpenSocket,
    REQUEST_BUCKETS, RequestCounts, RequestKey, request_bucket,
};

use crate::{
    filter,
    kernel::{Socket, Task},
    memory, ring,
    settings::setting,
};

/// Sums by process and port.
#[map]
static REQUESTS: PerCpuHashMap<RequestKey, RequestCounts> =
    PerCpuHashMap::with_max_entries(MAX_REQUEST_KEYS, BPF_F_NO_PREALLOC);

/// A sum of all 0, with which each sum begins. It is too large for a program's stack.
#[map]
static NO_REQUESTS: PerCpuArray<RequestCounts> = PerCpuArray::with_max_entries(1, 0);

/// Sockets of recorded processes.
#[map]
static SOCKETS: Array<OpenSocket> = Array::with_max_entries(OPEN_SOCKETS, BPF_F_MMAPABLE);

/// The number of the present stretch, set by the user side. Nothing is carried over from one stretch to the next.
#[map]
static STRETCH: Array<u64> = Array::with_max_entries(1, 0);

/// Ports on which recorded processes listen. The user side has added those that were open before.
#[map]
static LISTENING: HashMap<u16, u8> = HashMap::with_max_entries(MAX_LISTENING, 0);

/// Messages of recorded processes, from which the programs' cost is computed.
#[map]
static MESSAGES: PerCpuArray<u64> = PerCpuArray::with_max_entries(1, 0);

/// Requests that were not counted, because another socket had the same place, or there was no room for a sum.
#[map]
static REQUESTS_LOST: PerCpuArray<u64> = PerCpuArray::with_max_entries(1, 0);

/// Reads a word of an open socket.
macro_rules! get {
    ($open:ident, $field:ident) => {
        // SAFETY: a word of a map value.
        unsafe { memory::load(memory::word($open, offset_of!(OpenSocket, $field))) }
    };
}

/// Writes a word of an open socket.
macro_rules! set {
    ($open:ident, $field:ident, $value:expr) => {
        // SAFETY: a word of a map value.
        unsafe { memory::store(memory::word($open, offset_of!(OpenSocket, $field)), $value) }
    };
}

/// Adds to a word of a sum of this CPU, without a lock. If another thread interrupts the addition, one of the two
/// additions is missing; that has not been seen to matter.
macro_rules! add {
    ($counts:ident, $field:ident, $value:expr) => {
        plus(memory::word($counts, offset_of!(RequestCounts, $field)), $value)
    };
}

#[inline(always)]
fn plus(word: *mut u64, value: u64) {
    // SAFETY: a word of a map value.
    let before = unsafe { memory::load(word) };
    // SAFETY: a word of a map value.
    unsafe { memory::store(word, before.wrapping_add(value)) };
}

/// A thread has read from a socket. Arguments: `sock`, `int ret`, `int flags`.
#[btf_tracepoint(function = "sock_recv_length")]
pub fn sock_recv_length(arguments: BtfTracePointContext) -> i32 {
    /// The flag of a read that leaves the data in the socket.
    const MSG_PEEK: i32 = 2;
    let task = Task::current();
    let is_peek = arguments.arg::<i32>(2) & MSG_PEEK != 0;
    if !filter::is_tracked(task.pid()) || arguments.arg::<i32>(1) <= 0 || is_peek {
        return 0;
    }
    message(&arguments, task, true);
    0
}

/// A thread has written to a socket. Arguments: `sock`, `int ret`, `int flags`.
#[btf_tracepoint(function = "sock_send_length")]
pub fn sock_send_length(arguments: BtfTracePointContext) -> i32 {
    let task = Task::current();
    if !filter::is_tracked(task.pid()) || arguments.arg::<i32>(1) <= 0 {
        return 0;
    }
    message(&arguments, task, false);
    0
}

/// A socket has data for a thread; any CPU may notice it. Argument: `sock`.
#[btf_tracepoint(function = "sk_data_ready")]
pub fn sk_data_ready(arguments: BtfTracePointContext) -> i32 {
    let socket = number(&arguments);
    let Some(open) = place(socket) else { return 0 };
    if !is_of(open, socket) {
        return 0;
    }
    if get!(open, began_ns) != 0 {
        if get!(open, answered_ns) == 0 {
            set!(open, answered_ns, ring::now_ns());
        }
    } else if get!(open, arrived_ns) == 0 {
        set!(open, arrived_ns, ring::now_ns());
    }
    0
}

/// A TCP socket's state changes. Arguments: `sock`, `int oldstate`, `int newstate`.
#[btf_tracepoint(function = "inet_sock_set_state")]
pub fn inet_sock_set_state(arguments: BtfTracePointContext) -> i32 {
    /// Numbers of a socket's states, from Linux `include/net/tcp_states.h`.
    const TCP_ESTABLISHED: i32 = 1;
    const TCP_SYN_RECV: i32 = 3;
    const TCP_LISTEN: i32 = 10;
    let (before, now) = (arguments.arg::<i32>(1), arguments.arg::<i32>(2));
    if now == TCP_LISTEN && filter::is_tracked(Task::current().pid()) {
        // If there is no room for the port, its requests count as sent by the process.
        let _ = LISTENING.insert(&Socket(arguments.arg(0)).port(), &1, 0);
    }
    if before == TCP_SYN_RECV && now == TCP_ESTABLISHED {
        connected(&arguments);
    }
    0
}

/// A client has connected to a server. Its request may arrive before a thread accepts the connection.
#[inline(always)]
fn connected(arguments: &BtfTracePointContext) {
    let (socket, number) = (Socket(arguments.arg(0)), number(arguments));
    if let Some(open) = place(number)
        // The process is not known yet; the one that answers counts.
        && let Some(key) = key(socket, 0)
        && key.served == 1
    {
        take_place(open, number, key);
    }
}

/// Gives a place to another socket.
#[inline(always)]
fn take_place(open: *mut OpenSocket, number: u64, key: RequestKey) {
    if get!(open, socket) != 0 && get!(open, began_ns) != 0 && get!(open, stretch) == stretch() {
        lost();
    }
    set!(open, socket, number);
    set!(open, stretch, stretch());
    set!(open, unasked, 0);
    set!(open, arrived_ns, 0);
    set!(open, began_ns, 0);
    set!(open, ended_ns, 0);
    set!(open, answered_ns, 0);
    let [first, second] = zerocopy::transmute!(key);
    set_key(open, first, second);
}

/// A thread has read a message, or sent one.
#[inline(always)]
fn message(arguments: &BtfTracePointContext, task: Task, is_read: bool) {
    let (socket, number, pid) = (Socket(arguments.arg(0)), number(arguments), task.pid());
    let Some(open) = place(number) else { return };
    if let Some(messages) = MESSAGES.get_ptr_mut(0) {
        plus(messages, 1);
    }
    if !is_of(open, number) {
        let Some(key) = key(socket, pid) else { return };
        take_place(open, number, key);
    }
    let key = key_of(open);
    let began_ns = get!(open, began_ns);
    if is_read == (key.served == 1) {
        begin(open, socket, task, is_read, began_ns);
        return;
    }
    if began_ns == 0 {
        if is_read {
            set!(open, unasked, 1);
        }
        return;
    }
    let (arrived_ns, ended_ns) = (get!(open, arrived_ns), get!(open, ended_ns));
    let answered_ns = get!(open, answered_ns);
    let now_ns = ring::now_ns();
    set!(open, began_ns, 0);
    set!(open, arrived_ns, 0);
    set!(open, ended_ns, now_ns);
    // Two threads have answered the request at once.
    if arrived_ns == 0 {
        lost();
        return;
    }
    // If several processes share the socket, the one that answers counts.
    count(&RequestKey { pid, ..key }, [ended_ns, arrived_ns, began_ns, now_ns]);
    let reader = get!(open, reader) as u32;
    if setting!(exchanges) == 1 && socket.is_tcp() {
        let times = [arrived_ns, began_ns, if answered_ns == 0 { now_ns } else { answered_ns }, now_ns];
        exchange((socket, key), task, reader, times, arguments.arg::<i32>(1));
    }
    if key.served == 1 {
        ring::write(Kind::Answer, Context::Task, now_ns, task.tid(), pid, |header| Answer {
            header,
            arrived_ns,
            read_ns: began_ns,
            reader,
            port: key.port,
            family: key.family,
        });
    }
}

/// Writes a request of TCP. Times: when it lay in the socket, on the asking end when it was sent; when it was read or sent; when
/// the answer lay in the socket, which only the asking end knows; now. `bytes`: the length of the answer's first message.
#[inline(always)]
fn exchange(
    (socket, key): (Socket, RequestKey),
    task: Task,
    other: u32,
    [request_ns, began_ns, answered_ns, now_ns]: [u64; 4],
    bytes: i32,
) {
    let Some((written, read)) = socket.written_and_read() else { return };
    let is_served = key.served == 1;
    let (request_end, answer_end) = if is_served { (read, written) } else { (written, read) };
    let (sent_ns, arrived_ns, read_ns) = if is_served {
        (departure_ns(socket, now_ns), request_ns, began_ns)
    } else {
        (request_ns, answered_ns, now_ns)
    };
    ring::write(Kind::Exchange, Context::Task, now_ns, task.tid(), task.pid(), |header| Exchange {
        header,
        sent_ns,
        arrived_ns,
        read_ns,
        other,
        request_end,
        answer_begin: answer_end.wrapping_sub(bytes as u32),
        port: key.port,
        served: key.served as u16,
    });
}

/// Time at which the message left that a thread has just sent. The tracepoint comes after it, on the loopback device even after
/// the other end has received the message.
#[inline(always)]
fn departure_ns(socket: Socket, now_ns: u64) -> u64 {
    /// A packet that left earlier is not of this message.
    const LONGEST_CALL_NS: u64 = 10_000_000;
    let left_ns = socket.departure_ns();
    if now_ns.wrapping_sub(left_ns) < LONGEST_CALL_NS { left_ns } else { now_ns }
}

/// Begins a request, unless this message is a further part of the open one.
#[inline(always)]
fn begin(open: *mut OpenSocket, socket: Socket, task: Task, is_read: bool, began_ns: u64) {
    // A request whose answer was read before the request was noticed has ended.
    if began_ns != 0 {
        if get!(open, unasked) == 0 {
            return;
        }
        set!(open, unasked, 0);
    }
    let now_ns = ring::now_ns();
    if !is_read {
        let is_exact = setting!(exchanges) == 1 && socket.is_tcp();
        set!(open, arrived_ns, if is_exact { departure_ns(socket, now_ns) } else { now_ns });
    } else if get!(open, arrived_ns) == 0 {
        set!(open, arrived_ns, now_ns);
    }
    set!(open, answered_ns, 0);
    set!(open, reader, u64::from(task.tid()));
    set!(open, began_ns, now_ns);
}

/// The kernel's number of the socket that is the first argument.
#[inline(always)]
fn number(arguments: &BtfTracePointContext) -> u64 {
    let socket: *const u8 = arguments.arg(0);
    // SAFETY: a socket that the kernel passed as a typed pointer.
    unsafe { bpf_get_socket_cookie(socket.cast_mut().cast()) }
}

/// The place of a socket.
#[inline(always)]
fn place(socket: u64) -> Option<*mut OpenSocket> {
    SOCKETS.get_ptr_mut(OpenSocket::place(socket) & (OPEN_SOCKETS - 1))
}

/// Whether a place is this socket's, with content of the present stretch.
#[inline(always)]
fn is_of(open: *mut OpenSocket, socket: u64) -> bool {
    get!(open, socket) == socket && get!(open, stretch) == stretch()
}

/// The number of the present stretch.
#[inline(always)]
fn stretch() -> u64 {
    // SAFETY: a map value of 8 bytes.
    STRETCH.get_ptr(0).map_or(0, |stretch| unsafe { memory::load(stretch) })
}

/// Offset of the key in an open socket.
const KEY: usize = offset_of!(OpenSocket, key);

#[inline(always)]
fn set_key(open: *mut OpenSocket, first: u64, second: u64) {
    // SAFETY: two words of a map value.
    unsafe { memory::store(memory::word(open, KEY), first) };
    // SAFETY: a word of a map value.
    unsafe { memory::store(memory::word(open, KEY + 8), second) };
}

#[inline(always)]
fn key_of(open: *mut OpenSocket) -> RequestKey {
    // SAFETY: two words of a map value.
    let first = unsafe { memory::load(memory::word(open, KEY)) };
    // SAFETY: a word of a map value.
    let second = unsafe { memory::load(memory::word(open, KEY + 8)) };
    zerocopy::transmute!([first, second])
}

/// The key of the sum for this socket; `None`: no requests are expected on it.
#[inline(always)]
pub fn key(socket: Socket, pid: u32) -> Option<RequestKey> {
    const AF_UNIX: u16 = 1;
    const AF_INET: u16 = 2;
    const AF_INET6: u16 = 10;
    let family = socket.family();
    if !socket.is_stream() {
        return None;
    }
    if family == AF_UNIX {
        let served = socket.has_name();
        // If a pair of sockets was made together, neither end is a server.
        if !served && !socket.peer_has_name() {
            return None;
        }
        return Some(RequestKey { pid, address: 0, port: 0, family, served: u32::from(served) });
    }
    if family != AF_INET && family != AF_INET6 {
        return None;
    }
    let port = socket.port();
    // SAFETY: only its presence is checked.
    if unsafe { LISTENING.get(&port) }.is_some() {
        return Some(RequestKey { pid, address: 0, port, family, served: 1 });
    }
    let address = if family == AF_INET { socket.peer_address() } else { 0 };
    Some(RequestKey { pid, address, port: socket.peer_port(), family, served: 0 })
}

/// Counts an answered request. Times: the answer before it on its socket (0: unknown), its arrival, its beginning, its answer.
#[inline(always)]
fn count(key: &RequestKey, [before_ns, arrived_ns, began_ns, now_ns]: [u64; 4]) {
    // Another CPU's time may be a little later.
    let all_ns = now_ns.saturating_sub(arrived_ns);
    let counts = match REQUESTS.get_ptr_mut(key) {
        Some(counts) => counts,
        None => {
            let Some(none) = NO_REQUESTS.get_ptr(0) else { return };
            // SAFETY: a map value that nobody writes.
            let none = unsafe { &*none };
            if REQUESTS.insert(key, none, 0).is_err() {
                lost();
            }
            let Some(counts) = REQUESTS.get_ptr_mut(key) else { return };
            counts
        }
    };
    add!(counts, count, 1);
    add!(counts, queued_ns, began_ns.saturating_sub(arrived_ns));
    add!(counts, answered_ns, now_ns.saturating_sub(began_ns));
    if before_ns != 0 {
        add!(counts, between_ns, arrived_ns.saturating_sub(before_ns));
        add!(counts, again, 1);
        add!(counts, again_ns, all_ns);
    }
    let longest = memory::word(counts, offset_of!(RequestCounts, longest_ns));
    // SAFETY: a word of a map value.
    if unsafe { memory::load(longest) } < all_ns {
        // SAFETY: a word of a map value.
        unsafe { memory::store(longest, all_ns) };
    }
    let bucket = request_bucket(all_ns) & (REQUEST_BUCKETS - 1);
    // The mask keeps the index within the array.
    plus(memory::word(counts, offset_of!(RequestCounts, buckets) + 8 * bucket), 1);
}

/// Counts a request that is lost.
#[inline(always)]
fn lost() {
    if let Some(lost) = REQUESTS_LOST.get_ptr_mut(0) {
        // SAFETY: a map value of 8 bytes.
        unsafe { memory::add(lost, 1) };
    }
}
