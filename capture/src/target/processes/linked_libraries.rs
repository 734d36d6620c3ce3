//! Finds the libraries that a program's loader will map when the program is started here, as far as their places can be
//! known.

use std::collections::{BTreeSet, VecDeque};
use std::path::{Path, PathBuf};
use symbols::Outline;

/// Largest number of libraries that are returned.
const MOST: usize = 512;
/// Folders that most loaders search last. Distributions also have libraries next to the loader.
const FOLDERS: [&str; 5] = ["/usr/local/lib", "/usr/lib64", "/usr/lib", "/lib64", "/lib"];

/// Libraries that the program links and that `LD_PRELOAD` names, followed by the libraries that these link. A library
/// that is not found in the folders searched here is skipped.
pub fn linked_libraries(program: &Path) -> Vec<PathBuf> {
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    linked(program, &variable("LD_LIBRARY_PATH"), &variable("LD_PRELOAD"))
}

fn linked(program: &Path, asked: &str, put_before: &str) -> Vec<PathBuf> {
    let interpreter = Outline::open(program).and_then(|(_, outline)| outline.interpreter);
    let Some(interpreter) = interpreter else { return Vec::new() };
    let beside = std::fs::canonicalize(interpreter).ok().and_then(|path| Some(path.parent()?.to_owned()));
    let last: Vec<PathBuf> = beside.into_iter().chain(FOLDERS.map(PathBuf::from)).collect();
    let mut found: Vec<PathBuf> = Vec::new();
    let mut names = BTreeSet::new();
    let mut left = VecDeque::from([program.to_owned()]);
    let put_before: Vec<&str> = put_before.split([':', ' ']).filter(|name| !name.is_empty()).collect();
    while let Some(file) = left.pop_front() {
        let Some((open, outline)) = Outline::open(&file) else { continue };
        let needed = outline.needed(&open);
        let own = outline.run_paths(&open).join(":");
        let before: Vec<PathBuf> =
            own.split(':').chain(asked.split(':')).filter_map(|folder| folder_of(folder, &file)).collect();
        let more: &[&str] = if found.is_empty() { &put_before } else { &[] };
        for name in needed.iter().map(String::as_str).chain(more.iter().copied()) {
            if found.len() >= MOST || !names.insert(name.to_owned()) {
                continue;
            }
            let mut places = before.iter().chain(&last).map(|folder| folder.join(name));
            if let Some(path) = places.find(|path| path.is_file()) {
                left.push_back(path.clone());
                found.push(path);
            }
        }
    }
    found
}

/// The path of a folder in a run path or variable of `file`; `None` if it is not absolute.
fn folder_of(folder: &str, file: &Path) -> Option<PathBuf> {
    let own = || Some(std::fs::canonicalize(file).ok()?.parent()?.to_owned());
    for origin in ["$ORIGIN", "${ORIGIN}"] {
        if let Some(rest) = folder.strip_prefix(origin) {
            return Some(own()?.join(rest.trim_start_matches('/')));
        }
    }
    folder.starts_with('/').then(|| PathBuf::from(folder))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_s_linked_libraries_are_those_its_loader_maps() {
        let own = Path::new("/proc/self/exe");
        let libraries = linked(own, "", "/not/there.so");
        let names: Vec<_> = libraries.iter().filter_map(|path| path.file_name()?.to_str()).collect();
        assert!(names.contains(&"libc.so.6"), "{libraries:?}");
        let maps = std::fs::read_to_string("/proc/self/maps").expect("maps");
        for path in &libraries {
            let path = std::fs::canonicalize(path).expect("it is there");
            assert!(maps.contains(&*path.to_string_lossy()), "{path:?} in {maps}");
        }
        let preloaded = linked(own, "", &libraries[0].to_string_lossy());
        assert_eq!(preloaded.len(), libraries.len() + 1, "by its path it is another one: {preloaded:?}");
        assert_eq!(linked(Path::new("/dev/null"), "", ""), Vec::<PathBuf>::new());
    }

    #[test]
    fn library_folders_are_relative_to_the_file_that_names_them() {
        let of = |folder| folder_of(folder, Path::new("/usr/../usr/bin/env"));
        let usr_bin = std::fs::canonicalize("/usr/bin/env").expect("env").parent().map(Path::to_owned);
        assert_eq!(of("$ORIGIN"), usr_bin);
        assert_eq!(of("${ORIGIN}/../lib"), usr_bin.map(|folder| folder.join("../lib")));
        assert_eq!(of("/opt/lib"), Some(PathBuf::from("/opt/lib")));
        assert_eq!((of(""), of("relative")), (None, None));
    }
}
