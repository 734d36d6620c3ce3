//! Code that is made at run time must have the names that the program gives it. The tests use a small program that
//! names code in all ways, and runtimes that people use.

use longpole_tests::{Background, Longpole, Recorded, run, skip, skip_unless_live, workload};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(60);
/// Options that give enough samples for a comparison, and hardly any probes.
const OPTIONS: [&str; 2] = ["--overhead", "none"];
const NAMELESS: &str = "[code without a file]";

/// The perf map of a process. The map is removed when this value is dropped.
struct Map(u32);

impl Drop for Map {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(format!("/tmp/perf-{}.map", self.0));
    }
}

/// The perf map of a launched command, whose PID is in longpole's message.
fn map_of(recorded: &Recorded) -> Map {
    map_in(&recorded.ended.stderr)
}

fn map_in(said: &str) -> Map {
    let number = said.split_once("(pid ").and_then(|(_, rest)| rest.split_once(')'));
    Map(number.and_then(|(number, _)| number.parse().ok()).unwrap_or_else(|| panic!("no number in {said}")))
}

/// For each of these names, the number of samples in functions whose names contain it. `below` says whether samples in
/// functions that they call count, too.
fn samples(file: &Path, below: Below, names: [&str; 3]) -> [f64; 3] {
    let program = Longpole::export(file).0;
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let number =
        |value: &Value| value.as_u64().and_then(|number| usize::try_from(number).ok()).unwrap_or(usize::MAX);
    let all = &program["samples"];
    let (places, stacks) = (list(&all["places"]), list(&all["stacks"]));
    let mut counts = [0.0; 3];
    for sample in list(&all["threads"]).iter().flat_map(list) {
        let stack = stacks.get(number(&sample[1])).map(list).unwrap_or_default();
        let seen = if below == Below::Too { &stack[..] } else { stack.get(..1).unwrap_or_default() };
        let functions: Vec<&str> = seen
            .iter()
            .filter_map(|place| places.get(number(place)))
            .filter_map(|place| place["function"].as_str())
            .collect();
        for (count, name) in counts.iter_mut().zip(names) {
            *count += f64::from(u8::from(functions.iter().any(|function| function.contains(name))));
        }
    }
    counts
}

#[derive(Clone, Copy, PartialEq)]
enum Below {
    Not,
    Too,
}

/// Checks that the first of two functions has about this share of what both compute, and that little other code has no
/// name.
#[track_caller]
fn assert_shares([hot, cold, nameless]: [f64; 3], share: f64) {
    let (found, both) = (hot / (hot + cold), hot + cold);
    assert!(both > 100.0, "{hot} and {cold} samples");
    assert!((found - share).abs() < 0.12, "{found:.3} instead of {share:.3}: {hot} and {cold}");
    assert!(nameless < both * 0.1, "{nameless} beside {both} has no name");
}

fn toy() -> Result<PathBuf, workload::Problem> {
    if cfg!(not(target_arch = "x86_64")) {
        return Err(workload::Problem::NoCompiler("its code is for x86-64".to_owned()));
    }
    workload::build("jit.c")
}

#[test]
fn jit_code_has_the_names_of_a_perf_map_written_early_or_late() {
    let program = skip_unless_live!(toy());
    for how in ["map", "late"] {
        let recorded = Recorded::good(&OPTIONS, &program, &["2", how]);
        let _map = map_of(&recorded);
        assert_shares(samples(&recorded.file, Below::Not, ["made_hot", "made_cold", NAMELESS]), 0.75);
    }
}

#[test]
fn jit_code_of_an_attached_program_has_names_and_lines_of_its_dump() {
    let program = skip_unless_live!(toy());
    let folder = tempfile::tempdir().expect("folder");
    for how in ["map", "dump"] {
        let mut command = Command::new(&program);
        let target = Background::must_start(command.args(["60", how]).current_dir(folder.path()));
        let _map = Map(target.pid());
        std::thread::sleep(Duration::from_millis(300));
        let recorded = Recorded::attach(&[&OPTIONS[..], &["-d", "1500ms"]].concat(), target.pid());
        target.signal("KILL").expect("killed");
        assert_shares(samples(&recorded.file, Below::Not, ["made_hot", "made_cold", NAMELESS]), 0.75);
        let lines = Longpole::with(["report", "--by", "line"]).and(&recorded.file).ok().stdout;
        assert_eq!(lines.contains("made.toy:7"), how == "dump", "{how}: {lines}");
    }
}

/// Every user may write to /tmp. So longpole must refuse a map that other users may have written.
#[test]
fn a_perf_map_that_others_may_write_is_refused_with_a_message() {
    let program = skip_unless_live!(toy());
    let recorded = Recorded::good(&OPTIONS, &program, &["1", "open"]);
    let map = map_of(&recorded);
    let said = &recorded.ended.stderr;
    assert!(
        said.contains(&format!("/tmp/perf-{}.map is not used: all users may write to it", map.0)),
        "{said}"
    );
    let [hot, _, nameless] = samples(&recorded.file, Below::Not, ["made_hot", "made_cold", NAMELESS]);
    assert!(hot == 0.0 && nameless > 0.0, "{hot} {nameless}");
}

/// Whether a program is installed and ends with code 0. The program runs in a folder of its own, in which it may leave
/// files.
fn runs(program: &str, arguments: &[&str]) -> bool {
    let folder = tempfile::tempdir().expect("folder");
    let mut command = Command::new(program);
    let Ok(child) = Background::start(command.args(arguments).current_dir(folder.path())) else {
        return false;
    };
    let _map = Map(child.pid());
    child.wait(LIMIT).is_ok_and(|ended| ended.code == Some(0))
}

/// perf's answer for the same program: the part of `expensive` in what `expensive` and `cheap` compute. `None` if there
/// is no perf.
fn share_by_perf(folder: &Path, program: &str, arguments: &[&str]) -> Option<f64> {
    let data = folder.join("perf.data");
    let mut perf = Command::new("perf");
    perf.args(["record", "-q", "-F", "499", "-o"]).arg(&data);
    perf.args(["--", "sh", "-c", "echo $$; exec \"$@\"", "sh", program]).args(arguments);
    let target = run(perf.current_dir(folder), LIMIT).ok().filter(|ended| ended.code == Some(0))?;
    let _map = target.stdout.lines().next().and_then(|line| line.parse().ok()).map(Map);
    let mut report = Command::new("perf");
    report.args(["report", "--stdio", "-q", "-F", "overhead,sym", "-i"]).arg(&data);
    let text = run(&mut report, LIMIT).ok()?.stdout;
    let sum = |part: &str| -> f64 {
        let rows = text.lines().filter(|line| line.contains(part));
        rows.filter_map(|line| line.trim().split_once('%')?.0.trim().parse::<f64>().ok()).sum()
    };
    let (hot, cold) = (sum("expensive"), sum("cheap"));
    (hot + cold > 10.0).then(|| hot / (hot + cold))
}

/// Launches the program with longpole and compares its share with perf's, or with five sixths if there is no perf.
/// Returns the share of perf.
fn launched(folder: &Path, program: &str, arguments: &[&str]) -> f64 {
    let with = |seconds: &'static str| [arguments, &[seconds]].concat();
    let mut call = Longpole::with(["record", "-o"]).and(folder.join("launched.lp"));
    call.command().current_dir(folder).args(OPTIONS).arg("--").arg(program).args(with("3"));
    let said = call.ok().stderr;
    let _launched = map_in(&said);
    let share = share_by_perf(folder, program, &with("2")).unwrap_or(5.0 / 6.0);
    assert_shares(samples(&folder.join("launched.lp"), Below::Not, ["expensive", "cheap", NAMELESS]), share);
    share
}

/// Records the program launched and attached, and compares both with that share.
fn both_ways(folder: &Path, program: &str, arguments: &[&str]) {
    let share = launched(folder, program, arguments);
    let with = |seconds: &'static str| [arguments, &[seconds]].concat();
    let mut command = Command::new(program);
    let target = Background::must_start(command.args(with("60")).current_dir(folder));
    let _map = Map(target.pid());
    std::thread::sleep(Duration::from_millis(1500));
    let recorded = Recorded::attach(&[&OPTIONS[..], &["-d", "2s"]].concat(), target.pid());
    target.signal("KILL").expect("killed");
    assert_shares(samples(&recorded.file, Below::Not, ["expensive", "cheap", NAMELESS]), share);
}

#[test]
fn javascript_functions_of_node_have_their_shares() {
    skip_unless_live!();
    if !runs("node", &["--perf-basic-prof", "-e", "0"]) {
        skip!("no node");
    }
    let folder = tempfile::tempdir().expect("folder");
    let script = "const step = (n, by) => { let s = 0; for (let i = 0; i < n; i++) s = (s * by + i) % 1000003; return s; };
        function expensive(n) { let s = 0; for (let i = 0; i < n; i++) s = (s * 31 + i) % 1000003; return s; }
        function cheap(n) { let s = 0; for (let i = 0; i < n; i++) s = (s * 37 + i) % 1000003; return s; }
        const end = Date.now() + 1000 * Number(process.argv[2]); let t = step(9, 3);
        while (Date.now() < end) { t += expensive(300000); t += cheap(60000); }
        console.log(t);";
    let file = folder.path().join("hot.js");
    std::fs::write(&file, script).expect("written");
    both_ways(folder.path(), "node", &["--perf-basic-prof", "hot.js"]);
}

#[test]
fn java_methods_with_a_perf_map_have_their_shares() {
    skip_unless_live!();
    let options = ["-XX:+UnlockDiagnosticVMOptions", "-XX:+DumpPerfMapAtExit", "-XX:+PreserveFramePointer"];
    if !runs("javac", &["-version"]) || !runs("java", &[&options[..], &["-version"]].concat()) {
        skip!("no JDK 17 or later");
    }
    let folder = tempfile::tempdir().expect("folder");
    let class = "public class Hot {
        static long expensive(int n) { long s = 0; for (int i = 0; i < n; i++) s = (s * 31 + i) % 1000003; return s; }
        static long cheap(int n) { long s = 0; for (int i = 0; i < n; i++) s = (s * 37 + i) % 1000003; return s; }
        static long turn() { long t = 0; for (int i = 0; i < 10; i++) { t += expensive(30000); t += cheap(6000); } return t; }
        public static void main(String[] a) {
            long end = System.currentTimeMillis() + 1000L * Integer.parseInt(a[0]), t = 0;
            while (System.currentTimeMillis() < end) t += turn();
            System.out.println(t);
        }
    }";
    std::fs::write(folder.path().join("Hot.java"), class).expect("written");
    let compiled = run(Command::new("javac").arg("Hot.java").current_dir(folder.path()), LIMIT);
    assert!(compiled.is_ok_and(|ended| ended.code == Some(0)));
    // Only launched: a JVM writes its map only on request, so code that it compiles later has no name in the map.
    launched(folder.path(), "java", &[&options[..], &["Hot"]].concat());
}

/// A Python that can write names of its functions for perf (3.12 and later), from the path or from pyenv.
fn python() -> Option<String> {
    let mut candidates: Vec<String> =
        ["python3", "python3.14", "python3.13", "python3.12"].map(str::to_owned).into();
    let root = std::env::var("PYENV_ROOT").unwrap_or_else(|_| "/root/.pyenv".to_owned());
    let versions = std::fs::read_dir(format!("{root}/versions"));
    let installed = versions.into_iter().flatten().flatten().map(|entry| entry.path().join("bin/python3"));
    candidates.extend(installed.map(|path| path.to_string_lossy().into_owned()));
    let test = "import sys; sys.exit(not sys.is_stack_trampoline_active())";
    candidates.into_iter().find(|python| runs(python, &["-X", "perf", "-c", test]))
}

/// Functions of Python compute in the interpreter's code, which must count for their totals.
#[test]
fn python_functions_with_perf_support_have_their_shares() {
    skip_unless_live!();
    let Some(python) = python() else {
        skip!("no Python 3.12 or later with -X perf");
    };
    let folder = tempfile::tempdir().expect("folder");
    let script = "import sys, time
def expensive(n):
    s = 0
    for i in range(n):
        s = (s * 31 + i) % 1000003
    return s
def cheap(n):
    s = 0
    for i in range(n):
        s = (s * 37 + i) % 1000003
    return s
end = time.time() + float(sys.argv[1])
t = 0
while time.time() < end:
    t += expensive(30000)
    t += cheap(6000)
print(t)
";
    let file = folder.path().join("hot.py");
    std::fs::write(&file, script).expect("written");
    let recorded =
        Recorded::good(&OPTIONS, Path::new(&python), &["-X", "perf", &file.to_string_lossy(), "2"]);
    let _map = map_of(&recorded);
    let names = ["py::expensive:", "py::cheap:", NAMELESS];
    assert_shares(samples(&recorded.file, Below::Too, names), 5.0 / 6.0);

    let mut command = Command::new(&python);
    let target = Background::must_start(command.args(["-X", "perf"]).arg(&file).arg("60"));
    let _other = Map(target.pid());
    std::thread::sleep(Duration::from_millis(700));
    let recorded = Recorded::attach(&[&OPTIONS[..], &["-d", "2s"]].concat(), target.pid());
    target.signal("KILL").expect("killed");
    assert_shares(samples(&recorded.file, Below::Too, names), 5.0 / 6.0);
}
