//! The rows of a report: functions, lines, files or binaries. All are counted in the same way.

use crate::program::{Function, FunctionRef, PlaceId, Program};
use rustc_hash::FxHashMap;

/// What one row of a report stands for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Grouping {
    /// A function.
    #[default]
    Function,
    /// A source line; only samples show lines.
    Line,
    /// A source file.
    File,
    /// A binary.
    Module,
}

/// No row.
pub(crate) const NO_KEY: u32 = u32::MAX;

/// The name of a row and facts about it, without numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct KeyName {
    pub(crate) name: String,
    pub(crate) location: Option<String>,
    pub(crate) probes_removed: bool,
    /// Entries were recorded for only a part of the time.
    pub(crate) partly_counted: bool,
    /// Entries are not recorded: there are no probes.
    pub(crate) uncounted: bool,
    /// Whether the function has probes while samples also show inlined copies of it, which probes do not see.
    pub(crate) partly_inlined: bool,
}

/// The rows that functions and places belong to.
#[derive(Debug)]
pub(crate) struct Keys {
    pub(crate) names: Vec<KeyName>,
    /// For each row: its rank in the order of names. Results are sorted by rank, so they do not depend on row numbers.
    ranks: Vec<u32>,
    /// For each function: the row that gets its self time.
    own: Vec<u32>,
    /// For each place of a sample: its row.
    places: Vec<u32>,
    /// Whether the stack of probed functions determines which rows are open; not so for lines.
    opens: bool,
}

impl Keys {
    pub(crate) fn of(program: &Program, grouping: Grouping) -> Keys {
        if grouping == Grouping::Function {
            return Keys::functions(program);
        }
        let mut maker = Maker { names: Vec::new(), numbers: FxHashMap::default() };
        let own = program.functions.iter().map(|function| maker.of_function(function, grouping)).collect();
        let places = program.samples.places.iter().map(|place| {
            let function = program.functions.get(place.function.0 as usize);
            match (grouping, &place.line, function) {
                (Grouping::Line, Some(line), _) => maker.number(line.clone()),
                (Grouping::File, Some(line), _) => maker.number(file_of(line).to_owned()),
                (_, _, Some(function)) => maker.of_function(function, grouping),
                (_, _, None) => NO_KEY,
            }
        });
        let places = places.collect();
        Keys {
            ranks: ranks(&maker.names),
            names: maker.names,
            own,
            places,
            opens: grouping != Grouping::Line,
        }
    }

    fn functions(program: &Program) -> Keys {
        let name = |function: &Function| KeyName {
            name: function.name.clone(),
            location: function.location.clone(),
            probes_removed: function.probes_removed,
            partly_counted: function.partly_counted,
            uncounted: function.sampled,
            partly_inlined: false,
        };
        let mut names: Vec<KeyName> = program.functions.iter().map(name).collect();
        for place in program.samples.places.iter().filter(|place| place.inlined) {
            if let Some(name) = names.get_mut(place.function.0 as usize) {
                name.partly_inlined = !name.uncounted;
            }
        }
        Keys {
            ranks: ranks(&names),
            names,
            own: (0u32..).take(program.functions.len()).collect(),
            places: program.samples.places.iter().map(|place| place.function.0).collect(),
            opens: true,
        }
    }

    /// The row that gets the function's self time.
    pub(crate) fn own(&self, function: FunctionRef) -> u32 {
        self.own.get(function.0 as usize).copied().unwrap_or(NO_KEY)
    }

    /// The row that is open while the function is on the stack.
    pub(crate) fn opened_by(&self, function: FunctionRef) -> u32 {
        if self.opens { self.own(function) } else { NO_KEY }
    }

    pub(crate) fn of_place(&self, place: PlaceId) -> u32 {
        self.places.get(place.0 as usize).copied().unwrap_or(NO_KEY)
    }

    /// A row's rank in the order of names; `NO_KEY` comes last.
    pub(crate) fn rank(&self, key: u32) -> u32 {
        self.ranks.get(key as usize).copied().unwrap_or(u32::MAX)
    }

    pub(crate) fn len(&self) -> usize {
        self.names.len()
    }
}

fn ranks(names: &[KeyName]) -> Vec<u32> {
    let mut order: Vec<usize> = (0..names.len()).collect();
    order.sort_by(|&a, &b| names[a].name.cmp(&names[b].name));
    let mut ranks = vec![0; names.len()];
    for (rank, key) in (0u32..).zip(order) {
        ranks[key] = rank;
    }
    ranks
}

struct Maker {
    names: Vec<KeyName>,
    numbers: FxHashMap<String, u32>,
}

impl Maker {
    fn number(&mut self, name: String) -> u32 {
        if let Some(number) = self.numbers.get(&name) {
            return *number;
        }
        let number = u32::try_from(self.names.len()).unwrap_or(NO_KEY);
        self.names.push(KeyName { name: name.clone(), uncounted: true, ..KeyName::default() });
        self.numbers.insert(name, number);
        number
    }

    fn of_function(&mut self, function: &Function, grouping: Grouping) -> u32 {
        let module = function.module.as_deref().filter(|module| !module.is_empty());
        let name = match grouping {
            Grouping::Function => function.name.clone(),
            Grouping::Line => format!("{} (line not known)", function.name),
            Grouping::File => match (&function.location, module) {
                (Some(location), _) => file_of(location).to_owned(),
                (None, Some(module)) => format!("{module} (file not known)"),
                (None, None) => "(file not known)".to_owned(),
            },
            Grouping::Module => module.unwrap_or("(binary not known)").to_owned(),
        };
        self.number(name)
    }
}

/// The file of `file:line`.
fn file_of(location: &str) -> &str {
    match location.rsplit_once(':') {
        Some((file, line)) if !line.is_empty() && line.bytes().all(|byte| byte.is_ascii_digit()) => file,
        _ => location,
    }
}
