//! `longpole check`

use super::output::{to_reader, to_stdout};
use crate::exit::{Code, UserError};
use crate::input::Input;
use crate::plan::CheckPlan;
use crate::plan::OutputPlan;
use crate::present::{study::check, style};
use crate::rules::{Outcome, Rules, Verdict};
use engine::attribution::Grouping;
use engine::report::Detail;
use recording::{CreateError, Overwrite, create_file};
use std::io::{self, Read, Write};
use std::path::Path;

/// A rules file larger than this is refused.
const MOST_BYTES: u64 = 1 << 20;

/// Reads, sets the rules against the report, shows both: exit code 3 if a rule is broken.
pub fn run(plan: &CheckPlan) -> Result<crate::exit::Outcome, UserError> {
    let rules = rules(&plan.rules)?;
    let program = Input::open(&plan.input)?.into_program();
    let model = super::model(plan.scheduler);
    let report =
        super::report_on_all_cores(&program, &rules.cpus(), Detail::Functions, Grouping::Function, &model);
    let outcomes = rules.outcomes(&report).map_err(|error| {
        UserError::usage(format!("{}: {error}", symbols::safe_path(&plan.rules)), error.hint())
    })?;
    let mut shown = plan.json;
    for (output, write) in
        [(&plan.junit, check::junit as Writer), (&plan.markdown, check::markdown as Writer)]
    {
        match output {
            Some(OutputPlan::Stdout) => {
                to_stdout(|out| write(&outcomes, out))?;
                shown = true;
            }
            Some(OutputPlan::File(path)) => {
                let mut file = create_file(path, Overwrite::Reports)?;
                let written = write(&outcomes, &mut file).and_then(|()| file.flush());
                written.map_err(|error| CreateError::io(path, error))?;
            }
            None => {}
        }
    }
    if plan.json || !shown {
        let limits = super::limit_on_all_cores(&program, &super::usual_cpus(), &model);
        match plan.json {
            true => to_stdout(|out| check::json(&outcomes, &limits, out))?,
            false => to_reader(|out| check::text(&outcomes, &limits, &style::for_stdout(), out))?,
        }
    }
    let broken = outcomes.iter().any(|outcome| outcome.verdict == Verdict::Broken);
    Ok(if broken { crate::exit::Outcome::Code(Code::Threshold as u8) } else { crate::exit::Outcome::Done })
}

type Writer = fn(&[Outcome], &mut dyn Write) -> io::Result<()>;

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
