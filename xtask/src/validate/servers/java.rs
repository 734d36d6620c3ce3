//! A small server in Java, driven by wrk.

use super::kinds::{Fault, Server};

pub const JAVA: Server = Server {
    name: "Java",
    needs: &[("java", "default-jdk-headless"), ("javac", "default-jdk-headless"), ("wrk", "wrk")],
    prepare: r#"javac -d "$BASE" "$SOURCES/Orders.java""#,
    start: r#"
exec java -Xmx${HEAP:-400m} -XX:+UseParallelGC -Dsun.net.httpserver.nodelay=true -cp "$BASE" Orders $PORT ${THREADS:-16} ${BANK:-free}
"#,
    ready: "",
    load: r#"wrk -t1 -c16 -d"$TIME"s "http://127.0.0.1:$PORT/$FILE" | sed -n 's,^Requests/sec: *,,p'"#,
    faults: &[
        Fault {
            told: "a pool of 2 threads, not 16",
            cause: "too few threads for a slow bank",
            wrong: &[("FILE", "bank"), ("THREADS", "2")],
            right: &[("FILE", "bank")],
            words: &["too few threads", "threads instead of 2"],
            promise: &["threads instead of 2"],
        },
        Fault {
            told: "a monitor is held while a bank is asked, not after",
            cause: "the monitor",
            wrong: &[("FILE", "bank"), ("BANK", "held")],
            right: &[("FILE", "bank")],
            words: &["lock", "monitor"],
            promise: &["lock"],
        },
        Fault {
            told: "a heap of 28 MB, not 400",
            cause: "collecting garbage all the time",
            wrong: &[("FILE", "lines"), ("HEAP", "28m")],
            right: &[("FILE", "lines")],
            words: &["garbage"],
            promise: &["larger heap"],
        },
    ],
};
