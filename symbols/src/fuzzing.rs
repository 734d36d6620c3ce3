//! All parsers of this crate as one function, for the crate `fuzz`. Compiled only with the feature `fuzzing`.

use std::fs::File;
use std::path::Path;

use crate::Place;
use crate::choice::{Selection, choose};
use crate::code::{LockCall, lock_regions};
use crate::elf::{ElfFile, HostFiles, ModuleFunctions, Outline, usdt_probes};
use crate::places::{Locator, Named};
use crate::process::{Look, look_at};

/// Largest number of functions and addresses for which the symbols are asked. Small files have fewer, and each one
/// takes time.
const MOST: usize = 256;

/// Calls all functions that longpole uses to read a binary. Opens no other files.
pub fn binary(file: &File) {
    let path = Path::new("fuzz");
    if let Some(outline) = Outline::of(file) {
        outline.needed(file);
        outline.run_paths(file);
    }
    for look in [Look::LibcFunctions, Look::UnwindRows, Look::MovesCode, Look::GoRuntime] {
        let Ok(file) = file.try_clone() else { return };
        look_at(file, path, look);
    }
    let Ok(Ok(elf)) = file.try_clone().map(|file| ElfFile::from_file(file, path)) else { return };
    let Ok(module) = ModuleFunctions::load(elf, Box::new(HostFiles::none())) else { return };
    choose(&module, &Selection { max_functions: MOST, ..Selection::default() });
    if let Ok([begin, .., end]) = usdt_probes(module.elf()).as_deref() {
        let include = vec![format!("usdt:{}:{},{}", begin.provider, begin.name, end.name)];
        choose(&module, &Selection { include, ..Selection::default() });
    }
    let functions = || module.functions().iter().take(MOST);
    let places: Vec<Place> = functions().map(|function| Place::Address(function.address)).collect();
    Locator::with(&module, |locator| locator.locate(&places));
    if let Ok(mut variables) = Named::read(&module) {
        let data = module.elf().sections.iter().filter(|section| !section.is_executable());
        for section in data.take(MOST) {
            for step in 0..16 {
                variables.at(section.address.wrapping_add(step * 8));
            }
        }
    }
    let offsets: Vec<u64> =
        functions().filter_map(|function| module.elf().code_offset_of(function.address)).collect();
    let calls: Vec<LockCall> = offsets
        .iter()
        .map(|&taken| LockCall { taken: taken.wrapping_add(4), given: offsets.clone() })
        .collect();
    lock_regions(&module, &calls, &offsets);
}
