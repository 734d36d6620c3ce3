//! Messages between longpole and a parser that longpole does not trust. A message consists of a length and JSON, and
//! may carry one open file.

use rustix::cmsg_space;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// Size in bytes of the field before the JSON: the length of the JSON (u32, little-endian).
const HEAD: usize = 4;

/// Sends a message, with an open file if there is one. If sending takes longer than `until`, the error is
/// [`io::ErrorKind::TimedOut`].
pub fn send(
    socket: &UnixStream,
    message: &impl Serialize,
    file: Option<&File>,
    until: Option<Instant>,
) -> io::Result<()> {
    let body = serde_json::to_vec(message)?;
    let head = u32::try_from(body.len()).map_err(io::Error::other)?.to_le_bytes();
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))];
    let mut with = SendAncillaryBuffer::new(&mut space);
    let files = file.map(AsFd::as_fd);
    let files = files.as_slice();
    if !files.is_empty() && !with.push(SendAncillaryMessage::ScmRights(files)) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut timed = Timed { socket, until };
    timed.may_write()?;
    let sent = sendmsg(socket, &[IoSlice::new(&head)], &mut with, SendFlags::NOSIGNAL)?;
    timed.write_all(head.get(sent..).unwrap_or_default())?;
    timed.write_all(&body)
}

/// Receives a message of at most `most` bytes; `None` if the other side has closed the connection. `until` is one
/// deadline for the complete message, even if the message arrives in many small pieces.
pub fn receive<T: DeserializeOwned>(
    socket: &UnixStream,
    most: usize,
    until: Option<Instant>,
) -> io::Result<Option<(T, Option<File>)>> {
    let mut head = [0u8; HEAD];
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))];
    let mut with = RecvAncillaryBuffer::new(&mut space);
    let mut timed = Timed { socket, until };
    let read = loop {
        timed.may_read()?;
        let got = recvmsg(socket, &mut [IoSliceMut::new(&mut head)], &mut with, RecvFlags::CMSG_CLOEXEC);
        match got {
            Err(rustix::io::Errno::INTR) => {}
            got => break got?.bytes,
        }
    };
    let mut file = None;
    for message in with.drain() {
        if let RecvAncillaryMessage::ScmRights(files) = message {
            file = files.map(File::from).next();
        }
    }
    if read == 0 {
        return Ok(None);
    }
    timed.read_exact(head.get_mut(read..).unwrap_or_default())?;
    let len = u32::from_le_bytes(head) as usize;
    if len > most {
        return Err(io::Error::new(io::ErrorKind::InvalidData, format!("a message of {len} bytes")));
    }
    let mut body = Vec::new();
    // Memory is allocated for bytes that have arrived, not for the length that the parser announces.
    Read::take(&mut timed, len as u64).read_to_end(&mut body)?;
    if body.len() < len {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(Some((serde_json::from_slice(&body)?, file)))
}

/// A socket with one deadline for all reads and writes together.
struct Timed<'a> {
    socket: &'a UnixStream,
    until: Option<Instant>,
}

impl Timed<'_> {
    fn left(&self) -> io::Result<Option<Duration>> {
        let Some(until) = self.until else { return Ok(None) };
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(Some(left)) }
    }

    fn may_read(&self) -> io::Result<()> {
        match self.left()? {
            None => Ok(()),
            left => self.socket.set_read_timeout(left),
        }
    }

    fn may_write(&self) -> io::Result<()> {
        match self.left()? {
            None => Ok(()),
            left => self.socket.set_write_timeout(left),
        }
    }
}

impl Read for Timed<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.may_read()?;
        self.socket.read(into)
    }
}

impl Write for Timed<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.may_write()?;
        self.socket.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.socket.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Seek;

    #[test]
    fn messages_and_their_files_arrive() {
        let (here, there) = UnixStream::pair().expect("pair");
        let mut file = tempfile::tempfile().expect("file");
        file.write_all(b"inside").expect("written");
        file.rewind().expect("rewound");
        send(&here, &("words", 7), Some(&file), None).expect("sent");
        send(&here, &vec![1u64; 100], None, None).expect("sent");
        let ((text, number), got) =
            receive::<(String, u32)>(&there, 100, None).expect("received").expect("open");
        assert_eq!((text.as_str(), number), ("words", 7));
        let mut inside = String::new();
        got.expect("a file").read_to_string(&mut inside).expect("read");
        assert_eq!(inside, "inside");
        assert!(receive::<Vec<u64>>(&there, 100, None).is_err(), "more than allowed");
        let (here, there) = UnixStream::pair().expect("pair");
        drop(here);
        assert!(receive::<u32>(&there, 100, None).expect("closed").is_none());
    }

    #[test]
    fn cut_and_foreign_messages_are_errors() {
        for bytes in [&b"\x05\0\0\0{"[..], b"\x02\0\0\0zz", b"\x01\0", b"\xff\xff\xff\xff"] {
            let (mut here, there) = UnixStream::pair().expect("pair");
            here.write_all(bytes).expect("written");
            drop(here);
            assert!(receive::<u32>(&there, 1 << 20, None).is_err(), "{bytes:?}");
        }
    }

    /// With a deadline for each read, a parser could use up the whole time for every single byte.
    #[test]
    fn a_message_that_arrives_slowly_has_one_deadline() {
        let (mut here, there) = UnixStream::pair().expect("pair");
        let patience = Duration::from_millis(200);
        std::thread::scope(|scope| {
            scope.spawn(move || {
                let began = Instant::now();
                here.write_all(&100u32.to_le_bytes()).expect("written");
                while began.elapsed() < patience * 20 && here.write_all(b" ").is_ok() {
                    std::thread::sleep(patience / 4);
                }
            });
            let began = Instant::now();
            let error = receive::<u32>(&there, 100, Some(began + patience)).expect_err("it never ends");
            let kind = error.kind();
            assert!(matches!(kind, io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock), "{error}");
            assert!(began.elapsed() >= patience && began.elapsed() < patience * 15, "{:?}", began.elapsed());
            drop(there);
        });
        // If the peer does not read, the deadline ends sending, too.
        let (here, _there) = UnixStream::pair().expect("pair");
        let much = "x".repeat(16 << 20);
        let error = send(&here, &much, None, Some(Instant::now() + patience)).expect_err("nobody reads");
        assert!(matches!(error.kind(), io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock), "{error}");
    }
}
