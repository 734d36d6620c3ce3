//! Checks licences, sources and known security advisories of all dependencies, by cargo-deny with `deny.toml`.
//! Compiling cargo-deny takes minutes, and the advisories come from the network. So `./x check` uses what is installed,
//! and reports what is missing.

use std::process::Command;
use std::time::Duration;

use crate::command;
use crate::workspace::Workspace;

use super::score::Score;

/// Name of the check of licences and sources. The next one is the check of advisories.
const LICENCES: &str = "licences and sources of dependencies";
const ADVISORIES: &str = "no dependency has a security advisory";
/// Longest time for fetching the advisories, which normally takes seconds.
const LIMIT: Duration = Duration::from_secs(120);

/// Checks all dependencies in Cargo.lock.
pub fn check(workspace: &Workspace, score: &mut Score) {
    let deny = || {
        let mut deny = command::cargo(workspace);
        deny.args(["deny", "--locked", "--log-level", "error"]);
        deny
    };
    if !command::capture(deny().arg("--version"), LIMIT).is_ok_and(|outcome| outcome.success()) {
        for name in [LICENCES, ADVISORIES] {
            score.skip(name, "cargo-deny is missing: cargo install --locked cargo-deny");
        }
        return;
    }
    score.command(LICENCES, deny().args(["check", "licenses", "bans", "sources"]));
    if fetched(&mut deny()) {
        score.command(ADVISORIES, deny().args(["check", "--disable-fetch", "advisories"]));
    } else {
        score.skip(ADVISORIES, "they cannot be fetched");
    }
}

/// Updates the copy of the advisories.
fn fetched(deny: &mut Command) -> bool {
    command::capture(deny.args(["fetch", "db"]), LIMIT).is_ok_and(|outcome| outcome.success())
}
