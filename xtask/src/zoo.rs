//! `./x zoo`: records programs for which longpole was not tuned, launched and attached, and counts how many of
//! longpole's answers are right. Writes the score, with machine and date, into VALIDATION.md.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Result, bail};
use longpole_tests::workload::Problem;
use longpole_tests::zoo::{Bounds, Cell, ENTRIES, Entry, Keep, Score, What, failed, judge, missing, prepare};

use crate::measure::recorder;
use crate::page::{self, Page};
use crate::workspace::Workspace;

/// What to run, and how often.
#[derive(clap::Args)]
pub struct Options {
    /// Only these; VALIDATION.md stays as it is
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    only: Vec<String>,
    /// Times that each program is run alone and recorded
    #[arg(long, value_name = "N", default_value_t = 3)]
    runs: usize,
    /// Only launched; VALIDATION.md stays as it is
    #[arg(long, conflicts_with = "attached")]
    launched: bool,
    /// Only attached to, without predicted speed-ups; VALIDATION.md stays as it is
    #[arg(long)]
    attached: bool,
    /// With breakpoints, to compare
    #[arg(long)]
    exact: bool,
    /// Two runs, without what has to be measured; VALIDATION.md stays as it is
    #[arg(long)]
    quick: bool,
    /// Keep the results of earlier runs (target/zoo/rows); visit only the programs that have none there
    #[arg(long, conflicts_with_all = ["only", "launched", "attached", "quick"])]
    resume: bool,
}

impl Options {
    /// Whether the options run everything that VALIDATION.md needs.
    fn whole(&self) -> bool {
        !(self.launched || self.attached || self.quick)
    }
}

/// The cells of a program, as stored in target/zoo/rows.
#[derive(serde::Serialize, serde::Deserialize)]
struct Row {
    name: String,
    speedup: Option<f64>,
    launched: Vec<Cell>,
    attached: Vec<Cell>,
}

impl Row {
    /// Reads the results of an earlier run; `None` if there are none.
    fn read(folder: &Path, entry: &Entry) -> Option<Row> {
        let text = std::fs::read(folder.join(format!("{}.json", entry.name))).ok()?;
        serde_json::from_slice(&text).ok()
    }

    fn write(&self, folder: &Path) -> Result<()> {
        std::fs::create_dir_all(folder)?;
        Ok(std::fs::write(folder.join(format!("{}.json", self.name)), serde_json::to_vec(self)?)?)
    }

    fn made_with(&self) -> &'static str {
        ENTRIES.iter().find(|entry| entry.name == self.name).map_or("", |entry| entry.made_with)
    }
}

/// Runs the programs, prints the cells of their rows, and updates VALIDATION.md.
///
/// # Errors
///
/// Something does not compile, or nothing can be recorded on this machine.
pub fn run(options: &Options) -> Result<ExitCode> {
    let workspace = Workspace::find();
    if let Some(name) = options.only.iter().find(|name| !ENTRIES.iter().any(|entry| entry.name == **name)) {
        let names: Vec<&str> = ENTRIES.iter().map(|entry| entry.name).collect();
        bail!("there is no {name} in the zoo: {}", names.join(", "));
    }
    let longpole = recorder(&workspace)?;
    let (runs, bounds) = if options.quick { (2, Bounds::SHARED) } else { (options.runs, Bounds::QUIET) };
    let folder = workspace.target.join("zoo");
    let keep = Keep::new(&longpole, &folder, runs, !options.quick)?;
    let keep = if options.exact { keep.exact() } else { keep };
    prepare(&folder)?;
    let wanted: Vec<&Entry> = ENTRIES
        .iter()
        .filter(|entry| options.only.is_empty() || options.only.iter().any(|name| name == entry.name))
        .collect();
    let (mut rows, mut absent) = (Vec::new(), Vec::new());
    let kept = folder.join(if options.exact { "rows-exact" } else { "rows" });
    let begin = Instant::now();
    for (at, entry) in wanted.iter().enumerate() {
        if let Some(row) = Row::read(&kept, entry).filter(|_| options.resume) {
            rows.push(row);
            continue;
        }
        eprintln!("[{}/{} {:.0} s] {}", at + 1, wanted.len(), begin.elapsed().as_secs_f64(), entry.name);
        match visit(&keep, entry, options, &bounds) {
            Ok(row) => {
                if options.whole() {
                    row.write(&kept)?;
                }
                rows.push(row);
            }
            Err(why) => {
                eprintln!("  left out: {why}");
                absent.push(format!("{} ({why})", entry.name));
            }
        }
    }
    let text = told(&rows, &absent, runs, options.exact)?;
    if options.only.is_empty() && options.whole() {
        let section = if options.exact { "zoo-exact" } else { "zoo" };
        Page::read(&workspace, &page::VALIDATION)?.put(section, &text)?;
    } else {
        println!("{text}");
    }
    Ok(ExitCode::SUCCESS)
}

/// Judges a program, launched and then attached. The error says why it cannot run on this machine.
fn visit(keep: &Keep, entry: &Entry, options: &Options, bounds: &Bounds) -> Result<Row, String> {
    if let Some(why) = missing(entry) {
        return Err(why);
    }
    let first_line = |why: Problem| why.to_string().lines().next().unwrap_or_default().to_owned();
    let program = keep.build(entry).map_err(first_line)?;
    let mut row =
        Row { name: entry.name.to_owned(), speedup: None, launched: Vec::new(), attached: Vec::new() };
    if !options.attached {
        let figures = keep.launched(entry, &program);
        row.speedup = figures.as_ref().ok().and_then(|figures| figures.speedup);
        row.launched = figures.map_or_else(|why| failed(&why), |it| judge(&entry.truth, &it, bounds));
        progress("launched", &row.launched);
    }
    if !options.launched && entry.longer > 0 {
        let figures = keep.attached(entry, &program, row.speedup);
        row.attached = figures.map_or_else(|why| failed(&why), |it| judge(&entry.truth, &it, bounds));
        progress("attached", &row.attached);
    }
    Ok(row)
}

fn progress(mode: &str, cells: &[Cell]) {
    let mut score = Score::default();
    score.add(cells);
    eprintln!("  {mode}: {score}");
    for cell in cells.iter().filter(|cell| !cell.holds) {
        eprintln!("    {}: {}", cell.what, cell.figure);
    }
}

/// Writes the section of VALIDATION.md.
fn told(rows: &[Row], absent: &[String], runs: usize, exact: bool) -> Result<String> {
    let (mut launched, mut attached) = (Score::default(), Score::default());
    for row in rows {
        launched.add(&row.launched);
        attached.add(&row.attached);
    }
    let title = if exact { "## The zoo with breakpoints (`--exact`)" } else { "## The zoo" };
    let mut text = format!(
        "{title}\n\n{} programs for which nobody tuned longpole (tests/workloads/zoo, and packaged ones), each {runs} times launched.\n\
         Where one lives long enough, it is attached to {runs} times for 4.5 s. A cell is an answer that can be wrong:\n\
         \n\
         - *unharmed*: exit code and output as alone\n\
         - *untouched*: each byte of its code is that of its files while it is recorded\n\
         - *time* for the recorded machine and *speed-up* from one CPU to two: within 10 % of the stopwatch (in turns, medians)\n\
         - *shares*: within −5 to 105 % on 1 to 16 and unlimited CPUs\n\
         - *agree*: report, predict, what-if, slack and diff, to 0.5 %\n\
         - *no change*: what diff says of two recordings\n\
         - *same leader* in all recordings, *true leader* where that is known\n\
         - *true limit*: LIMIT says first the kind that was found by taking it away, which gains a fifth.\n  \
         Of a program that only looks alike, it says that kind neither first nor with 10 %\n\
         - *no deadlock*\n\
         - *advice*: it names what a person can change\n\
         - *told cost* below 2.5 %, measured *cost* below 5 % of the program's CPU time, or of one CPU if that is more\n\
         \nCells that hold: launched {launched}, attached {attached}.\n\n| program | made with | speed-up | launched | attached |\n|---|---|---|---|---|\n",
        rows.len()
    );
    for row in rows {
        let score = |cells: &[Cell]| {
            let hold = cells.iter().filter(|cell| cell.holds).count();
            if cells.is_empty() { "–".to_owned() } else { format!("{hold} of {}", cells.len()) }
        };
        writeln!(
            text,
            "| {} | {} | {} | {} | {} |",
            row.name,
            row.made_with(),
            row.speedup.map_or("–".to_owned(), |speedup| format!("{speedup:.2}")),
            score(&row.launched),
            score(&row.attached)
        )?;
    }
    text.push_str("\n| cell | launched | attached |\n|---|---|---|\n");
    for what in What::ALL {
        let score = |of: fn(&Row) -> &[Cell]| {
            let cells = rows.iter().flat_map(of).filter(|cell| cell.what == what);
            let (hold, all) = cells.fold((0, 0), |(hold, all), cell| (hold + u32::from(cell.holds), all + 1));
            format!("{hold} of {all}")
        };
        writeln!(text, "| {what} | {} | {} |", score(|row| &row.launched), score(|row| &row.attached))?;
    }
    let mut wrong: BTreeMap<What, Vec<String>> = BTreeMap::new();
    for row in rows {
        for (mode, cells) in [("launched", &row.launched), ("attached", &row.attached)] {
            for cell in cells.iter().filter(|cell| !cell.holds) {
                let line = format!("{} {mode}: {}", row.name, short(&cell.figure));
                wrong.entry(cell.what).or_default().push(line);
            }
        }
    }
    if !wrong.is_empty() {
        text.push_str("\nCells that fail:\n");
    }
    for (what, lines) in wrong {
        write!(text, "\n- *{what}*\n")?;
        for line in lines {
            writeln!(text, "  - {line}")?;
        }
    }
    if !absent.is_empty() {
        write!(text, "\nNot here: {}.\n", absent.join("; "))?;
    }
    Ok(text)
}

/// Makes a figure short enough for a list, and removes characters that Markdown would interpret.
fn short(figure: &str) -> String {
    const LENGTH: usize = 160;
    let line = figure.replace(['\n', '`', '|', '<', '>'], " ");
    let cut: String = line.chars().take(LENGTH).collect();
    if cut.len() < line.len() { format!("{cut}…") } else { cut }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_zoo_s_page_lists_what_fails_with_its_figure() {
        let cell = |what, holds, figure: &str| Cell { what, holds, figure: figure.to_owned() };
        let row = Row {
            name: ENTRIES[0].name.to_owned(),
            speedup: Some(1.5),
            launched: vec![cell(What::Time, true, ""), cell(What::Speedup, false, "2.00, measured 1.50")],
            attached: Vec::new(),
        };
        let text = told(&[row], &["pigz (not installed)".to_owned()], 3, false).unwrap();
        assert!(text.contains("launched 1 of 2 (50 %), attached 0 of 0 (0 %)"), "{text}");
        assert!(text.contains("| 1.50 | 1 of 2 | – |"), "{text}");
        assert!(text.contains("| speed-up | 0 of 1 | 0 of 0 |"), "{text}");
        assert!(text.contains("- *speed-up*\n  - fsync launched: 2.00, measured 1.50\n"), "{text}");
        assert!(text.contains("Not here: pigz (not installed).\n"), "{text}");
        assert_eq!(short("a<b>|c"), "a b  c");
    }

    #[test]
    fn the_result_of_a_zoo_run_is_read_back_by_the_next() {
        let folder = tempfile::tempdir().unwrap();
        let cell = Cell { what: What::Speedup, holds: false, figure: "2.00, measured 1.50".to_owned() };
        let name = ENTRIES[0].name.to_owned();
        let row = Row { name, speedup: Some(1.5), launched: vec![cell.clone()], attached: Vec::new() };
        row.write(folder.path()).unwrap();
        let read = Row::read(folder.path(), &ENTRIES[0]).unwrap();
        assert_eq!((read.speedup, read.launched, read.attached.len()), (Some(1.5), vec![cell], 0));
        assert!(Row::read(folder.path(), &ENTRIES[1]).is_none());
    }
}
