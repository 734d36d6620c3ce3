//! Sentences for limits that need more than one line of code.

use crate::cell::{duration, grouped};
use crate::cpu_words::cpus;
use crate::present::words::cause::words as cause;
use crate::present::words::short::short;
use engine::event::SupportSubject;
use engine::limit::{GoroutinesWait, Limit, LimitKind, Meanwhile, WORTH};
use engine::program::{LockWaits, bare_name, wait_of};

/// Waits for locks of the kernel with a smaller share of the threads' time are not mentioned.
const TOLD: f64 = 0.01;

/// If requests are unread in the socket for more than this share of their time, the text mentions it.
const UNREAD: f64 = 0.5;

/// Threads that are busy for this share of the time count as always busy.
const ALWAYS: f64 = 0.95;

/// What is waited for: `waiting for file sync of pg_wal/000000010000`.
pub(super) fn of_device(device: &str, of: Option<&str>) -> String {
    of.map_or_else(|| format!("waiting for {device}"), |of| format!("waiting for {}", wait_of(device, of)))
}

/// A sentence about threads that change one cache line. The three values about its users: the number of threads, how
/// many of them change nothing, and whether each changed word is one thread's own.
pub(super) fn of_cache_line(
    line: &str,
    function: Option<&str>,
    (threads, readers, is_false): (usize, usize, bool),
    gain: &str,
) -> String {
    let run = function.map_or(String::new(), |function| format!(" in {}", short(function)));
    let how = match (is_false, threads.saturating_sub(readers)) {
        (false, _) => format!("change it{run}"),
        (true, _) if readers == 0 => format!("change words of their own in one cache line{run}"),
        (true, 1) => format!("use different words in one cache line{run}, one changes its own"),
        (true, changing) => {
            format!("use different words in one cache line{run}, {changing} change their own")
        }
    };
    format!(
        "cache line of {line}: {threads} threads {how}, and wait for each other, {gain} of the time or more."
    )
}

/// A sentence about work of the kernel or a runtime for the threads. `calls`: the most frequent system calls;
/// `cpu_share`: all calls' share of the CPU time. `threads`: how many threads cause the work; `lock_waits`: how long
/// they wait there for locks of the kernel.
pub(super) fn of_support_work(
    subject: SupportSubject,
    (calls, cpu_share): (&str, &str),
    (function, via): (Option<&str>, Option<&str>),
    (threads, lock_waits): (usize, Option<LockWaits>),
) -> String {
    let waits = of_kernel_locks(subject, threads, lock_waits);
    let what = match subject {
        SupportSubject::Memory if threads > 1 => {
            format!(", which {threads} threads cause in the memory that they share")
        }
        SupportSubject::Waiting => ", for threads that wait for each other".to_owned(),
        _ => String::new(),
    };
    let via = via.map_or(String::new(), |via| format!(", in {}", short(via)));
    let most =
        function.map_or(String::new(), |function| format!(", most of it for {}{via}", short(function)));
    let work =
        if subject.is_kernels() { format!("the kernel: {calls}{what}") } else { subject.name().to_owned() };
    format!("{work}: {cpu_share} of the CPU time{most}{waits}.")
}

/// Says how long threads wait for locks of the kernel, if that is long enough to mention.
fn of_kernel_locks(subject: SupportSubject, threads: usize, waits: Option<LockWaits>) -> String {
    let is_map = subject == SupportSubject::Memory;
    match waits {
        // Each process has only one lock for its memory map.
        None if is_map && threads > 1 => "; waits for the memory map's lock: not recorded here".to_owned(),
        Some(waits) if subject.is_kernels() && waits.share() >= TOLD => {
            let share = waits.share() * 100.0;
            let of = if is_map && waits.is_sleep() { "the memory map's lock" } else { "locks of the kernel" };
            match threads {
                0 | 1 => format!("; the thread waits for {of} {share:.0} % of its time"),
                _ => format!("; these threads wait for {of} {share:.0} % of their time"),
            }
        }
        _ => String::new(),
    }
}

/// A sentence about a semaphore with too few permits. `waiting`: number of threads that wait, on average.
pub(super) fn of_permits(semaphore: &str, permits: u32, threads: usize, waiting: f64) -> String {
    let name = bare_name(semaphore);
    format!("permits of {name}: all {permits} are in use, {waiting:.1} of {threads} threads wait for one.")
}

/// A sentence about a program with more threads than it can use. `threads`: how many it has; `then`: with how many it
/// would be faster.
pub(super) fn of_too_many_threads(
    limit: &Limit,
    (threads, then): (usize, usize),
    function: Option<&str>,
) -> String {
    let run = function.map_or(String::new(), |function| format!(" that run {}", short(function)));
    // The time lost by spinning is known for the recorded run only.
    let most = match limit.share {
        most if most > limit.gain() + WORTH => format!(", up to {:.0} % less than recorded", most * 100.0),
        _ => String::new(),
    };
    format!(
        "too many threads: {threads}{run} on {} wait for each other. With {then} threads: {}{most}.",
        cpus(limit.cpus),
        duration(limit.without_ns)
    )
}

/// `every`: the usual length of a sleep, and the longest one if sleeps grow, nanoseconds.
pub(super) fn of_polling(
    threads: usize,
    (every_ns, longest_ns): (f64, Option<f64>),
    function: Option<&str>,
    gain: &str,
) -> String {
    let who = if threads == 1 { "a thread looks".to_owned() } else { format!("{threads} threads look") };
    let place = function.map_or(String::new(), |function| format!(" (in {})", short(function)));
    let longest = longest_ns.map_or(String::new(), |longest| format!(" (up to {})", duration(longest)));
    let every = format!("{}{longest}", duration(every_ns));
    format!("polling: {who} every {every} whether there is something to do{place}. Up to {gain} of the time.")
}

/// A sentence about threads that are woken for nothing. `wakings`: number of wake-ups; `for_nothing`: how many of them
/// found nothing to do.
pub(super) fn of_woken(object: &str, (wakings, for_nothing): (u64, u64), most: &str) -> String {
    let (wakings, for_nothing) = (grouped(wakings), grouped(for_nothing));
    let name = bare_name(object);
    format!(
        "woken for nothing: {for_nothing} of {wakings} wake-ups of {name} found nothing to do. Up to {most} of the time."
    )
}

/// A sentence about a pool whose threads are woken for each small task: their number, how often they are woken, and their CPU
/// time each time, nanoseconds.
pub(super) fn of_small_tasks(
    (threads, wakings, task_ns): (usize, u64, u64),
    function: Option<&str>,
    least: &str,
) -> String {
    let run = function.map_or(String::new(), |function| format!(" that run {}", short(function)));
    format!(
        "tasks too small: {threads} threads{run} are woken {} times, for {} each. The kernel's part of that takes {least} of the time.",
        grouped(wakings),
        duration(task_ns as f64)
    )
}

/// A sentence about threads that wait awake: their number on average, what others compute meanwhile, the time without such waits.
pub(super) fn of_spun_waits(waiting: f64, functions: &[String], without: &str) -> String {
    let short: Vec<String> = functions.iter().map(|function| short(function)).collect();
    let run = match &short[..] {
        [] => String::new(),
        [one] => format!(", mostly while it runs {one}"),
        [all @ .., last] => format!(", mostly while it runs {} or {last}", all.join(", ")),
    };
    format!(
        "waiting, awake: {waiting:.1} threads check again and again whether another is done{run}. Without: {without}."
    )
}

pub(super) fn of_hand_over(object: Option<&str>, gain: &str) -> String {
    let what = object.map_or(String::new(), |object| match bare_name(object) {
        // Each thread of a JVM has one such object, so the number in its name means nothing.
        bare if bare.starts_with("of ") || bare.starts_with("in ") => {
            format!(" {}", bare.rsplit_once(" #").map_or(bare, |(all, _)| all))
        }
        // A name that is only a place needs the kind of the object before it.
        bare if bare.starts_with("at ") || bare.starts_with("first ") => format!(" of a {object}"),
        bare => format!(" of {bare}"),
    });
    format!("handing over{what}: waking threads takes {gain} of the time.")
}

/// A lock, or several that are alike.
pub(super) fn of_lock(lock: &str, locks: usize, waiting: f64, threads: usize) -> String {
    let name = match locks {
        // "lock seen by" would read as a verb: such a spin lock has no address, only samples.
        1 if bare_name(lock).starts_with("seen by ") => lock.to_owned(),
        1 => format!("lock {}", bare_name(lock)),
        _ => format!("{locks} locks such as {}", bare_name(lock)),
    };
    let waits = if waiting >= 0.95 {
        let waiting = (waiting.round() as usize).min(threads);
        let verb = if waiting == 1 { "waits" } else { "wait" };
        format!("{waiting} of {threads} threads {verb} for it")
    } else if waiting > 0.0 {
        format!("one of {threads} threads waits for it {:.0} % of the time", waiting * 100.0)
    } else {
        format!("{threads} threads take it")
    };
    format!("{name}: {waits}.")
}

/// A sentence about a function that takes more CPU time on more CPUs. `growth`: its CPU time on `many` CPUs divided by
/// that on `few`; `few_ns`, `many_ns`: its CPU time there, nanoseconds.
pub(super) fn of_cost(
    (few, many, growth): (u32, u32, f64),
    function: Option<String>,
    (few_ns, many_ns): (f64, f64),
    most: &str,
) -> String {
    let of = function.unwrap_or("All work".to_owned());
    format!(
        "work that costs more on more CPUs: {growth:.1} times as much CPU time on {many} CPUs as on {few}. {of} takes {} instead \
         of {}. Threads share memory, caches or locks there. Up to {most} of the time.",
        duration(many_ns),
        duration(few_ns),
    )
}

/// A sentence about a program with fewer threads than it could use. `busy`: share of the time in which the threads are
/// busy; `gain`: what one more thread gains.
pub(super) fn of_too_few_threads(threads: usize, function: Option<String>, busy: f64, gain: f64) -> String {
    let run = function.map_or(String::new(), |function| format!(" that run {function}"));
    let more = match gain >= engine::limit::WORTH {
        true => format!("; one more gains {:.0} %", gain * 100.0),
        false => String::new(),
    };
    let when = match busy {
        busy if busy >= ALWAYS => "always busy".to_owned(),
        busy => format!("busy {:.0} % of the time", busy * 100.0),
    };
    format!("too few threads: the {threads}{run} are {when}{more}.")
}

/// What goroutines wait for, as looks at Go's runtime show.
pub(super) fn of_goroutines_wait(wait: &GoroutinesWait) -> String {
    let within = |function: &Option<String>| {
        function.as_ref().map_or(String::new(), |function| format!(" in {}", short(function)))
    };
    match wait {
        GoroutinesWait::Lock { lock, function, waiting } => {
            format!("a {lock}: {waiting:.1} goroutines wait for it, most of them{}.", within(function))
        }
        GoroutinesWait::Channel { capacity, function, waiting } => {
            format!("a channel of {capacity}: {waiting:.1} goroutines wait for a place{}.", within(function))
        }
        GoroutinesWait::Stage { function, at_work, waiting } => format!(
            "one stage: the goroutine {} is at work {} of the time, and {waiting:.1} others wait for channels.",
            short(function),
            format_args!("{:.0} %", at_work * 100.0)
        ),
        GoroutinesWait::Several { waits, busy } => {
            let waits: Vec<String> =
                waits.iter().map(|(name, count)| format!("{count:.1} in {name}")).collect();
            match waits.is_empty() {
                true => format!("the work itself: goroutines hardly wait; {busy:.1} CPUs are busy."),
                false => format!("goroutines wait: {}; {busy:.1} CPUs are busy.", waits.join(", ")),
            }
        }
    }
}

/// Goroutines that wait for a lock.
pub(super) fn of_goroutines(lock: &str, function: Option<&str>, samples: u64, busy: f64) -> String {
    let by = function.map_or(String::new(), |function| format!(" in {}", short(function)));
    format!(
        "probably a {lock}: goroutines wait for one{by}, as {} samples of sleeps and wake-ups show, and only \
         {busy:.1} CPUs are busy. How long goroutines wait is not visible.",
        grouped(samples)
    )
}

/// Requests that wait for other servers, or for something that is not visible.
fn of_open_requests(kind: &LimitKind) -> String {
    let LimitKind::OpenRequests { port, open, mean_ns, queued, busy, hidden, asked, spent } = kind else {
        return String::new();
    };
    if let Some((whom, waiting)) = asked {
        return format!(
            "waiting for answers of {whom}: {waiting:.1} requests are open there at a time, and {open:.1} here ({port})."
        );
    }
    let unread = match *queued {
        queued if queued >= UNREAD => format!(", {:.0} % of that unread in the socket", queued * 100.0),
        _ => String::new(),
    };
    if let Some(most) = spent {
        return format!(
            "requests wait: {open:.1} at a time ({port}), {} each{unread}, and only {busy:.2} CPUs are busy. {:.0} % of their time \
             is {}.",
            duration(*mean_ns),
            most.share * 100.0,
            cause(most.kind, &most.name)
        );
    }
    let what = if *hidden {
        "What goroutines wait for (a lock, a channel, a timer)"
    } else {
        "What the requests wait for"
    };
    format!(
        "not known: {open:.1} requests wait at a time ({port}), {} each{unread}, and only {busy:.2} CPUs are busy. \
         {what} is not visible.",
        duration(*mean_ns)
    )
}

/// Requests that wait for each other.
fn of_other_requests(port: &str, wait: &str, waits: f64, meanwhile: &[Meanwhile]) -> String {
    let did = meanwhile.iter().map(|of| format!("{} {:.0} %", cause(of.kind, &of.name), of.share * 100.0));
    let did: Vec<String> = did.collect();
    let did = match did.is_empty() {
        true => String::new(),
        false => format!(" Meanwhile: {}.", did.join(", ")),
    };
    format!(
        "requests wait for each other, as for a lock: {:.0} % of their time ({port}), until another request ends their wait \
         ({wait}).{did}",
        waits * 100.0
    )
}

/// Requests that wait: for connections, for other servers, or for something that is not visible; or that are dropped.
pub(super) fn of_requests(kind: &LimitKind) -> String {
    match kind {
        LimitKind::Connections { server, connections, waiting, port: Some(port), probably: true } => format!(
            "probably too few requests at a time to {server}: about {connections} are open there, while {waiting:.1} more ({port}) \
             have been read and wait. A number of connections or of requests may be limited."
        ),
        LimitKind::Connections { server, connections, waiting, port, .. } => {
            let who = match port {
                Some(port) => format!("{waiting:.1} requests at a time ({port})"),
                None => format!("{waiting:.1} threads at a time"),
            };
            format!(
                "connections to {server}: all (about {connections}) have a request open, and {who} wait for one. More \
                 connections, or threads that use them, let more requests go at once, if {server} answers them as fast."
            )
        }
        LimitKind::OtherRequests { port, wait, waits, meanwhile } => {
            of_other_requests(port, wait, *waits, meanwhile)
        }
        LimitKind::AnsweringThreads { threads, port, unread, blocked_by: Some(answers) } => {
            let all = match threads {
                1 => "the one that answers".to_owned(),
                _ => format!("each of the {threads} that answer"),
            };
            format!(
                "too few threads: {all} ({port}) mostly waits for one of the {answers} at a time, while {unread:.1} more requests \
                 are open. More threads, or calls that do not block the event loop, let requests wait together."
            )
        }
        LimitKind::AnsweringThreads { threads, port, unread, .. } => {
            let all = match threads {
                1 => format!("the one that answers ({port}) always has a request and mostly sleeps in it"),
                _ => format!(
                    "the {threads} that answer ({port}) always have a request each and mostly sleep in it"
                ),
            };
            format!("too few threads: {all}, while {unread:.1} more requests lie unread.")
        }
        LimitKind::Backlog { dropped } => format!(
            "new connections: the kernel dropped {}, since the program accepts them too late and their queue is full. Their \
             clients wait a second and try again. A longer queue (listen's backlog, net.core.somaxconn) avoids that, unless \
             the program accepts too slowly all the time.",
            grouped(*dropped)
        ),
        _ => of_open_requests(kind),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_of_goroutines_names_the_function_if_known() {
        let expected = "probably a sync.Mutex: goroutines wait for one in main.handle, as 3 samples of sleeps and wake-ups show, and only \
         1.2 CPUs are busy. How long goroutines wait is not visible.";
        assert_eq!(of_goroutines("sync.Mutex", Some("main.handle"), 3, 1.2), expected);
        assert!(
            of_goroutines("channel", None, 2, 0.1)
                .starts_with("probably a channel: goroutines wait for one, as")
        );
    }

    #[test]
    fn kernel_work_on_memory_names_waits_for_its_lock_if_recorded() {
        let said = |subject, threads, waits| {
            of_support_work(subject, ("munmap", "62 %"), (Some("fill"), None), (threads, waits))
        };
        let of =
            |slept_ns, spun_ns| Some(LockWaits { count: 9, slept_ns, spun_ns, longest_ns: 7, of_ns: 100 });
        let memory = SupportSubject::Memory;
        let text = said(memory, 4, of(30, 8));
        assert!(
            text.ends_with("for fill; these threads wait for the memory map's lock 38 % of their time."),
            "{text}"
        );
        let text = said(memory, 4, of(3, 8));
        assert!(text.ends_with("; these threads wait for locks of the kernel 11 % of their time."), "{text}");
        let text = said(SupportSubject::Files, 1, of(30, 0));
        assert!(text.ends_with("; the thread waits for locks of the kernel 30 % of its time."), "{text}");
        let text = said(memory, 2, None);
        assert!(text.ends_with("; waits for the memory map's lock: not recorded here."), "{text}");
        for (subject, threads, waits) in
            [(memory, 1, None), (memory, 4, of(0, 0)), (SupportSubject::Files, 2, None)]
        {
            assert!(said(subject, threads, waits).ends_with("most of it for fill."), "{subject:?}");
        }
    }
}
