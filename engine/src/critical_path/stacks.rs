//! Sums like those of functions ([`super::function_totals`]), but for each complete call stack.

use super::lanes::{Lane, add};
use super::weights::Weights;
use crate::attribution::Attribution;
use crate::program::{FunctionRef, Operation, Program, RunBreaks, ThreadId};
use rustc_hash::FxHashMap;

/// Stacks of probed functions, without duplicates. Index 0 is the empty stack.
#[derive(Debug)]
pub(crate) struct CallTree {
    /// For each stack: the index of the stack without its innermost function, and that function.
    nodes: Vec<(u32, Option<FunctionRef>)>,
    numbers: FxHashMap<(u32, FunctionRef), u32>,
}

impl CallTree {
    /// All stacks in the program's operations.
    pub(crate) fn of(program: &Program) -> CallTree {
        let mut tree = CallTree { nodes: vec![(0, None)], numbers: FxHashMap::default() };
        for thread in &program.threads {
            let mut node = 0;
            for operation in &thread.operations {
                match *operation {
                    Operation::ExecIn(function, _) => _ = tree.put(node, function),
                    Operation::Call(function) => node = tree.put(node, function),
                    Operation::Return => node = tree.above(node),
                    _ => {}
                }
            }
        }
        tree
    }

    fn put(&mut self, node: u32, function: FunctionRef) -> u32 {
        let nodes = &mut self.nodes;
        *self.numbers.entry((node, function)).or_insert_with(|| {
            // There are at most as many nodes as operations, whose number fits.
            let number = nodes.len() as u32;
            nodes.push((node, Some(function)));
            number
        })
    }

    /// The stack `node` with one more function on top.
    pub(crate) fn below(&self, node: u32, function: FunctionRef) -> u32 {
        self.numbers.get(&(node, function)).copied().unwrap_or(0)
    }

    /// The stack `node` without its innermost function.
    pub(crate) fn above(&self, node: u32) -> u32 {
        self.nodes.get(node as usize).map_or(0, |(above, _)| *above)
    }

    /// The functions of a stack, the outermost first.
    pub(crate) fn functions(&self, mut node: u32) -> Vec<FunctionRef> {
        let mut functions = Vec::new();
        while let Some((above, Some(function))) = self.nodes.get(node as usize) {
            functions.push(*function);
            node = *above;
        }
        functions.reverse();
        functions
    }
}

/// Key of a sum of computing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct OwnSum {
    pub(crate) thread: u32,
    /// Index of the stack in the [`CallTree`].
    pub(crate) node: u32,
    /// Stratum, if samples show more than the stack, else [`crate::attribution::NO_STRATUM`].
    pub(crate) stratum: u32,
}

impl<const N: usize> Weights<'_, N> {
    /// Σ weight · length by thread, stack and stratum, scaled ([`Weights::owed_ns`]).
    pub(crate) fn by_stack(
        &self,
        attribution: &Attribution,
        tree: &CallTree,
    ) -> FxHashMap<OwnSum, [i128; N]> {
        let mut sums: FxHashMap<OwnSum, Lane<i128, N>> = FxHashMap::default();
        let mut walked = self.walked();
        for (index, thread) in self.program.threads.iter().enumerate() {
            let number = index as u32;
            let mut runs = self.runs.of_thread(ThreadId(number));
            let mut breaks = RunBreaks::default();
            let mut node = 0;
            let mut weight = [0i64; N];
            let done = self.done.get(index).copied().unwrap_or(0);
            for (place, operation) in thread.operations.iter().enumerate().take(done) {
                if breaks.starts_run(operation) {
                    // Another thread ran the `once` code.
                    let Some((point, _)) = runs.next().flatten() else { continue };
                    match &mut walked {
                        Some(walked) => _ = walked.begin(point),
                        None => weight = self.lane(point),
                    }
                }
                let (length, node) = match *operation {
                    Operation::Exec(length) | Operation::Once(_, length) => (length.0, node),
                    Operation::ExecIn(function, length) => (length.0, tree.below(node, function)),
                    Operation::Call(function) => {
                        node = tree.below(node, function);
                        continue;
                    }
                    Operation::Return => {
                        node = tree.above(node);
                        continue;
                    }
                    _ => continue,
                };
                let product = match &mut walked {
                    Some(walked) => walked.pass(length).map(i128::from),
                    None => weight.map(|weight| i128::from(weight) * i128::from(length)),
                };
                if product.iter().any(|part| *part != 0) {
                    let stratum = attribution.strata.slot(index, place);
                    let sum = sums.entry(OwnSum { thread: number, node, stratum }).or_insert([0; N]);
                    add(sum, &product);
                }
            }
        }
        sums
    }

    /// A sum of [`Weights::by_stack`] in nanoseconds, for the CPU count or the run with this index.
    pub(crate) fn owed_ns(&self, sum: &[i128; N], place: usize) -> f64 {
        self.unscale(sum.get(place).copied().unwrap_or(0), place).as_ns_f64()
    }
}
