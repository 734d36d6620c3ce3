//! `longpole export`

use super::output::to_stdout;
use crate::exit::{Outcome, UserError, say};
use crate::export::{About, Format, Model, Table};
use crate::input::{Input, Parts};
use crate::plan::{ExportPlan, InputPlan, OutputPlan};
use engine::program::json;
use recording::{Meta, Overwrite, SudoUser, check_file, write_whole};
use std::fs::{DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// Reads and writes in another format.
pub fn run(plan: &ExportPlan) -> Result<Outcome, UserError> {
    let overwrite = if plan.force { Overwrite::AnyFile } else { Overwrite::Devices };
    for path in plan.files() {
        // Reading and simulating may take long. A folder that is not there yet is made later.
        if plan.folder().is_none_or(Path::exists) {
            check_file(&path, overwrite)?;
        }
    }
    let input = Input::open(&plan.input)?;
    let parts = if plan.raw { input.raw() } else { input }.into_parts();
    parts.program.check().map_err(super::invalid)?;
    match plan.format {
        None => {
            let program = parts.program;
            drop(parts.timeline);
            written(plan, overwrite, |out| json::write(&program, out))?;
        }
        Some(format) => formatted(plan, overwrite, format, &parts)?,
    }
    Ok(Outcome::Done)
}

fn formatted(
    plan: &ExportPlan,
    overwrite: Overwrite,
    format: Format,
    parts: &Parts,
) -> Result<(), UserError> {
    if parts.timeline.is_none() && format.is_of_recordings() {
        say(format_args!(
            "note: a program JSON has no recorded times: only what the predicted runs show is written"
        ));
    }
    let cpus = plan.cpus.clone().unwrap_or_else(|| format.usual_cpus());
    let about = about(&plan.input, parts.meta.as_ref());
    let model = Model::new(parts.timeline.as_ref(), &parts.program, cpus, about).map_err(super::invalid)?;
    match plan.folder() {
        Some(folder) => {
            to_folder(plan, folder, overwrite, |table, out| format.write(&model, Some(table), out))
        }
        None => written(plan, overwrite, |out| format.write(&model, plan.table, out)),
    }
}

/// Which recording it is.
pub(super) fn about(input: &InputPlan, meta: Option<&Meta>) -> About {
    let name = match input {
        InputPlan::File(path) => path.file_name().map(|name| name.to_string_lossy().into_owned()),
        InputPlan::Stdin | InputPlan::Newest => None,
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
    plan: &ExportPlan,
    overwrite: Overwrite,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), UserError> {
    match &plan.output {
        OutputPlan::Stdout => to_stdout(write)?,
        OutputPlan::File(path) => write_whole(path, overwrite, write)?,
    }
    Ok(())
}

/// Writes each table as a file. If one cannot be written, those that were are taken away.
fn to_folder(
    plan: &ExportPlan,
    folder: &Path,
    overwrite: Overwrite,
    write: impl Fn(&'static Table, &mut dyn Write) -> io::Result<()>,
) -> Result<(), UserError> {
    let is_new = make(folder).map_err(|error| recording::CreateError::io(folder, error))?;
    let files: Vec<PathBuf> = plan.files().collect();
    for (number, (table, path)) in Table::ALL.iter().zip(&files).enumerate() {
        if let Err(error) = write_whole(path, overwrite, |out| write(table, out)) {
            for path in files.iter().take(number) {
                // What cannot be taken away stays whole.
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

/// Makes the folder if there is none; under sudo it belongs to the invoking user.
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

impl ExportPlan {
    /// Where tables go, if all of them are written.
    fn folder(&self) -> Option<&Path> {
        let has_all = self.format.is_some_and(Format::has_tables) && self.table.is_none();
        match &self.output {
            OutputPlan::File(path) if has_all => Some(path),
            _ => None,
        }
    }

    /// The files that are to be written, tables in their order.
    fn files(&self) -> impl Iterator<Item = PathBuf> + '_ {
        let end = self.format.map_or("", Format::name);
        let tables = self.folder().into_iter().flat_map(move |folder| {
            Table::ALL.iter().map(move |table| folder.join(format!("{}.{end}", table.name)))
        });
        let one = match &self.output {
            OutputPlan::File(path) if self.folder().is_none() => Some(path.clone()),
            _ => None,
        };
        tables.chain(one)
    }
}
