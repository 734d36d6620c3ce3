//! Finds waits for sockets that are waits for other servers' answers (ours).
//!
//! A wait in `recv` does not show whether the thread waits for the next request or for an answer. The sums of requests do: if
//! the average number of requests open at others is that of threads that wait for sockets, these threads wait for answers. In
//! any other case the name stays.

use super::{Endpoint, Program};

/// Name of a wait for any data from a socket.
const SOCKET: &str = "socket receive";
/// Start of a wait's name if the wait is for answers; the name of the other server follows.
pub(super) const ANSWERS: &str = "answers of ";
/// The number of requests open at others and the number of threads that wait for sockets may differ by this factor: a request
/// is open a little longer than its thread sleeps.
const SAME: f64 = 1.3;
/// A server with at least this part of all requests is named; otherwise the name is "others".
const MOST: f64 = 0.8;

/// Renames the waits of a program whose sums of requests are known. `length_ns`: length of the recording.
pub(super) fn name(program: &mut Program, length_ns: u64) {
    let asked = || program.recorded.traffic.iter().filter(|end| !end.served);
    let open: f64 = asked().map(|end| end.open).sum();
    let waits = program.recorded.waits.iter().filter(|wait| wait.name.as_str() == SOCKET);
    let waited =
        waits.fold(0u64, |sum, wait| sum.saturating_add(wait.wait_ns)) as f64 / length_ns.max(1) as f64;
    if open <= 0.0 || open > waited * SAME || waited > open * SAME {
        return;
    }
    let first = asked().max_by(|a: &&Endpoint, b| a.open.total_cmp(&b.open));
    let first = first.filter(|end| end.open >= MOST * open).map_or("others", |end| end.name.as_str());
    let name = format!("{ANSWERS}{first}");
    for wait in program.recorded.waits.iter_mut().filter(|wait| wait.name.as_str() == SOCKET) {
        wait.name = name.as_str().into();
    }
    for object in program.objects.iter_mut().filter(|object| *object == SOCKET) {
        object.clone_from(&name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::{Recorded, RecordedWait};

    fn named(waited_ns: u64, open: &[f64]) -> String {
        let end =
            |open: &f64| Endpoint { name: format!("10.0.0.7:{open}"), open: *open, ..Endpoint::default() };
        let wait = RecordedWait { name: SOCKET.into(), wait_ns: waited_ns, ..RecordedWait::default() };
        let traffic =
            open.iter().map(end).chain([Endpoint { served: true, open: 9.0, ..Endpoint::default() }]);
        let recorded = Recorded { traffic: traffic.collect(), waits: vec![wait], ..Recorded::default() };
        let mut program = Program { objects: vec![SOCKET.to_owned()], recorded, ..Program::default() };
        name(&mut program, 1_000);
        assert_eq!(program.objects[0], program.recorded.waits[0].name.as_str());
        program.objects.remove(0)
    }

    #[test]
    fn threads_wait_for_answers_if_as_many_requests_are_open_at_others() {
        assert_eq!(named(3_600, &[4.0]), "answers of 10.0.0.7:4");
        assert_eq!(named(3_600, &[0.4, 3.5]), "answers of 10.0.0.7:3.5");
        assert_eq!(named(3_600, &[2.0, 2.0]), "answers of others");
        // Half of the time is spent waiting for requests; nothing is asked; an event loop that sends requests.
        assert_eq!([named(3_600, &[1.8]), named(3_600, &[]), named(500, &[4.0])], [SOCKET; 3]);
    }
}
