//! Exits of real binaries, with objdump as second opinion. No exit is inside an instruction, each is a return or a jump out,
//! and none is missed in a function whose exits are sure.

use std::collections::{BTreeMap, HashMap};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use symbols::{Exits, FunctionKind, UnknownExits, UnwindTables, analyse, functions_of};

/// The kind of an instruction, from objdump.
enum Said {
    Return,
    Jump(Option<u64>),
    Conditional(u64),
    Other,
}

fn disassemble(path: &Path) -> Option<HashMap<u64, Said>> {
    let mut objdump = Command::new("objdump")
        .args(["-d", "--no-show-raw-insn", "-w"])
        .arg(path)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let mut said = HashMap::new();
    for line in BufReader::new(objdump.stdout.take()?).lines() {
        let line = line.ok()?;
        let Some((address, text)) = line.trim_start().split_once(":\t") else { continue };
        let Ok(address) = u64::from_str_radix(address, 16) else { continue };
        let mut words =
            text.split_whitespace().filter(|word| !matches!(*word, "repz" | "bnd" | "notrack" | "rep"));
        let mnemonic = words.next().unwrap_or_default();
        let target = words.next().and_then(|word| u64::from_str_radix(word, 16).ok());
        let mnemonic = mnemonic.split(',').next().unwrap_or_default();
        said.insert(
            address,
            match (mnemonic, target) {
                ("ret" | "retq", _) => Said::Return,
                ("jmp" | "jmpq", target) => Said::Jump(target),
                (conditional, Some(target)) if conditional.starts_with('j') => Said::Conditional(target),
                _ => Said::Other,
            },
        );
    }
    objdump.wait().ok()?;
    (!said.is_empty()).then_some(said)
}

fn real_binaries() -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = vec![std::env::current_exe().expect("own path")];
    for name in ["bash", "git", "perf", "python3", "gdb", "cc1"] {
        let found = std::env::var_os("PATH")
            .iter()
            .flat_map(std::env::split_paths)
            .map(|folder| folder.join(name))
            .find(|path| path.is_file());
        paths.extend(found);
    }
    let maps = std::fs::read_to_string("/proc/self/maps").expect("/proc");
    let libraries = maps.lines().filter_map(|line| line.split_whitespace().nth(5));
    paths.extend(libraries.filter(|path| path.contains(".so")).map(PathBuf::from));
    paths.extend(std::env::var_os("EXITS_OF").iter().flat_map(std::env::split_paths));
    let mut paths: Vec<PathBuf> = paths.iter().filter_map(|path| path.canonicalize().ok()).collect();
    paths.sort();
    paths.dedup();
    paths
}

#[test]
fn exits_agree_with_objdump() {
    let mut compared = 0;
    for path in real_binaries() {
        let Ok(module) = functions_of(&path) else { continue };
        if module.functions().is_empty() || !module.elf().is_x86_64 {
            continue;
        }
        let Some(said) = disassemble(&path) else {
            println!("SKIP exits_agree_with_objdump of {}: no objdump", path.display());
            continue;
        };
        compared += check(&path, &module, &said);
    }
    assert!(compared > 0 || Command::new("objdump").arg("--version").output().is_err(), "nothing compared");
}

fn check(path: &Path, module: &symbols::ModuleFunctions, said: &HashMap<u64, Said>) -> usize {
    let unwind = UnwindTables::read(module.elf());
    let mut sure = 0;
    let mut unsure: BTreeMap<UnknownExits, Vec<String>> = BTreeMap::new();
    let cold: Vec<(u64, u64)> = module
        .functions()
        .iter()
        .filter(|function| function.kind == FunctionKind::Cold)
        .map(|function| (function.address, function.address + function.size))
        .collect();
    let is_cold = |address: u64| cold.iter().any(|&(start, end)| (start..end).contains(&address));
    for (index, function) in module.functions().iter().enumerate() {
        if !matches!(function.kind, FunctionKind::Ordinary | FunctionKind::Part) || function.size == 0 {
            continue;
        }
        let name = module.name(function);
        let offsets = match analyse(module, unwind.as_ref(), index).exits {
            Exits::Sure(offsets) => offsets,
            Exits::Unsure(reason) => {
                unsure.entry(reason).or_default().push(name);
                continue;
            }
        };
        sure += 1;
        let (start, end) = (function.address, function.address + function.size);
        let inside = |address: u64| (start..end).contains(&address);
        let exits: Vec<u64> = offsets
            .iter()
            .map(|&offset| module.elf().code_address_of(offset).expect("exit in code"))
            .collect();
        for &exit in &exits {
            assert!(inside(exit) || is_cold(exit), "{}: {name}: exit {exit:x} outside", path.display());
            match said.get(&exit) {
                Some(Said::Return | Said::Jump(None)) => {}
                Some(Said::Jump(Some(target))) => {
                    assert!(
                        !inside(*target) || *target == start,
                        "{}: {name}: {exit:x} stays inside",
                        path.display()
                    )
                }
                Some(_) => panic!("{}: {name}: {exit:x} is no exit to objdump", path.display()),
                None => panic!("{}: {name}: {exit:x} is no instruction to objdump", path.display()),
            }
        }
        for address in start..end {
            let leaves = match said.get(&address) {
                Some(Said::Return) => true,
                Some(Said::Jump(Some(target))) => !inside(*target) && !is_cold(*target),
                Some(Said::Conditional(target)) => {
                    assert!(inside(*target) || is_cold(*target), "{}: {name}: {address:x}", path.display());
                    false
                }
                _ => false,
            };
            assert!(
                !leaves || exits.contains(&address),
                "{}: {name}: exit {address:x} missed",
                path.display()
            );
        }
    }
    let reasons: Vec<String> = unsure
        .iter()
        .map(|(reason, names)| format!("{} {reason} (such as {})", names.len(), names[names.len() / 2]))
        .collect();
    println!("{}: {sure} sure; unsure: {}", path.display(), reasons.join(", "));
    sure
}
