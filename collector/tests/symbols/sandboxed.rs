//! Symbols read by a process without rights: the answers are the same, and whatever a file does to the process is a clean
//! error.

use super::sources::{C, CPP, OTHER_C, build};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use symbols::sandbox::ParserLimits;
use symbols::{Parser, Parsers, Place, Selection, SymbolError, functions_of};

const LONGPOLE: &str = env!("CARGO_BIN_EXE_longpole");

fn sandboxed() -> Parsers {
    Parsers::sandboxed(Path::new(LONGPOLE))
}

fn everything() -> Selection {
    Selection { include: vec!["*".into()], max_functions: 200, first_id: 7, ..Selection::default() }
}

fn places(path: &Path) -> Vec<Place> {
    let module = functions_of(path).expect("readable");
    let starts = module.functions().iter().map(|function| function.address);
    starts.flat_map(|start| (0..24).step_by(3).map(move |at| Place::Address(start + at))).collect()
}

#[test]
fn the_sandboxed_parser_gives_the_same_answers_as_one_in_this_process() {
    let test = "the_sandboxed_parser_gives_the_same_answers_as_one_in_this_process";
    for (compiler, arguments, sources) in [
        ("c++", &["-O2", "-g"][..], &[("main.cpp", CPP)][..]),
        ("cc", &["-O2", "-g", "-gsplit-dwarf"], &[("main.c", C), ("other.c", OTHER_C)]),
        ("cc", &["-O2", "-s"], &[("main.c", C), ("other.c", OTHER_C)]),
    ] {
        let Some(built) = build(test, compiler, arguments, sources) else { continue };
        let mut here = Parsers::here().open(&built.binary, "shop").expect("opened");
        let mut there = sandboxed().open(&built.binary, "shop").expect("opened");
        assert!(here.process().is_none() && there.process().is_some());
        let places = places(&built.binary);
        let locations = |parser: &mut Parser| parser.locate(&places).expect("located").locations();
        assert_eq!(locations(&mut there), locations(&mut here), "{arguments:?}");
        let choice = |parser: &mut Parser| parser.choose(&everything()).expect("chosen");
        assert_eq!(choice(&mut there), choice(&mut here));
        let summary = there.summary().expect("summary");
        assert_eq!(summary, here.summary().expect("summary"));
        let variables = [0u64, 0x4000, 0x4010, 0x4014, 0x4020, u64::MAX];
        let names = |parser: &mut Parser| parser.variables(&variables).expect("variables");
        assert_eq!(names(&mut there), names(&mut here));
    }
}

#[test]
fn the_sandboxed_parser_uses_debug_files_opened_for_it() {
    let test = "the_sandboxed_parser_uses_debug_files_opened_for_it";
    let Some(built) = build(test, "c++", &["-O2", "-g", "-Wl,--build-id"], &[("main.cpp", CPP)]) else {
        return;
    };
    let folder = built.folder.path();
    for arguments in [
        &["--only-keep-debug", "program", "program.debug"][..],
        &["--strip-all", "--add-gnu-debuglink=program.debug", "program", "stripped"],
    ] {
        let done = Command::new("objcopy").args(arguments).current_dir(folder).status();
        if !done.is_ok_and(|status| status.success()) {
            println!("SKIP {test}: no objcopy");
            return;
        }
    }
    let places = places(&built.binary);
    let full = Parsers::here().open(&built.binary, "p").expect("opened").locate(&places).expect("located");
    let stripped = sandboxed().open(&folder.join("stripped"), "p").expect("opened").locate(&places);
    assert_eq!(stripped.expect("located").locations(), full.locations());
}

#[test]
fn the_sandboxed_parser_has_no_rights_when_it_reads() {
    let mut parser = sandboxed().open(Path::new(LONGPOLE), "longpole").expect("opened");
    parser.variables(&[0]).expect("it answers");
    let pid = parser.process().expect("a process");
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("status");
    let field = |name: &str| {
        let line = status.lines().find(|line| line.starts_with(name)).expect(name);
        line.split_once(':').expect("field").1.trim().to_owned()
    };
    assert_eq!(field("Seccomp:"), "2", "a filter");
    assert_eq!(field("NoNewPrivs:"), "1");
    assert_eq!(field("Threads:"), "1");
    for set in ["CapEff:", "CapPrm:", "CapInh:", "CapAmb:"] {
        assert_eq!(field(set).trim_start_matches('0'), "", "{set}");
    }
    // Only root can change the user id.
    if rustix_is_root() {
        assert!(field("Uid:").split_whitespace().all(|id| id == "65534"), "{}", field("Uid:"));
        assert!(field("Gid:").split_whitespace().all(|id| id == "65534"), "{}", field("Gid:"));
        assert_eq!(field("Groups:"), "");
        let files = std::fs::read_dir(format!("/proc/{pid}/fd")).expect("files");
        // Open files: standard streams, the socket's second descriptor, the binary.
        assert!(files.count() <= 6);
    }
    drop(parser);
    assert!(!Path::new(&format!("/proc/{pid}/status")).exists(), "it ends with the question");
}

fn rustix_is_root() -> bool {
    std::fs::read_to_string("/proc/self/status").is_ok_and(|status| status.contains("\nUid:\t0\t0\t"))
}

/// Makes all kinds of requests. Returns an error or a number of answers.
fn use_it(parsers: &Parsers, path: &Path) -> Result<usize, SymbolError> {
    let mut parser = parsers.open(path, "hostile")?;
    let choice = parser.choose(&everything())?;
    for chosen in &choice.chosen {
        assert!(chosen.fact.name.len() <= symbols::MAX_NAME_BYTES);
        assert!(!chosen.fact.name.chars().any(char::is_control));
    }
    let places: Vec<Place> = choice.chosen.iter().map(|chosen| Place::Address(chosen.address)).collect();
    let located = parser.locate(&places)?;
    parser.variables(&[0x4010])?;
    parser.summary()?;
    Ok(located.len())
}

#[test]
fn damaged_binaries_give_the_sandboxed_parser_answers_or_errors_in_time() {
    let test = "damaged_binaries_give_the_sandboxed_parser_answers_or_errors_in_time";
    let Some(built) = build(test, "c++", &["-O2", "-g"], &[("main.cpp", CPP)]) else { return };
    let good = std::fs::read(&built.binary).expect("binary");
    let path = built.folder.path().join("damaged");
    let rounds = std::env::var("HOSTILE_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(60);
    let mut random = 0x1357_9bdf_2468_ace1u64;
    let mut below = |limit: usize| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        (random % limit.max(1) as u64) as usize
    };
    let parsers = sandboxed();
    let mut answered = 0;
    for round in 0..rounds {
        let mut bytes = good.clone();
        for _ in 0..1 + below(40) {
            let at = if below(4) == 0 { below(4096) } else { below(bytes.len()) };
            bytes[at] = match below(3) {
                0 => 0xff,
                1 => bytes[at] ^ (1 << below(8)),
                _ => below(256) as u8,
            };
        }
        if below(5) == 0 {
            bytes.truncate(below(bytes.len()));
        }
        std::fs::write(&path, &bytes).expect("written");
        let began = Instant::now();
        match use_it(&parsers, &path) {
            Ok(_) => answered += 1,
            Err(error) => {
                let text = error.to_string();
                assert!(!text.is_empty() && !text.contains('\n'), "{text}");
                assert!(!error.hint().is_empty());
            }
        }
        assert!(began.elapsed() < Duration::from_secs(100), "round {round} took {:?}", began.elapsed());
    }
    println!("{answered} of {rounds} answered");
    assert!(answered > 0);
}

#[test]
fn a_binary_of_two_gigabytes_is_read_and_a_table_that_large_refused() {
    let test = "a_binary_of_two_gigabytes_is_read_and_a_table_that_large_refused";
    let Some(built) = build(test, "cc", &["-O2", "-g"], &[("main.c", C), ("other.c", OTHER_C)]) else {
        return;
    };
    let file = std::fs::File::options().write(true).open(&built.binary).expect("open");
    file.set_len(2 << 30).expect("sparse");
    assert!(use_it(&sandboxed(), &built.binary).expect("still a program") > 5);

    // The header claims a string table as large as the file: reading must not take that much memory.
    assert_eq!(std::fs::metadata(&built.binary).map(|file| file.len()).ok(), Some(2 << 30));
    let mut header = [0u8; 64];
    let file = std::fs::File::options().read(true).write(true).open(&built.binary).expect("open");
    file.read_exact_at(&mut header, 0).expect("header");
    let table = u64::from_le_bytes(header[0x28..0x30].try_into().expect("8 bytes"));
    let count = u16::from_le_bytes(header[0x3c..0x3e].try_into().expect("2 bytes"));
    for index in 1..u64::from(count) {
        let at = table + 64 * index;
        let mut kind = [0u8; 4];
        file.read_exact_at(&mut kind, at + 4).expect("kind");
        if matches!(u32::from_le_bytes(kind), 2 | 3) {
            file.write_all_at(&(2u64 << 30).to_le_bytes(), at + 0x20).expect("size");
        }
    }
    let error = use_it(&sandboxed(), &built.binary).expect_err("too large");
    assert!(error.to_string().contains("larger than") || error.to_string().contains("beyond"), "{error}");
}

#[test]
fn a_symbol_name_of_a_megabyte_is_cut() {
    let test = "a_symbol_name_of_a_megabyte_is_cut";
    let name = "x".repeat(1 << 20);
    let source = format!(
        ".globl main\n.type main,@function\nmain:\n xor %eax,%eax\n ret\n.size main,.-main\n\
         .globl {name}\n.type {name},@function\n{name}:\n .cfi_startproc\n push %rbp\n pop %rbp\n nop\n nop\n nop\n nop\n ret\n .cfi_endproc\n.size {name},.-{name}\n"
    );
    let Some(built) = build(test, "cc", &["-x", "assembler"], &[("main.s", &source)]) else { return };
    let mut parser = sandboxed().open(&built.binary, "long").expect("opened");
    let choice = parser.choose(&everything()).expect("chosen");
    let longest = choice.chosen.iter().map(|chosen| chosen.fact.name.len()).max().unwrap_or_default();
    assert!((1000..=symbols::MAX_NAME_BYTES).contains(&longest), "{longest}");
}

#[test]
fn a_parser_that_needs_too_much_memory_is_an_error() {
    let parsers =
        sandboxed().with_limits(ParserLimits { memory: 24 << 20, cpu_s: 60 }, Duration::from_secs(60));
    // The binary's symbol table alone is larger.
    let error = use_it(&parsers, Path::new(LONGPOLE)).expect_err("too little memory");
    assert!(error.to_string().contains("24 MiB"), "{error}");
}

#[test]
fn a_parser_without_cpu_time_is_an_error() {
    let parsers =
        sandboxed().with_limits(ParserLimits { memory: 4 << 30, cpu_s: 0 }, Duration::from_secs(60));
    let error = use_it(&parsers, Path::new(LONGPOLE)).expect_err("no time at all");
    assert!(error.to_string().contains("processor time") || error.to_string().contains("started"), "{error}");
}

/// A stand-in for a parser that a file has taken over.
fn impostor(folder: &Path, script: &str) -> PathBuf {
    let path = folder.join("impostor");
    std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).expect("script");
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).expect("mode");
    path
}

#[test]
fn a_parser_that_misbehaves_is_ended_and_reported() {
    let folder = tempfile::tempdir().expect("folder");
    for (script, wanted) in [
        ("exec sleep 100", "took longer than 0.5 s"),
        ("kill -SYS $$", "made a system call that no reader of symbols needs"),
        ("kill -SEGV $$", "crashed (signal 11)"),
        ("kill -ABRT $$", "gave up"),
        ("kill -BUS $$", "cut short"),
        ("exit 3", "exit code 3"),
        ("printf '\\377\\377\\377\\377' >&0; exec sleep 100", "invalid answer"),
        ("printf '\\004\\000\\000\\000null' >&0; exec sleep 100", "invalid answer"),
        (r#"printf '\020\000\000\000{"variables":[]}' >&0; exec sleep 100"#, "invalid answer"),
    ] {
        let program = impostor(folder.path(), script);
        let parsers =
            Parsers::sandboxed(&program).with_limits(ParserLimits::default(), Duration::from_millis(500));
        let began = Instant::now();
        let error = parsers
            .open(Path::new(LONGPOLE), "x")
            .and_then(|mut parser| parser.choose(&everything()))
            .expect_err(script);
        assert!(error.to_string().contains(wanted), "{script}: {error}");
        assert!(began.elapsed() < Duration::from_secs(20), "{script}");
    }
}
