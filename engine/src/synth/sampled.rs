//! Makes a program look as if it was recorded with probes on some of its functions and samples of all others.

use super::Numbers;
use crate::program::{FunctionRef, Operation, Place, PlaceId, Program, Sample, Samples, Thread};
use crate::time::Ticks;
use rustc_hash::FxHashMap;

/// The program without calls of functions without probes (`probed`: by number, whether a function has them), and with samples
/// of each thread's compute time. There is one sample at a random instant of each stretch of length `period`. The answer to
/// it is the report of the program itself.
pub fn sampled_program(program: &Program, probed: &[bool], period: Ticks, seed: u64) -> Program {
    let is_probed = |function: FunctionRef| probed.get(function.0 as usize).copied().unwrap_or(false);
    let mut sampled = Program { samples: Samples::default(), threads: Vec::new(), ..program.clone() };
    for (number, function) in (0u32..).zip(&mut sampled.functions) {
        function.sampled = !is_probed(FunctionRef(number));
    }
    let mut writer = Writer {
        is_probed: &is_probed,
        period: period.0.max(1),
        numbers: Numbers::new(seed),
        stacks: FxHashMap::default(),
        list: Vec::new(),
    };
    let mut samples = Vec::new();
    for thread in &program.threads {
        let (operations, of_thread) = writer.thread(thread);
        sampled.threads.push(Thread { operations, ..thread.clone() });
        samples.push(of_thread);
    }
    let places = (0u32..).take(program.functions.len()).map(|function| Place {
        function: FunctionRef(function),
        line: Some(format!("file{}.c:{function}", function % 2)),
        inlined: false,
    });
    sampled.samples = Samples {
        places: places.collect(),
        stacks: writer.list,
        threads: samples,
        rate_hz: u32::try_from(1_000_000_000 * Ticks::PER_NS / period.0.max(1)).unwrap_or(u32::MAX),
        ..Samples::default()
    };
    sampled
}

struct Writer<'a> {
    is_probed: &'a dyn Fn(FunctionRef) -> bool,
    period: u64,
    numbers: Numbers,
    stacks: FxHashMap<Vec<PlaceId>, u32>,
    list: Vec<Vec<PlaceId>>,
}

impl Writer<'_> {
    fn thread(&mut self, thread: &Thread) -> (Vec<Operation>, Vec<Sample>) {
        let mut operations: Vec<Operation> = Vec::new();
        let mut samples = Vec::new();
        let mut stack: Vec<FunctionRef> = Vec::new();
        // Compute time so far, number of the present stretch, and time of its sample.
        let (mut now, mut stretch) = (0u64, 0u64);
        let mut next = self.numbers.below(self.period);
        for operation in &thread.operations {
            let (length, inside) = match *operation {
                Operation::Exec(length) | Operation::Once(_, length) => (length, None),
                Operation::ExecIn(function, length) => (length, Some(function)),
                _ => (Ticks(0), None),
            };
            match *operation {
                Operation::Call(function) => {
                    stack.push(function);
                    if (self.is_probed)(function) {
                        operations.push(*operation);
                    }
                    continue;
                }
                Operation::Return => {
                    if stack.pop().is_some_and(|function| (self.is_probed)(function)) {
                        operations.push(*operation);
                    }
                    continue;
                }
                Operation::ExecIn(function, length) if !(self.is_probed)(function) => {
                    add(&mut operations, length);
                }
                Operation::Exec(length) => add(&mut operations, length),
                _ => operations.push(*operation),
            }
            if length == Ticks(0) {
                continue;
            }
            let at = operations.len() as u32 - 1;
            now = now.saturating_add(length.0);
            while next < now {
                let places: Vec<PlaceId> =
                    inside.iter().chain(stack.iter().rev()).map(|function| PlaceId(function.0)).collect();
                let number = self.number(places);
                samples.push(Sample { operation: at, stack: number });
                stretch += 1;
                next = stretch.saturating_mul(self.period).saturating_add(self.numbers.below(self.period));
            }
        }
        (operations, samples)
    }

    fn number(&mut self, places: Vec<PlaceId>) -> u32 {
        if let Some(number) = self.stacks.get(&places) {
            return *number;
        }
        let number = self.list.len() as u32;
        self.list.push(places.clone());
        self.stacks.insert(places, number);
        number
    }
}

/// Adds computing to the operation before: without probes in between they are one.
fn add(operations: &mut Vec<Operation>, length: Ticks) {
    if let Some(Operation::Exec(before)) = operations.last_mut() {
        before.0 = before.0.saturating_add(length.0);
    } else {
        operations.push(Operation::Exec(length));
    }
}
