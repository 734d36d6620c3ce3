//! Writes input files for the zoo's programs, with the same content each time.

use std::io;
use std::path::Path;

/// Size of the file `data`, in bytes.
const DATA_BYTES: usize = 8 << 20;

/// Writes all input files into this folder.
///
/// # Errors
/// A file cannot be written.
pub fn prepare(folder: &Path) -> io::Result<()> {
    let mut state = 88_172_645_463_325_252_u64;
    let mut next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    // The words come from a small vocabulary, so that the data can be compressed.
    let mut data = String::with_capacity(DATA_BYTES + 64);
    while data.len() < DATA_BYTES {
        let word = (next() % 3_000).min(next() % 3_000);
        data.push_str(&format!("w{}_{}", word * 7 % 977, word % 89));
        data.push(if next() % 11 == 0 { '\n' } else { ' ' });
    }
    std::fs::write(folder.join("data"), data)?;
    std::fs::write(
        folder.join("unit.c"),
        "#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n\
         int unit(int n)\n{\n    char text[64];\n    snprintf(text, sizeof text, \"%d\", n * UNIT);\n    \
         return (int)strlen(text) + atoi(text);\n}\n",
    )?;
    // The goal of make is the number of units.
    std::fs::write(
        folder.join("Makefile"),
        "UNITS := $(shell seq $(MAKECMDGOALS))\n\
         $(MAKECMDGOALS): $(UNITS:%=$(FOLDER)/unit%.o)\n\
         $(FOLDER)/unit%.o: $(FOLDER)/unit.c\n\tcc -O2 -DUNIT=$* -c -o $@ $<\n",
    )?;
    std::fs::write(folder.join("page.html"), "x".repeat(4_000))?;
    let place = folder.display();
    std::fs::write(
        folder.join("nginx.conf"),
        format!(
            "daemon off; user root; worker_processes 2; pid {place}/nginx.pid; error_log {place}/nginx.log;\n\
             events {{ worker_connections 64; }}\n\
             http {{ access_log off; keepalive_requests 1000000; client_body_temp_path {place}/t1;\n\
             proxy_temp_path {place}/t2; fastcgi_temp_path {place}/t3; uwsgi_temp_path {place}/t4; scgi_temp_path {place}/t5;\n\
             server {{ listen 127.0.0.1:{PORT}; root {place}; }} }}\n"
        ),
    )
}

/// The port on which nginx listens.
const PORT: u16 = 27_791;
