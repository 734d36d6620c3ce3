//! A function's own instructions: its main piece, and the `.cold` parts that the compiler put elsewhere.

use super::instructions::{self, Flow, Step};
use super::unknown_exits::UnknownExits;
use super::unwind::{LandingPads, UnwindFacts, UnwindTables};
use crate::elf::{Function, FunctionKind, ModuleFunctions, cold_parent};

/// Largest function that is decoded, bytes.
const MAX_FUNCTION_BYTES: u64 = 4 << 20;
/// Largest number of pieces (`.cold` parts) of one function.
const MAX_PIECES: usize = 8;

/// A function's own instructions: its main piece and the `.cold` parts that it jumps to.
pub struct Body {
    /// The function.
    pub function: Function,
    index: usize,
    pieces: Vec<Piece>,
    /// The instructions of all pieces, ordered by address.
    pub steps: Vec<Step>,
    /// Addresses of the landing pads of exceptions; `None` if the table of landing pads cannot be read.
    pub landing: Option<Vec<u64>>,
}

struct Piece {
    start: u64,
    end: u64,
    facts: Option<UnwindFacts>,
}

impl Body {
    /// Reads and decodes the function with this index in the module, and all its pieces.
    pub fn read(
        module: &ModuleFunctions,
        unwind: Option<&UnwindTables>,
        index: usize,
    ) -> Result<Body, UnknownExits> {
        let function = module.functions()[index];
        let mut body =
            Body { function, index, pieces: Vec::new(), steps: Vec::new(), landing: Some(Vec::new()) };
        body.add(module, unwind, index)?;
        // A piece's jumps and landing pads may lead to other pieces, which are read next.
        while let Some(part) = body.missing_part(module) {
            body.add(module, unwind, part)?;
        }
        body.steps.sort_unstable_by_key(|step| step.address);
        Ok(body)
    }

    fn missing_part(&self, module: &ModuleFunctions) -> Option<usize> {
        let jumps = self.steps.iter().filter_map(|step| match step.flow {
            Flow::Jump(to) | Flow::Branch(to) => Some(to),
            _ => None,
        });
        let pads = self.landing.iter().flatten().copied();
        jumps.chain(pads).filter(|&to| !self.contains(to)).find_map(|to| self.cold_part_at(module, to))
    }

    fn add(
        &mut self,
        module: &ModuleFunctions,
        unwind: Option<&UnwindTables>,
        index: usize,
    ) -> Result<(), UnknownExits> {
        let function = &module.functions()[index];
        if function.size == 0 {
            return Err(UnknownExits::NoSize);
        }
        if function.size > MAX_FUNCTION_BYTES || self.pieces.len() >= MAX_PIECES {
            return Err(UnknownExits::TooLarge);
        }
        let end = function.address.checked_add(function.size).ok_or(UnknownExits::Unreadable)?;
        let section_ends = |section: &crate::elf::Section| {
            section.is_executable()
                && section.contains(function.address)
                && section.address.checked_add(section.size).is_some_and(|section_end| end <= section_end)
        };
        if !module.elf().sections.is_empty() && !module.elf().sections.iter().any(section_ends) {
            return Err(UnknownExits::Unreadable);
        }
        // In the list, aliases come directly after their function. The next function with another address must not
        // start before the end of this one.
        let next = module.functions().partition_point(|other| other.address <= function.address);
        if module.functions().get(next).is_some_and(|other| other.address < end) {
            return Err(UnknownExits::Overlap);
        }
        let bytes = module
            .elf()
            .read(function.file_offset, function.size, "a function", MAX_FUNCTION_BYTES)
            .map_err(|_| UnknownExits::Unreadable)?;
        self.steps.extend(instructions::decode(&bytes, function.address)?);
        let facts = unwind.and_then(|tables| tables.facts(function.address));
        match facts.as_ref().map(|facts| &facts.landing_pads) {
            Some(LandingPads::At(pads)) => self.landing.iter_mut().for_each(|known| known.extend(pads)),
            Some(LandingPads::Unreadable) => self.landing = None,
            Some(LandingPads::None) | None => {}
        }
        self.pieces.push(Piece { start: function.address, end, facts });
        Ok(())
    }

    /// Whether the address lies in one of the function's pieces.
    pub fn contains(&self, address: u64) -> bool {
        self.pieces.iter().any(|piece| (piece.start..piece.end).contains(&address))
    }

    /// The index of this function's `.cold` part that contains the address. The part is recognised by its name.
    fn cold_part_at(&self, module: &ModuleFunctions, address: u64) -> Option<usize> {
        let at = module.functions().partition_point(|other| other.address <= address).checked_sub(1)?;
        let start = module.starting_at(module.functions()[at].address)?;
        let part = &module.functions()[start];
        if part.kind != FunctionKind::Cold || address - part.address >= part.size {
            return None;
        }
        let parent = cold_parent(module.raw_name_bytes(part))?;
        let names = module.functions()[self.index..].iter().take(64);
        names
            .take_while(|other| other.address == self.function.address)
            .any(|other| module.raw_name_bytes(other) == parent)
            .then_some(start)
    }

    /// The index of the instruction that starts at the address.
    pub fn step_at(&self, address: u64) -> Option<usize> {
        self.steps.binary_search_by_key(&address, |step| step.address).ok()
    }
}

/// Says at which places the stack is level, if the unwind tables can be trusted. Some tables are right only at calls
/// (synchronous tables). Such tables do not show that the frame has been removed before a `ret`.
pub struct Levels<'a> {
    pieces: &'a [Piece],
}

impl<'a> Levels<'a> {
    /// Takes the tables of all pieces of the body.
    pub fn new(body: &'a Body) -> Levels<'a> {
        let levels = Levels { pieces: &body.pieces };
        let mut returns = body.steps.iter().filter(|step| step.flow == Flow::Return);
        if returns.all(|step| levels.at(step.address) != Some(false)) {
            levels
        } else {
            Levels { pieces: &[] }
        }
    }

    /// Whether the stack pointer has the value that it had at the function's entry; `None`: not known.
    pub fn at(&self, address: u64) -> Option<bool> {
        let piece = self.pieces.iter().find(|piece| (piece.start..piece.end).contains(&address))?;
        piece.facts.as_ref()?.is_level(address)
    }
}
