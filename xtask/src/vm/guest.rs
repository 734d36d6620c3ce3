//! Writes the shell script that runs in a virtual machine, and reads what the script reports over the second serial
//! port.

use std::path::Path;

/// Number of seconds after which a test counts as failed.
pub const TEST_LIMIT_S: u64 = 420;
/// Number of lines of a failed test that are reported.
const LINES: usize = 40;

/// Checks that change the machine: their names and shell commands. The checks run after the tests.
const CHECKS: [(&str, &str); 2] = [
    ("doctor_lacks_nothing", "$LONGPOLE_BIN doctor"),
    (
        "no_btf_is_refused_in_one_line_with_a_hint",
        // The directory /run has a cache of facts that longpole has found in this boot, so it is removed.
        "mount -t tmpfs none /sys/kernel/btf; rm -rf /run/longpole; \
         $LONGPOLE_BIN record -o /tmp/none.lp -- true 2>/tmp/said; code=$?; cat /tmp/said; \
         test $code = 77 && sed -n 1p /tmp/said | grep -q \"^longpole: \" && sed -n 2p /tmp/said | grep -q \"^hint: \"",
    ),
];

/// Names of the checks that are not live tests.
pub fn checks() -> impl Iterator<Item = String> {
    CHECKS.iter().map(|(name, _)| (*name).to_owned())
}

/// The job for which a virtual machine is started.
pub enum Job<'a> {
    /// Runs the live tests and checks with these names.
    Tests(&'a [String]),
    /// Runs a shell command and shows its output.
    Command(&'a str),
}

/// The programs that the script uses.
pub struct Programs<'a> {
    /// The longpole binary with which tests record.
    pub longpole: &'a Path,
    /// The program with all live tests.
    pub tests: &'a Path,
    /// The folder with compiled workloads. The script copies it to a place where tests may write.
    pub workloads: &'a Path,
}

/// A line of the script's report.
#[derive(Debug, PartialEq, Eq)]
pub enum Report<'a> {
    /// The script runs. The text is the kernel's release.
    Ready(&'a str),
    /// A job has begun.
    Begin(&'a str),
    /// A line of the job's output.
    Output(&'a str),
    /// The job has ended with this code, after this many seconds.
    End { code: i32, seconds: u64 },
}

impl<'a> Report<'a> {
    /// Parses a line. `None` if the line is not from the script, such as a message of the kernel.
    pub fn parse(line: &'a str) -> Option<Self> {
        let (word, rest) = line.trim_end().split_once(' ').unwrap_or((line.trim_end(), ""));
        match word {
            "@ready" => Some(Self::Ready(rest)),
            "@begin" => Some(Self::Begin(rest)),
            "@" => Some(Self::Output(rest)),
            "@end" => {
                let (code, seconds) = rest.split_once(' ')?;
                Some(Self::End { code: code.parse().ok()?, seconds: seconds.parse().ok()? })
            }
            _ => None,
        }
    }
}

/// The script for a job. `has_btf` says whether the kernel's type information can be read.
pub fn script(job: &Job<'_>, programs: &Programs<'_>, has_btf: bool) -> String {
    let quoted = |path: &Path| format!("'{}'", path.display().to_string().replace('\'', "'\\''"));
    let (longpole, tests) = (quoted(programs.longpole), quoted(programs.tests));
    let workloads = quoted(programs.workloads);
    // The script finds compilers in the same way as the host.
    let variable = |name| quoted(Path::new(&std::env::var_os(name).unwrap_or_default()));
    let (path, home) = (variable("PATH"), variable("HOME"));
    let mut script = format!(
        "exec 3>/dev/ttyS1 </dev/null\n\
         stty raw -echo <&3 2>/dev/null\n\
         echo \"@ready $(uname -r)\" >&3\n\
         mkdir -p /dev/pts /dev/shm\n\
         mount -t devpts -o ptmxmode=666 devpts /dev/pts\n\
         mount -t tmpfs shm /dev/shm\n\
         mount -t cgroup2 cgroup /sys/fs/cgroup\n\
         mount -t tmpfs tmp /var/tmp\n\
         ip link set lo up\n\
         mkdir -p /tmp/target\n\
         cp -r {workloads} /tmp/target/workloads 2>/dev/null\n\
         export PATH={path} HOME={home} RUST_BACKTRACE=0\n\
         export CARGO_TARGET_DIR=/tmp/target LONGPOLE_BIN={longpole}\n\
         cd /tmp\n"
    );
    if !has_btf {
        script += "mount -t tmpfs none /sys/kernel/btf\n";
    }
    // The name of a test is one word. A command is in a file of its own, so it needs no quotes.
    script += &format!(
        "run() {{\n\
         echo \"@begin $1\" >&3\n\
         from=$(date +%s)\n\
         shift\n\
         timeout -k 10 {TEST_LIMIT_S} \"$@\" >/tmp/output 2>&1\n\
         code=$?\n\
         tail -n $lines /tmp/output | sed 's/^/@ /' >&3\n\
         echo \"@end $code $(($(date +%s) - from))\" >&3\n\
         }}\n"
    );
    match job {
        Job::Tests(names) => {
            script += &format!("lines={LINES}\n");
            for name in *names {
                match CHECKS.iter().find(|(check, _)| check == name) {
                    Some((_, command)) => script += &format!("run {name} sh -c '{command}'\n"),
                    None => script += &format!("run {name} {tests} --exact {name} --nocapture\n"),
                }
            }
        }
        Job::Command(command) => {
            script +=
                &format!("lines=1000\ncat >/tmp/command <<'END OF COMMAND'\n{command}\nEND OF COMMAND\n");
            script += "run command sh /tmp/command\n";
        }
    }
    script
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_script_reports_is_understood() {
        assert_eq!(
            Report::parse("@ready 6.1.0-50-cloud-amd64\r"),
            Some(Report::Ready("6.1.0-50-cloud-amd64"))
        );
        assert_eq!(Report::parse("@begin a::b"), Some(Report::Begin("a::b")));
        assert_eq!(Report::parse("@ SKIP a: no gdb"), Some(Report::Output("SKIP a: no gdb")));
        assert_eq!(Report::parse("@ "), Some(Report::Output("")));
        assert_eq!(Report::parse("@end 101 7"), Some(Report::End { code: 101, seconds: 7 }));
        for strange in ["", "[    0.0] Linux", "@end", "@end x 1"] {
            assert_eq!(Report::parse(strange), None, "{strange}");
        }
    }

    #[test]
    fn a_test_is_run_by_its_whole_name() {
        let [longpole, tests, workloads] = ["/a b/longpole", "/live", "/w"].map(Path::new);
        let programs = Programs { longpole, tests, workloads };
        let text = script(&Job::Tests(&["a::b".into()]), &programs, true);
        assert!(text.contains("LONGPOLE_BIN='/a b/longpole'"));
        assert!(text.ends_with("run a::b '/live' --exact a::b --nocapture\n"));
        assert!(!text.contains("kernel/btf"));
        let text = script(&Job::Tests(&checks().collect::<Vec<_>>()), &programs, true);
        assert!(
            text.contains("run doctor_lacks_nothing sh -c '$LONGPOLE_BIN doctor'\n")
                && !text.contains("/live")
        );
    }
}
