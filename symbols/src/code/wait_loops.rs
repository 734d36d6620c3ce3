//! Finds loops in which a thread only waits. Such a loop reads the same memory again and again, compares, pauses or
//! gives up the CPU, and stores nothing. The method is longpole's own.
//!
//! Only natural loops are examined: a jump back to an instruction which lies on all paths to that jump. A natural loop
//! is a wait if
//!
//! 1. it stores nothing. An attempt to take a lock (`xchg`, `lock cmpxchg`, `lock bts`) is allowed if its values are
//!    the same in each iteration, because it changes nothing while the lock is taken. If a value depends on what the
//!    loop has read (a counter, a list), the attempt is the loop's work;
//! 2. all addresses that it reads are the same in each iteration. The addresses of a search or a text comparison
//!    change;
//! 3. a value that it has read ends it, and not only a count. A loop that reads nothing and only pauses is a wait, too;
//! 4. it carries no value from iteration to iteration and uses no vector registers, so it computes nothing. A loop with
//!    a pause, a yield or an attempt to take a lock may count its iterations, by adding constants or by doubling. A
//!    loop without them that counts and reads unchanging memory is mostly a computation: the compiler could not know
//!    that the memory does not change.
//!
//! A loop that calls anything but a yield is no wait. A loop that waits in any other form is not recognised: missing a
//! wait is a smaller error than calling work a wait.

use super::wait_values::{Kept, Turn, does_more, is_call, is_locked};
use iced_x86::{
    Code, Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpKind,
};
use rustc_hash::FxHashMap;
use std::ops::Range;

/// Largest number of instructions in a loop that waits.
const MOST_INSTRUCTIONS: usize = 96;
/// Largest number of instructions visited to find the loops of one function.
const MOST_VISITS: usize = 1 << 20;

/// The target of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Callee {
    /// A function or a linker's stub at this address.
    At(u64),
    /// A function whose address is stored in this slot.
    In(u64),
}

/// A stretch of code that is part of a loop which only waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitLoop {
    /// Addresses of the loop's instructions.
    pub code: Range<u64>,
    /// Whether the loop tries to take a lock and keeps its CPU meanwhile.
    pub tries: bool,
}

/// The stretches of a function's code that are loops which only wait, ascending. `code` is the whole function and
/// begins at the address `start`. `yields` says whether a call does nothing but give up the CPU. The result is empty if
/// the code cannot be decoded.
pub fn wait_loops(code: &[u8], start: u64, yields: &dyn Fn(Callee) -> bool) -> Vec<WaitLoop> {
    let Some(body) = Body::of(code, start) else { return Vec::new() };
    let mut search = Search::new(body.instructions.len());
    // For each instruction: `None` if no waiting loop contains it, otherwise whether one of its loops tries to take a
    // lock.
    let mut found: Vec<Option<bool>> = vec![None; body.instructions.len()];
    for (from, to) in body.ways_back() {
        if let Some(nodes) = body.natural_loop(from, to, &mut search, yields)
            && body.waits(&nodes, to)
        {
            let tries = body.tries(&nodes);
            nodes.iter().for_each(|node| found[*node] = Some(found[*node].unwrap_or(false) || tries));
        }
    }
    let mut loops: Vec<WaitLoop> = Vec::new();
    for (instruction, found) in body.instructions.iter().zip(&found) {
        let Some(tries) = *found else { continue };
        let (from, to) = (instruction.ip(), instruction.next_ip());
        match loops.last_mut() {
            Some(last) if last.code.end == from && last.tries == tries => last.code.end = to,
            _ => loops.push(WaitLoop { code: from..to, tries }),
        }
    }
    loops
}

/// The slot through which a linker's stub jumps. The slot contains the address of the function.
pub fn slot_of_stub(code: &[u8], start: u64) -> Option<u64> {
    let decoder = Decoder::with_ip(64, code, start, DecoderOptions::NONE);
    let jump = decoder.into_iter().take(2).find(|instruction| instruction.mnemonic() != Mnemonic::Endbr64)?;
    let is_slot = jump.flow_control() == FlowControl::IndirectBranch && jump.is_ip_rel_memory_operand();
    is_slot.then(|| jump.ip_rel_memory_address())
}

/// A function's instructions, each with its possible successors and predecessors.
struct Body {
    instructions: Vec<Instruction>,
    next: Vec<[Option<usize>; 2]>,
    before: Vec<Vec<usize>>,
}

impl Body {
    fn of(code: &[u8], start: u64) -> Option<Body> {
        let mut decoder = Decoder::with_ip(64, code, start, DecoderOptions::NONE);
        let mut instructions = Vec::with_capacity(code.len() / 4);
        while decoder.can_decode() {
            let instruction = decoder.decode();
            if instruction.is_invalid() {
                return None;
            }
            instructions.push(instruction);
        }
        let at: FxHashMap<u64, usize> =
            instructions.iter().enumerate().map(|(index, instruction)| (instruction.ip(), index)).collect();
        let mut next: Vec<[Option<usize>; 2]> = instructions
            .iter()
            .enumerate()
            .map(|(index, instruction)| {
                let target = at.get(&instruction.near_branch_target()).copied();
                let following = Some(index + 1).filter(|next| *next < instructions.len());
                match instruction.flow_control() {
                    FlowControl::UnconditionalBranch => [target, None],
                    FlowControl::ConditionalBranch | FlowControl::XbeginXabortXend => [following, target],
                    FlowControl::Return | FlowControl::IndirectBranch | FlowControl::Exception => {
                        [None, None]
                    }
                    _ => [following, None],
                }
            })
            .collect();
        let mut before = vec![Vec::new(); instructions.len()];
        for (index, after) in next.iter().enumerate() {
            after.iter().flatten().for_each(|after| before[*after].push(index));
        }
        // Unreached padding has no successors.
        for (index, instruction) in instructions.iter().enumerate().skip(1) {
            if before[index].is_empty() && instruction.mnemonic() == Mnemonic::Nop {
                for after in std::mem::take(&mut next[index]).into_iter().flatten() {
                    before[after].retain(|from| *from != index);
                }
            }
        }
        Some(Body { instructions, next, before })
    }

    /// The edges of the control flow that may close a loop: jumps back, and all edges to instructions with several
    /// predecessors.
    fn ways_back(&self) -> impl Iterator<Item = (usize, usize)> {
        self.before.iter().enumerate().flat_map(|(to, before)| {
            let is_joined = before.len() > 1;
            before.iter().filter(move |from| is_joined || **from >= to).map(move |from| (*from, to))
        })
    }

    /// The instructions from which `from` is reached without passing `to`. `None` if these instructions are no waiting
    /// loop: a path to `from` avoids `to`, the loop is too long, or an instruction does more than wait.
    fn natural_loop(
        &self,
        from: usize,
        to: usize,
        search: &mut Search,
        yields: &dyn Fn(Callee) -> bool,
    ) -> Option<Vec<usize>> {
        if search.does_more(to, &self.instructions[to], yields) {
            return None;
        }
        search.turn += 1;
        search.reached[to] = search.turn;
        let mut nodes = vec![to];
        let mut open = vec![from];
        while let Some(node) = open.pop() {
            if std::mem::replace(&mut search.reached[node], search.turn) == search.turn {
                continue;
            }
            search.visits = search.visits.checked_sub(1)?;
            // No known predecessor: the function's start, or code that only a jump through a table reaches.
            if node == 0 || self.before[node].is_empty() || nodes.len() >= MOST_INSTRUCTIONS {
                return None;
            }
            if search.does_more(node, &self.instructions[node], yields) {
                return None;
            }
            nodes.push(node);
            open.extend(&self.before[node]);
        }
        nodes.sort_unstable();
        Some(nodes)
    }

    /// Whether a waiting loop tries to take a lock and keeps its CPU meanwhile.
    fn tries(&self, nodes: &[usize]) -> bool {
        let mut instructions = nodes.iter().map(|node| &self.instructions[*node]);
        instructions.clone().any(is_locked) && !instructions.any(is_call)
    }

    /// Whether a loop only waits, if all its calls are yields.
    fn waits(&self, nodes: &[usize], head: usize) -> bool {
        let instructions = || nodes.iter().map(|node| &self.instructions[*node]);
        let pauses = instructions().any(|instruction| is_pause(instruction) || is_call(instruction));
        let may_count = pauses || instructions().any(is_locked);
        let Some(mut kept) = Kept::at_head(instructions(), may_count) else { return false };
        if !self.settle(nodes, head, &mut kept) {
            return false;
        }
        // An exit of the loop must depend on a value that the loop has read. A loop that reads nothing must pause.
        let leaves = |node: &&usize| {
            self.instructions[**node].is_jcc_short_or_near()
                && self.next[**node].iter().any(|next| next.is_none_or(|next| !nodes.contains(&next)))
        };
        let is_left_on_memory = nodes.iter().filter(leaves).any(|node| kept.branches_on_memory(*node));
        is_left_on_memory || pauses && !instructions().any(reads_memory)
    }

    /// Follows the values of registers through the loop until nothing changes. `false` if an instruction does more than
    /// wait.
    fn settle(&self, nodes: &[usize], head: usize, kept: &mut Kept) -> bool {
        let mut open = vec![head];
        while let Some(node) = open.pop() {
            let Some(after) = kept.step(node, head, &self.instructions[node]) else { return false };
            for next in self.next[node].iter().flatten().filter(|next| nodes.contains(next)) {
                if *next != head && kept.join(*next, &after) == Turn::Changed {
                    open.push(*next);
                }
            }
        }
        true
    }
}

/// State of the search for loops in one function. Most instructions are in no waiting loop, so most searches end after
/// a few steps.
struct Search {
    visits: usize,
    turn: u32,
    /// For each instruction, the number of the last search that reached it.
    reached: Vec<u32>,
    /// For each instruction, whether it does more than wait; `None` until computed.
    does_more: Vec<Option<bool>>,
    factory: InstructionInfoFactory,
}

impl Search {
    fn new(instructions: usize) -> Search {
        Search {
            visits: MOST_VISITS,
            turn: 0,
            reached: vec![0; instructions],
            does_more: vec![None; instructions],
            factory: InstructionInfoFactory::new(),
        }
    }

    fn does_more(&mut self, node: usize, instruction: &Instruction, yields: &dyn Fn(Callee) -> bool) -> bool {
        let factory = &mut self.factory;
        *self.does_more[node].get_or_insert_with(|| match is_call(instruction) {
            true => !callee(instruction).is_some_and(yields),
            false => does_more(instruction, factory.info(instruction)),
        })
    }
}

/// The target of a call, if the instruction itself contains the target.
fn callee(call: &Instruction) -> Option<Callee> {
    match call.flow_control() {
        FlowControl::Call if call.op0_kind() == OpKind::NearBranch64 => {
            Some(Callee::At(call.near_branch_target()))
        }
        FlowControl::IndirectCall if call.is_ip_rel_memory_operand() => {
            Some(Callee::In(call.ip_rel_memory_address()))
        }
        _ => None,
    }
}

fn is_pause(instruction: &Instruction) -> bool {
    matches!(instruction.mnemonic(), Mnemonic::Pause | Mnemonic::Tpause | Mnemonic::Umwait)
}

fn reads_memory(instruction: &Instruction) -> bool {
    let is_memory = |operand: u32| instruction.op_kind(operand) == OpKind::Memory;
    let is_only_address = matches!(instruction.mnemonic(), Mnemonic::Lea | Mnemonic::Nop);
    instruction.code() != Code::INVALID
        && !is_only_address
        && instruction.flow_control() == FlowControl::Next
        && (0..instruction.op_count()).any(is_memory)
}
