//! Whether a command's synchronization operations are recorded from inside.

use super::command::{CommandLibrary, InterposeMode, Obstacle, c_library};
use super::library::has_library;
use std::path::Path;

/// Whether a command is recorded from inside, and why not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Choice {
    /// The command is recorded from inside. `first`: libraries that insist on coming before all others.
    Inside {
        /// Names for the front of `LD_PRELOAD`.
        first: Vec<String>,
    },
    /// The command is not recorded from inside, for this reason.
    Not(String),
}

/// Chooses for a command; `binary` is the ELF file that will run, if known.
pub fn decide(mode: InterposeMode, binary: Option<&Path>) -> Choice {
    let because = |reason: &str| Choice::Not(reason.to_owned());
    match mode {
        InterposeMode::Never => return because("--interpose never"),
        InterposeMode::Auto | InterposeMode::Always => {}
    }
    if !has_library() {
        return because("this longpole was built without the library for it");
    }
    let Some(binary) = binary else {
        return because("the program that the command runs is not known");
    };
    match c_library(binary) {
        Ok(CommandLibrary { first, .. }) => Choice::Inside { first },
        Err(Obstacle(reason)) => Choice::Not(reason),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_user_s_interpose_mode_decides_before_the_command() {
        let shell = Some(Path::new("/bin/sh"));
        assert_eq!(decide(InterposeMode::Never, shell), Choice::Not("--interpose never".into()));
        if has_library() {
            assert_eq!(decide(InterposeMode::Auto, shell), Choice::Inside { first: Vec::new() });
            assert_eq!(decide(InterposeMode::Always, shell), Choice::Inside { first: Vec::new() });
            assert!(matches!(decide(InterposeMode::Always, None), Choice::Not(_)));
        }
    }
}
