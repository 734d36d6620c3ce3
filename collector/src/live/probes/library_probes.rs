//! Finds functions outside of a program's own file, and functions that are asked for later. Patterns match functions of
//! mapped libraries, and a user of the live screen may ask for functions while the program runs.

use super::probed_functions::{ProbedFunctions, clear, probe_of};
use crate::live::main_loop::{Chosen, FunctionRequest, Granted, NewFunctions, Placing};
use crate::tui::PromptKind;
use capture::probe::now_ns;
use capture::target::{Module, Process, is_c_library, mapped};
use engine::event::{FunctionFact, ModuleFact};
use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::sync::Arc;
use symbols::binary::Binary;
use symbols::{self, ChosenFunction, NameMatch, SymbolError, listed, match_name};

/// Functions found in a file: all that match, and the facts that the recording does not have yet.
#[derive(Clone, Default)]
struct Found {
    matching: Vec<ChosenFunction>,
    facts: Vec<FunctionFact>,
    module: Option<ModuleFact>,
}

/// Whether all functions are wanted; see [`symbols::Selection::whole`].
#[derive(Clone, Copy)]
struct Whole(bool);

impl ProbedFunctions {
    /// Functions that patterns match in libraries that a process has mapped and that have no probes there yet. The C
    /// library is skipped: it has probes of its own, and all code calls it.
    pub(super) fn of_libraries(&mut self, process: &Process) -> NewFunctions {
        let patterns: Vec<String> = self.selection.include.iter().chain(&self.wanted).cloned().collect();
        let mut new = NewFunctions::default();
        if patterns.is_empty() {
            return new;
        }
        for module in libraries(process) {
            let Some(binary) = self.opened(&module.open_path, &module.path) else { continue };
            let key = binary.key();
            if !self.beside.entry(process.pid).or_default().insert(key) {
                continue;
            }
            let found = match self.files.get(&key) {
                Some(chosen) => Found { matching: chosen.to_vec(), ..Found::default() },
                None => match self.find(&binary, &module.path, &patterns, Whole(true)) {
                    Ok(found) => found,
                    Err(error) => {
                        log::warn!("{}: no function is probed: {error}", module.path);
                        continue;
                    }
                },
            };
            let found = self.only_new_pairs(process.pid, &binary, found);
            take(&mut new, process.pid, &binary, found);
        }
        new
    }

    /// Leaves out pairs of USDT probes that the process has in another file, too: which one is meant is not known.
    fn only_new_pairs(&mut self, pid: u32, binary: &Binary, found: Found) -> Found {
        let elsewhere = self.pairs.found(pid, binary, &found.matching);
        let is_new = |chosen: &ChosenFunction| !elsewhere.contains(&chosen.fact.id);
        Found { matching: found.matching.into_iter().filter(is_new).collect(), ..found }
    }

    /// Forgets a process's libraries.
    pub(super) fn forget_libraries(&mut self, pid: u32) {
        self.beside.remove(&pid);
    }

    /// The functions that a user names, in these processes.
    pub(super) fn granted(&mut self, request: &FunctionRequest, pids: &[u32]) -> Granted {
        match request.what {
            PromptKind::Probe => self.probe_more(&request.pattern, pids),
            PromptKind::TakeOff => self.take_off(&request.pattern),
            // A filter concerns rows only.
            PromptKind::Filter => Granted::default(),
        }
    }

    fn take_off(&mut self, pattern: &str) -> Granted {
        self.wanted.retain(|wanted| wanted != pattern);
        let known: Vec<&ChosenFunction> = self.files.values().flat_map(|chosen| chosen.iter()).collect();
        let at = |places: Vec<usize>| places.into_iter().filter_map(|place| known.get(place).copied());
        let off: BTreeSet<u32> = match match_name(pattern, known.iter().map(|chosen| &chosen.fact.name)) {
            NameMatch::Nothing => BTreeSet::new(),
            NameMatch::These(places) => at(places).map(|chosen| chosen.fact.id).collect(),
            NameMatch::Several(places) => {
                let names: Vec<&str> = at(places).map(|chosen| chosen.fact.name.as_str()).collect();
                let sentence = format!("{pattern} matches {} functions: {}", names.len(), listed(&names));
                return Granted { sentence, ..Granted::default() };
            }
        };
        let sentence = match off.len() {
            0 => format!("no function with probes matches {pattern}"),
            1 => format!("the probes of 1 function are off: {pattern}"),
            count => format!("the probes of {count} functions are off: {pattern}"),
        };
        Granted { off: off.into_iter().collect(), sentence, ..Granted::default() }
    }

    fn probe_more(&mut self, pattern: &str, pids: &[u32]) -> Granted {
        let patterns = [pattern.to_owned()];
        let mut granted = Granted::default();
        let (mut found, mut numbers, mut error) = (HashMap::new(), BTreeSet::new(), None);
        for &pid in pids {
            let looked_ns = now_ns();
            let Ok(process) = Process::open(pid) else { continue };
            let mut functions = NewFunctions { looked_ns, ..NewFunctions::default() };
            let main = (process.program_name().to_owned(), process.open_path());
            let others = libraries(&process).into_iter().map(|module| (module.path, module.open_path));
            for (place, (name, path)) in std::iter::once(main).chain(others).enumerate() {
                let Some(binary) = self.opened(&path, &name) else { continue };
                let key = binary.key();
                let here = match found.get(&key) {
                    Some(matching) => Found { matching: Vec::clone(matching), ..Found::default() },
                    None => match self.find(&binary, &name, &patterns, Whole(place > 0)) {
                        Ok(here) => {
                            found.insert(key, here.matching.clone());
                            here
                        }
                        Err(why) => {
                            error.get_or_insert(why);
                            continue;
                        }
                    },
                };
                numbers.extend(here.matching.iter().map(|chosen| chosen.fact.id));
                take(&mut functions, pid, &binary, here);
            }
            if !functions.probes.is_empty() {
                let (missing_since_ns, placing) = (0, Placing::Wanted);
                granted.chosen.push(Chosen { pid, missing_since_ns, functions: Ok(functions), placing });
            }
        }
        if !numbers.is_empty() && !self.wanted.contains(&patterns[0]) {
            self.wanted.extend(patterns);
        }
        granted.sentence = match (numbers.len(), error) {
            (0, Some(error)) => format!("no function is probed: {error}"),
            (0, None) => format!("no function that can be probed matches {pattern}"),
            (1, _) => format!("1 function is probed from now on: {pattern}"),
            (count, _) => format!("{count} functions are probed from now on: {pattern}"),
        };
        granted
    }

    /// Opens the file that is now at a path; `None` if there is none.
    pub(super) fn opened(&mut self, path: &Path, name: &str) -> Option<Arc<Binary>> {
        let opened = self.binaries.open(path, name.rsplit('/').next().unwrap_or(name));
        opened.inspect_err(|error| log::debug!("{name}: {error}")).ok()
    }

    /// Functions of a file that match. New ones get numbers and are remembered for the file.
    fn find(
        &mut self,
        binary: &Binary,
        name: &str,
        patterns: &[String],
        Whole(whole): Whole,
    ) -> Result<Found, SymbolError> {
        let short = name.rsplit('/').next().unwrap_or(name);
        let key = binary.key();
        let mut parser = self.parsers.open_binary(binary, short)?;
        let selection = symbols::Selection { include: patterns.to_vec(), whole, ..self.selection.clone() };
        let choice = clear(parser.choose(&selection)?)?;
        self.pairs.missing(short, &choice.missing);
        let known = self.files.get(&key).cloned().unwrap_or_default();
        // A pair of USDT probes may begin where another one does.
        let place = |chosen: &ChosenFunction| {
            (chosen.entry_offset, chosen.pair.is_some().then(|| chosen.fact.name.clone()))
        };
        let numbers: HashMap<_, &ChosenFunction> =
            known.iter().map(|chosen| (place(chosen), chosen)).collect();
        let (mut found, mut all) = (Found::default(), known.to_vec());
        for mut chosen in choice.chosen {
            if let Some(same) = numbers.get(&place(&chosen)) {
                found.matching.push((*same).clone());
                continue;
            }
            let Some(number) = self.next_number() else { break };
            chosen.fact.id = number;
            found.facts.push(chosen.fact.clone());
            found.matching.push(chosen.clone());
            all.push(chosen);
        }
        if known.is_empty() && !all.is_empty() {
            found.module = Some(parser.summary()?.fact(&symbols::safe(name)));
        }
        self.files.insert(key, Arc::from(all));
        Ok(found)
    }
}

fn take(new: &mut NewFunctions, pid: u32, binary: &Arc<Binary>, found: Found) {
    new.probes.extend(found.matching.iter().map(|chosen| probe_of(chosen, pid, binary)));
    new.facts.extend(found.facts);
    new.modules.extend(found.module);
}

/// Executable mappings of a process, without its program and its C library.
fn libraries(process: &Process) -> Vec<Module> {
    let modules = mapped(process).unwrap_or_default();
    let is_library = |module: &Module| !module.is_main && !is_c_library(module.name());
    modules.into_iter().filter(is_library).filter(|module| !module.open_path.as_os_str().is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::super::c_libraries::CLibraries;
    use super::*;
    use crate::plan;
    use symbols::Parsers;

    fn request(what: PromptKind, pattern: &str) -> FunctionRequest {
        FunctionRequest { what, pattern: pattern.to_owned() }
    }

    #[test]
    fn functions_asked_for_twice_keep_their_numbers() {
        let plan = plan::Selection { functions: vec!["*find_me_one".into()], ..plan::Selection::default() };
        let plan = plan::Selection { max_functions: 100, ..plan };
        let mut functions =
            ProbedFunctions::new(&plan, None, CLibraries::new(Parsers::here(), None), Parsers::here());
        // The test uses a child, since longpole cannot record itself.
        let mut child = std::process::Command::new("/proc/self/exe")
            .args([
                "--exact",
                "live::probes::library_probes::tests::waits_for_the_end_of_its_input",
                "--ignored",
            ])
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::null())
            .spawn()
            .expect("started");
        let own = child.id();
        let path = std::path::PathBuf::from(format!("/proc/{own}/exe"));
        let first = functions.of_process(own, "test", &path).expect("functions");
        assert_eq!(first.facts.len(), 1);
        assert!(std::hint::black_box(find_me_one(1)) + std::hint::black_box(find_me_two(2)) > 0);

        let granted = functions.granted(&request(PromptKind::Probe, "*find_me_???"), &[own]);
        let [chosen] = &granted.chosen[..] else { panic!("{}", granted.sentence) };
        let new = chosen.functions.as_ref().expect("functions");
        let numbers = |new: &NewFunctions| new.probes.iter().map(|probe| probe.id).collect::<BTreeSet<_>>();
        assert_eq!((new.facts.len(), numbers(new)), (1, BTreeSet::from([0, 1])), "{}", granted.sentence);
        let again = functions.granted(&request(PromptKind::Probe, "*find_me_???"), &[own]);
        let new = again.chosen[0].functions.as_ref().expect("functions");
        assert_eq!((new.facts.len(), numbers(new)), (0, BTreeSet::from([0, 1])));

        let off = functions.granted(&request(PromptKind::TakeOff, "*find_me_two"), &[own]);
        assert_eq!((off.off.len(), off.chosen.len()), (1, 0), "{}", off.sentence);
        let none = functions.granted(&request(PromptKind::Probe, "no such function"), &[own]);
        assert!(none.chosen.is_empty() && none.sentence.contains("matches no such function"));
        drop(child.stdin.take());
        child.wait().expect("ended");
    }

    #[test]
    #[ignore = "runs only as the child of another test"]
    fn waits_for_the_end_of_its_input() {
        let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
    }

    #[inline(never)]
    fn find_me_one(number: u64) -> u64 {
        (0..number).fold(3, |sum, round| sum ^ std::hint::black_box(round))
    }

    #[inline(never)]
    fn find_me_two(number: u64) -> u64 {
        (0..number).fold(5, |sum, round| sum ^ std::hint::black_box(round).wrapping_mul(sum))
    }
}
