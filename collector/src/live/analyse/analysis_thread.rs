//! The thread that makes reports of windows, one at a time. The screen never waits for this thread.

use super::analysis::{self, Asked, Depth};
use super::pacing::Spent;
use crate::live::main_loop::Message;
use capture::probe::this_thread_ns;
use engine::event::Recording;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use tokio::sync::mpsc::UnboundedSender;

/// A window to analyse.
#[derive(Debug)]
pub struct Job {
    /// The window.
    pub recording: Recording,
    /// Whether the window is shorter than asked for, because it reached the limit of events.
    pub cut_by_events: bool,
    /// How deeply the window is analysed.
    pub depth: Depth,
    /// The screen waits for the report; otherwise only functions without probes in samples are wanted.
    pub reported: bool,
}

/// Gives jobs to the thread.
#[derive(Debug)]
pub struct AnalysisThread {
    jobs: SyncSender<Job>,
    busy: Arc<AtomicBool>,
    spent: Arc<Mutex<Option<Spent>>>,
    thread: JoinHandle<()>,
}

impl AnalysisThread {
    /// Starts the thread. Reports go to `messages`; if it `keeps` them, each has the recording that it was made from.
    pub fn start(
        asked: Asked,
        keeps: bool,
        messages: UnboundedSender<Message>,
    ) -> std::io::Result<AnalysisThread> {
        // Without room in the channel a send returns only when the thread takes the job.
        let (jobs, inbox) = sync_channel::<Job>(0);
        let busy = Arc::new(AtomicBool::new(false));
        let is_busy = Arc::clone(&busy);
        let spent = Arc::new(Mutex::new(None));
        let has_spent = Arc::clone(&spent);
        let thread = crate::threads::spawn("analysis", messages.clone(), (), move || {
            crate::threads::behind_others();
            while let Ok(job) = inbox.recv() {
                is_busy.store(true, Ordering::Release);
                let before_ns = this_thread_ns();
                let Job { recording, cut_by_events, depth, reported } = job;
                let events = recording.events.len();
                let (mut snapshot, hot) = analysis::look(&recording, &asked, cut_by_events, depth);
                snapshot.recording = keeps.then(|| Arc::new(recording));
                let cpu_ns = this_thread_ns().saturating_sub(before_ns);
                *has_spent.lock().unwrap_or_else(PoisonError::into_inner) =
                    Some(Spent { events, window_ns: snapshot.window_ns, cpu_ns });
                is_busy.store(false, Ordering::Release);
                if reported && messages.send(Message::Report(Arc::new(snapshot))).is_err() {
                    break;
                }
                if !hot.functions.is_empty() && messages.send(Message::HotFunctions(hot)).is_err() {
                    break;
                }
            }
        })?;
        Ok(AnalysisThread { jobs, busy, spent, thread })
    }

    /// Whether the thread works on a job, so that a further job would have to wait.
    pub fn busy(&self) -> bool {
        self.busy.load(Ordering::Acquire)
    }

    /// CPU time and other costs of the last job; `None` if they were already taken.
    pub fn take_spent(&self) -> Option<Spent> {
        self.spent.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Gives the thread a job, after waiting for the job before.
    pub fn answer(&self, job: Job) {
        // A thread that has ended has reported the reason itself.
        let _ = self.jobs.send(job);
    }

    /// Waits for the last report, unless `skip`.
    pub fn finish(self, skip: bool) {
        drop(self.jobs);
        if !skip {
            // If the thread panicked, it has reported that itself.
            let _ = self.thread.join();
        }
    }
}
