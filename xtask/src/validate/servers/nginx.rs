//! nginx, driven by wrk.

use super::kinds::{Fault, Server};

/// The part of the configuration that all faults share.
const PREPARE: &str = r#"
mkdir "$BASE/www"; cd "$BASE/www"
cc -O2 -w -pthread -o "$BASE/slow" "$SOURCES/slow.c"
seq 900 | awk '{ printf "12:%02d:%02d GET /item/%d user=%d took %d ms\n", $1/60, $1%60, $1*7919%907, $1*31%71, $1*13%41 }' > log.txt
head -c 300 log.txt > page.html
chmod -R go+rX "$BASE"
"#;

/// With `SLOW`, a server behind nginx answers after this number of milliseconds. That server is not nginx's child, so
/// it is not recorded.
const START: &str = r#"
if [ -n "${SLOW:-}" ]; then
  ("$BASE/slow" $OTHER $SLOW > /dev/null 2>&1 &)
else
  BEHIND="server { listen 127.0.0.1:$OTHER; root $BASE/www; }"
fi
cat > "$DIR/conf" <<END
worker_processes ${WORKERS:-2}; daemon off; pid $DIR/pid; user root;
events { worker_connections 512; }
http {
  access_log off; keepalive_requests 1000000; types { text/html html; text/plain txt; }
  client_body_temp_path $DIR/t1; proxy_temp_path $DIR/t2; fastcgi_temp_path $DIR/t3; uwsgi_temp_path $DIR/t4; scgi_temp_path $DIR/t5;
  gzip on; gzip_types text/plain; gzip_comp_level ${LEVEL:-1};
  upstream behind { server 127.0.0.1:$OTHER; ${KEEP:-} }
  server {
    listen 127.0.0.1:$PORT reuseport; root $BASE/www;
    location /proxy/ { proxy_pass http://behind/; proxy_http_version 1.1; proxy_set_header Connection ""; }
  }
  ${BEHIND:-}
}
END
exec nginx -p "$DIR" -c "$DIR/conf" -e "$DIR/error"
"#;

const LOAD: &str = r#"
wrk -t1 -c32 -d"$TIME"s -H 'Accept-Encoding: gzip' "http://127.0.0.1:$PORT/$FILE" | sed -n 's,^Requests/sec: *,,p'
"#;

pub const NGINX: Server = Server {
    name: "nginx",
    needs: &[("nginx", "nginx-light"), ("wrk", "wrk"), ("cc", "gcc")],
    prepare: PREPARE,
    start: START,
    ready: "",
    load: LOAD,
    faults: &[
        Fault {
            told: "gzip level 9 instead of 1",
            cause: "compressing",
            wrong: &[("FILE", "log.txt"), ("LEVEL", "9")],
            right: &[("FILE", "log.txt"), ("LEVEL", "1")],
            words: &["libz", "deflate"],
            promise: &[],
        },
        Fault {
            told: "1 worker process, not 2",
            cause: "one process that computes",
            wrong: &[("FILE", "log.txt"), ("LEVEL", "6"), ("WORKERS", "1")],
            right: &[("FILE", "log.txt"), ("LEVEL", "6"), ("WORKERS", "2")],
            words: &["one thread", "divide", "2 threads"],
            promise: &["divide"],
        },
        Fault {
            told: "no keepalive to the upstream",
            cause: "a connection for each request",
            wrong: &[("FILE", "proxy/page.html")],
            right: &[("FILE", "proxy/page.html"), ("KEEP", "keepalive 32;")],
            words: &["connect", "accept"],
            promise: &[],
        },
        Fault {
            told: "a server behind it that answers after 20 ms, not 1",
            cause: "the server behind it",
            wrong: &[("FILE", "proxy/page.html"), ("KEEP", "keepalive 32;"), ("SLOW", "20")],
            right: &[("FILE", "proxy/page.html"), ("KEEP", "keepalive 32;"), ("SLOW", "1")],
            words: &["answers of", "answers from", "127.0.0.1:17811"],
            promise: &[],
        },
    ],
};
