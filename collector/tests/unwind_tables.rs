//! Malicious unwind tables: nothing in them makes longpole panic, hang or read where it must not.

use capture::target::Code;
use capture::unwind::{BinaryTables, Unwinding};
use engine::event::MOST_FRAMES;
use probe_abi::{
    CODE_BYTES, COPY_PIECE, COPY_PIECES, Header, LastInstruction, NEXT_CODE_BYTES, RAW_COPY_KIND, REGISTERS,
    RawCopy,
};
use proptest::prelude::*;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use symbols::{FrameAt, Parsers, Saved, UnwindRows};

/// A common information entry and an entry for a function at `function`, with these instructions.
fn frames(at: u64, function: u64, instructions: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut entry = |id: u32, body: &[u8]| {
        let mut body = body.to_vec();
        while body.len() % 8 != 4 {
            body.push(0);
        }
        let start = bytes.len() as u32;
        bytes.extend((body.len() as u32 + 4).to_le_bytes());
        bytes.extend((if id == 0 { 0 } else { start + 4 - (id - 1) }).to_le_bytes());
        bytes.extend(body);
    };
    // Version 1, "zR", code alignment 1, data alignment -8, return address in 16, pointers of 8 bytes; frame at rsp + 8.
    entry(0, &[1, b'z', b'R', 0, 1, 0x78, 16, 1, 0x04, 0x0c, 7, 8, 0x90, 1]);
    let mut body = function.to_le_bytes().to_vec();
    body.extend(64u64.to_le_bytes());
    body.push(0);
    body.extend(instructions);
    entry(1, &body);
    bytes.extend([0; 4]);
    let _ = at;
    bytes
}

fn raw(instruction_pointer: u64, stack: &[u8]) -> RawCopy {
    let header = Header { time_ns: 1, sequence: 0, cpu: 0, kind: RAW_COPY_KIND, context: 0, tid: 1, pid: 1 };
    let mut bytes = [0; COPY_PIECE * COPY_PIECES];
    let count = stack.len().min(bytes.len());
    bytes[..count].copy_from_slice(&stack[..count]);
    RawCopy {
        header,
        reason: 0,
        flags: 0,
        call: 0,
        count: count as u32,
        instruction_pointer,
        stack_pointer: 0x7000_0000,
        frame_pointer: 0x7000_0010,
        from: 0x7000_0000,
        last: LastInstruction {
            code: [0; CODE_BYTES],
            next_code: [0; NEXT_CODE_BYTES],
            registers: [0x7000_0008; REGISTERS.len()],
        },
        bytes,
    }
}

fn scan(instructions: &[u8]) -> UnwindRows {
    UnwindRows::scan(&frames(0x1000, 0x4000, instructions), 0x1000, 0, &[]).expect("rows")
}

fn frame(rows: &UnwindRows, address: u64) -> Option<FrameAt> {
    rows.rule(address).map(|rule| rule.frame)
}

#[test]
fn rows_of_a_well_formed_unwind_entry_are_found() {
    let rows = scan(&[]);
    assert!(!rows.keeps_frame_pointers);
    assert_eq!(frame(&rows, 0x4000), Some(FrameAt::Stack(8)));
    assert_eq!([0x3fff, 0x4040].map(|address| frame(&rows, address)), [None; 2]);
    // push %rbp (16 bytes to the caller's frame), mov %rsp,%rbp (frame by %rbp).
    let rows = scan(&[0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6]);
    assert!(rows.keeps_frame_pointers);
    let found = [0x4000, 0x4001, 0x4004, 0x403f].map(|address| frame(&rows, address));
    let (stack, pointer) = (|above| Some(FrameAt::Stack(above)), Some(FrameAt::Pointer(16)));
    assert_eq!(found, [stack(8), stack(16), pointer, pointer]);
    assert_eq!(rows.rule(0x4001).map(|rule| rule.pointer), Some(Saved::Frame(-16)));
}

/// Expressions as compilers and linkers write them, and others, which give no frame.
#[test]
fn expressions_of_compilers_give_a_frame_and_others_none() {
    const EXPRESSION: u8 = 0x0f;
    const BREG_6: u8 = 0x76;
    const BREG_7: u8 = 0x77;
    const BREG_16: u8 = 0x80;
    const DEREF: u8 = 0x06;
    const SKIP: u8 = 0x2f;
    let of = |expression: &[u8]| {
        let mut instructions = vec![EXPRESSION, expression.len() as u8];
        instructions.extend(expression);
        frame(&scan(&instructions), 0x4000)
    };
    assert_eq!(of(&[BREG_6, 0x78, DEREF]), Some(FrameAt::InPointer(-8)));
    assert_eq!(of(&[BREG_7, 0xa0, 1, DEREF]), Some(FrameAt::InStack(160)));
    let calls = [BREG_7, 8, BREG_16, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22];
    assert_eq!(of(&calls), Some(FrameAt::Calls(11)));
    // An expression that jumps back to its own beginning forever.
    assert_eq!(of(&[SKIP, 0xfd, 0xff]), Some(FrameAt::Unknown));
    assert_eq!(of(&[DEREF; 100]), Some(FrameAt::Unknown));
}

#[test]
fn an_unwind_entry_of_many_instructions_ends() {
    let rows = scan(&[0x41; 100_000]);
    assert_eq!(frame(&rows, 0x4000), Some(FrameAt::Stack(8)));
}

/// A copy of `/bin/true`, whose tables are real, with some bytes of them changed.
fn spoilt(changes: &[(usize, u8)]) -> Option<(tempfile::TempDir, Code)> {
    let folder = tempfile::tempdir().ok()?;
    let path = folder.path().join("spoilt");
    let mut bytes = std::fs::read("/bin/true").ok()?;
    let elf = symbols::ElfFile::open(Path::new("/bin/true")).ok()?;
    let section = elf.section(b".eh_frame")?;
    let (from, size) = (section.offset as usize, (section.size as usize).max(1));
    for (place, byte) in changes {
        *bytes.get_mut(from + place % size)? = *byte;
    }
    std::fs::write(&path, bytes).ok()?;
    let segment = elf.segments.iter().find(|segment| segment.executable)?;
    let code = Code {
        start: 0x5000_0000,
        end: 0x5000_0000 + (segment.memory_size | 4095) + 1,
        file_offset: segment.offset & !4095,
        inode: 1,
        path: "spoilt".into(),
        open_path: PathBuf::from(&path),
    };
    Some((folder, code))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn any_bytes_as_unwind_tables_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
        let _ = UnwindRows::scan(&bytes, 0x1000, 0, &[]);
    }

    #[test]
    fn any_unwind_instructions_come_to_an_end(
        instructions in proptest::collection::vec(any::<u8>(), 0..60),
    ) {
        let _ = UnwindRows::scan(&frames(0x1000, 0x4000, &instructions), 0x1000, 0, &[]);
    }

}

proptest! {
    // Each case is read by a process of its own, so there are few.
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn changed_unwind_tables_give_some_stack_and_end(
        changes in proptest::collection::vec((any::<usize>(), any::<u8>()), 1..40),
        stack in proptest::collection::vec(prop_oneof![Just(0u64), 0x5000_0000u64..0x5000_8000, 0x7000_0000u64..0x7000_1000, any::<u64>()], 0..500),
        place in 0u64..0x8000,
    ) {
        let Some((_folder, code)) = spoilt(&changes) else { return Ok(()) };
        let began = Instant::now();
        let parsers = Parsers::sandboxed(Path::new(env!("CARGO_BIN_EXE_longpole")));
        let (mut binaries, mut unwinding) = (BinaryTables::reading_with(parsers), Unwinding::default());
        unwinding.know(&[code]);
        let bytes: Vec<u8> = stack.iter().flat_map(|word| word.to_le_bytes()).collect();
        let unwound = unwinding.unwind(&raw(0x5000_0000 + place, &bytes), &mut binaries);
        prop_assert!(unwound.frames.len() <= MOST_FRAMES + 1);
        prop_assert!(!unwound.frames.is_empty());
        // This is not about speed: it must terminate.
        prop_assert!(began.elapsed() < Duration::from_secs(60));
    }
}
