//! memcached, driven by a small client of the tests.

use super::kinds::{Fault, Server};

/// The files that fill the server: with nothing, with many keys, and with one large value.
const PREPARE: &str = r#"
cc -O2 -w -o "$BASE/ask" "$SOURCES/ask.c"
printf 'quit\r\n' > "$BASE/nothing"
{ seq 0 399999 | awk '{ printf "set key%d 0 0 1 noreply\r\nx\r\n", $1 }'; printf 'quit\r\n'; } > "$BASE/keys"
{ printf 'set page 0 0 200000 noreply\r\n'; head -c 200000 /dev/zero | tr '\0' x; printf '\r\nset digest 0 0 32 noreply\r\n'
  head -c 32 /dev/zero | tr '\0' x; printf '\r\nquit\r\n'; } > "$BASE/page"
"#;

pub const MEMCACHED: Server = Server {
    name: "memcached",
    needs: &[("memcached", "memcached"), ("cc", "gcc")],
    prepare: PREPARE,
    start: r#"exec memcached -u root -l 127.0.0.1 -p $PORT -U 0 -t 2 -m 100 ${OPTIONS:-} 2> "$DIR/errors""#,
    ready: "",
    load: r#"[ -e "$DIR/full" ] || FILE="$BASE/${FILL:-nothing}"; touch "$DIR/full"; "$BASE/ask" $PORT 16 $TIME "$ASK" $FILE"#,
    faults: &[
        Fault {
            told: "-vv left on",
            cause: "lines written for each request",
            wrong: &[("ASK", MANY), ("FILL", "keys"), ("OPTIONS", "-vv")],
            right: &[("ASK", MANY), ("FILL", "keys")],
            words: &["write", "stderr"],
            promise: &["larger system calls"],
        },
        Fault {
            told: "a hash table of 4,096 for 400,000 keys",
            cause: "long chains in the hash table",
            wrong: &[("ASK", "get key#"), ("FILL", "keys"), ("OPTIONS", "-o no_hashexpand,hashpower=12")],
            right: &[("ASK", "get key#"), ("FILL", "keys")],
            words: &["assoc_find", "hash", "memcmp"],
            promise: &[],
        },
        Fault {
            told: "a page of 200 kB is asked for, not its digest",
            cause: "copying into sockets",
            wrong: &[("ASK", "get page"), ("FILL", "page")],
            right: &[("ASK", "get digest"), ("FILL", "page")],
            words: &["kernel: send", "sendmsg"],
            promise: &[],
        },
    ],
};

/// A request for many existing keys.
const MANY: &str =
    "get key# key# key# key# key# key# key# key# key# key# key# key# key# key# key# key# key# key# key# key#";
