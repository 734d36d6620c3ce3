//! The programs of the zoo, and what is known to be true of each.

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

/// All programs of the zoo.
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
    // Both threads change one cache line. Without that, the measured gains are 91, 80 and 56 %.
    Entry::built("line-arc", "Rust, std", "zoo/lines.rs", "PROGRAM arc N", 25_000)
        .limited_by(&["cache_line"]),
    Entry::built("line-tally", "Rust, std", "zoo/lines.rs", "PROGRAM tally N", 40_000)
        .limited_by(&["cache_line"]),
    Entry::built("line-packed", "C++, std", "zoo/neighbours.cpp", "PROGRAM packed N", 100_000)
        .limited_by(&["cache_line"]),
    Entry::built("line-padded", "C++, std", "zoo/neighbours.cpp", "PROGRAM padded N", 180_000)
        .never(&["cache_line"]),
    // Most of the work is the kernel's or a runtime's. The gains measured without that work: memory mapped each time 75
    // %, a flush for each line 58 %, a small heap 33 %, V8's young generation 37 % (with a larger one).
    Entry::built(
        "scratch-mapped",
        "C++, std",
        "zoo/scratch.cpp",
        "MALLOC_MMAP_THRESHOLD_=131072 PROGRAM N",
        2_400,
    )
    .limited_by(&["support_work page faults"]),
    Entry::built("scratch-kept", "C++, std", "zoo/scratch.cpp", "PROGRAM N", 9_000)
        .never(&["support_work page faults"]),
    Entry::built("export-endl", "C++, std", "zoo/export.cpp", "PROGRAM endl N WORK", 650_000)
        .limited_by(&["support_work write"]),
    Entry::built("export-newline", "C++, std", "zoo/export.cpp", "PROGRAM newline N WORK", 900_000)
        .never(&["support_work"]),
    Entry::built("java-small-heap", "Java", "zoo/Heap.java", "JAVA_TOOL_OPTIONS=-Xmx32m PROGRAM N", 900)
        .limited_by(&["support_work garbage collection"]),
    Entry::built("java-large-heap", "Java", "zoo/Heap.java", "JAVA_TOOL_OPTIONS=-Xmx1g PROGRAM N", 1_800)
        .never(&["support_work garbage collection"]),
    Entry::built("node-objects", "Node", "zoo/objects.js", "PROGRAM objects N", 700)
        .limited_by(&["support_work garbage collection"]),
    Entry::built("node-arrays", "Node", "zoo/objects.js", "PROGRAM arrays N", 8_000)
        .never(&["support_work garbage collection"]),
    // Too few permits or connections. With enough of them, the measured gains are 65 and 70 %.
    Entry::built("permits-two", "C++, std", "zoo/permits.cpp", "PROGRAM 2 N", 140).limited_by(&["permits"]),
    Entry::built("permits-enough", "C++, std", "zoo/permits.cpp", "PROGRAM 8 N", 400).never(&["permits"]),
    Entry::built("python-connections", "Python", "zoo/connections.py", "PROGRAM 2 N", 60)
        .limited_by(&["permits"]),
    // A pool's threads sleep in each task while there are more tasks. With four times the threads, the measured gains
    // are 65 and 71 %.
    Entry::built("python-fetch", "Python", "zoo/fetch.py", "PROGRAM 2 N", 720).limited_by(&["sleepers"]),
    Entry::built("delivery-full", "C++, std", "zoo/delivery.cpp", "PROGRAM full 3 N", 2_200)
        .limited_by(&["sleepers"]),
    Entry::built("delivery-slow", "C++, std", "zoo/delivery.cpp", "PROGRAM slow 3 N", 350)
        .never(&["sleepers"]),
    // All waiters are woken, and only one finds something to do. If only that one is woken, the measured gains are 50
    // and 63 %.
    Entry::built("relay-all", "C, pthread", "zoo/relay.c", "PROGRAM all N", 1_200)
        .limited_by(&["woken_for_nothing"]),
    Entry::built("relay-one", "C, pthread", "zoo/relay.c", "PROGRAM one N", 3_500)
        .never(&["woken_for_nothing"]),
    Entry::built("java-mailbox-all", "Java", "zoo/Mailbox.java", "PROGRAM all N", 220)
        .limited_by(&["woken_for_nothing"]),
    Entry::built("java-mailbox-one", "Java", "zoo/Mailbox.java", "PROGRAM one N", 800)
        .never(&["woken_for_nothing"]),
    // A thread holds a lock while the disk writes. With one sync for many writes, the measured gains are 58 and 39 %.
    Entry::built("journal-each", "Rust, std", "zoo/journal.rs", "PROGRAM each N WORK", 400)
        .limited_by(&["lock mutex"]),
    Entry::built("journal-batch", "Rust, std", "zoo/journal.rs", "PROGRAM batch N WORK", 1_200)
        .never(&["lock"]),
    Entry::built("python-audit", "Python", "zoo/audit.py", "PROGRAM inside N WORK", 440)
        .limited_by(&["lock semaphore"]),
    // Threads sleep for a fixed time and then look for work. If they are woken for work instead, the measured gains are
    // 63 and 79 %.
    Entry::built("ring-sleep", "C, pthread", "zoo/rings.c", "PROGRAM sleep N", 1_100)
        .limited_by(&["polling"]),
    Entry::built("ring-sem", "C, pthread", "zoo/rings.c", "PROGRAM sem N", 3_000).never(&["polling"]),
    Entry::built("python-look", "Python", "zoo/jobs.py", "PROGRAM look N", 150).limited_by(&["polling"]),
    // Five threads wait actively on two CPUs. With two threads, the measured gains are 45 and 69 %.
    Entry::built(
        "omp-sweeps-many",
        "OpenMP, active",
        "zoo/sweeps.c",
        "OMP_NUM_THREADS=5 OMP_WAIT_POLICY=active PROGRAM N",
        4_500,
    )
    .limited_by(&["too_many_threads"]),
    Entry::built(
        "omp-sweeps-two",
        "OpenMP, active",
        "zoo/sweeps.c",
        "OMP_NUM_THREADS=2 OMP_WAIT_POLICY=active PROGRAM N",
        9_000,
    )
    .never(&["too_many_threads"]),
    Entry::built("lockstep-five", "C++, std", "zoo/lockstep.cpp", "PROGRAM 5 N", 220)
        .limited_by(&["too_many_threads"]),
    Entry::built("lockstep-two", "C++, std", "zoo/lockstep.cpp", "PROGRAM 2 N", 700)
        .never(&["too_many_threads"]),
    // One thread does most of the work. If two threads share it, the measured gains are 37 and 32 %. The parser's
    // worker is the next stage of a pipeline.
    Entry::built("game-one", "C++, std", "zoo/game.cpp", "PROGRAM one N", 130).limited_by(&["busy_thread"]),
    Entry::built("game-two", "C++, std", "zoo/game.cpp", "PROGRAM two N", 220).never(&["busy_thread"]),
    Entry::built("node-parser", "Node", "zoo/parser.js", "PROGRAM one N", 210)
        .limited_by(&["busy_thread", "stage"]),
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
