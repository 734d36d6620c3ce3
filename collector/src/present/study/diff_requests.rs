//! The part of `longpole diff` about requests of a server: text and JSON.

use super::diff::{TITLES, Table, cells_with, items, paint};
use super::listing::{line, note, share};
use crate::cell::duration;
use crate::present::style::{Paint, Style};
use crate::present::words::traffic::rate;
use engine::compare::{BeforeAfter, ItemRow, PerRequest};
use engine::json::Number;
use serde::Serialize;
use std::io::{self, Write};

/// Number of locks shown without an option.
const LOCKS: usize = 5;

/// What has changed by more than noise, or that nothing has.
pub(super) fn sentence(requests: &PerRequest) -> String {
    let PerRequest { mean, p99, cpu, rate: per_second, .. } = requests;
    let more = |change: &BeforeAfter, more: &str, less: &str| {
        let word = if change.by() < 0.0 { less } else { more };
        format!("{} {word}{}", share(change.by().abs(), change.before), beyond(change))
    };
    let times =
        |change: &BeforeAfter| format!("{} instead of {}", duration(change.after), duration(change.before));
    let mut clear = Vec::new();
    if mean.is_clear() {
        clear.push(format!("A request takes {}: {}.", more(mean, "longer", "less time"), times(mean)));
    } else if p99.is_clear() {
        clear.push(format!("99 % of the requests take up to {}.", times(p99)));
    }
    if let Some(cpu) = cpu.filter(BeforeAfter::is_clear) {
        let more = more(&cpu, "more", "less");
        clear.push(format!("A request takes {more} CPU time: {}.", times(&cpu)));
    }
    if per_second.is_clear() {
        let [before, after] = [per_second.before, per_second.after].map(rate);
        let noise = beyond(per_second);
        clear.push(format!("The server answers {after} requests/s instead of {before}{noise}."));
    }
    if !clear.is_empty() {
        return clear.join(" ");
    }
    let cpu = cpu.map(|cpu| format!(" and {} of CPU time{}", duration(cpu.after), noise(&cpu)));
    format!(
        "No difference beyond noise: a request takes {}{}{}, at {} requests/s{}.",
        duration(mean.after),
        noise(mean),
        cpu.unwrap_or_default(),
        rate(per_second.after),
        noise(per_second)
    )
}

/// The noise that a change exceeds, in brackets.
pub(super) fn beyond(change: &BeforeAfter) -> String {
    change.noise.map_or_else(String::new, |noise| format!(" (noise ±{})", share(noise, change.before)))
}

/// How far a number may change by noise, in brackets.
pub(super) fn noise(change: &BeforeAfter) -> String {
    change.noise.map_or_else(String::new, |noise| format!(" (±{})", share(noise, change.before)))
}

/// Writes the tables, with the first `top` functions and locks.
/// `noise`: what the columns of changes and noise mean.
pub(super) fn text(
    requests: &PerRequest,
    noise: &str,
    top: usize,
    style: &Style,
    out: &mut dyn Write,
) -> io::Result<()> {
    line(out, style, Paint::Bold, "REQUESTS", &TITLES.map(str::to_owned))?;
    let per_second = &requests.rate;
    line(out, style, Paint::Plain, "requests/s", &cells_with(per_second, per_second.before, rate))?;
    let times = [
        ("time of a request", Some(requests.mean)),
        ("99 % within", Some(requests.p99)),
        ("unread in the socket", Some(requests.unread)),
        ("CPU time of a request", requests.cpu),
    ];
    for (name, change) in times {
        let Some(change) = change else { continue };
        line(out, style, paint(&change), name, &cells_with(&change, change.before, duration))?;
    }
    writeln!(out)?;
    let table = |whole, top| Table { place: 0, whole, top };
    let cpu = requests.cpu.map_or(0.0, |cpu| cpu.before);
    items(&requests.functions, "FUNCTIONS, CPU of a request", "function", &table(cpu, top), style, out)?;
    let locks = table(requests.mean.before, top.min(LOCKS));
    items(&requests.locks, "WAITS FOR LOCKS of a request", "lock", &locks, style, out)?;
    let what = "For each request: CPU time of all threads, by samples, and what threads waited for a lock; changes in percent of the CPU time, or of the time of a request, before.";
    note(out, style, &format!("{what} {noise}"))
}

/// What one request takes, as JSON.
#[derive(Serialize)]
pub(super) struct RequestsJson<'a> {
    port_before: &'a str,
    port_after: &'a str,
    count_before: u64,
    count_after: u64,
    per_second: RateJson,
    time: TimeJson,
    p99: TimeJson,
    unread: TimeJson,
    cpu: Option<TimeJson>,
    functions: Vec<PartJson<'a>>,
    locks: Vec<PartJson<'a>>,
}

#[derive(Serialize)]
struct RateJson {
    before: Number,
    after: Number,
    noise: Option<Number>,
    clear: bool,
    within_noise: Option<bool>,
}

#[derive(Serialize)]
struct TimeJson {
    before_ns: Number,
    after_ns: Number,
    noise_ns: Option<Number>,
    clear: bool,
    within_noise: Option<bool>,
}

#[derive(Serialize)]
struct PartJson<'a> {
    name: &'a str,
    #[serde(flatten)]
    time: TimeJson,
}

impl<'a> RequestsJson<'a> {
    pub(super) fn new(requests: &'a PerRequest) -> RequestsJson<'a> {
        let PerRequest { ports, requests: counts, rate, .. } = requests;
        RequestsJson {
            port_before: &ports[0],
            port_after: &ports[1],
            count_before: counts[0],
            count_after: counts[1],
            per_second: RateJson {
                before: Number(rate.before),
                after: Number(rate.after),
                noise: rate.noise.map(Number),
                clear: rate.is_clear(),
                within_noise: rate.is_noise(),
            },
            time: TimeJson::new(&requests.mean),
            p99: TimeJson::new(&requests.p99),
            unread: TimeJson::new(&requests.unread),
            cpu: requests.cpu.as_ref().map(TimeJson::new),
            functions: parts(&requests.functions),
            locks: parts(&requests.locks),
        }
    }
}

impl TimeJson {
    fn new(change: &BeforeAfter) -> TimeJson {
        TimeJson {
            before_ns: Number(change.before),
            after_ns: Number(change.after),
            noise_ns: change.noise.map(Number),
            clear: change.is_clear(),
            within_noise: change.is_noise(),
        }
    }
}

fn parts(rows: &[ItemRow]) -> Vec<PartJson<'_>> {
    rows.iter()
        .filter_map(|row| Some(PartJson { name: &row.name, time: TimeJson::new(row.changes.first()?) }))
        .collect()
}
