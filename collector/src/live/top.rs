//! `longpole top`

use super::summary::runs_on_text;
use crate::cell::duration;
use crate::exit::{Outcome, UserError, say};
use crate::listen::{Access, Board, Socket, Token, stretch};
use crate::live::analyse::Asked;
use crate::live::keep::{Destination, WindowFile, session_meta};
use crate::live::main_loop::{Ended, Listen, Mode, Print, Setup, WindowPlan, run};
use crate::live::probes::{Attached, How, alive_while, attach, is_alive};
use crate::live::record::outcome;
use crate::plan::{ListenPlan, TargetPlan, TopPlan};
use crate::present::screen::{self, About, Live};
use crate::present::{json, style};
use crate::tui::{CpuWish, Guard, Requests, Snapshot, State};
use capture::target::launching::signals;
use capture::target::monotonic_ns;
use engine::report::Cpus;
use recording::{ClockAnchor, Overwrite, create_file, default_name, online_cpus};
use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};

/// Largest number of records in the window: some hundred megabytes with all that is derived from them.
const MAX_EVENTS: usize = 1_000_000;

/// Shows the live screen until the user leaves, or prints one window.
pub fn top(plan: &TopPlan) -> Result<Outcome, UserError> {
    let is_terminal = io::stdout().is_terminal() && io::stdin().is_terminal();
    let is_printed = plan.once || plan.batch || (plan.listen.is_some() && !is_terminal);
    if !is_printed && !is_terminal {
        return Err(UserError::runtime(
            "the live screen needs a terminal",
            "add --once for one screen as text, --batch for one after the other, or --listen for a page",
        ));
    }
    let socket = plan.listen.as_ref().map(listen).transpose()?;
    let mut output = match plan.capture.target {
        TargetPlan::Launch { .. } => Some(OutputFile::create(&std::env::temp_dir())?),
        TargetPlan::Attach { .. } => None,
    };
    let file = output.as_ref().map(OutputFile::writer).transpose()?;
    signals::say_if_ended_early();
    let Attached { subject, name, pids, source, facts, functions, child, remarks, locks } =
        attach(&plan.capture, file)?;
    let tries_locks = matches!(locks, How::Tried(_));
    let locks = format!("locks: {locks}");
    let listen = socket.map(|(socket, token)| {
        let access = Access::new(socket.address, token.clone());
        let where_to = format!("http://{}/?token={}", socket.address, token.text());
        (Listen { socket, access, board: Board::new(subject.clone()) }, where_to)
    });
    let (listen, page) = listen.unzip();
    let page = page.map(|page| format!("page: {page}"));
    for remark in remarks.iter().chain([&locks]).chain(&page).filter(|_| is_printed) {
        say(style::for_stderr().text(remark));
    }
    let mut asked = asked(plan);
    let screen = if is_printed {
        None
    } else {
        let mut state = State::new(subject.clone());
        asked.wish = state.wish();
        if plan.per.is_some() {
            state.show_requests();
        }
        // At the end the place of the command's output is printed, too.
        state.remark = page.or_else(|| output.as_ref().map(OutputFile::sentence));
        Some((take_terminal()?, state))
    };
    let window_file = screen.is_some().then(|| window_file(plan, &name, &pids));
    let (mode, print) = mode(plan, &subject, is_printed);
    let command = child.as_ref().map(|child| child.pid());
    let ended = run(Setup {
        mode,
        source: Box::new(source.without_end()),
        facts,
        pids,
        children: plan.capture.children,
        duration: plan.duration,
        destination: None::<Destination>,
        saving: None,
        window: Some(WindowPlan {
            span: plan.window,
            refresh: plan.refresh,
            max_events: MAX_EVENTS,
            asked,
            tries_locks,
            file: window_file,
        }),
        screen,
        print,
        listen,
        alive: alive_while(command.filter(|_| !plan.capture.children_to_their_end)),
        at_end: Box::new(|_| (Vec::new(), None)),
        snapshots: None,
        choose: functions.map(|functions| Box::new(functions) as _),
        child,
    })
    .map_err(|error| {
        if let (Some(output), Some(pid)) = (&mut output, command) {
            output.in_use = is_alive(pid);
        }
        UserError::runtime(format!("cannot watch: {error}"), "see `longpole doctor`")
    })?;
    finish(plan, &subject, ended, output)
}

fn take_terminal() -> Result<Guard, UserError> {
    Guard::take().map_err(|error| {
        UserError::runtime(format!("cannot use the terminal: {error}"), "add --once for one screen as text")
    })
}

/// The place where a key writes the window on the screen.
fn window_file(plan: &TopPlan, name: &str, pids: &[u32]) -> WindowFile {
    let clock = ClockAnchor::now(monotonic_ns());
    let file = default_name(name, pids.first().copied().unwrap_or(0), clock.realtime_ns);
    WindowFile { meta: session_meta(&plan.capture, pids, clock), name: file }
}

/// The questions that each report answers.
fn asked(plan: &TopPlan) -> Asked {
    let mut asked = Asked {
        cpus: plan.cpus.clone(),
        recorded_cpus: Some(online_cpus()),
        wish: CpuWish::default(),
        per: plan.per.clone(),
    };
    if let Some(machine) = Cpus::count(online_cpus())
        && !asked.cpus.contains(&machine)
    {
        // The screen begins with what limits the program on this machine.
        asked.cpus.push(machine);
        asked.cpus.sort_unstable();
    }
    asked
}

/// The mode, and the printer of reports.
fn mode(plan: &TopPlan, subject: &str, is_printed: bool) -> (Mode, Option<Print>) {
    match (plan.once, plan.batch) {
        (true, _) => (Mode::Once, None),
        (_, true) => {
            let (plan, subject) = (plan.clone(), subject.to_owned());
            let print: Print = Box::new(move |snapshot| print(&plan, &subject, snapshot));
            (Mode::Batch, Some(print))
        }
        _ if is_printed => (Mode::Batch, None),
        _ => (Mode::Screen, None),
    }
}

/// Binds the address, before anything else is started.
fn listen(plan: &ListenPlan) -> Result<(Socket, Token), UserError> {
    let token = match &plan.token {
        None => Token::random().map_err(|error| {
            UserError::runtime(
                format!("there is no random number: {error}"),
                "give a secret with --listen-token FILE",
            )
        })?,
        Some(file) => {
            let text = std::fs::read_to_string(file).map_err(|error| {
                UserError::runtime(
                    format!("cannot read {}: {error}", file.display()),
                    "check the file's name and permissions",
                )
            })?;
            Token::chosen(&text).ok_or_else(|| {
                UserError::runtime(
                    format!("{} holds no token", file.display()),
                    "write one of 16 to 256 letters, digits, - and _: openssl rand -hex 16",
                )
            })?
        }
    };
    let socket = Socket::bind(plan.address).map_err(|error| {
        UserError::runtime(
            format!("cannot listen on {}: {error}", plan.address),
            "choose another address or port; port 0 is any that is free",
        )
    })?;
    Ok((socket, token))
}

fn finish(
    plan: &TopPlan,
    subject: &str,
    ended: Ended,
    output: Option<OutputFile>,
) -> Result<Outcome, UserError> {
    if ended.child_runs_on {
        say(style::for_stderr().text(&runs_on_text(subject)));
    }
    if let Some(output) = output {
        output.finish(ended.child_runs_on);
    }
    let result = outcome(&ended);
    if let Some(error) = ended.launch_error {
        return Err(error.into());
    }
    if ended.aborted {
        return Ok(Outcome::Signal(libc::SIGINT));
    }
    if let Some(failure) = &ended.failure {
        let message = format!("{} failed: {}", failure.part, failure.text);
        return Err(UserError::runtime(
            message,
            "please report this bug, and name the program that longpole watched",
        ));
    }
    if plan.once {
        let Some(snapshot) = &ended.observed.report else {
            return Err(UserError::runtime(
                "there is no report: the program ended before the first",
                "watch for longer",
            ));
        };
        return match print(plan, subject, snapshot) {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(UserError::runtime(
                format!("cannot write to standard output: {error}"),
                "check where the output goes",
            )),
            _ => Ok(Outcome::Done),
        };
    }
    Ok(result)
}

/// Prints one report in a single write, for readers of lines.
fn print(plan: &TopPlan, subject: &str, snapshot: &Snapshot) -> io::Result<()> {
    let mut out = io::stdout().lock();
    let Snapshot { report, limits, requests, .. } = snapshot;
    if plan.json {
        let options =
            json::report::Options { live: Some(stretch(snapshot)), ..json::report::Options::default() };
        json::report::write(report, limits, options, &mut out)?;
        if let Some(Requests { names, summary: Some(summary), .. }) = requests {
            json::requests::write(summary, names, None, &report.findings, &mut out)?;
        }
    } else {
        let stretch = format!("last {}", duration(snapshot.window_ns as f64));
        let about = About {
            name: subject.to_owned(),
            threads: snapshot.threads,
            live: Some(Live { stretch, notes: "--json" }),
            ..About::default()
        };
        let style = style::for_stdout();
        screen::write(report, limits, &about, false, &style, &mut out)?;
        if let Some(requests) = requests {
            writeln!(out)?;
            requests.write(&style, &mut out)?;
        }
        if plan.batch {
            writeln!(out)?;
        }
    }
    out.flush()
}

/// The file for a launched command's output: the terminal is the screen's, and standard output the report's. An empty file
/// is removed, however `top` ends.
struct OutputFile {
    path: PathBuf,
    file: File,
    /// The command runs on, and may still write.
    in_use: bool,
}

impl OutputFile {
    fn create(folder: &Path) -> Result<OutputFile, UserError> {
        let name = format!("longpole-top-{}-{}.log", std::process::id(), monotonic_ns());
        let path = folder.join(name);
        match create_file(&path, Overwrite::Nothing) {
            Ok(file) => Ok(OutputFile { path, file, in_use: false }),
            Err(error) => Err(UserError::runtime(
                format!("cannot keep the command's output: {error}"),
                "set TMPDIR to a folder that you may write to",
            )),
        }
    }

    fn writer(&self) -> Result<File, UserError> {
        self.file.try_clone().map_err(|error| UserError::runtime(error.to_string(), "close some files"))
    }

    fn sentence(&self) -> String {
        format!("the program's output goes to {}", self.path.display())
    }

    /// Prints the place of the output, if there is some or may come.
    fn finish(mut self, runs_on: bool) {
        self.in_use = runs_on;
        if !self.is_useless() {
            say(style::for_stderr().text(&self.sentence()));
        }
    }

    fn is_useless(&self) -> bool {
        !self.in_use && self.file.metadata().is_ok_and(|metadata| metadata.len() == 0)
    }
}

impl Drop for OutputFile {
    fn drop(&mut self) {
        if self.is_useless() {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An empty log must not remain if the terminal is not available.
    #[test]
    fn a_log_of_a_command_s_output_is_kept_only_if_it_is_not_empty() {
        let folder = tempfile::tempdir().expect("folder");
        let create = || OutputFile::create(folder.path()).expect("log");
        let left = || std::fs::read_dir(folder.path()).expect("folder").count();
        drop(create());
        assert_eq!(left(), 0, "it failed");
        create().finish(false);
        assert_eq!(left(), 0, "the command wrote nothing");
        create().finish(true);
        assert_eq!(left(), 1, "the command runs on");
        let full = create();
        full.writer().expect("writer").write_all(b"output").expect("written");
        drop(full);
        assert_eq!(left(), 2, "what was written stays");
    }
}
