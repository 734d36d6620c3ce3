//! The effect of changes on programs.

use super::*;
use crate::attribution::Owners;
use crate::cpus::Cpus;
use crate::predict::{Model, Scheduler};
use crate::program::{FunctionRef, ObjectId, Operation, Program, Walk, json};
use crate::time::Ticks;
use rustc_hash::FxHashMap;

fn program(threads: &str) -> Program {
    json::read(&format!("{{\"format\":\"longpole-program\",\"version\":1,\"threads\":[{threads}]}}"))
        .expect("a program")
}

fn named(program: &Program, name: &str) -> ObjectId {
    ObjectId(program.objects.iter().position(|object| object == name).expect("an object") as u32)
}

#[test]
fn scaling_a_function_applies_to_it_on_top_and_may_reach_zero() {
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
fn free_io_is_a_wait_of_no_length() {
    let free = edited(&program(r#"{"name":"T","ops":[["io",5,"d"],["exec",1]]}"#), &[Edit::FreeIo]);
    let operations = free.expect("edited").threads[0].operations.clone();
    assert!(matches!(operations[0], Operation::Io(_, Ticks(0))) && operations.len() == 2);
}

#[test]
fn a_split_lock_is_released_as_it_was_taken() {
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
fn a_replayed_lock_or_one_with_a_condition_cannot_be_split() {
    let given = program(
        r#"{"name":"T","ops":[["lock","m"],["cond_wait","c","m"],["unlock","m"],["held","r",0],["freed","r",1],["signal","s"]]}"#,
    );
    let split = |name: &str, parts| edited(&given, &[Edit::SplitLock(named(&given, name), parts)]);
    assert_eq!(split("m", 0), Err(EditError::NoLocks));
    assert_eq!(split("m", 2), Err(EditError::WithCondition("m".into())));
    assert_eq!(split("r", 2), Err(EditError::Replayed("r".into())));
    assert_eq!(split("s", 2), Err(EditError::NotALock("s".into())));
}

/// All comparisons use the run of the unchanged program, so it must not run again for each change.
#[test]
fn a_trial_s_run_is_made_once_however_often_it_is_asked_for() {
    let given = program(
        r#"{"name":"T","ops":[["exec","f",100],["lock","m"],["exec","g",50],["unlock","m"]]},
           {"name":"U","ops":[["lock","m"],["exec","g",50],["unlock","m"]]}"#,
    );
    let model = Model { scheduler: Some(Scheduler::Eevdf), ..Model::default() };
    let trials = Trials::of(&given, &model);
    let faster = || trials.with(vec![Edit::Scale(vec![FunctionRef(0)], 0.5)]);
    let gain = faster().gain(Cpus::ONE, 0).expect("a gain");
    assert!((gain - 0.25).abs() < 0.01, "{gain}");
    assert_eq!(trials.runs(), 2);
    assert_eq!(faster().gain(Cpus::ONE, 0), Some(gain));
    let (low, high) = trials.with(vec![Edit::FreeLocks(vec![named(&given, "m")])]).gains(Cpus::ONE, 0.0);
    assert!(low <= high);
    let runs = trials.runs();
    faster().gains(Cpus::ONE, gain);
    assert_eq!(trials.runs(), runs + 4, "the unchanged program's other runs are known");
    // A change of the CPU count alone shares the runs of the unchanged program.
    let two = Cpus::count(2).expect("2");
    assert_eq!(trials.with(vec![Edit::Cpus(two)]).time_ns(Cpus::ONE, 0), trials.time_ns(two, 0));
}

#[test]
fn an_impossible_edit_is_an_error() {
    let given = program(r#"{"name":"T","ops":[["exec","f",100]]}"#);
    let (model, owners) = (Model::default(), Owners::of(&given));
    let error = |edit: Edit| apply(&given, &owners, &model, &[edit]).map(|_| ()).expect_err("an error");
    assert!(matches!(error(Edit::DivideEvenly(Vec::new())), EditError::NothingToChange(_)));
    assert_eq!(error(Edit::NoTurns), EditError::NotSimulated);
    let trials = Trials::of(&given, &model);
    assert_eq!(trials.with(vec![Edit::NoTurns]).time_ns(Cpus::ONE, 0), None);
}

#[test]
fn work_moved_out_of_a_lock_stays_work() {
    let given = program(
        r#"{"name":"T","ops":[["lock","m"],["call","f"],["exec",30],["ret"],["exec","g",20],["unlock","m"],["exec","f",5]]}"#,
    );
    let moved = edited(&given, &[Edit::MoveOut(FunctionRef(0), vec![named(&given, "m")])]).expect("moved");
    assert_eq!(moved.compute_times(), given.compute_times());
    assert_eq!(moved.check(), Ok(()));
    let mut walk = Walk::holding(|_| true);
    let mut under = 0;
    for operation in &moved.threads[0].operations {
        under += walk.computed(operation).filter(|_| walk.holds()).map_or(0, |(_, length)| length.0);
        walk.pass(operation);
    }
    assert_eq!(under, 20 * Ticks::PER_NS);
}

#[test]
fn fewer_threads_do_the_same_work_with_smaller_barriers() {
    let thread = |name: &str, more: &str| {
        format!(r#"{{"name":"{name}","ops":[["exec","f",100],["barrier","b",3],{more}["exec","f",50]]}}"#)
    };
    let given = program(&format!(
        r#"{{"name":"m","ops":[["exec","g",1],["release","e0"],["await","e1"]]}},{},{},{}"#,
        thread("a", ""),
        thread("b", ""),
        thread("c", r#"["await","e0"],["release","e1"],"#)
    ));
    let fewer = |kept| edited(&given, &[Edit::FewerThreads { threads: vec![1, 2, 3], kept }]);
    let two = fewer(2).expect("edited");
    assert_eq!(two.check(), Ok(()));
    assert_eq!(two.compute_times(), given.compute_times());
    let barriers = |program: &Program| {
        let operations = program.threads.iter().flat_map(|thread| thread.operations.clone());
        let counts = operations.filter_map(|operation| match operation {
            Operation::Barrier(_, count) => Some(count),
            _ => None,
        });
        counts.collect::<Vec<u32>>()
    };
    assert_eq!(barriers(&two), [2, 2]);
    // The main thread awaited the third thread, which is removed. That thread had awaited the main thread itself.
    let awaited = |program: &Program| match program.threads[0].operations[2] {
        Operation::Await(edge) => Some(edge),
        _ => None,
    };
    let Operation::Release(own) = two.threads[0].operations[1] else { panic!("{two:?}") };
    assert_eq!(awaited(&two), Some(own));
    assert!(matches!(fewer(3), Err(EditError::NothingToChange(_))));
    assert!(matches!(fewer(0), Err(EditError::NothingToChange(_))));
}
