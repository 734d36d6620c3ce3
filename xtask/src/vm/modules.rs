//! Finds the kernel modules that a virtual machine needs to reach the host's files, with their dependencies, in loading
//! order.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::packages::Kernel;

/// The modules that access to the root folder needs. A kernel without the module's file has the module built in.
const NEEDED: [&str; 2] = ["virtio_pci", "virtiofs"];

/// The contents of the modules to load, in loading order.
///
/// # Errors
/// A module cannot be read or decompressed.
pub fn needed(kernel: &Kernel) -> Result<Vec<Vec<u8>>> {
    let mut files = BTreeMap::new();
    find(&kernel.modules.join("kernel"), &mut files)?;
    let (mut loaded, mut contents) = (Vec::new(), Vec::new());
    for name in NEEDED {
        add(name, &files, &mut loaded, &mut contents)?;
    }
    Ok(contents)
}

/// Adds a module, after the modules on which it depends.
fn add(
    name: &str,
    files: &BTreeMap<String, PathBuf>,
    loaded: &mut Vec<String>,
    contents: &mut Vec<Vec<u8>>,
) -> Result<()> {
    let Some(file) = files.get(name).filter(|_| !loaded.iter().any(|one| one == name)) else {
        return Ok(());
    };
    let content = read(file)?;
    for dependency in dependencies(&content) {
        add(&dependency, files, loaded, contents)?;
    }
    loaded.push(name.to_owned());
    contents.push(content);
    Ok(())
}

/// Finds modules and their names. File names may have `-` where module names have `_`.
fn find(folder: &Path, files: &mut BTreeMap<String, PathBuf>) -> Result<()> {
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        if path.is_dir() {
            find(&path, files)?;
        } else if let Some((name, _)) =
            path.file_name().and_then(|name| name.to_str()).and_then(|name| name.split_once(".ko"))
        {
            files.insert(name.replace('-', "_"), path.clone());
        }
    }
    Ok(())
}

fn read(file: &Path) -> Result<Vec<u8>> {
    if file.extension().is_none_or(|ending| ending != "xz") {
        return fs::read(file).with_context(|| file.display().to_string());
    }
    let output = Command::new("xz").arg("-dc").arg(file).output().context("cannot start xz")?;
    if !output.status.success() {
        bail!("xz -dc {}: {}", file.display(), output.status);
    }
    Ok(output.stdout)
}

/// The field `depends=` in the section `.modinfo`. Each field of the section ends with a zero byte.
fn dependencies(module: &[u8]) -> Vec<String> {
    const FIELD: &[u8] = b"\0depends=";
    let Some(at) = module.windows(FIELD.len()).position(|bytes| bytes == FIELD) else { return Vec::new() };
    let field = module[at + FIELD.len()..].split(|byte| *byte == 0).next().unwrap_or_default();
    let names = String::from_utf8_lossy(field).replace('-', "_");
    names.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dependencies_are_read_from_the_modules_own_field() {
        let names = dependencies(b"\x7fELF\0license=GPL\0depends=fuse,virtio-ring\0name=virtiofs\0");
        assert_eq!(names, ["fuse", "virtio_ring"]);
        assert!(dependencies(b"\0depends=\0name=fuse\0").is_empty());
        assert!(dependencies(b"").is_empty());
    }
}
