//! `longpole what-if`: times before and after, headroom, and the ranking.

use super::json::{CpuCount, Findings, Number};
use super::listing::{headline, line, main_row, note, on, on_all, placed, share};
use crate::present::cell::duration;
use crate::present::style::{Paint, Style};
use crate::present::text::{cpu_title, findings, trust};
use engine::report::{Cpus, Trust};
use engine::what_if::{Curve, RankRow, Ranking, WhatIf, WhatIfRow};
use serde::Serialize;
use std::io::{self, Write};

/// What is the same on several CPU counts, once, in the order in which it is first there.
fn together<T: PartialEq>(items: impl Iterator<Item = (Cpus, T)>) -> Vec<(Vec<Cpus>, T)> {
    let mut all: Vec<(Vec<Cpus>, T)> = Vec::new();
    for (cpus, item) in items {
        match all.iter_mut().find(|(_, known)| *known == item) {
            Some((of, _)) => of.push(cpus),
            None => all.push((vec![cpus], item)),
        }
    }
    all
}

/// `2, 4 and ∞ CPUs`
fn cpus_title(cpus: &[Cpus], style: &Style) -> String {
    let (Some(last), rest) = (cpus.last(), cpus.len().saturating_sub(1)) else { return String::new() };
    let bare = |cpus: &Cpus| match cpus {
        Cpus::Count(count) => count.to_string(),
        Cpus::Infinite => if style.unicode { "∞" } else { "inf" }.to_owned(),
    };
    let rest: Vec<String> = cpus.iter().take(rest).map(bare).collect();
    match rest.as_slice() {
        [] => cpu_title(*last, style),
        rest => format!("{} and {}", rest.join(", "), cpu_title(*last, style)),
    }
}

/// Before and after, for people. `changes` says what was changed.
pub fn text(result: &WhatIf, changes: &str, style: &Style, out: &mut dyn Write) -> io::Result<()> {
    if let Some(row) = main_row(&result.results, result.recorded_cpus, |row| row.cpus) {
        headline(out, style, &sentence(row, changes))?;
    }
    let titles = ["before", "after", "gain", "promised"].map(str::to_owned);
    line(out, style, Paint::Bold, "", &titles)?;
    for row in &result.results {
        let gain = row.before_ns - row.after_ns;
        let cells = [
            duration(row.before_ns),
            duration(row.after_ns),
            share(gain, row.before_ns),
            row.promised_ns.map_or("-".to_owned(), |promised| share(promised, row.before_ns)),
        ];
        line(out, style, Paint::Plain, &cpu_title(row.cpus, style), &cells)?;
        let first = |first: &Option<(String, f64)>| match first {
            Some((name, part)) => format!("{name} {}", share(*part, 1.0)),
            None => "no function".to_owned(),
        };
        let (before, after) = (first(&row.first_before), first(&row.first_after));
        let text = format!("  first: {before}, then {after}");
        writeln!(out, "{}", style.paint(Paint::Dim, &style.fit(&text, style.width)))?;
    }
    writeln!(out)?;
    let what = "Promised: what the extended critical path says of changes so small that nothing else takes their place. \
                First: the function with the largest share of the extended critical path, before and after.";
    note(out, style, what)?;
    if result.results.iter().any(|row| row.promised_ns.is_none()) {
        note(out, style, "It promises nothing (-) where more is changed than functions.")?;
    }
    writeln!(out)?;
    let mut out = out;
    trust(&mut out, &result.trust, style)?;
    findings(&mut out, &result.findings, style)?;
    if !result.findings_after.is_empty() {
        note(out, style, "With the changes:")?;
    }
    findings(&mut out, &result.findings_after, style)
}

fn sentence(row: &WhatIfRow, changes: &str) -> String {
    if row.before_ns == 0.0 && row.after_ns == 0.0 {
        return "Nothing to change: no thread took any time here.".to_owned();
    }
    let gain = row.before_ns - row.after_ns;
    let then = match &row.first_after {
        Some((name, _)) if row.first_before.as_ref().is_none_or(|(before, _)| before != name) => {
            format!("; then {name} is what limits it most")
        }
        Some((name, _)) => format!("; {name} still limits it most"),
        None => String::new(),
    };
    let by = if gain >= 0.0 {
        format!("{} less", share(gain, row.before_ns))
    } else {
        format!("{} more", share(-gain, row.before_ns))
    };
    format!(
        "With {changes} the run would take {} instead of {} {} ({by}){then}.",
        duration(row.after_ns),
        duration(row.before_ns),
        on(row.cpus)
    )
}

/// A function's headroom, for people.
pub fn headroom_text(
    function: &str,
    curves: &[Curve],
    recorded: Option<u32>,
    style: &Style,
    out: &mut dyn Write,
) -> io::Result<()> {
    if let Some(curve) = main_row(curves, recorded, |curve| curve.cpus) {
        headline(out, style, &headroom_sentence(function, curve))?;
    }
    for few in curves.chunks(5) {
        let titles: Vec<String> = few.iter().map(|curve| cpu_title(curve.cpus, style)).collect();
        line(out, style, Paint::Bold, "left of it", &titles)?;
        for place in 0..few.iter().map(|curve| curve.points.len()).max().unwrap_or(0) {
            let points = few.iter().map(|curve| curve.points.get(place));
            let cells: Vec<String> = points
                .clone()
                .map(|point| point.map_or("-".to_owned(), |point| duration(point.time_ns)))
                .collect();
            let scale = points.flatten().next().map_or(0.0, |point| point.scale);
            line(out, style, Paint::Plain, &share(scale, 1.0), &cells)?;
        }
        writeln!(out)?;
    }
    let takeovers = curves.iter().flat_map(|curve| {
        curve.takeovers.iter().map(|takeover| {
            let text = format!(
                "from {} left of {function} on, {} comes first instead of {} ({})",
                share(takeover.scale, 1.0),
                takeover.function,
                takeover.over,
                duration(takeover.time_ns)
            );
            (curve.cpus, text)
        })
    });
    let takeovers = together(takeovers);
    for (cpus, text) in &takeovers {
        let text = format!("{}, {text}", on_all(cpus));
        let mut plain: &mut dyn Write = out;
        crate::present::table::wrap(&mut plain, style, Paint::Plain, "", &style.text(&text), "  ")?;
    }
    if !takeovers.is_empty() {
        writeln!(out)?;
    }
    note(
        out,
        style,
        "Predicted times as the function gets faster. Who comes first has the largest share of the extended critical path.",
    )
}

fn headroom_sentence(function: &str, curve: &Curve) -> String {
    let (Some(all), Some(none)) = (curve.points.first(), curve.points.last()) else {
        return format!("Nothing is known of {function}.");
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
                "{function} stays what limits the run most {}, however fast it gets; all of it would gain {gain}.",
                on(curve.cpus)
            )
        }
        (false, _) => match &all.first {
            Some((first, _)) => format!(
                "{function} is not what limits the run most {}, {first} is; all of {function} would gain {gain}.",
                on(curve.cpus)
            ),
            None => format!(
                "{function} is not what limits the run {}; all of it would gain {gain}.",
                on(curve.cpus)
            ),
        },
    }
}

/// The ranking, for people.
pub fn rank_text(
    rankings: &[Ranking],
    recorded: Option<u32>,
    style: &Style,
    out: &mut dyn Write,
) -> io::Result<()> {
    let sentence = main_row(rankings, recorded, |ranking| ranking.cpus).map(|ranking| {
        let Some(row) = ranking.rows.first().filter(|row| row.gains_ns[3] > 0.0) else {
            return format!("No function gains anything {}.", on(ranking.cpus));
        };
        format!(
            "{} brings the most {}: 10 % off it gains {}, and all of it {} of {}.",
            row.function,
            on(ranking.cpus),
            share(row.gains_ns[0], ranking.time_ns),
            share(row.gains_ns[3], ranking.time_ns),
            duration(ranking.time_ns)
        )
    });
    headline(out, style, &sentence.unwrap_or_default())?;
    let tables = rankings.iter().filter(|ranking| !ranking.rows.is_empty()).map(|ranking| {
        let row = |row: &RankRow| {
            let cells = row.gains_ns.map(|gain| share(gain, ranking.time_ns));
            (placed(&row.function, row.location.as_deref()), cells)
        };
        (ranking.cpus, (duration(ranking.time_ns), ranking.rows.iter().map(row).collect::<Vec<_>>()))
    });
    for (cpus, (time, rows)) in together(tables) {
        let title = format!("{}: {time}", cpus_title(&cpus, style));
        let columns = ["10 % off", "20 % off", "50 % off", "all off"].map(str::to_owned);
        line(out, style, Paint::Bold, &title, &columns)?;
        for (name, cells) in rows {
            line(out, style, Paint::Plain, &name, &cells)?;
        }
        writeln!(out)?;
    }
    note(
        out,
        style,
        "How much shorter the predicted time gets if that much is taken off what the function itself computes.",
    )
}

/// Before and after, for programs: `longpole-what-if/1`.
pub fn json(result: &WhatIf, out: &mut dyn Write) -> io::Result<()> {
    let document = Document {
        schema: SCHEMA,
        results: result.results.iter().map(RowJson::new).collect(),
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
    results: Vec<RowJson<'a>>,
    trust: Trust,
    findings: Findings<'a>,
    #[serde(skip_serializing_if = "Findings::is_empty")]
    findings_after: Findings<'a>,
}

#[derive(Serialize)]
struct RowJson<'a> {
    cpus: CpuCount,
    before_ns: Number,
    after_ns: Number,
    promised_ns: Option<Number>,
    first_before: Option<&'a str>,
    first_after: Option<&'a str>,
}

impl<'a> RowJson<'a> {
    fn new(row: &'a WhatIfRow) -> RowJson<'a> {
        let name = |first: &'a Option<(String, f64)>| first.as_ref().map(|(name, _)| name.as_str());
        RowJson {
            cpus: CpuCount(row.cpus),
            before_ns: Number(row.before_ns),
            after_ns: Number(row.after_ns),
            promised_ns: row.promised_ns.map(Number),
            first_before: name(&row.first_before),
            first_after: name(&row.first_after),
        }
    }
}

/// Headroom, for programs.
pub fn headroom_json(function: &str, curves: &[Curve], out: &mut dyn Write) -> io::Result<()> {
    #[derive(Serialize)]
    struct Document<'a> {
        schema: &'static str,
        function: &'a str,
        headroom: Vec<CurveJson<'a>>,
    }
    #[derive(Serialize)]
    struct CurveJson<'a> {
        cpus: CpuCount,
        points: Vec<PointJson<'a>>,
        takeovers: Vec<TakeoverJson<'a>>,
    }
    #[derive(Serialize)]
    struct PointJson<'a> {
        scale: Number,
        time_ns: Number,
        first: Option<&'a str>,
    }
    #[derive(Serialize)]
    struct TakeoverJson<'a> {
        scale: Number,
        time_ns: Number,
        over: &'a str,
        function: &'a str,
    }
    let curves = curves.iter().map(|curve| CurveJson {
        cpus: CpuCount(curve.cpus),
        points: curve
            .points
            .iter()
            .map(|point| PointJson {
                scale: Number(point.scale),
                time_ns: Number(point.time_ns),
                first: point.first.as_ref().map(|(name, _)| name.as_str()),
            })
            .collect(),
        takeovers: curve
            .takeovers
            .iter()
            .map(|takeover| TakeoverJson {
                scale: Number(takeover.scale),
                time_ns: Number(takeover.time_ns),
                over: &takeover.over,
                function: &takeover.function,
            })
            .collect(),
    });
    super::json::write(&Document { schema: SCHEMA, function, headroom: curves.collect() }, out)
}

/// The ranking, for programs.
pub fn rank_json(rankings: &[Ranking], out: &mut dyn Write) -> io::Result<()> {
    #[derive(Serialize)]
    struct Document<'a> {
        schema: &'static str,
        rank: Vec<RankingJson<'a>>,
    }
    #[derive(Serialize)]
    struct RankingJson<'a> {
        cpus: CpuCount,
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
        cpus: CpuCount(ranking.cpus),
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
