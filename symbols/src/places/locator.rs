//! Finds places of one module in its symbols and in its debug information. The debug information is read only once.

use super::dwarf::{DebugInformation, FrameNumbers, Lines};
use super::located::{Known, Located, PackedFrame, Row, plus_one};
use super::string_table::StringTable;
use crate::answer::{Place, Reason};
use crate::code::WaitPlaces;
use crate::elf::{ModuleFunctions, SymbolSource, unnamed};
use rustc_hash::FxHashMap;

/// Finds places of one module; see the module's documentation.
pub struct Locator<'a> {
    module: &'a ModuleFunctions,
    lines: Result<Lines<'a>, Reason>,
    texts: StringTable,
    /// The text number of each symbol's name, by the position of the name in the table. Many functions have the same
    /// name.
    symbols: FxHashMap<u32, u32>,
    waits: WaitPlaces,
}

impl Locator<'_> {
    /// Reads a module's debug information and calls `work` with a locator for it.
    pub fn with<T>(module: &ModuleFunctions, work: impl FnOnce(&mut Locator<'_>) -> T) -> T {
        Locator::over(module, &DebugInformation::of(module), work)
    }

    /// Like [`Locator::with`], with debug information that has been read already.
    pub(crate) fn over<T>(
        module: &ModuleFunctions,
        debug: &Result<DebugInformation<'_>, Reason>,
        work: impl FnOnce(&mut Locator<'_>) -> T,
    ) -> T {
        let lines = match debug {
            Ok(debug) => debug.lines(),
            Err(reason) => Err(reason.clone()),
        };
        let (texts, symbols, waits) = (StringTable::default(), FxHashMap::default(), WaitPlaces::default());
        work(&mut Locator { module, lines, texts, symbols, waits })
    }

    /// The module's name in messages.
    pub(crate) fn module(&self) -> &str {
        self.module.module()
    }

    /// Why the module has no lines at all; `None` if it has lines.
    pub fn no_lines(&self) -> Option<&Reason> {
        match self.module.go() {
            Some(_) => None,
            None => self.lines.as_ref().err(),
        }
    }

    /// Finds a location for each place, in the same order.
    pub fn locate(&mut self, places: &[Place]) -> Located {
        let mut packed = Packer::default();
        // The places are sorted by address: neighbours are mostly in the same unit, which is then in the cache.
        let elf = self.module.elf();
        let addresses: Vec<Option<u64>> = places
            .iter()
            .map(|place| match *place {
                Place::Address(address) => elf.code_offset_of(address).map(|_| address),
                Place::FileOffset(offset) => elf.code_address_of(offset),
            })
            .collect();
        let mut order: Vec<(Option<u64>, usize)> = addresses.iter().copied().zip(0..).collect();
        order.sort_unstable();
        let mut frames: Vec<FrameNumbers> = Vec::with_capacity(places.len().saturating_mul(2));
        let mut rows = vec![(Row::default(), 0); places.len()];
        let mut waits = Vec::new();
        for (address, index) in order {
            if let Some(tries) = address.and_then(|address| self.waits.find(self.module, address)) {
                waits.push((index as u32, tries));
            }
            let first = frames.len();
            rows[index] = (self.row(places[index], address, &mut packed, &mut frames), first);
        }
        let mut located = Located {
            module: self.module.module().to_owned(),
            build_id: self.module.build_id().cloned(),
            texts: Vec::new(),
            reasons: packed.reasons,
            rows: Vec::with_capacity(rows.len()),
            frames: Vec::new(),
            waits,
        };
        // The answer contains only texts that it uses, so texts get new numbers.
        let mut numbers = vec![u32::MAX; self.texts.all().len()];
        let mut renumber = |texts: &mut Vec<String>, number: u32| {
            let slot = &mut numbers[number as usize];
            if *slot == u32::MAX {
                *slot = texts.len() as u32;
                texts.push(self.texts.get(number).unwrap_or_default().to_owned());
            }
            *slot
        };
        located.frames.reserve_exact(frames.len());
        for (mut row, first) in rows {
            row.0 = renumber(&mut located.texts, row.0);
            if let Known::Yes(number) = row.1 {
                row.1 = Known::Yes(renumber(&mut located.texts, number));
            }
            let count = if let Known::Yes(count) = row.3 { count as usize } else { 0 };
            for frame in frames.iter().skip(first).take(count) {
                let FrameNumbers { function, file, line, column } = *frame;
                let function = function.map(|number| renumber(&mut located.texts, number));
                let file = file.map(|number| renumber(&mut located.texts, number));
                located.frames.push(PackedFrame(
                    plus_one(function),
                    plus_one(file),
                    plus_one(line),
                    plus_one(column),
                ));
            }
            located.rows.push(row);
        }
        located
    }

    /// The location of a place; adds its frames to `frames`.
    fn row(
        &mut self,
        place: Place,
        address: Option<u64>,
        packed: &mut Packer,
        frames: &mut Vec<FrameNumbers>,
    ) -> Row {
        let module = self.module;
        let Some(address) = address else {
            let (Place::FileOffset(at) | Place::Address(at)) = place;
            let name = self.texts.number(unnamed(module.module(), at));
            let reason = Known::No(packed.reason(Reason::NotCode));
            return Row(name, reason, 0, reason);
        };
        let symbol = match module.covering(address) {
            Some(function) => {
                let texts = &mut self.texts;
                let mut number = || texts.number(module.name(function));
                let name = match module.name_place(function) {
                    Some(place) => *self.symbols.entry(place).or_insert_with(number),
                    None => number(),
                };
                Ok((name, address.saturating_sub(function.address)))
            }
            None if *module.source() == SymbolSource::None => Err(Reason::NoSymbols),
            None => Err(Reason::NoSymbolForAddress),
        };
        let found = self.frames(address);
        let outermost = found.as_ref().ok().and_then(|frames| frames.last()?.function);
        let name = match (&symbol, outermost) {
            (Ok((name, _)), _) => *name,
            (Err(_), Some(outermost)) => outermost,
            (Err(_), None) => {
                let offset = module.elf().code_offset_of(address).unwrap_or(address);
                self.texts.number(unnamed(module.module(), offset))
            }
        };
        let (symbol, distance) = match symbol {
            Ok((name, distance)) => (Known::Yes(name), distance),
            Err(reason) => (Known::No(packed.reason(reason)), 0),
        };
        let frames = match found {
            Ok(found) => {
                frames.extend_from_slice(&found);
                Known::Yes(u32::try_from(found.len()).unwrap_or(0))
            }
            Err(reason) => Known::No(packed.reason(reason)),
        };
        Row(name, symbol, distance, frames)
    }

    fn frames(&mut self, address: u64) -> Result<Vec<FrameNumbers>, Reason> {
        let found = match &self.lines {
            Ok(lines) => lines.frames(address, &mut self.texts),
            Err(reason) => Err(reason.clone()),
        };
        let go = if found.is_err() { self.module.go() } else { None };
        let Some(frame) = go.and_then(|go| go.frame(address)) else { return found };
        Ok(vec![FrameNumbers {
            function: frame.function.map(|name| self.texts.number(name)),
            file: frame.file.map(|file| self.texts.number(file)),
            line: frame.line,
            column: None,
        }])
    }
}

/// Collects reasons, and gives each reason a number.
#[derive(Default)]
struct Packer {
    reasons: Vec<Reason>,
}

impl Packer {
    fn reason(&mut self, reason: Reason) -> u32 {
        let known = self.reasons.iter().position(|known| *known == reason);
        let number = known.unwrap_or_else(|| {
            self.reasons.push(reason);
            self.reasons.len() - 1
        });
        u32::try_from(number).unwrap_or(u32::MAX)
    }
}
