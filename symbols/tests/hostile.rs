//! Damaged and hostile binaries: an answer or an error in bounded time, never a panic.

use std::path::Path;
use std::process::Command;
use symbols::{Place, Selection, analyse, choose, functions_of, locate};

const SOURCE: &str = r#"
#include <stdexcept>
#include <string>
template <typename T> __attribute__((noinline)) T twice(T t) { return t + t; }
struct Guard { ~Guard(); };
Guard::~Guard() { asm volatile(""); }
__attribute__((noinline)) int risky(int x) {
    Guard g;
    if (x % 3 == 1) throw std::runtime_error("x");
    switch (x) { case 1: return twice(4); case 2: return 9; case 3: return 77; case 4: return twice(x); case 5: return 3; }
    return x;
}
int main(int argc, char **) {
    try { return risky(argc) + (int)twice(std::string("a")).size(); } catch (...) { return 1; }
}
"#;

/// A small, deterministic random number generator, good enough to damage files.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }
}

fn example(folder: &Path) -> Option<Vec<u8>> {
    let (source, binary) = (folder.join("main.cpp"), folder.join("program"));
    std::fs::write(&source, SOURCE).expect("source");
    let compiled = Command::new("c++").args(["-O2", "-g", "-o"]).arg(&binary).arg(&source).status();
    compiled.is_ok_and(|status| status.success()).then(|| std::fs::read(&binary).expect("binary"))
}

/// Does everything that longpole does with a binary.
fn use_it(path: &Path) -> usize {
    let Ok(module) = functions_of(path) else { return 0 };
    let selection = Selection { max_functions: 64, include: vec!["*i*".into()], ..Selection::default() };
    let choice = choose(&module, &selection);
    assert!(choice.chosen.len() + choice.left_out.values().sum::<usize>() == module.functions().len());
    for chosen in &choice.chosen {
        assert!(chosen.fact.name.len() <= symbols::MAX_NAME_BYTES);
        assert!(!chosen.fact.name.chars().any(char::is_control));
    }
    for index in 0..module.functions().len().min(64) {
        analyse(&module, None, index);
    }
    let mut places: Vec<Place> =
        module.functions().iter().take(40).map(|f| Place::Address(f.address)).collect();
    places.extend([0, 1, 0x1000, u64::MAX].map(Place::FileOffset));
    let answer = locate(&module, &places);
    assert_eq!(answer.len(), places.len());
    choice.chosen.len()
}

/// Offset and size of headers and sections, as targets for damage.
fn sections(bytes: &[u8]) -> Vec<(usize, usize)> {
    let word = |at: usize, size: usize| -> usize {
        bytes[at..at + size].iter().rev().fold(0, |value, &byte| value << 8 | usize::from(byte))
    };
    let (table, count) = (word(0x28, 8), word(0x3c, 2));
    let mut found = vec![(0, 64), (64, 56 * word(0x38, 2)), (table, 64 * count)];
    for index in 0..count {
        let header = table + 64 * index;
        let (offset, size) = (word(header + 0x18, 8), word(header + 0x20, 8));
        if size > 0 && offset + size <= bytes.len() {
            found.push((offset, size));
        }
    }
    found
}

#[test]
fn damaged_binaries_never_panic() {
    let folder = tempfile::tempdir().expect("folder");
    let Some(good) = example(folder.path()) else {
        println!("SKIP damaged_binaries_never_panic: no c++");
        return;
    };
    let path = folder.path().join("damaged");
    std::fs::write(&path, &good).expect("written");
    assert!(use_it(&path) > 3, "the undamaged one has to work");

    let rounds = std::env::var("HOSTILE_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(600);
    let seed = std::env::var("HOSTILE_SEED")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(0x9e37_79b9_7f4a_7c15);
    let mut random = Random(seed);
    let places = sections(&good);
    for round in 0..rounds {
        let mut bytes = good.clone();
        let (offset, size) = places[random.below(places.len())];
        for _ in 0..=random.below(8) {
            let at = offset + random.below(size);
            let value = match random.below(5) {
                0 => 0,
                1 => 0xff,
                2 => 0x7f,
                3 => bytes[at] ^ (1 << random.below(8)),
                _ => random.next() as u8,
            };
            let run = if random.below(4) == 0 { 8 } else { 1 };
            let end = (at + run).min(bytes.len());
            bytes[at..end].fill(value);
        }
        if random.below(10) == 0 {
            bytes.truncate(random.below(bytes.len()));
        }
        std::fs::write(&path, &bytes).expect("written");
        let outcome = std::panic::catch_unwind(|| use_it(&path));
        assert!(outcome.is_ok(), "round {round}: panic on {}", path.display());
    }
}

#[test]
fn cut_binaries_never_panic() {
    let folder = tempfile::tempdir().expect("folder");
    let Some(good) = example(folder.path()) else {
        println!("SKIP cut_binaries_never_panic: no c++");
        return;
    };
    let path = folder.path().join("cut");
    for cut in (0..64).chain((64..good.len()).step_by(997)) {
        std::fs::write(&path, &good[..cut]).expect("written");
        use_it(&path);
    }
}

/// A minimal ELF file with one segment of code, a symbol table and names.
fn with_symbols(code: &[u8], symbols: &[(u32, u64, u64)], names: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0u8; 64 + 56];
    bytes[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
    let put =
        |bytes: &mut Vec<u8>, at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
    put(&mut bytes, 0x10, &[3, 0, 62, 0, 1]);
    put(&mut bytes, 0x20, &64u64.to_le_bytes());
    put(&mut bytes, 0x34, &[64, 0, 56, 0, 1, 0, 64, 0, 5, 0, 4]);
    let code_at = 4096;
    bytes.resize(code_at, 0);
    bytes.extend(code);
    put(&mut bytes, 64, &[1, 0, 0, 0, 5]);
    for (at, value) in [(8, code_at), (16, code_at), (24, code_at), (32, code.len()), (40, code.len())] {
        put(&mut bytes, 64 + at, &(value as u64).to_le_bytes());
    }
    let symbols_at = bytes.len();
    for &(name, address, size) in symbols {
        bytes.extend(name.to_le_bytes());
        bytes.extend([0x12, 0, 1, 0]);
        bytes.extend(address.to_le_bytes());
        bytes.extend(size.to_le_bytes());
    }
    let names_at = bytes.len();
    bytes.extend(names);
    let section_names_at = bytes.len();
    bytes.extend(b"\0");
    let table = bytes.len() as u64;
    put(&mut bytes, 0x28, &table.to_le_bytes());
    let mut section = |kind: u32, flags: u64, address: usize, offset: usize, size: usize, link: u32| {
        bytes.extend(0u32.to_le_bytes());
        bytes.extend(kind.to_le_bytes());
        for value in [flags, address as u64, offset as u64, size as u64] {
            bytes.extend(value.to_le_bytes());
        }
        bytes.extend(link.to_le_bytes());
        bytes.extend([0u8; 4 + 16]);
    };
    section(0, 0, 0, 0, 0, 0);
    section(1, 6, code_at, code_at, code.len(), 0);
    section(2, 0, 0, symbols_at, names_at - symbols_at, 3);
    section(3, 0, 0, names_at, section_names_at - names_at, 0);
    section(3, 0, 0, section_names_at, 1, 0);
    bytes
}

#[test]
fn a_name_of_a_megabyte_with_terminal_codes_is_cut_and_cleaned() {
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path().join("program");
    let mut names = b"\0\x1b[2J\x07".to_vec();
    names.extend(std::iter::repeat_n(b'a', 1 << 20));
    names.push(0);
    // The call after the function leads to the function.
    let code = [0x90, 0x90, 0x31, 0xc0, 0xc3, 0xe8, 0xf6, 0xff, 0xff, 0xff];
    std::fs::write(&path, with_symbols(&code, &[(1, 4096, 5)], &names)).expect("written");
    let module = functions_of(&path).expect("readable");
    let choice = choose(&module, &Selection::default());
    let name = &choice.chosen[0].fact.name;
    assert!(name.len() <= symbols::MAX_NAME_BYTES && name.ends_with('…'));
    assert!(name.starts_with("\u{fffd}[2J\u{fffd}aaa"));
    assert_eq!(choice.chosen[0].exit_offsets, [4100]);
}

#[test]
fn a_million_names_for_one_address_are_read_in_time() {
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path().join("program");
    let names = vec![b'a'; 1 << 20];
    let symbols: Vec<(u32, u64, u64)> = (0..1 << 20).map(|at| (at, 4096, 5)).collect();
    std::fs::write(&path, with_symbols(&[0x90, 0x90, 0x31, 0xc0, 0xc3], &symbols, &names)).expect("written");
    let module = functions_of(&path).expect("readable");
    assert_eq!(module.functions().len(), 1 << 20);
    let choice = choose(&module, &Selection { include: vec!["*b*".into()], ..Selection::default() });
    assert_eq!(choice.chosen.len(), 0);
}

#[test]
fn overlapping_functions_are_decoded_once() {
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path().join("program");
    let mut code = vec![0x90u8; 1 << 20];
    // Each function is called.
    for (at, call) in code[1 << 19..].as_chunks_mut::<5>().0.iter_mut().take(100_000).enumerate() {
        let distance = at as i32 - ((1 << 19) + 5 * at as i32 + 5);
        call[0] = 0xe8;
        call[1..].copy_from_slice(&distance.to_le_bytes());
    }
    let symbols: Vec<(u32, u64, u64)> = (0..100_000).map(|at| (1, 4096 + at, (1 << 20) - at)).collect();
    std::fs::write(&path, with_symbols(&code, &symbols, b"\0f\0")).expect("written");
    let module = functions_of(&path).expect("readable");
    let choice = choose(&module, &Selection { max_functions: 100_000, ..Selection::default() });
    let overlapping = choice.entry_only.get(&symbols::UnknownExits::Overlap);
    assert_eq!(overlapping, Some(&99_999));
}

/// Assembly of a program whose debug information nests inlined calls `depth` times.
fn nested(depth: usize) -> String {
    format!(
        ".globl main\n.type main,@function\nmain: ret\n.size main,1\n\
         .section .debug_abbrev,\"\",@progbits\n\
         .byte 1,0x11,1,0x11,1,0x12,7,0,0,2,0x2e,1,0x11,1,0x12,7,0,0,3,0x1d,1,0,0,0\n\
         .section .debug_info,\"\",@progbits\n\
         .long end-start\nstart: .value 4\n.long .debug_abbrev\n.byte 8\n\
         .byte 1\n.quad main\n.quad 1\n.byte 2\n.quad main\n.quad 1\n\
         .fill {depth},1,3\n.fill {},1,0\nend:\n.section .note.GNU-stack,\"\",@progbits\n",
        depth + 2
    )
}

#[test]
fn deeply_nested_inlining_does_not_overflow_the_stack() {
    for (depth, readable) in [(100, true), (2_000_000, false)] {
        let folder = tempfile::tempdir().expect("folder");
        let (source, path) = (folder.path().join("deep.s"), folder.path().join("program"));
        std::fs::write(&source, nested(depth)).expect("source");
        let built = Command::new("cc").arg("-o").arg(&path).arg(&source).status();
        if !built.is_ok_and(|status| status.success()) {
            println!("SKIP deeply_nested_inlining_does_not_overflow_the_stack: no cc for x86-64");
            return;
        }
        let module = functions_of(&path).expect("readable");
        let main =
            module.functions().iter().find(|function| module.raw_name(function) == "main").expect("main");
        let answer = locate(&module, &[Place::Address(main.address)]);
        let bad = Err(symbols::Reason::BadDebugInformation);
        assert_eq!(answer[0].frames != bad, readable, "{:?}", answer[0]);
    }
}
