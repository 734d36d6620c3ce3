//! A recording in the formats of other tools: one file per format, over one model ([`Model`]) with the numbers of a report.
//! All formats but `firefox` are written as they are made, so memory does not grow with their length.

mod chrome;
mod csv;
mod detail;
mod dot;
mod firefox;
mod folded;
mod model;
mod ndjson;
#[cfg(feature = "parquet")]
mod parquet;
#[cfg(not(feature = "parquet"))]
#[path = "without_parquet.rs"]
mod parquet;
mod perfetto;
mod pprof;
mod requests;
mod speedscope;
mod svg;
mod tables;
mod weights;
mod words;

pub use model::{About, Model};
pub use requests::write as write_requests;
pub use tables::Table;

use engine::report::Cpus;
use std::io::{self, Write};
use strum::{EnumString, IntoStaticStr, VariantNames};

/// A format of `longpole export`, besides the program JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, EnumString, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "snake_case")]
pub enum Format {
    /// A trace for Perfetto.
    Perfetto,
    /// A profile for the Firefox Profiler.
    Firefox,
    /// A profile for pprof and for other tools that read pprof's format.
    Pprof,
    /// Profiles for speedscope.
    Speedscope,
    /// Folded stacks.
    Folded,
    /// A flame graph.
    Svg,
    /// A trace as JSON.
    Chrome,
    /// The longest paths, for Graphviz.
    Dot,
    /// Tables as text.
    Csv,
    /// Tables as text, with one JSON object in each line.
    Ndjson,
    /// Tables for query engines.
    Parquet,
}

impl Format {
    /// The format's name on the command line; for tables also the ending of their files' names.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// The format with this name.
    pub fn of(name: &str) -> Option<Format> {
        name.parse().ok()
    }

    /// Whether this longpole can write the format: it may be built without Parquet.
    pub fn is_built_in(self) -> bool {
        self != Format::Parquet || parquet::IS_BUILT_IN
    }

    /// Whether the format shows what happened at which time, which only a recording has.
    pub fn is_of_recordings(self) -> bool {
        matches!(self, Format::Perfetto | Format::Firefox | Format::Chrome) || self.has_tables()
    }

    /// Whether the format shows a single thing: the critical path on one CPU count, or CPU time.
    pub fn is_of_one(self) -> bool {
        matches!(self, Format::Folded | Format::Svg)
    }

    /// Whether the format is about unlimited CPUs only.
    pub fn is_of_unlimited(self) -> bool {
        self == Format::Dot
    }

    /// Whether the format has several tables, each in a file of its own.
    pub fn has_tables(self) -> bool {
        matches!(self, Format::Csv | Format::Ndjson | Format::Parquet)
    }

    /// The CPU counts if the user names none; empty: the format shows CPU time.
    pub fn usual_cpus(self) -> Vec<Cpus> {
        // The same CPU counts as in a report.
        if self.is_of_one() { Vec::new() } else { Cpus::parse_list("1,2,4,8,16,inf").unwrap_or_default() }
    }

    /// Writes a recording; if the format has tables, the chosen table or the first one. Returns the quantum,
    /// nanoseconds: in `perfetto`, `firefox` and `chrome`, shorter items are joined or omitted if the file would exceed
    /// `most` bytes.
    pub fn write(
        self,
        model: &Model<'_>,
        table: Option<&'static Table>,
        most: Option<u64>,
        out: &mut dyn Write,
    ) -> io::Result<u64> {
        let table = table.unwrap_or(&Table::ALL[0]);
        let written = match self {
            Format::Perfetto => return perfetto::write(model, most, out),
            Format::Firefox => return firefox::write(model, most, out),
            Format::Pprof => pprof::write(model, out),
            Format::Speedscope => speedscope::write(model, out),
            Format::Folded => folded::write(model, out),
            Format::Svg => svg::write(model, out),
            Format::Chrome => return chrome::write(model, most, out),
            Format::Dot => dot::write(model, out),
            Format::Csv => tables::write(model, table, &mut csv::Csv::new(table, out)?),
            Format::Ndjson => tables::write(model, table, &mut ndjson::Ndjson::new(table, out)),
            Format::Parquet => parquet::write(model, table, out),
        };
        written.map(|()| 0)
    }
}
