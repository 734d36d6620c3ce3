//! CPU time of busy waiting, as recorded.

use crate::finding::Finding;
use crate::program::Program;

/// CPU time of threads that checked again and again whether they may continue, nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::limit) struct AskedAgain {
    /// Busy waiting that counts as waiting.
    pub(in crate::limit) waiting_ns: u64,
    /// Busy waiting that counts as computing, at most.
    pub(in crate::limit) computing_ns: u64,
}

impl AskedAgain {
    pub(in crate::limit) fn of(program: &Program) -> AskedAgain {
        let mut all = AskedAgain::default();
        for finding in &program.findings {
            match finding {
                Finding::Spinning { spun_ns, .. } => all.waiting_ns = *spun_ns,
                Finding::BusyWait { most_ns, .. } => all.computing_ns = *most_ns,
                _ => {}
            }
        }
        all
    }
}
