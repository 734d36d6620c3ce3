//! Symbols of freshly compiled programs, with binutils as second opinion.

use super::sources::{Built, C, CPP, OTHER_C, build};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use symbols::{
    Choice, FunctionKind, ModuleFunctions, Place, Reason, Selection, SkipReason, SymbolSource, UnknownExits,
    choose, functions_of, locate, locate_functions,
};

const RUST: &str = r#"
mod shop {
    pub struct Item(pub Vec<u8>);
    impl std::fmt::Debug for Item {
        #[inline(never)]
        fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result { write!(f, "item {}", self.0.len()) }
    }
    #[inline(never)]
    pub fn sorted(v: &mut Vec<(u32, String)>) { v.sort_by(|a, b| b.cmp(a)); v.dedup(); }
}
fn main() {
    let mut v: Vec<(u32, String)> = (0..100).map(|i| (i % 7, format!("{i}"))).collect();
    shop::sorted(&mut v);
    println!("{:?} {:?}", v, shop::Item(vec![1]));
}
"#;

/// The C program with two source files.
fn build_c(test: &str, arguments: &[&str]) -> Option<Built> {
    build(test, "cc", arguments, &[("main.c", C), ("other.c", OTHER_C)])
}

fn output(program: &str, arguments: &[&str], file: &Path) -> Option<String> {
    let output = Command::new(program).args(arguments).arg(file).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

fn index_of(module: &ModuleFunctions, name: &str) -> usize {
    let found = module.functions().iter().position(|function| module.raw_name(function) == name);
    found.unwrap_or_else(|| panic!("no {name}"))
}

fn everything() -> Selection {
    Selection { include: vec!["*".into()], ..Selection::default() }
}

fn chosen<'a>(choice: &'a Choice, name: &str) -> &'a symbols::ChosenFunction {
    choice.chosen.iter().find(|chosen| chosen.fact.name == name).unwrap_or_else(|| panic!("no {name}"))
}

fn bytes_at(built: &Built, offset: u64) -> Vec<u8> {
    let bytes = std::fs::read(&built.binary).expect("binary");
    bytes[offset as usize..].iter().take(8).copied().collect()
}

#[test]
fn the_symbol_table_is_the_one_readelf_shows() {
    for arguments in
        [&["-O2", "-g"][..], &["-O2", "-no-pie"], &["-O0", "-g", "-static"], &["-O2", "-g", "-gz"]]
    {
        let test = "the_symbol_table_is_the_one_readelf_shows";
        let Some(built) = build_c(test, arguments) else { continue };
        let Some(text) = output("readelf", &["-sW", "--no-demangle"], &built.binary) else {
            println!("SKIP {test}: no readelf");
            return;
        };
        let table = text.split("'.symtab'").nth(1).expect("symtab");
        let wanted: BTreeSet<(u64, u64, String)> = table
            .lines()
            .filter_map(|line| {
                let words: Vec<&str> = line.split_whitespace().collect();
                let &[_, address, size, "FUNC" | "IFUNC", _, _, section, name, ..] = &words[..] else {
                    return None;
                };
                let size = match size.strip_prefix("0x") {
                    Some(hex) => u64::from_str_radix(hex, 16).ok()?,
                    None => size.parse().ok()?,
                };
                (section != "UND").then_some((u64::from_str_radix(address, 16).ok()?, size, name.to_owned()))
            })
            .collect();
        let module = functions_of(&built.binary).expect("readable");
        let found: BTreeSet<(u64, u64, String)> = module
            .functions()
            .iter()
            .map(|function| (function.address, function.size, module.raw_name(function).into_owned()))
            .collect();
        assert!(wanted.len() > 10);
        assert_eq!(found, wanted, "{arguments:?}");
        assert_eq!((module.outside(), module.source()), (0, &SymbolSource::SymbolTable));
    }
}

#[test]
fn functions_are_chosen_by_places_in_them() {
    let Some(built) = build_c("functions_are_chosen_by_places_in_them", &["-O2"]) else { return };
    let module = functions_of(&built.binary).expect("readable");
    let all = choose(&module, &everything());
    let [first, last] = [&all.chosen[0], &all.chosen[all.chosen.len() - 1]];
    assert!(first.entry_offset != last.entry_offset, "this test needs two functions");
    let inside = |function: &symbols::ChosenFunction| function.entry_offset + function.size - 1;
    let mut places = vec![0, inside(first), last.entry_offset];
    places.sort_unstable();
    let mut found = choose(&module, &Selection { places, ..everything() }).chosen;
    found.sort_by_key(|function| function.entry_offset != first.entry_offset);
    let offsets: Vec<u64> = found.iter().map(|function| function.entry_offset).collect();
    assert_eq!(offsets, [first.entry_offset, last.entry_offset]);
    let nowhere = choose(&module, &Selection { places: vec![1], ..everything() });
    assert_eq!((nowhere.chosen.len(), nowhere.left_out[&symbols::SkipReason::NotNamed]), (0, all.total));
}

#[test]
fn functions_are_ordinary_aliases_startup_code_or_resolvers() {
    let Some(built) = build_c("functions_are_ordinary_aliases_startup_code_or_resolvers", &["-O2"]) else {
        return;
    };
    let module = functions_of(&built.binary).expect("readable");
    let kind = |name| module.functions()[index_of(&module, name)].kind;
    assert_eq!(kind("leaf"), FunctionKind::Ordinary);
    assert_eq!(kind("also_leaf"), FunctionKind::Alias(index_of(&module, "leaf")));
    assert_eq!(kind("_start"), FunctionKind::Startup);
    // The resolver and its symbol have the same address.
    let resolvers =
        module.functions().iter().filter(|function| function.kind == FunctionKind::IfuncResolver).count();
    assert_eq!(resolvers, 1);
    let choice = choose(&module, &everything());
    assert!(
        !choice.chosen.iter().any(|chosen| ["resolver", "indirect"].contains(&chosen.fact.name.as_str()))
    );
    assert_eq!(choice.left_out[&SkipReason::IfuncResolver], 1);
}

#[test]
fn function_offsets_lead_to_their_instructions_with_and_without_pie() {
    let mut starts = Vec::new();
    for arguments in [&["-O2", "-pie", "-fPIE"][..], &["-O2", "-no-pie", "-fPIE"]] {
        let Some(built) = build_c("function_offsets_lead_to_their_instructions", arguments) else { continue };
        let module = functions_of(&built.binary).expect("readable");
        let function = &module.functions()[index_of(&module, "stub")];
        assert_eq!(module.elf().code_address_of(function.file_offset), Some(function.address));
        assert_ne!(function.address == function.file_offset, arguments.contains(&"-no-pie"));
        // mov $7,%eax, after endbr64 where the compiler puts one.
        let bytes = bytes_at(&built, function.file_offset);
        let code = bytes.strip_prefix(&[0xf3, 0x0f, 0x1e, 0xfa]).unwrap_or(&bytes);
        assert!(code.starts_with(&[0xb8, 7, 0, 0]), "{code:x?}");
        starts.push(function.address);
    }
    println!("starts {starts:x?}");
}

#[test]
fn exits_are_found_in_tail_calls_jump_tables_and_endless_functions() {
    for arguments in
        [&["-O2"][..], &["-O2", "-no-pie", "-fno-pie"], &["-O1", "-fcf-protection=full"], &["-O0"]]
    {
        let Some(built) =
            build_c("exits_are_found_in_tail_calls_jump_tables_and_endless_functions", arguments)
        else {
            continue;
        };
        let module = functions_of(&built.binary).expect("readable");
        let choice = choose(&module, &everything());
        let optimized = arguments.contains(&"-O2");
        for name in ["leaf", "outer", "tail", "through", "recursive", "table"] {
            let function = chosen(&choice, name);
            assert_eq!(function.unsure, None, "{name} {arguments:?}");
            assert!(function.fact.exits_probed && !function.exit_offsets.is_empty(), "{name} {arguments:?}");
            for &exit in &function.exit_offsets {
                let byte = bytes_at(&built, exit)[0];
                assert!(matches!(byte, 0xc3 | 0xe9 | 0xeb | 0xff | 0xf2 | 0xf3), "{name} {byte:x}");
            }
        }
        if optimized {
            let tail = chosen(&choice, "tail");
            assert_eq!(tail.exit_offsets.len(), 1, "{arguments:?}");
            assert!(matches!(bytes_at(&built, tail.exit_offsets[0])[0], 0xe9 | 0xeb));
            let through = chosen(&choice, "through");
            assert_eq!(bytes_at(&built, through.exit_offsets[0])[0], 0xff, "a jump through a register");
        }
        assert!(chosen(&choice, "table").exit_offsets.len() > usize::from(optimized));
        let never = chosen(&choice, "never");
        assert_eq!((never.exit_offsets.len(), never.unsure), (0, None));
        assert!(never.fact.exits_probed, "an empty list of exits is complete");
    }
}

#[test]
fn cold_parts_and_landing_pads_belong_to_their_function() {
    let test = "cold_parts_and_landing_pads_belong_to_their_function";
    let Some(built) = build(test, "c++", &["-O2", "-g"], &[("main.cpp", CPP)]) else { return };
    let module = functions_of(&built.binary).expect("readable");
    let choice = choose(&module, &Selection::default());
    for name in ["shop::risky(int)", "shop::caught(int)", "shop::call(shop::Base*, int)"] {
        let function = chosen(&choice, name);
        assert_eq!(function.unsure, None, "{name}");
        assert!(!function.exit_offsets.is_empty(), "{name}");
    }
    let call = chosen(&choice, "shop::call(shop::Base*, int)");
    assert_eq!(bytes_at(&built, call.exit_offsets[0])[0], 0xff, "a virtual call in tail position");
    assert!(choice.chosen.iter().any(|chosen| chosen.fact.name.starts_with("int shop::sum<int>(")));
    assert!(choice.chosen.iter().all(|chosen| !chosen.fact.name.contains(".cold")));
}

#[test]
fn every_function_is_chosen_or_counted_as_left_out() {
    let Some(built) = build_c("every_function_is_chosen_or_counted_as_left_out", &["-O2"]) else { return };
    let module = functions_of(&built.binary).expect("readable");
    let all = choose(&module, &Selection::default());
    for selection in [
        Selection::default(),
        everything(),
        Selection { max_functions: 3, ..Selection::default() },
        Selection { max_functions: 0, ..Selection::default() },
        Selection { include: vec!["*a*".into()], exclude: vec!["tail".into()], ..Selection::default() },
    ] {
        let choice = choose(&module, &selection);
        let left_out: usize = choice.left_out.values().sum();
        assert_eq!(choice.chosen.len() + left_out, module.functions().len(), "{selection:?}");
        assert_eq!(choice.total, module.functions().len());
        assert!(choice.chosen.len() <= selection.max_functions);
        assert!(choice.chosen.is_sorted_by_key(|chosen| std::cmp::Reverse(chosen.size)));
        for (index, chosen) in choice.chosen.iter().enumerate() {
            assert_eq!(chosen.fact.id as usize, index);
            assert_eq!(chosen.fact.offset, chosen.entry_offset);
        }
    }
    let three = choose(&module, &Selection { max_functions: 3, first_id: 100, ..Selection::default() });
    let largest: Vec<&str> = all.chosen[..3].iter().map(|chosen| chosen.fact.name.as_str()).collect();
    let names: Vec<&str> = three.chosen.iter().map(|chosen| chosen.fact.name.as_str()).collect();
    assert_eq!(names, largest);
    assert_eq!(three.chosen[2].fact.id, 102);
    assert!(three.sentence().contains("beyond --max-functions"), "{}", three.sentence());
    // Selected by another name of the same function.
    let by_alias = Selection { include: vec!["also_leaf".into()], ..Selection::default() };
    assert_eq!(choose(&module, &by_alias).chosen[0].fact.name, "leaf");
    // Two static functions with the same name stay two.
    let same = Selection { include: vec!["same".into()], ..Selection::default() };
    let same = choose(&module, &same).chosen;
    assert_eq!(same.len(), 2);
    assert_ne!(same[0].entry_offset, same[1].entry_offset);
}

#[test]
fn functions_of_the_rust_standard_library_are_left_out() {
    let test = "functions_of_the_rust_standard_library_are_left_out";
    for mangling in ["v0", "legacy"] {
        let arguments = ["-O", "-g", "-C", &format!("symbol-mangling-version={mangling}")];
        let arguments: Vec<&str> = match mangling {
            // Only nightly makes the old mangling, which older toolchains write.
            "legacy" => arguments.iter().copied().chain(["-Z", "unstable-options"]).collect(),
            _ => arguments.to_vec(),
        };
        let folder = tempfile::tempdir().expect("folder");
        let (source, binary) = (folder.path().join("main.rs"), folder.path().join("program"));
        std::fs::write(&source, RUST).expect("source");
        let mut rustc = Command::new("rustc");
        rustc.args(arguments).arg("-o").arg(&binary).arg(&source).env("RUSTC_BOOTSTRAP", "1");
        match rustc.output() {
            Ok(output) if output.status.success() => {}
            other => {
                println!("SKIP {test} ({mangling}): no rustc: {other:?}");
                continue;
            }
        }
        let module = functions_of(&binary).expect("readable");
        let choice = choose(&module, &Selection::default());
        let names: Vec<&str> = choice.chosen.iter().map(|chosen| chosen.fact.name.as_str()).collect();
        println!("{mangling}: {} {names:?}", choice.sentence());
        assert!(
            names.contains(&"program::shop::sorted") || names.contains(&"main::shop::sorted"),
            "{names:?}"
        );
        assert!(names.iter().any(|name| name.contains("shop::Item") && name.ends_with("::fmt")), "{names:?}");
        for name in &names {
            let foreign = ["core::", "alloc::", "std::", "<core::", "<alloc::", "<std::", "<&", "gimli::"];
            assert!(!foreign.iter().any(|start| name.starts_with(start)), "{name}");
        }
        assert!(choice.left_out[&SkipReason::RustStandard] > 100);
        // A function that the user names is probed even there.
        let named = Selection { include: vec!["*print*".into()], ..Selection::default() };
        assert!(choose(&module, &named).chosen.iter().any(|chosen| chosen.fact.name.contains("std::")));
    }
}

#[test]
fn lines_and_inlined_calls_are_those_of_addr2line() {
    let test = "lines_and_inlined_calls_are_those_of_addr2line";
    for arguments in
        [&["-O2", "-g"][..], &["-O2", "-g", "-no-pie"], &["-O2", "-g", "-gz"], &["-O2", "-gdwarf-4"]]
    {
        let Some(built) = build_c(test, arguments) else { continue };
        let module = functions_of(&built.binary).expect("readable");
        let outer = &module.functions()[index_of(&module, "outer")];
        let addresses: Vec<u64> = (outer.address..outer.address + outer.size)
            .chain(
                ["leaf", "tail", "main", "other"]
                    .map(|name| module.functions()[index_of(&module, name)].address),
            )
            .collect();
        let mut command = Command::new("addr2line");
        command.args(["-f", "-i", "-a", "-e"]).arg(&built.binary);
        command.args(addresses.iter().map(|address| format!("{address:#x}")));
        let Ok(theirs) = command.output() else {
            println!("SKIP {test}: no addr2line");
            return;
        };
        let theirs = String::from_utf8_lossy(&theirs.stdout).into_owned();
        // For each address: "0x…", then pairs of lines: function, file:line.
        let mut wanted: Vec<Vec<(String, String)>> = Vec::new();
        let mut lines = theirs.lines();
        while let Some(line) = lines.next() {
            match line.strip_prefix("0x") {
                Some(_) => wanted.push(Vec::new()),
                None => {
                    let place =
                        lines.next().expect("place").split(" (disc").next().expect("place").to_owned();
                    wanted.last_mut().expect("address").push((line.to_owned(), place));
                }
            }
        }
        let places: Vec<Place> = addresses.iter().map(|&address| Place::Address(address)).collect();
        let answer = locate(&module, &places);
        let mut inlined = 0;
        for ((location, wanted), address) in answer.iter().zip(&wanted).zip(&addresses) {
            let frames = location.frames.as_ref().unwrap_or_else(|reason| panic!("{address:x}: {reason}"));
            let ours: Vec<(String, String)> = frames
                .iter()
                .map(|frame| {
                    let file = frame.file.as_deref().unwrap_or("??");
                    (
                        frame.function.clone().unwrap_or_default(),
                        format!("{file}:{}", frame.line.unwrap_or(0)),
                    )
                })
                .collect();
            assert_eq!(&ours, wanted, "{address:x} {arguments:?}");
            inlined += usize::from(ours.len() > 1);
        }
        assert_eq!(answer.len(), wanted.len());
        assert!(inlined > 0, "nothing inlined: nothing tested");
        let mut choice = choose(&module, &Selection::default());
        locate_functions(&module, choice.chosen.iter_mut().map(|chosen| &mut chosen.fact));
        let line = 1 + C.lines().position(|line| line.contains("int recursive")).expect("line");
        let location = chosen(&choice, "recursive").fact.location.clone().expect("located");
        assert!(location.ends_with(&format!("main.c:{line}")), "{location}");
        let same: BTreeSet<&str> = (choice.chosen.iter().filter(|chosen| chosen.fact.name == "same"))
            .filter_map(|chosen| chosen.fact.location.as_deref()?.rsplit('/').next()?.split(':').next())
            .collect();
        assert_eq!(same, BTreeSet::from(["main.c", "other.c"]), "two functions of one name");
    }
}

#[test]
fn a_stripped_program_has_addresses_instead_of_guessed_names() {
    let test = "a_stripped_program_has_addresses_instead_of_guessed_names";
    let Some(built) = build_c(test, &["-O2", "-s"]) else { return };
    let module = functions_of(&built.binary).expect("readable");
    assert!(!module.functions().iter().any(|function| module.raw_name(function) == "leaf"));
    assert_ne!(module.source(), &SymbolSource::SymbolTable);
    let offset = module.elf().offset_of(module.elf().entry).expect("entry");
    let found = &locate(&module, &[Place::FileOffset(offset)])[0];
    assert_eq!(found.name, format!("program+{offset:#x}"));
    assert!(matches!(found.symbol, Err(Reason::NoSymbols | Reason::NoSymbolForAddress)));
    assert_eq!(found.frames, Err(Reason::NoDebugInformation));
}

#[test]
fn a_separate_debug_file_is_used_only_with_an_equal_build_id() {
    let test = "a_separate_debug_file_is_used_only_with_an_equal_build_id";
    let arguments = ["-O2", "-g", "-Wl,--build-id=0x0123456789abcdef"];
    let Some(built) = build_c(test, &arguments) else { return };
    let Some(impostor) = build_c(test, &["-O2", "-g", "-Wl,--build-id=0xffff456789abcdef"]) else { return };
    let run = |program: &str, arguments: &[&str], folder: &Path| {
        Command::new(program)
            .args(arguments)
            .current_dir(folder)
            .status()
            .is_ok_and(|status| status.success())
    };
    let folder = built.folder.path();
    let split = run("objcopy", &["--only-keep-debug", "program", "program.debug"], folder)
        && run("objcopy", &["--strip-all", "--add-gnu-debuglink=program.debug", "program"], folder)
        && run("objcopy", &["--only-keep-debug", "program", "program.debug"], impostor.folder.path());
    if !split {
        println!("SKIP {test}: no objcopy");
        return;
    }
    let module = functions_of(&built.binary).expect("readable");
    assert!(matches!(module.source(), SymbolSource::DebugFile(_)), "{:?}", module.source());
    let leaf = &module.functions()[index_of(&module, "leaf")];
    let answer = locate(&module, &[Place::FileOffset(leaf.file_offset)]);
    let frames = answer[0].frames.as_ref().expect("lines");
    assert!(frames[0].file.as_deref().is_some_and(|file| file.ends_with("main.c")), "{frames:?}");
    let unsure = chosen(&choose(&module, &Selection::default()), "leaf").unsure;
    assert_eq!(unsure, None, "instructions come from the program itself");

    std::fs::copy(impostor.folder.path().join("program.debug"), folder.join("program.debug"))
        .expect("copied");
    let module = functions_of(&built.binary).expect("readable");
    assert!(!matches!(module.source(), SymbolSource::DebugFile(_)), "{:?}", module.source());
}

#[test]
fn functions_of_go_get_entry_probes_only() {
    let test = "functions_of_go_get_entry_probes_only";
    let Some(built) = build_c(test, &["-O2"]) else { return };
    let note = built.folder.path().join("note");
    std::fs::write(&note, b"\xff Go buildinf:").expect("note");
    let section = format!(".go.buildinfo={}", note.display());
    let added = Command::new("objcopy").args(["--add-section", &section]).arg(&built.binary).status();
    if !added.is_ok_and(|status| status.success()) {
        println!("SKIP {test}: no objcopy");
        return;
    }
    let module = functions_of(&built.binary).expect("readable");
    assert!(module.is_go());
    let choice = choose(&module, &Selection::default());
    assert!(choice.chosen.len() > 5);
    assert!(choice.chosen.iter().all(|chosen| chosen.exit_offsets.is_empty() && !chosen.fact.exits_probed));
    assert_eq!(choice.entry_only[&UnknownExits::Go], choice.chosen.len());
}

#[test]
fn a_file_that_is_no_program_is_refused_in_one_line() {
    let folder = tempfile::tempdir().expect("folder");
    let file = |name: &str, content: &[u8]| {
        let path = folder.path().join(name);
        std::fs::write(&path, content).expect("file");
        path
    };
    let pipe = folder.path().join("pipe");
    let made = Command::new("mkfifo").arg(&pipe).status().is_ok_and(|status| status.success());
    let mut elf32 = vec![0u8; 64];
    elf32[..6].copy_from_slice(b"\x7fELF\x01\x01");
    let mut cases = vec![
        (file("empty", b""), "does not start with the ELF mark"),
        (file("text", b"#!/bin/sh\n"), "does not start with the ELF mark"),
        (file("cut", b"\x7fELF\x02\x01\x01"), "not a usable ELF file"),
        (file("elf32", &elf32), "a 32-bit program"),
        (file("na\u{1b}[31mme\n", b"x"), "not a usable ELF file"),
        (folder.path().to_owned(), "not a regular file"),
        (folder.path().join("missing"), "cannot open"),
    ];
    if made {
        cases.push((pipe, "not a regular file"));
    }
    for (path, wanted) in cases {
        let error = functions_of(&path).expect_err("refused");
        let text = error.to_string();
        assert!(text.contains(wanted), "{text}");
        assert!(!text.contains(['\n', '\u{1b}']), "{text:?}");
        assert!(!error.hint().is_empty());
    }
}
