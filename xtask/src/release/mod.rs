//! `./x release`: makes a static longpole, and packs it as an archive, a `.deb` and an `.rpm`. The same sources give
//! the same bytes.

mod packages;
mod program;
mod tree;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};

use crate::command;
use crate::workspace::Workspace;

/// What to make.
#[derive(clap::Args)]
pub struct Options {
    /// Makes all of it a second time from a clone in another folder, and compares the bytes
    #[arg(long)]
    twice: bool,
}

/// The files of a release.
pub struct Release {
    /// longpole's version, such as `0.1.0`.
    version: &'static str,
    /// Time of the last commit, in seconds since 1970. All files in archives and packages get this time.
    time: String,
    /// The folder for the archive and the packages.
    folder: PathBuf,
    /// The folder with the installed files. This folder corresponds to the root folder of a machine.
    tree: PathBuf,
}

/// Makes the archive, the packages and their checksums in `target/packages`.
///
/// # Errors
/// A tool is missing, the program does not compile, or two builds differ.
pub fn run(options: &Options) -> Result<ExitCode> {
    let workspace = Workspace::find();
    let folder = make(&workspace)?;
    if options.twice {
        let again = tempfile::tempdir().context("a folder for the second build")?;
        let clone = again.path().join("another-name");
        command::text(Command::new("git").arg("clone").arg("--quiet").arg(&workspace.root).arg(&clone))?;
        let second = make(&Workspace { target: clone.join("target"), root: clone })?;
        compare(&folder, &second)?;
        println!("the second build has the same bytes");
    }
    Ok(ExitCode::SUCCESS)
}

fn make(workspace: &Workspace) -> Result<PathBuf> {
    let mut git = Command::new("git");
    git.current_dir(&workspace.root).args(["log", "-1", "--format=%ct"]);
    let release = Release {
        version: env!("CARGO_PKG_VERSION"),
        time: command::text(&mut git)?.trim().to_owned(),
        folder: workspace.target.join("packages"),
        tree: workspace.target.join("packages-tree"),
    };
    for folder in [&release.folder, &release.tree] {
        if folder.exists() {
            std::fs::remove_dir_all(folder).with_context(|| folder.display().to_string())?;
        }
        std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    }
    let program = program::build(workspace, &release.time)?;
    tree::fill(workspace, &release, &program)?;
    packages::archive(&release)?;
    packages::deb(workspace, &release)?;
    packages::rpm(workspace, &release)?;
    packages::checksums(&release)?;
    println!("{}", command::text(Command::new("ls").args(["-l", "--"]).arg(&release.folder))?);
    Ok(release.folder)
}

/// Compares two folders. The error names the files that differ or that only one folder has.
fn compare(first: &Path, second: &Path) -> Result<()> {
    let sums = |folder: &Path| {
        let file = folder.join(packages::CHECKSUMS);
        std::fs::read_to_string(&file).with_context(|| file.display().to_string())
    };
    let (first, second) = (sums(first)?, sums(second)?);
    if first != second {
        bail!("two builds of the same sources differ:\n{first}{second}");
    }
    Ok(())
}
