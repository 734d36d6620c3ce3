//! Latencies of requests, and what slow ones spend that fast ones do not.

use super::calls::{Calls, Request};
use super::cause::{Cause, LockRef, Source};
use super::groups::{GROUPS, Group, Groups, SlowGroup};
use super::paths::Paths;
use super::sampled::users_function;
use super::sums::{Hits, Key, Sums};
use super::without::without;
use crate::program::{FunctionRef, Occurrences, Program};
use crate::timeline::Timeline;
use rustc_hash::FxHashMap;
use strum::IntoStaticStr;

/// What requests of one kind show.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Summary {
    /// Requests with begin and end.
    pub count: usize,
    /// Others: they were open when the recording began or ended.
    pub unfinished: usize,
    /// At least this long took the longest of those, ns.
    pub unfinished_ns: u64,
    /// From the first begin to the last end, ns.
    pub span_ns: u64,
    /// How long they took.
    pub latencies: Latencies,
    /// How many belong to the fast half.
    pub fast: usize,
    /// How many are the slow ones.
    pub slow: usize,
    /// Which these are.
    pub slow_group: SlowGroup,
    /// Causes; those first that slow requests have most more of than fast ones. Each column adds up to its mean latency.
    pub rows: Vec<Row>,
    /// What the 99th percentile would be at least without one cause, the lowest first.
    pub without: Vec<WithoutRow>,
    /// Requests that were not followed to their begin.
    pub not_followed: usize,
    /// See [`Calls::entries_only`].
    pub entries_only: bool,
    /// See [`Calls::partly`].
    pub partly: bool,
}

/// Latencies, ns (nearest rank).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Latencies {
    /// Half of the requests take no longer.
    pub p50_ns: u64,
    /// Nine of ten.
    pub p90_ns: u64,
    /// 99 of 100.
    pub p99_ns: u64,
    /// The longest.
    pub longest_ns: u64,
    /// Mean of the fast half.
    pub fast_mean_ns: f64,
    /// Mean of the slow ones.
    pub slow_mean_ns: f64,
}

/// A cause, with what a request spends for it on average.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row {
    /// Its kind.
    pub kind: RowKind,
    /// The function, the lock, the kind of wait and where it was, or the thread; empty if the kind says all.
    pub name: String,
    /// In the fast half, ns.
    pub fast_ns: f64,
    /// Half of the 95 % interval of that, ns, where samples were divided.
    pub fast_error_ns: f64,
    /// In the slow ones, ns.
    pub slow_ns: f64,
    /// Half of the 95 % interval of that, ns.
    pub slow_error_ns: f64,
    /// Of a lock: what threads did that had it, the longest first.
    pub details: Vec<Detail>,
}

impl Row {
    /// How much more it is in slow requests, ns.
    pub fn difference_ns(&self) -> f64 {
        self.slow_ns - self.fast_ns
    }
}

/// What a thread did that had a lock, while slow requests waited for that.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Detail {
    /// Name of the thread, without its number.
    pub by: String,
    /// What it did.
    pub kind: RowKind,
    /// As in [`Row::name`].
    pub name: String,
    /// In a slow request on average, ns.
    pub slow_ns: f64,
}

/// A kind of cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum RowKind {
    /// Computing a function.
    Computing,
    /// A lock that another thread had.
    Lock,
    /// A CPU that another thread of the program had.
    NoCpu,
    /// A CPU that something else had.
    NoCpuOthers,
    /// From being woken to being on a free CPU.
    Woken,
    /// A disk.
    Disk,
    /// The network.
    Peer,
    /// A sleep or a time limit.
    Timer,
    /// A process that is not recorded.
    Process,
    /// Another device or a signal.
    Other,
    /// Behind other requests of a thread.
    Queue,
    /// Not known.
    #[default]
    Unknown,
    /// The walk was not continued.
    NotFollowed,
}

/// What the 99th percentile would be without a cause: as if it took no time and nothing else became longer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WithoutRow {
    /// Kind of the cause.
    pub kind: RowKind,
    /// As in [`Row::name`].
    pub name: String,
    /// The 99th percentile would not be below this, ns.
    pub p99_ns: u64,
}

/// Walks all requests.
pub(super) fn follow(timeline: &Timeline, program: &Program, calls: &Calls) -> (Groups, Sums) {
    let requests = &calls.requests;
    let groups = Groups::of(requests.iter().filter_map(Request::latency_ns).collect());
    let occurrences = Occurrences::of(timeline, program);
    let mut paths = Paths::new(timeline, program, &occurrences, requests);
    let sums = Sums::of(timeline, &mut paths, requests, &groups);
    (groups, sums)
}

/// Follows all requests. `program` was made from the timeline.
pub fn summarize(timeline: &Timeline, program: &Program, calls: &Calls) -> Summary {
    let requests = &calls.requests;
    let (groups, sums) = follow(timeline, program, calls);
    let namer = Namer { timeline, program };
    let shares = Shares::of(&namer, &sums);
    let mut rows = rows(&namer, &sums, &shares);
    rows.retain(|row| row.fast_ns > 0.0 || row.slow_ns > 0.0);
    rows.sort_by(|a, b| {
        b.difference_ns()
            .total_cmp(&a.difference_ns())
            .then_with(|| (a.kind, &a.name).cmp(&(b.kind, &b.name)))
    });
    let open = requests.iter().filter(|request| request.latency_ns().is_none());
    let so_far =
        open.clone().map(|request| request.end.unwrap_or(timeline.end).0.saturating_sub(request.begin.0));
    Summary {
        count: groups.count(),
        unfinished: open.count(),
        unfinished_ns: so_far.max().unwrap_or(0),
        span_ns: span_ns(requests),
        latencies: latencies(&groups, &sums),
        fast: groups.fast,
        slow: groups.slow,
        slow_group: groups.slow_group,
        without: without(&namer, &sums, &shares, &rows, groups.percentile_ns(99)),
        rows,
        not_followed: sums.not_followed,
        entries_only: calls.entries_only,
        partly: calls.partly,
    }
}

fn span_ns(requests: &[Request]) -> u64 {
    let finished = || requests.iter().filter(|request| request.latency_ns().is_some());
    let begin = finished().map(|request| request.begin.0).min().unwrap_or(0);
    let end = finished().filter_map(|request| request.end).map(|end| end.0).max().unwrap_or(0);
    end.saturating_sub(begin)
}

fn latencies(groups: &Groups, sums: &Sums) -> Latencies {
    let mean = |group: Group| {
        let of_group = sums.requests.iter().filter(|(other, ..)| *other == group);
        let sum: u128 = of_group.map(|(_, latency, _)| u128::from(*latency)).sum();
        mean_ns(sum as f64, sums, group)
    };
    Latencies {
        p50_ns: groups.percentile_ns(50),
        p90_ns: groups.percentile_ns(90),
        p99_ns: groups.percentile_ns(99),
        longest_ns: groups.longest_ns(),
        fast_mean_ns: mean(Group::Fast),
        slow_mean_ns: mean(Group::Slow),
    }
}

fn mean_ns(sum: f64, sums: &Sums, group: Group) -> f64 {
    match sums.counts[group as usize] {
        0 => 0.0,
        count => sum / count as f64,
    }
}

/// Names what causes are about.
pub(super) struct Namer<'a> {
    pub(super) timeline: &'a Timeline,
    pub(super) program: &'a Program,
}

impl Namer<'_> {
    pub(super) fn function(&self, function: Option<FunctionRef>) -> String {
        let function = function.and_then(|function| self.program.functions.get(function.0 as usize));
        function.map(|function| function.name.clone()).unwrap_or_default()
    }

    pub(super) fn thread(&self, thread: Option<u32>) -> String {
        let thread = thread.and_then(|thread| self.timeline.threads.get(thread as usize));
        thread.map(|thread| thread.comm.clone()).unwrap_or_default()
    }

    /// A lock; all that were first used on one line have one name.
    pub(super) fn lock(&self, lock: LockRef) -> String {
        let (LockRef::Object(number) | LockRef::Word(number)) = lock;
        let object = self.program.recorded.objects.get(number as usize);
        let group = object.and_then(|object| Some(format!("{} {}", object.kind, object.group.as_ref()?)));
        let name = || match lock {
            LockRef::Object(number) => self.program.objects.get(number as usize).cloned(),
            LockRef::Word(_) => object.map(|object| object.name.clone()),
        };
        group.or_else(name).unwrap_or_default()
    }

    /// What a cause without a lock around it is called, computing aside.
    pub(super) fn cause(&self, key: &Key) -> (RowKind, String) {
        match key.cause {
            Cause::Computing(top) => (RowKind::Computing, self.function(top)),
            Cause::Woken => (RowKind::Woken, String::new()),
            Cause::NoCpu => (RowKind::NoCpu, String::new()),
            Cause::NoCpuOthers => (RowKind::NoCpuOthers, String::new()),
            Cause::Queued => (RowKind::Queue, self.thread(key.thread)),
            Cause::Unknown => (RowKind::Unknown, String::new()),
            Cause::NotFollowed => (RowKind::NotFollowed, String::new()),
            Cause::Waiting(outside) => {
                let kind = match outside.source {
                    Source::Disk => RowKind::Disk,
                    Source::Peer => RowKind::Peer,
                    Source::Timer => RowKind::Timer,
                    Source::Process => RowKind::Process,
                    Source::Other => RowKind::Other,
                };
                let function = self.function(outside.function);
                let place = if function.is_empty() { function } else { format!(" in {function}") };
                (kind, format!("{}{place}", outside.name))
            }
        }
    }
}

/// A part of a key's time that samples give to a function.
#[derive(Clone, Copy, Debug)]
struct Share {
    function: Option<FunctionRef>,
    /// Of 1.
    part: f64,
    /// Variance of that.
    variance: f64,
}

/// How samples divide the computing of each key in each group.
pub(super) struct Shares(FxHashMap<(usize, u32), Vec<Share>>);

impl Shares {
    fn of(namer: &Namer<'_>, sums: &Sums) -> Shares {
        let mut shares = FxHashMap::default();
        for (number, key, _) in sums.all() {
            let Cause::Computing(top) = key.cause else { continue };
            let all: Vec<(usize, &Hits)> = (0..GROUPS)
                .filter_map(|group| Some((group, sums.hits.get(&(group, number))?)))
                .filter(|(_, hits)| hits.samples() > 0)
                .collect();
            for group in 0..GROUPS {
                // A group without samples is taken to be as the others are.
                let own: Vec<&Hits> = match all.iter().find(|(other, _)| *other == group) {
                    Some((_, hits)) => vec![hits],
                    None => all.iter().map(|(_, hits)| *hits).collect(),
                };
                shares.insert((group, number), divided(namer, &own, top));
            }
        }
        Shares(shares)
    }

    fn at(&self, group: usize, number: u32) -> &[Share] {
        self.0.get(&(group, number)).map_or(&[], Vec::as_slice)
    }

    /// The part of a key's time in a group that belongs to the function of this name.
    pub(super) fn part(&self, namer: &Namer<'_>, group: usize, number: u32, name: &str) -> f64 {
        let own = self.at(group, number).iter().filter(|share| namer.function(share.function) == name);
        own.map(|share| share.part).sum()
    }
}

/// Without samples everything belongs to the innermost function with probes. The variance of a share p of n samples is
/// p(1−p)/n, with p as of one sample more, half of it in the function: a single one is not certain.
fn divided(namer: &Namer<'_>, hits: &[&Hits], top: Option<FunctionRef>) -> Vec<Share> {
    let mut counts: FxHashMap<Option<FunctionRef>, u64> = FxHashMap::default();
    for (stack, count) in hits.iter().flat_map(|hits| &hits.stacks) {
        let function = users_function(namer.program, *stack).or(top);
        *counts.entry(function).or_insert(0) += u64::from(*count);
    }
    let all: u64 = counts.values().sum();
    if all == 0 {
        return vec![Share { function: top, part: 1.0, variance: 0.0 }];
    }
    let samples = hits.iter().map(|hits| hits.samples()).sum::<usize>().max(1) as f64;
    let mut shares: Vec<Share> = counts
        .into_iter()
        .map(|(function, count)| {
            let part = count as f64 / all as f64;
            let seen = (part * samples + 0.5) / (samples + 1.0);
            Share { function, part, variance: seen * (1.0 - seen) / samples }
        })
        .collect();
    shares.sort_by_key(|share| share.function);
    shares
}

#[derive(Default)]
struct Building {
    ns: [f64; GROUPS],
    variance: [f64; GROUPS],
    details: FxHashMap<(String, RowKind, String), f64>,
}

fn rows(namer: &Namer<'_>, sums: &Sums, shares: &Shares) -> Vec<Row> {
    let mut rows: FxHashMap<(RowKind, String), Building> = FxHashMap::default();
    for (number, key, ns) in sums.all() {
        if let Some(lock) = key.lock {
            let row = rows.entry((RowKind::Lock, namer.lock(lock))).or_default();
            (0..GROUPS).for_each(|group| row.ns[group] += ns[group] as f64);
            let slow = Group::Slow as usize;
            let by = namer.thread(key.thread);
            match key.cause {
                Cause::Computing(_) => {
                    for share in shares.at(slow, number) {
                        let name = namer.function(share.function);
                        *row.details.entry((by.clone(), RowKind::Computing, name)).or_insert(0.0) +=
                            share.part * ns[slow] as f64;
                    }
                }
                _ => {
                    let (kind, name) = namer.cause(&key);
                    *row.details.entry((by, kind, name)).or_insert(0.0) += ns[slow] as f64;
                }
            }
            continue;
        }
        let Cause::Computing(_) = key.cause else {
            let row = rows.entry(namer.cause(&key)).or_default();
            (0..GROUPS).for_each(|group| row.ns[group] += ns[group] as f64);
            continue;
        };
        for (group, ns) in ns.into_iter().enumerate() {
            let ns = ns as f64;
            for share in shares.at(group, number) {
                let row = rows.entry((RowKind::Computing, namer.function(share.function))).or_default();
                row.ns[group] += share.part * ns;
                row.variance[group] += share.variance * ns * ns;
            }
        }
    }
    rows.into_iter().map(|((kind, name), row)| finished(kind, name, row, sums)).collect()
}

/// Two standard errors are half of the 95 % interval.
const HALF_WIDTH: f64 = 1.96;

fn finished(kind: RowKind, name: String, row: Building, sums: &Sums) -> Row {
    let mean = |group: Group| mean_ns(row.ns[group as usize], sums, group);
    let error = |group: Group| HALF_WIDTH * mean_ns(row.variance[group as usize].sqrt(), sums, group);
    let mut details: Vec<Detail> = row
        .details
        .iter()
        .filter(|(_, ns)| **ns > 0.0)
        .map(|((by, kind, name), ns)| Detail {
            by: by.clone(),
            kind: *kind,
            name: name.clone(),
            slow_ns: mean_ns(*ns, sums, Group::Slow),
        })
        .collect();
    details.sort_by(|a, b| {
        b.slow_ns.total_cmp(&a.slow_ns).then_with(|| (&a.by, a.kind, &a.name).cmp(&(&b.by, b.kind, &b.name)))
    });
    Row {
        kind,
        name,
        fast_ns: mean(Group::Fast),
        fast_error_ns: error(Group::Fast),
        slow_ns: mean(Group::Slow),
        slow_error_ns: error(Group::Slow),
        details,
    }
}

impl Namer<'_> {
    /// How much of a key belongs to a row, by group, of 1.
    pub(super) fn belongs(&self, number: u32, key: &Key, row: &Row, shares: &Shares) -> [f64; GROUPS] {
        let whole = |belongs: bool| [if belongs { 1.0 } else { 0.0 }; GROUPS];
        match (key.lock, key.cause) {
            (Some(lock), _) => whole(row.kind == RowKind::Lock && self.lock(lock) == row.name),
            (None, Cause::Computing(_)) if row.kind == RowKind::Computing => {
                std::array::from_fn(|group| shares.part(self, group, number, &row.name))
            }
            (None, Cause::Computing(_)) => whole(false),
            (None, _) => {
                let (kind, name) = self.cause(key);
                whole(kind == row.kind && name == row.name)
            }
        }
    }
}
