//! Arguments → plans.

use super::args;
use crate::cli::value;
use crate::exit::UserError;
use crate::plan::{
    CheckPlan, CompareMetricsPlan, DiffPlan, EditPlan, Listed, ParallelismPlan, PathsPlan, Question,
    SlackPlan, ThreadsPlan, Threshold, WhatIfPlan,
};
use crate::plan::{InputPlan, OutputPlan};
use std::path::PathBuf;

/// Rows shown unless asked otherwise.
const ROWS: usize = 10;
/// Paths listed unless asked otherwise.
const PATHS: usize = 100;
/// The same with --within.
const PATHS_WITHIN: usize = 10_000;
/// More paths than this are refused: they need some hundred bytes each.
const MOST_PATHS: usize = 1_000_000;

/// `longpole slack`.
pub fn slack(args: args::SlackArguments) -> Result<SlackPlan, UserError> {
    Ok(SlackPlan {
        scheduler: value::scheduler(&args.studied.scheduler.model)?,
        input: InputPlan::of(args.studied.file),
        segments: args.segments,
        top: top(args.top)?,
        all: args.all,
        probed_only: args.studied.probed_only,
        json: args.json,
    })
}

/// `longpole parallelism`.
pub fn parallelism(args: args::ParallelismArguments) -> Result<ParallelismPlan, UserError> {
    let by = match args.by.as_deref() {
        None => None,
        Some("function") => Some(Listed::Functions),
        Some("lock") => Some(Listed::Objects),
        Some("thread") => Some(Listed::Threads),
        Some(other) => {
            return Err(UserError::usage(
                format!("--by '{other}' is no kind of row"),
                "give function, lock or thread",
            ));
        }
    };
    Ok(ParallelismPlan {
        scheduler: value::scheduler(&args.studied.scheduler.model)?,
        input: InputPlan::of(args.studied.file),
        cpus: args.cpus.map(|list| value::cpu_list(&list)).transpose()?,
        by,
        of: args.of,
        top: args.top.map(|text| value::count("--top", &text)).transpose()?,
        probed_only: args.studied.probed_only,
        json: args.json,
    })
}

/// `longpole compare-metrics`.
pub fn compare_metrics(args: args::CompareMetricsArguments) -> Result<CompareMetricsPlan, UserError> {
    let cpus = match args.cpus.as_deref().map(value::cpu_list).transpose()?.as_deref() {
        None => None,
        Some([cpus]) => Some(*cpus),
        Some(_) => {
            return Err(UserError::usage(
                "metrics are compared on one number of CPUs",
                "give one, such as --cpus 4",
            ));
        }
    };
    Ok(CompareMetricsPlan {
        scheduler: value::scheduler(&args.studied.scheduler.model)?,
        input: InputPlan::of(args.studied.file),
        cpus,
        top: top(args.top)?,
        probed_only: args.studied.probed_only,
        json: args.json,
    })
}

/// `longpole paths`.
pub fn paths(args: args::PathsArguments) -> Result<PathsPlan, UserError> {
    let within = args.within.map(|text| value::share("--within", &text)).transpose()?;
    if within.is_some_and(|within| within > 1.0) {
        return Err(UserError::usage(
            "--within is more than 100 %",
            "no path is shorter than nothing: give a percentage such as --within 5%",
        ));
    }
    let most = match args.k {
        Some(text) => value::count("-k", &text)?,
        None if within.is_some() => PATHS_WITHIN,
        None => PATHS,
    };
    let show = args.show.map(|text| value::count::<usize>("--show", &text)).transpose()?;
    for (option, count) in [("-k", most), ("--show", show.unwrap_or(1))] {
        if count > MOST_PATHS {
            return Err(UserError::usage(
                format!("{option} {count} is more than {MOST_PATHS} paths"),
                format!("give at most {option} {MOST_PATHS}"),
            ));
        }
    }
    let input = InputPlan::of(args.studied.file);
    if args.next && input == InputPlan::Stdin {
        return Err(UserError::usage(
            "--next reads the program and your answers from standard input",
            "write the program to a file",
        ));
    }
    Ok(PathsPlan {
        scheduler: value::scheduler(&args.studied.scheduler.model)?,
        input,
        most,
        within,
        show,
        next: args.next,
        segments: args.segments,
        top: top(args.top)?,
        all: args.all,
        probed_only: args.studied.probed_only,
        json: args.json,
    })
}

/// `longpole what-if`.
pub fn what_if(args: args::WhatIfArguments) -> Result<WhatIfPlan, UserError> {
    let mut edits = Vec::new();
    for text in &args.scale {
        let (name, factor) = named("--scale", text, "parse=0.8")?;
        let factor = factor.trim().parse::<f64>().ok().filter(|factor| factor.is_finite() && *factor >= 0.0);
        let Some(factor) = factor else {
            return Err(UserError::usage(
                format!("--scale '{text}': the factor is no number of at least 0"),
                "a factor is what is left: 0.8 is a fifth less, 0 is nothing, 2 is twice as much",
            ));
        };
        edits.push(EditPlan::Scale(name, factor));
    }
    for text in &args.split_lock {
        let (name, parts) = named("--split-lock", text, "cache=4")?;
        edits.push(EditPlan::SplitLock(name, value::count("--split-lock", &parts)?));
    }
    if args.free_io {
        edits.push(EditPlan::FreeIo);
    }
    let threads = args.threads.as_deref().map(threads).transpose()?;
    let question = match (args.headroom, args.rank) {
        (Some(function), _) => Question::Headroom(function),
        (None, false) if let Some(threads) = threads => Question::Threads(threads),
        (None, true) => Question::Rank(top(args.top.clone())?),
        (None, false) if edits.is_empty() => {
            return Err(UserError::usage(
                "nothing is to be changed",
                "say what if: --scale NAME=0.8, --split-lock LOCK=4, --threads +1, --free-io; or ask --rank or --headroom FUNCTION",
            ));
        }
        (None, false) => Question::Edits(edits),
    };
    if args.top.is_some() && !args.rank {
        return Err(UserError::usage("--top is about --rank", "leave out --top, or add --rank"));
    }
    Ok(WhatIfPlan {
        input: InputPlan::of(args.studied.file),
        question,
        cpus: value::cpu_list(&args.cpus)?,
        scheduler: value::scheduler(&args.studied.scheduler.model)?,
        probed_only: args.studied.probed_only,
        json: args.json,
    })
}

/// `8`, or `+1`.
fn threads(text: &str) -> Result<ThreadsPlan, UserError> {
    let (number, more) = match text.strip_prefix('+') {
        Some(number) => (number, true),
        None => (text, false),
    };
    let count: usize = value::count("--threads", number)?;
    Ok(if more { ThreadsPlan::More(count) } else { ThreadsPlan::All(count) })
}

/// `longpole diff`.
pub fn diff(args: args::DiffArguments) -> Result<DiffPlan, UserError> {
    let inputs = [InputPlan::of(Some(args.before)), InputPlan::of(Some(args.after))];
    if inputs == [InputPlan::Stdin, InputPlan::Stdin] {
        return Err(UserError::usage("standard input can be read only once", "give a file for A or for B"));
    }
    let fail_on = args.fail_on.iter().map(|text| threshold(text)).collect::<Result<_, _>>()?;
    Ok(DiffPlan {
        inputs,
        scheduler: value::scheduler(&args.scheduler.model)?,
        cpus: value::cpu_list(&args.cpus)?,
        fail_on,
        top: top(args.top)?,
        json: args.json,
    })
}

/// `longpole check`.
pub fn check(args: args::CheckArguments) -> Result<CheckPlan, UserError> {
    let (junit, markdown) = (args.junit.map(output), args.markdown.map(output));
    let to_stdout = [junit.as_ref(), markdown.as_ref()].into_iter().flatten();
    let count = to_stdout.filter(|output| **output == OutputPlan::Stdout).count() + usize::from(args.json);
    if count > 1 {
        return Err(UserError::usage(
            "only one of --junit, --markdown and --json can go to standard output",
            "give a file to the others, for example --junit report.xml",
        ));
    }
    Ok(CheckPlan {
        input: InputPlan::of(args.file),
        scheduler: value::scheduler(&args.scheduler.model)?,
        rules: args.rules,
        junit,
        markdown,
        json: args.json,
    })
}

fn output(file: PathBuf) -> OutputPlan {
    if file.as_os_str() == "-" { OutputPlan::Stdout } else { OutputPlan::File(file) }
}

fn top(text: Option<String>) -> Result<usize, UserError> {
    text.map_or(Ok(ROWS), |text| value::count("--top", &text))
}

/// `NAME=VALUE`. A name may hold `=` itself (`operator==`): the last one counts.
fn named(option: &str, text: &str, example: &str) -> Result<(String, String), UserError> {
    match text.rsplit_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err(UserError::usage(
            format!("{option} '{text}' is not of the form NAME=VALUE"),
            format!("for example {option} {example}"),
        )),
    }
}

/// `+5%`, `5%`, `parse=+5%`.
fn threshold(text: &str) -> Result<Threshold, UserError> {
    let (function, share) = match text.rsplit_once('=') {
        Some((name, share)) if !name.is_empty() => (Some(name.to_owned()), share),
        _ => (None, text),
    };
    let share = share.trim();
    let number = share.strip_prefix('+').unwrap_or(share);
    Ok(Threshold { function, share: value::share("--fail-on", number)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_equals_sign_counts() {
        assert_eq!(
            named("--scale", "operator===0.5", "").expect("a pair"),
            ("operator==".into(), "0.5".into())
        );
        for wrong in ["parse", "=0.5", ""] {
            assert!(named("--scale", wrong, "parse=0.8").is_err(), "{wrong}");
        }
    }

    #[test]
    fn thresholds() {
        let parsed = |text: &str| threshold(text).map(|threshold| (threshold.function, threshold.share));
        assert_eq!(parsed("+5%").expect("a threshold"), (None, 0.05));
        assert_eq!(parsed("5").expect("a threshold"), (None, 0.05));
        assert_eq!(parsed("a=b=+10 %").expect("a threshold"), (Some("a=b".into()), 0.1));
        for wrong in ["", "-5%", "fast", "f=", "+"] {
            assert!(parsed(wrong).is_err(), "{wrong}");
        }
    }
}
