//! Makes the archive and the packages, each with the tool of its distribution. All files get the same time and the same
//! owner.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};

use super::Release;
use crate::command;
use crate::workspace::Workspace;

/// Name of the file with checksums.
pub const CHECKSUMS: &str = "SHA256SUMS";

/// Makes `longpole-VERSION-x86_64-linux.tar.gz`. Users unpack it below `/usr/local` or in a home folder.
///
/// # Errors
/// tar or gzip fails.
pub fn archive(release: &Release) -> Result<()> {
    let name = format!("longpole-{}-x86_64-linux", release.version);
    let archive = release.folder.join(format!("{name}.tar"));
    let mut tar = Command::new("tar");
    tar.args(["--create", "--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--format=gnu"])
        .arg(format!("--mtime=@{}", release.time))
        .arg(format!("--transform=s,^usr,{name},"))
        .arg("--file")
        .arg(&archive)
        .arg("--directory")
        .arg(&release.tree)
        .arg("usr");
    command::text(&mut tar)?;
    command::text(Command::new("gzip").args(["-9", "-n"]).arg(&archive))?;
    Ok(())
}

/// Makes the Debian package, if dpkg-deb is installed.
///
/// # Errors
/// dpkg-deb fails, or a file cannot be written.
pub fn deb(workspace: &Workspace, release: &Release) -> Result<()> {
    if !is_there("dpkg-deb") {
        return Ok(());
    }
    let own = release.tree.join("DEBIAN");
    fs::create_dir_all(&own).context("DEBIAN")?;
    for name in ["control", "postinst"] {
        let file = own.join(name);
        fs::write(&file, template(workspace, release, name)?).with_context(|| file.display().to_string())?;
    }
    command::text(Command::new("chmod").args(["-R", "u=rwX,go=rX"]).arg(&own))?;
    command::text(Command::new("chmod").arg("755").arg(own.join("postinst")))?;
    let package = release.folder.join(format!("longpole_{}_amd64.deb", release.version));
    let mut build = Command::new("dpkg-deb");
    // One thread, because the packed bytes depend on the number of threads.
    build.args(["--root-owner-group", "--threads-max=1", "-Zxz", "--build"]).arg(&release.tree).arg(&package);
    build.env("SOURCE_DATE_EPOCH", &release.time);
    command::text(&mut build)?;
    fs::remove_dir_all(&own).context("DEBIAN")?;
    Ok(())
}

/// Makes the RPM package, if rpmbuild is installed.
///
/// # Errors
/// rpmbuild fails, or a file cannot be written.
pub fn rpm(workspace: &Workspace, release: &Release) -> Result<()> {
    if !is_there("rpmbuild") {
        return Ok(());
    }
    let scratch = tempfile::tempdir().context("a folder for rpmbuild")?;
    let spec = scratch.path().join("longpole.spec");
    fs::write(&spec, template(workspace, release, "longpole.spec")?).context("the spec file")?;
    let mut build = Command::new("rpmbuild");
    build.args(["-bb", "--quiet", "--target", "x86_64"]);
    for (name, folder) in [
        ("_topdir", scratch.path().join("top")),
        ("_rpmdir", release.folder.clone()),
        ("_tmppath", scratch.path().into()),
    ] {
        build.arg("--define").arg(format!("{name} {}", folder.display()));
    }
    build.args(["--define", "_rpmfilename %{NAME}-%{VERSION}-%{RELEASE}.%{ARCH}.rpm"]).arg(&spec);
    build.env("SOURCE_DATE_EPOCH", &release.time);
    command::text(&mut build)?;
    Ok(())
}

/// Writes the SHA-256 of each file, in the form that `sha256sum --check` reads.
///
/// # Errors
/// sha256sum fails, or the file cannot be written.
pub fn checksums(release: &Release) -> Result<()> {
    let mut names: Vec<PathBuf> = Vec::new();
    for entry in fs::read_dir(&release.folder).context("the folder of packages")? {
        names.push(entry.context("the folder of packages")?.file_name().into());
    }
    names.sort();
    let sums = command::text(Command::new("sha256sum").args(&names).current_dir(&release.folder))?;
    fs::write(release.folder.join(CHECKSUMS), sums).context(CHECKSUMS)
}

/// The text of a file in `xtask/packages`, with its variables replaced.
fn template(workspace: &Workspace, release: &Release, name: &str) -> Result<String> {
    let file = workspace.root.join("xtask/packages").join(name);
    let text = fs::read_to_string(&file).with_context(|| file.display().to_string())?;
    Ok(text.replace("@VERSION@", release.version).replace("@TREE@", &release.tree.display().to_string()))
}

fn is_there(program: &str) -> bool {
    let there = Command::new(program).arg("--version").output().is_ok();
    if !there {
        println!("no {program} here: that package is left out");
    }
    there
}
