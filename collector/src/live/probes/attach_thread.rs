//! The thread that attaches probes while a capture runs. The kernel may need some hundred milliseconds for that, during
//! which the rings must be emptied by another thread.

use super::short_lived::ShortLived;
use crate::live::main_loop::{Chosen, LibcChosen, Message, NewFunctions, Placing, Unprobed, UnprobedCounts};
use crate::live::rings::{Attach, Batch, WriterMessage};
use crate::threads;
use capture::probe::Since;
use engine::event::{FunctionId, GapReason, Note, NoteKind};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use tokio::sync::mpsc::UnboundedSender;

/// A job for the thread.
#[derive(Debug)]
pub enum Job {
    /// Put function probes into a process.
    Process(Chosen),
    /// Put probes on a process's C library.
    Libc(LibcChosen),
    /// Remove the probes of functions.
    TakeOff(Vec<FunctionId>),
    /// End the thread.
    End,
}

/// Sends jobs to the thread.
#[derive(Clone)]
pub struct AttachThread(Sender<Job>);

impl AttachThread {
    /// Sends a job; a thread that has ended ignores it.
    pub fn give(&self, job: Job) {
        let _ = self.0.send(job);
    }
}

/// Results of the jobs, for the ring reader.
pub struct AttachResults {
    jobs: AttachThread,
    done: Receiver<WriterMessage>,
    more: Sender<WriterMessage>,
    over: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl AttachResults {
    /// Messages for the writer since the last call. Functions and binaries must come before the first record that
    /// names them: pass them on after the rings are read, and before the records that came from them.
    pub fn take(&self) -> impl Iterator<Item = WriterMessage> + '_ {
        self.done.try_iter()
    }

    /// A sender with which other threads add messages to those that `AttachResults::take` returns. `finish` does not
    /// wait for these threads.
    pub fn sender(&self) -> Sender<WriterMessage> {
        self.more.clone()
    }

    /// Attaches nothing more: processes that still wait for probes get none.
    pub fn stop(&self) {
        self.over.store(true, Ordering::Release);
        self.jobs.give(Job::End);
    }

    /// The remaining messages. Waits until the job in progress is done.
    pub fn finish(self) -> Vec<WriterMessage> {
        // If the thread panicked, it has reported that itself.
        let _ = self.thread.join();
        self.done.try_iter().collect()
    }
}

/// Starts the thread. `attach` is `None` where nothing can get probes.
pub fn start(
    attach: Option<Box<dyn Attach>>,
    messages: UnboundedSender<Message>,
) -> io::Result<(AttachThread, AttachResults)> {
    let (jobs, inbox) = channel();
    let (done, results) = channel();
    let over = Arc::new(AtomicBool::new(false));
    let ended = ShortLived::default();
    let worker =
        Worker { attach, done: done.clone(), messages: messages.clone(), over: Arc::clone(&over), ended };
    let thread = threads::spawn("attach", messages, (), move || {
        threads::before_others();
        worker.run(&inbox);
    })?;
    let jobs = AttachThread(jobs);
    Ok((jobs.clone(), AttachResults { jobs, done: results, more: done, over, thread }))
}

struct Worker {
    attach: Option<Box<dyn Attach>>,
    done: Sender<WriterMessage>,
    messages: UnboundedSender<Message>,
    over: Arc<AtomicBool>,
    /// Processes that ended before their probes were attached and that have yet to be reported.
    ended: ShortLived,
}

impl Worker {
    fn run(mut self, inbox: &Receiver<Job>) {
        loop {
            let job = match self.ended.due_in() {
                None => inbox.recv().map_err(RecvTimeoutError::from),
                Some(wait) => inbox.recv_timeout(wait),
            };
            let job = match job {
                Ok(job) => job,
                Err(RecvTimeoutError::Timeout) if self.tell_ended().is_some() => continue,
                Err(_) => break,
            };
            let over = self.over.load(Ordering::Acquire);
            let goes_on = match job {
                Job::Process(chosen) => self.process(chosen, over),
                Job::Libc(_) | Job::TakeOff(_) if over => Some(()),
                Job::Libc(chosen) => self.libc(&chosen),
                Job::TakeOff(functions) => {
                    // The table of functions shows the outcome: whether they keep their probes.
                    if let Some(Err(why)) = self.attach.as_mut().map(|on| on.rest_functions(&functions)) {
                        log::warn!("functions keep their probes: {why}");
                    }
                    Some(())
                }
                Job::End => None,
            };
            let is_due = self.ended.due_in().is_some_and(|wait| wait.is_zero());
            if goes_on.is_none() || is_due && self.tell_ended().is_none() {
                break;
            }
        }
        let _ = self.tell_ended();
    }

    /// Reports processes that ended before their probes were attached. `None`: no thread receives reports any more.
    fn tell_ended(&mut self) -> Option<()> {
        let Some((count, note)) = self.ended.take() else { return Some(()) };
        self.messages.send(Message::Unprobed(UnprobedCounts::ended(count))).ok()?;
        self.done.send(WriterMessage::Batch(Batch { notes: vec![note], ..Batch::default() })).ok()
    }

    /// Attaches the function probes of a process. `None`: the receiver has ended.
    fn process(&mut self, chosen: Chosen, over: bool) -> Option<()> {
        let Chosen { pid, missing_since_ns, functions, placing } = chosen;
        let added = match (functions, &mut self.attach) {
            (Ok(_), _) if over => Err(Unprobed::Refused("the recording ended before".to_owned())),
            (Ok(NewFunctions { probes, facts, modules, looked_ns }), attach) => {
                let since = Since { missing_ns: missing_since_ns, looked_ns };
                if !modules.is_empty() {
                    self.done.send(WriterMessage::Modules(modules)).ok()?;
                }
                // Sent even if this process fails: the finder sends each program's functions only once.
                if !facts.is_empty() {
                    self.done.send(WriterMessage::Functions(facts)).ok()?;
                }
                match (attach, placing) {
                    (None, _) => Err(no_probes()),
                    (Some(on), Placing::Instead) => on.add_process(pid, since, &probes),
                    (Some(on), Placing::Beside) => on.add_functions(pid, since, false, &probes),
                    (Some(on), Placing::Wanted) => on.add_functions(pid, since, true, &probes),
                }
            }
            (Err(reason), _) => Err(reason),
        };
        match added {
            Ok(()) => Some(()),
            // The process keeps the probes that it has.
            Err(why) if placing == Placing::Wanted => {
                log::warn!("process {pid}: these functions get no probes: {why}");
                Some(())
            }
            Err(why @ Unprobed::Ended) => {
                log::debug!("process {pid}: no function probes: {why}");
                let now_ns = self.attach.as_ref().map_or(missing_since_ns, |on| on.now_ns());
                self.ended.add(pid, missing_since_ns, now_ns);
                Some(())
            }
            Err(Unprobed::Refused(why)) => {
                log::debug!("process {pid}: no function probes: {why}");
                if !over {
                    self.messages.send(Message::Unprobed(UnprobedCounts::refused(why))).ok()?;
                }
                // The calls of the process stay missing until its end.
                let reason = GapReason::NotProbed;
                let kind = NoteKind::Gap { pid, cpu: None, until_ns: u64::MAX, lost: 0, reason };
                let notes = vec![Note { time_ns: missing_since_ns, kind }];
                self.done.send(WriterMessage::Batch(Batch { notes, ..Batch::default() })).ok()
            }
        }
    }

    fn libc(&mut self, chosen: &LibcChosen) -> Option<()> {
        let LibcChosen { missing_since_ns, probes, executed } = chosen;
        let added = match &mut self.attach {
            Some(on) => on.add_libc(probes, *missing_since_ns, *executed),
            None => Err(no_probes()),
        };
        match added {
            // A process that has ended needs no probes.
            Ok(()) | Err(Unprobed::Ended) => Some(()),
            Err(Unprobed::Refused(why)) => {
                log::debug!("process {}: no probes on its C library: {why}", probes.pid);
                self.messages.send(Message::NoLibc(why)).ok()
            }
        }
    }
}

fn no_probes() -> Unprobed {
    Unprobed::Refused("a recording cannot get new probes".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use capture::probe::{LibcProbes, ProbeFunction};
    use engine::event::FunctionFact;
    use std::sync::mpsc::SyncSender;
    use std::time::Duration;

    fn chosen(pid: u32, facts: Vec<FunctionFact>) -> Job {
        let functions = NewFunctions { facts, ..NewFunctions::default() };
        Job::Process(Chosen { pid, missing_since_ns: 9, functions: Ok(functions), placing: Placing::Instead })
    }

    /// The first process of a program may end before its probes are attached. Later processes of the program still need
    /// the same functions.
    #[test]
    fn functions_reach_the_writer_although_their_first_process_has_ended() {
        let fact = FunctionFact { id: 7, name: "work".into(), ..FunctionFact::default() };
        let (messages, mut told) = tokio::sync::mpsc::unbounded_channel();
        let (jobs, attach_results) = start(None, messages).expect("a thread");
        jobs.give(chosen(5, vec![fact.clone()]));
        jobs.give(Job::End);
        let done = attach_results.finish();
        assert!(matches!(told.try_recv(), Ok(Message::Unprobed(_))));
        let [WriterMessage::Functions(facts), WriterMessage::Batch(batch)] = &done[..] else {
            panic!("{done:?}")
        };
        assert_eq!(*facts, [fact]);
        // This source cannot attach probes, so the process's calls are missing, as if it had ended.
        assert!(matches!(batch.notes[0].kind, NoteKind::Gap { pid: 5, .. }), "{:?}", batch.notes);
    }

    /// A build may start thousands of short processes: a note and three woken threads for each would be too expensive.
    #[test]
    fn processes_that_end_before_their_probes_share_notes_and_are_all_counted() {
        let (messages, mut told) = tokio::sync::mpsc::unbounded_channel();
        let (jobs, attach_results) = start(None, messages).expect("a thread");
        for pid in 1..=3_000 {
            let functions = Err(Unprobed::Ended);
            let missing_since_ns = 5_000 - u64::from(pid);
            jobs.give(Job::Process(Chosen { pid, missing_since_ns, functions, placing: Placing::Instead }));
        }
        jobs.give(Job::End);
        let done = attach_results.finish();
        let (mut all, mut earliest_ns) = (Vec::new(), u64::MAX);
        for feed in &done {
            let WriterMessage::Batch(Batch { notes, .. }) = feed else { panic!("{feed:?}") };
            let [Note { time_ns, kind: NoteKind::EndedUnprobed { pids, until_ns } }] = &notes[..] else {
                panic!("{notes:?}")
            };
            assert!(pids.iter().all(|pid| (*time_ns..=*until_ns).contains(&(5_000 - u64::from(*pid)))));
            all.extend_from_slice(pids);
            earliest_ns = earliest_ns.min(*time_ns);
        }
        assert_eq!((all, earliest_ns), ((1..=3_000).collect(), 2_000));
        assert!(done.len() < 300, "{} notes", done.len());
        let mut counts = UnprobedCounts::default();
        while let Ok(Message::Unprobed(more)) = told.try_recv() {
            counts.add(more);
        }
        assert_eq!(counts, UnprobedCounts::ended(3_000));
    }

    /// The report of a process that ended too soon does not wait for another process.
    #[test]
    fn a_process_that_ended_before_its_probes_is_reported_at_once() {
        let (messages, mut told) = tokio::sync::mpsc::unbounded_channel();
        let (jobs, attach_results) = start(None, messages).expect("a thread");
        let functions = Err(Unprobed::Ended);
        let placing = Placing::Instead;
        jobs.give(Job::Process(Chosen { pid: 7, missing_since_ns: 9, functions, placing }));
        let Some(Message::Unprobed(counts)) = told.blocking_recv() else { panic!("told something else") };
        assert_eq!(counts, UnprobedCounts::ended(1));
        attach_results.stop();
        assert_eq!(attach_results.finish().len(), 1);
    }

    /// For each process: sends a message that work on it has begun, then waits for permission to continue.
    struct Slow(SyncSender<u32>, Receiver<()>);

    impl Attach for Slow {
        fn now_ns(&self) -> u64 {
            0
        }
        fn add_process(&mut self, pid: u32, _: Since, _: &[ProbeFunction]) -> Result<(), Unprobed> {
            self.0.send(pid).expect("somebody listens");
            self.1.recv_timeout(Duration::from_secs(20)).expect("told to go on");
            Ok(())
        }
        fn add_functions(&mut self, _: u32, _: Since, _: bool, _: &[ProbeFunction]) -> Result<(), Unprobed> {
            Ok(())
        }
        fn rest_functions(&mut self, _: &[FunctionId]) -> Result<(), Unprobed> {
            Ok(())
        }
        fn add_libc(&mut self, _: &LibcProbes, _: u64, _: Option<bool>) -> Result<(), Unprobed> {
            Ok(())
        }
    }

    /// The ring reader must not wait while probes are attached.
    #[test]
    fn processes_that_wait_for_probes_at_the_end_get_a_gap_note() {
        let (begun, beginning) = std::sync::mpsc::sync_channel(8);
        let (go, going) = channel();
        let (messages, mut told) = tokio::sync::mpsc::unbounded_channel();
        let (jobs, attach_results) = start(Some(Box::new(Slow(begun, going))), messages).expect("a thread");
        for pid in [5, 6, 7] {
            jobs.give(chosen(pid, Vec::new()));
        }
        assert_eq!(beginning.recv_timeout(Duration::from_secs(20)), Ok(5));
        assert_eq!(attach_results.take().count(), 0, "nobody waits for it");
        attach_results.stop();
        go.send(()).expect("it waits");
        let done = attach_results.finish();
        let gaps: Vec<u32> = done
            .iter()
            .filter_map(|done| match done {
                WriterMessage::Batch(batch) => batch.notes.first(),
                _ => None,
            })
            .filter_map(|note| match note.kind {
                NoteKind::Gap { pid, until_ns: u64::MAX, reason: GapReason::NotProbed, .. } => Some(pid),
                _ => None,
            })
            .collect();
        assert_eq!((gaps, beginning.try_iter().count()), (vec![6, 7], 0));
        assert!(told.try_recv().is_err(), "they are no failures");
    }
}
