//! Whether a process is still alive.

use capture::target::threads_of;

/// Whether a process is alive, according to /proc: one of its threads must be. The leader may end before the other
/// threads and is then a zombie.
pub fn is_alive(pid: u32) -> bool {
    let Ok(stat) = std::fs::read(format!("/proc/{pid}/stat")) else { return false };
    // The state follows the name, which is in parentheses and may hold any byte.
    let state = stat.iter().rposition(|&byte| byte == b')').and_then(|at| stat.get(at + 2));
    match state {
        Some(b'Z' | b'X' | b'x') => threads_of(pid).is_ok(),
        Some(_) => true,
        None => false,
    }
}

/// Returns a function that says whether a process is alive. With a `command`, all processes count as ended when the
/// command has ended.
pub fn alive_while(command: Option<u32>) -> Box<dyn FnMut(u32) -> bool> {
    match command {
        Some(command) => Box::new(move |pid| is_alive(command) && is_alive(pid)),
        None => Box::new(is_alive),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neither_a_zombie_nor_a_missing_process_is_alive() {
        let mut child = std::process::Command::new("sleep").arg("100").spawn().expect("child");
        let pid = child.id();
        assert!(is_alive(pid));
        child.kill().expect("killed");
        while is_alive(pid) {
            std::thread::yield_now();
        }
        // The child has ended but was not waited for, so it is a zombie.
        assert!(std::path::Path::new(&format!("/proc/{pid}/stat")).exists());
        child.wait().expect("waited");
        assert!(!is_alive(pid));
    }
}
