//! Writes the operations of a timeline's translation: calls, waits and computing, one after the other.

use super::*;

impl Translator<'_> {
    pub(super) fn call(&mut self, script: &mut Script<'_>, function: FunctionId) {
        let open = script.open.entry(function).or_insert(0);
        let outermost = *open == 0;
        *open += 1;
        script.stack.push((function, outermost));
        if outermost && let Some(&function) = self.functions.get(&function) {
            self.write(script, Operation::Call(function));
        }
    }

    /// Writes calls of the functions in a base stack, the outermost first.
    pub(super) fn open(&mut self, script: &mut Script<'_>, base: &timeline::BaseStack) {
        base.functions.iter().rev().for_each(|&function| self.call(script, function));
    }

    pub(super) fn leave(&mut self, script: &mut Script<'_>) {
        let Some((function, outermost)) = script.stack.pop() else { return };
        if let Some(open) = script.open.get_mut(&function) {
            *open = open.saturating_sub(1);
        }
        if outermost {
            self.write(script, Operation::Return);
        }
    }

    /// After a message from another host was sent, it takes its time to arrive.
    pub(super) fn under_way(&mut self, script: &mut Script<'_>, wakeup: u32, (start, end): (u64, u64)) {
        if self.timeline.messages.binary_search(&wakeup).is_ok()
            && let Some(wakeup) = self.timeline.wakeups.get(wakeup as usize)
        {
            let sent = wakeup.time.0.max(start);
            self.wait(script, names::BETWEEN_HOSTS, end.saturating_sub(sent));
        }
    }

    /// Writes a wait that no recorded thread ended.
    pub(super) fn wait(&mut self, script: &mut Script<'_>, device: &'static str, length_ns: u64) {
        if length_ns == 0 {
            return;
        }
        let object = self.device(device);
        let length = self.length(length_ns);
        self.write(script, Operation::Io(object, length));
    }

    pub(super) fn device(&mut self, device: &'static str) -> ObjectId {
        *self.objects.entry(device).or_insert_with(|| {
            self.program.objects.push(device.to_owned());
            ObjectId(u32::try_from(self.program.objects.len() - 1).unwrap_or(u32::MAX))
        })
    }

    /// Writes the computing and the unknown time so far, then the operation.
    pub(super) fn write(&mut self, script: &mut Script<'_>, operation: Operation) {
        let unknown_ns = std::mem::take(&mut script.unknown_ns);
        script.unknown_before_ns = script.unknown_before_ns.saturating_add(unknown_ns);
        self.compute(script);
        script.operations.push(operation);
    }

    pub(super) fn compute(&mut self, script: &mut Script<'_>) {
        let unknown_ns = std::mem::take(&mut script.unknown_before_ns);
        if unknown_ns > 0 {
            let object = self.device(names::UNKNOWN);
            let length = self.length(unknown_ns);
            script.operations.push(Operation::Io(object, length));
        }
        let compute_ns = std::mem::take(&mut script.compute_ns);
        if compute_ns > 0 {
            let length = self.length(compute_ns);
            script.moves.written(script.operations.len());
            let index = u32::try_from(script.operations.len()).unwrap_or(u32::MAX);
            script.ticks.are_in(index);
            script.operations.push(Operation::Exec(length));
        }
    }

    /// Nanoseconds as ticks, shortened if the sum of all lengths would be too long.
    pub(super) fn length(&mut self, ns: u64) -> Ticks {
        let wanted = ns.saturating_mul(Ticks::PER_NS);
        let length = wanted.min(self.left);
        self.shortened |= length < wanted;
        self.left -= length;
        Ticks(length)
    }
}
