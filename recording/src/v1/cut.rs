//! Divides facts into chunks, entry by entry, as long as the file has room. Does the same with the threads in the end
//! of a recording.

use super::object::{Growing, List, MOST_ENTRY_BYTES};
use super::room::Room;
use engine::event::{
    AddressFact, CodeFact, CpuRun, Facts, FunctionFact, MappingFact, ModuleFact, ProcessFact, ThreadFact,
    WindowEnd,
};
use serde::Serialize;
use std::io;

/// Longest name, in bytes; longer names are cut. The target chooses its names, and a long one must not make the
/// recording fail.
const MOST_NAME_BYTES: usize = 1024;

/// If the end of a recording has more threads and pending operations than this number, it is written in parts.
const MOST_WHOLE: usize = 1 << 12;

/// Writes a chunk. The arguments are its number of entries and its JSON.
pub type Put<'a> = &'a mut dyn FnMut(u32, Vec<u8>) -> io::Result<()>;

/// Writes facts in chunks, without the field `end`, for which see [`end`]. Returns the number of entries that had no
/// room.
pub fn facts(facts: &Facts, room: &mut Room, put: Put<'_>) -> io::Result<u64> {
    let Facts {
        start_ns,
        processes,
        threads,
        functions,
        addresses,
        hit_costs,
        idle_wake,
        line_transfer,
        tick_ns,
        idle_tick_ns,
        cpu_quota,
        launched,
        modules,
        sampling,
        mappings,
        code,
        spin,
        cpu_runs,
        hosts,
        end: _,
    } = facts;
    let single = Facts {
        start_ns: *start_ns,
        hit_costs: *hit_costs,
        idle_wake: *idle_wake,
        line_transfer: *line_transfer,
        tick_ns: *tick_ns,
        idle_tick_ns: *idle_tick_ns,
        cpu_quota: *cpu_quota,
        launched: *launched,
        sampling: *sampling,
        ..Facts::default()
    };
    let mut cutter = Cutter {
        json: Growing::beginning_with(&single_facts(&single)?)?,
        room,
        take: Room::take_facts,
        put,
        left_out: 0,
    };
    let bytes = cutter.json.bytes() as u64;
    if !cutter.room.take_facts(0, bytes) {
        (cutter.json, cutter.left_out) = (Growing::default(), 1);
    }
    cutter.list("processes", processes, shorten_process)?;
    cutter.list("threads", threads, shorten_thread)?;
    cutter.list("functions", functions, shorten_function)?;
    cutter.list("addresses", addresses, shorten_address)?;
    cutter.list("modules", modules, shorten_module)?;
    cutter.list("mappings", mappings, shorten_mapping)?;
    cutter.list("code", code, shorten_code)?;
    cutter.list("spin", spin, shorten)?;
    cutter.list("cpu_runs", cpu_runs, shorten_cpu_run)?;
    cutter.list("hosts", hosts, |host| shorten(&mut host.name))?;
    cutter.finish()
}

/// The facts that are no lists, as JSON. Facts that are absent have no key.
fn single_facts(single: &Facts) -> serde_json::Result<serde_json::Map<String, serde_json::Value>> {
    let mut object = match serde_json::to_value(single)? {
        serde_json::Value::Object(object) if *single != Facts::default() => object,
        _ => return Ok(serde_json::Map::new()),
    };
    object.retain(|_, value| !value.is_null() && !value.is_array());
    Ok(object)
}

/// Writes threads and pending operations in parts of their own if there are many. Returns the end that must be written
/// after these parts, and the number of entries that had no room.
pub fn end(mut end: WindowEnd, room: &mut Room, put: Put<'_>) -> io::Result<(WindowEnd, u64)> {
    if end.threads.len() + end.pending.len() <= MOST_WHOLE {
        end.threads.iter_mut().for_each(shorten_thread);
        let bytes = serde_json::to_vec(&end)?.len();
        if bytes <= MOST_ENTRY_BYTES {
            return Ok((end, 0));
        }
    }
    let mut cutter = Cutter { json: Growing::default(), room, take: Room::take_end, put, left_out: 0 };
    cutter.list("threads", &std::mem::take(&mut end.threads), shorten_thread)?;
    cutter.list("pending", &std::mem::take(&mut end.pending), |_| {})?;
    Ok((end, cutter.finish()?))
}

/// Collects entries into chunks.
struct Cutter<'a> {
    json: Growing,
    room: &'a mut Room,
    take: fn(&mut Room, usize, u64) -> bool,
    put: Put<'a>,
    left_out: u64,
}

impl Cutter<'_> {
    fn list<T: Clone + Serialize>(
        &mut self,
        name: &'static str,
        all: &[T],
        shorten: fn(&mut T),
    ) -> io::Result<()> {
        let list = List::Named(name);
        for entry in all {
            let mut entry = entry.clone();
            shorten(&mut entry);
            let entry = serde_json::to_vec(&entry)?;
            let adds = self.json.adds(list, entry.len()) as u64;
            if entry.len() > MOST_ENTRY_BYTES || !(self.take)(self.room, 1, adds) {
                self.left_out += 1;
                continue;
            }
            self.json.push(list, &entry);
            if self.json.is_full() {
                self.put()?;
            }
        }
        Ok(())
    }

    fn put(&mut self) -> io::Result<()> {
        match self.json.finish() {
            Some((entries, json)) => (self.put)(entries, json),
            None => Ok(()),
        }
    }

    fn finish(mut self) -> io::Result<u64> {
        self.put()?;
        Ok(self.left_out)
    }
}

fn shorten_process(process: &mut ProcessFact) {
    shorten(&mut process.comm);
    shorten(&mut process.executable);
}

fn shorten_thread(thread: &mut ThreadFact) {
    shorten(&mut thread.comm);
}

fn shorten_function(function: &mut FunctionFact) {
    shorten(&mut function.name);
    shorten(&mut function.module);
    if let Some(location) = &mut function.location {
        shorten(location);
    }
}

fn shorten_address(address: &mut AddressFact) {
    let AddressFact { name, location, module, build_id, .. } = address;
    name.iter_mut().chain(location).chain(module).chain(build_id).for_each(shorten);
}

fn shorten_module(module: &mut ModuleFact) {
    let ModuleFact { name, path, build_id, missing, own_locks } = module;
    [name, path].into_iter().chain(build_id).chain(missing).chain(own_locks).for_each(shorten);
}

fn shorten_mapping(mapping: &mut MappingFact) {
    let MappingFact { path, build_id, .. } = mapping;
    [path].into_iter().chain(build_id).for_each(shorten);
}

fn shorten_cpu_run(run: &mut CpuRun) {
    const MOST_FUNCTIONS: usize = 64;
    run.functions.truncate(MOST_FUNCTIONS);
    run.functions.iter_mut().for_each(|function| shorten(&mut function.name));
}

fn shorten_code(code: &mut CodeFact) {
    const MOST_INLINED: usize = 64;
    const MOST_CALLS: usize = 64;
    let CodeFact { path, build_id, function, declared, line, inlined, under, .. } = code;
    under.truncate(MOST_CALLS);
    [path].into_iter().chain(build_id).chain(function).chain(declared).chain(line).for_each(shorten);
    inlined.truncate(MOST_INLINED);
    for inlined in inlined {
        shorten(&mut inlined.function);
        inlined.line.iter_mut().for_each(shorten);
    }
}

fn shorten(name: &mut String) {
    if name.len() > MOST_NAME_BYTES {
        name.truncate(name.floor_char_boundary(MOST_NAME_BYTES));
        name.push('…');
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::v1::room::FileLimits;

    fn function(id: u32, name: &str) -> FunctionFact {
        FunctionFact { id, name: name.into(), ..FunctionFact::default() }
    }

    /// Divides facts into chunks. Returns the chunks, and the number of entries that had no room.
    fn cut(all: &Facts, limits: FileLimits) -> (Vec<Facts>, u64) {
        let (mut room, mut chunks, mut bytes) = (Room::of(limits), Vec::new(), 0);
        let left_out = facts(all, &mut room, &mut |entries, json| {
            let chunk: Facts = serde_json::from_slice(&json).expect("facts");
            assert_eq!(super::super::merge::entries(&chunk), entries as usize);
            bytes += json.len() as u64;
            chunks.push(chunk);
            Ok(())
        });
        assert_eq!(limits.bytes - room.bytes_left(), bytes, "what is counted is what is written");
        (chunks, left_out.expect("JSON"))
    }

    #[test]
    fn many_facts_are_cut_into_chunks_and_a_hostile_name_is_cut() {
        let mut functions: Vec<_> = (0..20_000).map(|id| function(id, "f")).collect();
        functions[19_999].name = "é".repeat(10_000_000);
        let all = Facts { start_ns: 5, functions, tick_ns: Some(4), ..Facts::default() };
        let (chunks, left_out) = cut(&all, FileLimits::FILE);
        assert!(chunks.len() > 1 && left_out == 0);
        assert_eq!((chunks[0].start_ns, chunks[0].tick_ns), (5, Some(4)));
        let all: Vec<&FunctionFact> = chunks.iter().flat_map(|chunk| &chunk.functions).collect();
        assert!(all.iter().map(|function| function.id).eq(0..20_000));
        let name = &all[19_999].name;
        assert!(name.len() <= MOST_NAME_BYTES + 3 && name.ends_with('…'), "{} bytes", name.len());
    }

    /// The target decides how many functions are inlined at a line and how long names are. Chunks must stay small all
    /// the same.
    #[test]
    fn facts_with_long_names_are_cut_into_small_chunks() {
        let name = "\u{1}".repeat(900);
        let inlined = engine::event::InlinedFact { function: name.clone(), line: Some(name) };
        let code =
            |offset: u64| CodeFact { offset, inlined: vec![inlined.clone(); 64], ..CodeFact::default() };
        let all = Facts { code: (0..40).map(code).collect(), ..Facts::default() };
        let (chunks, left_out) = cut(&all, FileLimits::FILE);
        assert_eq!(left_out, 0);
        assert!(chunks.iter().all(|chunk| chunk.code.len() <= 2), "each has 690 kB");
        assert_eq!(chunks.iter().map(|chunk| chunk.code.len()).sum::<usize>(), 40);
    }

    #[test]
    fn facts_without_room_are_left_out_and_counted() {
        let functions: Vec<_> = (0..100).map(|id| function(id, "f")).collect();
        let all = Facts { start_ns: 5, functions, ..Facts::default() };
        let (chunks, left_out) = cut(&all, FileLimits { facts: 30, ..FileLimits::FILE });
        assert_eq!((chunks[0].functions.len(), left_out), (30, 70));
        let whole = serde_json::to_vec(&cut(&all, FileLimits::FILE).0[0]).expect("JSON").len() as u64;
        for bytes in [0, 12, 13, 14, 50, 100, 1_000, whole / 2] {
            let (chunks, left_out) = cut(&all, FileLimits { bytes, ..FileLimits::FILE });
            let kept: usize = chunks.iter().map(|chunk| chunk.functions.len()).sum();
            let without_start = chunks.iter().all(|chunk| chunk.start_ns == 0);
            assert_eq!(kept as u64 + left_out, 100 + u64::from(without_start), "{bytes} bytes");
        }
    }

    #[test]
    fn the_end_of_a_recording_with_few_threads_has_no_parts() {
        let thread = |tid: u32| ThreadFact { tid, cpus: vec![1; 256], ..ThreadFact::default() };
        let few = WindowEnd { threads: (0..100).map(thread).collect(), ..WindowEnd::default() };
        let mut room = Room::of(FileLimits { end_bytes: 0, ..FileLimits::FILE });
        let (whole, left_out) = end(few.clone(), &mut room, &mut |_, _| panic!("no part")).expect("written");
        assert_eq!((whole, left_out), (few, 0));
    }
}
