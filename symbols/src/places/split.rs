//! Reads split debug information (`-gsplit-dwarf`): `.dwo` files next to the program, or one `.dwp` file that contains
//! all of them.

use crate::catch_panic::catch_panic;
use crate::elf::{
    Budget, Bytes, ElfFile, FileRequest, Files, ModuleFunctions, named, search, split_sections,
};
use addr2line::SplitDwarfLoad;
use gimli::{Dwarf, DwarfPackage, DwarfPackageSections, DwarfSections, EndianSlice, LittleEndian};
use std::cell::RefCell;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use typed_arena::Arena;

/// Largest number of `.dwo` files that are read for one module.
const MAX_OBJECTS: usize = 20_000;

pub type Slice<'a> = EndianSlice<'a, LittleEndian>;

/// The parts of a module's split debug information that have been read so far.
#[derive(Default)]
pub struct Parts {
    objects: Arena<DwarfSections<Bytes>>,
    package: Option<DwarfPackageSections<Bytes>>,
}

impl Parts {
    /// Opens the package of split debug information, if there is one.
    pub fn of(module: &ModuleFunctions) -> Parts {
        let package = module.with_files(|files| {
            search(files, &FileRequest::SplitPackage, |candidate| {
                let elf = module.elf().open_companion(candidate.file, &candidate.path).ok()?;
                package(&elf)
            })
        });
        Parts { objects: Arena::new(), package }
    }
}

fn package(elf: &ElfFile) -> Option<DwarfPackageSections<Bytes>> {
    let mut budget = Budget::default();
    DwarfPackageSections::load(|id| match id.dwo_name() {
        Some(name) => named(elf, name, &mut budget),
        None => Ok(Bytes::default()),
    })
    .ok()
}

/// Finds the parts of split debug information of one module.
pub struct Split<'a> {
    module: &'a ModuleFunctions,
    parts: &'a Parts,
    package: Option<DwarfPackage<Slice<'a>>>,
    found: RefCell<HashMap<u64, Option<Arc<Dwarf<Slice<'a>>>>>>,
}

impl<'a> Split<'a> {
    /// Prepares a search in these parts, which must live longer than the search.
    pub fn new(module: &'a ModuleFunctions, parts: &'a Parts) -> Split<'a> {
        let empty = EndianSlice::new(&[], LittleEndian);
        let package = parts.package.as_ref().and_then(|sections| {
            catch_panic(|| sections.borrow(|bytes| EndianSlice::new(bytes, LittleEndian), empty).ok())?
        });
        Split { module, parts, package, found: RefCell::default() }
    }

    /// The part that belongs to a skeleton unit.
    pub fn load(&self, load: &SplitDwarfLoad<Slice<'a>>) -> Option<Arc<Dwarf<Slice<'a>>>> {
        if let Some(known) = self.found.borrow().get(&load.dwo_id.0) {
            return known.clone();
        }
        if self.found.borrow().len() >= MAX_OBJECTS {
            return None;
        }
        let found = self.in_package(load).or_else(|| self.in_object(load));
        self.found.borrow_mut().insert(load.dwo_id.0, found.clone());
        found
    }

    fn in_package(&self, load: &SplitDwarfLoad<Slice<'a>>) -> Option<Arc<Dwarf<Slice<'a>>>> {
        let package = self.package.as_ref()?;
        catch_panic(|| package.find_cu(load.dwo_id, &load.parent).ok())??.map(Arc::new)
    }

    fn in_object(&self, load: &SplitDwarfLoad<Slice<'a>>) -> Option<Arc<Dwarf<Slice<'a>>>> {
        let text = |slice: Slice<'a>| slice.to_string().ok().map(|text| text.to_owned());
        let request = FileRequest::SplitObject {
            folder: load.comp_dir.and_then(text),
            name: load.path.and_then(text)?,
        };
        self.module.with_files(|files| self.search(files, &request, load))
    }

    fn search(
        &self,
        files: &mut dyn Files,
        request: &FileRequest,
        load: &SplitDwarfLoad<Slice<'a>>,
    ) -> Option<Arc<Dwarf<Slice<'a>>>> {
        search(files, request, |candidate| {
            let elf = self.module.elf().open_companion(candidate.file, Path::new("dwo")).ok()?;
            let sections = self.parts.objects.alloc(split_sections(&elf).ok()?);
            let mut dwarf = sections.borrow(|bytes| EndianSlice::new(bytes, LittleEndian));
            dwarf.make_dwo(&load.parent);
            // A file from an older or newer build of the same source has another id.
            let right = catch_panic(|| {
                let header = dwarf.units().next().ok()??;
                dwarf.unit(header).ok().map(|unit| unit.dwo_id == Some(load.dwo_id))
            });
            (right == Some(Some(true))).then(|| Arc::new(dwarf))
        })
    }
}
