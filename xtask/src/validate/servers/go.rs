//! A small server in Go, driven by wrk.

use super::kinds::{Fault, Server};

const PREPARE: &str = r#"
cp "$SOURCES/orders.go" "$BASE"; cd "$BASE"
HOME="$BASE" GO111MODULE=off GOFLAGS= GOTOOLCHAIN=local GOCACHE="$BASE/cache" go build -o orders orders.go
"#;

pub const GO: Server = Server {
    name: "Go",
    needs: &[("go", "golang-go"), ("wrk", "wrk")],
    prepare: PREPARE,
    start: r#"exec "$BASE/orders" $PORT ${BANK:-free}"#,
    ready: "",
    load: r#"wrk -t1 -c16 -d"$TIME"s "http://127.0.0.1:$PORT/$FILE" | sed -n 's,^Requests/sec: *,,p'"#,
    faults: &[
        Fault {
            told: "a mutex is held while a bank is asked, not after",
            cause: "the mutex, of which goroutines wait for one",
            wrong: &[("FILE", "bank"), ("BANK", "held")],
            right: &[("FILE", "bank")],
            words: &["sync.mutex", "probably a lock"],
            promise: &["lock"],
        },
        Fault {
            told: "GOMAXPROCS 1, not 2",
            cause: "one thread that computes",
            wrong: &[("FILE", "price"), ("GOMAXPROCS", "1")],
            right: &[("FILE", "price"), ("GOMAXPROCS", "2")],
            words: &["one thread", "divide", "2 threads", "gomaxprocs"],
            promise: &["2 threads"],
        },
        Fault {
            told: "GOGC 5, not 200",
            cause: "collecting garbage all the time",
            wrong: &[("FILE", "lines"), ("GOGC", "5")],
            right: &[("FILE", "lines"), ("GOGC", "200")],
            words: &["garbage"],
            promise: &["larger heap"],
        },
    ],
};
