//! The thread that finds functions of processes that start later: reading symbols takes long.

use super::hot_functions::HotFunctions;
use super::new_process_delay::{Inspect, NewProcessDelay};
use super::tally::Tally;
use crate::live::main_loop::{Chosen, FunctionRequest, Granted, LibcChosen, Message, ProcessChange};
use capture::probe::now_ns;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use tokio::sync::mpsc::UnboundedSender;

/// Chooses the functions of processes that get probes.
pub trait Choose: Send {
    /// The functions to probe in a process, in its present state. `None`: the process has ended normally, or has its
    /// probes already.
    fn choose(&mut self, change: ProcessChange) -> Option<Chosen>;

    /// Notes that a process ended before its symbols were read, so that its calls are missing. `None`: no note is
    /// needed.
    fn too_short(&mut self, change: ProcessChange) -> Option<Chosen> {
        let _ = change;
        None
    }

    /// The C library of a process in its present state, if its operations are to be recorded by probes there. `Err`:
    /// why they cannot be recorded.
    fn choose_libc(&mut self, change: ProcessChange) -> Option<Result<LibcChosen, String>> {
        let _ = change;
        None
    }

    /// The functions that a user names, in these processes.
    fn grant(&mut self, request: &FunctionRequest, pids: &[u32]) -> Granted {
        let _ = pids;
        Granted { sentence: format!("{} cannot be found here", request.pattern), ..Granted::default() }
    }

    /// Decides which functions found in samples are worth probes; `None`: none are.
    fn hot_functions(&mut self, hot: &HotFunctions, pids: &[u32]) -> Option<Granted> {
        let _ = (hot, pids);
        None
    }

    /// Decides the same for a recording, and also for families of lock functions, whose calls are counted by a trial.
    fn tallied(&mut self, tally: &Tally, pids: &[u32]) -> Option<Granted> {
        let _ = (tally, pids);
        None
    }
}

enum Order {
    Changed(ProcessChange),
    Requested(FunctionRequest, Vec<u32>),
    HotFunctions(HotFunctions, Vec<u32>),
    Tallied(Tally, Vec<u32>),
}

/// Sends requests to the thread; when it is dropped, the thread ends after the request in progress.
pub struct FunctionFinder {
    wanted: Sender<Order>,
    /// The thread still works on samples or tallies.
    looking: Arc<AtomicBool>,
}

impl FunctionFinder {
    /// Starts the thread; answers go to `messages`. `held`: pid of a command at the gate, whose program was already read.
    pub fn start(
        choose: Box<dyn Choose>,
        held: Option<u32>,
        messages: UnboundedSender<Message>,
    ) -> io::Result<FunctionFinder> {
        let (wanted, inbox) = channel();
        let looking = Arc::new(AtomicBool::new(false));
        let is_looking = Arc::clone(&looking);
        crate::threads::spawn("symbols", messages.clone(), (), move || {
            crate::threads::behind_others();
            // The receiver has ended, or there are no more requests.
            let _ =
                Work { choose, new_processes: NewProcessDelay::new(held), is_looking, messages }.run(&inbox);
        })?;
        Ok(FunctionFinder { wanted, looking })
    }

    /// Asks for the functions of a process; the answer comes as a message.
    pub fn ask(&self, change: ProcessChange) {
        // A thread that has ended has reported the reason itself.
        let _ = self.wanted.send(Order::Changed(change));
    }

    /// Asks for the functions that a user names; the answer comes as a message.
    pub fn request(&self, request: FunctionRequest, pids: Vec<u32>) {
        let _ = self.wanted.send(Order::Requested(request, pids));
    }

    /// Passes on functions found in samples. If some are worth probes, the answer comes as a message. Ignored while the
    /// thread works on earlier ones: the next samples show the same functions.
    pub fn hot_functions(&self, hot: HotFunctions, pids: Vec<u32>) {
        if !self.looking.swap(true, Ordering::AcqRel) {
            let _ = self.wanted.send(Order::HotFunctions(hot, pids));
        }
    }

    /// Passes on where threads ran. Ignored while the thread works on earlier functions.
    pub fn tallied(&self, tally: Tally, pids: Vec<u32>) {
        if !self.looking.swap(true, Ordering::AcqRel) {
            let _ = self.wanted.send(Order::Tallied(tally, pids));
        }
    }
}

/// The thread.
struct Work {
    choose: Box<dyn Choose>,
    new_processes: NewProcessDelay,
    is_looking: Arc<AtomicBool>,
    messages: UnboundedSender<Message>,
}

impl Work {
    /// Serves requests. `None`: the receiver of answers has ended, or there are no more requests.
    fn run(mut self, inbox: &Receiver<Order>) -> Option<()> {
        loop {
            let order = match self.new_processes.next(now_ns()) {
                None => Some(inbox.recv().ok()?),
                Some(pause) => match inbox.recv_timeout(pause) {
                    Ok(order) => Some(order),
                    Err(RecvTimeoutError::Timeout) => None,
                    Err(RecvTimeoutError::Disconnected) => return None,
                },
            };
            match order {
                Some(Order::Changed(change)) => match self.new_processes.changed(change) {
                    Inspect::Now => self.look(change)?,
                    Inspect::Later => {}
                    Inspect::TooShort(since) => {
                        // Forgets what is known of the process's former program.
                        self.look(change)?;
                        if let Some(chosen) = self.choose.too_short(since) {
                            self.messages.send(Message::Chosen(chosen)).ok()?;
                        }
                    }
                },
                Some(Order::Requested(request, pids)) => {
                    let granted = self.choose.grant(&request, &pids);
                    self.messages.send(Message::Granted(granted)).ok()?;
                }
                Some(Order::HotFunctions(hot, pids)) => {
                    let granted = self.choose.hot_functions(&hot, &pids);
                    self.is_looking.store(false, Ordering::Release);
                    if let Some(granted) = granted {
                        self.messages.send(Message::Granted(granted)).ok()?;
                    }
                }
                Some(Order::Tallied(tally, pids)) => {
                    let granted = self.choose.tallied(&tally, &pids);
                    self.is_looking.store(false, Ordering::Release);
                    if let Some(granted) = granted {
                        self.messages.send(Message::Granted(granted)).ok()?;
                    }
                }
                None => {}
            }
            for change in self.new_processes.due(now_ns()) {
                self.look(change)?;
            }
        }
    }

    fn look(&mut self, change: ProcessChange) -> Option<()> {
        // The C library comes first: a new program locks before anything else, and the library's symbols are known already.
        let libc = self.choose.choose_libc(change).map(|libc| match libc {
            Ok(chosen) => Message::Libc(chosen),
            Err(why) => Message::NoLibc(why),
        });
        if let Some(message) = libc {
            self.messages.send(message).ok()?;
        }
        if let Some(chosen) = self.choose.choose(change) {
            self.messages.send(Message::Chosen(chosen)).ok()?;
        }
        Some(())
    }
}
