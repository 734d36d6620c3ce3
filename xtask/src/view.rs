//! `./x view`: makes the page of `longpole view` again from `view/`, or checks that the checked-in page is what its
//! sources give.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result};

use crate::command;
use crate::workspace::Workspace;

/// The folder of the checked-in pages. Their names are below: the pages of `longpole view` and of `top --listen`.
const FOLDER: &str = "collector/embedded/page";
const PAGES: [&str; 2] = ["page.html", "live.html"];

/// `./x view`
#[derive(clap::Args)]
pub struct Options {
    /// Only compare what is checked in with what the sources give
    #[arg(long, conflicts_with = "pictures")]
    check: bool,
    /// Only draw the documents' pictures, with Chromium (`CHROMIUM`, else /usr/bin/chromium)
    #[arg(long)]
    pictures: bool,
}

/// The pictures: the recording, the file in docs/, and the page's state as a link.
const PICTURES: [(&str, &str, &str); 1] = [(
    "store",
    "view.png",
    "#cpus=2&t=300000000-304000000&at=measured,2,300500000&tab=functions&theme=light",
)];

/// Makes or checks the page.
///
/// # Errors
/// There is no Node.js, its packages cannot be downloaded, or the sources do not compile.
pub fn run(options: &Options) -> Result<ExitCode> {
    let workspace = Workspace::find();
    if options.check {
        let complaints = compare(&workspace)?.map_err(anyhow::Error::msg)?;
        complaints.iter().for_each(|complaint| eprintln!("{complaint}"));
        return Ok(if complaints.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE });
    }
    packages(&workspace)?.map_err(anyhow::Error::msg)?;
    match options.pictures {
        true => pictures(&workspace)?,
        false => make(&workspace, &workspace.root.join(FOLDER))?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Draws [`PICTURES`] with the longpole binary in target/release.
fn pictures(workspace: &Workspace) -> Result<()> {
    for (recording, picture, link) in PICTURES {
        let page = workspace.target.join("picture.html");
        let recording = workspace.root.join("tests/data/recordings").join(recording).with_extension("lp");
        let mut view = Command::new(workspace.target.join("release/longpole"));
        view.args(["view", "--no-open", "--force", "-o"]).arg(&page).arg(recording);
        command::must(&mut view, "longpole view")?;
        let mut drive = node(workspace);
        drive
            .args(["test/drive.mjs", "pictures"])
            .arg(&page)
            .arg(workspace.root.join("docs").join(picture))
            .arg(link);
        command::must(drive.env("CHROMIUM", chromium()), "drawing")?;
    }
    Ok(())
}

fn chromium() -> OsString {
    std::env::var_os("CHROMIUM").unwrap_or_else(|| "/usr/bin/chromium".into())
}

/// The speed of a page, in milliseconds.
#[derive(serde::Deserialize)]
pub struct Speed {
    /// Time from the start until the page can be used, in milliseconds.
    pub ready_ms: f64,
    /// Median time of drawing the page once, in milliseconds.
    pub median_ms: f64,
    /// Longest time of drawing the page once, in milliseconds.
    pub worst_ms: f64,
}

/// Opens a page, moves it, and measures its speed. `None` if there is no Node.js or Chromium.
///
/// # Errors
/// The page does not work.
pub fn speed(workspace: &Workspace, page: &Path) -> Result<Option<Speed>> {
    let chromium = chromium();
    if packages(workspace)?.is_err() || !Path::new(&chromium).exists() {
        return Ok(None);
    }
    let mut drive = node(workspace);
    drive.args(["test/drive.mjs", "speed"]).arg(page).env("CHROMIUM", chromium);
    Ok(Some(serde_json::from_str(&command::text(&mut drive)?)?))
}

/// Compares the pages with the checked-in ones and runs the page's own tests. Returns the complaints, or why this
/// machine cannot make the pages.
///
/// # Errors
/// The sources do not compile.
pub fn compare(workspace: &Workspace) -> Result<Result<Vec<String>, String>> {
    if let Err(reason) = packages(workspace)? {
        return Ok(Err(reason));
    }
    let made = workspace.target.join("pages");
    std::fs::create_dir_all(&made).context("the folder for the pages")?;
    make(workspace, &made)?;
    let mut complaints = Vec::new();
    for page in PAGES {
        let kept = workspace.root.join(FOLDER).join(page);
        if std::fs::read(made.join(page)).ok() != std::fs::read(&kept).ok() {
            complaints.push(format!("{FOLDER}/{page} is not what its sources give: `./x view` renews it"));
        }
    }
    let mut tests = node(workspace);
    tests.arg("test/run.mjs");
    if let Err(error) = command::must(&mut tests, "the page's own tests") {
        complaints.push(format!("{error:#}"));
    }
    Ok(Ok(complaints))
}

/// Installs the packages of `view/package-lock.json`, unless they are installed already.
fn packages(workspace: &Workspace) -> Result<Result<(), String>> {
    let folder = workspace.root.join("view");
    let is_there =
        |program: &str| Command::new(program).arg("--version").output().is_ok_and(|out| out.status.success());
    for program in ["node", "npm"] {
        if !is_there(program) {
            return Ok(Err(format!("there is no {program} here")));
        }
    }
    let lock = std::fs::read(folder.join("package-lock.json")).context("view/package-lock.json")?;
    let mark: PathBuf = folder.join("node_modules/.longpole-lock");
    if std::fs::read(&mark).is_ok_and(|installed| installed == lock) {
        return Ok(Ok(()));
    }
    let mut install = Command::new("npm");
    install.args(["ci", "--no-audit", "--no-fund", "--silent"]).current_dir(&folder);
    if let Err(error) = command::must(&mut install, "npm ci") {
        return Ok(Err(format!("the page's tools cannot be had: {error:#}")));
    }
    std::fs::write(&mark, lock).context("view/node_modules cannot be written")?;
    Ok(Ok(()))
}

fn make(workspace: &Workspace, to: &Path) -> Result<()> {
    let mut types = node(workspace);
    types.args(["node_modules/typescript/bin/tsc", "--noEmit"]);
    command::must(&mut types, "types of the page")?;
    command::must(node(workspace).arg("build.mjs").arg(to), "the page")
}

fn node(workspace: &Workspace) -> Command {
    let mut node = Command::new("node");
    node.current_dir(workspace.root.join("view"));
    node
}
