//! `./x tidy`: the rules for source files that no lint knows. Also a test of this crate.

mod files;
mod rules;

use std::process::ExitCode;

use anyhow::Result;

use crate::workspace::Workspace;

/// `./x tidy`: complaints on standard output, one a line.
///
/// # Errors
/// Never; the signature is that of every command.
pub fn run() -> Result<ExitCode> {
    let complaints = check(&Workspace::find());
    for complaint in &complaints {
        println!("{complaint}");
    }
    Ok(if complaints.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Everything that breaks a rule, as `path: what`. Soft limits are printed, not returned.
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
    let manifest = workspace.root.join("engine/Cargo.toml");
    match std::fs::read_to_string(&manifest) {
        Ok(text) => complaints.extend(rules::engine_dependencies(&text)),
        Err(error) => complaints.push(format!("engine/Cargo.toml: {error}")),
    }
    match std::fs::read_to_string(workspace.root.join(SAFETY)) {
        Ok(text) => complaints.extend(rules::named_tests(&text, &sources)),
        Err(error) => complaints.push(format!("{SAFETY}: {error}")),
    }
    complaints
}

/// What recording does in programs, and the test of each.
const SAFETY: &str = "docs/safety.md";

#[cfg(test)]
mod tests {
    use super::{Workspace, check};

    #[test]
    fn this_tree_is_tidy() {
        assert_eq!(check(&Workspace::find()), Vec::<String>::new());
    }
}
