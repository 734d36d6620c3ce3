//! The parts of all requests, summed up by cause and group.

use super::calls::Request;
use super::cause::{Cause, LockRef, PathPart};
use super::groups::{GROUPS, Group, Groups};
use super::meanwhile::Meanwhile;
use super::paths::{Paths, STEPS_PER_EVENT};
use super::sampled;
use crate::timeline::Timeline;
use rustc_hash::{FxHashMap, FxHashSet};

/// The key by which parts are summed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Key {
    pub(super) lock: Option<LockRef>,
    pub(super) cause: Cause,
    /// Index of the first thread with the same name as the thread that held the lock or did other requests; else `None`.
    pub(super) thread: Option<u32>,
}

/// Samples of one key in one group.
#[derive(Clone, Debug, Default)]
pub(super) struct Hits {
    /// For each stack, by its number: how many times parts of requests contain a sample of it.
    pub(super) stacks: FxHashMap<u32, u32>,
    /// The samples (thread, place), each once: a stretch may be on the path of many requests.
    distinct: FxHashSet<(u32, u32)>,
}

impl Hits {
    /// Number of different samples.
    pub(super) fn samples(&self) -> usize {
        self.distinct.len()
    }

    fn add(&mut self, thread: u32, sample: sampled::SampledStack) {
        self.distinct.insert((thread, sample.place));
        let count = self.stacks.entry(sample.stack).or_insert(0);
        *count = count.saturating_add(1);
    }
}

/// Sums over all requests by key and group.
#[derive(Debug, Default)]
pub(super) struct Sums {
    pub(super) keys: Vec<Key>,
    numbers: FxHashMap<Key, u32>,
    /// Time for each group and key (by its number), ns.
    pub(super) ns: [Vec<u64>; GROUPS],
    /// Samples by group and number of the key.
    pub(super) hits: FxHashMap<(usize, u32), Hits>,
    /// What threads did while slow requests were queued for them, by number of the key.
    pub(super) meanwhile: FxHashMap<u32, Meanwhile>,
    /// Number of requests in each group.
    pub(super) counts: [usize; GROUPS],
    /// For each request: its group, its latency, and where its causes end in `causes`.
    pub(super) requests: Vec<(Group, u64, usize)>,
    /// Time that each request spent, by number of the key, ns.
    pub(super) causes: Vec<(u32, u64)>,
    /// Number of requests whose path was not followed back to their beginning.
    pub(super) not_followed: usize,
    /// Number of samples that may still be read.
    samples_left: u64,
    /// For each key, by its number: the index of its last entry in `causes`.
    places: Vec<usize>,
}

impl Sums {
    /// Sums over the requests whose begin and end are known.
    pub(super) fn of(
        timeline: &Timeline,
        paths: &mut Paths<'_>,
        requests: &[Request],
        groups: &Groups,
    ) -> Sums {
        let first_of_name = first_of_name(timeline);
        let mut latencies: Vec<(u64, usize)> = requests
            .iter()
            .enumerate()
            .filter_map(|(number, request)| Some((request.latency_ns()?, number)))
            .collect();
        latencies.sort_unstable();
        // A stretch with many samples may be on the path of many requests, so the number of samples read is limited.
        let samples = timeline.threads.iter().map(|thread| thread.samples.len() as u64);
        let most = samples.fold(requests.len() as u64, u64::saturating_add).saturating_mul(STEPS_PER_EVENT);
        let mut sums = Sums { samples_left: most, ..Sums::default() };
        // Slow requests come first: if the steps run out, fast requests are the ones not followed.
        for (place, (latency, number)) in latencies.into_iter().enumerate().rev() {
            let Some(request) = requests.get(number) else { continue };
            let group = groups.at(place);
            let parts = paths.path(request);
            sums.add(timeline, parts, group, &first_of_name);
            if group == Group::Slow {
                sums.add_meanwhile(timeline, paths, &first_of_name);
            }
            sums.requests.push((group, latency, sums.causes.len()));
        }
        sums
    }

    fn add(&mut self, timeline: &Timeline, parts: &[PathPart], group: Group, first_of_name: &[u32]) {
        let from = self.causes.len();
        let mut is_followed = true;
        for part in parts {
            let number = self.number(part, first_of_name);
            let length = part.length_ns();
            match part.cause {
                Cause::Computing(_) => self.sample(timeline, part, (group as usize, number)),
                Cause::NotFollowed => is_followed = false,
                _ => {}
            }
            let place = self.places.get(number as usize).copied().filter(|place| *place >= from);
            match place.and_then(|place| self.causes.get_mut(place)) {
                Some((_, sum)) => *sum = sum.saturating_add(length),
                None => {
                    if let Some(place) = self.places.get_mut(number as usize) {
                        *place = self.causes.len();
                    }
                    self.causes.push((number, length));
                }
            }
        }
        self.not_followed += usize::from(!is_followed);
        self.counts[group as usize] += 1;
        let ns = &mut self.ns[group as usize];
        for (number, length) in self.causes.get(from..).unwrap_or_default() {
            if let Some(sum) = ns.get_mut(*number as usize) {
                *sum = sum.saturating_add(*length);
            }
        }
    }

    /// Adds what threads did while the request that was walked last was queued for them.
    fn add_meanwhile(&mut self, timeline: &Timeline, paths: &Paths<'_>, first_of_name: &[u32]) {
        for part in paths.last().iter().filter(|part| part.cause == Cause::Queued) {
            let number = self.number(part, first_of_name);
            self.sample(timeline, part, (Group::Slow as usize, number));
            self.meanwhile.entry(number).or_default().add(paths, part, &mut self.samples_left);
        }
    }

    /// Adds the samples of a part.
    fn sample(&mut self, timeline: &Timeline, part: &PathPart, key: (usize, u32)) {
        let hits = self.hits.entry(key).or_default();
        sampled::between(timeline, part.thread, part.from.0, part.to.0, &mut self.samples_left)
            .for_each(|sample| hits.add(part.thread, sample));
    }

    fn number(&mut self, part: &PathPart, first_of_name: &[u32]) -> u32 {
        let is_named = part.lock.is_some() || part.cause == Cause::Queued;
        let thread = first_of_name.get(part.thread as usize).copied().filter(|_| is_named);
        let key = Key { lock: part.lock, cause: part.cause, thread };
        let next = u32::try_from(self.keys.len()).unwrap_or(u32::MAX);
        let number = *self.numbers.entry(key).or_insert(next);
        if number == next {
            self.keys.push(key);
            self.places.push(usize::MAX);
            self.ns.iter_mut().for_each(|ns| ns.push(0));
        }
        number
    }

    /// The keys, each with its sums for the groups, ns.
    pub(super) fn all(&self) -> impl Iterator<Item = (u32, Key, [u64; GROUPS])> + '_ {
        let of = |number: usize| self.ns.each_ref().map(|ns| ns.get(number).copied().unwrap_or(0));
        (0u32..).zip(&self.keys).map(move |(number, key)| (number, *key, of(number as usize)))
    }

    /// Each request's group, latency (ns) and causes (number of the key, ns).
    pub(super) fn each(&self) -> impl Iterator<Item = (Group, u64, &[(u32, u64)])> + '_ {
        let mut from = 0;
        self.requests.iter().map(move |(group, latency, to)| {
            let causes = self.causes.get(from..*to).unwrap_or_default();
            from = *to;
            (*group, *latency, causes)
        })
    }
}

/// For each thread: the index of the first thread with the same name.
fn first_of_name(timeline: &Timeline) -> Vec<u32> {
    let mut first: FxHashMap<&str, u32> = FxHashMap::default();
    let threads = (0u32..).zip(&timeline.threads);
    threads.map(|(index, thread)| *first.entry(thread.comm.as_str()).or_insert(index)).collect()
}
