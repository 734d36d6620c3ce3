//! `longpole check`

use super::output::{to_reader, to_stdout};
use crate::cli::study::CheckArguments;
use crate::exit::{Code, UserError};
use crate::input::Input;
use crate::plan::is_dash;
use crate::present::{study::check, style};
use crate::rules::{RuleOutcome, Rules, Verdict};
use engine::attribution::Grouping;
use engine::report::Detail;
use recording::{CreateError, Overwrite, create_file};
use std::io::{self, Read, Write};
use std::path::Path;

/// A rules file larger than this is refused.
const MOST_BYTES: u64 = 1 << 20;

/// Reads an input, checks rules against its report, and shows the outcome. Exit code 3 if a rule is broken.
pub fn run(args: &CheckArguments) -> Result<crate::exit::Outcome, UserError> {
    let files = [&args.junit, &args.markdown].into_iter().flatten();
    if files.filter(|file| is_dash(file)).count() + usize::from(args.json) > 1 {
        return Err(UserError::usage(
            "only one of --junit, --markdown and --json can go to standard output",
            "give files for the others, for example --junit report.xml",
        ));
    }
    let rules = rules(&args.rules)?;
    let program = Input::open(&args.input.plan())?.into_program();
    let model = super::model(args.scheduling.model);
    let report =
        super::report_on_all_cores(&program, &rules.cpus(), Detail::Functions, Grouping::Function, &model);
    let outcomes = rules.outcomes(&report, &program.recorded.traffic).map_err(|error| {
        UserError::usage(format!("{}: {error}", symbols::safe_path(&args.rules)), error.hint())
    })?;
    let mut shown = args.json;
    for (output, write) in
        [(&args.junit, check::junit as Writer), (&args.markdown, check::markdown as Writer)]
    {
        match output {
            Some(path) if is_dash(path) => {
                to_stdout(|out| write(&outcomes, out))?;
                shown = true;
            }
            Some(path) => {
                let mut file = create_file(path, Overwrite::Reports)?;
                let written = write(&outcomes, &mut file).and_then(|()| file.flush());
                written.map_err(|error| CreateError::io(path, error))?;
            }
            None => {}
        }
    }
    if args.json || !shown {
        let limits = super::limit_on_all_cores(&program, &super::usual_cpus(), &model);
        match args.json {
            true => to_stdout(|out| check::json(&outcomes, &limits, out))?,
            false => to_reader(|out| check::text(&outcomes, &limits, &style::for_stdout(), out))?,
        }
    }
    let broken = outcomes.iter().any(|outcome| outcome.verdict == Verdict::Broken);
    Ok(if broken { crate::exit::Outcome::Code(Code::Threshold as u8) } else { crate::exit::Outcome::Done })
}

type Writer = fn(&[RuleOutcome], &mut dyn Write) -> io::Result<()>;

fn rules(path: &Path) -> Result<Rules, UserError> {
    let name = path.display();
    let read = || {
        let mut bytes = Vec::new();
        std::fs::File::open(path)?.take(MOST_BYTES + 1).read_to_end(&mut bytes)?;
        Ok::<_, io::Error>(bytes)
    };
    let bytes = read().map_err(|error| {
        UserError::runtime(
            format!("the rules in {name} cannot be read: {error}"),
            "check the name after --rules",
        )
    })?;
    if bytes.len() as u64 > MOST_BYTES {
        return Err(UserError::runtime(
            format!("{name} is larger than 1 MiB"),
            "rules are a few lines of TOML; check the name after --rules",
        ));
    }
    let text = String::from_utf8(bytes)
        .map_err(|_| UserError::runtime(format!("{name} is not UTF-8 text"), "save the rules as UTF-8"))?;
    Rules::parse(&text).map_err(|error| UserError::runtime(format!("{name}: {error}"), error.hint()))
}
