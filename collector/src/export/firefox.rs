//! A profile for the Firefox Profiler (profiler.firefox.com). Each thread has its samples, and markers for its waits and
//! locks. The critical path of each CPU count is a thread of another process.
//!
//! This is the only format that is built in memory first: [`Profile`] numbers names and stacks for each thread. A profile that
//! would be too large for a browser has a level of detail ([`super::detail`]); of its samples, one stands for several.

use super::Model;
use super::detail::{self, Does};
use super::weights::Weight;
use super::words;
use crate::cell::duration;
use crate::level_of_detail::{Room, quantum};
use crate::present::text::delays;
use engine::time::Timestamp;
use engine::view::{Measured, PathView, StretchKind, ThreadActivity, ThreadFacts};
use fxprof_processed_profile::{
    CategoryColor, CategoryHandle, CpuDelta, Frame, FrameFlags, FrameInfo, MarkerFieldFlags,
    MarkerFieldFormat, MarkerTiming, Profile, ReferenceTimestamp, SamplingInterval, StaticSchemaMarker,
    StaticSchemaMarkerField, StringHandle, ThreadHandle, Timestamp as At,
};
use std::borrow::Cow;
use std::collections::HashMap;
use std::io::{self, Write};

/// Bytes of a marker or sample, at least.
const ITEM_BYTES: u64 = 50;
/// Fewer items are not tried.
const FEWEST_ITEMS: u64 = 1_000;

/// Writes the profile with a level of detail that fits into `most` bytes. Returns the quantum, nanoseconds: shorter items
/// are joined or omitted; 0: all items are written.
pub fn write(model: &Model<'_>, most: Option<u64>, out: &mut dyn Write) -> io::Result<u64> {
    let Some(most) = most else {
        let detail = Detail::default();
        serde_json::to_writer(out, &profile(model, &detail))?;
        return Ok(0);
    };
    let paths: Vec<PathView> = model.cpus.iter().map(|cpus| model.path(*cpus)).collect();
    let mut items = most / ITEM_BYTES;
    loop {
        let detail = Detail::fitting(model, &paths, items);
        let profile = profile(model, &detail);
        let mut room = Room { left: u64::MAX, out: io::sink() };
        serde_json::to_writer(&mut room, &profile)?;
        let bytes = u64::MAX - room.left;
        if bytes > most && items > FEWEST_ITEMS {
            // Items have different lengths: a little less than would fit if they were all alike.
            let fit = u128::from(detail.items) * u128::from(most) * 9 / (u128::from(bytes) * 10);
            items = u64::try_from(fit).unwrap_or(0).max(FEWEST_ITEMS);
            continue;
        }
        serde_json::to_writer(out, &profile)?;
        return Ok(detail.quantum.max(detail.quantum_of_paths));
    }
}

/// What is shown; by default everything.
#[derive(Default)]
struct Detail<'p> {
    /// Shorter states and uses of locks are joined, nanoseconds.
    quantum: u64,
    /// Shorter stretches of paths are joined or omitted, nanoseconds.
    quantum_of_paths: u64,
    /// Of this number of samples of a thread, one stands for all; 0 means 1.
    every: u64,
    /// The paths, if they were made already.
    paths: &'p [PathView],
    /// At most this number of items is shown.
    items: u64,
}

impl<'p> Detail<'p> {
    /// About this number of items: if there are more, at most a third for paths and a third for samples.
    fn fitting(model: &Model<'_>, paths: &'p [PathView], items: u64) -> Detail<'p> {
        let count_paths = |quantum| -> u64 {
            paths.iter().map(|path| counted(|count| detail::path(path, quantum, |_| count()).map(drop))).sum()
        };
        let runs = model.measured.iter();
        let threads = runs.flat_map(|run| run.threads().iter().map(move |thread| run.samples(thread)));
        let samples: u64 = threads.map(|samples| samples.count() as u64).sum();
        let number = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
        let all = count_paths(0) + samples + model.measured.iter().map(|run| markers(run, 0)).sum::<u64>();
        if all <= items {
            return Detail { paths, items: all, ..Detail::default() };
        }
        let quantum_of_paths = quantum(number(items / 3), |quantum| number(count_paths(quantum)));
        let of_paths = count_paths(quantum_of_paths);
        let mut detail = Detail { quantum_of_paths, every: 1, paths, quantum: 0, items };
        let Some(measured) = &model.measured else { return detail };
        detail.every = samples.div_ceil((items / 3).max(1)).max(1);
        let rest = items.saturating_sub(of_paths + samples / detail.every);
        detail.quantum = quantum(number(rest), |quantum| number(markers(measured, quantum)));
        detail
    }
}

/// Number of markers of the measured run.
fn markers(measured: &Measured<'_>, quantum: u64) -> u64 {
    counted(|count| {
        for thread in measured.threads() {
            detail::states(measured, thread, quantum, |shown| {
                if is_marked(&shown.doing) { count() } else { Ok(()) }
            })?;
        }
        detail::uses(measured, quantum, |_| count())
    })
}

/// How often `walk` calls its argument.
fn counted(walk: impl FnOnce(&mut dyn FnMut() -> io::Result<()>) -> io::Result<()>) -> u64 {
    let mut count = 0;
    // Counting cannot fail.
    let _ = walk(&mut || {
        count += 1;
        Ok(())
    });
    count
}

/// Whether a state has a marker: samples show what a running thread does.
fn is_marked(doing: &ThreadActivity) -> bool {
    !matches!(doing, ThreadActivity::Running { .. })
}

fn profile(model: &Model<'_>, detail: &Detail<'_>) -> Profile {
    let start = model.measured.as_ref().map_or(Timestamp(0), |measured| measured.window().0);
    let reference = model.about.at(start).map_or(0.0, |realtime_ns| realtime_ns as f64 / 1e6);
    let rate_hz = model.program.samples.rate_hz.max(1);
    let title = match detail.quantum.max(detail.quantum_of_paths) {
        0 => model.title().to_owned(),
        quantum => format!("{} (shorter than {}: joined)", model.title(), duration(quantum as f64)),
    };
    let mut profile = Profile::new(
        &title,
        ReferenceTimestamp::from_millis_since_unix_epoch(reference),
        SamplingInterval::from_nanos(1_000_000_000 / u64::from(rate_hz)),
    );
    profile.set_symbolicated(true);
    let categories = Categories {
        waits: profile.add_category("Waits", CategoryColor::Gray),
        locks: profile.add_category("Locks", CategoryColor::Orange),
        path: profile.add_category("Critical path", CategoryColor::Red),
    };
    let mut writer = Writer { profile, model, detail, start, categories };
    if let Some(measured) = &model.measured {
        writer.measured(measured);
    }
    writer.paths();
    writer.profile
}

struct Categories {
    waits: CategoryHandle,
    locks: CategoryHandle,
    path: CategoryHandle,
}

struct Writer<'m, 'a> {
    profile: Profile,
    model: &'m Model<'a>,
    detail: &'m Detail<'m>,
    start: Timestamp,
    categories: Categories,
}

/// A marker: the name of a stretch of time, and one more text.
struct Told<const KIND: usize> {
    category: CategoryHandle,
    name: StringHandle,
    detail: StringHandle,
}

/// Names of the kinds of [`Told`], and of the detail of each.
const KINDS: [(&str, &str); 3] = [("Wait", "ended by"), ("Lock", "how"), ("Path", "thread")];
const WAIT: usize = 0;
const LOCK: usize = 1;
const PATH: usize = 2;

impl<const KIND: usize> StaticSchemaMarker for Told<KIND> {
    const UNIQUE_MARKER_TYPE_NAME: &'static str = KINDS[KIND].0;
    const CHART_LABEL: Option<&'static str> = Some("{marker.name}");
    const TABLE_LABEL: Option<&'static str> = Some("{marker.name} ({marker.data.detail})");
    const FIELDS: &'static [StaticSchemaMarkerField] = &[StaticSchemaMarkerField {
        key: "detail",
        label: KINDS[KIND].1,
        format: MarkerFieldFormat::String,
        flags: MarkerFieldFlags::SEARCHABLE,
    }];

    fn name(&self, _: &mut Profile) -> StringHandle {
        self.name
    }

    fn category(&self, _: &mut Profile) -> CategoryHandle {
        self.category
    }

    fn string_field_value(&self, _: u32) -> StringHandle {
        self.detail
    }

    fn number_field_value(&self, _: u32) -> f64 {
        0.0
    }
}

/// A detail with the number of slices that its marker joins.
fn with_joined(detail: &str, joined: u32) -> Cow<'_, str> {
    match (joined, detail) {
        (0, _) => detail.into(),
        (_, "") => format!("{joined} joined").into(),
        _ => format!("{detail}, {joined} joined").into(),
    }
}

impl Writer<'_, '_> {
    fn at(&self, time: Timestamp) -> At {
        At::from_nanos_since_reference(time.0.saturating_sub(self.start.0))
    }

    fn mark<const KIND: usize>(
        &mut self,
        thread: ThreadHandle,
        (from, to): (At, At),
        category: CategoryHandle,
        (name, detail): (&str, &str),
    ) {
        let (name, detail) = (self.profile.intern_string(name), self.profile.intern_string(detail));
        let told = Told::<KIND> { category, name, detail };
        self.profile.add_marker(thread, MarkerTiming::Interval(from, to), told);
    }

    fn measured(&mut self, measured: &Measured<'_>) {
        let mut processes = HashMap::new();
        let mut threads = HashMap::new();
        for thread in measured.threads() {
            let start = self.at(thread.start);
            let process = *processes
                .entry(thread.pid)
                .or_insert_with(|| self.profile.add_process(thread.process, thread.pid, start));
            let handle = self.profile.add_thread(process, thread.tid, start, thread.pid == thread.tid);
            self.profile.set_thread_name(handle, thread.name);
            let end = self.at(thread.end);
            self.profile.set_thread_end_time(handle, end);
            threads.insert(thread.index, handle);
            self.samples(measured, thread, handle);
            self.states(measured, thread, handle);
        }
        // Marking cannot fail.
        let _ = detail::uses(measured, self.detail.quantum, |shown| {
            let Some(handle) = threads.get(&(shown.thread as usize)) else { return Ok(()) };
            let lock = measured.object(shown.object);
            let how = match shown.does {
                Does::Waits => "waits for it",
                Does::Reads => "has it, reading",
                Does::Has | Does::Takes => "has it",
            };
            let stretch = (self.at(Timestamp(shown.from)), self.at(Timestamp(shown.to)));
            let how = with_joined(how, shown.joined);
            self.mark::<LOCK>(*handle, stretch, self.categories.locks, (lock, &how));
            Ok(())
        });
    }

    fn samples(&mut self, measured: &Measured<'_>, thread: &ThreadFacts<'_>, handle: ThreadHandle) {
        let mut states = measured.states(thread).peekable();
        // Running time until the last sample, and until the present state.
        let (mut before, mut ran_ns) = (0, 0u64);
        let mut samples = measured.samples(thread).peekable();
        let mut seen = 0;
        while let Some((time, stack)) = samples.next() {
            seen += 1;
            if seen < self.detail.every && samples.peek().is_some() {
                continue;
            }
            let weight = i32::try_from(std::mem::take(&mut seen)).unwrap_or(i32::MAX);
            let mut upto = ran_ns;
            while let Some(state) = states.peek() {
                let is_on_cpu =
                    matches!(state.doing, ThreadActivity::Running { .. } | ThreadActivity::Spinning { .. });
                let length = |end: Timestamp| if is_on_cpu { end.0.saturating_sub(state.start.0) } else { 0 };
                if state.end > time {
                    upto = ran_ns.saturating_add(length(time));
                    break;
                }
                ran_ns = ran_ns.saturating_add(length(state.end));
                upto = ran_ns;
                states.next();
            }
            let delta = CpuDelta::from_nanos(upto.saturating_sub(before));
            before = upto;
            let places = self.model.program.samples.stack(stack).rev();
            let names: Vec<StringHandle> = places
                .map(|(_, place)| self.profile.intern_string(self.model.function(Some(place.function))))
                .collect();
            let frames = names.into_iter().map(|name| FrameInfo {
                frame: Frame::Label(name),
                category_pair: CategoryHandle::OTHER.into(),
                flags: FrameFlags::empty(),
            });
            let stack = self.profile.intern_stack_frames(handle, frames);
            let at = self.at(time);
            self.profile.add_sample(handle, at, stack, delta, weight);
        }
    }

    fn states(&mut self, measured: &Measured<'_>, thread: &ThreadFacts<'_>, handle: ThreadHandle) {
        // Marking cannot fail.
        let _ = detail::states(measured, thread, self.detail.quantum, |state| {
            if !is_marked(&state.doing) {
                return Ok(());
            }
            let detail = match state.doing {
                ThreadActivity::Blocked { wait, wakeup } => {
                    let wake = wakeup.and_then(|wakeup| measured.wake(wakeup));
                    let waker = wake.and_then(|wake| measured.thread(wake.waker)).map(|waker| waker.name);
                    waker.unwrap_or(wait.ended_by)
                }
                _ => "",
            };
            let name = words::state(measured, &state.doing);
            let end = Timestamp(state.from.saturating_add(state.ns));
            let stretch = (self.at(Timestamp(state.from)), self.at(end));
            let detail = with_joined(detail, state.joined);
            self.mark::<WAIT>(handle, stretch, self.categories.waits, (&name, &detail));
            Ok(())
        });
    }

    fn paths(&mut self) {
        if self.model.cpus.is_empty() {
            return;
        }
        let none = At::from_nanos_since_reference(0);
        // Process 0: no real process has this number.
        let process = self.profile.add_process("critical path, predicted", 0, none);
        for (number, cpus) in (0..).zip(&self.model.cpus) {
            let made = self.detail.paths.get(number as usize).map(Cow::Borrowed);
            let path = made.unwrap_or_else(|| Cow::Owned(self.model.path(*cpus)));
            // The thread is not written as a main thread: the profiler would show its process's name instead of its
            // own.
            let handle = self.profile.add_thread(process, number, none, false);
            self.profile.set_thread_name(handle, &Weight::on(*cpus));
            self.profile.set_thread_show_markers_in_timeline(handle, true);
            // Marking cannot fail.
            let _ = detail::path(&path, self.detail.quantum_of_paths, |stretch| {
                let ns = |time: engine::time::Ticks| {
                    At::from_nanos_since_reference(time.0 / engine::time::Ticks::PER_NS)
                };
                let stretch_of = (ns(stretch.start), ns(stretch.end));
                let category = self.categories.path;
                let (name, thread) = match stretch.kind {
                    StretchKind::Computes { thread, function } => {
                        (Cow::Borrowed(self.model.function(*function)), self.model.thread(*thread))
                    }
                    StretchKind::Passes(kind) => (Cow::Owned(delays::words(kind)), ""),
                };
                let thread = with_joined(thread, stretch.joined);
                self.mark::<PATH>(handle, stretch_of, category, (&name, &thread));
                Ok(())
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::export::About;
    use crate::input::{Input, Parts};
    use crate::plan::InputPlan;
    use engine::report::Cpus;
    use serde_json::Value;
    use std::collections::BTreeMap;

    fn profile(parts: &Parts, most: Option<u64>) -> (Vec<u8>, u64) {
        let cpus = Cpus::parse_list("1,4").expect("a list");
        let model = Model::new(parts.timeline.as_ref(), &parts.program, cpus, About::default());
        let mut bytes = Vec::new();
        let quantum = write(&model.expect("a valid program"), most, &mut bytes).expect("written");
        (bytes, quantum)
    }

    /// Nanoseconds of markers by thread and name, and the weight of samples by thread.
    fn sums(profile: &[u8]) -> BTreeMap<(u64, String), f64> {
        let profile: Value = serde_json::from_slice(profile).expect("JSON");
        let mut sums = BTreeMap::new();
        for (number, thread) in (0..).zip(profile["threads"].as_array().expect("threads")) {
            let strings = thread.get("stringArray").unwrap_or(&profile["shared"]["stringArray"]);
            let markers = &thread["markers"];
            for place in 0..markers["name"].as_array().expect("markers").len() {
                let name = markers["name"][place].as_u64().expect("a number") as usize;
                let name = strings[name].as_str().expect("a name").to_owned();
                let ns = |of: &str| markers[of][place].as_f64().expect("a time") * 1e6;
                *sums.entry((number, name)).or_insert(0.0) += ns("endTime") - ns("startTime");
            }
            let weights = thread["samples"]["weight"].as_array();
            let weight: f64 = weights.into_iter().flatten().filter_map(Value::as_f64).sum();
            *sums.entry((number, "samples".to_owned())).or_insert(0.0) += weight;
        }
        sums.retain(|_, sum| *sum >= 1.0);
        sums
    }

    #[test]
    fn a_coarse_profile_fits_and_keeps_the_sums_of_each_thread() {
        for name in ["store", "pipeline"] {
            let path = format!("{}/../tests/data/recordings/{name}.lp", env!("CARGO_MANIFEST_DIR"));
            let parts = Input::open(&InputPlan::whole(path.into())).expect("a recording").into_parts();
            let (bytes, quantum) = profile(&parts, None);
            assert_eq!(quantum, 0, "{name}");
            let same = profile(&parts, Some(3 * bytes.len() as u64));
            assert!(same.0 == bytes && same.1 == 0, "{name}: what fits is written as it is");
            let most = bytes.len() as u64 / 4;
            let (coarse, quantum) = profile(&parts, Some(most));
            assert!(coarse.len() as u64 <= most && quantum > 0, "{name}: {} of {most}", coarse.len());
            let (all, coarse) = (sums(&bytes), sums(&coarse));
            assert!(all.keys().eq(coarse.keys()), "{name}: {all:?} {coarse:?}");
            for ((key, all), coarse) in all.iter().zip(coarse.values()) {
                // Times are rounded in the file.
                assert!((all - coarse).abs() <= 1e-3 * all + 1e3, "{name} {key:?}: {coarse} of {all}");
            }
        }
    }
}
