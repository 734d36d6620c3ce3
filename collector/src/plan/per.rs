//! What counts as a request.

use crate::exit::UserError;
use crate::present::text::requests::RequestKind;
use engine::event::{FunctionFact, FunctionId};
use engine::requests::{Calls, Sockets, at_sockets, calls, traces};
use engine::timeline::Timeline;
use std::fmt::{self, Display, Formatter};
use std::str::FromStr;
use symbols::{NameMatch, NoUsdtPair, UsdtPair, listed, match_name};

/// The word for [`Per::Traces`].
const TRACES: &str = "otel";

/// What counts as a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Per {
    /// Calls of the functions with this name or pattern, or stretches from one USDT probe to another ([`UsdtPair`]).
    Function(String),
    /// Requests that arrive at sockets.
    Sockets(Sockets),
    /// Traces that the program's threads publish as OpenTelemetry's thread context.
    Traces,
}

impl FromStr for Per {
    type Err = UserError;

    fn from_str(text: &str) -> Result<Per, UserError> {
        let wrong = |problem: String| UserError::usage(problem, "give socket, socket:PORT or socket:unix");
        match text.split_once(':') {
            _ if text.is_empty() => Err(UserError::usage(
                "@ the name is empty".to_owned(),
                "give the name of a function, socket or otel",
            )),
            _ if text == "socket" => Ok(Per::Sockets(Sockets::All)),
            _ if text == TRACES => Ok(Per::Traces),
            Some(("socket", "unix")) => Ok(Per::Sockets(Sockets::Unix)),
            // Two colons are part of a function's name.
            Some(("socket", port)) if !port.starts_with(':') => match port.parse() {
                Ok(port) => Ok(Per::Sockets(Sockets::Port(port))),
                Err(_) => Err(wrong(format!("@ '{port}' is not a port"))),
            },
            _ if UsdtPair::is_meant(text) => match text.parse::<UsdtPair>() {
                Ok(pair) => Ok(Per::Function(pair.to_string())),
                Err(NoUsdtPair) => Err(UserError::usage(
                    format!("@ '{text}' is not a pair of USDT probes"),
                    "give usdt:PROVIDER:BEGIN,END; END may be several probes: usdt:PROVIDER:BEGIN,END|END",
                )),
            },
            _ => Ok(Per::Function(text.to_owned())),
        }
    }
}

/// As it was given.
impl Display for Per {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Per::Function(name) => out.write_str(name),
            Per::Sockets(Sockets::All) => out.write_str("socket"),
            Per::Sockets(Sockets::Port(port)) => write!(out, "socket:{port}"),
            Per::Sockets(Sockets::Unix) => out.write_str("socket:unix"),
            Per::Traces => out.write_str(TRACES),
        }
    }
}

impl Per {
    /// The kind of such requests.
    pub fn kind(&self) -> RequestKind {
        match self {
            Per::Function(_) => RequestKind::Calls,
            Per::Sockets(_) => RequestKind::Messages,
            Per::Traces => RequestKind::Traces,
        }
    }

    /// The requests in a recording, and the names of the functions or sockets.
    ///
    /// # Errors
    /// No function of the recording has the name, or several have it.
    pub fn requests(&self, timeline: &Timeline) -> Result<(Calls, Vec<String>), UserError> {
        Ok(match self {
            Per::Function(name) => {
                let functions = functions(timeline, name)?;
                let ids: Vec<FunctionId> = functions.iter().map(|function| function.id).collect();
                let mut names: Vec<String> = functions.iter().map(|function| function.name.clone()).collect();
                names.dedup();
                (calls(timeline, &ids), names)
            }
            Per::Sockets(sockets) => (at_sockets(timeline, *sockets), vec![words(*sockets)]),
            Per::Traces => (traces(timeline), vec!["traces".to_owned()]),
        })
    }

    /// The error that there are no such requests. `are_counted`: those over sockets were.
    pub fn none(&self, are_counted: bool) -> UserError {
        match self {
            Per::Function(name) if UsdtPair::is_meant(name) => UserError::usage(
                format!("no thread passed {name} in this recording"),
                "record for longer, while the program works",
            ),
            Per::Function(name) => UserError::usage(
                format!("there is no call of '{name}' in this recording"),
                format!("record for longer, or record another function: `{}`", record("NAME")),
            ),
            Per::Traces => UserError::usage(
                "no thread of this recording was seen to work for a trace",
                format!(
                    "record it with `{}`; the program must publish thread contexts (OTEP 4947)",
                    self.record()
                ),
            ),
            Per::Sockets(_) if !are_counted => UserError::usage(
                "requests over sockets were not recorded",
                "they need Linux 6.3; or record calls of a function: `longpole record --per NAME`",
            ),
            Per::Sockets(sockets) => UserError::usage(
                format!("no request at {} was answered while this was recorded", words(*sockets)),
                "record a server under load, for longer; `longpole info FILE` shows at which ports it answers",
            ),
        }
    }

    /// The command that records such requests.
    pub fn record(&self) -> String {
        record(&self.to_string())
    }
}

fn words(sockets: Sockets) -> String {
    match sockets {
        Sockets::All => "sockets".to_owned(),
        Sockets::Port(port) => format!("port {port}"),
        Sockets::Unix => "Unix sockets".to_owned(),
    }
}

fn record(name: &str) -> String {
    let name = if name.contains(|c: char| !(c.is_alphanumeric() || "_:.~".contains(c))) {
        format!("'{}'", name.replace('\'', r"'\''"))
    } else {
        name.to_owned()
    };
    format!("longpole record --per {name} -- COMMAND")
}

/// The functions with probes that match this name.
fn functions<'t>(timeline: &'t Timeline, name: &str) -> Result<Vec<&'t FunctionFact>, UserError> {
    let names = || timeline.functions.iter().map(|function| function.name.as_str());
    let at = |places: Vec<usize>| {
        places.into_iter().filter_map(|place| timeline.functions.get(place)).collect::<Vec<_>>()
    };
    match match_name(name, names()) {
        NameMatch::These(places) => Ok(at(places)),
        NameMatch::Several(places) => {
            let found: Vec<&str> = at(places).iter().map(|function| function.name.as_str()).collect();
            Err(UserError::usage(
                format!("'{name}' matches {} functions", found.len()),
                format!("choose one: {}; or '{name}*' for all that begin with this", listed(&found)),
            ))
        }
        NameMatch::Nothing => Err(UserError::usage(
            format!("calls of '{name}' were not recorded"),
            format!("record them: `{}`, or -p PID for a running process", record(name)),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_and_sockets_are_told_apart() {
        assert_eq!(("otel".parse(), Per::Traces.to_string()), (Ok(Per::Traces), "otel".to_owned()));
        let function = ["handle_request", "ns::f", "socket::read", "usdt::read", "usdt:shop:a,b|c"];
        for text in ["socket", "socket:80", "socket:unix"].into_iter().chain(function) {
            let per: Per = text.parse().expect("valid");
            assert_eq!(
                (per.to_string().as_str(), matches!(per, Per::Sockets(_))),
                (text, !function.contains(&text))
            );
        }
        for text in ["", "socket:", "socket:x", "socket:70000", "usdt:shop", "usdt:shop:a", "usdt:shop:a,a"] {
            assert!(text.parse::<Per>().is_err(), "{text}");
        }
    }
}
