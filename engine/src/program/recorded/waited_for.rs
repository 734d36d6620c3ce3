//! The type that says what threads slept for; in JSON it is a text.

use probe_abi::SyncOperation as S;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The text of [`WaitedFor::Sleep`].
pub(super) const SLEEP: &str = "sleep";

/// What threads slept for; a text in JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum WaitedFor {
    /// In an operation of the C library, e.g. `mutex lock`.
    Operation(S),
    /// A sleep that the thread asked for.
    Sleep,
    /// Anything else, e.g. `pipe read`.
    Other(String),
}

impl WaitedFor {
    /// Its name in texts and files.
    pub fn as_str(&self) -> &str {
        match self {
            WaitedFor::Operation(operation) => operation.name(),
            WaitedFor::Sleep => SLEEP,
            WaitedFor::Other(name) => name,
        }
    }
}

impl Default for WaitedFor {
    fn default() -> WaitedFor {
        WaitedFor::Other(String::new())
    }
}

impl From<&str> for WaitedFor {
    fn from(name: &str) -> WaitedFor {
        match S::ALL.iter().find(|operation| operation.name() == name) {
            Some(operation) => WaitedFor::Operation(*operation),
            None if name == SLEEP => WaitedFor::Sleep,
            None => WaitedFor::Other(name.to_owned()),
        }
    }
}

impl From<String> for WaitedFor {
    fn from(name: String) -> WaitedFor {
        WaitedFor::from(name.as_str())
    }
}

impl From<WaitedFor> for String {
    fn from(kind: WaitedFor) -> String {
        kind.to_string()
    }
}

impl fmt::Display for WaitedFor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
