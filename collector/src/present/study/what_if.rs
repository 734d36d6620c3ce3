//! `longpole what-if`: times before and after a change, a function's headroom, and the ranking.

use super::json::Findings;
use super::listing::{headline, line, main_row, note, placed, share, signed};
use crate::cell::duration;
use crate::cpu_words::on;
use crate::present::frame::{Frame, more};
use crate::present::screen::limit;
use crate::present::style::{Paint, Style};
use crate::present::table;
use crate::present::text::report::findings;
use crate::present::words::counts::{self, alike};
use crate::present::words::short::short;
use engine::json::Number;
use engine::limit::Limits;
use engine::program::Program;
use engine::report::{Cpus, Trust};
use engine::what_if::{Curve, CurvePoint, RankRow, Ranking, WhatIf, WhatIfRow};
use serde::Serialize;
use std::io::{self, Write};

/// Largest number of curves next to each other.
const CURVES: usize = 4;
/// Largest number of functions named that take the first place as a function gets faster.
const TURNS: usize = 3;
/// Gains below this share of the run have no row.
const LEAST: f64 = 0.005;

/// Writes times before and after. `changes`: the changes in words; `after`: what limits after them.
pub fn text(
    result: &WhatIf,
    changes: &str,
    frame: &Frame,
    after: &Limits,
    style: &Style,
    out: &mut dyn Write,
) -> io::Result<()> {
    if let Some(row) = main_row(&result.results, result.recorded_cpus, |row| row.cpus) {
        headline(out, style, &sentence(row, changes))?;
    }
    if after.at.is_empty() {
        frame.head(style, out)?;
    }
    if let Some(limit) = after.at.first() {
        let mut out: &mut dyn Write = out;
        limit::write(&mut out, None, &frame.limits, frame.limits.fixes.len(), style)?;
        let text = style.text(&limit::sentence(limit));
        table::wrap(&mut out, style, Paint::Bold, "THEN   ", &text, "       ")?;
        writeln!(out)?;
    }
    let is_open = result.results.iter().any(|row| row.gain_between.is_some());
    let titles = ["before", "after", "change", "between, %"].map(str::to_owned);
    line(out, style, Paint::Bold, "", &titles[..if is_open { 4 } else { 3 }])?;
    for same in alike(&result.results, |row| vec![row.before_ns, row.after_ns]) {
        let Some(row) = same.first() else { continue };
        let change = signed(row.after_ns - row.before_ns, row.before_ns);
        let mut cells = vec![duration(row.before_ns), duration(row.after_ns), change];
        cells.extend(row.gain_between.map(|(low, high)| between(-high, -low)));
        let cpus: Vec<Cpus> = same.iter().map(|row| row.cpus).collect();
        line(out, style, Paint::Plain, &counts::on(&cpus, style), &cells)?;
    }
    writeln!(out)?;
    frame.foot(&result.findings, Some("what-if --rank"), style, out)?;
    if !result.findings_after.is_empty() {
        let mut out: &mut dyn Write = out;
        writeln!(out, "With the changes:")?;
        findings(&mut out, &result.findings_after, style)?;
    }
    Ok(())
}

fn sentence(row: &WhatIfRow, changes: &str) -> String {
    if row.before_ns == 0.0 && row.after_ns == 0.0 {
        return "Nothing to change: no thread took any time here.".to_owned();
    }
    let gain = row.before_ns - row.after_ns;
    let by = if gain >= 0.0 {
        format!("{} less", share(gain, row.before_ns))
    } else {
        format!("{} more", share(-gain, row.before_ns))
    };
    let by = if by.starts_with("0 %") { "no change".to_owned() } else { by };
    let by = match row.gain_between {
        Some((low, high)) if gain >= 0.0 => format!("{by}; {} %", between(low, high)),
        Some((low, high)) => format!("{by}; {} %", between(-high, -low)),
        None => by,
    };
    format!(
        "{changes}: the run would take {} instead of {} {} ({by}).",
        duration(row.after_ns),
        duration(row.before_ns),
        on(row.cpus)
    )
}

/// A range in percent: `27 to 38`.
fn between(low: f64, high: f64) -> String {
    let percent = |share: f64| format!("{:.0}", (share * 100.0).round() + 0.0);
    format!("{} to {}", percent(low), percent(high))
}

/// Writes a function's headroom.
pub fn headroom_text(
    function: &str,
    curves: &[Curve],
    program: &Program,
    frame: &Frame,
    style: &Style,
    out: &mut dyn Write,
) -> io::Result<()> {
    let main = main_row(curves, program.recorded_cpus, |curve| curve.cpus);
    if let Some(curve) = main {
        headline(out, style, &headroom_sentence(function, curve))?;
    }
    frame.head(style, out)?;
    let times = |curve: &&Curve| curve.points.iter().map(|point| point.time_ns).collect::<Vec<f64>>();
    let groups = alike(curves, times);
    for few in groups.chunks(CURVES) {
        let title =
            |same: &Vec<&Curve>| counts::on(&same.iter().map(|curve| curve.cpus).collect::<Vec<_>>(), style);
        let titles: Vec<String> = few.iter().map(title).collect();
        line(out, style, Paint::Bold, "takes", &titles)?;
        let few: Vec<&Curve> = few.iter().filter_map(|same| same.first().copied()).collect();
        for place in 0..few.iter().map(|curve| curve.points.len()).max().unwrap_or(0) {
            let points: Vec<_> = few.iter().map(|curve| curve.points.get(place)).collect();
            let cell =
                |point: &Option<&CurvePoint>| point.map_or("-".to_owned(), |point| duration(point.time_ns));
            let cells: Vec<String> = points.iter().map(cell).collect();
            let scale = points.iter().flatten().next().map_or(0.0, |point| point.scale);
            line(out, style, Paint::Plain, &share(scale, 1.0), &cells)?;
        }
        writeln!(out)?;
    }
    for takeover in main.map_or(&[][..], |curve| &curve.takeovers).iter().take(TURNS) {
        let text = format!(
            "Where the function takes {}, {} comes first instead of {} ({}).",
            share(takeover.scale, 1.0),
            short(&takeover.function),
            short(&takeover.over),
            duration(takeover.time_ns)
        );
        let mut plain: &mut dyn Write = out;
        table::wrap(&mut plain, style, Paint::Plain, "", &style.text(&text), "  ")?;
    }
    note(out, style, "The predicted time if the function takes this share of its time now.")?;
    writeln!(out)?;
    frame.foot(&program.findings, Some("what-if --rank"), style, out)
}

fn headroom_sentence(function: &str, curve: &Curve) -> String {
    let (Some(all), Some(none)) = (curve.points.first(), curve.points.last()) else {
        return format!("Nothing is known about {function}.");
    };
    let gain = share(all.time_ns - none.time_ns, all.time_ns);
    let is_first = all.first.as_ref().is_some_and(|(name, _)| name == function);
    let own = curve.takeovers.iter().find(|takeover| takeover.over == function);
    match (is_first, own) {
        (true, Some(takeover)) => format!(
            "{function} can be made {} faster {} before {} takes its place, which gains {}; all of it would gain {gain}.",
            share(1.0 - takeover.scale, 1.0),
            on(curve.cpus),
            takeover.function,
            share(all.time_ns - takeover.time_ns, all.time_ns),
        ),
        (true, None) => {
            format!(
                "{function} has the largest part of the critical path {}, however fast it gets; all of it would gain {gain}.",
                on(curve.cpus)
            )
        }
        (false, _) => match &all.first {
            Some((first, _)) => format!(
                "{first} has a larger part of the critical path than {function} {}; all of {function} would gain {gain}.",
                on(curve.cpus)
            ),
            None => format!(
                "{function} is not on the critical path {}; all of it would gain {gain}.",
                on(curve.cpus)
            ),
        },
    }
}

/// The CPU counts of a ranking on the screen: the recorded machine's and the last one.
pub fn ranked_on(cpus: &[Cpus], recorded: Option<u32>) -> Vec<Cpus> {
    let mut shown: Vec<Cpus> =
        main_row(cpus, recorded, |cpus| *cpus).into_iter().chain(cpus.last()).copied().collect();
    shown.dedup();
    shown
}

/// Writes the ranking on the CPU counts of [`ranked_on`]; `all`: standard functions count for themselves.
pub fn rank_text(
    rankings: &[Ranking],
    program: &Program,
    all: bool,
    frame: &Frame,
    style: &Style,
    out: &mut dyn Write,
) -> io::Result<()> {
    frame.head(style, out)?;
    let gains = |ranking: &&Ranking| {
        let rows = ranking.rows.iter().map(|row| row.gains_ns[2] / ranking.time_ns.max(1.0));
        std::iter::once(ranking.time_ns)
            .chain(rows.map(|gain| (gain * 50.0).round() + 1.0))
            .collect::<Vec<f64>>()
    };
    let groups = alike(rankings.iter().filter(|ranking| !ranking.rows.is_empty()), gains);
    let mut is_empty = true;
    for same in &groups {
        let Some(ranking) = same.first() else { continue };
        let cpus: Vec<Cpus> = same.iter().map(|ranking| ranking.cpus).collect();
        let title = format!("{}: {}", counts::on(&cpus, style), duration(ranking.time_ns));
        let columns = ["10 % off", "20 % off", "50 % off", "all off"].map(str::to_owned);
        line(out, style, Paint::Bold, &title, &columns)?;
        let worth = |row: &&RankRow| row.gains_ns[3] >= LEAST * ranking.time_ns;
        let rows: Vec<&RankRow> = ranking.rows.iter().filter(worth).collect();
        for row in &rows {
            let cells = row.gains_ns.map(|gain| signed(-gain, ranking.time_ns));
            line(out, style, Paint::Plain, &placed(&row.function, row.location.as_deref()), &cells)?;
        }
        is_empty &= rows.is_empty();
        if rows.is_empty() {
            writeln!(out, "No function by itself gains anything here.")?;
        }
        more(out, ranking.rows.len() - rows.len(), "function with less", "--json has all", style)?;
        writeln!(out)?;
    }
    if !is_empty {
        let whose =
            if all { "" } else { " (standard functions count for their callers; --all: for themselves)" };
        let what = "Change of the run's time if the function itself computes that much less";
        note(out, style, &format!("{what}{whose}."))?;
        writeln!(out)?;
    }
    frame.foot(&program.findings, None, style, out)
}

/// Before and after as JSON: `longpole-what-if/1`.
pub fn json(result: &WhatIf, out: &mut dyn Write) -> io::Result<()> {
    let document = Document {
        schema: SCHEMA,
        results: &result.results,
        trust: result.trust,
        findings: Findings(&result.findings),
        findings_after: Findings(&result.findings_after),
    };
    super::json::write(&document, out)
}

const SCHEMA: &str = "longpole-what-if/1";

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    results: &'a [WhatIfRow],
    trust: Trust,
    findings: Findings<'a>,
    #[serde(skip_serializing_if = "Findings::is_empty")]
    findings_after: Findings<'a>,
}

/// Headroom as JSON.
pub fn headroom_json(function: &str, curves: &[Curve], out: &mut dyn Write) -> io::Result<()> {
    #[derive(Serialize)]
    struct Document<'a> {
        schema: &'static str,
        function: &'a str,
        headroom: &'a [Curve],
    }
    super::json::write(&Document { schema: SCHEMA, function, headroom: curves }, out)
}

/// The ranking as JSON.
pub fn rank_json(rankings: &[Ranking], out: &mut dyn Write) -> io::Result<()> {
    #[derive(Serialize)]
    struct Document<'a> {
        schema: &'static str,
        rank: Vec<RankingJson<'a>>,
    }
    #[derive(Serialize)]
    struct RankingJson<'a> {
        cpus: Cpus,
        time_ns: Number,
        functions: Vec<GainsJson<'a>>,
    }
    #[derive(Serialize)]
    struct GainsJson<'a> {
        function: &'a str,
        gain_10_ns: Number,
        gain_20_ns: Number,
        gain_50_ns: Number,
        gain_100_ns: Number,
    }
    let rank = rankings.iter().map(|ranking| RankingJson {
        cpus: ranking.cpus,
        time_ns: Number(ranking.time_ns),
        functions: ranking
            .rows
            .iter()
            .map(|row| {
                let [ten, twenty, fifty, all] = row.gains_ns.map(Number);
                GainsJson {
                    function: &row.function,
                    gain_10_ns: ten,
                    gain_20_ns: twenty,
                    gain_50_ns: fifty,
                    gain_100_ns: all,
                }
            })
            .collect(),
    });
    super::json::write(&Document { schema: SCHEMA, rank: rank.collect() }, out)
}
