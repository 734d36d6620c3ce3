//! The list of real programs, with the load for each.

use super::runs::{Drive, Since, drive_nginx, drive_redis};

/// A program, what it needs, and its load.
pub struct App {
    pub name: &'static str,
    /// Other programs that are needed, and the Debian packages that contain them.
    pub needs: &'static [(&'static str, &'static str)],
    pub load: Load<'static>,
}

/// How a program is started, as lines of shell. `DATA` is replaced by a file of about ten megabytes, `WORK` by a folder
/// with other files, and `SIDE` by a folder for output. `WORKLOAD/NAME.c` is replaced by the program that is built from
/// that workload of the tests.
pub enum Load<'a> {
    /// A line that runs first, and a command that ends by itself.
    Command(&'a str, &'a str),
    /// Like `Command`, for a command that starts other processes. The other processes are recorded, too.
    Commands(&'a str, &'a str),
    /// A server to which longpole attaches: its command, what sends requests to it, and when its work begins to count.
    Server(&'a str, Drive, Since),
}

type Needs = &'static [(&'static str, &'static str)];

const REDIS: &str = "redis-server --port 0 --unixsocket SIDE/redis.sock --save '' --appendonly no";
const REDIS_NEEDS: Needs = &[("redis-server", "redis-server"), ("redis-benchmark", "redis-tools")];
const NGINX: &str = "nginx -p SIDE -c SIDE/nginx.conf -e SIDE/nginx.log";
const NGINX_NEEDS: Needs = &[("nginx", "nginx-light")];
const X264: &str = "x264 --quiet --no-progress --threads 2 --preset fast --demuxer raw --input-res 640x360 -o /dev/null DATA";
const RIPGREP: &str = "rg -j2 -c 'w[0-9]*3_[0-9]*[57] w[0-9]+_1' WORK/tree WORK/tree WORK/tree";
const MAKE: &str = "make -s -j2 -f WORK/project/Makefile FROM=WORK/project OUT=SIDE/out";

const fn command(name: &'static str, needs: Needs, line: &'static str) -> App {
    App { name, needs, load: Load::Command("", line) }
}

const fn server(name: &'static str, needs: Needs, line: &'static str, drive: Drive, since: Since) -> App {
    App { name, needs, load: Load::Server(line, drive, since) }
}

/// Each program runs for about ten seconds, including longpole's start, as when a user records it.
pub const APPS: [App; 13] = [
    command("pigz", &[("pigz", "pigz")], "pigz -p2 -7 -c DATA DATA DATA"),
    command("pbzip2", &[("pbzip2", "pbzip2")], "pbzip2 -p2 -c DATA DATA DATA"),
    command("xz -T2", &[("xz", "xz-utils")], "xz -T2 -1 --block-size=4MiB -c DATA DATA DATA"),
    command("zstd -T2", &[("zstd", "zstd")], "zstd -T2 -12 -q -c DATA"),
    command("x264", &[("x264", "x264")], X264),
    App {
        name: "sqlite3",
        needs: &[("sqlite3", "sqlite3")],
        load: Load::Command("rm -f SIDE/bench.db*", "sqlite3 SIDE/bench.db < WORK/bench.sql"),
    },
    command("ripgrep", &[("rg", "ripgrep")], RIPGREP),
    command("sort", &[("sort", "coreutils")], "sort --parallel=2 -S 1G -o /dev/null WORK/lines WORK/lines"),
    command("python3", &[("python3", "python3")], "PYTHON WORK/threads.py"),
    server("redis", REDIS_NEEDS, REDIS, drive_redis, Since::Settled),
    server("redis from attach on", REDIS_NEEDS, REDIS, drive_redis, Since::Attach),
    server("nginx", NGINX_NEEDS, NGINX, drive_nginx, Since::Settled),
    server("nginx from attach on", NGINX_NEEDS, NGINX, drive_nginx, Since::Attach),
];

/// Programs that start processes or threads, or take mutexes, as fast as they can.
pub const STORMS: [App; 5] = [
    command(
        "sysbench mutex",
        &[("sysbench", "sysbench")],
        "sysbench mutex --threads=2 --mutex-locks=3000000 run",
    ),
    command("two mutexes", &[("cc", "gcc")], "WORKLOAD/two_mutexes.c 5000000"),
    command("threads that come and go", &[("cc", "gcc")], "WORKLOAD/churn.c 150000 4"),
    App {
        name: "make -j2",
        needs: &[("make", "make"), ("gcc", "gcc")],
        load: Load::Commands("rm -rf SIDE/out && mkdir SIDE/out", MAKE),
    },
    App { name: "a shell's loop", needs: &[("sh", "dash")], load: Load::Commands("", "sh WORK/loop.sh") },
];
