//! Writes the window on the live screen as a recording: `longpole report` then shows the same, and more.

use crate::cell::{counted, duration};
use crate::live::main_loop::Message;
use crate::threads::{behind_others, spawn};
use engine::event::Recording;
use recording::{CreateError, Meta, Writer, write_recording};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::mpsc::UnboundedSender;

/// Where windows are written as files.
#[derive(Clone, Debug)]
pub struct WindowFile {
    /// The recordings' description.
    pub meta: Meta,
    /// Name of the first file; later ones get a number.
    pub name: PathBuf,
}

impl WindowFile {
    /// Writes the recording in a separate thread, which sends a message at the end: a slow disk does not stop the
    /// screen.
    pub fn write(&self, recording: Arc<Recording>, messages: &UnboundedSender<Message>) {
        let (file, tell) = (self.clone(), messages.clone());
        let written = spawn("window", messages.clone(), (), move || {
            behind_others();
            let text = match file.written(&recording) {
                Ok(path) => sentence(&path, &recording),
                Err(error) => format!("not written: {error} ({})", error.hint()),
            };
            // The main loop may have ended already.
            let _ = tell.send(Message::Answer(text));
        });
        if let Err(error) = written {
            let _ = messages.send(Message::Answer(format!("not written: {error}")));
        }
    }

    fn written(&self, recording: &Recording) -> Result<PathBuf, CreateError> {
        let (writer, path) = Writer::create_unused(&self.name, &self.meta)?;
        write_recording(writer, recording).map_err(|error| CreateError::io(&path, error))?;
        Ok(path)
    }
}

fn sentence(path: &Path, recording: &Recording) -> String {
    let end_ns = recording.facts.end.as_ref().map_or(0, |end| end.end_ns);
    let length = duration(end_ns.saturating_sub(recording.facts.start_ns) as f64);
    let events = counted(recording.events.len(), "event");
    format!("{} has these {length}, {events}", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::{Asked, snapshot};
    use crate::tui::CpuWish;
    use engine::report::Cpus;
    use recording::ClockAnchor;
    use tokio::sync::mpsc::unbounded_channel;

    #[test]
    fn a_written_window_gives_the_same_report() {
        let folder = tempfile::tempdir().expect("folder");
        let kept = format!("{}/../tests/data/recordings/store.lp", env!("CARGO_MANIFEST_DIR"));
        let (seen, _) = recording::read(kept.as_ref()).expect("a recording");
        let seen = Arc::new(seen);
        let name = folder.path().join("window.lp");
        let file = WindowFile { meta: Meta::of_this_machine(ClockAnchor::default()), name: name.clone() };
        let (messages, mut inbox) = unbounded_channel();
        let mut answer = || {
            file.write(Arc::clone(&seen), &messages);
            let Some(Message::Answer(text)) = inbox.blocking_recv() else { panic!("no answer") };
            text
        };
        let [first, second] = [(); 2].map(|()| answer());
        assert!(
            first.contains("window.lp has these") && second.contains("window-2.lp has"),
            "{first} {second}"
        );
        let (read, info) = recording::read(&name).expect("a recording");
        assert_eq!((&read.events, &read.notes, info.damage), (&seen.events, &seen.notes, None));
        let asked = Asked {
            cpus: [1, 2, 4].into_iter().filter_map(Cpus::count).collect(),
            recorded_cpus: Some(2),
            wish: CpuWish::default(),
            per: None,
        };
        let [before, after] = [&seen, &read].map(|recording| snapshot(recording, &asked, false));
        assert_eq!((before.report, before.limits), (after.report, after.limits));
        std::fs::remove_dir_all(folder.path()).expect("removed");
        let failed = answer();
        assert!(failed.starts_with("not written: "), "{failed}");
    }
}
