//! What a server, its load and its faults are, as data.

use crate::measure::is_here;

/// Variables of the scripts' environment.
pub type Variables = &'static [(&'static str, &'static str)];

/// A server and its load. Scripts are lines of shell with these variables: `BASE` is a folder that is prepared once, `DIR` one
/// of its own for each start, `PORT` and `OTHER` two free ports, `SOURCES` is tests/workloads/servers, `TIME` the seconds of
/// the load. In addition, they have the variables of the fault or of the cure.
pub struct Server {
    pub name: &'static str,
    /// Programs that it needs, and the Debian packages that they come in.
    pub needs: &'static [(&'static str, &'static str)],
    /// Runs once, before all faults.
    pub prepare: &'static str,
    /// Becomes the server (`exec`).
    pub start: &'static str,
    /// Succeeds once the server is ready; without it, that is when it accepts a connection.
    pub ready: &'static str,
    /// Prints requests per second, and nothing else.
    pub load: &'static str,
    pub faults: &'static [Fault],
}

/// A setting that is wrong.
pub struct Fault {
    /// The setting with its wrong value and the right one.
    pub told: &'static str,
    /// What it makes slow.
    pub cause: &'static str,
    pub wrong: Variables,
    pub right: Variables,
    /// One of these stands in LIMIT, "Or" or FIX if the cause is named; without capitals.
    pub words: &'static [&'static str],
    /// Words of the row of FIX that is the change made; without any, FIX cannot know of the change.
    pub promise: &'static [&'static str],
}

impl Server {
    /// Why it cannot run here.
    pub fn missing(&self) -> Option<String> {
        let (program, package) = self.needs.iter().find(|(program, _)| !is_here(program))?;
        Some(format!("{program} is missing: `apt-get install {package}`"))
    }
}
