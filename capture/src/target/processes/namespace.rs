//! PID namespaces: process 7 inside a container has another number outside, and longpole takes the outer number.

use super::proc_text::status_field;

/// Largest number of processes that are examined, since the result is only a hint.
const MOST: usize = 100_000;

/// Host PIDs of processes that have this number in a PID namespace of their own, ascending.
pub fn with_inner_pid(inner: u32) -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().take(MOST);
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    let mut found: Vec<u32> = pids
        .filter(|pid| {
            let status = std::fs::read(format!("/proc/{pid}/status")).unwrap_or_default();
            inner_pid(&String::from_utf8_lossy(&status)) == Some(inner)
        })
        .collect();
    found.sort_unstable();
    found
}

/// The number of a process in its own PID namespace, if that is not longpole's namespace.
fn inner_pid(status: &str) -> Option<u32> {
    let ids = status_field(status, "NSpid")?.split_ascii_whitespace().skip(1);
    ids.last()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_innermost_pid_is_the_last_number_of_nspid() {
        assert_eq!(inner_pid("NSpid:\t4242\n"), None);
        assert_eq!(inner_pid("Name:\tx\nNSpid:\t4242\t70\t3\n"), Some(3));
        assert_eq!(inner_pid("NSpid:\t4242\tx\n"), None);
        assert_eq!(inner_pid(""), None);
    }
}
