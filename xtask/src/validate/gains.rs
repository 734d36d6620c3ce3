//! Which share of a function best predicts the gain if the function becomes faster. The candidates are shares that
//! cannot become extremely large. The candidates are compared with the simulated gain if the function becomes a tenth
//! faster and a tenth slower. The recordings are those in tests/data/recordings, and the first launched one of each
//! program that `./x zoo` has left.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::Result;
use serde_json::{Value, json};

use super::programs::LIMIT;
use crate::command;
use crate::measure::{Measurement, Need, Results, Setting, Side};
use crate::workspace::Workspace;

const CPUS: [u64; 4] = [1, 2, 4, 16];
/// Number of functions that are used of each recording, those with the largest shares.
const FUNCTIONS: usize = 4;
/// Functions with smaller shares than this are ignored.
const LEAST: f64 = 0.02;
/// Names of the candidates, and of the difference between the two sides of the simulation.
const NAMES: [&str; 3] =
    ["path of the predicted run (shown)", "steady weights of ideal sharing", "share of what is computed"];
const TWO_SIDED: &str = "two sides";

/// Shares of functions, by number of CPUs and name.
type Shares = BTreeMap<(u64, String), f64>;

pub const GAINS: Measurement = Measurement {
    name: "gains",
    about: "Shares of functions, compared with the simulated gain of making them faster",
    title: "Shares and simulated changes",
    needs: &[Need::Recorder],
    sides: |setting| {
        let side = |recording: PathBuf| {
            Side::new(recording.display().to_string(), move |_| distances(setting, &recording)).once(true)
        };
        Ok(recordings(&setting.workspace)?.into_iter().map(side).collect())
    },
    says: "{recordings} recordings (tests/data/recordings, and programs of the zoo), their leading functions, on 1, \
           2, 4 and 16 CPUs: {values} values.\nEach share is compared with ten times the gain of a tenth of the \
           function in simulation: the mean of a tenth faster and a tenth slower.",
    fills: |results| {
        let values = all(results, TWO_SIDED).len().to_string();
        Ok(vec![("recordings", results.sides.len().to_string()), ("values", values)])
    },
    heads: "share | points off: middle | nine of ten within | worst",
    rows: Some(|results| {
        let row = |name: &str| {
            let [middle, most, worst] = quantiles(all(results, name));
            format!("{name} | {middle:.1} | {most:.1} | {worst:.1}")
        };
        Ok(NAMES.map(row).into())
    }),
    ends: |results| {
        let [middle, most, worst] = quantiles(all(results, TWO_SIDED));
        Ok(format!(
            "The two sides themselves differ by {middle:.1} points (middle), {most:.1} (nine of ten), {worst:.1} (worst), so \
             the result depends on the point between them."
        ))
    },
    ..Measurement::NEW
};

/// The differences between a candidate and the simulation in all recordings, in percentage points.
fn all(results: &Results, name: &str) -> Vec<f64> {
    let lists = results.values().flat_map(|(_, value)| value[name].as_array());
    lists.flatten().filter_map(Value::as_f64).collect()
}

/// The median, the 90 % quantile, and the largest value.
fn quantiles(mut values: Vec<f64>) -> [f64; 3] {
    values.sort_by(f64::total_cmp);
    let last = values.len().saturating_sub(1) as f64;
    let at = |part: f64| values.get((last * part).round() as usize).copied().unwrap_or(f64::NAN);
    [at(0.5), at(0.9), at(1.0)]
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

/// The differences between each candidate and the simulation, for one recording.
fn distances(setting: &Setting, recording: &Path) -> Result<Value> {
    let path = shares(setting, recording, "auto")?;
    let ideal = shares(setting, recording, "ideal")?;
    let mut distances: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for function in leading(&path) {
        let [faster, slower] = [0.9, 1.1].map(|factor| simulated(setting, recording, &function, factor));
        let (faster, slower) = (faster?, slower?);
        for cpus in CPUS {
            let of = |shares: &Shares, cpus| shares.get(&(cpus, function.clone())).copied().unwrap_or(0.0);
            let (Some(gain), Some(slower)) = (faster.get(&cpus), slower.get(&cpus)) else { continue };
            let cost = -slower;
            // Ten times the mean of the gain and the cost of a tenth.
            let truth = 5.0 * (gain + cost);
            for (name, told) in NAMES.into_iter().zip([of(&path, cpus), of(&ideal, cpus), of(&path, 1)]) {
                distances.entry(name).or_default().push((told - truth).abs() * 100.0);
            }
            distances.entry(TWO_SIDED).or_default().push((gain - cost).abs() * 1000.0);
        }
    }
    Ok(json!(distances))
}

/// longpole's answer about a recording: the results by number of CPUs.
fn said(setting: &Setting, words: &[&str], recording: &Path) -> Result<BTreeMap<u64, Value>> {
    let mut command = command::line(&setting.longpole, "");
    command
        .args(words)
        .arg(recording)
        .args(["--json", "--cpus"])
        .arg(CPUS.map(|cpus| cpus.to_string()).join(","));
    let mut answer = command::json(&mut command, LIMIT)?;
    let results = answer["results"].as_array_mut().map(std::mem::take).unwrap_or_default();
    Ok(results.into_iter().filter_map(|result| Some((result["cpus"].as_u64()?, result))).collect())
}

fn shares(setting: &Setting, recording: &Path, model: &str) -> Result<Shares> {
    let mut shares = Shares::new();
    for (cpus, result) in said(setting, &["report", "--model", model], recording)? {
        let time = result["time_ns"].as_f64().unwrap_or(f64::NAN);
        for row in result["functions"].as_array().into_iter().flatten() {
            if let (Some(name), Some(own)) = (row["function"].as_str(), row["tet_ns"].as_f64()) {
                shares.insert((cpus, name.to_owned()), own / time);
            }
        }
    }
    Ok(shares)
}

/// The functions with the largest shares on any number of CPUs. A name in brackets is that of a binary and is ignored.
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

/// The gain if a function takes its time multiplied by this factor, as a share of the run's time, by number of CPUs.
fn simulated(setting: &Setting, recording: &Path, function: &str, factor: f64) -> Result<BTreeMap<u64, f64>> {
    let answer = said(setting, &["what-if", "--scale", &format!("{function}={factor}")], recording)?;
    let gain = |row: &Value| Some(1.0 - row["after_ns"].as_f64()? / row["before_ns"].as_f64()?);
    Ok(answer.into_iter().filter_map(|(cpus, row)| Some((cpus, gain(&row)?))).collect())
}
