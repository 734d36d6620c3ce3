//! Looking up 100,000 addresses of a binary with a lot of debug information, compared with addr2line,
//! llvm-symbolizer and perf script.

use std::fmt::Write as _;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::large_binary;
use super::perf_data;
use super::{Scratch, Watched, example, watched};
use crate::build;
use crate::command;
use crate::sample::{Sample, digits};
use crate::workspace::Workspace;

const RUNS: usize = 3;
const ADDRESSES: usize = 100_000;
/// Number of addresses for addr2line of binutils, which searches everything for each address.
const FEW: usize = 200;
/// Debug information of the program that is built for this.
const DEBUG_BYTES: u64 = 500_000_000;
/// The variable that names another binary.
const VARIABLE: &str = "LONGPOLE_BENCH_BINARY";
/// Longest time of a program. One that takes longer is ended, and the table says so.
const PATIENCE: Duration = Duration::from_secs(120);
/// A program that takes longer is measured once.
const LONG_S: f64 = 15.0;

/// Measures all programs on the same addresses.
///
/// # Errors
/// Something does not compile, or longpole cannot read the binary.
pub fn measure(workspace: &Workspace) -> Result<String> {
    let longpole = build::release(workspace)?;
    let tool = example(workspace, "symbols_bench", &["--package", "symbols"])?;
    let scratch = Scratch::new(workspace, "symbols")?;
    let binary = match std::env::var_os(VARIABLE) {
        Some(path) => PathBuf::from(path),
        None => large_binary::build(&scratch.0, DEBUG_BYTES)?,
    };
    let input = |count: usize| -> Result<(PathBuf, PathBuf)> {
        let mut command = Command::new(&tool);
        let text = command::text(command.arg("addresses").arg(&binary).arg(count.to_string()))?;
        let [addresses, perf] = ["txt", "data"].map(|end| scratch.0.join(format!("{count}.{end}")));
        std::fs::write(&addresses, text + "\n")?;
        perf_data::write(&binary, &addresses, &perf)?;
        Ok((addresses, perf))
    };
    let (many, few) = (input(ADDRESSES)?, input(FEW)?);
    let (mut own, mut others) = (Own::default(), Vec::new());
    for _ in 0..RUNS {
        let mut command = Command::new(&tool);
        own.add(&command::text(command.arg("lookup").arg(&binary).arg(&longpole).arg(&many.0))?)?;
        run_others(&binary, &many, &few, &mut others)?;
    }
    section(&binary, &own, &others)
}

/// longpole's figures, of all runs.
#[derive(Default)]
struct Own {
    /// Time until the debug information is ready, ms.
    load: Sample,
    /// Addresses per second: the first time, and again.
    rate: Sample,
    again: Sample,
    /// All figures of the last run.
    last: serde_json::Value,
}

impl Own {
    /// Adds a run, from the line that the program prints.
    fn add(&mut self, line: &str) -> Result<()> {
        self.last = serde_json::from_str(line).context("symbols_bench says no JSON")?;
        let number = |name: &str| self.last[name].as_f64().with_context(|| format!("no {name} in {line}"));
        self.load.push(number("load_ns")? / 1e6);
        self.rate.push(ADDRESSES as f64 / number("first_ns")? * 1e9);
        self.again.push(ADDRESSES as f64 / number("again_ns")? * 1e9);
        Ok(())
    }
}

/// Runs every other program once, unless it is too slow. `many` and `few` are files of addresses, and perf recordings
/// with these addresses.
fn run_others(
    binary: &Path,
    (many, perf_many): &(PathBuf, PathBuf),
    (few, perf_few): &(PathBuf, PathBuf),
    others: &mut Vec<Other>,
) -> Result<()> {
    let object = format!("--obj={}", binary.display());
    let path = binary.display().to_string();
    let (data_many, data_few) = (perf_many.display().to_string(), perf_few.display().to_string());
    let symbols_only = vec!["script", "--force", "--no-inline", "-F", "ip,sym", "-i", data_many.as_str()];
    let with_lines = vec!["script", "--force", "-F", "ip,sym,srcline", "-i", data_few.as_str()];
    for (name, program, count, arguments, input) in [
        ("llvm-symbolizer", "llvm-symbolizer", ADDRESSES, vec![object.as_str(), "--inlines"], many),
        ("addr2line", "addr2line", FEW, vec!["-e", path.as_str(), "-i", "-f", "-C"], few),
        ("perf script, symbols only", "perf", ADDRESSES, symbols_only, many),
        ("perf script with lines", "perf", FEW, with_lines, few),
    ] {
        let known = others.iter_mut().find(|other| other.name == name);
        if known.as_ref().is_some_and(|other| other.too_slow || other.seconds.median() > LONG_S) {
            continue;
        }
        let Some(took) = other(program, &arguments, input)? else { continue };
        let other = match known {
            Some(other) => other,
            None => {
                others.push(Other { name, count, seconds: Sample::default(), peak: 0, too_slow: false });
                let Some(last) = others.last_mut() else { continue };
                last
            }
        };
        other.peak = other.peak.max(took.peak_kib);
        match took.status {
            Some(_) => other.seconds.push(took.seconds),
            None => other.too_slow = true,
        }
    }
    Ok(())
}

/// The section of BENCHMARKS.md.
fn section(binary: &Path, own: &Own, others: &[Other]) -> Result<String> {
    let number = |name: &str| own.last[name].as_f64().unwrap_or_default();
    let debug_mb = debug_bytes(binary)? as f64 / 1e6;
    let Own { load, rate, again, .. } = own;
    let mut text = String::new();
    write!(
        text,
        "## Symbols\n\n{ADDRESSES} addresses, spread evenly over the functions of a binary with {debug_mb:.0} MB of debug \
         information ({}), with inlined functions. longpole\nreads it in a process without rights, and its times \
         include passing the answers on. Targets for 500 MB: load ≤ 1,000 ms, the addresses\nwithin 5 s after that, \
         memory below 1 GB.\n\n| program | addresses | load, ms | addresses/s | peak memory, MB |\n|---|---|---|---|---|\n",
        binary.file_name().unwrap_or_default().display(),
    )?;
    writeln!(
        text,
        "| longpole, the first time | {ADDRESSES} | {load} | {rate} | {} |",
        digits(number("peak_kib") / 1e3)
    )?;
    writeln!(text, "| longpole, the same again | {ADDRESSES} | | {again} | |")?;
    for Other { name, count, seconds, peak, too_slow } in others {
        let peak = digits(*peak as f64 / 1e3);
        if *too_slow {
            let limit = PATIENCE.as_secs();
            let rate = digits(*count as f64 / PATIENCE.as_secs_f64());
            writeln!(text, "| {name}: more than {limit} s | {count} | | less than {rate} | {peak} |")?;
        } else {
            let rate = digits(*count as f64 / seconds.median());
            writeln!(text, "| {name}, start to end {seconds} s | {count} | | {rate} | {peak} |")?;
        }
    }
    write!(
        text,
        "\n{} frames for {} addresses with lines. Of longpole's memory {} MB are its own and {} MB parts of the file that were \
         looked at.",
        number("frames"),
        number("known"),
        digits(number("own_kib") / 1e3),
        digits(number("mapped_kib") / 1e3),
    )?;
    Ok(text)
}

/// Another program's figures, of all runs.
struct Other {
    name: &'static str,
    count: usize,
    seconds: Sample,
    /// KiB.
    peak: u64,
    too_slow: bool,
}

/// Runs another program; `None` if it is not installed.
fn other(name: &str, arguments: &[&str], input: &Path) -> Result<Option<Watched>> {
    let Ok(took) = watched(Command::new(name).args(arguments).stdin(File::open(input)?), PATIENCE) else {
        println!("SKIP {name}: it is not installed");
        return Ok(None);
    };
    match took.status {
        Some(ended) if !ended.success() => bail!("{name} failed: {ended}"),
        Some(_) => {}
        None => println!("{name}: not done in {} s", PATIENCE.as_secs()),
    }
    Ok(Some(took))
}

/// Size of the debug sections, as `size -A` lists them, bytes.
///
/// # Errors
///
/// There is no `size` program, or it cannot read the file.
pub fn debug_bytes(binary: &Path) -> Result<u64> {
    let text = command::text(Command::new("size").arg("-A").arg(binary))?;
    let lines = text.lines().filter(|line| line.starts_with(".debug"));
    Ok(lines.filter_map(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok()).sum())
}
