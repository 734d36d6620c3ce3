//! Scales the time of functions.

use super::edit::EditError;
use crate::program::{CallWalk, FunctionRef, Operation, Program};
use crate::time::Ticks;

/// Multiplies the self time of these functions by `factor`; 0 means that they take no time.
pub(super) fn scale(program: &mut Program, functions: &[FunctionRef], factor: f64) -> Result<(), EditError> {
    if !factor.is_finite() || factor < 0.0 {
        return Err(EditError::Factor);
    }
    let mut chosen = vec![false; program.functions.len()];
    for function in functions {
        if let Some(chosen) = chosen.get_mut(function.0 as usize) {
            *chosen = true;
        }
    }
    let is_chosen = |function: FunctionRef| chosen.get(function.0 as usize) == Some(&true);
    // Lengths are cut off so that their sum stays within the limit for a program.
    let mut left = Ticks::MAX_TOTAL;
    for thread in &mut program.threads {
        let mut walk = CallWalk::default();
        for operation in &mut thread.operations {
            let here = walk.computed(operation).and_then(|(function, _)| function).is_some_and(is_chosen);
            walk.pass(operation);
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
