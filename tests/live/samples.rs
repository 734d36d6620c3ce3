//! Samples: which stacks they have and what is made of them.

mod known_shares;
