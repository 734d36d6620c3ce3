//! Facts that the main loop learns during a capture, kept for the summary at the end.

use super::effect::Effect;
use super::message::{LibcCounts, UnprobedCounts};
use crate::live::rings::Probed;
use crate::tui::{LiveCounts, Snapshot};
use engine::event::{FunctionFact, FunctionId};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

/// See the module.
#[derive(Debug, Default)]
pub struct Observations {
    /// The last counts.
    pub counts: LiveCounts,
    /// Functions that got probes in some process.
    pub probed: BTreeSet<FunctionId>,
    /// Functions that the kernel would not probe in some process.
    pub refused: BTreeSet<FunctionId>,
    /// Functions that lost their probes because of too many calls.
    pub taken_off: BTreeSet<FunctionId>,
    /// Processes that started later and got no function probes.
    pub unprobed: UnprobedCounts,
    /// Probes on C libraries.
    pub libc: LibcCounts,
    /// Functions of processes that started later.
    pub more_functions: Vec<FunctionFact>,
    /// Files that a ring was saved to before the end.
    pub saved: Vec<PathBuf>,
    /// The last report.
    pub report: Option<Arc<Snapshot>>,
}

impl Observations {
    /// Keeps what an effect reports, for effects that do nothing else.
    pub fn note(&mut self, effect: Effect) {
        match effect {
            Effect::NoteNoLibc(why) => {
                self.libc.without += 1;
                self.libc.why.get_or_insert(why);
            }
            Effect::NoteOperationsOff(family, None) => {
                self.libc.off.insert(family);
            }
            Effect::NoteOperationsOff(family, Some(tried)) => {
                let dearest = self.libc.unfit.entry(family).or_insert(tried);
                if tried.cost_ppm > dearest.cost_ppm {
                    *dearest = tried;
                }
            }
            Effect::NoteUnprobed(why) => self.unprobed.add(why),
            Effect::NoteProbed(Probed { on, refused, libc }) => {
                self.libc.probed.extend(libc);
                self.probed.extend(on);
                self.refused.extend(refused);
            }
            Effect::NoteTakenOff(functions) => self.taken_off.extend(functions),
            Effect::NoteBackOn(functions) => self.taken_off.retain(|one| !functions.contains(one)),
            _ => {}
        }
    }
}
