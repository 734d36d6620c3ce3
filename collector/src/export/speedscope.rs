//! speedscope's own format (`https://www.speedscope.app/file-format-schema.json`): a profile of CPU time, and for each CPU
//! count one of the critical path, over the same frames.

use super::model::{Model, NO_FUNCTION};
use super::weights::{Rounded, Weight, say_left_out};
use engine::program::FunctionRef;
use engine::view::{Stack, Stacks};
use serde::Serialize;
use std::borrow::Cow;
use std::collections::HashMap;
use std::io::{self, Write};

#[derive(Debug, Serialize)]
struct FrameJson<'a> {
    name: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u64>,
}

/// Writes all profiles.
pub fn write(model: &Model<'_>, out: &mut dyn Write) -> io::Result<()> {
    let stacks = model.stacks();
    let frames = Frames::of(model, &stacks);
    write!(out, "{{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\"exporter\":")?;
    serde_json::to_writer(&mut *out, concat!("longpole ", env!("CARGO_PKG_VERSION")))?;
    write!(out, ",\"name\":")?;
    serde_json::to_writer(&mut *out, &model.title())?;
    write!(out, ",\"activeProfileIndex\":0,\"shared\":{{\"frames\":")?;
    serde_json::to_writer(&mut *out, &frames.list)?;
    write!(out, "}},\"profiles\":[")?;
    let weights = std::iter::once(Weight::Cpu).chain((0..stacks.on.len()).map(Weight::Owed));
    for (place, weight) in weights.enumerate() {
        if place > 0 {
            out.write_all(b",")?;
        }
        profile(&stacks, &frames, weight, out)?;
    }
    out.write_all(b"]}\n")
}

fn profile(stacks: &Stacks, frames: &Frames<'_>, weight: Weight, out: &mut dyn Write) -> io::Result<()> {
    let (drawn, negative): (Vec<&Stack>, Vec<&Stack>) = stacks
        .stacks
        .iter()
        .filter(|stack| weight.of(stack) != 0.0)
        .partition(|stack| weight.of(stack) > 0.0);
    say_left_out(negative.len(), negative.iter().map(|stack| weight.of(stack)).sum());
    let waits = weight.waits(stacks);
    let waits = waits.iter().filter(|(_, ns)| *ns > 0.0);
    let (mut rounded, mut total) = (Rounded::default(), 0);
    let all = drawn.iter().map(|stack| weight.of(stack)).chain(waits.clone().map(|(_, ns)| *ns));
    let numbers: Vec<i64> = all
        .map(|ns| {
            let ns = rounded.next(ns);
            total += ns;
            ns
        })
        .collect();
    write!(out, "{{\"type\":\"sampled\",\"name\":")?;
    serde_json::to_writer(&mut *out, &weight.title(stacks))?;
    write!(out, ",\"unit\":\"nanoseconds\",\"startValue\":0,\"endValue\":{total},\"samples\":[")?;
    let drawn = drawn.iter().map(|stack| frames.of_stack(stack));
    let waits = waits.map(|(name, _)| frames.waits.get(name).copied().into_iter().collect());
    for (place, numbers) in drawn.chain(waits).enumerate() {
        if place > 0 {
            out.write_all(b",")?;
        }
        serde_json::to_writer(&mut *out, &numbers)?;
    }
    write!(out, "],\"weights\":")?;
    serde_json::to_writer(&mut *out, &numbers)?;
    out.write_all(b"}")
}

/// Numbered frames, one for each function: if a function had two line numbers, speedscope would show two functions.
struct Frames<'m> {
    list: Vec<FrameJson<'m>>,
    numbers: HashMap<FunctionRef, usize>,
    waits: HashMap<String, usize>,
}

impl<'m> Frames<'m> {
    fn of(model: &'m Model<'_>, stacks: &Stacks) -> Frames<'m> {
        // Frame 0 stands for code where no function is known.
        let list = vec![FrameJson { name: Cow::Borrowed(NO_FUNCTION), file: None, line: None }];
        let mut frames = Frames { list, numbers: HashMap::new(), waits: HashMap::new() };
        for frame in stacks.stacks.iter().flat_map(|stack| &stack.frames) {
            let function = frame.function;
            if !frames.numbers.contains_key(&function) {
                frames.numbers.insert(function, frames.list.len());
                // The place where the function begins; if that is not known, the file that samples show.
                let (file, line) = match model.declared(function) {
                    (None, _) => (model.source(frame).0, None),
                    known => known,
                };
                let name = Cow::Borrowed(model.function(Some(function)));
                frames.list.push(FrameJson { name, file, line });
            }
        }
        let places = (0..stacks.on.len()).map(Weight::Owed);
        for (name, _) in places.flat_map(|weight| weight.waits(stacks)) {
            if !frames.waits.contains_key(&name) {
                frames.waits.insert(name.clone(), frames.list.len());
                frames.list.push(FrameJson { name: Cow::Owned(name), file: None, line: None });
            }
        }
        frames
    }

    fn of_stack(&self, stack: &Stack) -> Vec<usize> {
        if stack.frames.is_empty() {
            return vec![0];
        }
        stack.frames.iter().filter_map(|frame| self.numbers.get(&frame.function).copied()).collect()
    }
}
