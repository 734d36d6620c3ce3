//! What samples of stacks and ticks of the clock tell about compute time.

pub(super) mod kernel_share;
pub(super) mod lock_work;
pub(super) mod sampled_code;
pub(super) mod samples;
pub(super) mod support_work;
pub(super) mod ticks;
