//! Writes the input files of the real programs.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Result;

/// Writes the programs' input files, with the same content each time.
pub fn prepare(work: &Path) -> Result<()> {
    let mut state = 88_172_645_463_325_252_u64;
    let mut next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    // The words come from a small vocabulary, so that the text can be compressed. x264 gets noise with a pattern.
    let words: Vec<String> = (0..3_000).map(|n| format!("w{}_{}", next() % 977, n % 89)).collect();
    let mut data = String::with_capacity(80 << 20);
    while data.len() < 72 << 20 {
        let at = (next() % 3_000).min(next() % 3_000) as usize;
        data.push_str(&words[at]);
        data.push(if next() % 11 == 0 { '\n' } else { ' ' });
    }
    std::fs::write(work.join("data"), &data)?;
    let mut lines = std::fs::File::create(work.join("lines")).map(std::io::BufWriter::new)?;
    for _ in 0..7_000_000 {
        writeln!(lines, "{:016x} {}", next(), words[(next() % 3_000) as usize])?;
    }
    lines.flush()?;
    let mut sql = std::fs::File::create(work.join("bench.sql")).map(std::io::BufWriter::new)?;
    let table = "CREATE TABLE t(a INTEGER PRIMARY KEY, b INTEGER, c TEXT)";
    writeln!(sql, "PRAGMA journal_mode=WAL; {table}; BEGIN;")?;
    for row in 0..150_000 {
        let (number, word) = (next() % 100_000, &words[(next() % 3_000) as usize]);
        writeln!(sql, "INSERT INTO t VALUES({row}, {number}, '{word}');")?;
    }
    writeln!(sql, "COMMIT; CREATE INDEX i ON t(b);")?;
    for _ in 0..40 {
        let least = next() % 1_000;
        writeln!(sql, "SELECT c, count(*), sum(b) FROM t WHERE b > {least} GROUP BY c ORDER BY 2 LIMIT 3;")?;
    }
    sql.flush()?;
    let tree = work.join("tree");
    for folder in 0..120 {
        let folder = tree.join(format!("d{folder}"));
        std::fs::create_dir_all(&folder)?;
        for file in 0..60 {
            let from = (next() % (30 << 20)) as usize;
            std::fs::write(folder.join(format!("f{file}.txt")), &data.as_bytes()[from..from + 100_000])?;
        }
    }
    std::fs::write(
        work.join("threads.py"),
        "import hashlib, threading, zlib\n\
         def work(seed):\n    data = bytes(seed) * 1000\n    for i in range(12000):\n        data = zlib.decompress(zlib.compress(data + bytes(str(i), 'ascii'), 1))\n        hashlib.sha256(data).digest()\n\
         threads = [threading.Thread(target=work, args=(40 + n,)) for n in range(2)]\n\
         [t.start() for t in threads]\n[t.join() for t in threads]\n",
    )?;
    project(&work.join("project"))?;
    std::fs::write(work.join("loop.sh"), "i=0; while [ $i -lt 12000 ]; do /bin/true; i=$((i + 1)); done\n")?;
    std::fs::create_dir_all(work.join("html"))?;
    std::fs::write(work.join("html/page"), vec![b'x'; 4_000])?;
    Ok(())
}

/// Writes the sources of a small C program, and a script that builds it from `FROM` into `OUT`.
fn project(folder: &Path) -> Result<()> {
    std::fs::create_dir_all(folder)?;
    let mut objects = String::new();
    for file in 0..700 {
        let source = format!(
            "#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n\
             int f{file}(int n)\n{{\n    char text[64];\n    snprintf(text, sizeof text, \"%d\", n * {file});\n    \
             return (int)strlen(text) + atoi(text);\n}}\n"
        );
        std::fs::write(folder.join(format!("f{file}.c")), source)?;
        objects.push_str(&format!(" $(OUT)/f{file}.o"));
    }
    let makefile =
        format!("$(OUT)/all.a:{objects}\n\tar rcs $@ $^\n$(OUT)/%.o: $(FROM)/%.c\n\tcc -O1 -c -o $@ $<\n");
    Ok(std::fs::write(folder.join("Makefile"), makefile)?)
}

/// Makes a folder for the output of one of the two copies of a program, with a configuration that names the folder.
pub fn prepare_side(work: &Path, name: &str, address: &str) -> Result<PathBuf> {
    let folder = work.join(name);
    std::fs::create_dir_all(&folder)?;
    let socket = folder.join("redis.sock");
    if socket.exists() {
        std::fs::remove_file(socket)?;
    }
    // One worker, because with two chance would decide how many connections each gets, and so how long the work takes.
    std::fs::write(
        folder.join("nginx.conf"),
        format!(
            "daemon off; worker_processes 1; pid {0}/nginx.pid;\nevents {{ worker_connections 64; }}\n\
             http {{ access_log off; keepalive_requests 1000000; client_body_temp_path {0}/t1; proxy_temp_path {0}/t2;\n\
             fastcgi_temp_path {0}/t3; uwsgi_temp_path {0}/t4; scgi_temp_path {0}/t5;\n\
             server {{ listen {address}; root {1}; }} }}\n",
            folder.display(),
            work.join("html").display()
        ),
    )?;
    // nginx's workers run as the user nobody, and must have access to the folders.
    use std::os::unix::fs::PermissionsExt as _;
    for folder in [work, &folder] {
        std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o755))?;
    }
    Ok(folder)
}
