//! A sentence about programs that were not recorded and used CPUs during the recording.

use engine::program::OtherUse;

/// A program that used a smaller part of a CPU is not named.
const NAMED: f64 = 0.05;
/// Least share of the machine's CPUs (and at least a tenth of a CPU) for which the first screen has a line about other
/// programs.
const WORTH: f64 = 0.05;
const TENTH: f64 = 0.1;
/// Number of programs named.
const NAMES: usize = 3;
/// Longest name that is shown.
const LONGEST: usize = 24;

/// The programs that used most on a machine with `machine` CPUs, with the CPUs that each kept busy; `None`: too little.
pub(crate) fn sentence(others: &[OtherUse], machine: usize) -> Option<String> {
    let all: f64 = others.iter().map(|other| other.cpus).sum();
    let named = others.iter().filter(|other| other.cpus >= NAMED).take(NAMES);
    let names: Vec<String> = named
        .map(|other| {
            let times = if other.processes > 1 { format!(" x{}", other.processes) } else { String::new() };
            format!("{}{times} {:.2}", plain(&other.name), other.cpus)
        })
        .collect();
    // More than there are: the file is wrong.
    let is_possible = all <= machine as f64 * 1.1 + TENTH;
    (is_possible && all >= TENTH.max(WORTH * machine as f64) && !names.is_empty())
        .then(|| format!("programs that were not recorded used {all:.2} CPUs: {}", names.join(", ")))
}

/// The sentence about child processes that used CPUs and were not recorded; `None`: they used little.
pub(crate) fn of_children(children: Option<&OtherUse>) -> Option<String> {
    let children = children.filter(|children| children.cpus >= TENTH)?;
    let (name, cpus) = (plain(&children.name), children.cpus);
    Some(match children.processes {
        0 | 1 => {
            format!("A child process ({name}) used {cpus:.2} CPUs and was not recorded: use --children.")
        }
        several => {
            format!(
                "{several} child processes ({name}) used {cpus:.2} CPUs and were not recorded: use --children."
            )
        }
    })
}

/// A shortened name without unusual characters: a process chooses its name, and one that contains a number or another
/// program's name could be mistaken for two entries.
fn plain(name: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "_.:/+-@".contains(c);
    name.chars().take(LONGEST).map(|c| if is_plain(c) { c } else { '?' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_programs_that_use_much_cpu_are_named_and_little_use_is_not() {
        let other = |name: &str, processes, cpus| OtherUse { name: name.to_owned(), processes, cpus };
        let all = [other("pgbench", 1, 0.8), other("cc1", 3, 0.4), other("sshd", 2, 0.01)];
        let expected = "programs that were not recorded used 1.21 CPUs: pgbench 0.80, cc1 x3 0.40";
        assert_eq!(sentence(&all, 2), Some(expected.to_owned()));
        let forged = [other("a 9.99, b", 1, 0.5)];
        let line = sentence(&forged, 2).expect("a line");
        assert!(line.ends_with("a?9.99??b 0.50"), "{line}");
        assert_eq!(sentence(&[other("java", 1, 36_000.0)], 2), None);
        let children = OtherUse { processes: 5, ..other("python3", 5, 1.9) };
        let text = "5 child processes (python3) used 1.90 CPUs and were not recorded: use --children.";
        assert_eq!(of_children(Some(&children)), Some(text.to_owned()));
        assert_eq!([of_children(None), of_children(Some(&other("sh", 1, 0.02)))], [None, None]);
        assert_eq!([sentence(&all, 64), sentence(&all[2..], 2), sentence(&[], 2)], [None, None, None]);
    }
}
