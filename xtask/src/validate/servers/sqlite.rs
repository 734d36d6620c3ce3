//! SQLite in a small server of the tests, driven by wrk.

use super::kinds::{Fault, Server};

const START: &str = r#"
exec "$BASE/ledger" $PORT "$DIR/ledger.db" ${JOURNAL:-wal} ${SYNC:-off} ${SHARED:-nothing} ${INSIDE:-0} ${BEFORE:-0}
"#;

pub const SQLITE: Server = Server {
    name: "SQLite",
    needs: &[("sqlite3", "libsqlite3-dev"), ("cc", "gcc"), ("wrk", "wrk")],
    prepare: r#"cc -O2 -g -w -pthread -o "$BASE/ledger" "$SOURCES/ledger.c" -lsqlite3"#,
    start: START,
    ready: "",
    load: r#"wrk -t1 -c8 -d"$TIME"s "http://127.0.0.1:$PORT/${FILE:-book}" | sed -n 's,^Requests/sec: *,,p'"#,
    faults: &[
        Fault {
            told: "synchronous=FULL, not OFF",
            cause: "a sync for each commit, with the file locked",
            wrong: &[("SYNC", "full")],
            right: &[("SYNC", "off")],
            words: &["sync"],
            promise: &["sync"],
        },
        Fault {
            told: "an order is checked in the transaction, not before",
            cause: "the file's lock, held meanwhile",
            wrong: &[("INSIDE", "500000")],
            right: &[("BEFORE", "500000")],
            words: &["lock", "polling"],
            promise: &["move"],
        },
        Fault {
            told: "one connection for all threads, not one for each",
            cause: "the connection's mutex",
            wrong: &[("FILE", "sum"), ("SHARED", "connection")],
            right: &[("FILE", "sum")],
            words: &["lock", "mutex"],
            promise: &["split"],
        },
    ],
};
