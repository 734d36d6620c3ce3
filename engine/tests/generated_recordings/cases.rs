//! Random programs, and generated recordings of their execution.

use engine::program::{EdgeId, Function, FunctionRef, ObjectId, Operation, Program, Thread, ThreadId};
use engine::synth::{Execution, Generated, generate};
use engine::time::Ticks;
use proptest::prelude::*;

const PICK_FUNCTION: [&str; 4] = ["alpha", "beta", "gamma", "delta"];

/// A step of a random thread; numbers are folded into range later.
#[derive(Clone, Debug)]
enum Act {
    Exec(u64),
    Call(u32),
    Return,
    Leaf(u32, u64),
    Signal(u32),
    Wait(u32),
    Create,
    Join(u32),
    Io(u64),
    Sleep(u64),
    Release(u32),
    Await(u32),
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        4 => (0u64..20_000).prop_map(Act::Exec),
        3 => (0u32..4).prop_map(Act::Call),
        3 => Just(Act::Return),
        2 => (0u32..4, 0u64..3_000).prop_map(|(f, ns)| Act::Leaf(f, ns)),
        3 => (0u32..3).prop_map(Act::Signal),
        2 => (0u32..3).prop_map(Act::Wait),
        1 => Just(Act::Create),
        1 => any::<u32>().prop_map(Act::Join),
        1 => (0u64..9_000).prop_map(Act::Io),
        // Shorter sleeps count as polling.
        1 => (101_000u64..110_000).prop_map(Act::Sleep),
        1 => (0u32..6).prop_map(Act::Release),
        1 => (0u32..6).prop_map(Act::Await),
    ]
}

fn program() -> impl Strategy<Value = Program> {
    prop::collection::vec(prop::collection::vec(act(), 0..25), 1..6).prop_map(|threads| {
        let count = threads.len() as u32;
        let (mut next_created, mut released) = (count / 2 + 1, Vec::new());
        let mut list = Vec::new();
        for (index, acts) in threads.into_iter().enumerate() {
            let mut depth = 0;
            let mut operations = Vec::new();
            for act in acts {
                operations.push(match act {
                    Act::Exec(ns) => Operation::Exec(Ticks::from_ns(ns)),
                    Act::Leaf(f, ns) => Operation::ExecIn(FunctionRef(f), Ticks::from_ns(ns)),
                    Act::Call(f) => {
                        depth += 1;
                        Operation::Call(FunctionRef(f))
                    }
                    Act::Return if depth > 0 => {
                        depth -= 1;
                        Operation::Return
                    }
                    Act::Signal(s) => Operation::Signal(ObjectId(s)),
                    Act::Wait(s) => Operation::Wait(ObjectId(s)),
                    Act::Create if next_created < count && next_created as usize > index => {
                        next_created += 1;
                        Operation::Create(ThreadId(next_created - 1))
                    }
                    Act::Join(t) if t % count != index as u32 => Operation::Join(ThreadId(t % count)),
                    Act::Io(ns) => Operation::Io(ObjectId(3), Ticks::from_ns(ns)),
                    Act::Sleep(ns) => Operation::Sleep(Ticks::from_ns(ns)),
                    Act::Release(e) if !released.contains(&e) => {
                        released.push(e);
                        Operation::Release(EdgeId(e))
                    }
                    // One thread awaits each edge.
                    Act::Await(e) if e as usize % count as usize == index => Operation::Await(EdgeId(e)),
                    _ => continue,
                });
            }
            list.push(Thread { name: format!("worker-{index}"), operations, ..Thread::default() });
        }
        Program {
            functions: PICK_FUNCTION
                .map(|name| Function { name: name.to_owned(), ..Function::default() })
                .to_vec(),
            objects: ["x", "y", "z", "disk"].map(str::to_owned).to_vec(),
            edges: (0..6).map(|edge| format!("edge {edge}")).collect(),
            threads: list,
            ..Program::default()
        }
    })
}

fn execution() -> impl Strategy<Value = Execution> {
    (1u16..5, 1u64..6, 1u64..40, 1usize..4, any::<u32>(), any::<u64>(), any::<bool>(), any::<bool>())
        .prop_map(|(cpus, slice, latency, rings, sequence, seed, noise, fold_recursion)| Execution {
            cpus,
            slice_ns: slice * 1_000,
            latency_ns: latency * 64,
            rings,
            first_sequence: if seed % 2 == 0 { 0 } else { sequence | 0xffff_ff00 },
            seed,
            noise,
            second_wakings: true,
            fold_recursion,
            ..Execution::default()
        })
}

/// A generated recording. As text it is its program and execution.
#[derive(Clone)]
pub struct Case {
    pub program: Program,
    pub execution: Execution,
    pub generated: Generated,
}

impl std::fmt::Debug for Case {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "{:?}", self.execution)?;
        for (index, thread) in self.program.threads.iter().enumerate() {
            writeln!(f, "T{index}: {:?}", thread.operations)?;
        }
        Ok(())
    }
}

pub fn case() -> impl Strategy<Value = Case> {
    (program(), execution()).prop_map(|(program, execution)| {
        let generated = generate(&program, &execution).expect("supported");
        Case { program, execution, generated }
    })
}
