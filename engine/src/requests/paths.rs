//! The data of a recording that walks of requests need, and the limits of the walks.

use super::answers::Answers;
use super::calls::{Calls, Request};
use super::cause::PathPart;
use super::cpu_waits::CpuWaits;
use super::holders::Holders;
use super::tops::Tops;
use super::waits::Waits;
use super::walk::Walk;
use crate::program::Occurrences;
use crate::timeline::Timeline;

/// The walk follows at most this many threads that wait for each other.
pub const DEEPEST: usize = 64;
/// Largest number of steps of the walk for one request.
pub const MOST_STEPS: u64 = 20_000;
/// Largest number of steps for all requests together, per interval, change of the innermost function, and request.
pub const STEPS_PER_EVENT: u64 = 64;

/// Walks the requests of a recording.
#[derive(Debug)]
pub struct Paths<'a> {
    pub(super) timeline: &'a Timeline,
    pub(super) waits: Waits<'a>,
    pub(super) tops: Tops,
    pub(super) cpus: CpuWaits,
    pub(super) holders: Holders,
    pub(super) answers: Answers,
    /// Steps that remain for all requests.
    budget: u64,
    walk: Walk,
    /// See [`Calls::stretches`].
    stretches: &'a [Request],
}

impl<'a> Paths<'a> {
    /// Prepares walks of these requests. `program` must be made from `timeline`, and `occurrences` from both.
    pub fn new(
        timeline: &'a Timeline,
        program: &'a crate::program::Program,
        occurrences: &'a Occurrences<'a>,
        requests: &[Request],
    ) -> Paths<'a> {
        let waits = Waits::of(timeline, program, occurrences);
        let tops = Tops::of(timeline);
        let intervals: usize = timeline.threads.iter().map(|thread| thread.intervals.len()).sum();
        let events = intervals.saturating_add(tops.count()).saturating_add(requests.len()) as u64;
        Paths {
            timeline,
            answers: Answers::of(timeline, requests, &waits),
            waits,
            tops,
            cpus: CpuWaits::of(timeline),
            holders: Holders::of(occurrences),
            budget: events.saturating_mul(STEPS_PER_EVENT),
            walk: Walk::default(),
            stretches: &[],
        }
    }

    /// Like [`Paths::new`], for requests that may consist of stretches.
    pub fn of(
        timeline: &'a Timeline,
        program: &'a crate::program::Program,
        occurrences: &'a Occurrences<'a>,
        calls: &'a Calls,
    ) -> Paths<'a> {
        let in_one_thread = if calls.stretches.is_empty() { &calls.requests } else { &calls.stretches };
        Paths { stretches: &calls.stretches, ..Paths::new(timeline, program, occurrences, in_one_thread) }
    }

    /// The stretches of a request, the last to end first.
    pub(super) fn stretches(&self, request: &Request) -> &'a [Request] {
        let (first, count) = (request.stretches.0 as usize, request.stretches.1 as usize);
        self.stretches.get(first..first.saturating_add(count)).unwrap_or_default()
    }

    /// The request's path from its beginning to its end: in order, without overlap or hole, so that the lengths add up
    /// to its latency. Empty for a request without begin or end in the recording. The next call overwrites the slice.
    pub fn path(&mut self, request: &Request) -> &[PathPart] {
        let mut walk = std::mem::take(&mut self.walk);
        let steps = walk.request(self, request, self.budget.min(MOST_STEPS));
        self.budget = self.budget.saturating_sub(steps);
        self.walk = walk;
        self.last()
    }

    /// The path that was walked last.
    pub(super) fn last(&self) -> &[PathPart] {
        &self.walk.parts
    }
}
