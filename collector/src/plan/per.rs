//! What counts as a request.

use crate::exit::UserError;
use engine::requests::Sockets;
use std::fmt::{self, Display, Formatter};
use std::str::FromStr;
use symbols::{NoUsdtPair, UsdtPair};

/// What counts as a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Per {
    /// Calls of the functions with this name or pattern, or stretches from one USDT probe to another ([`UsdtPair`]).
    Function(String),
    /// Requests that arrive at sockets.
    Sockets(Sockets),
}

impl FromStr for Per {
    type Err = UserError;

    fn from_str(text: &str) -> Result<Per, UserError> {
        let wrong = |problem: String| UserError::usage(problem, "give socket, socket:PORT or socket:unix");
        match text.split_once(':') {
            _ if text.is_empty() => Err(UserError::usage(
                "@ the name is empty".to_owned(),
                "give the name of a function, or socket",
            )),
            _ if text == "socket" => Ok(Per::Sockets(Sockets::All)),
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
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_and_sockets_are_told_apart() {
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
