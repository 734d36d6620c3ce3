//! The parallelism of a program, for functions, locks, barriers, conditions and threads: Quartz (Anderson and Lazowska,
//! "Quartz: A Tool for Tuning Parallel Program Performance", 1989).
//!
//! *Normalized processor time* (Equation 1) of a piece of code is its processor time divided by the number of
//! processors that are busy at the same time, summed. Code that runs alone counts with all its time, code on P
//! processors at once with one P-th. So functions divide the elapsed time, except when no processor is busy. The
//! program waits for the function with the largest part: parallelize it if it runs alone, optimize it if all processors
//! are busy anyway ([`advice`]).
//!
//! [`of_run`] feeds the accounts ([`account`]) from the predicted run, [`of_timeline`] from the measured one; [`build`] makes
//! their rows. It takes one pass, in memory that grows with rows and threads only.

mod account;
mod advice;
mod balance;
mod build;
mod clock;
mod first;
mod of_run;
mod of_timeline;
mod result;
mod round;
mod spread;
mod tally;

pub use advice::Advice;
pub use result::{
    AwaitedObject, Link, Parallelism, ParallelismRow, ParallelismRowKind, StateTime, StateTimes,
};

use crate::attribution::{Attribution, Grouping};
use crate::cpus::Cpus;
use crate::predict::{Model, Timing};
use crate::program::{Measured, Program, ProgramError, Samples};
use crate::schedule::Sharing;
use crate::timeline::Timeline;
use of_run::Feed;
use spread::{Part, RowErrors, Shares, spread};

/// The parallelism of the predicted run: with ideal sharing for a program written by hand, on the scheduler's model for a
/// recording.
///
/// # Errors
/// The program fails [`Program::check`]. A deadlock is no error but a finding; the run ends with it.
pub fn predicted(program: &Program, cpus: Cpus, model: &Model) -> Result<Parallelism, ProgramError> {
    let timing = Timing::new(program, model)?;
    let attribution = Attribution::of(program, Grouping::Function);
    let hundredths = match timing.setup(cpus).processors {
        Sharing::Ideal { hundredths } => Some(hundredths),
        Sharing::Scheduled(_) => None,
    };
    let feed = Feed::new(program, &attribution, hundredths);
    let (outcome, feed) = timing.observed(cpus, feed);
    let mut balance = feed.account.finish(outcome.length.0);
    let strata = &attribution.strata;
    let none = if strata.strata.is_empty() { 0 } else { balance.places.part(0) as usize };
    let mut errors = vec![RowErrors::default(); none];
    for (number, stratum) in (0..).zip(&strata.strata) {
        let seen: Vec<_> = strata.seen(stratum).collect();
        let shares = Shares::of(&attribution.keys, stratum.top, stratum.top, seen.iter().copied());
        let row = balance.places.part(number);
        let part = Part { row, top: stratum.top, levels: Vec::new(), all: Some(&shares), blocked: None };
        spread(&mut balance, &part, &mut errors);
    }
    let mut result = build::build(program, &balance, &errors);
    result.cpus = Some(cpus);
    result.findings.extend(outcome.findings);
    Ok(result)
}

/// The parallelism of the measured run. `program` was made from this timeline. With `probed_only` samples are ignored: all
/// time belongs to the innermost function with probes.
pub fn measured(timeline: &Timeline, program: &Program, probed_only: bool) -> Parallelism {
    let without;
    let program = if probed_only {
        without = Program { samples: Samples::default(), ..program.clone() };
        &without
    } else {
        program
    };
    let accounted = of_timeline::account(timeline, program, &Measured::of(timeline, program));
    let of_timeline::Accounted { balance, errors, samples, orphans } = accounted;
    let recording_ns = balance.meters.get(program.functions.len()).map_or(0, |meter| {
        let [busy, ..] = meter.time();
        round::nearest(busy, build::NS)
    });
    Parallelism {
        cpus: program.recorded_cpus.and_then(Cpus::count),
        measured: true,
        samples,
        recording_ns,
        orphans,
        ..build::build(program, &balance, &errors)
    }
}
