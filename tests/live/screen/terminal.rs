//! longpole in a terminal that the test controls.

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};
use std::io::{Read, Write};
use std::num::NonZero;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

pub(super) const LINES: u16 = 24;
pub(super) const COLUMNS: u16 = 80;
/// Limit for each wait. The limit is much longer than any wait takes, even on a busy machine.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);

/// The child process in its terminal.
pub(super) struct Screen {
    pub(super) parser: vt100::Parser,
    pub(super) output: Receiver<Vec<u8>>,
    pub(super) keys: Box<dyn Write + Send>,
    /// The test's end of the terminal; `None` after hanging up.
    pub(super) master: Option<Box<dyn MasterPty + Send>>,
    pub(super) child: Box<dyn Child + Send + Sync>,
}

impl Screen {
    /// Starts this test program again, as the program in the terminal.
    pub(super) fn start(what: &str) -> Screen {
        let mut command = CommandBuilder::new(std::env::current_exe().expect("own path"));
        command.args(["--exact", "screen::child", "--ignored", "--nocapture"]);
        command.env("LONGPOLE_TEST_SCREEN", what);
        Screen::run(command)
    }

    pub(super) fn run(mut command: CommandBuilder) -> Screen {
        let size = PtySize { rows: LINES, cols: COLUMNS, pixel_width: 0, pixel_height: 0 };
        let pair = native_pty_system().openpty(size).expect("pty");
        command.env("TERM", "xterm-256color");
        command.env("RUST_BACKTRACE", "0");
        command.env("LC_ALL", "C.UTF-8");
        command.env_remove("NO_COLOR");
        // A backtrace would move the message of a panic off the screen.
        command.env("RUST_BACKTRACE", "0");
        let child = pair.slave.spawn_command(command).expect("child");
        drop(pair.slave);
        let mut reader = pair.master.try_clone_reader().expect("reader");
        let (sender, output) = channel();
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(count @ 1..) = reader.read(&mut buffer) {
                if sender.send(buffer[..count].to_vec()).is_err() {
                    break;
                }
            }
        });
        let size = |n| NonZero::new(n).expect("not 0");
        Screen {
            parser: vt100::Parser::new(size(LINES), size(COLUMNS), 0),
            output,
            keys: pair.master.take_writer().expect("writer"),
            master: Some(pair.master),
            child,
        }
    }

    pub(super) fn text(&self) -> String {
        self.parser.screen().contents()
    }

    /// Reads until `wanted` accepts the screen.
    pub(super) fn wait_for(&mut self, what: &str, wanted: impl Fn(&vt100::Screen) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !wanted(self.parser.screen()) {
            assert!(Instant::now() < deadline, "no {what} on:\n{}", self.text());
            match self.output.recv_timeout(Duration::from_millis(100)) {
                Ok(bytes) => self.parser.process(&bytes),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    assert!(wanted(self.parser.screen()), "ended without {what}:\n{}", self.text());
                }
            }
        }
    }

    pub(super) fn wait_for_text(&mut self, text: &str) {
        self.wait_for(text, |screen| screen.contents().contains(text));
    }

    pub(super) fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).expect("key");
        self.keys.flush().expect("key");
    }

    /// Closes the terminal, as closing its window or an SSH connection does. The thread that reads the terminal holds
    /// it open until the next output.
    pub(super) fn hang_up(&mut self) {
        self.output = channel().1;
        self.keys = Box::new(std::io::sink());
        self.master = None;
    }

    /// Waits for the end. Returns the exit code, the text, and whether the alternate screen is still on.
    pub(super) fn end(mut self) -> (u32, String, bool) {
        loop {
            match self.output.recv_timeout(PATIENCE) {
                Ok(bytes) => self.parser.process(&bytes),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => panic!("does not end:\n{}", self.text()),
            }
        }
        let status = self.child.wait().expect("status");
        (status.exit_code(), self.text(), self.parser.screen().alternate_screen())
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // Killing fails only if the child has already ended.
        let _ = self.child.kill();
    }
}
