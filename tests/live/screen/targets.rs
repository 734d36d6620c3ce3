//! Processes to which longpole attaches while the test reads its screen.

use longpole_tests::until;

/// A process that computes until this value is dropped, which also happens if the test fails.
pub(super) struct Busy(pub(super) std::process::Child);

impl Busy {
    pub(super) fn start() -> Busy {
        Busy(std::process::Command::new("sh").args(["-c", "while :; do :; done"]).spawn().expect("sh"))
    }

    pub(super) fn end(&mut self) {
        // Both calls fail only if the process has already ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.end();
    }
}

/// The first byte of probed code, a breakpoint instruction.
const BREAKPOINT: u8 = 0xcc;

/// The test `target`, running as a separate process.
pub(super) struct Target {
    pub(super) process: Busy,
    /// The thread that reads the target's output to its end, because the target writes something at its end, too.
    pub(super) output: std::thread::JoinHandle<()>,
    pub(super) pid: u32,
    /// Addresses of the target's two functions.
    pub(super) first: u64,
    pub(super) later: u64,
}

impl Target {
    pub(super) fn start() -> Target {
        use std::io::BufRead;
        let mut command = std::process::Command::new(std::env::current_exe().expect("own path"));
        command
            .args(["--exact", "screen::target", "--ignored", "--nocapture"])
            .env("LONGPOLE_TEST_TARGET", "1");
        command.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
        let mut process = Busy(command.spawn().expect("target"));
        let lines = std::io::BufReader::new(process.0.stdout.take().expect("piped")).lines();
        let mut lines = lines.map_while(Result::ok);
        let mut address = |what: &str| {
            lines.by_ref().find_map(|line| line.strip_prefix(what)?.parse().ok()).expect("an address")
        };
        let (first, later) = (address("code at "), address("more at "));
        let output = std::thread::spawn(move || lines.for_each(drop));
        let target = Target { pid: process.0.id(), process, output, first, later };
        assert!(!target.is_probed(first) && !target.is_probed(later));
        target
    }

    /// Whether there is a breakpoint at the beginning of a function.
    pub(super) fn is_probed(&self, address: u64) -> bool {
        use std::os::unix::fs::FileExt;
        let mut byte = [0];
        let memory = std::fs::File::open(format!("/proc/{}/mem", self.pid)).expect("memory");
        memory.read_exact_at(&mut byte, address).expect("code");
        byte[0] == BREAKPOINT
    }

    /// Waits until the function has a breakpoint, or has none.
    pub(super) fn until_probed(&self, address: u64, probed: bool) {
        until(&format!("probed: {probed}"), || self.is_probed(address) == probed);
    }

    /// Checks that no breakpoint is left, and that the target continues to its end.
    pub(super) fn runs_on(mut self) {
        assert!(!self.is_probed(self.first) && !self.is_probed(self.later), "a probe was left behind");
        drop(self.process.0.stdin.take());
        assert!(self.process.0.wait().expect("status").success(), "the target did not run on");
        self.output.join().expect("its output");
    }
}
