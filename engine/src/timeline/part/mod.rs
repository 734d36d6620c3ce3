//! Parts of a recording: which part is analysed, and the state of threads at its edges.

pub(super) mod excerpt;
pub(super) mod extent;
pub(super) mod pauses;
pub(super) mod resume;
pub(super) mod typical;
pub(super) mod window;
