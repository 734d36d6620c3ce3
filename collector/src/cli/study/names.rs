//! Finds functions and locks by name, and suggests names if there is none.

use crate::exit::UserError;
use engine::experiment::permits;
use engine::program::{FunctionRef, ObjectId, Program, bare_name};
use std::collections::BTreeSet;
use symbols::{NameMatch, listed, match_name};

/// Largest number of names that are suggested.
const SUGGESTED: usize = 3;

/// The functions that a user means: those with this name, those whose name begins with it or has it as the best known part
/// ([`match_name`]), or all that match it as a pattern (`hash*`).
pub fn functions(program: &Program, name: &str) -> Result<Vec<FunctionRef>, UserError> {
    let names = || program.functions.iter().map(|function| function.name.as_str());
    match match_name(name, names()) {
        NameMatch::These(places) => Ok(places.into_iter().map(|place| FunctionRef(place as u32)).collect()),
        NameMatch::Several(places) => Err(several("functions", name, &at(names(), &places))),
        NameMatch::Nothing => {
            Err(unknown("function", name, names(), "`longpole report FILE` lists the functions"))
        }
    }
}

/// Names of the functions that a user means by `name`, in all programs together.
pub fn functions_of_all(programs: &[&Program], name: &str) -> Result<BTreeSet<String>, UserError> {
    let names: BTreeSet<&str> = programs
        .iter()
        .flat_map(|program| program.functions.iter().map(|function| function.name.as_str()))
        .collect();
    let names = || names.iter().copied();
    match match_name(name, names()) {
        NameMatch::These(places) => Ok(at(names(), &places).into_iter().map(str::to_owned).collect()),
        NameMatch::Several(places) => Err(several("functions", name, &at(names(), &places))),
        NameMatch::Nothing => {
            let hint = "`longpole report FILE` lists the functions";
            let UserError { hint, .. } = unknown("function", name, names(), hint);
            Err(UserError::usage(format!("no recording has a function '{name}'"), hint))
        }
    }
}

/// The names at these places of the list.
fn at<'n>(names: impl Iterator<Item = &'n str>, places: &[usize]) -> Vec<&'n str> {
    let all: Vec<&str> = names.collect();
    places.iter().filter_map(|&place| all.get(place).copied()).collect()
}

/// The error for an ambiguous name.
fn several(what: &str, name: &str, names: &[&str]) -> UserError {
    let or_all = if what == "functions" {
        format!("; or '{name}*' for all that begin with this")
    } else {
        String::new()
    };
    UserError::usage(
        format!("'{name}' matches {} {what}", names.len()),
        format!("choose one: {}{or_all}", listed(names)),
    )
}

/// The lock that a user means: by the name in reports, without its kind (`cache` for `mutex cache`), or by as much of that
/// as is needed.
pub fn lock(program: &Program, name: &str) -> Result<ObjectId, UserError> {
    object(program, name, ("lock", "`longpole report FILE --by lock` lists the locks"), &program.is_lock())
}

/// Like [`lock`], for a semaphore whose initial number of permits is known.
pub fn semaphore(program: &Program, name: &str) -> Result<ObjectId, UserError> {
    let has_permits: Vec<bool> =
        (0..program.objects.len() as u32).map(|number| permits(program, ObjectId(number)) > 0).collect();
    let otherwise = "`longpole report FILE` names a semaphore whose permits are all in use";
    object(program, name, ("semaphore", otherwise), &has_permits)
}

/// One of the objects for which `is_one` holds. `words` name the kind of object, and what the user can do if there is
/// none.
fn object(
    program: &Program,
    name: &str,
    (what, otherwise): (&str, &str),
    is_one: &[bool],
) -> Result<ObjectId, UserError> {
    if let Some(number) = program.objects.iter().position(|object| object == name) {
        return Ok(ObjectId(number as u32));
    }
    let locks: Vec<(&str, ObjectId)> = (0..)
        .map(ObjectId)
        .zip(program.objects.iter().zip(is_one))
        .filter(|(_, (_, is_one))| **is_one)
        .map(|(number, (name, _))| (name.as_str(), number))
        .collect();
    match match_name(name, locks.iter().map(|(lock, _)| bare_name(lock))) {
        NameMatch::These(places) | NameMatch::Several(places) => {
            let mut found: Vec<&(&str, ObjectId)> =
                places.iter().filter_map(|&place| locks.get(place)).collect();
            if let [(one, _)] = found[..] {
                // Objects that lived at the same place later have the same name, followed by a number.
                found.extend(locks.iter().filter(|(other, _)| {
                    other.strip_prefix(one).is_some_and(|number| number.starts_with(" #"))
                }));
            }
            if let [(_, lock)] = found[..] {
                return Ok(*lock);
            }
            return Err(several(
                &format!("{what}s"),
                name,
                &found.iter().map(|(lock, _)| *lock).collect::<Vec<_>>(),
            ));
        }
        NameMatch::Nothing => {}
    }
    let names = locks.iter().map(|(name, _)| *name);
    Err(unknown(what, name, names, otherwise))
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

/// The names that are most similar to `name`; empty if none is similar.
fn nearest<'n>(name: &str, names: impl Iterator<Item = &'n str>) -> Vec<&'n str> {
    let wanted = name.to_lowercase();
    let mut near: Vec<(usize, &str)> = names
        .filter_map(|known| {
            let lower = known.to_lowercase();
            // Users type the last part of a qualified name.
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

/// Number of characters to insert, delete, change or swap with the next one (Damerau 1964, each place once). Only the
/// beginnings of long names are compared.
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
    fn a_function_is_found_by_its_name_its_beginning_or_a_pattern() {
        let found = |name: &str| functions(&program(), name).map(|found| found.len());
        assert_eq!((found("hash").ok(), found("parse*").ok(), found("*").ok()), (Some(1), Some(2), Some(4)));
        assert_eq!(found("parse_l").ok(), Some(1), "as much of it as is needed");
        assert_eq!(found("insert").ok(), Some(1), "without its namespaces");
    }

    #[test]
    fn an_unknown_function_or_lock_gets_a_hint_with_similar_names() {
        let hint = |name: &str| functions(&program(), name).expect_err("no such function").hint;
        assert_eq!(hint("hsah"), "did you mean hash?");
        assert_eq!(
            hint("parse"),
            "choose one: parse_file, parse_line; or 'parse*' for all that begin with this",
            "one of them is to be named"
        );
        assert_eq!(hint("insrt"), "did you mean db::Store::insert?");
        assert!(hint("quite_another_thing").contains("longpole report"));
        let error = lock(&program(), "cash").expect_err("no such lock");
        assert_eq!(
            (error.hint.as_str(), error.code),
            ("`longpole report FILE --by lock` lists the locks", crate::exit::Code::Usage)
        );
        assert!(lock(&program(), "cach").is_ok(), "as much of it as is needed");
        assert!(lock(&program(), "cache").is_ok());
    }

    #[test]
    fn a_lock_is_found_without_its_kind_unless_two_kinds_have_the_name() {
        let text = r#"{"format":"longpole-program","version":1,"threads":[{"name":"T","ops":[["lock","mutex cache"],
            ["unlock","mutex cache"],["lock","mutex m"],["unlock","mutex m"],["spin_lock","spin lock m"],
            ["spin_unlock","spin lock m"]]}]}"#;
        let program = engine::program::json::read(text).expect("a program");
        assert_eq!(lock(&program, "cache").ok(), lock(&program, "mutex cache").ok());
        assert!(lock(&program, "cache").is_ok());
        let error = lock(&program, "m").expect_err("two of them");
        assert_eq!(error.hint, "choose one: mutex m, spin lock m");
        assert_eq!(lock(&program, "cahce").expect_err("none").hint, "did you mean mutex cache?");
    }

    /// With several locks of one name, `--split-lock cache=4` must not split the first one, for which perhaps no thread
    /// waits.
    #[test]
    fn locks_with_the_same_name_are_told_apart_by_their_number() {
        let text = r#"{"format":"longpole-program","version":1,"threads":[{"name":"T","ops":[["lock","mutex m"],
            ["unlock","mutex m"],["lock","mutex m #2"],["unlock","mutex m #2"]]}]}"#;
        let program = engine::program::json::read(text).expect("a program");
        assert_eq!(lock(&program, "m").expect_err("two of them").hint, "choose one: mutex m, mutex m #2");
        assert!(lock(&program, "mutex m").is_ok() && lock(&program, "m #2").is_ok());
    }
}
