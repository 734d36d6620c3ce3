//! `longpole join`: recordings of several hosts become one, in which messages between the hosts wake threads.

use super::output::to_stdout;
use crate::cell::{counted, duration, grouped};
use crate::cli::args::JoinArguments;
use crate::exit::{Outcome, UserError};
use crate::input::{Input, Session};
use crate::plan::InputPlan;
use engine::event::{HostFact, Recording};
use engine::hosts::{JoinError, OfHost, join};
use recording::{CreateError, Meta, Overwrite, Writer, write_recording};
use std::path::{Path, PathBuf};
use symbols::safe;

/// Name of the joined recording, if the user gives none.
const NAME: &str = "joined.lp";

/// Reads recordings of hosts, joins them, and writes the result.
pub fn run(args: &JoinArguments) -> Result<Outcome, UserError> {
    let (mut hosts, mut metas) = (Vec::new(), Vec::new());
    for file in &args.files {
        let (host, meta) = read(file)?;
        hosts.push(host);
        metas.push(meta);
    }
    let joined = join(hosts).map_err(|error| refused(&error, &args.files))?;
    let meta = meta_of(metas, &joined, &args.files);
    let path =
        write(args, &joined, &meta).map_err(|error| UserError::runtime(error.to_string(), error.hint()))?;
    let facts = &joined.facts;
    let length_ns = facts.end.as_ref().map_or(0, |end| end.end_ns.saturating_sub(facts.start_ns));
    to_stdout(|out| {
        let (events, length) = (counted(joined.events.len(), "event"), duration(length_ns as f64));
        writeln!(
            out,
            "{}: {length} of {} hosts, {events}",
            safe(&path.display().to_string()),
            facts.hosts.len()
        )?;
        for host in &facts.hosts {
            writeln!(out, "  {}", line(host))?;
        }
        writeln!(out, "NEXT  longpole report {}", safe(&path.display().to_string()))
    })?;
    Ok(Outcome::Done)
}

fn read(file: &Path) -> Result<(OfHost, Meta), UserError> {
    let Input::Session(session) = Input::open(&InputPlan::whole(file.to_owned()))? else {
        let message = format!("{} is a program, not a recording of a host", file.display());
        return Err(UserError::runtime(message, "give files made by `longpole record --per socket`"));
    };
    let Session { recording, info, .. } = *session;
    let meta = info.meta.unwrap_or_default();
    Ok((OfHost { name: meta.host.clone(), cpus: meta.cpu_count, recording }, meta))
}

fn refused(error: &JoinError, files: &[PathBuf]) -> UserError {
    let place = error.recording().and_then(|place| files.get(place));
    let message = place.map_or_else(|| error.to_string(), |file| format!("{}: {error}", file.display()));
    let hint = match error {
        JoinError::Count(_) => "give one recording of each host: `longpole join a.lp b.lp`",
        JoinError::NoRequests(_) => {
            "record each host with `longpole record --per socket`, and while requests come"
        }
        JoinError::NotConnected(_) => {
            "record both ends of a TCP connection at the same time; through a proxy, also the proxy"
        }
        JoinError::Apart(_) => "record all hosts at the same time",
    };
    UserError::runtime(message, hint)
}

/// The joined recording's description: that of the first host, with all hosts' names and CPUs.
fn meta_of(metas: Vec<Meta>, joined: &Recording, files: &[PathBuf]) -> Meta {
    let hosts = &joined.facts.hosts;
    let mut meta = metas.into_iter().next().unwrap_or_default();
    meta.host = hosts.iter().map(|host| host.name.as_str()).collect::<Vec<_>>().join(" + ");
    meta.cpu_count = hosts.iter().fold(0, |sum, host| sum.saturating_add(host.cpus));
    let names: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
    meta.options.insert("joined".to_owned(), names.join(" "));
    meta
}

fn write(args: &JoinArguments, joined: &Recording, meta: &Meta) -> Result<PathBuf, CreateError> {
    let (writer, path) = match &args.output {
        Some(path) => {
            let overwrite = if args.force { Overwrite::AnyFile } else { Overwrite::Nothing };
            (Writer::create(path, overwrite, meta)?, path.clone())
        }
        None => Writer::create_unused(Path::new(NAME), meta)?,
    };
    write_recording(writer, joined).map_err(|error| CreateError::io(&path, error))?;
    Ok(path)
}

fn line(host: &HostFact) -> String {
    let HostFact { cpus, clock_ahead_ns, clock_error_ns, messages, .. } = host;
    let cpus = counted(*cpus as usize, "CPU");
    let (ahead, error) = (duration(clock_ahead_ns.unsigned_abs() as f64), duration(*clock_error_ns as f64));
    let clock = match clock_ahead_ns {
        0 if *clock_error_ns == 0 => "its clock counts".to_owned(),
        0.. => format!("clock {ahead} ahead (± {error}), corrected"),
        _ => format!("clock {ahead} behind (± {error}), corrected"),
    };
    format!("{}: {cpus}, {} messages found at both ends, {clock}", safe(&host.name), grouped(*messages))
}
