//! The main loop: reads [`Message`]s, asks [`LoopState`] what they mean, and carries out the effects.

use super::executor::{Executor, Flow};
use super::inputs::Inputs;
use super::keyboard::Keyboard;
use super::loop_state::{LoopState, Mode, StopReason};
use super::message::Message;
use super::observations::Observations;
use super::pipeline::{Pipeline, Started};
use crate::exit::UserError;
use crate::listen::{Access, Board, Listener, Socket};
use crate::live::analyse::{AnalysisThread, Asked, Due, Sliding};
use crate::live::keep::{Destination, Saved, WindowFile, WriterThread, Written};
use crate::live::naming::PollIntervals;
use crate::live::probes::{Choose, FunctionFinder};
use crate::live::rings::{AtEnd, EventSource, TakeSnapshot, Triggers};
use crate::threads::Failure;
use crate::tui::{Guard, Snapshot, State};
use capture::target::launching::signals::{Relation, has_terminal};
use capture::target::{GatedChild, LaunchError};
use engine::event::Facts;
use recording::Disk;
use std::fs::File;
use std::io;
use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

/// Everything that a recording or a live screen needs.
pub struct Setup<D: Disk = File> {
    /// The command: `record` or a kind of `top`.
    pub mode: Mode,
    /// The source of records.
    pub source: Box<dyn EventSource>,
    /// State at the start of the window.
    pub facts: Facts,
    /// Processes whose end ends the recording; empty: the source ends by itself.
    pub pids: Vec<u32>,
    /// Whether children of these processes are recorded, too.
    pub children: bool,
    /// Time after which recording ends.
    pub duration: Option<Duration>,
    /// The session file or ring.
    pub destination: Option<Destination<D>>,
    /// The conditions that make the ring save itself, if there is a ring.
    pub saving: Option<Saving>,
    /// The sliding window.
    pub window: Option<WindowPlan>,
    /// The screen, for [`Mode::Screen`].
    pub screen: Option<(Guard, State)>,
    /// Prints every report, for [`Mode::Batch`].
    pub print: Option<Print>,
    /// Serves reports over the network.
    pub listen: Option<Listen>,
    /// Whether a process is alive, according to /proc.
    pub alive: Box<dyn FnMut(u32) -> bool>,
    /// Reads the threads that are alive at the end.
    pub at_end: AtEnd,
    /// Reads the threads regularly, for the session file.
    pub snapshots: Option<TakeSnapshot>,
    /// Finds functions of processes that start later.
    pub choose: Option<Box<dyn Choose>>,
    /// The command at the gate; it is released when all threads run.
    pub child: Option<GatedChild>,
}

/// See [`Setup::print`].
pub type Print = Box<dyn FnMut(&Snapshot) -> io::Result<()>>;

/// See [`Setup::saving`].
pub struct Saving {
    /// Set by SIGUSR2; then [`Setup::destination`] saves the ring.
    pub wanted: Arc<AtomicBool>,
    /// Conditions that have the ring saved.
    pub triggers: Triggers,
    /// Prints that the ring was saved, or why not.
    pub tell: TellSaved,
}

/// See [`Saving::tell`].
pub type TellSaved = Box<dyn FnMut(&Result<Box<Saved>, UserError>)>;

/// See [`Setup::listen`].
pub struct Listen {
    /// The listening socket.
    pub socket: Socket,
    /// Decides which requests are allowed.
    pub access: Access,
    /// The reports that requests read.
    pub board: Board,
}

/// See [`Setup::window`].
#[derive(Clone, Debug)]
pub struct WindowPlan {
    /// Length of the window.
    pub span: Duration,
    /// Recorded time between two reports.
    pub refresh: Duration,
    /// Largest number of records in the window, since memory is limited.
    pub max_events: usize,
    /// The questions that are answered for each window.
    pub asked: Asked,
    /// At the start, a trial decides whether locks can be recorded.
    pub tries_locks: bool,
    /// Where a key writes the window on the screen.
    pub file: Option<WindowFile>,
}

/// How a recording or a live screen ended.
#[derive(Debug)]
pub struct Ended {
    /// Why recording ended.
    pub reason: Option<StopReason>,
    /// How the launched command ended; `None` if it has not ended.
    pub child_status: Option<ExitStatus>,
    /// Whether there is a launched command that still runs.
    pub child_runs_on: bool,
    /// Processes of the target that have not ended, as far as known.
    pub alive: Vec<u32>,
    /// The launched command has got ^C, too.
    pub child_was_interrupted: bool,
    /// Why the launched command could not be run.
    pub launch_error: Option<LaunchError>,
    /// The failure of a thread; `None` if there was none.
    pub failure: Option<Failure>,
    /// Facts that were noticed for the summary.
    pub observed: Observations,
    /// What the session file contains.
    pub file: Option<Written>,
    /// The user insisted on leaving before all was finished.
    pub aborted: bool,
    /// Length of the recording.
    pub elapsed: Duration,
}

/// Runs until the end. An error means that threads, signals or the terminal are not available.
pub fn run<D: Disk + Send + 'static>(setup: Setup<D>) -> io::Result<Ended> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(run_loop(setup))
}

async fn run_loop<D: Disk + Send + 'static>(setup: Setup<D>) -> io::Result<Ended> {
    let is_recording = setup.mode == Mode::Record;
    let poll_intervals = if is_recording { PollIntervals::RECORDED } else { PollIntervals::WATCHED };
    let (messages, inbox) = unbounded_channel();
    let times = (setup.duration, poll_intervals.alive);
    let mut inputs = Inputs::new(inbox, messages.clone(), times, setup.saving.is_some())?;
    let (save, triggers, saved) = match setup.saving {
        Some(Saving { wanted, triggers, tell }) => (wanted, Some(triggers), Some(tell)),
        None => (Arc::default(), None, None),
    };
    let relation = match setup.child {
        Some(_) => Relation::Launched { terminal: has_terminal() },
        None => Relation::Attached,
    };
    let mut loop_state = LoopState::new(setup.mode, relation, &setup.pids, setup.children);
    let skip_last_report = Arc::new(AtomicBool::new(false));
    let window_file = setup.window.as_ref().and_then(|plan| Some((plan.file.clone()?, messages.clone())));
    let sliding =
        setup.window.map(|plan| sliding(&setup.facts, plan, setup.mode, messages.clone())).transpose()?;
    let skip = Arc::clone(&skip_last_report);
    let writer = WriterThread { destination: setup.destination, sliding, skip_last_report: skip };
    let read = (setup.at_end, setup.snapshots);
    let (pipeline, Started { commands, attaching, snapshots, meter }) =
        Pipeline::start(setup.source, read, (writer, triggers), poll_intervals, &messages)?;

    let keyboard = match setup.screen {
        Some(_) => Some(Keyboard::start(messages.clone())?),
        None => None,
    };
    let board = setup.listen.as_ref().map(|listen| listen.board.clone());
    let listener = setup
        .listen
        .map(|Listen { socket, access, board }| Listener::start(socket, access, board, messages.clone()))
        .transpose()?;
    let held = setup.child.as_ref().map(GatedChild::pid);
    let choose = setup.choose.map(|choose| FunctionFinder::start(choose, held, messages.clone()));
    let mut executor = Executor {
        commands,
        attaching,
        snapshots,
        function_finder: choose.transpose()?,
        skip_last_report,
        save,
        window_file,
        saved,
        keyboard,
        screen: setup.screen,
        print: setup.print,
        board,
        child: setup.child,
        started: Instant::now(),
        captured: None,
        observed: Observations::default(),
        dirty: true,
        alive: setup.alive,
    };
    let launch_error = executor.release_child(meter);
    let aborted = is_aborted(&mut inputs, &mut loop_state, &mut executor).await?;
    let child_status = loop_state.child_status().or_else(|| executor.last_status(loop_state.stop_reason()));
    let child_runs_on = executor.child.is_some() && child_status.is_none();
    let Executor { observed, started, captured, screen, keyboard, commands, .. } = executor;
    drop((keyboard, screen, commands, listener));
    let file = if aborted { None } else { pipeline.finish(is_recording) };
    Ok(Ended {
        reason: loop_state.stop_reason(),
        child_status,
        child_runs_on,
        alive: loop_state.alive().collect(),
        child_was_interrupted: loop_state.command_was_interrupted(),
        launch_error,
        failure: loop_state.failure().cloned(),
        observed,
        file,
        aborted,
        elapsed: captured.unwrap_or_else(|| started.elapsed()),
    })
}

/// Runs the loop until its end. Returns whether the loop ended before everything was finished.
async fn is_aborted(
    inputs: &mut Inputs,
    loop_state: &mut LoopState,
    executor: &mut Executor,
) -> io::Result<bool> {
    loop {
        let message = match inputs.ready() {
            Some(message) => message,
            None => {
                executor.draw()?;
                inputs.next().await
            }
        };
        let effects = loop_state.handle(message);
        match executor.carry_out(effects, loop_state) {
            None => {}
            Some(Flow::Leave) => return Ok(false),
            Some(Flow::Abort) => return Ok(true),
        }
    }
}

fn sliding(
    facts: &Facts,
    plan: WindowPlan,
    mode: Mode,
    messages: UnboundedSender<Message>,
) -> io::Result<Sliding> {
    let analysis = AnalysisThread::start(plan.asked, plan.file.is_some(), messages)?;
    let due = match mode {
        Mode::Once => Due::WhenFull { look_ns: nanoseconds(plan.refresh) },
        Mode::Record | Mode::Screen | Mode::Batch => Due::Every(nanoseconds(plan.refresh)),
    };
    let sliding = Sliding::new(facts.clone(), nanoseconds(plan.span), plan.max_events, due, analysis);
    Ok(if plan.tries_locks { sliding.after_trial_of_locks() } else { sliding })
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
