//! Builds, proves and publishes a family of PyTorch + CUDA container images: `cargo xtask --help`.

mod apt;
mod build;
mod catalog;
mod cli;
mod commands;
mod compat;
mod digest;
mod engine;
mod explain;
mod faults;
mod files;
#[allow(dead_code, unused_imports)] // until registries and wheels are asked through it
mod http;
mod lint;
mod lock;
mod out;
mod plan;
mod problem;
mod project;
mod render;
mod resolve;
mod root;
mod runner;
mod smoke;
mod tags;
mod tiers;

use clap::Parser;
use problem::{Exit, Refusal};
use std::process::ExitCode;

fn main() -> ExitCode {
    match commands::run(cli::Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&error),
    }
}

/// Prints an error in the one form that all commands share, and gives the exit code of the contract.
fn fail(error: &anyhow::Error) -> ExitCode {
    match error.downcast_ref::<Refusal>() {
        Some(refusal) => {
            eprintln!("{refusal}");
            ExitCode::from(refusal.exit() as u8)
        }
        None => {
            eprintln!("error: {error:#}");
            ExitCode::from(Exit::Failed as u8)
        }
    }
}
