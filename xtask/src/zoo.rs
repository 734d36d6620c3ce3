//! `./x zoo`: programs that nobody tuned longpole for, launched and attached, and how many of its answers are right. Keeps the
//! score, with machine and date, in VALIDATION.md.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Result, bail};
use longpole_tests::workload::Problem;
use longpole_tests::zoo::{Bounds, Cell, ENTRIES, Entry, Keep, Score, What, failed, judge, missing, prepare};

use crate::bench::recorder;
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
    /// Two runs, without what has to be measured; VALIDATION.md stays as it is
    #[arg(long)]
    quick: bool,
}

/// The cells of a program.
struct Row {
    entry: &'static Entry,
    speedup: Option<f64>,
    launched: Vec<Cell>,
    attached: Vec<Cell>,
}

/// Runs the programs, prints their cells, and updates VALIDATION.md.
///
/// # Errors
/// Something does not compile, or nothing can be recorded here.
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
    prepare(&folder)?;
    let wanted: Vec<&Entry> = ENTRIES
        .iter()
        .filter(|entry| options.only.is_empty() || options.only.iter().any(|name| name == entry.name))
        .collect();
    let (mut rows, mut absent) = (Vec::new(), Vec::new());
    let begin = Instant::now();
    for (at, entry) in wanted.iter().enumerate() {
        eprintln!("[{}/{} {:.0} s] {}", at + 1, wanted.len(), begin.elapsed().as_secs_f64(), entry.name);
        match visit(&keep, entry, options, &bounds) {
            Ok(row) => rows.push(row),
            Err(why) => {
                eprintln!("  left out: {why}");
                absent.push(format!("{} ({why})", entry.name));
            }
        }
    }
    let text = told(&rows, &absent, runs)?;
    if options.only.is_empty() && !options.launched && !options.attached && !options.quick {
        Page::read(&workspace, &page::VALIDATION)?.put("zoo", &text)?;
    } else {
        println!("{text}");
    }
    Ok(ExitCode::SUCCESS)
}

/// A program in both ways, or why it is not here.
fn visit(keep: &Keep, entry: &'static Entry, options: &Options, bounds: &Bounds) -> Result<Row, String> {
    if let Some(why) = missing(entry) {
        return Err(why);
    }
    let program = match keep.build(entry) {
        Ok(program) => program,
        Err(Problem::NoCompiler(why) | Problem::Broken(why)) => {
            return Err(why.lines().next().unwrap_or_default().to_owned());
        }
    };
    let mut row = Row { entry, speedup: None, launched: Vec::new(), attached: Vec::new() };
    if !options.attached {
        let figures = keep.launched(entry, &program);
        row.speedup = figures.as_ref().ok().and_then(|figures| figures.speedup);
        row.launched = figures.map_or_else(|why| failed(&why), |it| judge(entry.leads, &it, bounds));
        progress("launched", &row.launched);
    }
    if !options.launched && entry.longer > 0 {
        let figures = keep.attached(entry, &program, row.speedup);
        row.attached = figures.map_or_else(|why| failed(&why), |it| judge(entry.leads, &it, bounds));
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

/// The section of VALIDATION.md.
fn told(rows: &[Row], absent: &[String], runs: usize) -> Result<String> {
    let (mut launched, mut attached) = (Score::default(), Score::default());
    for row in rows {
        launched.add(&row.launched);
        attached.add(&row.attached);
    }
    let mut text = format!(
        "## The zoo\n\n{} programs for which nobody tuned longpole (tests/workloads/zoo, and packaged ones), each {runs} times launched and, \
         where it lives\nlong enough, {runs} times attached to for 1.2 s. A cell is an answer that can be wrong: exit code and output \
         as alone\n(*unharmed*); predicted *time* for the recorded machine and *speed-up* from one CPU to two, each within 10 % \
         of the\nstopwatch (in turns, medians); *shares* within −5 to 105 % on 1 to 16 and unlimited CPUs; report, predict, \
         what-if, slack\nand diff *agree* to 0.5 %; diff of two recordings claims *no change*; the *same leader* in all \
         recordings, and the *true\nleader* where that is known; *no deadlock*; *advice* that names what a person can change; \
         *told cost* below 2.5 % and\nmeasured *cost* below 5 % of the program's CPU time.\n\nCells that hold: launched \
         {launched}, attached {attached}.\n\n| program | made with | speed-up | launched | attached |\n|---|---|---|---|---|\n",
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
            row.entry.name,
            row.entry.made_with,
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
                let line = format!("{} {mode}: {}", row.entry.name, short(&cell.figure));
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

/// A figure that fits into a list of them, with nothing in it that a page takes for its own.
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
    fn the_page_tells_what_fails_with_its_figure() {
        let cell = |what, holds, figure: &str| Cell { what, holds, figure: figure.to_owned() };
        let row = Row {
            entry: &ENTRIES[0],
            speedup: Some(1.5),
            launched: vec![cell(What::Time, true, ""), cell(What::Speedup, false, "2.00, measured 1.50")],
            attached: Vec::new(),
        };
        let text = told(&[row], &["pigz (not installed)".to_owned()], 3).unwrap();
        assert!(text.contains("launched 1 of 2 (50 %), attached 0 of 0 (0 %)"), "{text}");
        assert!(text.contains("| 1.50 | 1 of 2 | – |"), "{text}");
        assert!(text.contains("| speed-up | 0 of 1 | 0 of 0 |"), "{text}");
        assert!(text.contains("- *speed-up*\n  - fsync launched: 2.00, measured 1.50\n"), "{text}");
        assert!(text.contains("Not here: pigz (not installed).\n"), "{text}");
        assert_eq!(short("a<b>|c"), "a b  c");
    }
}
