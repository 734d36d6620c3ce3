//! Changes to a program: functions scaled, locks split, I/O made free.

use crate::numbers::Numbers;
use crate::program::{FunctionRef, ObjectId, Operation, Program};
use crate::time::Ticks;
use rustc_hash::FxHashMap;
use std::fmt;

/// A change.
#[derive(Clone, Debug, PartialEq)]
pub enum Edit {
    /// What these functions compute themselves takes this many times as long; 0 is not at all.
    Scale(Vec<FunctionRef>, f64),
    /// The lock becomes that many, and each time one of them, drawn by chance, is taken instead.
    SplitLock(ObjectId, u32),
    /// Waiting for devices takes no time.
    FreeIo,
}

/// Why a change cannot be made. `Display` is one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EditError {
    /// A factor is not a number of at least 0.
    Factor,
    /// A lock cannot become 0 locks.
    NoLocks,
    /// No thread takes an object of this name as a lock.
    NotALock(String),
    /// Threads wait for conditions under the lock: the signalling threads must hold the same one.
    WithCondition(String),
    /// The lock's waits are replayed as recorded: they do not get shorter when the lock changes.
    Replayed(String),
}

impl EditError {
    /// What to do about it; one line.
    pub fn hint(&self) -> &'static str {
        match self {
            EditError::Factor => "a factor is a number of at least 0: 0.8 is a fifth less, 0 is not at all",
            EditError::NoLocks => "give the number of locks to split it into, such as cache=4",
            EditError::NotALock(_) => "`longpole report --by lock` lists the locks",
            EditError::WithCondition(_) => "split only locks that no condition variable is used with",
            EditError::Replayed(_) => {
                "record the command with its locks (longpole record -- COMMAND), so that they can be decided anew"
            }
        }
    }
}

impl fmt::Display for EditError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let quoted = crate::program::quoted;
        match self {
            EditError::Factor => out.write_str("a factor that is no number of at least 0"),
            EditError::NoLocks => out.write_str("a lock cannot be split into 0 locks"),
            EditError::NotALock(name) => write!(out, "{} is no lock of this program", quoted(name)),
            EditError::WithCondition(name) => {
                write!(out, "{} cannot be split: threads wait for conditions under it", quoted(name))
            }
            EditError::Replayed(name) => {
                write!(out, "{} cannot be split: who waited for it is replayed as recorded", quoted(name))
            }
        }
    }
}

impl std::error::Error for EditError {}

/// The program with these changes made, one after the other.
///
/// # Errors
/// The first change that cannot be made.
pub fn edited(program: &Program, edits: &[Edit]) -> Result<Program, EditError> {
    let mut program = program.clone();
    for edit in edits {
        match edit {
            Edit::Scale(functions, factor) => scale(&mut program, functions, *factor)?,
            Edit::SplitLock(lock, parts) => split(&mut program, *lock, *parts)?,
            Edit::FreeIo => free_io(&mut program),
        }
    }
    Ok(program)
}

fn scale(program: &mut Program, functions: &[FunctionRef], factor: f64) -> Result<(), EditError> {
    if !factor.is_finite() || factor < 0.0 {
        return Err(EditError::Factor);
    }
    let mut chosen = vec![false; program.functions.len()];
    for function in functions {
        if let Some(chosen) = chosen.get_mut(function.0 as usize) {
            *chosen = true;
        }
    }
    let is_chosen =
        |function: Option<&FunctionRef>| function.is_some_and(|function| chosen[function.0 as usize]);
    // All lengths together stay what a program may hold.
    let mut left = Ticks::MAX_TOTAL;
    for thread in &mut program.threads {
        let mut stack: Vec<FunctionRef> = Vec::new();
        for operation in &mut thread.operations {
            let here = match operation {
                Operation::Call(function) => {
                    stack.push(*function);
                    continue;
                }
                Operation::Return => {
                    stack.pop();
                    continue;
                }
                Operation::ExecIn(function, _) => is_chosen(Some(function)),
                Operation::Exec(_) | Operation::Once(..) => is_chosen(stack.last()),
                _ => false,
            };
            if let Operation::Exec(length)
            | Operation::ExecIn(_, length)
            | Operation::Once(_, length)
            | Operation::Io(_, length)
            | Operation::Sleep(length)
            | Operation::SleepNext(length) = operation
            {
                *length = if here { length.scaled(factor) } else { *length }.min(Ticks(left));
                left -= length.0;
            }
        }
    }
    Ok(())
}

fn free_io(program: &mut Program) {
    for operation in program.threads.iter_mut().flat_map(|thread| &mut thread.operations) {
        if let Operation::Io(_, length) = operation {
            *length = Ticks(0);
        }
    }
}

fn split(program: &mut Program, lock: ObjectId, parts: u32) -> Result<(), EditError> {
    let name = program.objects.get(lock.0 as usize).cloned().unwrap_or_default();
    if parts == 0 {
        return Err(EditError::NoLocks);
    }
    check_split(program, lock, &name)?;
    if parts == 1 {
        return Ok(());
    }
    // The lock itself stays the first part.
    let mut all = vec![lock];
    for part in 2..=u64::from(parts) {
        // More parts than operations could take are all alike.
        if all.len() > program.threads.iter().map(|thread| thread.operations.len()).sum() {
            break;
        }
        let mut other = format!("{name} {part}");
        while program.objects.contains(&other) {
            other.push('\'');
        }
        all.push(ObjectId(program.objects.len() as u32));
        program.objects.push(other);
    }
    if program.writers_first.contains(&lock) {
        program.writers_first.extend_from_slice(&all[1..]);
        program.writers_first.sort_unstable();
    }
    for (number, thread) in program.threads.iter_mut().enumerate() {
        // Drawn for each thread by itself, so that an edit elsewhere changes nothing here.
        let mut numbers = Numbers::new(number as u64 + 1);
        // What the thread holds, the last taken first: it is released in that order.
        let mut taken: Vec<ObjectId> = Vec::new();
        for operation in &mut thread.operations {
            match operation {
                Operation::Lock(object)
                | Operation::SpinLock(object)
                | Operation::ReadLock(object)
                | Operation::WriteLock(object)
                    if *object == lock =>
                {
                    // One that it has already stays the same one.
                    let drawn = || all[numbers.below(all.len() as u64) as usize];
                    *object = taken.last().copied().unwrap_or_else(drawn);
                    taken.push(*object);
                }
                Operation::Unlock(object)
                | Operation::SpinUnlock(object)
                | Operation::ReadWriteUnlock(object)
                    if *object == lock =>
                {
                    *object = taken.pop().unwrap_or(lock);
                }
                _ => {}
            }
        }
    }
    Ok(())
}

fn check_split(program: &Program, lock: ObjectId, name: &str) -> Result<(), EditError> {
    let mut uses: FxHashMap<&str, u64> = FxHashMap::default();
    for operation in program.threads.iter().flat_map(|thread| &thread.operations) {
        let what = match *operation {
            Operation::Lock(object)
            | Operation::SpinLock(object)
            | Operation::ReadLock(object)
            | Operation::WriteLock(object)
                if object == lock =>
            {
                "taken"
            }
            Operation::CondWait(_, mutex) if mutex == lock => "condition",
            Operation::Held(object, _) if object == lock => "replayed",
            _ => continue,
        };
        *uses.entry(what).or_insert(0) += 1;
    }
    if uses.contains_key("condition") {
        return Err(EditError::WithCondition(name.to_owned()));
    }
    match (uses.contains_key("taken"), uses.contains_key("replayed")) {
        (true, _) => Ok(()),
        (false, true) => Err(EditError::Replayed(name.to_owned())),
        (false, false) => Err(EditError::NotALock(name.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::json;

    fn program(threads: &str) -> Program {
        json::read(&format!("{{\"format\":\"longpole-program\",\"version\":1,\"threads\":[{threads}]}}"))
            .expect("a program")
    }

    fn named(program: &Program, name: &str) -> ObjectId {
        ObjectId(program.objects.iter().position(|object| object == name).expect("an object") as u32)
    }

    #[test]
    fn scaling_is_for_the_function_on_top_and_goes_down_to_nothing() {
        let given = program(
            r#"{"name":"T","ops":[["exec",10],["call","f"],["exec",100],["exec","g",7],["once","o",3],["ret"],["io",5,"d"]]}"#,
        );
        let ns = |number: u64| Ticks(number * Ticks::PER_NS);
        let none = edited(&given, &[Edit::Scale(vec![FunctionRef(0)], 0.0)]).expect("edited").compute_times();
        assert_eq!((none.functions, none.elsewhere), (vec![ns(0), ns(7)], ns(10)));
        let both = edited(&given, &[Edit::Scale(vec![FunctionRef(0), FunctionRef(1)], 2.0)]).expect("edited");
        assert_eq!(both.compute_times().functions, [ns(206), ns(14)]);
        for factor in [-0.1, f64::NAN, f64::INFINITY] {
            assert_eq!(edited(&given, &[Edit::Scale(Vec::new(), factor)]), Err(EditError::Factor));
        }
        let huge = edited(&given, &[Edit::Scale(vec![FunctionRef(0)], 1e300)]).expect("edited");
        assert_eq!(huge.check(), Ok(()));
    }

    #[test]
    fn free_io_is_a_wait_without_length() {
        let free = edited(&program(r#"{"name":"T","ops":[["io",5,"d"],["exec",1]]}"#), &[Edit::FreeIo]);
        let operations = free.expect("edited").threads[0].operations.clone();
        assert!(matches!(operations[0], Operation::Io(_, Ticks(0))) && operations.len() == 2);
    }

    #[test]
    fn a_split_lock_is_given_back_as_it_was_taken() {
        let round = r#"["lock","m"],["exec",1],["lock","n"],["unlock","n"],["unlock","m"]"#;
        let given = program(&format!(r#"{{"name":"T","ops":[{}]}}"#, vec![round; 200].join(",")));
        let split = edited(&given, &[Edit::SplitLock(named(&given, "m"), 4)]).expect("edited");
        assert_eq!(split.check(), Ok(()));
        let mut held = Vec::new();
        let mut uses: FxHashMap<ObjectId, u32> = FxHashMap::default();
        for operation in &split.threads[0].operations {
            match operation {
                Operation::Lock(object) => {
                    held.push(*object);
                    *uses.entry(*object).or_insert(0) += 1;
                }
                Operation::Unlock(object) => assert_eq!(held.pop(), Some(*object)),
                _ => {}
            }
        }
        assert_eq!(uses.len(), 5, "m and three more, and n: {uses:?}");
        assert!(uses.values().all(|uses| *uses > 25), "{uses:?}");
    }

    #[test]
    fn what_cannot_be_split() {
        let given = program(
            r#"{"name":"T","ops":[["lock","m"],["cond_wait","c","m"],["unlock","m"],["held","r",0],["freed","r",1],["signal","s"]]}"#,
        );
        let split = |name: &str, parts| edited(&given, &[Edit::SplitLock(named(&given, name), parts)]);
        assert_eq!(split("m", 0), Err(EditError::NoLocks));
        assert_eq!(split("m", 2), Err(EditError::WithCondition("m".into())));
        assert_eq!(split("r", 2), Err(EditError::Replayed("r".into())));
        assert_eq!(split("s", 2), Err(EditError::NotALock("s".into())));
    }
}
