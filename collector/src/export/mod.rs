//! A recording in the formats of other tools: one file for each, over one model ([`Model`]) whose numbers are those of a
//! report. All but `firefox` write as they go: memory does not grow with what they have written.

mod chrome;
mod csv;
mod dot;
mod firefox;
mod folded;
mod model;
mod ndjson;
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
    /// A profile for pprof and what reads its format.
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
    /// Tables as one JSON object a line.
    Ndjson,
    /// Tables for engines.
    Parquet,
}

impl Format {
    /// Its name on the command line; of tables the end of their files' names.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// The format of this name.
    pub fn of(name: &str) -> Option<Format> {
        name.parse().ok()
    }

    /// It shows what happened at which time, which only a recording tells.
    pub fn is_of_recordings(self) -> bool {
        matches!(self, Format::Perfetto | Format::Firefox | Format::Chrome) || self.has_tables()
    }

    /// It shows one thing: the critical path on one CPU count, or CPU time.
    pub fn is_of_one(self) -> bool {
        matches!(self, Format::Folded | Format::Svg)
    }

    /// It is about unlimited CPUs alone.
    pub fn is_of_unlimited(self) -> bool {
        self == Format::Dot
    }

    /// It has several tables, each a file.
    pub fn has_tables(self) -> bool {
        matches!(self, Format::Csv | Format::Ndjson | Format::Parquet)
    }

    /// The CPU counts that it has if none are asked for; none: it shows CPU time.
    pub fn usual_cpus(self) -> Vec<Cpus> {
        // As a report.
        if self.is_of_one() { Vec::new() } else { Cpus::parse_list("1,2,4,8,16,inf").unwrap_or_default() }
    }

    /// Writes it; of tables this one, or the recording itself. Of `chrome`, what is shorter than what is returned, nanoseconds, is
    /// joined or left out if all would be more than `most` bytes.
    pub fn write(
        self,
        model: &Model<'_>,
        table: Option<&'static Table>,
        most: Option<u64>,
        out: &mut dyn Write,
    ) -> io::Result<u64> {
        let table = table.unwrap_or(&Table::ALL[0]);
        let written = match self {
            Format::Perfetto => perfetto::write(model, out),
            Format::Firefox => firefox::write(model, out),
            Format::Pprof => pprof::write(model, out),
            Format::Speedscope => speedscope::write(model, out),
            Format::Folded => folded::write(model, out),
            Format::Svg => svg::write(model, out),
            Format::Chrome => return chrome::write(model, most, out),
            Format::Dot => dot::write(model, out),
            Format::Csv => tables::write(model, table, &mut csv::Csv::new(table, out)?),
            Format::Ndjson => tables::write(model, table, &mut ndjson::Ndjson::new(table, out)),
            Format::Parquet => {
                let mut file = parquet::Parquet::new(table, out)?;
                tables::write(model, table, &mut file)?;
                file.finish()
            }
        };
        written.map(|()| 0)
    }
}
