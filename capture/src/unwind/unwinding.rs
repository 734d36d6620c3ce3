//! Unwinds copied stacks into frames, by the unwind tables of the binaries that a process has mapped.
//!
//! The tables come from a parser without rights, and the binary's maker may put anything into them; the stack
//! is written by the program. So each step is a total function of both, a caller's frame lies above its callee's,
//! and there are at most [`MOST_FRAMES`] steps of two searches each: nothing here can loop, allocate more
//! than that, or panic.

use super::address_space::holds;
use super::binaries::{Binary, BinaryTables};
use super::callers::{Caller, Frame, Stack, by_frame_pointer, by_rule, returning};
use crate::target::Code;
use engine::event::MOST_FRAMES;
use probe_abi::{REGISTERS, RawCopy};
use std::sync::Arc;
use symbols::{FrameAt, Saved, UnwindRows};

/// A piece of code in a process, with the tables of its binary.
#[derive(Debug)]
struct Placed {
    code: Code,
    tables: Tables,
}

/// A binary's unwind tables. They are read when a stack first leads into the binary: a program may map a hundred libraries
/// and run code in five, and reading each one takes a process of its own.
#[derive(Debug)]
enum Tables {
    NotRead,
    /// The tables are being read.
    Asked,
    No,
    At {
        bias: u64,
        binary: Arc<Binary>,
    },
}

impl Placed {
    fn rows(&self) -> Option<(&UnwindRows, u64)> {
        match &self.tables {
            Tables::At { bias, binary } => Some((&binary.rows, *bias)),
            Tables::NotRead | Tables::Asked | Tables::No => None,
        }
    }

    fn read(&mut self, binary: Option<Arc<Binary>>) {
        let bias = binary.as_ref().and_then(|binary| binary.bias(&self.code));
        self.tables = match bias.zip(binary) {
            Some((bias, binary)) => Tables::At { bias, binary },
            None => Tables::No,
        };
    }
}

/// Unwinds the copied stacks of one process.
#[derive(Debug, Default)]
pub struct Unwinding {
    /// Code in order of address.
    placed: Vec<Placed>,
    /// Code that keeps frame pointers: first address and length.
    pub keeping: Vec<[u64; 2]>,
}

/// The result of unwinding a stack.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unwound {
    /// The innermost frame first.
    pub frames: Vec<u64>,
    /// The frames reach up to the thread's first function.
    pub whole: bool,
    /// Number of bytes of the copy, from its beginning, that were needed.
    pub reach: usize,
    /// The stack continues after the end of the copy.
    pub beyond: bool,
}

impl Unwinding {
    /// Sets the process's code, in order of address. Tables of code that stays are kept.
    pub fn know(&mut self, code: &[Code]) {
        self.placed.retain(|placed| holds(code, &placed.code));
        let before = self.placed.len();
        for code in code {
            let known = self.placed.get(..before).unwrap_or_default();
            let at = known.partition_point(|placed| placed.code.start < code.start);
            if known.get(at).is_none_or(|placed| placed.code != *code) {
                self.placed.push(Placed { code: code.clone(), tables: Tables::NotRead });
            }
        }
        self.placed.sort_by_key(|placed| placed.code.start);
        self.find_keeping();
    }

    fn find_keeping(&mut self) {
        let keeps = |placed: &&Placed| placed.rows().is_some_and(|(rows, _)| rows.keeps_frame_pointers);
        let range = |placed: &Placed| [placed.code.start, placed.code.end.saturating_sub(placed.code.start)];
        self.keeping = self.placed.iter().filter(keeps).map(range).collect();
    }

    fn placed_at(&self, address: u64) -> Option<usize> {
        let at = self.placed.partition_point(|placed| placed.code.start <= address).checked_sub(1)?;
        self.placed.get(at).filter(|placed| address < placed.code.end).map(|_| at)
    }

    /// The caller of a function that has not yet set its frame pointer, or no longer has it: following frame pointers
    /// would skip this caller. `top`: the two words at the stack pointer.
    pub fn passed_over(&self, instruction: u64, top: [u64; 2]) -> Option<u64> {
        let placed = self.placed_at(instruction).and_then(|index| self.placed.get(index))?;
        let (rows, bias) = placed.rows()?;
        let rule = rows.rule(instruction.wrapping_sub(bias)).filter(|rule| rule.back == Saved::Frame(-8))?;
        let caller = match rule.frame {
            FrameAt::Stack(8) => top[0],
            FrameAt::Stack(16) => top[1],
            _ => 0,
        };
        (caller != 0).then_some(caller)
    }

    /// The frames of a copied stack. Reads tables that are needed and not read yet, which may change
    /// `keeping`.
    pub fn unwind(&mut self, raw: &RawCopy, binaries: &mut BinaryTables) -> Unwound {
        loop {
            match self.follow(&Copied::of(raw)) {
                Ok(unwound) => return unwound,
                // Each table is read only once, so this loop ends.
                Err(NotRead(index)) => {
                    if let Some(placed) = self.placed.get_mut(index) {
                        placed.read(binaries.read(&placed.code));
                    }
                    self.find_keeping();
                }
            }
        }
    }

    /// The code whose tables must be read, unless that is under way; and the code's first address.
    pub(super) fn ask(&mut self, NotRead(index): NotRead) -> (Option<Code>, u64) {
        let Some(placed) = self.placed.get_mut(index) else { return (None, 0) };
        let is_new = matches!(placed.tables, Tables::NotRead);
        if is_new {
            placed.tables = Tables::Asked;
        }
        (is_new.then(|| placed.code.clone()), placed.code.start)
    }

    /// Sets the tables of this code; `None`: the code has none. This may change `keeping`.
    pub(super) fn answer(&mut self, code: &Code, binary: Option<Arc<Binary>>) {
        let at = self.placed.partition_point(|placed| placed.code.start < code.start);
        if let Some(placed) = self.placed.get_mut(at).filter(|placed| placed.code == *code) {
            placed.read(binary);
            self.find_keeping();
        }
    }

    /// Marks tables that are not read yet as missing, since none will be read any more.
    pub(super) fn give_up(&mut self) {
        for placed in &mut self.placed {
            if matches!(placed.tables, Tables::NotRead | Tables::Asked) {
                placed.tables = Tables::No;
            }
        }
    }

    /// The frames of a copied stack; an error if tables that it needs are not read yet.
    pub(super) fn follow(&self, raw: &Copied<'_>) -> Result<Unwound, NotRead> {
        let stack = Stack::new(raw.from, raw.bytes, raw.registers);
        let mut at = Frame {
            instruction: raw.instruction_pointer,
            stack_pointer: raw.stack_pointer,
            frame_pointer: Some(raw.frame_pointer),
            is_return: false,
            has_registers: true,
        };
        let mut frames = vec![at.instruction];
        let mut whole = false;
        // One frame more than the number that is kept shows that the stack continues.
        while frames.len() <= MOST_FRAMES {
            let address = if at.is_return { at.instruction.wrapping_sub(1) } else { at.instruction };
            let index = self.placed_at(address);
            let placed = index.and_then(|index| self.placed.get(index));
            if let Some(index) = index
                && placed.is_some_and(|placed| matches!(placed.tables, Tables::NotRead | Tables::Asked))
            {
                return Err(NotRead(index));
            }
            let caller = match placed.and_then(Placed::rows) {
                Some((rows, bias)) => match rows.rule(address.wrapping_sub(bias)) {
                    Some(rule) => by_rule(&at, rule, &stack),
                    // Such a function, written in assembler without unwind information, mostly has no frame.
                    None if !at.is_return => returning(&at, &stack),
                    // A call never returns to a function's first instruction. `makecontext` puts such an address below the
                    // first function of a fiber, so the fiber's stack begins there.
                    None if rows.rule(at.instruction.wrapping_sub(bias)).is_some() => {
                        frames.pop();
                        Caller::None
                    }
                    None => by_frame_pointer(&at, &stack),
                },
                // Code that a program makes, and binaries without tables, mostly keep frame pointers.
                None => by_frame_pointer(&at, &stack),
            };
            match caller {
                Caller::Is(frame) if frame.instruction != 0 => {
                    // Readers of stacks look up the byte before an outer frame's address, so one is added to an
                    // interrupted instruction.
                    frames.push(frame.instruction.wrapping_add(u64::from(!frame.is_return)));
                    at = frame;
                }
                Caller::Is(_) | Caller::None => {
                    whole = true;
                    break;
                }
                Caller::Lost => break,
            }
        }
        Ok(Unwound { frames, whole, reach: stack.reach.get(), beyond: stack.beyond.get() })
    }
}

/// The stack leads into code whose tables have not been read; the value is the index of the code.
pub(super) struct NotRead(usize);

/// A copied stack, with the registers of its thread.
pub(super) struct Copied<'a> {
    pub instruction_pointer: u64,
    pub stack_pointer: u64,
    pub frame_pointer: u64,
    /// General registers, in the order of [`REGISTERS`].
    pub registers: [u64; REGISTERS.len()],
    /// Address of the first byte.
    pub from: u64,
    pub bytes: &'a [u8],
}

impl<'a> Copied<'a> {
    pub fn of(raw: &'a RawCopy) -> Copied<'a> {
        Copied {
            instruction_pointer: raw.instruction_pointer,
            stack_pointer: raw.stack_pointer,
            frame_pointer: raw.frame_pointer,
            registers: raw.last.registers,
            from: raw.from,
            bytes: raw.bytes.get(..raw.count as usize).unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::binaries::VDSO;
    use super::*;
    use symbols::{Outline, Parsers, Rule};
    use zerocopy::FromZeros as _;

    const CODE: u64 = 0x40_0000;
    const STACK: u64 = 0x7fff_0000_0000;

    fn with(rows: UnwindRows) -> Unwinding {
        let code = Code {
            start: CODE,
            end: CODE + 0x1_0000,
            file_offset: 0,
            inode: 1,
            path: "/program".to_owned(),
            open_path: std::path::PathBuf::new(),
        };
        let binary = Arc::new(Binary { rows, outline: Outline::default() });
        let tables = Tables::At { bias: 0, binary };
        Unwinding { placed: vec![Placed { code, tables }], keeping: Vec::new() }
    }

    fn copy(words: &[u64]) -> Box<RawCopy> {
        let mut raw = Box::new(RawCopy::new_zeroed());
        for (to, word) in raw.bytes.as_chunks_mut::<8>().0.iter_mut().zip(words) {
            *to = word.to_le_bytes();
        }
        raw.count = raw.bytes.len() as u32;
        (raw.instruction_pointer, raw.stack_pointer, raw.from) = (CODE, STACK, STACK);
        raw
    }

    fn rule(frame: FrameAt) -> Rule {
        Rule { frame, pointer: Saved::Same, back: Saved::Frame(-8), is_signal: false }
    }

    #[test]
    fn a_caller_is_found_by_each_kind_of_unwind_rule() {
        let above_pointer = Rule { pointer: Saved::Frame(-16), ..rule(FrameAt::Pointer(16)) };
        let end = Rule { back: Saved::Lost, ..rule(FrameAt::Stack(8)) };
        let signal = Rule { back: Saved::Stack(8), is_signal: true, ..rule(FrameAt::InStack(0)) };
        let kinds = [rule(FrameAt::Stack(16)), above_pointer, rule(FrameAt::Calls(11)), signal, end];
        let spans = (0..)
            .zip(&kinds)
            .map(|(n, _)| (CODE + u64::from(n) * 0x100, CODE + u64::from(n) * 0x100 + 0x100, n));
        let rows = UnwindRows::flat(spans.collect(), kinds.to_vec(), false).expect("rows");
        let at = |slot: u64| STACK + slot * 8;
        // Each frame's words: words 0 and 1 belong to the first, whose return address leads into the next function, and so on.
        let words = [9, CODE + 0x110, 9, at(9), CODE + 0x20a, CODE + 0x301, at(8), CODE + 0x400, 9, 9];
        let mut raw = copy(&words);
        raw.frame_pointer = at(3);
        let unwound = with(rows).unwind(&raw, &mut BinaryTables::default());
        // The interrupted instruction itself is looked up, since another function is one byte lower. In the result its
        // address is one byte higher, since a reader of names looks up the byte before.
        let frames = [CODE, CODE + 0x110, CODE + 0x20a, CODE + 0x301, CODE + 0x401];
        assert_eq!((unwound.frames, unwound.whole), (frames.to_vec(), true));
        assert_eq!((unwound.reach, unwound.beyond), (8 * 8, false));
    }

    /// Below a fiber's first function is the address of `__start_context`: it must not cut the stack off or add a frame.
    #[test]
    fn the_first_function_of_a_fiber_has_no_caller() {
        let spans = [(CODE, CODE + 0x100, 0), (CODE + 0x110, CODE + 0x200, 0)];
        let rows = UnwindRows::flat(spans.to_vec(), vec![rule(FrameAt::Stack(16))], false).expect("rows");
        let mut unwinding = with(rows);
        let mut frames = |back: u64| {
            let mut raw = copy(&[9, back, 9, 0]);
            raw.frame_pointer = 1;
            let unwound = unwinding.unwind(&raw, &mut BinaryTables::default());
            (unwound.frames, unwound.whole)
        };
        assert_eq!(frames(CODE + 0x110), (vec![CODE], true));
        assert_eq!(frames(CODE + 0x120), (vec![CODE, CODE + 0x120], true));
        // Nor is this the first instruction of a function.
        assert_eq!(frames(CODE + 0x10f), (vec![CODE, CODE + 0x10f], false));
    }

    /// Tables and stacks that are made to keep the unwinder busy.
    #[test]
    fn hostile_unwind_tables_and_stacks_end() {
        let mut seed = 0xdead_beef_cafe_f00du64;
        let mut random = || {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            seed
        };
        for round in 0..2000 {
            let number = |value: u64| match value % 5 {
                0 => i32::MIN,
                1 => i32::MAX,
                2 => -(value as i32 & 0xff),
                _ => value as i32 & 0xff,
            };
            let mut rules = Vec::new();
            for _ in 0..64 {
                let frame = match random() % 6 {
                    0 => FrameAt::Stack(number(random())),
                    1 => FrameAt::Pointer(number(random())),
                    2 => FrameAt::InStack(number(random())),
                    3 => FrameAt::InPointer(number(random())),
                    4 => FrameAt::Calls(random() as u8),
                    _ => FrameAt::Stack(8),
                };
                let mut saved = || match random() % 6 {
                    0 => Saved::Same,
                    5 => Saved::Register(random() as u8),
                    1 => Saved::Stack(number(random())),
                    2 => Saved::Pointer(number(random())),
                    _ => Saved::Frame(number(random())),
                };
                let (pointer, back) = (saved(), saved());
                rules.push(Rule { frame, pointer, back, is_signal: random() % 2 == 0 });
            }
            let spans =
                (0..1000).map(|row| (CODE + row * 64, CODE + row * 64 + 60, (row % 70) as u16)).collect();
            let mut unwinding = with(UnwindRows::flat(spans, rules, false).expect("rows"));
            // Words that lead into the code, into the stack, and anywhere.
            let words: Vec<u64> = (0..2048)
                .map(|_| match random() % 4 {
                    0 => STACK + random() % 16384,
                    1 => random(),
                    _ => CODE + random() % 0x1_0000,
                })
                .collect();
            let mut raw = copy(&words);
            raw.frame_pointer = if round % 2 == 0 { STACK + random() % 16384 } else { random() };
            if round % 3 == 0 {
                (raw.from, raw.count) = (random(), random() as u32);
            }
            let unwound = unwinding.unwind(&raw, &mut BinaryTables::default());
            assert!((1..=MOST_FRAMES + 1).contains(&unwound.frames.len()));
        }
    }

    /// `vfork` moves its return address into a register before its system call; stacks must not end there.
    #[test]
    fn a_return_address_in_a_register_is_used_for_the_innermost_function() {
        const RDI: u8 = 5;
        let popped = Rule { back: Saved::Register(RDI), ..rule(FrameAt::Stack(0)) };
        let end = Rule { back: Saved::Lost, ..rule(FrameAt::Stack(8)) };
        let spans = vec![(CODE, CODE + 0x100, 0), (CODE + 0x100, CODE + 0x200, 1)];
        let rows = || UnwindRows::flat(spans.clone(), vec![popped, end], false).expect("rows");
        let mut raw = copy(&[9]);
        raw.last.registers[REGISTERS.iter().position(|&number| number == RDI).expect("known")] = CODE + 0x150;
        let unwind = |raw: &RawCopy| with(rows()).unwind(raw, &mut BinaryTables::default());
        let unwound = unwind(&raw);
        assert_eq!((unwound.frames, unwound.whole), (vec![CODE, CODE + 0x150], true));
        // The registers of a caller are unknown, and a stack that leads to itself ends.
        raw.last.registers = [CODE + 0x50; REGISTERS.len()];
        let unwound = unwind(&raw);
        assert_eq!((unwound.frames, unwound.whole), (vec![CODE, CODE + 0x50], false));
    }

    /// In the first instructions of a function, frame pointers lead to the caller's caller.
    #[test]
    fn the_caller_that_frame_pointers_skip_is_read_from_the_stack() {
        let spans = vec![(CODE, CODE + 1, 0), (CODE + 1, CODE + 4, 1), (CODE + 4, CODE + 0x100, 2)];
        let kinds = vec![rule(FrameAt::Stack(8)), rule(FrameAt::Stack(16)), rule(FrameAt::Pointer(16))];
        let unwinding = with(UnwindRows::flat(spans, kinds, true).expect("rows"));
        let found = [0, 1, 4, 0x200].map(|at| unwinding.passed_over(CODE + at, [7, 8]));
        assert_eq!(found, [Some(7), Some(8), None, None]);
        assert_eq!(unwinding.passed_over(CODE, [0, 0]), None, "not known");
    }

    /// The deepest stack that fits into a copy, of a function that calls itself.
    #[test]
    fn a_stack_without_an_end_is_cut_off() {
        let rows = UnwindRows::flat(vec![(CODE, CODE + 0x100, 0)], vec![rule(FrameAt::Stack(8))], false);
        let unwound =
            with(rows.expect("rows")).unwind(&copy(&[CODE + 5; 2048]), &mut BinaryTables::default());
        assert_eq!((unwound.frames.len(), unwound.whole), (MOST_FRAMES + 1, false));
    }

    #[test]
    fn code_without_unwind_tables_is_followed_by_frame_pointers() {
        let at = |slot: u64| STACK + slot * 8;
        let words = [9, at(4), 0x50_0001, 9, 0, 0x50_0002];
        let mut raw = copy(&words);
        (raw.instruction_pointer, raw.frame_pointer) = (0x50_0000, at(1));
        let unwound = Unwinding::default().unwind(&raw, &mut BinaryTables::default());
        assert_eq!((unwound.frames, unwound.whole), (vec![0x50_0000, 0x50_0001, 0x50_0002], true));
    }

    #[test]
    fn a_binary_s_unwind_tables_are_read_once_and_when_needed() {
        use std::io::{Read as _, Write as _};
        use std::process::{Command, Stdio};
        let child = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = child.expect("cat runs until its input ends");
        // The program answers when its loader is finished; before that, the process may not even run the program.
        let mut answer = [0; 2];
        child.stdin.as_mut().expect("a pipe").write_all(b"x\n").expect("written");
        child.stdout.as_mut().expect("a pipe").read_exact(&mut answer).expect("read");
        let process = crate::target::Process::open(child.id()).expect("it waits");
        let code = crate::target::code(&process).expect("its code");
        let mut binaries = BinaryTables::reading_with(Parsers::here());
        let mut unwinding = Unwinding::default();
        unwinding.know(&code);
        assert!(code.len() >= 3 && unwinding.placed.len() == code.len(), "{}", code.len());
        assert_eq!(binaries.known.len(), 0);
        for (known, path) in (1..).zip([VDSO, "libc"]) {
            let place = code.iter().find(|code| code.path.contains(path)).expect(path);
            let mut raw = copy(&[0; 8]);
            raw.instruction_pointer = place.start;
            unwinding.unwind(&raw, &mut binaries);
            assert_eq!(binaries.known.len(), known, "{path}");
            let placed = unwinding.placed.iter().find(|placed| placed.code.path.contains(path)).expect(path);
            let (rows, bias) = placed.rows().expect(path);
            let addresses = (placed.code.start..placed.code.end).step_by(16);
            let covered = addresses.filter(|address| rows.rule(address.wrapping_sub(bias)).is_some());
            assert!(covered.count() > 10, "{path}");
        }
        unwinding.know(&code);
        assert_eq!(unwinding.placed.iter().filter(|placed| placed.rows().is_some()).count(), 2);
        unwinding.know(&[]);
        assert!(unwinding.placed.is_empty() && unwinding.keeping.is_empty());
        drop(child.stdin.take());
        child.wait().expect("ended");
    }
}
