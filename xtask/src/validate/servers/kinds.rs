//! Describes a server, its load and its faults as data.

use crate::measure::is_here;

/// Variables of the scripts' environment.
pub type Variables = &'static [(&'static str, &'static str)];

/// A server and its load. Scripts are lines of shell with these variables: `BASE` is a folder that is prepared once;
/// `DIR` is another folder for each start. `PORT` and `OTHER` are two free ports, `SOURCES` is tests/workloads/servers,
/// and `TIME` is the length of the load in seconds. The variables of the fault or of the cure are added to them.
pub struct Server {
    pub name: &'static str,
    /// Other programs that are needed, and the Debian packages that contain them.
    pub needs: &'static [(&'static str, &'static str)],
    /// A script that runs once, before all faults.
    pub prepare: &'static str,
    /// A script that becomes the server (`exec`).
    pub start: &'static str,
    /// A script that succeeds when the server is ready. Without a script, the server is ready when it accepts a
    /// connection.
    pub ready: &'static str,
    /// A script that prints the number of requests per second and nothing else.
    pub load: &'static str,
    pub faults: &'static [Fault],
}

/// A setting that is wrong.
pub struct Fault {
    /// The setting, with its wrong value and its right value.
    pub told: &'static str,
    /// What becomes slow because of the setting.
    pub cause: &'static str,
    pub wrong: Variables,
    pub right: Variables,
    /// Words in lower case. If LIMIT, "Or" or FIX contains one of them, longpole has named the cause.
    pub words: &'static [&'static str],
    /// Words that identify the row of FIX for this change. The list is empty if FIX cannot know of the change.
    pub promise: &'static [&'static str],
}

impl Server {
    /// Why the server cannot run on this machine; `None` if it can.
    pub fn missing(&self) -> Option<String> {
        let (program, package) = self.needs.iter().find(|(program, _)| !is_here(program))?;
        Some(format!("{program} is missing: `apt-get install {package}`"))
    }
}
