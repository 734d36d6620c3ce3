//! Attaches probes while a capture runs: to new processes, and to further functions and C libraries of known ones.
//!
//! Attaching keeps the kernel busy for some hundred milliseconds, and waits for other threads that attach. So a thread
//! that may wait has this handle; the ring reader must not wait.

use std::sync::Arc;

use engine::event::{GapReason, Note, NoteKind};

use super::libc_files::LibcProbes;
use super::libc_points::off_note;
use super::lock_probes::Executed;
use crate::probe::error::{ProbeError, ProbeErrorKind};
use crate::probe::options::{ProbeFunction, Since};
use crate::probe::overhead::controller::{Common, Probes};
use crate::probe::sources::{OwnTime, now_ns};

/// A handle to the capture's probes. What it does is among the notes of [`crate::probe::Capture::take_notes`].
pub struct Attacher {
    common: Arc<Common>,
}

impl Attacher {
    pub(crate) fn new(common: Arc<Common>) -> Attacher {
        Attacher { common }
    }

    /// Starts counting the cost of recording.
    pub fn begin(&self) {
        self.common.lock().accounting.begin(now_ns(), OwnTime::now());
    }

    /// Probes functions of a recorded process that has started (a child, or a program after `exec`). Its function calls
    /// from the time of its `Fork` or `Exec` record until now are missing, which becomes a gap among the notes. Probes
    /// of an earlier program in the same process are removed. If it is the same program again and its probes still work,
    /// they stay.
    ///
    /// # Errors
    ///
    /// If the process is gone (even if another one has its PID now), runs yet another program, or cannot
    /// be probed; it is then recorded without function calls.
    pub fn add_process(&self, pid: u32, since: Since, functions: &[ProbeFunction]) -> Result<(), ProbeError> {
        if !self.common.shared.is_tracked(pid) {
            let message = format!("process {pid} is not recorded any more");
            return Err(ProbeError::new(ProbeErrorKind::Target, message, "the process has ended"));
        }
        // The new probes come first: removing the old ones keeps the kernel busy for long.
        let old = {
            let mut probes = self.common.lock();
            self.in_time(&mut probes, pid, since)?;
            if probes.functions.has_all(pid, functions) {
                return Ok(());
            }
            probes.functions.silence(&|other| other == pid)
        };
        let attached = self.attach_functions(pid, since.looked_ns, functions);
        drop(old);
        attached?;
        if !functions.is_empty() {
            self.missing(pid, since.missing_ns, GapReason::ProbesNotYetAttached);
        }
        Ok(())
    }

    /// Probes further functions of a process. Functions that have probes keep them; functions that were disabled or
    /// called too often get theirs again. `wanted`: a user wants them from now on. Otherwise the process has had the
    /// functions for a while, and calls until now become a gap.
    ///
    /// # Errors
    ///
    /// If the process is gone, runs another program, or cannot be probed; its present probes stay.
    pub fn add_functions(
        &self,
        pid: u32,
        since: Since,
        wanted: bool,
        functions: &[ProbeFunction],
    ) -> Result<(), ProbeError> {
        let numbers: Vec<u32> = functions.iter().map(|function| function.id).collect();
        {
            let mut probes = self.common.lock();
            self.in_time(&mut probes, pid, since)?;
            let Probes { ebpf, functions: probed, unwanted, .. } = &mut *probes;
            if wanted {
                unwanted.retain(|number| !numbers.contains(number));
                probed.enable(ebpf, &numbers.iter().copied().collect())?;
            }
            probed.add_more(ebpf, pid, since.looked_ns, functions.to_vec(), wanted)?;
        }
        // Both notes have one time: the gap concerns only these functions, not the process's other ones.
        let time_ns = now_ns();
        let numbers = self.common.lock().functions.with_probes(pid, &numbers);
        self.common.note(Note { time_ns, kind: NoteKind::ProbesOn { functions: numbers, pid: Some(pid) } });
        if !wanted {
            let reason = GapReason::ProbesNotYetAttached;
            let kind = NoteKind::Gap { pid, cpu: None, until_ns: time_ns, lost: 0, reason };
            self.common.note(Note { time_ns: since.missing_ns, kind });
        }
        Ok(())
    }

    /// Removes the probes of some functions, in all processes, until they are wanted again.
    ///
    /// # Errors
    ///
    /// If the kernel refuses; the probes then stay.
    pub fn rest_functions(&self, functions: &[u32]) -> Result<(), ProbeError> {
        let time_ns = now_ns();
        {
            let probes = &mut *self.common.lock();
            let numbers = functions.iter().copied().collect();
            probes.functions.disable(&mut probes.ebpf, &numbers)?;
            probes.unwanted.extend(numbers);
        }
        // The note has no rates, since a user asked for the removal.
        let kind = NoteKind::ProbesOff { functions: functions.to_vec(), rates: Vec::new() };
        self.common.note(Note { time_ns, kind });
        Ok(())
    }

    /// Probes the C library of a recorded process, unless that is done, and notes that its operations are missing since
    /// `since_ns`. Without files this is decided later. Families in [`LibcProbes::unfit`] get no probes, which is
    /// noted, too. `executed`: set if the process runs another program than before; says whether its leading thread
    /// started that program.
    ///
    /// # Errors
    ///
    /// If the process is gone, or cannot be probed; its synchronization operations are then not recorded.
    pub fn add_libc(
        &self,
        libc: &LibcProbes,
        since_ns: u64,
        executed: Option<bool>,
    ) -> Result<(), ProbeError> {
        let executed = executed.map(|by_leader| Executed { by_leader, at_ns: since_ns });
        if libc.files.is_empty() {
            self.common.lock().operations.wait_for_trial(libc.pid, since_ns);
        }
        if self.attach_libc(libc, executed)? {
            self.missing(libc.pid, since_ns, GapReason::LibcNotYetProbed);
        }
        for &(family, tried) in &libc.unfit {
            self.common.note(off_note(since_ns, libc.pid, family, Some(tried)));
        }
        Ok(())
    }

    /// Notes that records of a process are missing from `since_ns` until now.
    fn missing(&self, pid: u32, since_ns: u64, reason: GapReason) {
        let kind = NoteKind::Gap { pid, cpu: None, until_ns: now_ns(), lost: 0, reason };
        self.common.note(Note { time_ns: since_ns, kind });
    }

    /// Fails if the process runs another program than the one that was examined. Removes probes that were for replaced
    /// programs.
    fn in_time(&self, probes: &mut Probes, pid: u32, since: Since) -> Result<(), ProbeError> {
        self.common.drop_replaced_programs(probes);
        if !self.common.programs().is_another_since(pid, since.looked_ns) {
            return Ok(());
        }
        let message = format!("process {pid} runs another program by now");
        Err(ProbeError::new(ProbeErrorKind::Target, message, "the program has ended"))
    }

    pub(crate) fn attach_functions(
        &self,
        pid: u32,
        chosen_ns: u64,
        functions: &[ProbeFunction],
    ) -> Result<(), ProbeError> {
        let of_process = |function: &&ProbeFunction| function.pid.is_none_or(|only| only == pid);
        let functions: Vec<_> = functions.iter().filter(of_process).cloned().collect();
        if functions.is_empty() {
            return Ok(());
        }
        let probes = &mut *self.common.lock();
        probes.functions.add(&mut probes.ebpf, pid, chosen_ns, functions)
    }

    /// Attaches probes to a C library. Returns whether anything was attached.
    pub(crate) fn attach_libc(
        &self,
        libc: &LibcProbes,
        executed: Option<Executed>,
    ) -> Result<bool, ProbeError> {
        let probes = &mut *self.common.lock();
        probes.operations.add(&mut probes.ebpf, libc, executed)
    }
}
