//! Makes a program with as much debug information as a browser. A program found on the machine would differ between
//! machines.
//!
//! Some C++ units of hundreds of functions are compiled with `-O2 -g`. The units have types of their own, helpers
//! inlined three deep into each function, and loops whose variables move between registers. All functions are local, so
//! the linker accepts the same object file many times, each time at other addresses. So debug information grows at the
//! linker's speed and not at the compiler's. Readers do not notice that units are copies, because each unit has its own
//! description.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, ensure};

use crate::command;

/// Number of different units, and number of functions in each.
const UNITS: usize = 4;
const FUNCTIONS: usize = 500;

/// Builds a program in `folder` that has at least `debug_bytes` bytes of debug information.
pub fn build(folder: &Path, debug_bytes: u64) -> Result<PathBuf> {
    let began = Instant::now();
    let objects: Vec<PathBuf> = (0..UNITS).map(|unit| folder.join(format!("unit{unit}.o"))).collect();
    std::thread::scope(|scope| -> Result<()> {
        let work: Vec<_> = objects
            .iter()
            .enumerate()
            .map(|(unit, object)| scope.spawn(move || compile(folder, unit, object)))
            .collect();
        work.into_iter().try_for_each(|work| work.join().map_err(|_| anyhow::anyhow!("a thread panicked"))?)
    })?;
    let main = folder.join("main.cpp");
    std::fs::write(&main, "int main() { return 0; }\n")?;
    let mut each = 0;
    for object in &objects {
        each += super::symbols::debug_bytes(object)?;
    }
    ensure!(each > 0, "g++ writes no debug information");
    // The linker stores strings only once for all units, so slightly more units are needed.
    let times = usize::try_from(debug_bytes.div_ceil(each))?.saturating_mul(11) / 10;
    let binary = folder.join("large");
    let mut link = Command::new("g++");
    link.args(["-no-pie", "-g", "-o"]).arg(&binary).arg(&main);
    for _ in 0..times.max(1) {
        link.args(&objects);
    }
    command::must(&mut link, "linking a large program")?;
    let made = super::symbols::debug_bytes(&binary)?;
    println!(
        "made {} with {:.0} MB of debug information in {:.0} s",
        binary.display(),
        made as f64 / 1e6,
        began.elapsed().as_secs_f64()
    );
    Ok(binary)
}

fn compile(folder: &Path, unit: usize, object: &Path) -> Result<()> {
    let source = folder.join(format!("unit{unit}.cpp"));
    std::fs::write(&source, text(unit)).with_context(|| format!("cannot write {}", source.display()))?;
    let mut compile = Command::new("g++");
    compile.args(["-O2", "-g", "-fno-pie", "-std=c++17", "-c", "-o"]).arg(object).arg(&source);
    command::must(&mut compile, "compiling a large program")
}

fn text(unit: usize) -> String {
    let mut text = String::from("#define INLINE static inline __attribute__((always_inline))\n");
    for number in 0..FUNCTIONS {
        // Writing to a text cannot fail.
        let _ = write!(
            text,
            "namespace part{unit}_{number} {{
struct Item {{ long weight; int kind; unsigned char name[{size}]; struct Inner {{ double value; Item *up; }} inner; }};
template <typename T> struct List {{ T *first, *last; unsigned long count;
    T *at(unsigned long index) const {{ return index < count ? first + index : last; }} }};
template <int N> INLINE long step(long value) {{ return value * N + (value >> {shift}); }}
INLINE long weigh(const Item &item, long start) {{
    long sum = start;
    for (unsigned int at = 0; at < sizeof item.name; at++)
        sum += step<{number}>(sum ^ item.name[at]);
    return sum;
}}
INLINE long all(const List<Item> &list, long start) {{
    long total = start;
    for (unsigned long index = 0; index < list.count; index++) {{
        const Item *item = list.at(index);
        total = item->kind == {number} ? weigh(*item, total) : step<{next}>(total);
    }}
    return total;
}}
static __attribute__((used, noinline)) long function_{number}(const List<Item> &list, long start) {{
    long before = weigh(*list.at(0), start);
    long result = all(list, before);
    return result > before ? result : step<7>(before);
}}
}}
",
            size = 5 + number % 11,
            shift = 1 + (number + unit) % 7,
            next = number + 1,
        );
    }
    text
}
