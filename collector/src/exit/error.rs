//! Errors for users: one line says what is wrong, and one line says what the user can do.

use capture::target::{LaunchError, TargetError};
use std::fmt;
use symbols::{SymbolError, is_unsafe};

/// Exit codes of longpole. A launched command's exit code is not among them: see [`super::Outcome`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// Something failed while running.
    Runtime = 1,
    /// The command line makes no sense.
    Usage = 2,
    /// A result is outside the limit that was given.
    Threshold = 3,
    /// A permission or a feature of the kernel is missing (automake's "skip").
    Permission = 77,
    /// longpole itself failed before the launched command ran.
    Launch = 125,
    /// The command to launch is not executable.
    NotExecutable = 126,
    /// The command to launch was not found.
    NotFound = 127,
}

/// An error for people: what is wrong, and what to do about it. Both are one line without a full stop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserError {
    /// What is wrong, with the name of the file or process.
    pub message: String,
    /// What the user can do, ideally a command.
    pub hint: String,
    /// Exit code.
    pub code: Code,
}

impl UserError {
    /// An error of the given code.
    pub fn new(code: Code, message: impl Into<String>, hint: impl Into<String>) -> UserError {
        UserError { message: message.into(), hint: hint.into(), code }
    }

    /// An error with exit code 1.
    pub fn runtime(message: impl Into<String>, hint: impl Into<String>) -> UserError {
        UserError::new(Code::Runtime, message, hint)
    }

    /// An error with exit code 2.
    pub fn usage(message: impl Into<String>, hint: impl Into<String>) -> UserError {
        UserError::new(Code::Usage, message, hint)
    }

    /// An error with exit code 77.
    pub fn permission(message: impl Into<String>, hint: impl Into<String>) -> UserError {
        UserError::new(Code::Permission, message, hint)
    }
}

impl std::error::Error for UserError {}

impl From<recording::CreateError> for UserError {
    fn from(error: recording::CreateError) -> UserError {
        UserError::runtime(format!("cannot write {error}"), error.hint())
    }
}

impl From<SymbolError> for UserError {
    fn from(error: SymbolError) -> UserError {
        let code = match &error {
            SymbolError::Open { source, .. } if source.kind() == std::io::ErrorKind::PermissionDenied => {
                Code::Permission
            }
            SymbolError::Unclear { .. } => Code::Usage,
            _ => Code::Runtime,
        };
        UserError::new(code, error.to_string(), error.hint())
    }
}

impl From<TargetError> for UserError {
    fn from(error: TargetError) -> UserError {
        let code = match error {
            TargetError::NoPermission { .. } => Code::Permission,
            _ => Code::Runtime,
        };
        UserError::new(code, error.to_string(), error.hint())
    }
}

impl From<LaunchError> for UserError {
    /// Exit code 127, 126 or 125, as with `env` and `timeout`.
    fn from(error: LaunchError) -> UserError {
        let code = match &error {
            LaunchError::NotFound { .. } => Code::NotFound,
            LaunchError::NotExecutable { .. } => Code::NotExecutable,
            LaunchError::User { .. } | LaunchError::Gate { .. } => Code::Launch,
        };
        UserError::new(code, error.to_string(), error.hint())
    }
}

impl fmt::Display for UserError {
    /// Writes the two lines for stderr. Names of files and processes may have any characters: those that a terminal would
    /// obey become `?`, and each part stays on one line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "longpole: {}", one_line(&self.message))?;
        if !self.hint.is_empty() {
            write!(f, "\nhint: {}", one_line(&self.hint))?;
        }
        Ok(())
    }
}

fn one_line(text: &str) -> String {
    text.chars()
        .map(|c| match c {
            '\n' | '\t' => ' ',
            c if is_unsafe(c) => '?',
            c => c,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_two_lines_whatever_characters_a_name_has() {
        let error = UserError::runtime("no file \"a\n\u{1b}[31mb\u{202e}\u{200b}\"", "look again");
        assert_eq!(error.to_string(), "longpole: no file \"a ?[31mb??\"\nhint: look again");
    }
}
