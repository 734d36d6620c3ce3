//! Causes of requests' latencies in words.

use crate::present::words::short::short;
use engine::program::CauseKind;

/// A cause in a few words.
pub(crate) fn words(kind: CauseKind, name: &str) -> String {
    match kind {
        CauseKind::Computing if name.is_empty() => "computing, function not known".to_owned(),
        CauseKind::Computing => format!("computing {}", short(name)),
        CauseKind::Lock => name.to_owned(),
        CauseKind::OtherRequest => format!("another request: {name}"),
        CauseKind::NoCpu => "no CPU: own threads had it".to_owned(),
        CauseKind::NoCpuOthers if name.is_empty() => "no CPU: others had it".to_owned(),
        CauseKind::NoCpuOthers => format!("no CPU: the {name} was used up, or others had it"),
        CauseKind::Woken => "woken, not yet running".to_owned(),
        CauseKind::Disk => format!("disk: {name}"),
        CauseKind::Peer => format!("network: {name}"),
        CauseKind::Timer => format!("time: {name}"),
        CauseKind::Process => format!("another process: {name}"),
        CauseKind::Other => format!("device or signal: {name}"),
        CauseKind::Queue => format!("queue: other work of {name}"),
        CauseKind::Unknown => "not known".to_owned(),
        CauseKind::NotFollowed => "not followed".to_owned(),
    }
}
