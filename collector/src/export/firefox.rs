//! A profile for the Firefox Profiler (profiler.firefox.com). Each thread has its samples, and markers for its waits and
//! locks. The critical path of each CPU count is a thread of another process.
//!
//! This is the only format that is built in memory first: [`Profile`] numbers names and stacks for each thread.

use super::Model;
use super::weights::Weight;
use super::words;
use crate::present::text::delays;
use engine::time::Timestamp;
use engine::view::{Measured, StretchKind, ThreadActivity, ThreadFacts};
use fxprof_processed_profile::{
    CategoryColor, CategoryHandle, CpuDelta, Frame, FrameFlags, FrameInfo, MarkerFieldFlags,
    MarkerFieldFormat, MarkerTiming, Profile, ReferenceTimestamp, SamplingInterval, StaticSchemaMarker,
    StaticSchemaMarkerField, StringHandle, ThreadHandle, Timestamp as At,
};
use std::collections::HashMap;
use std::io::{self, Write};

/// Writes the profile.
pub fn write(model: &Model<'_>, out: &mut dyn Write) -> io::Result<()> {
    let start = model.measured.as_ref().map_or(Timestamp(0), |measured| measured.window().0);
    let reference = model.about.at(start).map_or(0.0, |realtime_ns| realtime_ns as f64 / 1e6);
    let rate_hz = model.program.samples.rate_hz.max(1);
    let mut profile = Profile::new(
        model.title(),
        ReferenceTimestamp::from_millis_since_unix_epoch(reference),
        SamplingInterval::from_nanos(1_000_000_000 / u64::from(rate_hz)),
    );
    profile.set_symbolicated(true);
    let categories = Categories {
        waits: profile.add_category("Waits", CategoryColor::Gray),
        locks: profile.add_category("Locks", CategoryColor::Orange),
        path: profile.add_category("Critical path", CategoryColor::Red),
    };
    let mut writer = Writer { profile, model, start, categories };
    if let Some(measured) = &model.measured {
        writer.measured(measured);
    }
    writer.paths();
    serde_json::to_writer(out, &writer.profile)?;
    Ok(())
}

struct Categories {
    waits: CategoryHandle,
    locks: CategoryHandle,
    path: CategoryHandle,
}

struct Writer<'m, 'a> {
    profile: Profile,
    model: &'m Model<'a>,
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
        for section in measured.lock_sections() {
            let Some(handle) = threads.get(&(section.thread as usize)) else { continue };
            let lock = measured.object(section.object);
            if section.waited_ns > 0 {
                let began = Timestamp(section.from.0.saturating_sub(section.waited_ns));
                let stretch = (self.at(began), self.at(section.from));
                self.mark::<LOCK>(*handle, stretch, self.categories.locks, (lock, "waits for it"));
            }
            let how = if section.reads { "has it, reading" } else { "has it" };
            let stretch = (self.at(section.from), self.at(section.to));
            self.mark::<LOCK>(*handle, stretch, self.categories.locks, (lock, how));
        }
    }

    fn samples(&mut self, measured: &Measured<'_>, thread: &ThreadFacts<'_>, handle: ThreadHandle) {
        let mut states = measured.states(thread).peekable();
        // Running time until the last sample, and until the present state.
        let (mut before, mut ran_ns) = (0, 0u64);
        for (time, stack) in measured.samples(thread) {
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
            self.profile.add_sample(handle, at, stack, delta, 1);
        }
    }

    fn states(&mut self, measured: &Measured<'_>, thread: &ThreadFacts<'_>, handle: ThreadHandle) {
        for state in measured.states(thread) {
            let detail = match state.doing {
                ThreadActivity::Running { .. } => continue,
                ThreadActivity::Blocked { wait, wakeup } => {
                    let wake = wakeup.and_then(|wakeup| measured.wake(wakeup));
                    let waker = wake.and_then(|wake| measured.thread(wake.waker)).map(|waker| waker.name);
                    waker.unwrap_or(wait.ended_by)
                }
                _ => "",
            };
            let name = words::state(measured, &state.doing);
            let stretch = (self.at(state.start), self.at(state.end));
            self.mark::<WAIT>(handle, stretch, self.categories.waits, (&name, detail));
        }
    }

    fn paths(&mut self) {
        if self.model.cpus.is_empty() {
            return;
        }
        let none = At::from_nanos_since_reference(0);
        // Process 0: no real process has this number.
        let process = self.profile.add_process("critical path, predicted", 0, none);
        for (number, cpus) in (0..).zip(&self.model.cpus) {
            let path = self.model.path(*cpus);
            // The thread is not written as a main thread: the profiler would show its process's name instead of its
            // own.
            let handle = self.profile.add_thread(process, number, none, false);
            self.profile.set_thread_name(handle, &Weight::on(*cpus));
            self.profile.set_thread_show_markers_in_timeline(handle, true);
            for stretch in path.stretches {
                let ns = |time: engine::time::Ticks| {
                    At::from_nanos_since_reference(time.0 / engine::time::Ticks::PER_NS)
                };
                let stretch_of = (ns(stretch.start), ns(stretch.end));
                let category = self.categories.path;
                match &stretch.kind {
                    StretchKind::Computes { thread, function } => {
                        let told = (self.model.function(*function), self.model.thread(*thread));
                        self.mark::<PATH>(handle, stretch_of, category, told);
                    }
                    StretchKind::Passes(kind) => {
                        self.mark::<PATH>(handle, stretch_of, category, (&delays::words(kind), ""));
                    }
                }
            }
        }
    }
}
