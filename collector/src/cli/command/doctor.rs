//! `longpole doctor`

use super::output::to_stdout;
use crate::cli::args::DoctorArguments;
use crate::doctor::{Machine, all_required, check};
use crate::exit::{Code, Outcome, UserError};
use crate::present::style;
use crate::present::text::doctor;

/// Checks this machine: exit code 0, or 77 if recording is not possible.
pub fn run(args: &DoctorArguments) -> Result<Outcome, UserError> {
    let checks = check(&Machine::read());
    if args.json {
        to_stdout(|out| doctor::json(&checks, out))?;
    } else {
        to_stdout(|out| doctor::text(&checks, &style::for_stdout(), out))?;
    }
    Ok(if all_required(&checks) { Outcome::Done } else { Outcome::Code(Code::Permission as u8) })
}
