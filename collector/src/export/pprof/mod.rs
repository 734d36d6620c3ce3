//! A profile for pprof, Pyroscope, Parca and other tools that read pprof's format, compressed by gzip. It has CPU time,
//! and for each CPU count the nanoseconds of the predicted time that each call stack accounts for (`critical_8` on 8
//! CPUs). Waits and hand-overs are frames in brackets, so that each critical column adds up to the predicted time.

mod messages;

use super::model::{Model, NO_FUNCTION};
use super::weights::{Rounded, Weight};
use engine::program::FunctionRef;
use engine::view::{Frame, Stacks};
use flate2::Compression;
use flate2::write::GzEncoder;
use messages::{Function, Label, Line, Location, Mapping, Sample, ValueType};
use prost::Message;
use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};

/// Fields of `Profile`.
mod field {
    pub const SAMPLE_TYPE: u32 = 1;
    pub const SAMPLE: u32 = 2;
    pub const MAPPING: u32 = 3;
    pub const LOCATION: u32 = 4;
    pub const FUNCTION: u32 = 5;
    pub const STRING_TABLE: u32 = 6;
    pub const DURATION_NANOS: u32 = 10;
    pub const DEFAULT_SAMPLE_TYPE: u32 = 14;
}

/// Writes the profile.
pub fn write(model: &Model<'_>, out: &mut dyn Write) -> io::Result<()> {
    let stacks = model.stacks();
    let mut profile = Profile {
        model,
        out: GzEncoder::new(out, Compression::default()),
        strings: Strings::new(),
        locations: HashMap::new(),
        functions: HashMap::new(),
        mappings: HashMap::new(),
    };
    profile.kinds(&stacks)?;
    profile.samples(&stacks)?;
    if let Some(measured) = &model.measured {
        let (start, end) = measured.window();
        profile.number(field::DURATION_NANOS, end.0.saturating_sub(start.0))?;
    }
    let strings = std::mem::take(&mut profile.strings.list);
    for text in &strings {
        profile.bytes(field::STRING_TABLE, text.as_bytes())?;
    }
    profile.out.finish().map(drop)
}

/// The table of strings; the first string is empty.
struct Strings {
    list: Vec<String>,
    numbers: HashMap<String, i64>,
}

impl Strings {
    fn new() -> Strings {
        let mut strings = Strings { list: Vec::new(), numbers: HashMap::new() };
        strings.number("");
        strings
    }

    fn number(&mut self, text: &str) -> i64 {
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        let number = self.list.len() as i64;
        self.list.push(text.to_owned());
        self.numbers.insert(text.to_owned(), number);
        number
    }
}

struct Profile<'m, 'w> {
    model: &'m Model<'m>,
    out: GzEncoder<&'w mut dyn Write>,
    strings: Strings,
    locations: HashMap<Frame, u64>,
    functions: HashMap<FunctionRef, u64>,
    /// Ids of binaries, by name.
    mappings: HashMap<String, u64>,
}

impl Profile<'_, '_> {
    fn kinds(&mut self, stacks: &Stacks) -> io::Result<()> {
        let unit = self.strings.number("nanoseconds");
        let names: Vec<String> = stacks.on.iter().map(|on| format!("critical_{}", on.cpus)).collect();
        for name in std::iter::once("cpu").chain(names.iter().map(String::as_str)) {
            let kind = self.strings.number(name);
            self.message(field::SAMPLE_TYPE, &ValueType { kind, unit })?;
        }
        // The column for the recorded machine is what most users open first.
        let recorded = self.model.program.recorded_cpus.map(|cpus| format!("critical_{cpus}"));
        let shown = recorded.filter(|name| names.contains(name)).unwrap_or_else(|| "cpu".to_owned());
        let shown = self.strings.number(&shown);
        self.number(field::DEFAULT_SAMPLE_TYPE, shown as u64)
    }

    fn samples(&mut self, stacks: &Stacks) -> io::Result<()> {
        let kinds: Vec<Weight> =
            std::iter::once(Weight::Cpu).chain((0..stacks.on.len()).map(Weight::Owed)).collect();
        let mut rounded = vec![Rounded::default(); kinds.len()];
        let thread_key = self.strings.number("thread");
        for stack in &stacks.stacks {
            let numbers = kinds.iter().zip(&mut rounded).map(|(kind, rounded)| rounded.next(kind.of(stack)));
            let value: Vec<i64> = numbers.collect();
            if value.iter().all(|number| *number == 0) {
                continue;
            }
            let mut location_id = Vec::with_capacity(stack.frames.len().max(1));
            for frame in stack.frames.iter().rev() {
                location_id.push(self.location(frame)?);
            }
            if location_id.is_empty() {
                location_id.push(self.named(NO_FUNCTION)?);
            }
            let str = self.strings.number(self.model.thread(stack.thread));
            let label = vec![Label { key: thread_key, str }];
            self.message(field::SAMPLE, &Sample { location_id, value, label })?;
        }
        let mut waits: BTreeMap<String, Vec<f64>> = BTreeMap::new();
        for (place, kind) in kinds.iter().enumerate() {
            for (name, ns) in kind.waits(stacks) {
                let numbers = waits.entry(name).or_insert_with(|| vec![0.0; kinds.len()]);
                numbers.get_mut(place).into_iter().for_each(|sum| *sum += ns);
            }
        }
        for (name, numbers) in waits {
            let value = numbers.into_iter().zip(&mut rounded).map(|(ns, rounded)| rounded.next(ns)).collect();
            let location_id = vec![self.named(&name)?];
            self.message(field::SAMPLE, &Sample { location_id, value, label: Vec::new() })?;
        }
        Ok(())
    }

    /// A location for something that is not a function, such as a wait.
    fn named(&mut self, name: &str) -> io::Result<u64> {
        // Numbers are counted down from the largest one, so they are above those of the program's functions.
        let key = Frame { function: FunctionRef(u32::MAX - self.strings.number(name) as u32), place: None };
        if let Some(id) = self.locations.get(&key) {
            return Ok(*id);
        }
        let text = self.strings.number(name);
        let function_id = self.functions.len() as u64 + 1;
        self.functions.insert(key.function, function_id);
        let function =
            Function { id: function_id, name: text, system_name: text, filename: 0, start_line: 0 };
        self.message(field::FUNCTION, &function)?;
        let id = self.locations.len() as u64 + 1;
        self.locations.insert(key, id);
        let line = vec![Line { function_id, line: 0 }];
        self.message(field::LOCATION, &Location { id, mapping_id: 0, line })?;
        Ok(id)
    }

    fn location(&mut self, frame: &Frame) -> io::Result<u64> {
        if let Some(id) = self.locations.get(frame) {
            return Ok(*id);
        }
        let function_id = self.function(frame.function)?;
        let mapping_id = self.mapping(frame.function)?;
        let line = self.model.source(frame).1.and_then(|line| i64::try_from(line).ok()).unwrap_or(0);
        let id = self.locations.len() as u64 + 1;
        self.locations.insert(*frame, id);
        self.message(field::LOCATION, &Location { id, mapping_id, line: vec![Line { function_id, line }] })?;
        Ok(id)
    }

    fn function(&mut self, function: FunctionRef) -> io::Result<u64> {
        if let Some(id) = self.functions.get(&function) {
            return Ok(*id);
        }
        let id = self.functions.len() as u64 + 1;
        self.functions.insert(function, id);
        let name = self.strings.number(self.model.function(Some(function)));
        let (file, start_line) = self.model.declared(function);
        let filename = self.strings.number(file.unwrap_or_default());
        let start_line = start_line.and_then(|line| i64::try_from(line).ok()).unwrap_or(0);
        self.message(field::FUNCTION, &Function { id, name, system_name: name, filename, start_line })?;
        Ok(id)
    }

    /// Id of a function's binary; 0: not known.
    fn mapping(&mut self, function: FunctionRef) -> io::Result<u64> {
        let program = self.model.program;
        let module =
            program.functions.get(function.0 as usize).and_then(|function| function.module.as_deref());
        let Some(module) = module else { return Ok(0) };
        if let Some(id) = self.mappings.get(module) {
            return Ok(*id);
        }
        let id = self.mappings.len() as u64 + 1;
        self.mappings.insert(module.to_owned(), id);
        let binary = self.model.measured.as_ref().and_then(|measured| measured.binary(module));
        let (path, build_id) = binary.unwrap_or((module, None));
        let mapping = Mapping {
            id,
            filename: self.strings.number(path),
            build_id: self.strings.number(build_id.unwrap_or_default()),
            has_functions: true,
            has_filenames: true,
            has_line_numbers: true,
            has_inline_frames: true,
        };
        self.message(field::MAPPING, &mapping)?;
        Ok(id)
    }

    fn message(&mut self, field: u32, message: &impl Message) -> io::Result<()> {
        self.bytes(field, &message.encode_to_vec())
    }

    fn bytes(&mut self, field: u32, bytes: &[u8]) -> io::Result<()> {
        let mut head = Vec::with_capacity(12);
        prost::encoding::encode_varint(u64::from(field << 3 | 2), &mut head);
        prost::encoding::encode_varint(bytes.len() as u64, &mut head);
        self.out.write_all(&head)?;
        self.out.write_all(bytes)
    }

    fn number(&mut self, field: u32, number: u64) -> io::Result<()> {
        let mut bytes = Vec::with_capacity(12);
        prost::encoding::encode_varint(u64::from(field << 3), &mut bytes);
        prost::encoding::encode_varint(number, &mut bytes);
        self.out.write_all(&bytes)
    }
}
