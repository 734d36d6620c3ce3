//! The file that `record` writes to, and how a ring is saved.

use super::destination::{Destination, Part, Written};
use super::ring_file::{Names, RingFile};
use super::saved::Saved;
use crate::cell::{bytes, counted, duration};
use crate::exit::{UserError, say};
use crate::live::main_loop::Saving;
use crate::live::rings::Triggers;
use crate::plan::RecordPlan;
use crate::plan::keep::{Keep, MOST_RING_BYTES, RingPlan};
use crate::present::style::{self, Paint};
use engine::event::Facts;
use recording::{Generations, Meta, Older, Overwrite, TwoFiles, Writer, create_file, create_unused};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// See the module.
pub struct Output {
    /// Where records are kept.
    pub destination: Destination,
    /// The conditions that make a ring save itself; `None` without a ring.
    pub saving: Option<Saving>,
    /// The file; for a ring, the first file.
    pub path: PathBuf,
}

/// Creates the file and writes description and facts. If the plan has no name, the file has `usual` or the next free name.
///
/// # Errors
/// The file cannot be created, or there is no room for these.
pub fn open(plan: &RecordPlan, meta: Meta, facts: &Facts, usual: PathBuf) -> Result<Output, UserError> {
    let overwrite = if plan.force { Overwrite::AnyFile } else { Overwrite::Nothing };
    if let Keep::Ring(ring) = &plan.keep {
        let first = plan.output.as_ref().map(|_| overwrite);
        let names = Names { file: plan.output.clone().unwrap_or(usual), first };
        return ring_in_memory(ring, meta, facts, names);
    }
    let (file, path) = match &plan.output {
        Some(path) => (create_file(path, overwrite)?, path.clone()),
        None => create_unused(&usual)?,
    };
    let destination = begun(plan, file, &path, &meta, facts).map_err(|error| {
        // The new file is empty, and would be in the way of the next try.
        let _ = std::fs::remove_file(&path);
        let hint = match (&plan.keep, error.kind()) {
            (Keep::Newest { .. }, io::ErrorKind::FileTooLarge) => "give a larger --max-size",
            _ => "free some space, or give a file on another disk: -o FILE",
        };
        UserError::runtime(format!("cannot write {}: {error}", path.display()), hint)
    })?;
    Ok(Output { destination, saving: None, path })
}

fn begun(plan: &RecordPlan, file: File, path: &Path, meta: &Meta, facts: &Facts) -> io::Result<Destination> {
    if let Keep::Newest { most_bytes } = plan.keep {
        let generations = Generations::new(TwoFiles::new(path), file, meta, facts, most_bytes)?;
        return Ok(Destination::Newest(Box::new(generations)));
    }
    let mut writer = Writer::new(file, meta)?;
    writer.facts(facts)?;
    Ok(writer.into())
}

fn ring_in_memory(ring: &RingPlan, meta: Meta, facts: &Facts, names: Names) -> Result<Output, UserError> {
    let (wanted, path) = (Arc::new(AtomicBool::new(false)), names.file.clone());
    let size = (ring.span, MOST_RING_BYTES);
    let file = RingFile::new(facts, size, meta, names, Arc::clone(&wanted))
        .map_err(|error| UserError::runtime(format!("cannot keep a ring: {error}"), "free some memory"))?;
    let triggers = Triggers::new(&ring.triggers, facts);
    let saving = Saving { wanted, triggers, tell: Box::new(tell) };
    Ok(Output { destination: Destination::Ring(Box::new(file)), saving: Some(saving), path })
}

/// Reports that a ring was saved before the end, or why not; the ring goes on.
fn tell(saved: &Result<Box<Saved>, UserError>) {
    let style = style::for_stderr();
    match saved {
        Ok(saved) => {
            let Saved { path, reason, summary, length, is_cut: _ } = &**saved;
            let length = duration(length.as_nanos() as f64);
            let size = bytes(summary.bytes);
            let text = format!("saved {}: the last {length}, {size} ({reason})", path.display());
            say(style.text(&text));
        }
        Err(error) => {
            say(style.paint(Paint::Warning, &style.text(&format!("! not saved: {}", error.message))));
            say(style.text(&format!("hint: {}", error.hint)));
        }
    }
}

/// Says which files a recording has that the user broke off, if there may be more than one.
pub fn broken_off_text(keep: &Keep, path: &Path) -> Option<String> {
    let Keep::Newest { .. } = keep else { return None };
    let file = path.display();
    Some(format!(
        "! not joined: {file} has the newest part; the file -older next to {file} has the part before"
    ))
}

/// Says which part of the recording was kept, for the summary. `None`: all of it.
pub fn kept_text(keep: &Keep, written: &Written, saved: &[PathBuf]) -> Option<String> {
    let Part::Last { length, is_cut } = written.part else { return None };
    let mut text = format!("the last {}", duration(length.as_nanos() as f64));
    match keep {
        Keep::Ring(_) if is_cut => {
            text.push_str(&format!(
                ": there was no room for more in {} MiB of memory",
                MOST_RING_BYTES >> 20
            ));
        }
        Keep::Newest { most_bytes } if is_cut => {
            text.push_str(&format!(": there was no room for more in {}", bytes(*most_bytes)));
        }
        _ => {}
    }
    match &written.older {
        Older::Joined => {}
        Older::Apart(path) => {
            let path = path.display();
            text.push_str(&format!("; the part before is in {path}, since both could not be joined"));
        }
        Older::Removed => text.push_str("; another program removed the file with the part before"),
    }
    if let [one] = saved {
        text.push_str(&format!("; saved before to {}", one.display()));
    } else if !saved.is_empty() {
        text.push_str(&format!("; saved before to {}", counted(saved.len(), "file")));
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn the_summary_of_a_cut_recording_names_the_file_of_the_older_part() {
        let said = |is_cut, older| {
            let part = Part::Last { length: Duration::from_secs(5), is_cut };
            let keep = Keep::Newest { most_bytes: 1 << 20 };
            kept_text(&keep, &Written { part, older, ..Written::default() }, &[]).unwrap_or_default()
        };
        let apart = said(true, Older::Apart("a-older-2.lp".into()));
        assert!(apart.contains("there was no room for more in") && apart.contains(" in a-older-2.lp, since"));
        assert!(said(false, Older::Removed).ends_with("removed the file with the part before"));
        assert!(!said(true, Older::Joined).contains("the part before"));
    }

    #[test]
    fn an_aborted_recording_names_both_of_its_files() {
        let said = |keep| broken_off_text(&keep, Path::new("a.lp"));
        let both = said(Keep::Newest { most_bytes: 1 << 20 }).expect("two files");
        assert!(both.contains("a.lp") && both.contains("-older"));
        assert_eq!(said(Keep::All), None);
    }
}
