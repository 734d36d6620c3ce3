//! Functions and locks by name, and what was probably meant where there is none of that name.

use crate::cli::UserError;
use crate::symbols::matches;
use engine::program::{FunctionRef, ObjectId, Operation, Program, bare_name};

/// Names suggested.
const SUGGESTED: usize = 3;

/// The functions with this name; if there is none, those that match it as a pattern (`hash*`).
pub fn functions(program: &Program, name: &str) -> Result<Vec<FunctionRef>, UserError> {
    let which = |chosen: &dyn Fn(&str) -> bool| -> Vec<FunctionRef> {
        let numbered = program.functions.iter().zip(0..);
        numbered
            .filter(|(function, _)| chosen(&function.name))
            .map(|(_, number)| FunctionRef(number))
            .collect()
    };
    let mut found = which(&|function| function == name);
    if found.is_empty() {
        found = which(&|function| matches(name, function));
    }
    if found.is_empty() {
        let names = program.functions.iter().map(|function| function.name.as_str());
        return Err(unknown("function", name, names, "`longpole report FILE` lists the functions"));
    }
    Ok(found)
}

/// That there is a function of this name, or matching it, in one of these programs.
pub fn any_function(programs: [&Program; 2], name: &str) -> Result<(), UserError> {
    let [before, after] = programs;
    if functions(before, name).is_ok() || functions(after, name).is_ok() {
        return Ok(());
    }
    let names = before.functions.iter().chain(&after.functions).map(|function| function.name.as_str());
    let names: std::collections::BTreeSet<&str> = names.collect();
    let hint = "`longpole report FILE` lists the functions";
    let UserError { hint, .. } = unknown("function", name, names.into_iter(), hint);
    Err(UserError::usage(format!("there is no function '{name}' in either of the two"), hint))
}

/// The lock with this name: as it stands in reports, or without what it is (`cache` for `mutex cache`).
pub fn lock(program: &Program, name: &str) -> Result<ObjectId, UserError> {
    if let Some(number) = program.objects.iter().position(|object| object == name) {
        return Ok(ObjectId(number as u32));
    }
    let mut is_lock = vec![false; program.objects.len()];
    for operation in program.threads.iter().flat_map(|thread| &thread.operations) {
        if let Operation::Lock(object)
        | Operation::SpinLock(object)
        | Operation::ReadLock(object)
        | Operation::WriteLock(object)
        | Operation::Held(object, _) = operation
            && let Some(is_lock) = is_lock.get_mut(object.0 as usize)
        {
            *is_lock = true;
        }
    }
    let locks: Vec<(&str, ObjectId)> = (0..)
        .map(ObjectId)
        .zip(program.objects.iter().zip(is_lock))
        .filter(|(_, (_, is_lock))| *is_lock)
        .map(|(number, (name, _))| (name.as_str(), number))
        .collect();
    let bare: Vec<&(&str, ObjectId)> = locks.iter().filter(|(lock, _)| bare_name(lock) == name).collect();
    match bare.as_slice() {
        [(_, lock)] => return Ok(*lock),
        [] => {}
        several => {
            let names: Vec<&str> = several.iter().map(|(name, _)| *name).collect();
            let problem = format!("several locks of this recording are called '{name}'");
            return Err(UserError::usage(problem, format!("say which: {}", names.join(", "))));
        }
    }
    let names = locks.iter().map(|(name, _)| *name);
    Err(unknown("lock", name, names, "`longpole report FILE --by lock` lists the locks"))
}

fn unknown<'n>(what: &str, name: &str, names: impl Iterator<Item = &'n str>, otherwise: &str) -> UserError {
    let near = nearest(name, names);
    let hint = match near.as_slice() {
        [] => otherwise.to_owned(),
        [one] => format!("did you mean {one}?"),
        more => format!("did you mean one of {}?", more.join(", ")),
    };
    UserError::usage(format!("there is no {what} '{name}' in this recording"), hint)
}

/// The names that are most like this one, if any is.
fn nearest<'n>(name: &str, names: impl Iterator<Item = &'n str>) -> Vec<&'n str> {
    let wanted = name.to_lowercase();
    let mut near: Vec<(usize, &str)> = names
        .filter_map(|known| {
            let lower = known.to_lowercase();
            // The last part of a qualified name is what people type.
            let short = bare_name(lower.rsplit("::").next().unwrap_or(&lower));
            let distance = distance(&wanted, &lower).min(distance(&wanted, short));
            let part = wanted.len() > 2 && lower.contains(&wanted);
            (part || distance * 3 <= wanted.chars().count().max(3)).then_some((distance, known))
        })
        .collect();
    near.sort();
    near.truncate(SUGGESTED);
    near.into_iter().map(|(_, known)| known).collect()
}

/// Characters to be put in, left out, changed or swapped with the next one (Damerau 1964, each place once); long names are
/// compared by their beginnings.
fn distance(a: &str, b: &str) -> usize {
    const COMPARED: usize = 120;
    let a: Vec<char> = a.chars().take(COMPARED).collect();
    let b: Vec<char> = b.chars().take(COMPARED).collect();
    let mut before = vec![0; b.len() + 1];
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 0..a.len() {
        let mut row = vec![i + 1; b.len() + 1];
        for j in 0..b.len() {
            let changed = last[j] + usize::from(a[i] != b[j]);
            row[j + 1] = changed.min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j] {
                row[j + 1] = row[j + 1].min(before[j - 1] + 1);
            }
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program() -> Program {
        let text = r#"{"format":"longpole-program","version":1,"threads":[{"name":"T","ops":[["exec","parse_line",1],
            ["exec","parse_file",1],["exec","hash",1],["exec","db::Store::insert",1],["lock","cache"],["unlock","cache"]]}]}"#;
        engine::program::json::read(text).expect("a program")
    }

    #[test]
    fn a_name_before_a_pattern() {
        let found = |name: &str| functions(&program(), name).map(|found| found.len());
        assert_eq!((found("hash").ok(), found("parse*").ok(), found("*").ok()), (Some(1), Some(2), Some(4)));
    }

    #[test]
    fn what_was_probably_meant() {
        let hint = |name: &str| functions(&program(), name).expect_err("no such function").hint;
        assert_eq!(hint("hsah"), "did you mean hash?");
        assert_eq!(hint("parse"), "did you mean one of parse_file, parse_line?");
        assert_eq!(hint("insrt"), "did you mean db::Store::insert?");
        assert!(hint("quite_another_thing").contains("longpole report"));
        let error = lock(&program(), "cash").expect_err("no such lock");
        assert_eq!(
            (error.hint.as_str(), error.code),
            ("`longpole report FILE --by lock` lists the locks", crate::cli::Code::Usage)
        );
        assert_eq!(lock(&program(), "cach").expect_err("no such lock").hint, "did you mean cache?");
        assert!(lock(&program(), "cache").is_ok());
    }

    #[test]
    fn a_lock_without_what_it_is() {
        let text = r#"{"format":"longpole-program","version":1,"threads":[{"name":"T","ops":[["lock","mutex cache"],
            ["unlock","mutex cache"],["lock","mutex m"],["unlock","mutex m"],["spin_lock","spin lock m"],
            ["spin_unlock","spin lock m"]]}]}"#;
        let program = engine::program::json::read(text).expect("a program");
        assert_eq!(lock(&program, "cache").ok(), lock(&program, "mutex cache").ok());
        assert!(lock(&program, "cache").is_ok());
        let error = lock(&program, "m").expect_err("two of them");
        assert_eq!(error.hint, "say which: mutex m, spin lock m");
        assert_eq!(lock(&program, "cahce").expect_err("none").hint, "did you mean mutex cache?");
    }
}
