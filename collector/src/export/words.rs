//! Words that several formats use.

use engine::view::{Doing, Measured};
use std::borrow::Cow;

/// A state of a thread, in a few words.
pub fn state(measured: &Measured<'_>, doing: &Doing) -> Cow<'static, str> {
    match doing {
        Doing::Running { cpu: Some(cpu) } => format!("running on CPU {cpu}").into(),
        Doing::Running { cpu: None } => "running".into(),
        Doing::Spinning { cpu: Some(cpu) } => format!("spinning on CPU {cpu}").into(),
        Doing::Spinning { cpu: None } => "spinning".into(),
        Doing::Ready => "ready".into(),
        Doing::Blocked { wait, .. } => match wait.object {
            Some(object) => format!("blocked: {}, {}", wait.name, measured.object(object)).into(),
            None => format!("blocked: {}", wait.name).into(),
        },
        Doing::Unknown(_) => format!("unknown: {}", doing.reason().unwrap_or_default()).into(),
    }
}
