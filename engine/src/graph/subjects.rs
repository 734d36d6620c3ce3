//! Parts of a program that can be made faster: functions, threads, processes, locks, kinds of time and CPUs, and the edges of
//! each.

use super::activity::{ActivityGraph, ActivityKind};
use super::placed::placed;
use crate::program::{FunctionRef, ObjectId, Program, ThreadId, taking};
use rustc_hash::FxHashMap;

/// A part of a program's time (1994, section VI: an activity, or a class of them).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Subject {
    /// Computing with this function on top of the stack.
    Function(FunctionRef),
    /// All time of one thread.
    Thread(ThreadId),
    /// All time of any thread that holds this lock.
    Lock(ObjectId),
    /// All time of one kind, summed over threads.
    Class(Class),
    /// All time of the process whose first thread is given.
    Process(ThreadId),
    /// Computing on this CPU when the program was recorded.
    Cpu(u16),
}

/// A kind of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// Computing.
    Compute,
    /// Waiting for devices.
    Io,
    /// Sleeping, and latencies of wake-ups.
    Wait,
}

/// Edges, each with the part of its length that counts.
type Parts = Vec<(u32, u64)>;

/// The subjects of a program, and the edges of each subject.
#[derive(Debug)]
pub struct Subjects {
    /// All subjects with any time, in the order: functions, threads, locks, classes, processes, CPUs.
    pub all: Vec<Subject>,
    /// For a lock: the edges during which it is held. For a CPU: the edges, or parts of edges, computed there.
    parts: FxHashMap<Subject, Parts>,
    /// For each thread: the first thread of its process.
    processes: Vec<Option<ThreadId>>,
}

/// The edge belongs to none of the chosen subjects.
const NONE: u32 = u32::MAX;

/// Finds which of the chosen subjects an edge belongs to, and which part of its length counts.
#[derive(Debug)]
pub(super) struct Marks<'g> {
    graph: &'g ActivityGraph,
    /// Subject's index in the list, by function.
    functions: Vec<u32>,
    /// For each thread: index of the thread's subject, and of its process's subject.
    threads: Vec<[u32; 2]>,
    classes: [u32; 3],
    /// For each edge: where its locks and CPUs begin in `parts`. Empty if no lock or CPU was chosen.
    first: Vec<u32>,
    /// Index of the subject, and the part of the edge's length.
    parts: Vec<(u32, u64)>,
}

impl Marks<'_> {
    /// Calls `then` with the index of each subject that the edge belongs to, and with the part of the edge's length
    /// that counts.
    #[inline]
    pub(super) fn each(&self, edge: usize, mut then: impl FnMut(usize, u64)) {
        let length = self.graph.length(edge);
        if length == 0 {
            return;
        }
        let mut all_of_it = |subject: u32| {
            if subject != NONE {
                then(subject as usize, length);
            }
        };
        if let Some(function) = function(self.graph, edge) {
            all_of_it(self.functions.get(function.0 as usize).copied().unwrap_or(NONE));
        }
        if let Some(subjects) = self.threads.get(self.graph.thread(edge).0 as usize) {
            subjects.iter().for_each(|subject| all_of_it(*subject));
        }
        if let Some(class) = class(self.graph.kind(edge)) {
            all_of_it(self.classes[class as usize]);
        }
        if let (Some(from), Some(to)) = (self.first.get(edge), self.first.get(edge + 1)) {
            for (subject, part) in self.parts.get(*from as usize..*to as usize).unwrap_or_default() {
                then(*subject as usize, *part);
            }
        }
    }
}

impl Subjects {
    /// Collects the subjects from all edges and all operations.
    pub fn of(program: &Program, graph: &ActivityGraph) -> Subjects {
        let mut firsts: FxHashMap<&str, ThreadId> = FxHashMap::default();
        let processes: Vec<Option<ThreadId>> = (0..)
            .map(ThreadId)
            .zip(&program.threads)
            .map(|(number, thread)| Some(*firsts.entry(thread.process.as_deref()?).or_insert(number)))
            .collect();
        let mut parts: FxHashMap<Subject, Parts> = FxHashMap::default();
        let timed = timed(program, graph);
        locked(program, graph, &timed, &mut parts);
        placed(program, graph, &timed, &mut parts);
        let mut there = std::collections::BTreeSet::new();
        for edge in 0..graph.edges() {
            if graph.length(edge) == 0 {
                continue;
            }
            let thread = graph.thread(edge);
            there.insert(Subject::Thread(thread));
            there.extend(processes.get(thread.0 as usize).copied().flatten().map(Subject::Process));
            there.extend(class(graph.kind(edge)).map(Subject::Class));
            there.extend(function(graph, edge).map(Subject::Function));
        }
        there.extend(parts.keys().copied());
        Subjects { all: there.into_iter().collect(), parts, processes }
    }

    /// Finds the edges of the subjects in this list.
    pub(super) fn marks<'g>(&self, graph: &'g ActivityGraph, subjects: &[Subject]) -> Marks<'g> {
        let mut marks = Marks {
            graph,
            functions: Vec::new(),
            threads: vec![[NONE; 2]; self.processes.len()],
            classes: [NONE; 3],
            first: Vec::new(),
            parts: Vec::new(),
        };
        let mut parts: Vec<(u32, u32, u64)> = Vec::new();
        for (subject, place) in subjects.iter().zip(0_u32..) {
            match subject {
                Subject::Function(function) => put(&mut marks.functions, function.0, place, NONE),
                Subject::Thread(thread) => {
                    let own = marks.threads.get(thread.0 as usize).map_or(NONE, |[_, process]| *process);
                    put(&mut marks.threads, thread.0, [place, own], [NONE; 2]);
                }
                Subject::Class(class) => marks.classes[*class as usize] = place,
                Subject::Process(first) => {
                    for (thread, process) in marks.threads.iter_mut().zip(&self.processes) {
                        if *process == Some(*first) {
                            thread[1] = place;
                        }
                    }
                }
                Subject::Lock(_) | Subject::Cpu(_) => {
                    let own = self.parts.get(subject).into_iter().flatten();
                    parts.extend(own.map(|(edge, part)| (*edge, place, *part)));
                }
            }
        }
        if !parts.is_empty() {
            parts.sort_unstable_by_key(|(edge, subject, _)| (*edge, *subject));
            let mut behind = 0;
            marks.first = (0..=graph.edges() as u32)
                .map(|edge| {
                    behind += parts[behind..].iter().take_while(|(of, ..)| *of < edge).count();
                    behind as u32
                })
                .collect();
            marks.parts = parts.into_iter().map(|(_, subject, part)| (subject, part)).collect();
        }
        marks
    }
}

fn put<T: Copy>(list: &mut Vec<T>, place: u32, value: T, otherwise: T) {
    let place = place as usize;
    if list.len() <= place {
        list.resize(place + 1, otherwise);
    }
    list[place] = value;
}

/// The function that the edge is self time of.
pub(super) fn function(graph: &ActivityGraph, edge: usize) -> Option<FunctionRef> {
    (graph.kind(edge) == ActivityKind::Compute).then(|| graph.function(edge)).flatten()
}

fn class(kind: ActivityKind) -> Option<Class> {
    match kind {
        ActivityKind::Compute => Some(Class::Compute),
        ActivityKind::Io => Some(Class::Io),
        ActivityKind::Sleep | ActivityKind::Delay => Some(Class::Wait),
        ActivityKind::Step | ActivityKind::Wake | ActivityKind::Start | ActivityKind::End => None,
    }
}

/// For each thread: its edges that take time, in the order of its operations.
fn timed(program: &Program, graph: &ActivityGraph) -> Vec<Vec<u32>> {
    let mut timed: Vec<Vec<u32>> = vec![Vec::new(); program.threads.len()];
    for edge in 0..graph.edges() {
        if graph.length(edge) > 0
            && let Some(edges) = timed.get_mut(graph.thread(edge).0 as usize)
        {
            edges.push(edge as u32);
        }
    }
    timed
}

/// For each lock: adds the edges that take time while their thread holds the lock.
fn locked(
    program: &Program,
    graph: &ActivityGraph,
    timed: &[Vec<u32>],
    parts: &mut FxHashMap<Subject, Parts>,
) {
    for (thread, edges) in program.threads.iter().zip(timed) {
        let mut held: Vec<(ObjectId, u32)> = Vec::new();
        let mut edges = edges.iter().peekable();
        for (number, operation) in thread.operations.iter().enumerate() {
            while let Some(edge) = edges.next_if(|edge| graph.operation(**edge as usize) as usize == number) {
                for (lock, _) in &held {
                    let length = graph.length(*edge as usize);
                    parts.entry(Subject::Lock(*lock)).or_default().push((*edge, length));
                }
            }
            let Some((lock, takes)) = taking(operation) else { continue };
            match held.iter_mut().find(|(held, _)| *held == lock) {
                Some((_, times)) if takes => *times += 1,
                Some((_, times)) => *times -= 1,
                None if takes => held.push((lock, 1)),
                None => {}
            }
            held.retain(|(_, times)| *times > 0);
        }
    }
}
