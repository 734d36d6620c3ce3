//! Real servers under their own load, each with wrong settings and the cures for them. Shows whether LIMIT or FIX names
//! the cause, and what the cure really gains.

mod go;
mod haproxy;
mod java;
mod kinds;
mod list;
mod memcached;
mod nginx;
mod postgres;
mod redis;
mod run;
mod said;
mod sqlite;
mod trial;

use anyhow::Result;
use serde_json::{Value, json};

use crate::measure::{Cell, Fills, Measurement, Need, Outcome, Results, Runs, Setting, Side};
use crate::sample::{Sample, digits};

use kinds::{Fault, Server};
use list::SERVERS as LIST;

pub const SERVERS: Measurement = Measurement {
    name: "servers",
    about: "Settings of real servers: whether longpole names the wrong one, and what the right one gains",
    title: "Settings of real servers",
    needs: &[Need::Recorder],
    runs: Runs::Inside(5),
    chooses: true,
    sides,
    says: SAYS,
    fills,
    heads: "server | wrong | cause",
    columns: &COLUMNS,
    ..Measurement::NEW
};

const SAYS: &str = "\
Packaged servers, and small ones of the tests in Go, in Java and around SQLite, each with a setting that is wrong. The load
comes from other programs (pgbench, wrk, redis-benchmark). What cures the fault is known by construction. The server runs
with the fault and, on another port, with the cure. Both answer for 2 s in turn, {runs} times. *Time* is the change of the
time for each request, from the medians (and of single turns, from the smallest to the largest).

longpole is attached for 3 s to the server with the fault, under the same load, {recordings} times. LIMIT is that of the first
recording. *Named* is where one of the words occurs that stand for the cause, in each recording: first (in LIMIT), in the n-th
row (\"Or\" and FIX), or not at all (-). *Promised* is the gain in FIX of the change that was made, if it has one.

The load shares the CPUs with the server, and so did builds of other people. Both used {others} CPUs, the median of the
recordings. A cure that needs a second CPU gains more on a quiet machine.

{score}";

const COLUMNS: [(&str, Cell); 6] = [
    ("requests/s", |side, _| Ok(rates(side).unwrap_or_else(|| "not here".to_owned()))),
    ("time", |side, _| Ok(change(side).unwrap_or_else(|| "–".to_owned()))),
    ("LIMIT", |side, _| Ok(text(side, "limit"))),
    ("words", |side, _| Ok(text(side, "words"))),
    ("named", |side, _| Ok(texts(side, "named").join(", "))),
    ("promised", |side, _| Ok(text(side, "promised"))),
];

fn sides(setting: &Setting) -> Result<Vec<Side<'_>>> {
    let wanted = LIST.iter().copied().filter(|server| setting.wants(server.name));
    let all = wanted.flat_map(|server| server.faults.iter().map(move |fault| (server, fault)));
    let side = |(stage, (server, fault)): (usize, (&'static Server, &'static Fault))| {
        let label = format!("{} | {} | {}", server.name, fault.told, fault.cause);
        let run = move |_| match server.missing() {
            Some(why) => Ok(json!({ "absent": why })),
            None => trial::measured(server, fault, setting),
        };
        Side::new(label, run).stage(stage).may_fail()
    };
    Ok(all.enumerate().map(side).collect())
}

fn last(side: &Outcome) -> &Value {
    side.last().unwrap_or(&Value::Null)
}

fn sample(side: &Outcome, name: &str) -> Option<Sample> {
    let rates: Sample = last(side)[name].as_array()?.iter().filter_map(Value::as_f64).collect();
    (rates.len() > 0).then_some(rates)
}

/// Requests per second with the fault and with the cure.
fn rates(side: &Outcome) -> Option<String> {
    let [fault, cure] = [sample(side, "fault")?, sample(side, "cure")?].map(|rates| digits(rates.median()));
    Some(format!("{fault} to {cure}"))
}

/// The change of the time for each request, in percent: for the medians, and the smallest and largest of single turns.
fn change(side: &Outcome) -> Option<String> {
    let (fault, cure) = (sample(side, "fault")?, sample(side, "cure")?);
    let percent = |fault: f64, cure: f64| 100.0 * (fault / cure - 1.0) + 0.0;
    let turns = fault.with(&cure, percent);
    let least = turns.values().iter().copied().fold(f64::INFINITY, f64::min);
    let most = turns.values().iter().copied().fold(f64::NEG_INFINITY, f64::max);
    Some(format!("{:.0} % ({least:.0} to {most:.0})", percent(fault.median(), cure.median())))
}

fn text(side: &Outcome, name: &str) -> String {
    last(side)[name].as_str().unwrap_or("–").replace('|', "/")
}

fn texts<'a>(side: &'a Outcome, name: &str) -> Vec<&'a str> {
    last(side)[name].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

fn fills(results: &Results) -> Result<Fills> {
    let others = results.listed().filter_map(|side| sample(side, "others"));
    let others: Sample = others.map(|all| all.median()).collect();
    Ok(vec![
        ("recordings", trial::RECORDINGS.to_string()),
        ("others", format!("{:.1}", others.median())),
        ("score", score(results)),
    ])
}

/// How often the cause is named in most recordings of a row, as a sentence.
fn score(results: &Results) -> String {
    let (mut all, mut first, mut anywhere) = (0, 0, 0);
    for side in results.listed() {
        let named = texts(side, "named");
        let most =
            |are: &dyn Fn(&str) -> bool| 2 * named.iter().filter(|place| are(place)).count() > named.len();
        all += usize::from(!named.is_empty());
        first += usize::from(most(&|place| place == said::FIRST));
        anywhere += usize::from(most(&|place| place != said::NOWHERE));
    }
    format!(
        "Named first in {first} of {all}, anywhere on the screen in {anywhere} (in most recordings of each)."
    )
}
