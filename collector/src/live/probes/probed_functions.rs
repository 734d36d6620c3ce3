//! Decides which functions of which process get probes, and numbers them. Functions at the start and later ones share
//! one table.

use super::c_libraries::CLibraries;
use super::lock_rate_trials::LockRateTrials;
use super::moving_libraries::{ITSELF, MovingLibraries, may_move, remark};
use super::sampled_places::Tables;
use super::trials::Trials;
use super::wanted_pairs::WantedPairs;
use crate::cell::grouped;
use crate::plan;
use capture::probe::{ProbeFunction, number_limit};
use capture::target::Process;
use engine::event::{FunctionFact, HitCosts, ModuleFact};
use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;
use symbols::FileKey;
use symbols::binary::{Binaries, Binary};
use symbols::{self, ChosenFunction, MovesCode, Parser, Parsers, SymbolError, SymbolSummary};

/// The remark about a program whose functions have no probes yet.
const SEEN_FIRST: &str =
    "functions are known from samples (±) until some are worth probes (--functions '*' probes all at once)";

/// A program with more functions than this gets no probes before samples show which functions matter. A browser or a
/// runtime calls very many functions while it starts, and hardly gets on until the probes are removed: node with four
/// workers did 21 rounds in its first second instead of 12,000.
const MOST_AT_ONCE: usize = 1_024;
/// The remark about functions without probes, if no samples are taken.
const NEVER_SEEN: &str =
    "no function gets probes: without samples, longpole cannot choose any (--functions 'GLOB' names some)";

/// The table of functions, which grows while recording.
pub struct ProbedFunctions {
    pub(super) parsers: Parsers,
    pub(super) selection: symbols::Selection,
    /// Largest number of functions of one program, if it is the only program.
    pub(super) max_functions: usize,
    /// Numbers of functions are less than this: the size of the kernel's table of counters.
    number_limit: u32,
    pub(super) files: HashMap<FileKey, Arc<[ChosenFunction]>>,
    pub(super) binaries: Binaries,
    /// The program whose functions were chosen for each process.
    pub(super) probed: HashMap<u32, FileKey>,
    /// Libraries of each process whose functions were already searched.
    pub(super) beside: HashMap<u32, HashSet<FileKey>>,
    /// Patterns that a user has asked for while recording.
    pub(super) wanted: Vec<String>,
    /// C libraries.
    pub libc: CLibraries,
    /// Programs that may copy their code: their functions get probes only if a user names them. `true`: the C library
    /// does not get probes either.
    moving: HashMap<FileKey, bool>,
    /// Libraries that may copy code.
    pub(super) moving_libraries: MovingLibraries,
    /// Whether functions get probes only after samples show that they are worth it.
    pub(super) from_samples: bool,
    /// Whether, in programs with more functions than [`MOST_AT_ONCE`], functions get probes only after samples show
    /// that they are worth it.
    pub(super) few_at_once: bool,
    /// The remark on functions without probes.
    seen_first: &'static str,
    /// Functions of files that samples fell into.
    pub(super) tables: Tables,
    /// Results of trials.
    pub(super) trials: Trials,
    /// Whether families of lock functions get probes only after a trial shows what they cost.
    pub(super) tries_locks: bool,
    pub(super) lock_trials: LockRateTrials,
    /// Where the pairs of USDT probes were found that the user wants.
    pub(super) pairs: WantedPairs,
}

/// The chosen functions of one process at the start.
#[derive(Debug, Default)]
pub struct First {
    /// Probes for the capture.
    pub probes: Vec<ProbeFunction>,
    /// Functions for the recording's table; empty if they are in it already.
    pub facts: Vec<FunctionFact>,
    /// The program's binary; `None` if it is in the recording already.
    pub module: Option<ModuleFact>,
    /// A sentence for people about functions that were not chosen.
    pub sentence: Option<String>,
    /// What the user can do if many functions were not chosen.
    pub hint: Option<&'static str>,
}

impl ProbedFunctions {
    /// A table without functions.
    pub fn new(
        plan: &plan::Selection,
        depth: Option<u32>,
        libc: CLibraries,
        parsers: Parsers,
    ) -> ProbedFunctions {
        ProbedFunctions {
            parsers,
            selection: symbols::Selection {
                max_functions: plan.max_functions,
                include: plan.functions.clone(),
                exclude: plan.exclude.clone(),
                places: Vec::new(),
                whole: false,
                depth,
                first_id: 0,
            },
            max_functions: plan.max_functions,
            number_limit: number_limit(u32::try_from(plan.max_functions).unwrap_or(u32::MAX)),
            files: HashMap::new(),
            binaries: Binaries::default(),
            probed: HashMap::new(),
            beside: HashMap::new(),
            wanted: Vec::new(),
            libc,
            moving: HashMap::new(),
            moving_libraries: MovingLibraries::default(),
            from_samples: false,
            few_at_once: false,
            seen_first: SEEN_FIRST,
            tables: Tables::new(),
            trials: Trials::default(),
            tries_locks: false,
            lock_trials: LockRateTrials::default(),
            pairs: WantedPairs::of(&plan.functions),
        }
    }

    /// Whether functions of a process get probes only if a user names them, since the process may move code.
    pub(super) fn moves_code(&self, pid: u32) -> bool {
        self.probed.get(&pid).is_some_and(|key| self.moving.contains_key(key))
    }

    /// A number for one more function; `None`: all numbers are used.
    pub(super) fn next_number(&mut self) -> Option<u32> {
        let number = Some(self.selection.first_id).filter(|number| *number < self.number_limit)?;
        self.selection.first_id = number.saturating_add(1);
        self.selection.max_functions = self.selection.max_functions.saturating_sub(1);
        Some(number)
    }

    /// Numbers of functions are less than this.
    pub fn number_limit(&self) -> u32 {
        self.number_limit
    }

    /// Sets whether functions get probes only after samples, if any are taken, show that they are worth it.
    #[must_use]
    pub fn only_selected(self, from_samples: bool, are_taken: bool) -> ProbedFunctions {
        let seen_first = if are_taken { SEEN_FIRST } else { NEVER_SEEN };
        ProbedFunctions { from_samples, seen_first, ..self }
    }

    /// Sets whether lock functions of running processes, and of their later programs and children, get probes only
    /// after a trial shows that these cost little.
    #[must_use]
    pub fn trying_locks(self, tries_locks: bool) -> ProbedFunctions {
        ProbedFunctions { tries_locks, ..self }
    }

    /// Queues a process for a trial of its lock functions. Its operations are missing from `since_ns` on.
    pub fn will_try_locks(&mut self, pid: u32, since_ns: u64) {
        self.lock_trials.wait(pid, since_ns);
    }

    /// Sets that functions get probes only if a user asks for them.
    #[must_use]
    pub fn none_unasked(self) -> ProbedFunctions {
        ProbedFunctions { max_functions: 0, ..self }
    }

    /// Sets that programs with very many functions begin without probes, unless the user has named functions or their
    /// number. It has effect only if stacks are `sampled`, so that samples show the functions instead.
    #[must_use]
    pub fn few_at_once(self, sampled: bool) -> ProbedFunctions {
        let asked = !self.selection.include.is_empty() || self.max_functions != plan::MOST_FUNCTIONS;
        ProbedFunctions { few_at_once: sampled && !asked, ..self }
    }

    /// Sets what probes may cost, and what a hit costs.
    pub fn may_cost(&mut self, budget_ppm: Option<u32>, hit_costs: Option<HitCosts>) {
        self.trials = Trials::new(budget_ppm, hit_costs);
    }

    /// Chooses the functions of the program `name` for a process. `binary` opens exactly the file that the process runs or
    /// will run.
    pub fn of_process(&mut self, pid: u32, name: &str, binary: &Path) -> Result<First, SymbolError> {
        if self.max_functions == 0 {
            return Ok(First::default());
        }
        self.pairs.forget(pid);
        let open_error = |source| SymbolError::Open { path: binary.to_owned(), source };
        let binary = &self.binaries.open(binary, name).map_err(open_error)?;
        let key = binary.key();
        let mut first = First::default();
        self.libc.spare(pid, self.moving.get(&key).is_some_and(|with_libc| *with_libc));
        let chosen = match self.files.get(&key) {
            Some(chosen) => Arc::clone(chosen),
            None => {
                let mut parser = self.parsers.open_binary(binary, name)?;
                let summary = parser.summary()?;
                let own = (summary.moves_code != MovesCode::No).then(|| ITSELF.to_owned());
                let mover =
                    own.or_else(|| self.moving_libraries.of_process(pid, binary.opened_by(), &self.parsers));
                match mover {
                    Some(mover) if self.selection.include.is_empty() => {
                        let with_libc = summary.moves_code != MovesCode::WithItsLibc;
                        self.moving.insert(key, with_libc);
                        self.libc.spare(pid, with_libc);
                        return Ok(self.none_at_first(pid, binary, &summary, remark(&mover)));
                    }
                    Some(mover) => log::warn!("probes may kill {name}, which {}", may_move(&mover)),
                    None => {}
                }
                if self.from_samples {
                    return Ok(self.none_at_first(pid, binary, &summary, self.seen_first.to_owned()));
                }
                if let Some(chosen) = self.chosen_before(&key, &mut parser)? {
                    self.files.insert(key, Arc::clone(&chosen));
                    return Ok(self.first(pid, key, &chosen, binary, first));
                }
                let mut choice = clear(parser.choose(&self.selection)?)?;
                choice.chosen.retain(|chosen| chosen.fact.id < self.number_limit);
                self.pairs.missing(name, &choice.missing);
                if self.few_at_once && choice.chosen.len() > MOST_AT_ONCE {
                    return Ok(self.none_at_first(pid, binary, &summary, too_many(choice.total)));
                }
                let count = u32::try_from(choice.chosen.len()).unwrap_or(u32::MAX);
                self.selection.first_id = self.selection.first_id.saturating_add(count);
                self.selection.max_functions =
                    self.selection.max_functions.saturating_sub(choice.chosen.len());
                let only_pairs = self.pairs.are_all(&self.selection.include);
                first.sentence = match choice.total {
                    _ if only_pairs && choice.chosen.is_empty() => None,
                    0 if !only_pairs => {
                        Some("no function symbols: scheduler and futex events only".to_owned())
                    }
                    _ => Some(choice.sentence()),
                };
                first.module = Some(summary.fact(&path_of(pid, binary.opened_by())));
                let missing = first.module.as_ref().and_then(|module| module.missing.as_deref());
                first.hint = (!only_pairs).then(|| hint(summary.is_go, choice.total, missing)).flatten();
                first.facts = choice.chosen.iter().map(|chosen| chosen.fact.clone()).collect();
                let chosen: Arc<[ChosenFunction]> = choice.chosen.into();
                self.files.insert(key, Arc::clone(&chosen));
                chosen
            }
        };
        Ok(self.first(pid, key, &chosen, binary, first))
    }

    /// Chooses no function of a program for now, with a sentence that gives the reason.
    fn none_at_first(
        &mut self,
        pid: u32,
        binary: &Arc<Binary>,
        summary: &SymbolSummary,
        sentence: String,
    ) -> First {
        let module = Some(summary.fact(&path_of(pid, binary.opened_by())));
        let none: Arc<[ChosenFunction]> = Arc::from([]);
        self.files.insert(binary.key(), Arc::clone(&none));
        self.first(
            pid,
            binary.key(),
            &none,
            binary,
            First { module, sentence: Some(sentence), ..First::default() },
        )
    }

    /// Whether a process runs another program than the one whose functions were chosen.
    pub fn runs_another(&self, pid: u32) -> bool {
        let Some(key) = self.probed.get(&pid) else { return false };
        let Ok(process) = Process::open(pid) else { return false };
        let found = std::fs::metadata(process.open_path());
        found.is_ok_and(|found| !FileKey::of(&found).is_same_inode(key))
    }

    /// The functions that were chosen for this file before it was renamed, linked or touched, or for another file with
    /// the same functions. That happens if a program is built again while it starts. The functions keep their numbers.
    fn chosen_before(
        &self,
        key: &FileKey,
        parser: &mut Parser,
    ) -> Result<Option<Arc<[ChosenFunction]>>, SymbolError> {
        let as_long = |other: &FileKey| other.is_as_long_as(key);
        let earlier: Vec<_> =
            self.files.iter().filter(|(other, _)| as_long(other)).map(|(_, chosen)| chosen).collect();
        if earlier.is_empty() {
            return Ok(None);
        }
        let selection = symbols::Selection { max_functions: self.max_functions, ..self.selection.clone() };
        let now = parser.choose(&selection)?;
        let place = |chosen: &ChosenFunction| {
            let fact = &chosen.fact;
            (
                chosen.entry_offset,
                chosen.exit_offsets.clone(),
                chosen.pair.clone(),
                fact.name.clone(),
                fact.module.clone(),
                fact.offset,
            )
        };
        // The earlier choice may have more functions, which a user asked for.
        let mut earlier = earlier.into_iter().filter(|chosen| {
            let first = chosen.iter().take(now.chosen.len());
            !now.chosen.is_empty() && first.map(place).eq(now.chosen.iter().map(place))
        });
        Ok(earlier.next().map(Arc::clone))
    }

    fn first(
        &mut self,
        pid: u32,
        key: FileKey,
        chosen: &[ChosenFunction],
        binary: &Arc<Binary>,
        mut first: First,
    ) -> First {
        self.pairs.found(pid, binary, chosen);
        let places = chosen.iter().flat_map(ChosenFunction::places);
        // Remembers the bytes at these places. If they change after the file was read, the function gets no probes,
        // with a remark.
        let _ = binary.vouch(places);
        first.probes = chosen.iter().map(|chosen| probe_of(chosen, pid, binary)).collect();
        self.probed.insert(pid, key);
        first
    }
}

/// The choice, or an error if a name may mean several functions.
pub(super) fn clear(mut choice: symbols::Choice) -> Result<symbols::Choice, SymbolError> {
    match choice.unclear.pop() {
        Some(symbols::Unclear { name, may_be }) => Err(SymbolError::Unclear { name, may_be }),
        None => Ok(choice),
    }
}

/// A chosen function in the form that the capture needs.
pub(super) fn probe_of(chosen: &ChosenFunction, pid: u32, binary: &Arc<Binary>) -> ProbeFunction {
    ProbeFunction {
        id: chosen.fact.id,
        pid: Some(pid),
        binary: Arc::clone(binary),
        entry_offset: chosen.entry_offset,
        exit_offsets: chosen.exit_offsets.clone(),
        entry_stepped: chosen.fact.entry_stepped,
        exits_stepped: chosen.fact.exits_stepped,
        pair: chosen.pair.clone(),
    }
}

/// The binary's path, for people.
fn path_of(pid: u32, binary: &Path) -> String {
    match Process::open(pid) {
        Ok(process) if binary == process.open_path() => process.executable,
        _ => symbols::safe_path(binary),
    }
}

/// The remark about a program with more functions than [`MOST_AT_ONCE`].
fn too_many(functions: usize) -> String {
    format!(
        "{} functions, too many to probe all at once: known from samples (±); --functions or --max-functions chooses some to probe",
        grouped(functions as u64)
    )
}

/// A hint for a program in which no function was chosen, if there is one. `missing`: the message about the program's
/// missing symbols.
fn hint(is_go: bool, total: usize, missing: Option<&str>) -> Option<&'static str> {
    if total == 0 {
        // A user who installed a package cannot change how it is built.
        let is_packaged = missing.is_some_and(|missing| missing.contains("-dbgsym"));
        (!is_packaged).then_some(
            "function names come from the symbol table: build the program without -s and do not strip it",
        )
    } else if is_go {
        Some(
            "the times of Go functions are inferred, since their returns cannot be probed; without --exact they are sampled",
        )
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A user who installed a packaged program gets no hint to build it without -s.
    #[test]
    fn a_stripped_program_of_a_package_gets_no_hint_to_build_it() {
        let install =
            "no debug info; install gzip-dbgsym (or -dbg), or try --debuginfod; no function has a name";
        assert_eq!(hint(false, 0, Some(install)), None);
        let build = "no debug info; build it with -g, or install its debug package; no function has a name";
        assert!(hint(false, 0, Some(build)).is_some_and(|hint| hint.contains("without -s")));
        assert!(
            hint(true, 5, None).is_some_and(|hint| hint.contains("Go")) && hint(false, 5, None).is_none()
        );
    }

    /// A program may be renamed between its start and its exec; its functions must not be listed twice.
    #[test]
    fn a_program_whose_file_was_renamed_keeps_its_functions() {
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path().join("program");
        std::fs::copy("/proc/self/exe", &path).expect("copied");
        let plan = plan::Selection { max_functions: 50, ..plan::Selection::default() };
        let mut functions =
            ProbedFunctions::new(&plan, None, CLibraries::new(Parsers::here(), None), Parsers::here());
        let before = functions.of_process(7, "program", &path).expect("functions");
        assert_eq!(before.facts.len(), 50, "this test has functions");
        let renamed = folder.path().join("renamed");
        let key = |path: &Path| FileKey::of(&std::fs::metadata(path).expect("metadata"));
        let first_key = key(&path);
        // Times of files have a resolution of some milliseconds.
        for _ in 0..1_000 {
            std::fs::rename(&path, &renamed).expect("renamed");
            std::fs::rename(&renamed, &path).expect("renamed");
            if key(&path) != first_key {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        assert_ne!(key(&path), first_key, "the file has changed");
        let after = functions.of_process(8, "program", &path).expect("functions");
        assert_eq!(after.facts, []);
        let ids = |first: &First| first.probes.iter().map(|probe| probe.id).collect::<Vec<_>>();
        assert_eq!(ids(&after), ids(&before));
    }

    /// A program may be built again between its start and its exec; its functions must not occur twice in the report.
    #[test]
    fn a_copy_of_a_program_has_the_same_functions() {
        let folder = tempfile::tempdir().expect("folder");
        let (path, copy) = (folder.path().join("program"), folder.path().join("copy"));
        std::fs::copy("/proc/self/exe", &path).expect("copied");
        std::fs::copy("/proc/self/exe", &copy).expect("copied");
        let plan = plan::Selection { max_functions: 50, ..plan::Selection::default() };
        let mut functions =
            ProbedFunctions::new(&plan, None, CLibraries::new(Parsers::here(), None), Parsers::here());
        let before = functions.of_process(7, "program", &path).expect("functions");
        let after = functions.of_process(8, "program", &copy).expect("functions");
        let ids = |first: &First| first.probes.iter().map(|probe| probe.id).collect::<Vec<_>>();
        assert_eq!((after.facts.len(), ids(&after)), (0, ids(&before)));
        assert!(after.probes.iter().all(|probe| probe.binary.opened_by() == copy));
        let other = functions.of_process(9, "another", &copy).expect("functions");
        assert_eq!(ids(&other), ids(&before), "it is known by now");
    }

    /// A function's number beyond the table would share the counters of mutexes.
    #[test]
    fn function_numbers_stay_below_the_number_of_counters() {
        let plan = |max_functions| plan::Selection { max_functions, ..plan::Selection::default() };
        let of = |most| {
            ProbedFunctions::new(&plan(most), None, CLibraries::new(Parsers::here(), None), Parsers::here())
        };
        assert_eq!([50, 70_000, usize::MAX].map(|most| of(most).number_limit()), [1 << 16, 70_000, 1 << 20]);
        let mut functions = of(50);
        functions.selection.first_id = functions.number_limit - 20;
        let own = Path::new("/proc/self/exe");
        let first = functions.of_process(7, "program", own).expect("functions");
        assert_eq!((first.facts.len(), first.probes.len()), (20, 20));
        assert!(first.probes.iter().all(|probe| probe.id < functions.number_limit));
        assert_eq!(functions.next_number(), None);
    }
}
