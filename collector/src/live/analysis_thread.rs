//! The thread that turns windows into reports, one at a time; the screen never waits for it.

use super::analysis::{self, Asked, Depth};
use super::message::Message;
use super::pacing::Spent;
use capture::probe::this_thread_ns;
use engine::event::Recording;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use tokio::sync::mpsc::UnboundedSender;

/// A window to look at.
#[derive(Debug)]
pub struct Job {
    /// The window.
    pub recording: Recording,
    /// It is shorter than asked for, because it holds as many events as it may.
    pub cut_by_events: bool,
    /// How much is asked.
    pub depth: Depth,
    /// The report is awaited; otherwise only what samples show is wanted.
    pub reported: bool,
}

/// The other end of the thread.
#[derive(Debug)]
pub struct AnalysisThread {
    jobs: SyncSender<Job>,
    busy: Arc<AtomicBool>,
    spent: Arc<Mutex<Option<Spent>>>,
    thread: JoinHandle<()>,
}

impl AnalysisThread {
    /// Starts the thread; reports go to `messages`, with what they were made of if that is to be kept.
    pub fn start(
        asked: Asked,
        keeps: bool,
        messages: UnboundedSender<Message>,
    ) -> std::io::Result<AnalysisThread> {
        // No room: the thread takes a job, or there is none.
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

    /// Whether a job would have to wait.
    pub fn busy(&self) -> bool {
        self.busy.load(Ordering::Acquire)
    }

    /// What the last job took, once.
    pub fn take_spent(&self) -> Option<Spent> {
        self.spent.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Passes on a job, after waiting for the one before.
    pub fn answer(&self, job: Job) {
        // If the thread is gone it has said why.
        let _ = self.jobs.send(job);
    }

    /// Waits for the last report, unless it is not wanted.
    pub fn finish(self, skip: bool) {
        drop(self.jobs);
        if !skip {
            // A panic in there has been reported by the thread itself.
            let _ = self.thread.join();
        }
    }
}
