//! Finds which share of a function best predicts the gain of making it faster. Candidates whose values are limited are
//! compared with the simulated gain of making the function a tenth faster and a tenth slower. Recordings: those under
//! tests/data/recordings, and the first launched one of each program that `./x zoo` has left.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::Result;
use serde_json::Value;

use crate::command;
use crate::workspace::Workspace;

const CPUS: [u64; 4] = [1, 2, 4, 16];
/// Number of functions of each recording: those with the largest shares.
const FUNCTIONS: usize = 4;
/// Least share of a function for it to be compared.
const LEAST: f64 = 0.02;
/// An answer that takes longer fails.
const LIMIT: Duration = Duration::from_secs(600);

/// Functions' shares, by number of CPUs and name.
type Shares = BTreeMap<(u64, String), f64>;

/// A candidate's distances from the simulation, in points.
#[derive(Default)]
struct Distance {
    all: Vec<f64>,
}

/// Compares all candidates.
///
/// # Errors
/// A recording cannot be read.
pub fn compare(workspace: &Workspace, longpole: &Path) -> Result<String> {
    let names =
        ["path of the predicted run (shown)", "steady weights of ideal sharing", "share of what is computed"];
    let mut distances = [const { Distance { all: Vec::new() } }; 3];
    let mut two_sided = Distance::default();
    let recordings = recordings(workspace)?;
    for recording in &recordings {
        let path = shares(longpole, recording, "auto")?;
        let ideal = shares(longpole, recording, "ideal")?;
        for function in leading(&path) {
            let [faster, slower] = simulated(longpole, recording, &function)?;
            for cpus in CPUS {
                let of = |shares: &Shares, cpus: u64| {
                    shares.get(&(cpus, function.clone())).copied().unwrap_or(0.0)
                };
                let (Some(gain), Some(cost)) = (faster.get(&cpus), slower.get(&cpus)) else { continue };
                // Ten times the mean of a tenth's gain and a tenth's cost.
                let truth = 5.0 * (gain + cost);
                let told = [of(&path, cpus), of(&ideal, cpus), of(&path, 1)];
                for (distance, told) in distances.iter_mut().zip(told) {
                    distance.all.push((told - truth).abs() * 100.0);
                }
                two_sided.all.push((gain - cost).abs() * 1000.0);
            }
        }
    }
    let count = two_sided.all.len();
    let mut text = format!(
        "## Shares and simulated changes\n\n{} recordings (tests/data/recordings, and programs of the zoo), their leading \
         functions, on 1, 2, 4 and 16 CPUs: {count} values.\nEach share is compared with ten times the gain of a \
         tenth of the function in simulation: the mean of a tenth faster and a tenth slower.\n\n| share | points off: \
         middle | nine of ten within | worst |\n|---|---|---|---|\n",
        recordings.len()
    );
    for (name, distance) in names.iter().zip(&mut distances) {
        let [middle, most, worst] = distance.quantiles();
        writeln!(text, "| {name} | {middle:.1} | {most:.1} | {worst:.1} |")?;
    }
    let [middle, most, worst] = two_sided.quantiles();
    writeln!(
        text,
        "\nThe two sides themselves differ by {middle:.1} points (middle), {most:.1} (nine of ten), {worst:.1} \
         (worst), so the result depends on the point between them."
    )?;
    Ok(text)
}

impl Distance {
    fn quantiles(&mut self) -> [f64; 3] {
        self.all.sort_by(f64::total_cmp);
        let at = |part: f64| {
            let last = self.all.len().saturating_sub(1);
            self.all.get((last as f64 * part).round() as usize).copied().unwrap_or(f64::NAN)
        };
        [at(0.5), at(0.9), at(1.0)]
    }
}

fn recordings(workspace: &Workspace) -> Result<Vec<PathBuf>> {
    let in_folder = |folder: &str, end: &str| -> Result<Vec<PathBuf>> {
        let entries = std::fs::read_dir(workspace.root.join(folder))?.collect::<std::io::Result<Vec<_>>>()?;
        let mut paths: Vec<PathBuf> = entries.into_iter().map(|entry| entry.path()).collect();
        paths.retain(|path| path.to_str().is_some_and(|path| path.ends_with(end)));
        paths.sort();
        Ok(paths)
    };
    let mut all = in_folder("tests/data/recordings", ".lp")?;
    all.extend(in_folder("target/zoo", "-launched-1.lp").unwrap_or_default());
    Ok(all)
}

/// longpole's answer about a recording, as JSON.
fn said(longpole: &Path, words: &[&str], recording: &Path) -> Result<Value> {
    let list = CPUS.map(|cpus| cpus.to_string()).join(",");
    let mut command = Command::new(longpole);
    command.args(words).arg(recording).args(["--json", "--cpus", &list]);
    command::json(&mut command, LIMIT)
}

fn results(answer: &Value) -> impl Iterator<Item = (u64, &Value)> {
    let results = answer["results"].as_array().map_or(&[][..], Vec::as_slice);
    results.iter().filter_map(|result| Some((result["cpus"].as_u64()?, result)))
}

fn shares(longpole: &Path, recording: &Path, model: &str) -> Result<Shares> {
    let answer = said(longpole, &["report", "--model", model], recording)?;
    let mut shares = Shares::new();
    for (cpus, result) in results(&answer) {
        let time = result["time_ns"].as_f64().unwrap_or(f64::NAN);
        for row in result["functions"].as_array().map_or(&[][..], Vec::as_slice) {
            if let (Some(name), Some(own)) = (row["function"].as_str(), row["tet_ns"].as_f64()) {
                shares.insert((cpus, name.to_owned()), own / time);
            }
        }
    }
    Ok(shares)
}

/// The functions with the largest shares on any number of CPUs. A name in brackets is a binary's.
fn leading(shares: &Shares) -> Vec<String> {
    let mut largest: BTreeMap<&str, f64> = BTreeMap::new();
    for ((_, name), share) in shares.iter().filter(|((_, name), _)| !name.starts_with('[')) {
        let known = largest.entry(name).or_insert(0.0);
        *known = known.max(*share);
    }
    let mut names: Vec<(&str, f64)> = largest.into_iter().filter(|(_, share)| *share >= LEAST).collect();
    names.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(b.0)));
    names.into_iter().take(FUNCTIONS).map(|(name, _)| name.to_owned()).collect()
}

/// For each number of CPUs: the gain of making the function a tenth faster, and the cost of making it a tenth slower,
/// as shares of the time.
fn simulated(longpole: &Path, recording: &Path, function: &str) -> Result<[BTreeMap<u64, f64>; 2]> {
    let change = |factor: f64| -> Result<BTreeMap<u64, f64>> {
        let scale = format!("{function}={factor}");
        let answer = said(longpole, &["what-if", "--scale", &scale], recording)?;
        let share = |row: &Value| Some(1.0 - row["after_ns"].as_f64()? / row["before_ns"].as_f64()?);
        Ok(results(&answer).filter_map(|(cpus, row)| Some((cpus, share(row)?))).collect())
    };
    let slower = change(1.1)?.into_iter().map(|(cpus, share)| (cpus, -share)).collect();
    Ok([change(0.9)?, slower])
}
