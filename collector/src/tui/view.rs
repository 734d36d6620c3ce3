//! Kinds of tables on the screen.

/// A kind of table, named after its rows.
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
    /// Functions, locks and threads, with the number of CPUs that were busy at the same time.
    Parallelism,
}

impl View {
    /// All kinds of tables, in the order of their numbers.
    pub const ALL: [View; 5] = [View::Functions, View::Locks, View::Threads, View::Waits, View::Parallelism];

    /// The kind's name.
    pub fn name(self) -> &'static str {
        self.into()
    }
}
