//! The two files of a recording that keeps only the newest part: FILE, and an older file next to it.

use super::v1::Shelf;
use super::{CreateError, Overwrite, create_file, create_unused, write_whole};
use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// The two files of a recording that keeps only the newest part; see the module's documentation.
pub struct TwoFiles {
    path: PathBuf,
    older: Option<PathBuf>,
}

impl TwoFiles {
    /// The pair of files for FILE, which exists already.
    pub fn new(path: &Path) -> TwoFiles {
        TwoFiles { path: path.to_path_buf(), older: None }
    }

    /// Path of the older file: `a-older.lp` if FILE is `a.lp`.
    fn name_of_older(&self) -> PathBuf {
        let mut name = self.path.file_stem().unwrap_or_default().to_os_string();
        name.push("-older");
        if let Some(extension) = self.path.extension() {
            name.push(".");
            name.push(extension);
        }
        self.path.with_file_name(name)
    }
}

impl Shelf for TwoFiles {
    type Disk = File;

    fn turn(&mut self) -> io::Result<File> {
        match &self.older {
            Some(older) => std::fs::rename(&self.path, older)?,
            // From here on the name belongs to this recording, so later steps replace no file of another one.
            None => {
                let (_, older) = create_unused(&self.name_of_older()).map_err(system)?;
                let renamed = std::fs::rename(&self.path, &older);
                renamed.inspect_err(|_| drop(std::fs::remove_file(&older)))?;
                self.older = Some(older);
            }
        }
        create_file(&self.path, Overwrite::Nothing).map_err(system)
    }

    fn read(&self, newer_from: u64) -> io::Result<(Box<dyn Read>, Box<dyn Read>)> {
        let older = self.older.as_deref().ok_or(io::ErrorKind::NotFound)?;
        let mut newer = File::open(&self.path)?;
        newer.seek(SeekFrom::Start(newer_from))?;
        Ok((Box::new(BufReader::new(File::open(older)?)), Box::new(BufReader::new(newer))))
    }

    fn replace(&mut self, write: &mut dyn FnMut(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
        write_whole(&self.path, Overwrite::AnyFile, |out| write(out)).map_err(system)?;
        if let Some(older) = self.older.take() {
            // FILE contains everything. So it is no error if the older file is already gone or cannot be removed.
            let _ = std::fs::remove_file(older);
        }
        Ok(())
    }

    fn older(&self) -> Option<PathBuf> {
        self.older.clone().filter(|older| older.exists())
    }
}

fn system(error: CreateError) -> io::Error {
    io::Error::other(error)
}
