//! Words that several formats use.

use engine::view::{Measured, ThreadActivity};
use std::borrow::Cow;

/// A state of a thread, in a few words.
pub fn state(measured: &Measured<'_>, doing: &ThreadActivity) -> Cow<'static, str> {
    match doing {
        ThreadActivity::Running { cpu: Some(cpu) } => format!("running on CPU {cpu}").into(),
        ThreadActivity::Running { cpu: None } => "running".into(),
        ThreadActivity::Spinning { cpu: Some(cpu) } => format!("spinning on CPU {cpu}").into(),
        ThreadActivity::Spinning { cpu: None } => "spinning".into(),
        ThreadActivity::Ready => "ready".into(),
        ThreadActivity::Blocked { wait, .. } => match wait.object {
            Some(object) => format!("blocked: {}, {}", wait.name, measured.object(object)).into(),
            None => format!("blocked: {}", wait.name).into(),
        },
        ThreadActivity::Unknown(_) => format!("unknown: {}", doing.reason().unwrap_or_default()).into(),
    }
}
