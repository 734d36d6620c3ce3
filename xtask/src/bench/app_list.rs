//! Real programs, and the loads that measurements put on them.

use super::app_runs::{Drive, Since, drive_nginx, drive_redis};

/// A program, the packages that it needs, and its load.
pub(super) struct App {
    pub(super) name: &'static str,
    /// Programs that the measurement needs, and the Debian packages that contain them.
    pub(super) needs: &'static [(&'static str, &'static str)],
    pub(super) load: Load<'static>,
}

pub(super) enum Load<'a> {
    /// A line of shell that runs first, and the words of a command that ends by itself. `DATA` is a file of some ten
    /// megabytes, `WORK` a folder with further files, `SIDE` a folder for output. `WORKLOAD/NAME.c` is the program that
    /// is built from that workload of the tests.
    Command(&'a str, &'a str),
    /// Like `Command`, for a command that starts other processes, which are recorded, too.
    Commands(&'a str, &'a str),
    /// The command of a server to which longpole attaches, the function that drives it, and the moment from which on
    /// its work counts.
    Server(&'a str, Drive, Since),
}

const REDIS: &str = "redis-server --port 0 --unixsocket SIDE/redis.sock --save '' --appendonly no";
const REDIS_NEEDS: [(&str, &str); 2] = [("redis-server", "redis-server"), ("redis-benchmark", "redis-tools")];
const NGINX_SERVER: &str = "nginx -p SIDE -c SIDE/nginx.conf -e SIDE/nginx.log";
const NGINX_NEEDS: [(&str, &str); 1] = [("nginx", "nginx-light")];

/// The programs. Each takes some ten seconds, including longpole's start, as when a user records it.
pub(super) const APPS: [App; 13] = [
    App {
        name: "pigz",
        needs: &[("pigz", "pigz")],
        load: Load::Command("", "pigz -p2 -7 -c DATA DATA DATA"),
    },
    App {
        name: "pbzip2",
        needs: &[("pbzip2", "pbzip2")],
        load: Load::Command("", "pbzip2 -p2 -c DATA DATA DATA"),
    },
    App {
        name: "xz -T2",
        needs: &[("xz", "xz-utils")],
        load: Load::Command("", "xz -T2 -1 --block-size=4MiB -c DATA DATA DATA"),
    },
    App { name: "zstd -T2", needs: &[("zstd", "zstd")], load: Load::Command("", "zstd -T2 -12 -q -c DATA") },
    App {
        name: "x264",
        needs: &[("x264", "x264")],
        load: Load::Command(
            "",
            "x264 --quiet --no-progress --threads 2 --preset fast --demuxer raw --input-res 640x360 -o /dev/null DATA",
        ),
    },
    App {
        name: "sqlite3",
        needs: &[("sqlite3", "sqlite3")],
        load: Load::Command("rm -f SIDE/bench.db*", "sqlite3 SIDE/bench.db < WORK/bench.sql"),
    },
    App {
        name: "ripgrep",
        needs: &[("rg", "ripgrep")],
        load: Load::Command("", "rg -j2 -c 'w[0-9]*3_[0-9]*[57] w[0-9]+_1' WORK/tree WORK/tree WORK/tree"),
    },
    App {
        name: "sort",
        needs: &[("sort", "coreutils")],
        load: Load::Command("", "sort --parallel=2 -S 1G -o /dev/null WORK/lines WORK/lines"),
    },
    App {
        name: "python3",
        needs: &[("python3", "python3")],
        load: Load::Command("", "PYTHON WORK/threads.py"),
    },
    App { name: "redis", needs: &REDIS_NEEDS, load: Load::Server(REDIS, drive_redis, Since::Settled) },
    App {
        name: "redis from attach on",
        needs: &REDIS_NEEDS,
        load: Load::Server(REDIS, drive_redis, Since::Attach),
    },
    App { name: "nginx", needs: &NGINX_NEEDS, load: Load::Server(NGINX_SERVER, drive_nginx, Since::Settled) },
    App {
        name: "nginx from attach on",
        needs: &NGINX_NEEDS,
        load: Load::Server(NGINX_SERVER, drive_nginx, Since::Attach),
    },
];

/// Programs that start processes or threads, or take mutexes, as fast as they can.
pub(super) const STORMS: [App; 5] = [
    App {
        name: "sysbench mutex",
        needs: &[("sysbench", "sysbench")],
        load: Load::Command("", "sysbench mutex --threads=2 --mutex-locks=3000000 run"),
    },
    App {
        name: "two mutexes",
        needs: &[("cc", "gcc")],
        load: Load::Command("", "WORKLOAD/two_mutexes.c 5000000"),
    },
    App {
        name: "threads that come and go",
        needs: &[("cc", "gcc")],
        load: Load::Command("", "WORKLOAD/churn.c 150000 4"),
    },
    App {
        name: "make -j2",
        needs: &[("make", "make"), ("gcc", "gcc")],
        load: Load::Commands(
            "rm -rf SIDE/out && mkdir SIDE/out",
            "make -s -j2 -f WORK/project/Makefile FROM=WORK/project OUT=SIDE/out",
        ),
    },
    App { name: "a shell's loop", needs: &[("sh", "dash")], load: Load::Commands("", "sh WORK/loop.sh") },
];
