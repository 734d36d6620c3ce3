//! Decides how a launched command's synchronization operations are recorded. No other place decides it, so no operation
//! is recorded twice.

use crate::exit::UserError;
use crate::plan::CapturePlan;
use capture::interpose::{Choice, InterposeMode, Interposed, decide};
use capture::target::{GatedChild, LaunchOptions, binary_of, resolve};
use std::ffi::OsString;

/// How synchronization operations of the processes at the start are recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum How {
    /// By a library inside a launched command.
    Inside,
    /// Not by the library inside, for this reason. The other way is not chosen yet.
    NotInside(String),
    /// By probes on C libraries.
    Probes {
        /// File names, each once.
        libraries: Vec<String>,
        /// Why the library inside is not used, if the user may have expected it.
        instead: Option<String>,
    },
    /// By probes on those families of functions of these C libraries that cost little in a trial.
    Tried(Vec<String>),
    /// Not at all, for this reason.
    No(String),
}

impl How {
    /// One word for the way of recording, for session files.
    pub fn word(&self) -> &'static str {
        match self {
            How::Inside => "inside",
            How::Probes { .. } | How::Tried(_) => "probes",
            How::NotInside(_) | How::No(_) => "scheduler",
        }
    }
}

impl std::fmt::Display for How {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            How::Inside => f.write_str("recorded from inside the command (a library before its libc)"),
            How::Probes { libraries, instead } => {
                write!(f, "recorded by probes on the functions of {}", libraries.join(" and "))?;
                instead.as_ref().map_or(Ok(()), |reason| write!(f, " ({reason})"))
            }
            How::Tried(libraries) => {
                write!(
                    f,
                    "recorded by probes on the functions of {}, if they cost little",
                    libraries.join(" and ")
                )
            }
            How::NotInside(reason) | How::No(reason) => write!(f, "known only from waits: {reason}"),
        }
    }
}

/// How a launched command's operations will be recorded.
pub struct LockRecording {
    how: Result<Interposed, String>,
}

impl LockRecording {
    /// Chooses by the command's program and the plan, and prepares the preloaded library's rings.
    ///
    /// # Errors
    /// The command does not exist, or `--interpose always` cannot be done.
    pub fn choose(plan: &CapturePlan, command: &[OsString]) -> Result<LockRecording, UserError> {
        let search = std::env::var_os("PATH");
        let program =
            resolve(command.first().map(OsString::as_os_str).unwrap_or_default(), search.as_deref())?;
        let binary = binary_of(&program, search.as_deref());
        let choice = decide(plan.interpose, binary.as_deref());
        let how = match choice {
            Choice::Not(reason) => Err(reason),
            Choice::Inside { first } => {
                // Who asks for it gets every operation.
                let pauses = plan.interpose != InterposeMode::Always;
                Interposed::new(first, plan.ring_bytes, plan.children, plan.budget_ppm, pauses)
                    .map_err(|error| error.to_string())
            }
        };
        match how {
            Err(reason) if plan.interpose == InterposeMode::Always => Err(UserError::runtime(
                format!("the command's locks cannot be recorded from inside: {reason}"),
                "leave out --interpose always; --exact records them by breakpoints in its libc",
            )),
            how => Ok(LockRecording { how }),
        }
    }

    /// Adds the file descriptors that the command must inherit to its launch options.
    pub fn tell(&self, options: &mut LaunchOptions) {
        options.inherited.extend(self.how.as_ref().map(Interposed::descriptor).ok());
    }

    /// Starts recording in the command, which is still at the gate. Returns the method, for the user.
    ///
    /// # Errors
    /// The environment of the command cannot be set up.
    pub fn start(self, child: &mut GatedChild) -> Result<(Option<Interposed>, How), UserError> {
        match self.how {
            Ok(interposed) => {
                let preloaded = std::env::var_os("LD_PRELOAD");
                let environment = interposed
                    .environment(preloaded.as_deref(), child.pid())
                    .map_err(|error| UserError::runtime(error.to_string(), "add --interpose never"))?;
                child.add_to_environment(environment);
                interposed.start(child.pid());
                Ok((Some(interposed), How::Inside))
            }
            Err(reason) => Ok((None, How::NotInside(reason))),
        }
    }
}
