//! What comes to processes that have probes already: functions of libraries that they have loaded, or that somebody has
//! asked for, beside those that they have.

use engine::event::{GapReason, Note, NoteKind};

use super::{
    capture::{Capture, now_ns},
    error::ProbeError,
    governor::Probes,
    mappings::NewMapping,
    options::ProbeFunction,
};

impl Capture {
    /// Files that recorded processes have mapped to execute since the last call.
    pub fn take_loaded(&mut self) -> Vec<NewMapping> {
        let shared = &self.common.shared;
        self.mappings
            .as_ref()
            .map(|mappings| mappings.take(&|pid| shared.is_tracked(pid)))
            .unwrap_or_default()
    }

    /// Whether [`Capture::take_loaded`] tells anything.
    pub fn tells_of_mappings(&self) -> bool {
        self.mappings.is_some()
    }

    /// Puts probes on functions of a process that has some, or none yet, beside those that are there: those that have
    /// probes already keep them, those that rest or were called too often get them back. `since_ns`: they have been in
    /// the process since then, so their calls until now are missing; `None`: somebody wants them from now on.
    ///
    /// # Errors
    ///
    /// If the process is gone or cannot be probed; what it had stays.
    pub fn add_functions(
        &mut self,
        pid: u32,
        since_ns: Option<u64>,
        functions: &[ProbeFunction],
    ) -> Result<(), ProbeError> {
        let numbers: Vec<u32> = functions.iter().map(|function| function.id).collect();
        {
            let probes = &mut *self.common.lock();
            let Probes { ebpf, functions: probed, unwanted, .. } = probes;
            if since_ns.is_none() {
                unwanted.retain(|number| !numbers.contains(number));
                probed.wake(ebpf, &numbers.iter().copied().collect())?;
            }
            probed.add_more(ebpf, pid, functions.to_vec(), since_ns.is_none())?;
        }
        let kind = match since_ns {
            Some(_) => {
                let reason = GapReason::ProbesNotYetAttached;
                NoteKind::Gap { pid, cpu: None, until_ns: now_ns(), lost: 0, reason }
            }
            None => NoteKind::ProbesOn { functions: numbers },
        };
        self.own_notes.push(Note { time_ns: since_ns.unwrap_or_else(now_ns), kind });
        Ok(())
    }

    /// Takes the probes off some functions, in all processes, until somebody wants them again.
    ///
    /// # Errors
    ///
    /// If the kernel refuses; the probes then stay.
    pub fn rest_functions(&mut self, functions: &[u32]) -> Result<(), ProbeError> {
        let time_ns = now_ns();
        {
            let probes = &mut *self.common.lock();
            let tired = functions.iter().copied().collect();
            probes.functions.rest(&mut probes.ebpf, &tired)?;
            probes.unwanted.extend(tired);
        }
        // Without rates: somebody has asked for it.
        let kind = NoteKind::ProbesOff { functions: functions.to_vec(), rates: Vec::new() };
        self.own_notes.push(Note { time_ns, kind });
        Ok(())
    }
}
