//! Finds which file of a crate needs which other file. For each name in a file's code, follows re-exports to the
//! definition.

use super::files::Source;
use super::words;
use std::collections::{BTreeMap, BTreeSet};

/// Path of a module in its crate. Empty for the crate's root.
pub type Module = Vec<String>;

/// The files of one crate, and which of them need each other.
#[derive(Debug, Default)]
pub struct Modules {
    files: BTreeMap<Module, File>,
}

/// The names that a file uses and defines.
#[derive(Debug, Default)]
struct File {
    uses: Vec<Use>,
    /// The paths in the file's code.
    paths: Vec<Module>,
    /// The names of the file's items.
    defined: BTreeSet<String>,
}

/// One name that a `use` item imports.
#[derive(Debug)]
struct Use {
    path: Module,
    /// The imported name; `*` for all names.
    name: String,
    is_public: bool,
}

impl Modules {
    /// Reads the crate in this folder (such as `engine/src/`). Tests are ignored.
    pub fn of(sources: &[Source], folder: &str) -> Modules {
        let mut files = BTreeMap::new();
        let has_library = sources.iter().any(|source| source.path == format!("{folder}lib.rs"));
        for source in sources {
            let Some(path) = source.path.strip_prefix(folder).and_then(|path| path.strip_suffix(".rs"))
            else {
                continue;
            };
            let is_test = path.ends_with("tests") || path.contains("tests/");
            if is_test || path == "main" && has_library {
                continue;
            }
            let mut module: Module = path.split('/').map(str::to_owned).collect();
            module.pop_if(|last| last == "mod");
            if matches!(path, "lib" | "main") {
                module.clear();
            }
            files.insert(module, File::read(&words::of(&source.text)));
        }
        Modules { files }
    }

    /// The files that each file needs.
    pub fn arrows(&self) -> BTreeMap<&Module, BTreeSet<&Module>> {
        self.files.iter().map(|(module, file)| (module, self.needed(module, file))).collect()
    }

    fn needed<'a>(&'a self, module: &'a Module, file: &'a File) -> BTreeSet<&'a Module> {
        let mut needed = BTreeSet::new();
        for used in &file.uses {
            let found = self.find(&used.path, module, &mut BTreeSet::new());
            // A folder's module does not need the files below it that it only re-exports.
            needed.extend(found.filter(|found| !used.is_public || !found.starts_with(module)));
        }
        for path in &file.paths {
            let brought = file.uses.iter().find(|used| Some(&used.name) == path.first());
            let whole = brought.map(|used| [&used.path, &path[1..]].concat());
            needed.extend(self.find(whole.as_ref().unwrap_or(path), module, &mut BTreeSet::new()));
        }
        needed.remove(module);
        needed
    }

    /// The file that defines what this path means in `module`. `None` if the file is not in this crate.
    fn find<'a>(
        &'a self,
        path: &[String],
        module: &Module,
        asked: &mut BTreeSet<(Module, String)>,
    ) -> Option<&'a Module> {
        let (mut at, mut rest) = match path.first()?.as_str() {
            "crate" => (Module::new(), &path[1..]),
            "self" => (module.clone(), &path[1..]),
            "super" => (module.clone(), path),
            first if self.files.contains_key(&within(module, first)) => (module.clone(), path),
            _ => return None,
        };
        while let Some((first, behind)) = rest.split_first() {
            if first == "super" {
                at.pop();
            } else if self.files.contains_key(&within(&at, first)) {
                at.push(first.clone());
            } else {
                break;
            }
            rest = behind;
        }
        let (known, file) = self.files.get_key_value(&at)?;
        let Some((item, behind)) = rest.split_first() else { return Some(known) };
        if file.defined.contains(item) || !asked.insert((at.clone(), item.clone())) {
            return Some(known);
        }
        if let Some(used) = file.uses.iter().find(|used| used.name == *item) {
            let whole = [&used.path, behind].concat();
            return Some(self.find(&whole, &at, asked).unwrap_or(known));
        }
        let all = file.uses.iter().filter(|used| used.name == "*");
        let through = all.filter_map(|used| self.find(&[&used.path, rest].concat(), &at, asked));
        Some(through.into_iter().next().unwrap_or(known))
    }
}

fn within(module: &Module, name: &str) -> Module {
    let mut within = module.clone();
    within.push(name.to_owned());
    within
}

/// Keywords before the name of an item.
const DEFINES: [&str; 8] = ["struct", "enum", "trait", "fn", "type", "const", "static", "union"];

impl File {
    fn read(words: &[&str]) -> File {
        let mut file = File::default();
        let mut at = 0;
        while let Some(word) = words.get(at) {
            let before = at.checked_sub(1).and_then(|before| words.get(before)).copied();
            let next = words.get(at + 1).copied();
            if *word == "use" && matches!(before, None | Some("pub" | ";" | "{" | "}" | ")")) {
                let is_public = matches!(before, Some("pub" | ")"));
                at = tree(words, at + 1, &Module::new(), is_public, &mut file.uses);
                continue;
            }
            if DEFINES.contains(word) {
                file.defined.extend(next.map(str::to_owned));
            }
            // The path in `pub(in super::super)` is no dependency.
            let is_visibility = before == Some("in") && at >= 2 && words.get(at - 2) == Some(&"(");
            if next == Some("::") && before != Some("::") && is_name(word) && !is_visibility {
                let mut path = vec![(*word).to_owned()];
                while let (Some(&"::"), Some(name)) = (words.get(at + 1), words.get(at + 2)) {
                    if !is_name(name) {
                        break;
                    }
                    path.push((*name).to_owned());
                    at += 2;
                }
                file.paths.push(path);
            }
            at += 1;
        }
        file
    }
}

fn is_name(word: &str) -> bool {
    word.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

/// Reads the names of a `use` from index `at` on. `before` is the path before them. Returns the index after them.
fn tree(words: &[&str], mut at: usize, before: &Module, is_public: bool, uses: &mut Vec<Use>) -> usize {
    let mut path = before.clone();
    loop {
        match words.get(at).copied() {
            Some("{") => {
                at += 1;
                while !matches!(words.get(at), None | Some(&"}")) {
                    at = tree(words, at, &path, is_public, uses);
                    at += usize::from(words.get(at) == Some(&","));
                }
                return at + 1;
            }
            Some("*") => {
                uses.push(Use { path, name: "*".to_owned(), is_public });
                return at + 1;
            }
            Some("::") => at += 1,
            Some(word) if is_name(word) && word != "as" => {
                path.push(word.to_owned());
                at += 1;
            }
            other => {
                path.pop_if(|last| last == "self" && !before.is_empty());
                let renamed = if other == Some("as") { words.get(at + 1).copied() } else { None };
                let name = renamed.map(str::to_owned).or_else(|| path.last().cloned()).unwrap_or_default();
                uses.push(Use { path, name, is_public });
                return at + if renamed.is_some() { 2 } else { 0 };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrows(files: &[(&str, &str)]) -> Vec<String> {
        let sources: Vec<Source> = files
            .iter()
            .map(|(path, text)| Source { path: format!("x/src/{path}.rs"), text: (*text).to_owned() })
            .collect();
        let modules = Modules::of(&sources, "x/src/");
        let mut all = Vec::new();
        for (from, needed) in modules.arrows() {
            all.extend(needed.iter().map(|to| format!("{} > {}", from.join("/"), to.join("/"))));
        }
        all
    }

    #[test]
    fn a_path_is_followed_to_where_its_item_is_defined() {
        let root = ("lib", "mod a; mod b; pub use a::Thing;");
        let thing = ("a/mod", "mod deep; pub use deep::Thing;");
        let deep = ("a/deep", "pub struct Thing;");
        for text in [
            "use crate::a::Thing;",
            "use crate::{a::{Thing}};",
            "fn f() -> crate::Thing { loop {} }",
            "fn f(_: &super::a::Thing) {}",
            "use crate::a::Thing as Other; fn f() { Other::new() }",
            "use crate::a::deep::*;",
        ] {
            assert_eq!(arrows(&[root, thing, deep, ("b", text)]), ["b > a/deep"], "{text}");
        }
    }

    #[test]
    fn tests_and_other_crates_make_no_arrow() {
        let root = ("lib", "mod a; mod b;");
        let text = "use std::a; use outside::b::C; pub(in super::a) struct Y; #[cfg(test)] mod tests { use crate::a::X; }";
        assert_eq!(arrows(&[root, ("a", "pub struct X;"), ("b", text)]), Vec::<String>::new());
        assert_eq!(arrows(&[root, ("a", ""), ("b", ""), ("b_tests", "use crate::a;")]), Vec::<String>::new());
    }
}
