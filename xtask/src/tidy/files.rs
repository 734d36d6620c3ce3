//! Finds the sources that tidy checks: the files that git tracks or would track. So no build output is included.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use crate::command;
use crate::workspace::Workspace;

/// A text file of the workspace.
pub struct Source {
    /// Path relative to the workspace root, with `/`.
    pub path: String,
    /// The complete text of the file.
    pub text: String,
}

/// Extensions of files in this project that people write.
const EXTENSIONS: [&str; 8] = ["rs", "c", "cc", "cpp", "h", "sh", "toml", "md"];

/// Every source file of the workspace.
///
/// # Errors
/// A file or folder cannot be read.
pub fn sources(workspace: &Workspace) -> Result<Vec<Source>> {
    let mut list = Command::new("git");
    list.args(["ls-files", "--cached", "--others", "--exclude-standard"]).current_dir(&workspace.root);
    let paths = match command::text(&mut list) {
        Ok(paths) => paths.lines().map(str::to_owned).collect(),
        // There is no git repository, as in an unpacked archive.
        Err(_) => walk(&workspace.root)?,
    };
    let mut sources = Vec::new();
    for path in paths {
        let file = workspace.root.join(&path);
        if has_our_extension(&file) && file.is_file() {
            let text = std::fs::read_to_string(&file).with_context(|| format!("cannot read {path}"))?;
            sources.push(Source { path, text });
        }
    }
    Ok(sources)
}

fn has_our_extension(path: &Path) -> bool {
    path.extension().and_then(|extension| extension.to_str()).is_some_and(|own| EXTENSIONS.contains(&own))
}

fn walk(root: &Path) -> Result<Vec<String>> {
    let mut found = Vec::new();
    let mut folders = vec![root.to_path_buf()];
    while let Some(folder) = folders.pop() {
        let entries =
            std::fs::read_dir(&folder).with_context(|| format!("cannot list {}", folder.display()))?;
        for entry in entries {
            let path = entry.with_context(|| format!("cannot list {}", folder.display()))?.path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if path.is_dir() && !path.is_symlink() {
                if name != "target" && !name.starts_with('.') {
                    folders.push(path);
                }
            } else if let Some(relative) = path.strip_prefix(root).ok().and_then(Path::to_str) {
                found.push(relative.to_owned());
            }
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::{sources, walk};
    use crate::workspace::Workspace;

    #[test]
    fn this_very_file_is_found_by_sources_and_by_walk() {
        let workspace = Workspace::find();
        let own = "xtask/src/tidy/files.rs";
        assert!(sources(&workspace).unwrap().iter().any(|source| source.path == own));
        assert!(walk(&workspace.root).unwrap().iter().any(|path| path == own));
    }
}
