//! `./x tidy`: checks rules for source files that no lint checks. A test of this crate does the same.

mod borders;
mod files;
mod modules;
mod prose;
mod rules;
mod words;

use std::process::ExitCode;

use anyhow::Result;

use crate::workspace::Workspace;

/// Runs `./x tidy`: prints the complaints on standard output, one in each line.
///
/// # Errors
/// Never; the type is the same for all commands.
pub fn run() -> Result<ExitCode> {
    let complaints = check(&Workspace::find());
    for complaint in &complaints {
        println!("{complaint}");
    }
    Ok(if complaints.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Returns all broken rules, as `path: what`. A file that exceeds a soft limit is only printed.
pub fn check(workspace: &Workspace) -> Vec<String> {
    let mut complaints = Vec::new();
    let sources = match files::sources(workspace) {
        Ok(sources) => sources,
        Err(error) => return vec![format!("cannot list the sources: {error:#}")],
    };
    if sources.is_empty() {
        complaints.push("no source file found: tidy looks in the wrong place".into());
    }
    for source in &sources {
        for complaint in rules::check(source) {
            match complaint {
                rules::Complaint::Hard(text) => complaints.push(format!("{}: {text}", source.path)),
                rules::Complaint::Soft(text) => println!("note: {}: {text}", source.path),
            }
        }
    }
    complaints.extend(borders::check(&sources));
    let manifest = workspace.root.join("engine/Cargo.toml");
    match std::fs::read_to_string(&manifest) {
        Ok(text) => complaints.extend(rules::engine_dependencies(&text)),
        Err(error) => complaints.push(format!("engine/Cargo.toml: {error}")),
    }
    for document in sources.iter().filter(|source| source.path.ends_with(".md")) {
        let mut wrong = Vec::new();
        if NAMES_TESTS.contains(&document.path.as_str()) {
            wrong.extend(prose::named_tests(document, &sources));
        }
        // CHANGELOG.md may name files that no longer exist.
        if document.path != "CHANGELOG.md" {
            wrong.extend(prose::named_paths(document, |path| workspace.root.join(path).exists()));
        }
        complaints.extend(wrong.into_iter().map(|text| format!("{}: {text}", document.path)));
    }
    complaints
}

/// Documents with tables of promises. Each row names the tests that check the promise.
const NAMES_TESTS: [&str; 2] = ["ARCHITECTURE.md", "docs/safety.md"];

#[cfg(test)]
mod tests {
    use super::{Workspace, check};

    #[test]
    fn this_tree_is_tidy() {
        assert_eq!(check(&Workspace::find()), Vec::<String>::new());
    }
}
