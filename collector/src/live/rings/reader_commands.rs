//! Commands of the main loop to the ring reader, and the doorbell that also wakes it: the target signals the doorbell
//! when one of its rings fills up.

use super::ring_reader::Command;
use capture::interpose::Doorbell;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};
use std::time::{Duration, Instant};

/// Least time between turns for a target that signals the doorbell all the time: no ring of the preloaded library is
/// half full sooner.
const ANSWER: Duration = Duration::from_millis(2);

/// The main loop's end.
pub struct ReaderCommands {
    commands: Sender<Command>,
    bell: Option<Arc<Doorbell>>,
}

/// The ring reader's end.
pub struct CommandReceiver {
    commands: Receiver<Command>,
    bell: Option<Arc<Doorbell>>,
}

/// Creates both ends of the channel. `bell`: the target's doorbell, if it has one.
pub fn reader_commands(bell: Option<Doorbell>) -> (ReaderCommands, CommandReceiver) {
    let (sender, receiver) = channel();
    let bell = bell.map(Arc::new);
    (ReaderCommands { commands: sender, bell: bell.clone() }, CommandReceiver { commands: receiver, bell })
}

impl ReaderCommands {
    /// Sends a command; a reader that has ended ignores it.
    pub fn give(&self, command: Command) {
        let _ = self.commands.send(command);
        if let Some(bell) = &self.bell {
            bell.ring();
        }
    }
}

impl CommandReceiver {
    /// Resets the doorbell, since the rings are about to be emptied.
    pub fn begin_turn(&self) {
        if let Some(bell) = &self.bell {
            bell.silence();
        }
    }

    /// The next command. [`RecvTimeoutError::Timeout`]: it is time for another turn, since the pause is over or the
    /// doorbell was signalled.
    pub fn next(&self, pause: Duration) -> Result<Command, RecvTimeoutError> {
        let Some(bell) = &self.bell else { return self.commands.recv_timeout(pause) };
        let began = Instant::now();
        if let Some(done) = self.given() {
            return done;
        }
        if pause.is_zero() {
            return Err(RecvTimeoutError::Timeout);
        }
        // A command signals the doorbell after it was sent, so the command is in the channel when the wait returns.
        bell.wait(pause);
        if let Some(done) = self.given() {
            return done;
        }
        self.commands.recv_timeout(ANSWER.min(pause).saturating_sub(began.elapsed()))
    }

    fn given(&self) -> Option<Result<Command, RecvTimeoutError>> {
        match self.commands.try_recv() {
            Ok(command) => Some(Ok(command)),
            Err(TryRecvError::Disconnected) => Some(Err(RecvTimeoutError::Disconnected)),
            Err(TryRecvError::Empty) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use capture::interpose::Interposed;

    const LONG: Duration = Duration::from_secs(60);

    fn stop() -> Command {
        Command::Stop { pids: Vec::new() }
    }

    fn timed(waiter: &CommandReceiver, pause: Duration) -> (Result<Command, RecvTimeoutError>, Duration) {
        let began = Instant::now();
        (waiter.next(pause), began.elapsed())
    }

    /// A pair of ends without a doorbell, and one with a doorbell.
    fn both() -> Vec<(ReaderCommands, CommandReceiver)> {
        let interposed = Interposed::new(Vec::new(), None, false, None, false).expect("memory");
        vec![reader_commands(None), reader_commands(Some(interposed.bell().expect("a bell")))]
    }

    #[test]
    fn a_reader_command_is_received_at_once_whenever_it_comes() {
        for (commands, waiter) in both() {
            commands.give(stop());
            waiter.begin_turn();
            assert!(matches!(waiter.next(LONG), Ok(Command::Stop { .. })));
            waiter.begin_turn();
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    std::thread::sleep(Duration::from_millis(30));
                    commands.give(stop());
                });
                let (got, took) = timed(&waiter, LONG);
                assert!(matches!(got, Ok(Command::Stop { .. })) && took < LONG);
            });
            waiter.begin_turn();
            let pause = Duration::from_millis(20);
            let (got, took) = timed(&waiter, pause);
            assert!(matches!(got, Err(RecvTimeoutError::Timeout)) && took >= pause);
            assert!(matches!(waiter.next(Duration::ZERO), Err(RecvTimeoutError::Timeout)));
            drop(commands);
            waiter.begin_turn();
            assert!(matches!(waiter.next(LONG), Err(RecvTimeoutError::Disconnected)));
        }
    }

    #[test]
    fn a_doorbell_rung_without_end_is_answered_at_intervals() {
        let interposed = Interposed::new(Vec::new(), None, false, None, false).expect("memory");
        let target = interposed.bell().expect("a bell");
        let (commands, waiter) = reader_commands(Some(interposed.bell().expect("a bell")));
        let began = Instant::now();
        for _ in 0..20 {
            waiter.begin_turn();
            target.ring();
            let (got, took) = timed(&waiter, LONG);
            assert!(matches!(got, Err(RecvTimeoutError::Timeout)) && took < LONG);
        }
        assert!(began.elapsed() >= ANSWER * 20);
        // A target that rings does not keep the thread from ending.
        target.ring();
        commands.give(stop());
        assert!(matches!(waiter.next(LONG), Ok(Command::Stop { .. })));
    }
}
