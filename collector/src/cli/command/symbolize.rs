//! `longpole symbolize`, and the same in memory for `longpole report`

use super::output::to_stdout;
use crate::cell::grouped;
use crate::cli::args::{SymbolSources, SymbolizeArguments};
use crate::exit::{Outcome, UserError, say};
use crate::input::{Input, Session};
use crate::plan::InputPlan;
use engine::event::{Facts, Recording};
use recording::FileLimits;
use std::io::IsTerminal;
use std::sync::Arc;
use symbols::symbolize::{self, Client, Settings, code_of, symbolize};
use symbols::{Parsers, safe};

/// Finds names for unnamed code of a session file, and stores them in the file. A second run finds nothing to do.
pub fn run(args: &SymbolizeArguments) -> Result<Outcome, UserError> {
    let name = args.file.display();
    let Input::Session(read) = Input::open(&InputPlan::whole(args.file.clone()))? else {
        return Err(UserError::runtime(
            format!("{name} is a program, not a session, and needs no symbols"),
            "give a file made by `longpole record`",
        ));
    };
    let Session { recording, info, .. } = *read;
    if let Some(damage) = &info.damage {
        return Err(UserError::runtime(
            format!("{name} is not whole: {damage}"),
            "names can be stored only in a whole session; `longpole report --symbol-dir DIR` shows the rest with names",
        ));
    }
    let mut found = names(&recording.facts, &args.sources)?;
    found.facts.code = code_of(&recording, &Parsers::of_longpole(), &args.sources.symbol_dir, true);
    let mut spin = args.sources.spin.clone();
    spin.retain(|pattern| !recording.facts.spin.contains(pattern));
    found.facts.spin = spin;
    let left_out = match found.is_empty() {
        true => 0,
        false => recording::add_facts(&args.file, &found.facts).map_err(|error| {
            UserError::runtime(
                format!("{name} cannot be written: {error}"),
                "the session is unchanged; check that you may write to its folder and that the disk has room",
            )
        })?,
    };
    to_stdout(|out| {
        for (module, missing) in &found.modules {
            let missing = missing.as_deref().unwrap_or("all there");
            writeln!(out, "{}: {}", safe(module), safe(missing))?;
        }
        let (functions, calls) = (grouped(found.functions as u64), grouped(found.calls as u64));
        if !found.facts.code.is_empty() {
            writeln!(
                out,
                "{} places in sampled stacks have names now",
                grouped(found.facts.code.len() as u64)
            )?;
        }
        for pattern in &found.facts.spin {
            writeln!(out, "functions that match {} only wait", safe(pattern))?;
        }
        if found.is_empty() {
            writeln!(out, "nothing new: the session is unchanged")
        } else {
            writeln!(out, "{functions} functions and {calls} calls have better names or lines now")?;
            match left_out {
                0 => Ok(()),
                left_out => writeln!(
                    out,
                    "the session has no room for {} of these names: a session holds {} MiB of everything but events",
                    grouped(left_out),
                    FileLimits::FILE.bytes >> 20
                ),
            }
        }
    })?;
    Ok(Outcome::Done)
}

/// Adds better names to a recording in memory, if the user gives a place to look for symbols.
pub fn in_memory(recording: &mut Recording, sources: &SymbolSources) -> Result<(), UserError> {
    recording.facts.spin.extend_from_slice(&sources.spin);
    let code = code_of(recording, &Parsers::of_longpole(), &sources.symbol_dir, sources.is_given());
    if !code.is_empty() {
        // Later facts replace earlier ones.
        recording.facts.code.extend(code);
    }
    if !sources.is_given() {
        return Ok(());
    }
    let found = names(&recording.facts, sources)?;
    for better in found.facts.functions {
        recording
            .facts
            .functions
            .iter_mut()
            .filter(|old| old.id == better.id)
            .for_each(|old| *old = better.clone());
    }
    let key = |fact: &engine::event::AddressFact| (fact.pid, fact.address, fact.since_ns);
    for better in found.facts.addresses {
        let old = recording.facts.addresses.iter_mut().filter(|old| key(old) == key(&better));
        old.for_each(|old| *old = better.clone());
    }
    Ok(())
}

fn names(facts: &Facts, sources: &SymbolSources) -> Result<symbolize::Outcome, UserError> {
    let client = match sources.debuginfod {
        false => None,
        true => {
            let settings = Settings::from(|name| std::env::var_os(name)).map_err(|why| {
                UserError::usage(
                    format!("--debuginfod: {why}"),
                    "set DEBUGINFOD_URLS, for example to https://debuginfod.debian.net",
                )
            })?;
            Some(Arc::new(Client::new(settings, Box::new(tell))))
        }
    };
    Ok(symbolize(facts, &Parsers::of_longpole(), &sources.symbol_dir, client))
}

/// Shows the progress of a download on a terminal.
fn tell(what: &str, bytes: u64) {
    if std::io::stderr().is_terminal() {
        say(format!("debuginfod: {what}: {:.1} MB", bytes as f64 / 1e6));
    }
}
