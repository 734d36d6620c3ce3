//! Time to look up 100,000 addresses of a binary with much debug information, compared with addr2line, llvm-symbolizer
//! and perf script.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use super::{large_binary, perf_data};
use crate::command;
use crate::measure::{Measurement, Need, Outcome, Runs, Side, Watched, watched};
use crate::sample::digits;

const ADDRESSES: usize = 100_000;
/// Number of addresses for binutils' addr2line, which searches all debug information for each address.
const FEW: usize = 200;
/// Bytes of debug information of the program that is built for this benchmark.
const DEBUG_BYTES: u64 = 500_000_000;
/// Environment variable that names another binary.
const VARIABLE: &str = "LONGPOLE_BENCH_BINARY";
/// A program that takes longer than this is ended, and the table says so.
const PATIENCE: Duration = Duration::from_secs(120);
/// A program that takes longer than this is measured only once.
const LONG_S: f64 = 15.0;

/// The other programs: name of the row, a command in which `BINARY` and `DATA` are replaced, and the number of
/// addresses. `DATA` is a recording of perf that contains the addresses. Standard input has the addresses, too.
const OTHERS: [(&str, &str, usize); 4] = [
    ("llvm-symbolizer", "llvm-symbolizer --obj=BINARY --inlines", ADDRESSES),
    ("addr2line", "addr2line -e BINARY -i -f -C", FEW),
    ("perf script, symbols only", "perf script --force --no-inline -F ip,sym -i DATA", ADDRESSES),
    ("perf script with lines", "perf script --force -F ip,sym,srcline -i DATA", FEW),
];

pub const SYMBOLS: Measurement = Measurement {
    name: "symbols",
    about: "100,000 addresses of a binary with a lot of debug information",
    title: "Symbols",
    needs: &[Need::Longpole],
    runs: Runs::Times(3),
    sides: |setting| {
        let tool = setting.example("symbols_bench", "--package symbols")?;
        let binary = match std::env::var_os(VARIABLE) {
            Some(path) => PathBuf::from(path),
            None => large_binary::build(&setting.folder, DEBUG_BYTES)?,
        };
        for count in [ADDRESSES, FEW] {
            let mut ask = Command::new(&tool);
            let text = command::text(ask.arg("addresses").arg(&binary).arg(count.to_string()))?;
            let addresses = setting.file(&format!("{count}.txt"));
            std::fs::write(&addresses, text + "\n")?;
            perf_data::write(&binary, &addresses, &setting.file(&format!("{count}.data")))?;
        }
        let mut look_up = Command::new(&tool);
        look_up
            .arg("lookup")
            .arg(&binary)
            .arg(&setting.longpole)
            .arg(setting.file(&format!("{ADDRESSES}.txt")));
        let debug_bytes = debug_bytes(&binary)?;
        let name = binary.file_name().unwrap_or_default().display().to_string();
        let mut sides = vec![Side::new("longpole", move |_| {
            let mut said = own(&command::text(&mut look_up)?)?;
            said["binary"] =
                json!(format!("{:.0} MB of debug information ({name})", debug_bytes as f64 / 1e6));
            Ok(said)
        })];
        for (name, line, count) in OTHERS {
            let (binary, data) = (binary.clone(), setting.file(&format!("{count}.data")));
            sides.push(Side::new(name, move |_| other(line, &binary, &data)).may_fail().enough(is_slow));
        }
        Ok(sides)
    },
    says: "100000 addresses, spread evenly over the functions of a binary with {binary}, with inlined functions. \
           longpole\nreads it in a process without rights, and its times include passing the answers on. Targets for \
           500 MB: load ≤ 1,000 ms, the addresses\nwithin 5 s after that, memory below 1 GB.",
    fills: |results| {
        let binary = results.at(0)?.last().and_then(|last| last["binary"].as_str()).unwrap_or_default();
        Ok(vec![("binary", binary.to_owned())])
    },
    heads: "program | addresses | load, ms | addresses/s | peak memory, MB",
    rows: Some(|results| {
        let own = results.at(0)?;
        let mut rows = vec![
            format!(
                "longpole, the first time | {ADDRESSES} | {} | {} | {}",
                own.spread("load", 1.0)?,
                own.spread("first", 1.0)?,
                digits(last(own, "peak_kib") / 1e3)
            ),
            format!("longpole, the same again | {ADDRESSES} | | {} |", own.spread("again", 1.0)?),
        ];
        let others = results.sides.iter().skip(1).zip(OTHERS).filter(|(side, _)| side.last().is_some());
        for (side, (name, _, count)) in others {
            let (seconds, limit) = (side.median("seconds")?, PATIENCE.as_secs());
            let peak = digits(side.of("peak_kib")?.values().iter().fold(0.0, |a, b| f64::max(a, *b)) / 1e3);
            let rate = |seconds| digits(count as f64 / seconds);
            rows.push(if is_too_slow(side) {
                let rate = rate(PATIENCE.as_secs_f64());
                format!("{name}: more than {limit} s | {count} | | less than {rate} | {peak}")
            } else {
                let all = side.spread("seconds", 1.0)?;
                format!("{name}, start to end {all} s | {count} | | {} | {peak}", rate(seconds))
            });
        }
        Ok(rows)
    }),
    ends: |results| {
        let own = results.at(0)?;
        Ok(format!(
            "{} frames for {} addresses with lines. Of longpole's memory {} MB are its own and {} MB parts of the file that \
             were looked at.",
            last(own, "frames"),
            last(own, "known"),
            digits(last(own, "own_kib") / 1e3),
            digits(last(own, "mapped_kib") / 1e3),
        ))
    },
    ..Measurement::NEW
};

/// A figure of the last run.
fn last(side: &Outcome, name: &str) -> f64 {
    side.last().and_then(|last| last[name].as_f64()).unwrap_or_default()
}

/// longpole's figures, from the line that the program prints. Adds `load` in ms, and the addresses per second in the
/// first and in the second round.
fn own(line: &str) -> Result<Value> {
    let mut said: Value = serde_json::from_str(line).context("symbols_bench says no JSON")?;
    let number = |name: &str| said[name].as_f64().with_context(|| format!("no {name} in {line}"));
    let (load, first, again) = (number("load_ns")?, number("first_ns")?, number("again_ns")?);
    said["load"] = json!(load / 1e6);
    said["first"] = json!(ADDRESSES as f64 / first * 1e9);
    said["again"] = json!(ADDRESSES as f64 / again * 1e9);
    Ok(said)
}

/// Runs a command of [`OTHERS`] on the addresses. Returns its time and memory, and whether it was too slow.
fn other(line: &str, binary: &Path, data: &Path) -> Result<Value> {
    let word = |word: &str| {
        word.replace("BINARY", &binary.display().to_string()).replace("DATA", &data.display().to_string())
    };
    let mut words = line.split(' ').map(word);
    let program = words.next().unwrap_or_default();
    let mut command = Command::new(&program);
    command.args(words).stdin(File::open(data.with_extension("txt"))?);
    let Watched { status, seconds, peak_kib } = watched(&mut command, PATIENCE)?;
    match status {
        Some(ended) if !ended.success() => bail!("{program} failed: {ended}"),
        ended => Ok(json!({ "seconds": seconds, "peak_kib": peak_kib, "too_slow": ended.is_none() })),
    }
}

fn is_too_slow(side: &Outcome) -> bool {
    side.last().is_some_and(|last| last["too_slow"] == true)
}

fn is_slow(side: &Outcome) -> bool {
    is_too_slow(side) || side.median("seconds").is_ok_and(|seconds| seconds > LONG_S)
}

/// Total size of the debug sections in bytes, as `size -A` lists them.
pub fn debug_bytes(binary: &Path) -> Result<u64> {
    let text = command::text(Command::new("size").arg("-A").arg(binary))?;
    let lines = text.lines().filter(|line| line.starts_with(".debug"));
    Ok(lines.filter_map(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok()).sum())
}
