//! Recognizes the kind of a file by its first bytes.

const FOREIGN: &str =
    "give a file made by `longpole record`, or a program JSON ({\"format\":\"longpole-program\",...})";

/// The kind of a file, by its first bytes.
#[derive(Debug, PartialEq, Eq)]
pub enum Content {
    /// A recording.
    Session,
    /// A program JSON.
    Program,
    /// Something else: what it is, as the rest of a sentence, and what to do about it.
    Other(&'static str, &'static str),
}

impl Content {
    /// The kind of a file that begins with these bytes.
    pub fn of(start: &[u8]) -> Content {
        const PACKED: &str = "unpack the file first";
        if recording::is_session(start) {
            return Content::Session;
        }
        let text = start.strip_prefix(b"\xef\xbb\xbf").unwrap_or(start).trim_ascii_start();
        match text {
            [b'{', ..] => Content::Program,
            [] if start.is_empty() => {
                Content::Other("is empty", "record again: the recording ended before anything was saved")
            }
            [] => Content::Other("holds only blanks", FOREIGN),
            [0x1f, 0x8b, ..] => Content::Other("is compressed by gzip", PACKED),
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Content::Other("is compressed by zstd", PACKED),
            [0xfd, b'7', b'z', b'X', b'Z', ..] => Content::Other("is compressed by xz", PACKED),
            [0x7f, b'E', b'L', b'F', ..] => Content::Other(
                "is a program's binary, not a recording",
                "record the program first: longpole record -o FILE -- BINARY",
            ),
            [b'P', b'E', b'R', b'F', b'I', b'L', b'E', ..] => {
                Content::Other("is a recording of perf, not of longpole", "record with `longpole record`")
            }
            [b'[', ..] => Content::Other("is a JSON list, not a program", FOREIGN),
            _ => Content::Other("is neither a longpole session nor a program", FOREIGN),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kind_of_a_file_is_known_by_its_first_bytes() {
        assert_eq!(Content::of(b"\x9fLPS\r\n\x1a\nmore"), Content::Session);
        assert_eq!(Content::of(b"\x9fLP"), Content::Session);
        assert_eq!(Content::of(b" \n\t{\"format\":"), Content::Program);
        assert_eq!(Content::of(b"\xef\xbb\xbf{"), Content::Program);
        let problem = |start: &[u8]| match Content::of(start) {
            Content::Other(problem, hint) => {
                assert!(!hint.is_empty());
                problem
            }
            content => panic!("{content:?}"),
        };
        assert_eq!(problem(b""), "is empty");
        assert_eq!(problem(b" \n "), "holds only blanks");
        assert_eq!(problem(b"\x7fELF\x02"), "is a program's binary, not a recording");
        assert_eq!(problem(b"PERFILE2"), "is a recording of perf, not of longpole");
        assert_eq!(problem(b"[1]"), "is a JSON list, not a program");
        assert_eq!(problem(b"\x9fLPSnot quite"), "is neither a longpole session nor a program");
        assert_eq!(problem(&[0; 100]), "is neither a longpole session nor a program");
    }
}
