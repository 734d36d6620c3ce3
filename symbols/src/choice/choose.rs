//! Chooses which functions of a binary get probes: the largest ones of the program's own, each with entry and exits.
//! All other functions are counted by the reason for not choosing them.

use super::named_functions::{NamedFunctions, Unclear};
use super::proven::Proofs;
use super::skip_reason::SkipReason;
use super::usdt_pair::{self, MissingPair, PairPlaces};
use crate::code::{Analysis, Entry, Exits, UnknownExits, UnwindTables, analyse};
use crate::elf::{Function, FunctionKind, ModuleFunctions};
use crate::names::{name, origin};
use engine::event::FunctionFact;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Which functions the user wants to have probed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Selection {
    /// At most this many functions; the largest are chosen.
    pub max_functions: usize,
    /// Names and patterns (`*`, `?`) of functions to probe, and pairs of USDT probes ([`super::UsdtPair`]). If the list
    /// is not empty, only these functions are probed, even those of a runtime or of Rust's standard library.
    pub include: Vec<String>,
    /// Names and patterns of functions not to probe. `exclude` overrides `include`.
    pub exclude: Vec<String>,
    /// Offsets in the file, ascending. If the list is not empty, only functions that contain one of the offsets are
    /// probed.
    pub places: Vec<u64>,
    /// Whether a pattern must match the complete name, or the complete name without parameters. Otherwise a pattern may
    /// match a part of the name; in libraries too many names have the same beginning for that.
    pub whole: bool,
    /// Limit on the number of nested probed calls in a thread (`--depth`), as in the 2001 paper, section 3.2. Deeper
    /// calls are not recorded; their time counts for the caller at the limit. The depth of a call is known only at run
    /// time, so the limit does not change which functions are chosen: [`Choice::depth`] passes it on to the kernel
    /// programs.
    pub depth: Option<u32>,
    /// Number of the first chosen function. Different first numbers let several modules share one table of functions.
    pub first_id: u32,
}

impl Default for Selection {
    fn default() -> Selection {
        Selection {
            max_functions: 4096,
            include: Vec::new(),
            exclude: Vec::new(),
            places: Vec::new(),
            whole: false,
            depth: None,
            first_id: 0,
        }
    }
}

/// A function to probe.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChosenFunction {
    /// The function's entry in the recording's function table. [`crate::locate_functions`] fills in the field
    /// `location`.
    pub fact: FunctionFact,
    /// Address of the function's first instruction, as linked.
    pub address: u64,
    /// Bytes.
    pub size: u64,
    /// File offset of the entry probe: the first instruction, or a later instruction if only `nop`s come before it.
    pub entry_offset: u64,
    /// File offsets of the exit probes. Empty if the function never returns, or if its exits are not known (see
    /// `unsure`).
    pub exit_offsets: Vec<u64>,
    /// Why only the entry of the function is probed; `None` if its exits are probed, too.
    pub unsure: Option<UnknownExits>,
    /// Set if this entry describes a pair of USDT probes instead of a function. Then `entry_offset` and `exit_offsets`
    /// are the places of these probes.
    pub pair: Option<PairPlaces>,
}

impl ChosenFunction {
    /// File offsets of all places that get a probe.
    pub fn places(&self) -> impl Iterator<Item = u64> {
        let more = self.pair.iter().flat_map(|pair| &pair.more_entries);
        std::iter::once(&self.entry_offset).chain(more).chain(&self.exit_offsets).copied()
    }
}

/// The outcome of [`choose`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Choice {
    /// The functions to probe, largest first; their numbers count up from [`Selection::first_id`].
    pub chosen: Vec<ChosenFunction>,
    /// Number of function symbols in the module, chosen or not.
    pub total: usize,
    /// Number of functions that were not chosen, by reason.
    pub left_out: BTreeMap<SkipReason, usize>,
    /// Number of chosen functions that have only an entry probe, by reason.
    pub entry_only: BTreeMap<UnknownExits, usize>,
    /// See [`Selection::depth`].
    pub depth: Option<u32>,
    /// Names that match several functions. None of these functions is chosen.
    pub unclear: Vec<Unclear>,
    /// Pairs of USDT probes that the binary lacks.
    pub missing: Vec<MissingPair>,
}

impl Choice {
    /// The choice as a sentence: `412 of 6,310 functions probed, 5,020 of the Rust standard library and 878 aliases
    /// left out`.
    pub fn sentence(&self) -> String {
        let (pairs, functions): (Vec<&ChosenFunction>, Vec<&ChosenFunction>) =
            self.chosen.iter().partition(|chosen| chosen.pair.is_some());
        let mut text = format!("{} of {} functions probed", grouped(functions.len()), grouped(self.total));
        if !pairs.is_empty() {
            let pairs =
                pairs.iter().map(|pair| format!("{} at {} places", pair.fact.name, pair.places().count()));
            text = pairs.collect::<Vec<_>>().join(", ");
        }
        let mut reasons: Vec<_> = self.left_out.iter().collect();
        reasons.sort_by_key(|&(_, &count)| Reverse(count));
        let parts: Vec<String> = reasons
            .iter()
            .map(|(reason, count)| format!("{} {}", grouped(**count), reason.phrase()))
            .collect();
        if let Some((last, before)) = parts.split_last() {
            let list =
                if before.is_empty() { last.clone() } else { format!("{} and {last}", before.join(", ")) };
            text.push_str(&format!("; left out: {list}"));
        }
        let unsure: usize = self.entry_only.values().sum();
        if unsure > 0 {
            let mut reasons: Vec<_> = self.entry_only.iter().collect();
            reasons.sort_by_key(|&(_, &count)| Reverse(count));
            let most = reasons.first().map(|(reason, _)| reason.to_string()).unwrap_or_default();
            let more = if reasons.len() > 1 { " and other reasons" } else { "" };
            text.push_str(&format!("; {} of the probed by entry only ({most}{more})", grouped(unsure)));
        }
        text
    }
}

/// Chooses the functions of a module to probe. Only the instructions of chosen functions are read and decoded.
pub fn choose(module: &ModuleFunctions, selection: &Selection) -> Choice {
    let mut choice = Choice { total: module.functions().len(), depth: selection.depth, ..Choice::default() };
    let mut candidates = Vec::new();
    let (pairs, names) = usdt_pair::split(&selection.include);
    usdt_pair::add(module, selection, &pairs, &mut choice);
    if names.is_empty() && !pairs.is_empty() {
        return choice;
    }
    let (include, unclear) = NamedFunctions::of(module, &names, selection.whole);
    let (exclude, more_unclear) = NamedFunctions::of(module, &selection.exclude, selection.whole);
    choice.unclear.extend(unclear.into_iter().chain(more_unclear));
    let mut group = 0..0;
    for (index, function) in module.functions().iter().enumerate() {
        if index >= group.end {
            let names =
                module.functions()[index..].iter().take_while(|other| other.address == function.address);
            group = index..index + names.count();
        }
        if !holds_one(function, &selection.places) {
            *choice.left_out.entry(SkipReason::NotNamed).or_default() += 1;
            continue;
        }
        match left_out(module, function, &module.functions()[group.clone()], (&include, &exclude)) {
            Some(reason) => *choice.left_out.entry(reason).or_default() += 1,
            None => candidates.push(index),
        }
    }
    candidates.sort_by_key(|&index| {
        let function = &module.functions()[index];
        (Reverse(function.size), function.address)
    });

    // Whether a function is unsuitable is known only after decoding. Each unsuitable function is replaced by the next
    // largest one.
    let unwind = UnwindTables::read(module.elf());
    let proofs = Proofs::new(module, unwind.as_ref());
    let before = candidates.len();
    candidates.retain(|&index| proofs.starts_at(module.functions()[index].address));
    if candidates.len() < before {
        choice.left_out.insert(SkipReason::Unproven, before - candidates.len());
    }
    let mut rest = &candidates[..];
    while choice.chosen.len() < selection.max_functions && !rest.is_empty() {
        let wanted = (selection.max_functions - choice.chosen.len()).min(rest.len());
        let (batch, later) = rest.split_at(wanted);
        rest = later;
        for (&index, analysis) in batch.iter().zip(analyse_all(module, unwind.as_ref(), batch)) {
            match unfit(&analysis) {
                Some(reason) => *choice.left_out.entry(reason).or_default() += 1,
                None => add(module, &mut choice, selection, index, analysis),
            }
        }
    }
    if !rest.is_empty() {
        *choice.left_out.entry(SkipReason::BeyondLimit).or_default() += rest.len();
    }
    choice
}

/// Whether the function contains one of these places; true if the list of places is empty.
fn holds_one(function: &Function, places: &[u64]) -> bool {
    let next = places.partition_point(|place| *place < function.file_offset);
    let end = function.file_offset.saturating_add(function.size);
    places.is_empty() || places.get(next).is_some_and(|place| *place < end)
}

fn left_out(
    module: &ModuleFunctions,
    function: &Function,
    names: &[Function],
    (include, exclude): (&NamedFunctions<'_>, &NamedFunctions<'_>),
) -> Option<SkipReason> {
    match function.kind {
        FunctionKind::Alias(_) => return Some(SkipReason::Alias),
        FunctionKind::IfuncResolver => return Some(SkipReason::IfuncResolver),
        FunctionKind::Plt | FunctionKind::Startup => return Some(SkipReason::Startup),
        FunctionKind::Cold => return Some(SkipReason::Fragment),
        FunctionKind::Part | FunctionKind::Ordinary => {}
    }
    if function.size == 0 {
        return Some(SkipReason::TooSmall);
    }
    if exclude.holds(module, names) {
        return Some(SkipReason::Excluded);
    }
    if include.asked {
        return (!include.holds(module, names)).then_some(SkipReason::NotNamed);
    }
    if function.kind == FunctionKind::Part {
        return Some(SkipReason::Fragment);
    }
    let raw = module.raw_name(function);
    if origin::is_compiler_runtime(&raw) {
        return Some(SkipReason::CompilerRuntime);
    }
    let rust = name::demangled_rust(&raw)?;
    origin::is_rust_standard(&raw, &rust).then_some(SkipReason::RustStandard)
}

/// Decodes functions on up to four threads. Each function is decoded independently, so the order of the results does
/// not depend on timing.
fn analyse_all(module: &ModuleFunctions, unwind: Option<&UnwindTables>, indices: &[usize]) -> Vec<Analysis> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(4);
    // The sandbox of a confined process forbids more threads.
    if threads == 1 || indices.len() < 256 || module.elf().may_map() {
        return indices.iter().map(|&index| analyse(module, unwind, index)).collect();
    }
    // Each thread takes every `threads`-th function. The list is sorted by size, so all threads get about the same
    // amount of code.
    let shares: Vec<Vec<Analysis>> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|first| {
                let share = indices.iter().skip(first).step_by(threads);
                scope.spawn(move || share.map(|&index| analyse(module, unwind, index)).collect())
            })
            .collect();
        workers.into_iter().map(|worker| worker.join().unwrap_or_default()).collect()
    });
    let mut shares: Vec<_> = shares.into_iter().map(Vec::into_iter).collect();
    (0..indices.len())
        .map(|at| shares[at % threads].next().unwrap_or_else(|| analyse(module, unwind, indices[at])))
        .collect()
}

fn unfit(analysis: &Analysis) -> Option<SkipReason> {
    if analysis.is_stub {
        Some(SkipReason::TooSmall)
    } else if analysis.entry == Entry::Rewritten {
        Some(SkipReason::Rewritten)
    } else {
        let loops = analysis.exits == Exits::Unsure(UnknownExits::LoopToEntry);
        (loops || analysis.entry == Entry::Closed).then_some(SkipReason::NotProbeable)
    }
}

fn add(
    module: &ModuleFunctions,
    choice: &mut Choice,
    selection: &Selection,
    index: usize,
    analysis: Analysis,
) {
    let function = &module.functions()[index];
    let Analysis { entry_stepped, exits_stepped, .. } = analysis;
    let shift = if let Entry::At(shift) = analysis.entry { shift } else { 0 };
    let (exit_offsets, unsure) = match analysis.exits {
        Exits::Sure(offsets) => (offsets, None),
        Exits::Unsure(reason) => (Vec::new(), Some(reason)),
    };
    if let Some(reason) = unsure {
        *choice.entry_only.entry(reason).or_default() += 1;
    }
    let number = u32::try_from(choice.chosen.len()).unwrap_or(u32::MAX);
    choice.chosen.push(ChosenFunction {
        fact: FunctionFact {
            id: selection.first_id.saturating_add(number),
            name: module.name(function),
            module: module.module().to_owned(),
            offset: function.file_offset,
            location: None,
            exits_probed: unsure.is_none(),
            entry_stepped,
            exits_stepped,
        },
        address: function.address,
        size: function.size,
        entry_offset: function.file_offset.saturating_add(shift),
        exit_offsets,
        unsure,
        pair: None,
    });
}

/// Formats a number with commas: `1234567` as `1,234,567`.
fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sentence_of_a_choice_counts_all_functions_left_out() {
        let choice = Choice {
            total: 6310,
            left_out: BTreeMap::from([(SkipReason::Alias, 878), (SkipReason::RustStandard, 5432)]),
            ..Choice::default()
        };
        assert_eq!(
            choice.sentence(),
            "0 of 6,310 functions probed; left out: 5,432 of the Rust standard library and 878 aliases"
        );
        assert_eq!(Choice::default().sentence(), "0 of 0 functions probed");
        assert_eq!(grouped(1_000_000), "1,000,000");
    }
}
