//! Finds threads that stop others when a time limit ends, and then release them: a virtual machine's thread, for a
//! safepoint each second.

use super::shares::Shares;
use super::{Poll, Polls};
use crate::program::lock_replay::Plan;
use crate::timeline::{State, StepKind, Thread, Timeline};

/// A thread that only stops others computes at most this fraction (one part in `BESIDE`) of its process's computing.
const BESIDE: u64 = 10;
/// Shortest time between two interruptions, nanoseconds: each costs the stopped threads about 0.1 ms.
const SHORTEST_NS: u64 = 1_000_000;

/// Timed waits whose end was an interruption of others: thread, wait, and a source (interrupted thread, time).
pub(super) fn all(
    timeline: &Timeline,
    plan: &Plan,
    polls: &Polls,
    shares: &Shares,
) -> Vec<(usize, u32, (usize, u64))> {
    let mut found = Vec::new();
    // For each thread, filled in when needed: times at which its waits begin.
    let mut begun: Vec<Option<Vec<u64>>> = vec![None; timeline.threads.len()];
    for (index, thread) in timeline.threads.iter().enumerate() {
        let is_time = |number: u32| polls.wait(index, number) == Poll::Time;
        let over: Vec<(u32, u64, u64)> = thread
            .spans()
            .filter_map(|(start, end, state)| match state {
                State::Blocked(number) if is_time(number) && end.0.saturating_sub(start.0) >= SHORTEST_NS => {
                    Some((number, start.0, end.0))
                }
                _ => None,
            })
            .filter(|(number, ..)| thread.waits.get(*number as usize).is_some_and(|wait| wait.timed_out()))
            .collect();
        if over.is_empty() {
            continue;
        }
        if shares.of_thread(index).saturating_mul(BESIDE) > shares.of_process(timeline, index) {
            continue;
        }
        let nexts = over.iter().skip(1).map(|(_, start, _)| *start).chain([u64::MAX]);
        for ((number, _, end), next) in over.iter().zip(nexts) {
            if !plan.is_decided(index, *number)
                && let Some(source) = interrupted(timeline, shares, thread, (*end, next), &mut begun)
            {
                found.push((index, *number, source));
            }
        }
    }
    found
}

/// The first thread that this one interrupted in this time; `None` if it also did something else for threads with work.
fn interrupted(
    timeline: &Timeline,
    shares: &Shares,
    thread: &Thread,
    (from, until): (u64, u64),
    begun: &mut [Option<Vec<u64>>],
) -> Option<(usize, u64)> {
    let first = thread.steps.partition_point(|step| step.time.0 < from);
    let steps = thread.steps.get(first..).unwrap_or_default().iter();
    let mut source = None;
    for step in steps.take_while(|step| step.time.0 < until) {
        let wakeup = match step.kind {
            StepKind::Wake(wakeup) => timeline.wakeups.get(wakeup as usize)?,
            StepKind::Create(_) => return None,
            _ => continue,
        };
        let other = wakeup.wakee as usize;
        let (Some(ended), Some(wakee)) = (wakeup.ended, timeline.threads.get(other)) else { continue };
        if wakee.pid != thread.pid || !shares.works(timeline, other) {
            continue;
        }
        let begun = begun.get_mut(other)?.get_or_insert_with(|| begins(wakee));
        if *begun.get(ended as usize)? <= from || wakee.start.0 >= from {
            return None;
        }
        source.get_or_insert((other, from.saturating_sub(1)));
    }
    source
}

fn begins(thread: &Thread) -> Vec<u64> {
    let mut begins = vec![0; thread.waits.len()];
    for interval in &thread.intervals {
        if let State::Blocked(wait) = interval.state
            && let Some(begin) = begins.get_mut(wait as usize)
        {
            *begin = interval.start.0;
        }
    }
    begins
}
