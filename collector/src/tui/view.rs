//! Kinds of tables on the screen.

/// A kind of table, by what its rows are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum View {
    /// Functions.
    #[default]
    Functions,
    /// Locks.
    Locks,
    /// Groups of threads that do the same.
    Threads,
    /// What threads slept for.
    Waits,
    /// Functions, locks and threads, by the number of CPUs that were busy meanwhile.
    Parallelism,
}

impl View {
    /// All kinds, in the order of their numbers.
    pub const ALL: [View; 5] = [View::Functions, View::Locks, View::Threads, View::Waits, View::Parallelism];

    /// The kind's name.
    pub fn name(self) -> &'static str {
        self.into()
    }
}
