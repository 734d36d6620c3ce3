//! Names of threads, and the functions in which they slept or woke others: the innermost function with probes, else the
//! function that a sample shows.
//!
//! A function with probes at its entry only may have ended long ago. Then the sample's function is used, else the
//! innermost function whose end would be known.

use super::stacks::{WaitsIn, function_of, is_of_the_system, waits_in};
use crate::event::FunctionId;
use crate::program::{Program, ThreadId};
use crate::timeline::{State, StepKind, Thread, Timeline, Wakeup};
use probe_abi::SampleReason;
use rustc_hash::{FxHashMap, FxHashSet};

/// Names for threads, locks and functions of a timeline.
pub(super) struct Context<'a> {
    program: &'a Program,
    threads: &'a FxHashMap<u32, ThreadId>,
    names: FxHashMap<FunctionId, &'a str>,
    /// Names of functions outside of the language and the C library.
    own: FxHashSet<&'a str>,
    /// Functions with probes at their entries only, so that the ends of their calls are not known.
    endless: FxHashSet<FunctionId>,
    /// For each thread and wait: the function in which the thread slept.
    sleepers: Vec<Vec<Top>>,
    /// For each wake-up: the function that woke the thread.
    wakers: Vec<Top>,
    /// For each wake-up: index of the waking thread.
    waking_threads: Vec<u32>,
    /// Sampled stacks for sleepers and wakers, if known.
    sleeper_stacks: Vec<Vec<Option<u32>>>,
    waker_stacks: Vec<Option<u32>>,
}

/// The top of a stack.
#[derive(Clone, Copy, Debug, Default)]
struct Top {
    /// The innermost function whose end would be known.
    function: Option<FunctionId>,
    /// Whether a function with probes at its entry only was entered above this function.
    is_doubtful: bool,
}

impl<'a> Context<'a> {
    pub(super) fn new(
        timeline: &Timeline,
        program: &'a Program,
        functions: &[FunctionId],
        threads: &'a FxHashMap<u32, ThreadId>,
    ) -> Context<'a> {
        let names = functions
            .iter()
            .zip(&program.functions)
            .map(|(number, function)| (*number, function.name.as_str()))
            .collect();
        let mut context = Context {
            program,
            threads,
            names,
            own: program
                .functions
                .iter()
                .filter(|function| !is_of_the_system(function))
                .map(|function| function.name.as_str())
                .collect(),
            endless: timeline
                .functions
                .iter()
                .filter(|fact| !fact.exits_probed)
                .map(|fact| fact.id)
                .collect(),
            sleepers: Vec::with_capacity(timeline.threads.len()),
            wakers: vec![Top::default(); timeline.wakeups.len()],
            waking_threads: timeline.wakeups.iter().map(|wakeup| wakeup.waker).collect(),
            sleeper_stacks: Vec::new(),
            waker_stacks: Vec::new(),
        };
        if !timeline.stacks.is_empty() {
            context.see_stacks(timeline);
        }
        for thread in &timeline.threads {
            let mut sleeper = vec![Top::default(); thread.waits.len()];
            let mut stack: Vec<FunctionId> = Vec::new();
            let mut bases = thread.base_stacks.iter().peekable();
            let mut steps = (0u32..).zip(&thread.steps).peekable();
            for (at, interval) in thread.intervals.iter().enumerate() {
                let next = thread.intervals.get(at + 1).map_or(u32::MAX, |next| next.first_step);
                while let Some((number, step)) = steps.next_if(|(number, _)| *number < interval.first_step) {
                    let base = bases.next_if(|base| base.first_step <= number);
                    stack.extend(base.iter().flat_map(|base| base.functions.iter().rev()));
                    context.step(step.kind, &mut stack);
                }
                let base = bases.next_if(|base| base.first_step <= interval.first_step);
                stack.extend(base.iter().flat_map(|base| base.functions.iter().rev()));
                if let State::Blocked(wait) = interval.state
                    && let Some(place) = sleeper.get_mut(wait as usize)
                {
                    *place = context.top(&stack);
                }
                while let Some((_, step)) = steps.next_if(|(number, _)| *number < next) {
                    context.step(step.kind, &mut stack);
                }
            }
            for (_, step) in steps {
                context.step(step.kind, &mut stack);
            }
            context.sleepers.push(sleeper);
        }
        context
    }

    fn see_stacks(&mut self, timeline: &Timeline) {
        let of_thread = |thread: &Thread| {
            let mut stacks = vec![None; thread.waits.len()];
            for interval in &thread.intervals {
                if let State::Blocked(wait) = interval.state
                    && let Some(place) = stacks.get_mut(wait as usize)
                {
                    *place = thread.stack_at(interval.start, SampleReason::Block);
                }
            }
            stacks
        };
        self.sleeper_stacks = timeline.threads.iter().map(of_thread).collect();
        let of_wakeup = |wakeup: &Wakeup| {
            let waker = timeline.threads.get(wakeup.waker as usize)?;
            waker.stack_at(wakeup.time, SampleReason::Wake)
        };
        self.waker_stacks = timeline.wakeups.iter().map(of_wakeup).collect();
    }

    /// Whether stacks were sampled.
    pub(super) fn has_stacks(&self) -> bool {
        !self.sleeper_stacks.is_empty()
    }

    fn step(&mut self, kind: StepKind, stack: &mut Vec<FunctionId>) {
        match kind {
            StepKind::Enter(function) => stack.push(function),
            StepKind::Leave => {
                stack.pop();
            }
            StepKind::Wake(wakeup) => {
                let top = self.top(stack);
                if let Some(place) = self.wakers.get_mut(wakeup as usize) {
                    *place = top;
                }
            }
            StepKind::Create(_) | StepKind::Join(_) | StepKind::Operated(_) | StepKind::Hole(_) => {}
        }
    }

    fn top(&self, stack: &[FunctionId]) -> Top {
        let function = stack.iter().rev().copied().find(|function| !self.endless.contains(function));
        Top { function, is_doubtful: stack.last().copied() != function }
    }

    fn named(&self, top: Option<Top>, stack: Option<u32>) -> Option<&'a str> {
        let top = top.unwrap_or_default();
        let probed = || top.function.and_then(|function| self.names.get(&function).copied());
        let seen = || function_of(self.program, stack?);
        if top.is_doubtful { seen().or_else(probed) } else { probed().or_else(seen) }
    }

    /// The program's name of a thread of the timeline.
    pub(super) fn thread(&self, index: u32) -> Option<&'a str> {
        let number = self.threads.get(&index)?;
        self.program.threads.get(number.0 as usize).map(|thread| thread.name.as_str())
    }

    /// The program's name of a lock of the timeline.
    pub(super) fn object(&self, index: usize) -> &'a str {
        self.program.objects.get(index).map_or("", String::as_str)
    }

    /// The function in which a thread began a wait.
    pub(super) fn sleeper(&self, thread: usize, wait: usize) -> Option<&'a str> {
        let top = self.sleepers.get(thread).and_then(|waits| waits.get(wait));
        self.named(top.copied(), self.sleeper_stack(thread, wait))
    }

    /// The stack in which a thread began a wait, in the program's samples.
    pub(super) fn sleeper_stack(&self, thread: usize, wait: usize) -> Option<u32> {
        self.sleeper_stacks.get(thread)?.get(wait).copied().flatten()
    }

    /// The functions of a stack, the innermost first. One that calls itself is there once.
    pub(super) fn functions_of(&self, stack: u32) -> Vec<String> {
        let functions = self.program.samples.stack(stack).map(|(_, place)| place.function);
        let named = functions.filter_map(|function| self.program.functions.get(function.0 as usize));
        let mut names: Vec<String> = named.map(|function| function.name.clone()).collect();
        names.dedup();
        names
    }

    /// Whether the function belongs to the language or the C library, or has no name.
    pub(super) fn is_of_the_system(&self, name: &str) -> bool {
        !self.own.contains(name)
    }

    /// What the stack of a waiting thread shows about the futex word.
    pub(super) fn waits_in(&self, thread: usize, wait: usize) -> Option<WaitsIn> {
        waits_in(self.program, self.sleeper_stack(thread, wait)?)
    }

    /// Index of the waking thread.
    pub(super) fn waking_thread(&self, wakeup: u32) -> Option<u32> {
        self.waking_threads.get(wakeup as usize).copied()
    }

    /// The function in which a thread made a wake-up.
    pub(super) fn waker(&self, wakeup: u32) -> Option<&'a str> {
        let stack = self.waker_stacks.get(wakeup as usize).copied().flatten();
        self.named(self.wakers.get(wakeup as usize).copied(), stack)
    }
}
