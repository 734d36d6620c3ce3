//! `longpole export`

use super::output::to_stdout;
use crate::cell::duration;
use crate::cli::args::ExportArguments;
use crate::cli::value::table_names;
use crate::exit::{Outcome, UserError, say};
use crate::export::{About, Format, Model, Table, write_requests};
use crate::input::{Input, Parts};
use crate::plan::{InputPlan, Source, is_dash};
use crate::present::words::excerpt;
use engine::program::json;
use recording::{Meta, Overwrite, SudoUser, check_file, write_whole};
use std::fs::{DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// Largest size of a trace as JSON, bytes, unless all is asked for: browsers can open 30 MB.
const MOST_BYTES: u64 = 30_000_000;

/// Reads an input and writes it in another format.
pub fn run(args: &ExportArguments) -> Result<Outcome, UserError> {
    check(args)?;
    let overwrite = if args.force { Overwrite::AnyFile } else { Overwrite::Devices };
    for path in args.files() {
        // Checked now, since reading and simulating may take long. A missing folder is created later.
        if args.folder().is_none_or(Path::exists) {
            check_file(&path, overwrite)?;
        }
    }
    let input = Input::open(&args.plan())?;
    if let Some(name) = &args.per {
        let asked = super::per::asked(if args.raw { input.raw() } else { input }, name)?;
        let stacks = engine::requests::stacks(&asked.timeline, &asked.program, &asked.calls);
        written(args, overwrite, |out| write_requests(&stacks, out))?;
        return Ok(Outcome::Done);
    }
    let parts = if args.raw { input.raw() } else { input }.into_parts();
    parts.program.check().map_err(super::invalid)?;
    match args.format {
        None => {
            let program = parts.program;
            drop(parts.timeline);
            written(args, overwrite, |out| json::write(&program, out))?;
        }
        Some(format) => formatted(args, overwrite, format, &parts)?,
    }
    Ok(Outcome::Done)
}

/// Refuses arguments that contradict each other.
fn check(args: &ExportArguments) -> Result<(), UserError> {
    let has_tables = args.format.is_some_and(Format::has_tables);
    let (problem, hint) = match (args.format, &args.cpus) {
        (Some(format), _) if !format.is_built_in() => (
            format!("this longpole is built without {}", format.name()),
            "give -f csv or ndjson, or build longpole with the feature: cargo build --release -p collector"
                .to_owned(),
        ),
        (None, Some(_)) => (
            "--cpus is for critical paths: a program JSON has none".to_owned(),
            "leave --cpus out, or give another format with -f".to_owned(),
        ),
        (Some(format), Some(cpus)) if format.is_of_one() && cpus.len() != 1 => (
            format!("-f {} shows one CPU count", format.name()),
            "give one, for example --cpus 8; without --cpus it shows CPU time".to_owned(),
        ),
        (Some(format), Some(_)) if format.is_of_unlimited() => (
            format!("-f {} has no CPU counts", format.name()),
            "leave --cpus out: the longest paths are those on unlimited CPUs".to_owned(),
        ),
        _ if has_tables && args.table.is_none() && is_dash(&args.output) => (
            "standard output can take only one of the tables".to_owned(),
            format!("give a folder with -o, or one of these with --table: {}", table_names()),
        ),
        (format, _) if args.per.is_some() && format != Some(Format::Folded) => (
            "--per is for folded stacks".to_owned(),
            "give -f folded; `longpole report --per` has the numbers".to_owned(),
        ),
        _ if !has_tables && args.table.is_some() => (
            "--table is for tables".to_owned(),
            "give -f csv, ndjson or parquet, or leave --table out".to_owned(),
        ),
        _ => return Ok(()),
    };
    Err(UserError::usage(problem, hint))
}

fn formatted(
    args: &ExportArguments,
    overwrite: Overwrite,
    format: Format,
    parts: &Parts,
) -> Result<(), UserError> {
    if parts.timeline.is_none() && format.is_of_recordings() {
        say(format_args!("note: a program JSON has no recorded times: only predicted runs are written"));
    }
    for part in parts.program.findings.iter().filter_map(excerpt::sentence) {
        say(format_args!("note: {part}"));
    }
    let cpus = args.cpus.clone().unwrap_or_else(|| format.usual_cpus());
    let about = about(&args.plan(), parts.meta.as_ref());
    let model = Model::new(parts.timeline.as_ref(), &parts.program, cpus, about).map_err(super::invalid)?;
    let most = (!args.input.part.whole).then_some(MOST_BYTES);
    if let Some(folder) = args.folder() {
        let write = |table, out: &mut dyn Write| format.write(&model, Some(table), most, out).map(drop);
        return to_folder(args, folder, overwrite, write);
    }
    let mut quantum_ns = 0;
    written(args, overwrite, |out| {
        quantum_ns = format.write(&model, args.table, most, out)?;
        Ok(())
    })?;
    if quantum_ns > 0 {
        let quantum = duration(quantum_ns as f64);
        say(format_args!(
            "note: to fit in {} MB, stretches shorter than {quantum} are joined, or left out and counted: --whole writes all, --from and --to a part with more detail",
            MOST_BYTES / 1_000_000
        ));
    }
    Ok(())
}

/// Facts about a recording's origin.
pub(super) fn about(input: &InputPlan, meta: Option<&Meta>) -> About {
    let name = match &input.source {
        Source::File(path) => path.file_name().map(|name| name.to_string_lossy().into_owned()),
        Source::Stdin | Source::Newest => None,
    };
    let known = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
    About {
        name: name.unwrap_or_else(|| "-".to_owned()),
        command: meta.and_then(|meta| known(&meta.command.join(" "))),
        host: meta.and_then(|meta| known(&meta.host)),
        longpole: meta.and_then(|meta| known(&meta.longpole_version)),
        clock: meta.map(|meta| (meta.clock.monotonic_ns, meta.clock.realtime_ns)).filter(|clock| clock.1 > 0),
    }
}

fn written(
    args: &ExportArguments,
    overwrite: Overwrite,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), UserError> {
    match is_dash(&args.output) {
        true => to_stdout(write),
        false => Ok(write_whole(&args.output, overwrite, write)?),
    }
}

/// Writes each table as a file. If one cannot be written, those written before are removed.
fn to_folder(
    args: &ExportArguments,
    folder: &Path,
    overwrite: Overwrite,
    write: impl Fn(&'static Table, &mut dyn Write) -> io::Result<()>,
) -> Result<(), UserError> {
    let is_new = make(folder).map_err(|error| recording::CreateError::io(folder, error))?;
    let files: Vec<PathBuf> = args.files().collect();
    for (number, (table, path)) in Table::ALL.iter().zip(&files).enumerate() {
        if let Err(error) = write_whole(path, overwrite, |out| write(table, out)) {
            for path in files.iter().take(number) {
                // A file that cannot be removed stays, and is complete.
                let _ = std::fs::remove_file(path);
            }
            if is_new {
                let _ = std::fs::remove_dir(folder);
            }
            return Err(error.into());
        }
    }
    Ok(())
}

/// Creates the folder if there is none. Under sudo the invoking user owns it. Returns whether it is new.
fn make(folder: &Path) -> io::Result<bool> {
    match DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error),
        Ok(()) => {
            if let Some(user) = SudoUser::from_environment() {
                user.give(&File::open(folder)?)?;
            }
            Ok(true)
        }
    }
}

impl ExportArguments {
    /// The input. Data formats have all of it; formats for viewing or analysis have the same part as a report.
    fn plan(&self) -> InputPlan {
        let mut plan = self.input.plan();
        plan.part.whole |= self.format.is_none_or(Format::has_tables);
        plan
    }

    /// The folder for tables, if all tables are written.
    fn folder(&self) -> Option<&Path> {
        let has_all = self.format.is_some_and(Format::has_tables) && self.table.is_none();
        (has_all && !is_dash(&self.output)).then_some(&self.output)
    }

    /// The files to be written; tables in their order.
    fn files(&self) -> impl Iterator<Item = PathBuf> + '_ {
        let end = self.format.map_or("", Format::name);
        let tables = self.folder().into_iter().flat_map(move |folder| {
            Table::ALL.iter().map(move |table| folder.join(format!("{}.{end}", table.name)))
        });
        let is_one = self.folder().is_none() && !is_dash(&self.output);
        let one = is_one.then(|| self.output.clone());
        tables.chain(one)
    }
}
