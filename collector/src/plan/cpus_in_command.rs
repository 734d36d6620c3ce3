//! Commands that depend on the number of CPUs.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// Stands for the number of CPUs in a command's arguments.
pub const PLACEHOLDER: &str = "{cpus}";

/// Whether the command differs by number of CPUs: then each number has a recording of its own.
pub fn depends_on_cpus(command: &[OsString]) -> bool {
    command.iter().any(|word| find(word.as_bytes()).is_some())
}

/// The command for this many CPUs.
pub fn command_for(command: &[OsString], cpus: u32) -> Vec<OsString> {
    command.iter().map(|word| filled(word, cpus)).collect()
}

fn filled(word: &OsStr, cpus: u32) -> OsString {
    let mut rest = word.as_bytes();
    let mut bytes = Vec::with_capacity(rest.len());
    while let Some(place) = find(rest) {
        bytes.extend_from_slice(&rest[..place]);
        bytes.extend_from_slice(cpus.to_string().as_bytes());
        rest = &rest[place + PLACEHOLDER.len()..];
    }
    bytes.extend_from_slice(rest);
    OsString::from_vec(bytes)
}

fn find(bytes: &[u8]) -> Option<usize> {
    bytes.windows(PLACEHOLDER.len()).position(|window| window == PLACEHOLDER.as_bytes())
}

/// The numbers 1, 2, 4, 8 … up to `most`, and `most` itself.
pub fn doubling(most: u32) -> Vec<u32> {
    let mut counts: Vec<u32> = std::iter::successors(Some(1u32), |count| count.checked_mul(2))
        .take_while(|&count| count < most)
        .collect();
    counts.push(most.max(1));
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cpu_count_replaces_its_placeholder_in_every_argument() {
        let command: Vec<OsString> =
            ["sort", "-t{cpus}", "{cpus}{cpus}", "cpus"].map(OsString::from).to_vec();
        assert!(depends_on_cpus(&command) && !depends_on_cpus(&command[..1]));
        let filled = command_for(&command, 16);
        assert_eq!(filled, ["sort", "-t16", "1616", "cpus"].map(OsString::from));
    }

    #[test]
    fn cpu_counts_double_up_to_those_of_the_machine() {
        assert_eq!(doubling(1), [1]);
        assert_eq!(doubling(2), [1, 2]);
        assert_eq!(doubling(6), [1, 2, 4, 6]);
        assert_eq!(doubling(8), [1, 2, 4, 8]);
        assert_eq!(doubling(0), [1]);
    }
}
