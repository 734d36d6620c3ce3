//! Rows about the measured run.

use super::{Cell, Rows};
use crate::export::Model;
use engine::view::{Measured, ThreadActivity};
use std::io;

impl Rows<'_, '_, '_> {
    pub(super) fn recordings(&mut self) -> io::Result<()> {
        let about = &self.model.about;
        let program = self.model.program;
        let window = self.model.measured.as_ref().map(Measured::window);
        let trust = program.trust;
        // Start of the window, nanoseconds since 1970.
        let recorded_at = window.zip(about.clock).map(|((start, _), (monotonic_ns, realtime_ns))| {
            realtime_ns.saturating_sub(monotonic_ns).saturating_add(start.0)
        });
        let row = [
            Cell::known(about.command.as_deref()),
            Cell::known(build_id(self.model)),
            Cell::known(about.host.as_deref()),
            recorded_at.map_or(Cell::Null, Cell::count),
            window.map_or(Cell::Null, |(start, _)| Cell::count(start.0)),
            window.map_or(Cell::Null, |(_, end)| Cell::count(end.0)),
            program.recorded_cpus.map_or(Cell::Null, |cpus| Cell::count(u64::from(cpus))),
            Cell::count(trust.events),
            trust.lost.map_or(Cell::Null, Cell::count),
            Cell::count(trust.unknown_ns),
            Cell::known(about.longpole.as_deref()),
        ];
        self.put(&row)
    }

    pub(super) fn threads(&mut self) -> io::Result<()> {
        let Some(measured) = &self.model.measured else { return Ok(()) };
        for thread in measured.threads() {
            let created_by = thread.created_by.and_then(|creator| measured.thread(creator));
            self.put(&[
                Cell::text(thread.name),
                Cell::text(thread.process),
                Cell::count(u64::from(thread.pid)),
                Cell::count(u64::from(thread.tid)),
                Cell::count(thread.start.0),
                Cell::count(thread.end.0),
                Cell::known(created_by.map(|creator| creator.name)),
            ])?;
        }
        Ok(())
    }

    pub(super) fn intervals(&mut self) -> io::Result<()> {
        let Some(measured) = &self.model.measured else { return Ok(()) };
        for thread in measured.threads() {
            for state in measured.states(thread) {
                let (mut object, mut idle, mut ended_by, mut waker) =
                    (Cell::Null, Cell::Null, Cell::Null, Cell::Null);
                if let ThreadActivity::Blocked { wait, wakeup } = state.doing {
                    object = wait.object.map_or(Cell::Null, |object| Cell::text(measured.object(object)));
                    (idle, ended_by) = (Cell::Bool(wait.idle), Cell::text(wait.ended_by));
                    let wake = wakeup.and_then(|wakeup| measured.wake(wakeup));
                    waker = Cell::known(
                        wake.and_then(|wake| measured.thread(wake.waker)).map(|waker| waker.name),
                    );
                }
                self.put(&[
                    Cell::text(thread.name),
                    Cell::count(state.start.0),
                    Cell::count(state.end.0),
                    Cell::text(state.doing.word()),
                    state.doing.cpu().map_or(Cell::Null, |cpu| Cell::count(u64::from(cpu))),
                    Cell::known(state.doing.reason()),
                    object,
                    idle,
                    ended_by,
                    waker,
                ])?;
            }
        }
        Ok(())
    }

    pub(super) fn calls(&mut self) -> io::Result<()> {
        let Some(measured) = &self.model.measured else { return Ok(()) };
        for thread in measured.threads() {
            let mut open = Vec::new();
            for call in measured.calls(thread) {
                if let Some(name) = call.enters {
                    open.push((name, call.time));
                } else if let Some((name, entered)) = open.pop() {
                    self.put(&[
                        Cell::text(thread.name),
                        Cell::text(name),
                        Cell::count(entered.0),
                        Cell::count(call.time.0),
                        Cell::count(open.len() as u64),
                    ])?;
                }
            }
        }
        Ok(())
    }

    pub(super) fn wakes(&mut self) -> io::Result<()> {
        let Some(measured) = &self.model.measured else { return Ok(()) };
        for wake in measured.wakes() {
            let name = |thread| Cell::known(measured.thread(thread).map(|thread| thread.name));
            let row =
                [Cell::count(wake.time.0), name(wake.waker), name(wake.wakee), Cell::Bool(wake.ended_wait)];
            self.put(&row)?;
        }
        Ok(())
    }

    pub(super) fn sections(&mut self) -> io::Result<()> {
        let Some(measured) = &self.model.measured else { return Ok(()) };
        for section in measured.lock_sections() {
            self.put(&[
                Cell::text(measured.object(section.object)),
                Cell::text(measured.object_kind(section.object)),
                Cell::known(measured.thread(section.thread).map(|thread| thread.name)),
                Cell::count(section.waited_ns),
                Cell::count(section.from.0),
                if section.given_back { Cell::count(section.to.0) } else { Cell::Null },
                Cell::Bool(section.reads),
            ])?;
        }
        Ok(())
    }
}

/// The build-id of the binary that the command names.
fn build_id<'m>(model: &'m Model<'_>) -> Option<&'m str> {
    let program = model.about.command.as_deref()?.split(' ').next()?.rsplit('/').next()?;
    model.measured.as_ref()?.binary(program)?.1
}
