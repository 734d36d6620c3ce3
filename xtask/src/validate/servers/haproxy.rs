//! HAProxy, driven by wrk.

use super::kinds::{Fault, Server};

const PREPARE: &str = r#"
cc -O2 -w -pthread -o "$BASE/slow" "$SOURCES/slow.c"
seq 400 | awk '{ printf "^/(old|former)/path%d(/|$)\n", $1 }' > "$BASE/regexes"
seq 400 | awk '{ printf "/old/path%d\n/former/path%d\n", $1, $1 }' > "$BASE/names"
openssl req -x509 -newkey rsa:2048 -nodes -subj /CN=localhost -keyout "$BASE/key" -out "$BASE/certificate" 2> /dev/null
cat "$BASE/key" "$BASE/certificate" > "$BASE/both.pem"
"#;

/// A slow server runs behind HAProxy. The slow server is not HAProxy's child, so it is not recorded.
const START: &str = r#"
("$BASE/slow" $OTHER 5 > /dev/null 2>&1 &)
cat > "$DIR/conf" <<END
global
  nbthread 2
  maxconn 1000
  tune.bufsize 32768
  tune.pattern.cache-size 0
defaults
  mode http
  timeout connect 10s
  timeout client 60s
  timeout server 60s
  http-reuse always
frontend web
  ${CLOSE:-}
  bind 127.0.0.1:$PORT ${SCHEME:+ssl crt $BASE/both.pem}
  http-request deny if { path${MATCH:-} -f $BASE/${LIST:-names} }
  http-request return status 200 content-type text/plain string ok if { path /page }
  default_backend behind
backend behind
  server slow 127.0.0.1:$OTHER maxconn ${MAXCONN:-200}
END
exec haproxy -f "$DIR/conf" -db
"#;

pub const HAPROXY: Server = Server {
    name: "HAProxy",
    needs: &[("haproxy", "haproxy"), ("wrk", "wrk"), ("cc", "gcc"), ("openssl", "openssl")],
    prepare: PREPARE,
    start: START,
    ready: "",
    load: r#"wrk -t1 -c32 -d"$TIME"s "${SCHEME:-http}://127.0.0.1:$PORT/$FILE" | sed -n 's,^Requests/sec: *,,p'"#,
    faults: &[
        Fault {
            told: "maxconn 2 for the server behind, not 200",
            cause: "too few connections to a slow server",
            wrong: &[("FILE", "slow"), ("MAXCONN", "2")],
            right: &[("FILE", "slow")],
            words: &["connections to", "connections for", "requests at a time to"],
            promise: &["connections"],
        },
        Fault {
            told: "400 regular expressions, not a table",
            cause: "matching",
            wrong: &[("FILE", "page"), ("MATCH", "_reg"), ("LIST", "regexes")],
            right: &[("FILE", "page")],
            words: &["reg", "pcre", "pat_match"],
            promise: &[],
        },
        Fault {
            told: "option httpclose with TLS, not kept connections",
            cause: "a handshake of TLS for each request",
            wrong: &[("FILE", "page"), ("SCHEME", "https"), ("CLOSE", "option httpclose")],
            right: &[("FILE", "page"), ("SCHEME", "https")],
            words: &["crypto", "ssl", "rsa", "accept", "new connections"],
            promise: &[],
        },
    ],
};
