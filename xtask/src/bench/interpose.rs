//! Cost of recording a mutex's lock and unlock from inside the program: alone and under longpole in turns.

use std::fmt::Write;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use longpole_tests::workload;

use super::Scratch;
use super::handover::lost_percent;
use super::sample::{Sample, digits};
use crate::command;
use crate::workspace::Workspace;

const RUNS: usize = 11;
/// Nanoseconds of work in each pair, and the number of pairs.
const CASES: [(u64, u64); 3] = [(500, 400_000), (2_000, 400_000), (10_000, 100_000)];

/// Runs all cases, alone and under longpole in turns.
///
/// # Errors
/// The program or longpole cannot be run.
pub fn measure(workspace: &Workspace, longpole: &Path) -> Result<String> {
    let pairs = workload::build("pairs.c")?;
    let scratch = Scratch::new(workspace, "interpose")?;
    let file = scratch.0.join("pairs.lp");
    let mut text = format!(
        "## A mutex's lock and unlock, recorded from inside\n\nOne thread takes and releases an uncontended mutex, with some \
         work in between; {RUNS} runs of each in alternation.\n`longpole record --interpose always` puts its \
         library before libc; a record is 64 bytes with two clock reads.\n\n\
         | work per pair | µs per pair alone | CPU time | wall time | ns per operation | lost, % |\n|---|---|---|---|---|---|\n"
    );
    for (work_ns, count) in CASES {
        let words = [count.to_string(), work_ns.to_string()];
        let mut alone = [Sample::default(), Sample::default()];
        let mut inside = [Sample::default(), Sample::default()];
        let mut lost = Sample::default();
        for turn in 0..RUNS {
            for place in 0..2 {
                if (turn + place) % 2 == 0 {
                    let (times, _) = once(Command::new(&pairs).args(&words))?;
                    alone.iter_mut().zip(times).for_each(|(sample, time)| sample.push(time));
                } else {
                    let mut record = Command::new(longpole);
                    record.args(["record", "--interpose", "always", "--force", "-o"]).arg(&file);
                    let (times, said) = once(record.arg("--").arg(&pairs).args(&words))?;
                    inside.iter_mut().zip(times).for_each(|(sample, time)| sample.push(time));
                    lost.push(lost_percent(&said)?);
                }
            }
        }
        let slower = |i: usize| digits(inside[i].median() / alone[i].median());
        let each_ns = (inside[1].median() - alone[1].median()) / count as f64 / 2.0;
        writeln!(
            text,
            "| {} µs | {} | {}× | {}× | {} | {} |",
            work_ns as f64 / 1e3,
            alone[1].scaled(1e-3 / count as f64),
            slower(1),
            slower(0),
            digits(each_ns),
            lost
        )?;
    }
    write!(text, "\nWall time includes the time that longpole itself takes of the machine's CPUs.")?;
    Ok(text)
}

/// Wall and CPU time that the program measured for its pairs, and the standard error of its output.
fn once(command: &mut Command) -> Result<([f64; 2], String)> {
    let ended = command::good(command, Duration::from_secs(300))?;
    let times = times(&ended.stdout).with_context(|| format!("pairs printed no times: {}", ended.stdout))?;
    Ok((times, ended.stderr))
}

fn times(text: &str) -> Option<[f64; 2]> {
    let (wall, cpu) = text.trim().strip_suffix(" ns CPU")?.split_once(" ns wall, ")?;
    Some([wall.parse().ok()?, cpu.parse().ok()?])
}

#[cfg(test)]
mod tests {
    use super::times;

    #[test]
    fn wall_and_cpu_times_are_read_from_a_benchmark_s_output() {
        assert_eq!(times("12 ns wall, 7 ns CPU\n"), Some([12.0, 7.0]));
        assert_eq!(times("12 ns\n"), None);
    }
}
