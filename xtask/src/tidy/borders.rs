//! Checks dependencies. Between crates, and between a crate's top-level modules, they go in one direction only. At most
//! three files may need each other in a circle.

use super::files::Source;
use super::modules::{Module, Modules};
use std::collections::{BTreeMap, BTreeSet};

/// The project's crates. Each may use only those before it. Dependencies of tests are not limited.
const CRATES: [&str; 6] = ["probe-abi", "engine", "recording", "symbols", "capture", "collector"];
/// Top-level modules of crates. Each may use only those before it.
const LAYERS: [(&str, &[&str]); 4] = [
    (
        "engine",
        &[
            "words",
            "time",
            "numbers",
            "percentile",
            "json",
            "glob",
            "event",
            "cpus",
            "finding",
            "timeline",
            "hosts",
            "program",
            "attribution",
            "requests",
            "schedule",
            "critical_path",
            "predict",
            "translation",
            "experiment",
            "report",
            "what_if",
            "graph",
            "compare",
            "parallelism",
            "view",
            "limit",
            "metrics",
            "synth",
        ],
    ),
    (
        "symbols",
        &[
            "catch_panic",
            "names",
            "answer",
            "error",
            "sandbox",
            "elf",
            "code",
            "libc",
            "choice",
            "places",
            "process",
            "symbolize",
            "fuzzing",
        ],
    ),
    (
        "capture",
        &[
            "rights",
            "boot_cache",
            "target",
            "thread_contexts",
            "goroutines",
            "jit",
            "probe",
            "interpose",
            "unwind",
            "fuzzing",
        ],
    ),
    (
        "collector",
        &[
            "cores",
            "cell",
            "cpu_words",
            "level_of_detail",
            "palette",
            "exit",
            "threads",
            "rules",
            "doctor",
            "present",
            "export",
            "page",
            "plan",
            "part",
            "part_of_file",
            "content",
            "input",
            "tui",
            "listen",
            "live",
            "validate",
            "cli",
        ],
    ),
];
/// Largest number of files that may need each other in a circle.
const MOST_IN_CIRCLE: usize = 3;
/// Larger circles that exist: the crate, one of the files, and their number. No circle may be added or grow. The
/// library in the target initializes itself in any of its operations, and then looks up libc's functions for all
/// operations.
const KNOWN_CIRCLES: [(&str, &str, usize); 1] = [("probe-preload", "operations/thread", 17)];

/// Returns all broken rules about dependencies between crates and modules, as `path: what`.
pub fn check(sources: &[Source]) -> Vec<String> {
    let mut complaints = crates(sources);
    let manifests = sources.iter().filter_map(|source| source.path.strip_suffix("/Cargo.toml"));
    for name in manifests.filter(|name| !name.contains('/')) {
        complaints.extend(of_crate(name, &Modules::of(sources, &format!("{name}/src/"))));
    }
    complaints
}

fn crates(sources: &[Source]) -> Vec<String> {
    let mut complaints = Vec::new();
    for (level, name) in CRATES.iter().enumerate() {
        let path = format!("{name}/Cargo.toml");
        let Some(manifest) = sources.iter().find(|source| source.path == path) else {
            complaints.push(format!("{path}: is not there (xtask/src/tidy/borders.rs)"));
            continue;
        };
        let lines = manifest.text.lines().skip_while(|line| *line != "[dependencies]").skip(1);
        let needed = lines
            .take_while(|line| !line.starts_with('['))
            .filter_map(|line| line.split(['.', ' ', '=']).next());
        for above in needed.filter(|needed| CRATES[level..].contains(needed)) {
            complaints.push(format!("{path}: {above} is above {name}"));
        }
    }
    complaints
}

fn of_crate(name: &str, modules: &Modules) -> Vec<String> {
    let arrows = modules.arrows();
    let mut complaints = Vec::new();
    if let Some((_, layers)) = LAYERS.iter().find(|(layered, _)| *layered == name) {
        complaints.extend(upward(name, layers, &arrows));
    }
    let mut known: Vec<_> = KNOWN_CIRCLES.iter().filter(|(of, ..)| *of == name).collect();
    for circle in circles(&arrows) {
        let files: Vec<String> = circle.iter().map(|module| module.join("/")).collect();
        let most = match known.iter().position(|(_, file, _)| files.iter().any(|other| other == file)) {
            Some(at) => known.swap_remove(at).2,
            None => MOST_IN_CIRCLE,
        };
        if files.len() > most {
            complaints.push(format!(
                "{name}: {} files need each other in a circle, more than {most}: {}",
                files.len(),
                files.join(", ")
            ));
        } else if files.len() < most && most > MOST_IN_CIRCLE {
            complaints.push(format!(
                "{name}: the circle of {} has only {} files now: say so in xtask/src/tidy/borders.rs",
                files[0],
                files.len()
            ));
        }
    }
    let broken = known
        .iter()
        .map(|(_, file, _)| format!("{name}: the circle of {file} is broken: xtask/src/tidy/borders.rs"));
    complaints.extend(broken);
    complaints
}

fn upward(name: &str, layers: &[&str], arrows: &BTreeMap<&Module, BTreeSet<&Module>>) -> Vec<String> {
    let level =
        |module: &Module| layers.iter().position(|layer| Some(*layer) == module.first().map(String::as_str));
    let mut complaints = Vec::new();
    for (from, needed) in arrows.iter().filter(|(from, _)| !from.is_empty()) {
        let path = format!("{name}/src/{}", from.join("/"));
        let Some(own) = level(from) else {
            complaints.push(format!("{path}: has no layer in xtask/src/tidy/borders.rs"));
            continue;
        };
        for to in needed.iter().filter(|to| level(to).is_some_and(|other| other > own)) {
            complaints.push(format!("{path}: needs {}, which is above it", to.join("::")));
        }
    }
    complaints
}

/// Groups of files that all need each other, directly or through others.
fn circles<'a>(arrows: &BTreeMap<&'a Module, BTreeSet<&'a Module>>) -> Vec<Vec<&'a Module>> {
    let reached: BTreeMap<&Module, BTreeSet<&Module>> =
        arrows.keys().map(|from| (*from, reachable(from, arrows))).collect();
    let mut found = Vec::new();
    let mut placed = BTreeSet::new();
    for (from, to) in &reached {
        let back = |other: &&&Module| reached.get(**other).is_some_and(|others| others.contains(from));
        let circle: Vec<&Module> = to.iter().filter(back).copied().collect();
        if circle.len() > 1 && placed.insert(circle[0]) {
            found.push(circle);
        }
    }
    found
}

fn reachable<'a>(
    from: &'a Module,
    arrows: &BTreeMap<&'a Module, BTreeSet<&'a Module>>,
) -> BTreeSet<&'a Module> {
    let mut reached = BTreeSet::new();
    let mut open = vec![from];
    while let Some(module) = open.pop() {
        open.extend(arrows.get(module).into_iter().flatten().filter(|next| reached.insert(**next)));
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(path: &str, text: &str) -> Source {
        Source { path: path.to_owned(), text: text.to_owned() }
    }

    /// Files that form a circle: each needs the next one, and the last one needs the first.
    fn ring(count: usize) -> Modules {
        let files: Vec<Source> = (0..count)
            .map(|own| {
                source(
                    &format!("x/src/f{own}.rs"),
                    &format!("use crate::f{}::Y; struct Y;", (own + 1) % count),
                )
            })
            .chain([source("x/src/lib.rs", ""), source("x/src/other.rs", "use crate::f0::Y;")])
            .collect();
        Modules::of(&files, "x/src/")
    }

    #[test]
    fn a_circle_of_more_than_three_files_is_a_complaint() {
        assert_eq!(of_crate("x", &ring(3)), Vec::<String>::new());
        let expected = "x: 4 files need each other in a circle, more than 3: f0, f1, f2, f3";
        assert_eq!(of_crate("x", &ring(4)), [expected]);
    }

    #[test]
    fn a_module_that_needs_a_higher_one_is_a_complaint() {
        let files = [
            source("x/src/lib.rs", "mod low; mod high; mod new;"),
            source("x/src/low/mod.rs", "mod part;"),
            source("x/src/low/part.rs", "use crate::high::H;"),
            source("x/src/high.rs", "use crate::low::L; pub struct H;"),
            source("x/src/new.rs", ""),
        ];
        let modules = Modules::of(&files, "x/src/");
        let told = upward("x", &["low", "high"], &modules.arrows());
        let expected = [
            "x/src/low/part: needs high, which is above it",
            "x/src/new: has no layer in xtask/src/tidy/borders.rs",
        ];
        assert_eq!(told, expected);
    }

    #[test]
    fn a_crate_that_needs_a_higher_one_is_a_complaint() {
        let mut manifests: Vec<Source> =
            CRATES.iter().map(|name| source(&format!("{name}/Cargo.toml"), "[dependencies]\n")).collect();
        assert_eq!(crates(&manifests), Vec::<String>::new());
        manifests[1].text = "[dependencies]\nserde.workspace = true\ncapture.workspace = true\n[dev-dependencies]\ncollector.workspace = true\n".to_owned();
        assert_eq!(crates(&manifests), ["engine/Cargo.toml: capture is above engine"]);
        manifests.pop();
        assert_eq!(crates(&manifests).len(), 2);
    }
}
