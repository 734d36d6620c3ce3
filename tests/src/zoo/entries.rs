//! The programs of the zoo, and what is true of each.

use super::entry::Entry;

const REDIS: &str = "until redis-cli -s WORK/redis.sock ping >/dev/null 2>&1; do sleep 0.02; done; \
    redis-benchmark -s WORK/redis.sock -q -c 20 -P 4 -t set,get,lpush -n N >/dev/null; \
    redis-cli -s WORK/redis.sock shutdown nosave >/dev/null 2>&1; true";
const NGINX: &str = "until ab -n 1 http://127.0.0.1:27791/page.html >/dev/null 2>&1; do sleep 0.02; done; \
    ab -q -k -c 8 -n N http://127.0.0.1:27791/page.html >/dev/null; kill -QUIT $(cat WORK/nginx.pid)";
const PIGZ: &[(&str, &str)] = &[("pigz", "pigz")];
const XZ: &[(&str, &str)] = &[("xz", "xz-utils")];
const ZSTD: &[(&str, &str)] = &[("zstd", "zstd")];
const PBZIP2: &[(&str, &str)] = &[("pbzip2", "pbzip2")];
const SEVEN: &[(&str, &str)] = &[("7z", "p7zip-full")];
const SQLITE: &[(&str, &str)] = &[("sqlite3", "sqlite3")];
const REDIS_NEEDS: &[(&str, &str)] = &[("redis-server", "redis-server"), ("redis-benchmark", "redis-tools")];
const NGINX_NEEDS: &[(&str, &str)] = &[("nginx", "nginx-light"), ("ab", "apache2-utils")];
const FFMPEG: &[(&str, &str)] = &[("ffmpeg", "ffmpeg")];
const X264: &[(&str, &str)] = &[("x264", "x264")];
const MAKE: &[(&str, &str)] = &[("make", "make"), ("cc", "gcc")];
const SORT: &[(&str, &str)] = &[("sort", "coreutils")];

/// All of them, by what they are made with.
pub const ENTRIES: &[Entry] = &[
    Entry::built("fsync", "C, pthread", "zoo/fsync.c", "PROGRAM N WORK", 600).led_by(&["encode"]),
    Entry::built("spin-lock", "C, pthread", "zoo/ledger.c", "PROGRAM pthread N", 9_000)
        .led_by(&["update_ledger", "pthread_spin"]),
    Entry::built("yield-lock", "C, pthread", "zoo/ledger.c", "PROGRAM yield N", 9_000)
        .led_by(&["update_ledger"]),
    Entry::built("pause-lock", "C, pthread", "zoo/ledger.c", "PROGRAM pause N", 9_000)
        .led_by(&["update_ledger"]),
    Entry::built("ticker", "C, pthread", "zoo/ticker.c", "PROGRAM N", 10).led_by(&["work"]),
    Entry::built("apart", "C, pthread", "zoo/shapes.c", "PROGRAM apart N", 5_000).led_by(&["alpha"]),
    Entry::built("hot-lock", "C, pthread", "zoo/shapes.c", "PROGRAM lock N", 5_000).led_by(&["tally", "hot"]),
    Entry::built("hot-spin", "C, pthread", "zoo/shapes.c", "PROGRAM spin N", 9_000).led_by(&["tally"]),
    Entry::built("pipeline", "C, pthread", "zoo/shapes.c", "PROGRAM pipe N", 10_000).led_by(&["alpha"]),
    Entry::built(
        "omp-skew-active",
        "OpenMP, active",
        "zoo/openmp.c",
        "OMP_WAIT_POLICY=active PROGRAM skew N",
        100,
    )
    .led_by(&["relax_row"]),
    Entry::built(
        "omp-skew-passive",
        "OpenMP, passive",
        "zoo/openmp.c",
        "OMP_WAIT_POLICY=passive PROGRAM skew N",
        100,
    )
    .led_by(&["relax_row"]),
    Entry::built(
        "omp-slope-active",
        "OpenMP, active",
        "zoo/openmp.c",
        "OMP_WAIT_POLICY=active PROGRAM slope N",
        40,
    )
    .led_by(&["relax_row"]),
    Entry::built(
        "omp-slope-passive",
        "OpenMP, passive",
        "zoo/openmp.c",
        "OMP_WAIT_POLICY=passive PROGRAM slope N",
        40,
    )
    .led_by(&["relax_row"]),
    Entry::built("omp-critical", "OpenMP", "zoo/openmp.c", "PROGRAM critical N", 8_000),
    Entry::built("hash-table", "C++, std", "zoo/hash_table.cpp", "PROGRAM N", 14_000)
        .led_by(&["expensive_hash", "table_mutex"]),
    Entry::built("bounded-queue", "C++, std", "zoo/bounded_queue.cpp", "PROGRAM N", 7_000)
        .led_by(&["compress_item"]),
    Entry::built("shared-mutex", "C++, std", "zoo/shared_mutex.cpp", "PROGRAM N", 10_000)
        .led_by(&["look_up"]),
    Entry::built("token", "C++, std", "zoo/token.cpp", "PROGRAM N", 8_000).led_by(&["crunch"]),
    Entry::built("volley", "C++, std", "zoo/volley.cpp", "PROGRAM N", 6_000).led_by(&["ping"]),
    Entry::built("barrier", "C++, std", "zoo/phases.cpp", "PROGRAM N", 1_000).led_by(&["advance"]),
    Entry::built("futures", "C++, std", "zoo/futures.cpp", "PROGRAM N", 50).led_by(&["render"]),
    Entry::built("tbb", "C++, oneTBB", "zoo/tbb.cpp", "PROGRAM N", 1_000).led_by(&["tile"]),
    Entry::built("rust-std", "Rust, std", "zoo/rust_locks", "PROGRAM std N", 6_000)
        .led_by(&["update_ledger"]),
    Entry::built("parking-lot", "Rust, parking_lot", "zoo/rust_locks", "PROGRAM parking_lot N", 6_000)
        .led_by(&["update_ledger"]),
    Entry::built("crossbeam", "Rust, crossbeam", "zoo/rust_locks", "PROGRAM crossbeam N", 12_000)
        .led_by(&["update_ledger"]),
    Entry::built("rayon", "Rust, rayon", "zoo/rust_locks", "PROGRAM rayon N", 2_000).led_by(&["tile"]),
    Entry::built("tokio", "Rust, tokio", "zoo/rust_locks", "PROGRAM tokio N", 2_000).led_by(&["tile"]),
    Entry::built("tokio-mutex", "Rust, tokio", "zoo/rust_locks", "PROGRAM tokio_mutex N", 6_000)
        .led_by(&["update_ledger"]),
    Entry::built("go-mutex", "Go", "zoo/work.go", "GOMAXPROCS=2 PROGRAM mutex N", 3_400).led_by(&["render"]),
    Entry::built("go-tiles", "Go", "zoo/work.go", "GOMAXPROCS=2 PROGRAM tiles N", 10).led_by(&["tile"]),
    Entry::built("go-stages", "Go", "zoo/work.go", "GOMAXPROCS=2 PROGRAM stages N", 6_000)
        .led_by(&["stageSlow"]),
    Entry::built("java-monitor", "Java", "zoo/Work.java", "PROGRAM monitor N", 2_400),
    Entry::built("java-lock", "Java", "zoo/Work.java", "PROGRAM lock N", 2_400),
    Entry::built("java-fork", "Java", "zoo/Work.java", "PROGRAM fork N", 900),
    Entry::built("node-lock", "Node", "zoo/work.js", "PROGRAM lock N", 800),
    Entry::built("node-apart", "Node", "zoo/work.js", "PROGRAM apart N", 5_000),
    Entry::built("node-pool", "Node", "zoo/work.js", "PROGRAM pool N", 60),
    Entry::built("python-threads", "Python", "zoo/work.py", "PROGRAM threads N", 10_000_000),
    Entry::built("python-zlib", "Python", "zoo/work.py", "PROGRAM zlib N", 900),
    Entry {
        record: &["--children"],
        ..Entry::built("python-processes", "Python", "zoo/work.py", "PROGRAM processes N", 8_000_000)
    },
    Entry::installed("pigz", PIGZ, "pigz -p2 -9 -c FILES", 6),
    Entry::installed("xz", XZ, "xz -T2 -1 --block-size=1MiB -c FILES", 8),
    Entry::installed("zstd", ZSTD, "zstd -q -T2 -15 -c FILES", 1),
    Entry::installed("pbzip2", PBZIP2, "pbzip2 -p2 -c FILES", 6),
    Entry { repeatable: false, ..Entry::installed("7z", SEVEN, "7z b N -mmt2 -md18", 1) },
    Entry::installed(
        "sqlite3",
        SQLITE,
        "sqlite3 :memory: \"CREATE TABLE t(a INTEGER PRIMARY KEY, b INTEGER, c TEXT); WITH RECURSIVE n(x) AS (SELECT 1 UNION \
         ALL SELECT x + 1 FROM n WHERE x < N ) INSERT INTO t SELECT x, x * 7919 % 100003, 'row ' || x % 97 FROM n; CREATE \
         INDEX i ON t(b); SELECT c, count(*), sum(b) FROM t GROUP BY c ORDER BY 3 LIMIT 5;\"",
        2_100_000,
    ),
    Entry {
        repeatable: false,
        client: Some(REDIS),
        ..Entry::installed(
            "redis",
            REDIS_NEEDS,
            "redis-server --port 0 --unixsocket WORK/redis.sock --save '' --appendonly no",
            400_000,
        )
    },
    Entry {
        repeatable: false,
        client: Some(NGINX),
        record: &["--children"],
        ..Entry::installed("nginx", NGINX_NEEDS, "nginx -p WORK -c WORK/nginx.conf -e WORK/nginx.log", 90_000)
    },
    Entry::installed(
        "ffmpeg",
        FFMPEG,
        "ffmpeg -v error -f lavfi -i testsrc=size=640x360:rate=25 -frames:v N -c:v mpeg4 -threads 2 -f md5 -",
        2_000,
    ),
    Entry::installed(
        "x264",
        X264,
        "x264 --quiet --no-progress --threads 2 --preset fast --demuxer raw --input-res 320x180 --frames N -o /dev/null \
         /dev/urandom",
        200,
    ),
    Entry {
        record: &["--children"],
        ..Entry::installed("make", MAKE, "FOLDER=WORK make -s -B -j2 -f WORK/Makefile N", 120)
    },
    Entry::installed("sort", SORT, "sort --parallel=2 -S 500M FILES", 32),
];
