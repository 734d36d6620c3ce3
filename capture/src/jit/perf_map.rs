//! `/tmp/perf-PID.map`: the text file in which JIT compilers (Node, Java with an agent, .NET, Python 3.12)
//! name the code that they make. Any user may write to /tmp, so the file's owner is checked, and its content is
//! not trusted.

use super::history::{self, Code, JitHistory};
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;
use symbols::MAX_RAW_BYTES;

/// Largest number of bytes that are read; the map of a large Java program has some 10 MB.
pub const MOST_BYTES: u64 = 256 << 20;

/// Why a map is not used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MapRefused {
    /// A pipe, a device, a link.
    #[error("it is not a regular file")]
    NotRegular,
    /// The map belongs neither to the process's user nor to root.
    #[error("it belongs to user {owner}, the process to user {user}")]
    Owner {
        /// User id of the file's owner.
        owner: u32,
        /// User id of the process.
        user: u32,
    },
    /// The map has a second name (link), which may belong to another user.
    #[error("it has {0} names (hard links)")]
    Linked(u64),
    /// Users other than the owner may write to the map.
    #[error("all users may write to it")]
    Writable,
}

/// Checks that a process's map may be trusted. `user` is the process's user.
pub fn check(file: &File, user: u32) -> Result<(), MapRefused> {
    let Ok(metadata) = file.metadata() else { return Err(MapRefused::NotRegular) };
    if !metadata.is_file() {
        return Err(MapRefused::NotRegular);
    }
    let owner = metadata.uid();
    if owner != user && owner != 0 {
        return Err(MapRefused::Owner { owner, user });
    }
    if metadata.nlink() > 1 {
        return Err(MapRefused::Linked(metadata.nlink()));
    }
    if metadata.mode() & 0o002 != 0 {
        return Err(MapRefused::Writable);
    }
    Ok(())
}

/// Reads a map: each line has start and size, hexadecimal, and a name that may hold blanks. Other lines are counted as
/// refused. `since` gives the time at which the line at an offset in the file was written.
pub fn read(source: impl Read, since: &dyn Fn(u64) -> u64, history: &mut JitHistory<'_>) {
    let mut source = BufReader::new(source.take(MOST_BYTES));
    let mut line = Vec::new();
    let mut place = 0u64;
    loop {
        line.clear();
        // A line that is longer than any name is cut, and its remaining bytes are skipped.
        let read = source.by_ref().take(MAX_RAW_BYTES as u64).read_until(b'\n', &mut line).unwrap_or(0);
        if read == 0 {
            return;
        }
        let at = place;
        place = place.saturating_add(read as u64);
        if line.last() != Some(&b'\n') && line.len() >= MAX_RAW_BYTES {
            let mut rest = [0u8; 1];
            while source.read(&mut rest).is_ok_and(|read| read == 1) {
                place = place.saturating_add(1);
                if rest[0] == b'\n' {
                    break;
                }
            }
        }
        match parse(&line) {
            Some((start, end, name)) if history.wants(start, end) => {
                let name = history::name(name);
                history.add(since(at), &Arc::new(Code { start, end, name, lines: Arc::default() }));
            }
            Some(_) => {}
            None => history.refused = history.refused.saturating_add(1),
        }
    }
}

/// The first address, the address after the last, and the name.
fn parse(line: &[u8]) -> Option<(u64, u64, &[u8])> {
    let word = |text: &'_ [u8]| text.iter().position(|&byte| byte == b' ');
    let (start, rest) = { line.trim_ascii() }.split_at_checked(word(line.trim_ascii())?)?;
    let rest = rest.trim_ascii_start();
    let (size, name) = rest.split_at_checked(word(rest)?)?;
    let number = |text: &[u8]| {
        let text = std::str::from_utf8(text).ok()?;
        u64::from_str_radix(text.strip_prefix("0x").unwrap_or(text), 16).ok()
    };
    let start = number(start)?;
    let end = start.checked_add(number(size)?)?;
    let name = name.trim_ascii();
    (!name.is_empty()).then_some((start, end, name))
}

#[cfg(test)]
mod tests {
    use super::super::history::tests::names;
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn lines_of_a_perf_map_are_read_and_impossible_ones_counted() {
        let text = b"7f0010 20 LazyCompile:*add /srv/app.js:3:9\n7f0030 0x10 py::work:/srv/x.py\nnonsense\n\
            7f0050 ffffffffffffff everything\n7f0010 8 again\nffffffffff600000 10 kernel\n7f0060 4 \x1b[2Jred\n7f0070 4";
        let wanted = [0x7f_0010, 0x7f_0018, 0x7f_0035, 0x7f_0055, 0x7f_0060].into();
        let mut history = JitHistory::of(&wanted);
        read(&text[..], &|place| place, &mut history);
        let all = |at| names(&history, at);
        let long = "LazyCompile:add /srv/app.js:3:9";
        assert_eq!(all(0x7f_0010), [(0, long), (116, "again")], "when it was written");
        assert_eq!(all(0x7f_0018), [(0, long)]);
        assert_eq!(all(0x7f_0035), [(43, "py::work:/srv/x.py")]);
        assert_eq!(all(0x7f_0055), []);
        assert_eq!(all(0x7f_0060), [(158, "\u{fffd}[2Jred")]);
        assert_eq!(history.refused, 3, "a line that is none, one that is cut, and one of everything");
        let wanted = [0x7f_0051, 0xffff_ffff_ff60_0000].into();
        let mut history = JitHistory::of(&wanted);
        read(&text[..], &|_| 0, &mut history);
        assert_eq!((history.refused, history.at(0x7f_0051).len()), (4, 0));
    }

    #[test]
    fn an_endless_line_in_a_perf_map_is_cut() {
        let mut text = b"10 20 ".to_vec();
        text.extend(vec![b'x'; 3 << 20]);
        text.extend(b"\n40 10 next\n");
        let wanted = [0x10, 0x40].into();
        let mut history = JitHistory::of(&wanted);
        read(&text[..], &|place| place, &mut history);
        assert!(history.at(0x10).iter().all(|(_, code)| code.name.len() <= symbols::MAX_NAME_BYTES));
        assert_eq!(names(&history, 0x40), [((3 << 20) + 7, "next")]);
    }

    #[test]
    fn a_perf_map_is_used_only_if_its_user_alone_may_write_it() {
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path().join("perf-1.map");
        std::fs::write(&path, "10 20 f\n").expect("written");
        let mode = |mode| std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).expect("mode");
        let open = || File::open(&path).expect("open");
        mode(0o644);
        let user = open().metadata().expect("metadata").uid();
        assert_eq!(check(&open(), user), Ok(()));
        if user != 0 {
            assert!(matches!(check(&open(), user + 1), Err(MapRefused::Owner { .. })));
        }
        mode(0o666);
        assert_eq!(check(&open(), user), Err(MapRefused::Writable));
        mode(0o644);
        std::fs::hard_link(&path, folder.path().join("other")).expect("linked");
        assert_eq!(check(&open(), user), Err(MapRefused::Linked(2)));
        assert_eq!(check(&File::open("/dev/null").expect("open"), user), Err(MapRefused::NotRegular));
    }
}
