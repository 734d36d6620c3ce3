//! Reads the files and other ends of sockets for which threads slept.

use aya::Ebpf;
use aya::maps::{HashMap, MapData};
use engine::event::AwaitedFact;
use probe_abi::{Awaited, RequestKey};

/// The address family of Unix sockets, which have no port.
const UNIX: u16 = 1;

/// All entries so far, in ascending order of their numbers; none if they cannot be read.
pub(crate) fn awaited(ebpf: &Ebpf) -> Vec<AwaitedFact> {
    const WORDS: usize = size_of::<Awaited>() / 4;
    let map = ebpf.map("AWAITED").and_then(|map| HashMap::<&MapData, u32, [u32; WORDS]>::try_from(map).ok());
    let listening = ebpf.map("LISTENING").and_then(|map| HashMap::<&MapData, u16, u8>::try_from(map).ok());
    let is_open = |port: u16| listening.as_ref().is_some_and(|ports| ports.get(&port, 0).is_ok());
    let entries = map.iter().flat_map(|map| map.iter().filter_map(Result::ok));
    let mut facts: Vec<AwaitedFact> =
        entries.map(|(number, words)| fact(number, zerocopy::transmute!(words), is_open)).collect();
    facts.sort_by_key(|fact| fact.number);
    facts
}

/// `is_open`: whether a recorded process listens on a port.
fn fact(number: u32, of: Awaited, is_open: impl Fn(u16) -> bool) -> AwaitedFact {
    let own = u16::try_from(of.own_port).ok().filter(|port| of.socket.family != UNIX && is_open(*port));
    let socket = match own {
        Some(port) => RequestKey { port, served: 1, address: 0, ..of.socket },
        None => of.socket,
    };
    let (folder, name) = (text(&of.folder), text(&of.name));
    let file = if folder.is_empty() || folder == "/" { name } else { format!("{folder}/{name}") };
    AwaitedFact {
        number,
        file,
        family: socket.family,
        served: socket.served == 1,
        port: socket.port,
        address: socket.address.to_ne_bytes(),
    }
}

/// The text up to the first 0. The program that is watched chooses it: anything but UTF-8 becomes a replacement character.
fn text(bytes: &[u8]) -> String {
    let length = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(bytes.get(..length).unwrap_or_default()).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use probe_abi::{FOLDER_BYTES, NAME_BYTES};

    fn filled<const BYTES: usize>(text: &[u8]) -> [u8; BYTES] {
        std::array::from_fn(|place| text.get(place).copied().unwrap_or(0))
    }

    #[test]
    fn an_awaited_file_has_its_folder_and_a_peer_its_address() {
        let none = RequestKey::default();
        let named = |folder: &[u8], name: &[u8]| Awaited {
            kind: 1,
            socket: none,
            own_port: 0,
            folder: filled::<FOLDER_BYTES>(folder),
            name: filled::<NAME_BYTES>(name),
        };
        let file = |folder: &[u8], name: &[u8]| fact(1, named(folder, name), |_| true).file;
        assert_eq!(file(b"pg_wal", b"0001\0old"), "pg_wal/0001");
        assert_eq!(file(b"/", b"data"), "data");
        assert_eq!(file(b"a", b"\xff"), "a/\u{fffd}");
        let socket = RequestKey { address: u32::from_ne_bytes([10, 0, 0, 7]), port: 5432, family: 2, ..none };
        let awaited = Awaited { kind: 3, socket, own_port: 80, ..named(b"", b"") };
        let peer = fact(7, awaited, |_| false);
        assert_eq!((peer.file.as_str(), peer.address, peer.port), ("", [10, 0, 0, 7], 5432));
        let client = fact(7, awaited, |port| port == 80);
        assert_eq!((client.served, client.address, client.port), (true, [0; 4], 80));
    }
}
