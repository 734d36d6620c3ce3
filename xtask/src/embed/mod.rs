//! Files that the binary embeds: the kernel programs, and the library that launched programs load before libc. The
//! files are checked in under `capture/embedded/ARCH/`, so that building longpole needs only stable Rust. `./x embed`
//! makes them again from their sources. The same sources give the same bytes in any folder; `./x test` checks this.

mod kernel;
mod library;
mod linker;
mod provided;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use longpole_tests::workload::fnv;

pub use kernel::lints;
pub use provided::Provided;

use crate::toolchain::Toolchain;
use crate::workspace::Workspace;

const KERNEL: &str = "probe-ebpf.o";
const LIBRARY: &str = "longpole-preload.so";
/// Name of the file with the digest of the sources from which both embedded files were made.
const SOURCES: &str = "sources";
/// Endings of files that are sources.
const ENDINGS: [&str; 4] = ["rs", "toml", "map", "ld"];
/// The folders of these sources. Changes in other places can also change the bytes, such as a change of the profile
/// `preload`. Only [`compare`] notices those.
const INPUTS: [&str; 4] = ["probe-abi", "probe-ebpf", "probe-preload", "rust-toolchain.toml"];

/// What to do.
#[derive(clap::Args)]
pub struct Options {
    /// Writes nothing: only compares what the sources give with what is checked in
    #[arg(long)]
    check: bool,
}

/// Runs `./x embed`.
///
/// # Errors
/// Something does not compile, or cannot be written.
pub fn run(options: &Options) -> Result<ExitCode> {
    let workspace = Workspace::find();
    let outcome = if options.check {
        compare(&workspace)?
    } else {
        renew(&workspace)?.map(|()| {
            println!("{}", folder(&workspace).display());
            Vec::new()
        })
    };
    let complaints = outcome.unwrap_or_else(|reason| vec![reason]);
    complaints.iter().for_each(|line| eprintln!("xtask: {line}"));
    Ok(if complaints.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Makes both embedded files again if their sources have changed, and prints that. The inner error says why this is
/// impossible, and that the embedded files come from other sources.
///
/// # Errors
///
/// The sources do not compile, or the files cannot be written.
pub fn bring_up_to_date(workspace: &Workspace) -> Result<Provided<()>> {
    if is_current(workspace)? {
        return Ok(Ok(()));
    }
    eprintln!(
        "the sources of the kernel programs or of the preloaded library have changed: making both anew"
    );
    let renewed = renew(workspace)?;
    if renewed.is_ok() {
        eprintln!("commit {} with the sources", folder(workspace).display());
    }
    Ok(renewed.map_err(|reason| format!("what is embedded is of other sources: {reason}")))
}

/// Whether the checked-in files were made from the present sources.
///
/// # Errors
/// The sources cannot be read.
pub fn is_current(workspace: &Workspace) -> Result<bool> {
    let kept = std::fs::read_to_string(folder(workspace).join(SOURCES)).unwrap_or_default();
    Ok(kept.trim() == digest(workspace)?)
}

/// Builds both embedded files, and compares them byte by byte with the checked-in files. Returns the differences, and
/// what to do about them.
///
/// # Errors
///
/// The sources do not compile.
pub fn compare(workspace: &Workspace) -> Result<Provided<Vec<String>>> {
    if !folder(workspace).is_dir() {
        return Ok(Err(format!("nothing is checked in for {}", std::env::consts::ARCH)));
    }
    let made = match make(workspace)? {
        Ok(made) => made,
        Err(reason) => return Ok(Err(reason)),
    };
    let mut complaints = Vec::new();
    for (name, path) in made.files() {
        let kept = folder(workspace).join(name);
        if std::fs::read(path).ok() != std::fs::read(&kept).ok() {
            complaints
                .push(format!("{} is not what its sources give: `./x embed` renews it", kept.display()));
        }
    }
    if complaints.is_empty() && !is_current(workspace)? {
        complaints.push("the sources have changed, what they give has not: `./x embed` notes that".into());
    }
    Ok(Ok(complaints))
}

fn renew(workspace: &Workspace) -> Result<Provided<()>> {
    // The digest is computed before compiling, so that a change during compiling is noticed the next time.
    let digest = digest(workspace)?;
    let made = match make(workspace)? {
        Ok(made) => made,
        Err(reason) => return Ok(Err(reason)),
    };
    let folder = folder(workspace);
    std::fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let note = folder.join(SOURCES);
    // The digest is removed until both files are complete. A single new file must not count as made from these sources.
    drop(std::fs::remove_file(&note));
    for (name, path) in made.files() {
        let to = folder.join(name);
        let bytes = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
        std::fs::write(&to, bytes).with_context(|| format!("cannot write {}", to.display()))?;
    }
    std::fs::write(&note, digest + "\n").with_context(|| format!("cannot write {}", note.display()))?;
    Ok(Ok(()))
}

/// Both embedded files after building, under `target`.
struct Made {
    kernel: PathBuf,
    library: PathBuf,
}

impl Made {
    fn files(&self) -> [(&'static str, &Path); 2] {
        [(KERNEL, &self.kernel), (LIBRARY, &self.library)]
    }
}

fn make(workspace: &Workspace) -> Result<Provided<Made>> {
    if let Err(reason) = Toolchain::ask(workspace)?.is_pinned(workspace)? {
        return Ok(Err(reason));
    }
    let library = match library::make(workspace)? {
        Ok(library) => library,
        Err(reason) => {
            return Ok(Err(format!("the library to put before libc cannot be built here: {reason}")));
        }
    };
    Ok(match kernel::make(workspace)? {
        Ok(kernel) => Ok(Made { kernel, library }),
        Err(reason) => Err(format!("the kernel programs cannot be built here: {reason}")),
    })
}

fn folder(workspace: &Workspace) -> PathBuf {
    workspace.root.join("capture/embedded").join(std::env::consts::ARCH)
}

/// Digest of all sources, in the order of their paths.
fn digest(workspace: &Workspace) -> Result<String> {
    let mut files = Vec::new();
    for input in INPUTS {
        collect(&workspace.root.join(input), &mut files)?;
    }
    files.sort();
    let mut bytes = Vec::new();
    for path in files {
        bytes.extend(path.strip_prefix(&workspace.root).unwrap_or(&path).as_os_str().as_encoded_bytes());
        bytes.extend(std::fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?);
    }
    Ok(format!("{:016x}", fnv(&bytes)))
}

fn collect(path: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    if !path.is_dir() {
        files.push(path.to_owned());
        return Ok(());
    }
    for entry in std::fs::read_dir(path).with_context(|| format!("cannot list {}", path.display()))? {
        let entry = entry.with_context(|| format!("cannot list {}", path.display()))?.path();
        let name = entry.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        // Files that editors put next to open files are ignored.
        let ours =
            entry.extension().and_then(|ending| ending.to_str()).is_some_and(|own| ENDINGS.contains(&own));
        let hidden = name.starts_with('.') && name != ".cargo";
        if !hidden && name != "target" && (ours || entry.is_dir()) {
            collect(&entry, files)?;
        }
    }
    Ok(())
}
