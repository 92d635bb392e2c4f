//! The program as a whole, in one crate so that it is linked once.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod arrows;
mod browser;
mod commands;
mod completions;
mod containers;
mod debian;
mod deploy;
mod doctor;
mod examples;
mod explain;
mod full_disk;
mod interruptions;
mod jupyter;
mod killed;
mod layers;
mod lint;
mod linters;
mod mlflow;
mod order;
mod proxy;
mod publish;
mod published;
mod readme;
mod real;
mod refusals;
mod registry;
mod run;
mod schema;
mod services;
mod site;
mod ssh;
mod support;
mod team;
mod users;
mod variants;
