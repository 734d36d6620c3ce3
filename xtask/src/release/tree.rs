//! Collects the files to install: the program, its manual pages, completions for shells, and documents.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use super::Release;
use crate::command;
use crate::workspace::Workspace;

/// Completion scripts: the shell, and the script's path below `/usr/share`.
const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "bash-completion/completions/longpole"),
    ("zsh", "zsh/vendor-completions/_longpole"),
    ("fish", "fish/vendor_completions.d/longpole.fish"),
];

/// Documents that are installed with the program.
const DOCUMENTS: [&str; 5] = ["README.md", "CHANGELOG.md", "SECURITY.md", "LICENSE-MIT", "LICENSE-APACHE"];

/// Writes all files into the release's tree, with their modes and times.
///
/// # Errors
///
/// The program does not run on this machine, or a file cannot be written.
pub fn fill(workspace: &Workspace, release: &Release, program: &Path) -> Result<()> {
    let (bin, share) = (release.tree.join("usr/bin"), release.tree.join("usr/share"));
    let (man, documents) = (share.join("man/man1"), share.join("doc/longpole"));
    for folder in [&bin, &man, &documents] {
        fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    }
    let installed = bin.join("longpole");
    fs::copy(program, &installed).with_context(|| program.display().to_string())?;
    command::text(Command::new(&installed).arg("man").arg(&man))?;
    for page in fs::read_dir(&man).context("manual pages")? {
        // With -n, gzip stores neither name nor time.
        command::text(Command::new("gzip").args(["-9", "-n"]).arg(page.context("manual pages")?.path()))?;
    }
    for (shell, place) in COMPLETIONS {
        let file = share.join(place);
        if let Some(folder) = file.parent() {
            fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
        }
        let script = command::text(Command::new(&installed).args(["completions", shell]))?;
        fs::write(&file, script).with_context(|| file.display().to_string())?;
    }
    for name in DOCUMENTS {
        fs::copy(workspace.root.join(name), documents.join(name)).with_context(|| name.to_owned())?;
    }
    // The modes must not depend on this user's umask.
    command::text(Command::new("chmod").args(["-R", "u=rwX,go=rX"]).arg(&release.tree))?;
    let time = format!("--date=@{}", release.time);
    command::text(Command::new("find").arg(&release.tree).args([
        "-exec",
        "touch",
        "--no-dereference",
        &time,
        "{}",
        "+",
    ]))?;
    Ok(())
}
