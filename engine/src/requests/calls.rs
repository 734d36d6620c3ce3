//! Requests that are calls of functions: the outermost calls of the chosen functions in each thread. Stretches between two
//! places with probes are requests in the same way.

use crate::event::FunctionId;
use crate::time::Timestamp;
use crate::timeline::{StepKind, Thread, Timeline};
use rustc_hash::FxHashSet;

/// A unit of a server's work for a client, from its beginning to its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// Index in [`Timeline::threads`] of the thread in which the request began.
    pub begin_thread: u32,
    /// Time at which the request began. With `began_before` it is the first known time of the request.
    pub begin: Timestamp,
    /// Time at which that thread took the request: from `begin` until then it waited for the thread. For calls it is `begin`.
    pub taken: Timestamp,
    /// Index of the thread in which the request ended, or is still open.
    pub end_thread: u32,
    /// Time at which the request ended; `None`: the end is not in the recording.
    pub end: Option<Timestamp>,
    /// Whether the request began before the recording, or before its function had probes, so that it took longer than
    /// from `begin`.
    pub began_before: bool,
    /// First and number of its stretches in [`Calls::stretches`]; none: it is in its threads from its beginning to its end.
    pub stretches: (u32, u32),
}

impl Request {
    /// The latency, ns; `None`: begin or end is not known.
    pub fn latency_ns(&self) -> Option<u64> {
        let end = self.end.filter(|_| !self.began_before)?;
        end.0.checked_sub(self.begin.0)
    }
}

/// Requests of one kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Calls {
    /// Calls: thread by thread, in order of time.
    pub requests: Vec<Request>,
    /// Whether one of the functions has probes only at its entries. The ends of its calls then follow only from later
    /// entries and switches.
    pub entries_only: bool,
    /// Whether one of the functions had probes for only a part of the recording, so that there were more calls.
    pub partly: bool,
    /// Stretches of requests that are in several threads, or in none at times, each like a request in one thread. Those of a
    /// request are together, the last to end first.
    pub stretches: Vec<Request>,
}

/// The outermost calls of these functions in each thread: nested calls of the functions do not count as further
/// requests. An exec or the thread's end leaves a call without an end.
pub fn calls(timeline: &Timeline, functions: &[FunctionId]) -> Calls {
    let chosen: FxHashSet<FunctionId> = functions.iter().copied().collect();
    let mut requests = Vec::new();
    for (index, thread) in (0u32..).zip(&timeline.threads) {
        let first = requests.len();
        of_thread(index, thread, timeline, &chosen, &mut requests);
        if thread.stretches.iter().any(|stretch| chosen.contains(&stretch.function)) {
            let mut all = requests.split_off(first);
            all.extend(stretches(index, thread, timeline.end, &chosen));
            requests.extend(outermost(all));
        }
    }
    let mut facts = timeline.functions.iter().filter(|fact| chosen.contains(&fact.id));
    let partly = |list: &[FunctionId]| list.iter().any(|id| chosen.contains(id));
    Calls {
        requests,
        entries_only: facts.any(|fact| !fact.exits_probed),
        partly: partly(&timeline.partly_probed) || partly(&timeline.probes_removed),
        stretches: Vec::new(),
    }
}

/// The functions that a thread has entered and not left.
struct Open<'a> {
    chosen: &'a FxHashSet<FunctionId>,
    /// For each open function, the outermost first: whether it is one of the chosen functions.
    stack: Vec<bool>,
    /// Number of chosen functions on the stack.
    depth: usize,
    request: Request,
    /// Time of the last begin or end; later times are at least this, so that requests do not overlap.
    last: Timestamp,
}

impl Open<'_> {
    fn enter(&mut self, function: FunctionId, time: Timestamp, before: bool) {
        let is_chosen = self.chosen.contains(&function);
        self.stack.push(is_chosen);
        if !is_chosen {
            return;
        }
        self.depth += 1;
        if self.depth == 1 {
            self.last = self.last.max(time);
            let begin = self.last;
            self.request = Request { begin, taken: begin, end: None, began_before: before, ..self.request };
        }
    }

    fn leave(&mut self, end: Option<Timestamp>, requests: &mut Vec<Request>) {
        if self.stack.pop() != Some(true) {
            return;
        }
        self.depth = self.depth.saturating_sub(1);
        if self.depth == 0 {
            self.last = end.unwrap_or(self.last).max(self.last);
            requests.push(Request { end: end.map(|_| self.last), ..self.request });
        }
    }
}

fn of_thread(
    index: u32,
    thread: &Thread,
    timeline: &Timeline,
    chosen: &FxHashSet<FunctionId>,
    requests: &mut Vec<Request>,
) {
    let request = Request { begin_thread: index, end_thread: index, ..Request::default() };
    let mut open = Open { chosen, stack: Vec::new(), depth: 0, request, last: thread.start };
    let mut bases = thread.base_stacks.iter().peekable();
    for (number, step) in (0u32..).zip(&thread.steps) {
        while let Some(base) = bases.next_if(|base| base.first_step <= number) {
            begin_anew(&mut open, base.time, &base.functions, requests);
        }
        match step.kind {
            StepKind::Enter(function) => open.enter(function, step.time.min(timeline.end), false),
            StepKind::Leave => open.leave(Some(step.time.min(timeline.end)), requests),
            _ => {}
        }
    }
    for base in bases {
        begin_anew(&mut open, base.time, &base.functions, requests);
    }
    while !open.stack.is_empty() {
        open.leave(None, requests);
    }
}

/// The stretches between the places that these numbers stand for.
fn stretches(
    index: u32,
    thread: &Thread,
    last: Timestamp,
    chosen: &FxHashSet<FunctionId>,
) -> impl Iterator<Item = Request> {
    thread.stretches.iter().filter(|stretch| chosen.contains(&stretch.function)).map(move |stretch| {
        let begin = stretch.begin.min(last);
        let end = stretch.end.map(|end| end.min(last));
        Request { begin_thread: index, begin, taken: begin, end_thread: index, end, ..Request::default() }
    })
}

/// The requests of a thread in order, without those that begin in another one.
fn outermost(mut all: Vec<Request>) -> Vec<Request> {
    all.sort_by_key(|request| request.begin);
    let mut busy_until = Timestamp(0);
    all.retain(|request| {
        let is_outer = request.begin >= busy_until;
        busy_until = busy_until.max(request.end.filter(|_| is_outer).unwrap_or(busy_until));
        is_outer
    });
    all
}

/// Closes all calls and opens the given ones (innermost first): at the thread's start and after each exec.
fn begin_anew(open: &mut Open<'_>, time: Timestamp, functions: &[FunctionId], requests: &mut Vec<Request>) {
    while !open.stack.is_empty() {
        open.leave(None, requests);
    }
    functions.iter().rev().for_each(|function| open.enter(*function, time, true));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timeline::{BaseStack, Step, Stretch};

    fn thread(steps: &[(u64, Option<FunctionId>)], base: &[FunctionId]) -> Thread {
        let steps = steps.iter().map(|&(time, function)| Step {
            time: Timestamp(time),
            kind: function.map_or(StepKind::Leave, StepKind::Enter),
        });
        let base = BaseStack { first_step: 0, time: Timestamp(0), functions: base.to_vec() };
        Thread { end: Timestamp(100), steps: steps.collect(), base_stacks: vec![base], ..Thread::default() }
    }

    fn found(thread: Thread) -> Vec<(u64, Option<u64>, bool)> {
        let timeline = Timeline { end: Timestamp(100), threads: vec![thread], ..Timeline::default() };
        let calls = calls(&timeline, &[7, 8]);
        calls.requests.iter().map(|r| (r.begin.0, r.end.map(|end| end.0), r.began_before)).collect()
    }

    #[test]
    fn only_outermost_calls_are_requests() {
        let steps = [(10, Some(7)), (20, Some(3)), (30, Some(7)), (40, None), (50, None), (60, None)];
        assert_eq!(found(thread(&steps, &[])), [(10, Some(60), false)]);
        let one_in_other = [(10, Some(8)), (20, Some(7)), (30, None), (40, None), (50, Some(7)), (60, None)];
        assert_eq!(found(thread(&one_in_other, &[])), [(10, Some(40), false), (50, Some(60), false)]);
    }

    #[test]
    fn stretches_between_places_are_requests_beside_any_calls() {
        let stretch = |function, begin, end: Option<u64>| Stretch {
            function,
            begin: Timestamp(begin),
            end: end.map(Timestamp),
        };
        let stretches = vec![
            stretch(8, 10, Some(30)),
            stretch(7, 20, Some(25)),
            stretch(5, 30, Some(40)),
            stretch(7, 30, Some(120)),
            stretch(8, 110, None),
        ];
        let steps = [(15, Some(3)), (35, None), (40, Some(7)), (50, None)];
        assert_eq!(
            found(Thread { stretches, ..thread(&steps, &[]) }),
            [(10, Some(30), false), (30, Some(100), false), (100, None, false)]
        );
    }

    #[test]
    fn requests_at_the_edges_of_the_recording_have_no_latency() {
        assert_eq!(
            found(thread(&[(10, None), (20, Some(7))], &[7])),
            [(0, Some(10), true), (20, None, false)]
        );
        let request = Request { end: Some(Timestamp(5)), began_before: true, ..Request::default() };
        assert_eq!(request.latency_ns(), None);
        assert_eq!(Request { began_before: false, ..request }.latency_ns(), Some(5));
    }

    #[test]
    fn leaving_a_function_that_was_never_entered_makes_no_request() {
        assert_eq!(found(thread(&[(10, None), (20, None)], &[])), []);
    }
}
