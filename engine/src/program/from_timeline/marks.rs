//! Actions of a thread without an event: it spins, or ends the spinning or polling of another thread.

use super::{Script, Translator};
use crate::program::spinning::spins::{Mark, MarkKind};
use crate::program::{EdgeId, ObjectId, Operation};

impl Translator<'_> {
    /// Marks of where the thread begins or ends spinning, or ends the spinning or polling of another thread, in order
    /// of time.
    pub(super) fn marks(&self, index: usize) -> Vec<Mark> {
        let mut marks = self.spins.marks.get(index).cloned().unwrap_or_default();
        let polled = |&(time, number): &(u64, u32)| Mark {
            time,
            kind: MarkKind::Release(self.spins.edges.saturating_add(number)),
        };
        marks.extend(self.polls.releases(index).iter().map(polled));
        marks.sort_unstable();
        marks
    }

    fn spin_lock(&self, number: u32) -> ObjectId {
        ObjectId(self.first_spin_lock.saturating_add(number))
    }

    /// Begins or ends spinning, takes or releases a sampled spin lock, or ends the spinning of another thread.
    pub(super) fn spin(&mut self, script: &mut Script<'_>, mark: MarkKind) {
        let edge = |number: u32| EdgeId(self.first_spin.saturating_add(number));
        match mark {
            MarkKind::Begin => script.muted = script.muted.saturating_add(1),
            MarkKind::End(number) => {
                script.muted = script.muted.saturating_sub(1);
                if let Some(number) = number {
                    self.write(script, Operation::Await(edge(number)));
                }
            }
            MarkKind::Release(number) => self.write(script, Operation::Release(edge(number))),
            MarkKind::Take(number) => self.write(script, Operation::SpinLock(self.spin_lock(number))),
            MarkKind::Give(number) => self.write(script, Operation::SpinUnlock(self.spin_lock(number))),
            MarkKind::Touch(number) => {
                self.write(script, Operation::SpinLock(self.spin_lock(number)));
                self.write(script, Operation::SpinUnlock(self.spin_lock(number)));
            }
        }
    }
}
