//! Finds the crates that differ from the last commit.

use std::collections::BTreeSet;
use std::process::Command;

use anyhow::Result;

use crate::command;
use crate::workspace::Workspace;

/// Each crate with its folder and with the crates that use it.
const CRATES: [(&str, &str, &[&str]); 10] = [
    (
        "probe-abi",
        "probe-abi/",
        &[
            "engine",
            "recording",
            "symbols",
            "capture",
            "collector",
            "probe-preload",
            "longpole-tests",
            "fuzz",
        ],
    ),
    ("probe-preload", "probe-preload/", &[]),
    ("engine", "engine/", &["recording", "symbols", "capture", "collector", "longpole-tests", "fuzz"]),
    ("recording", "recording/", &["capture", "collector", "longpole-tests", "fuzz"]),
    ("symbols", "symbols/", &["capture", "collector", "longpole-tests", "fuzz"]),
    ("capture", "capture/", &["collector", "longpole-tests", "fuzz"]),
    ("collector", "collector/", &["longpole-tests"]),
    ("longpole-tests", "tests/", &["xtask", "collector"]),
    ("xtask", "xtask/", &[]),
    ("fuzz", "fuzz/", &[]),
];

/// Names of the crates that a change affects.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Concerned {
    /// Crates with a changed file.
    pub tested: Vec<&'static str>,
    /// The crates with a changed file, and the crates that use them.
    pub linted: Vec<&'static str>,
    /// Whether the kernel programs have changed. Kernel programs cannot be compiled for a host.
    pub kernel_programs: bool,
}

/// The crates that differ from the last commit. New files count, too.
///
/// # Errors
/// This is not a git checkout.
pub fn crates(workspace: &Workspace) -> Result<Concerned> {
    let git = |words: &[&str]| command::text(Command::new("git").args(words).current_dir(&workspace.root));
    let changed = git(&["diff", "--name-only", "HEAD"])?;
    let new = git(&["ls-files", "--others", "--exclude-standard"])?;
    Ok(of(changed.lines().chain(new.lines())))
}

fn of<'a>(paths: impl Iterator<Item = &'a str>) -> Concerned {
    let paths: Vec<&str> = paths.collect();
    // Tests of other crates read these goldens and recordings.
    let data = paths.iter().any(|path| path.starts_with("tests/data/"));
    let is_in = |folder: &str| {
        paths.iter().any(|path| path.starts_with(folder))
            || data && matches!(folder, "engine/" | "collector/")
    };
    // A change of versions or lints affects all crates.
    let all = paths
        .iter()
        .any(|path| matches!(*path, "Cargo.toml" | "Cargo.lock" | "rust-toolchain.toml" | "clippy.toml"));
    let changed = CRATES.iter().filter(|(_, folder, _)| all || is_in(folder));
    let mut linted = BTreeSet::new();
    let mut tested = Vec::new();
    for (name, _, users) in changed {
        tested.push(*name);
        linted.insert(*name);
        linted.extend(users.iter());
    }
    Concerned {
        tested,
        linted: linted.into_iter().collect(),
        kernel_programs: all || is_in("probe-abi/") || is_in("probe-ebpf/"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_one(path: &str) -> Concerned {
        of([path].into_iter())
    }

    #[test]
    fn the_changed_crate_is_tested_and_its_users_are_linted() {
        let concerned = of_one("engine/src/event/mod.rs");
        assert_eq!(concerned.tested, ["engine"]);
        assert_eq!(
            concerned.linted,
            ["capture", "collector", "engine", "fuzz", "longpole-tests", "recording", "symbols"]
        );
        assert!(!concerned.kernel_programs);
        assert_eq!(of_one("README.md"), Concerned::default());
        assert_eq!(
            of_one("tests/data/figure-1/report.txt").tested,
            ["engine", "collector", "longpole-tests"]
        );
    }

    #[test]
    fn a_change_of_a_shared_file_concerns_all_crates() {
        assert_eq!(of_one("Cargo.lock").tested.len(), CRATES.len());
        assert!(of_one("probe-ebpf/src/main.rs").kernel_programs);
    }

    #[test]
    fn the_list_of_crates_has_every_member_of_the_workspace() {
        let manifest = std::fs::read_to_string(Workspace::find().root.join("Cargo.toml")).unwrap();
        let members = manifest.lines().find_map(|line| line.strip_prefix("members = ")).unwrap();
        assert_eq!(members.split(',').count(), CRATES.len() + 1, "{members}");
        assert!(members.contains("\"probe-ebpf\""), "{members}");
        for (_, folder, _) in CRATES {
            assert!(members.contains(&format!("\"{}\"", folder.trim_end_matches('/'))), "{folder}");
        }
    }
}
