//! Probes for processes that come while a capture runs, and for functions and C libraries that come to those that it has.
//!
//! Attaching keeps the kernel busy for some hundred milliseconds, and waits for others that attach. So it has
//! its own handle, for a thread that may wait: the ring reader must not.

use std::sync::Arc;

use engine::event::{GapReason, Note, NoteKind};

use super::overhead::controller::{Common, Probes};
use super::{
    clocks::{OwnTime, now_ns},
    error::{ProbeError, ProbeErrorKind},
    libc_files::LibcProbes,
    libc_points::off_note,
    lock_probes::Executed,
    options::{ProbeFunction, Since},
};

/// See the module. What it does is among [`super::Capture::take_notes`].
pub struct Attacher {
    common: Arc<Common>,
}

impl Attacher {
    pub(super) fn new(common: Arc<Common>) -> Attacher {
        Attacher { common }
    }

    /// What recording costs is counted from now on.
    pub fn begin(&self) {
        self.common.lock().accounting.begin(now_ns(), OwnTime::now());
    }

    /// Probes functions of a process that is recorded and has come up (a child, or a program after `exec`).
    /// Since the time of its `Fork` or `Exec` record until now its function calls are missing, which becomes
    /// a gap among the notes. Probes of an earlier program in the same process are removed; if it is the same
    /// program again, and its probes still work, they stay.
    ///
    /// # Errors
    ///
    /// If the process is gone (even if another one has its number now), runs yet another program, or cannot
    /// be probed; it is then recorded without function calls.
    pub fn add_process(&self, pid: u32, since: Since, functions: &[ProbeFunction]) -> Result<(), ProbeError> {
        if !self.common.shared.is_tracked(pid) {
            let message = format!("process {pid} is not recorded any more");
            return Err(ProbeError::new(ProbeErrorKind::Target, message, "the process has ended"));
        }
        // The new probes first: taking the old ones off keeps the kernel busy for long.
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

    /// Puts probes on functions of a process that has some, or none yet, in addition to existing ones: those
    /// that have probes already keep them, those that are disabled or were called too often get them back. `wanted`:
    /// a user wants them from now on; otherwise they have been in the process for a while, and their calls
    /// are missing.
    ///
    /// # Errors
    ///
    /// If the process is gone, runs another program, or cannot be probed; what it had stays.
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
        // One time for both: the gap is of these functions, and the process's others have none.
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
        // Without rates: a user has asked for it.
        let kind = NoteKind::ProbesOff { functions: functions.to_vec(), rates: Vec::new() };
        self.common.note(Note { time_ns, kind });
        Ok(())
    }

    /// Probes the C library of a process that is recorded, unless it is probed already, and notes that its
    /// operations are missing since `since_ns`, if so; without files this is decided later. Families in
    /// [`LibcProbes::unfit`] get none, which is noted, too. `executed`: it runs another program than before,
    /// and whether its leading thread has started it.
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

    /// Notes what was missing from then until now.
    fn missing(&self, pid: u32, since_ns: u64, reason: GapReason) {
        let kind = NoteKind::Gap { pid, cpu: None, until_ns: now_ns(), lost: 0, reason };
        self.common.note(Note { time_ns: since_ns, kind });
    }

    /// Whether what was chosen is of the program that the process runs, whose older probes are given up.
    fn in_time(&self, probes: &mut Probes, pid: u32, since: Since) -> Result<(), ProbeError> {
        self.common.drop_replaced_programs(probes);
        if !self.common.programs().is_another_since(pid, since.looked_ns) {
            return Ok(());
        }
        let message = format!("process {pid} runs another program by now");
        Err(ProbeError::new(ProbeErrorKind::Target, message, "the program has ended"))
    }

    pub(super) fn attach_functions(
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

    /// Whether something is probed that was not.
    pub(super) fn attach_libc(
        &self,
        libc: &LibcProbes,
        executed: Option<Executed>,
    ) -> Result<bool, ProbeError> {
        let probes = &mut *self.common.lock();
        probes.operations.add(&mut probes.ebpf, libc, executed)
    }
}
