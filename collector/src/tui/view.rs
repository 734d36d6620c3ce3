//! What the table on the screen can be of.

/// What a row of the table is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum View {
    /// A function.
    #[default]
    Functions,
    /// A lock.
    Locks,
    /// Threads that do the same.
    Threads,
    /// What threads slept for.
    Waits,
    /// A function, lock or thread, by the CPUs that were busy meanwhile.
    Parallelism,
}

impl View {
    /// All, in the order of their numbers.
    pub const ALL: [View; 5] = [View::Functions, View::Locks, View::Threads, View::Waits, View::Parallelism];

    /// Its name.
    pub fn name(self) -> &'static str {
        self.into()
    }
}
