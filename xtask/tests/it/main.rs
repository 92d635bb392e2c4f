//! The program as a whole, in one crate so that it is linked once.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod arrows;
mod containers;
mod explain;
mod lint;
mod linters;
mod order;
mod readme;
mod real;
mod refusals;
mod registry;
mod services;
mod ssh;
mod support;
mod users;
mod variants;
