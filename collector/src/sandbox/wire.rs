//! Messages between longpole and a parser that it does not trust: a length, then JSON, and at most one open file with it.

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

/// Length (u32, little-endian) of the JSON that follows.
const HEAD: usize = 4;

/// Sends a message, with an open file if there is one.
pub fn send(mut socket: &UnixStream, message: &impl Serialize, file: Option<&File>) -> io::Result<()> {
    let body = serde_json::to_vec(message)?;
    let head = u32::try_from(body.len()).map_err(io::Error::other)?.to_le_bytes();
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))];
    let mut with = SendAncillaryBuffer::new(&mut space);
    let files = file.map(AsFd::as_fd);
    let files = files.as_slice();
    if !files.is_empty() && !with.push(SendAncillaryMessage::ScmRights(files)) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let sent = sendmsg(socket, &[IoSlice::new(&head)], &mut with, SendFlags::NOSIGNAL)?;
    socket.write_all(head.get(sent..).unwrap_or_default())?;
    socket.write_all(&body)
}

/// Receives a message of at most `most` bytes. `None`: the other side has closed.
pub fn receive<T: DeserializeOwned>(
    mut socket: &UnixStream,
    most: usize,
) -> io::Result<Option<(T, Option<File>)>> {
    let mut head = [0u8; HEAD];
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))];
    let mut with = RecvAncillaryBuffer::new(&mut space);
    let read = loop {
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
    socket.read_exact(head.get_mut(read..).unwrap_or_default())?;
    let len = u32::from_le_bytes(head) as usize;
    if len > most {
        return Err(io::Error::new(io::ErrorKind::InvalidData, format!("a message of {len} bytes")));
    }
    let mut body = Vec::new();
    // Memory grows with what comes, not with what is announced.
    Read::take(&mut socket, len as u64).read_to_end(&mut body)?;
    if body.len() < len {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(Some((serde_json::from_slice(&body)?, file)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Seek;

    #[test]
    fn messages_and_files_arrive() {
        let (here, there) = UnixStream::pair().expect("pair");
        let mut file = tempfile::tempfile().expect("file");
        file.write_all(b"inside").expect("written");
        file.rewind().expect("rewound");
        send(&here, &("words", 7), Some(&file)).expect("sent");
        send(&here, &vec![1u64; 100], None).expect("sent");
        let ((text, number), got) = receive::<(String, u32)>(&there, 100).expect("received").expect("open");
        assert_eq!((text.as_str(), number), ("words", 7));
        let mut inside = String::new();
        got.expect("a file").read_to_string(&mut inside).expect("read");
        assert_eq!(inside, "inside");
        assert!(receive::<Vec<u64>>(&there, 100).is_err(), "more than allowed");
        let (here, there) = UnixStream::pair().expect("pair");
        drop(here);
        assert!(receive::<u32>(&there, 100).expect("closed").is_none());
    }

    #[test]
    fn cut_and_foreign_messages_are_errors() {
        for bytes in [&b"\x05\0\0\0{"[..], b"\x02\0\0\0zz", b"\x01\0", b"\xff\xff\xff\xff"] {
            let (mut here, there) = UnixStream::pair().expect("pair");
            here.write_all(bytes).expect("written");
            drop(here);
            assert!(receive::<u32>(&there, 1 << 20).is_err(), "{bytes:?}");
        }
    }
}
