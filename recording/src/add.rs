//! Adds facts to an existing session file.

use super::v1::{self, FileLimits};
use engine::event::Facts;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Write};
use std::os::unix::fs::{MetadataExt, fchown};
use std::path::Path;

/// Adds facts to a complete session, and returns how many entries the file had no room for. The file is replaced in one
/// step: a reader sees either the old or the new file, and after an error the old one stays. Owner and permissions do
/// not change.
pub fn add_facts(path: &Path, facts: &Facts) -> io::Result<u64> {
    // The path of the real file: if `path` is a symbolic link, the link must stay and its target be replaced.
    let path = path.canonicalize()?;
    let folder = path.parent().unwrap_or(Path::new("/"));
    let source = File::open(&path)?;
    let metadata = source.metadata()?;
    let mut new = tempfile::Builder::new().prefix(".longpole-").suffix(".lp.tmp").tempfile_in(folder)?;
    let mut out = BufWriter::with_capacity(1 << 20, new.as_file_mut());
    let source = BufReader::with_capacity(1 << 20, source);
    let left_out = v1::add_facts(source, &mut out, facts, FileLimits::FILE)?;
    out.flush()?;
    drop(out);
    let file = new.as_file();
    let own = file.metadata()?;
    if (own.uid(), own.gid()) != (metadata.uid(), metadata.gid()) {
        fchown(file, Some(metadata.uid()), Some(metadata.gid()))?;
    }
    file.set_permissions(metadata.permissions())?;
    file.sync_all()?;
    new.persist(&path).map_err(|error| error.error)?;
    Ok(left_out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ClockAnchor, Meta, Overwrite, Writer};
    use engine::event::{FunctionFact, WindowEnd};
    use std::os::unix::fs::PermissionsExt;

    fn function(id: u32, name: &str) -> FunctionFact {
        FunctionFact { id, name: name.into(), ..FunctionFact::default() }
    }

    #[test]
    fn facts_added_to_a_session_leave_it_whole() {
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path().join("a.lp");
        let meta = Meta::of_this_machine(ClockAnchor::now(1));
        let mut writer = Writer::create(&path, Overwrite::Nothing, &meta).expect("created");
        let facts =
            Facts { start_ns: 5, functions: vec![function(1, "a"), function(2, "b")], ..Facts::default() };
        writer.facts(&facts).expect("facts");
        writer.finish(WindowEnd { end_ns: 9, ..WindowEnd::default() }).expect("finished");
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o640)).expect("mode");
        for _ in 0..2 {
            let more = Facts { functions: vec![function(2, "better")], ..Facts::default() };
            assert_eq!(add_facts(&path, &more).expect("added"), 0);
            let (recording, info) = crate::read(&path).expect("read");
            assert!(info.whole(), "{:?}", info.damage);
            assert_eq!(recording.facts.start_ns, 5);
            assert_eq!(recording.facts.end.map(|end| end.end_ns), Some(9));
            let names: Vec<_> = recording.facts.functions.iter().map(|f| f.name.as_str()).collect();
            assert_eq!(names, ["a", "better"]);
            assert_eq!(std::fs::metadata(&path).expect("there").mode() & 0o777, 0o640);
        }
        assert_eq!(std::fs::read_dir(folder.path()).expect("folder").count(), 1, "nothing else is left");
    }

    #[test]
    fn adding_facts_to_a_cut_session_changes_nothing() {
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path().join("a.lp");
        let meta = Meta::of_this_machine(ClockAnchor::now(1));
        Writer::create(&path, Overwrite::Nothing, &meta).expect("created").flush().expect("flushed");
        let before = std::fs::read(&path).expect("read");
        assert!(add_facts(&path, &Facts::default()).is_err());
        assert_eq!(std::fs::read(&path).expect("read"), before);
        assert_eq!(std::fs::read_dir(folder.path()).expect("folder").count(), 1);
    }
}
