//! Builds, proves and publishes a family of PyTorch + CUDA container images: `cargo xtask --help`.

mod apt;
mod attest;
mod bench;
mod build;
mod catalog;
mod cli;
mod commands;
mod compat;
mod digest;
mod doctor;
mod engine;
mod explain;
mod faults;
mod files;
mod github;
mod hold;
mod http;
mod interrupt;
mod launch;
mod layout;
mod lint;
mod lock;
mod out;
mod plan;
mod problem;
mod processes;
mod project;
mod publish;
mod recipe;
mod registry;
mod render;
mod resolve;
mod root;
mod runner;
mod site;
mod smoke;
mod tags;
mod tiers;
mod wheels;

use std::process::ExitCode;

fn main() -> ExitCode {
    let done = interrupt::listen().map_err(anyhow::Error::from).and_then(|()| commands::run(cli::parse()?));
    match (done, interrupt::check()) {
        (Ok(()), _) => ExitCode::SUCCESS,
        // Whatever failed then, failed because of it.
        (Err(_), Err(interrupted)) => {
            eprintln!("{interrupted}");
            ExitCode::from(interrupted.exit())
        }
        (Err(error), Ok(())) => fail(&error),
    }
}

/// Prints an error in the one form that all commands share, and gives the exit code of the contract.
fn fail(error: &anyhow::Error) -> ExitCode {
    if is_closed_pipe(error) {
        return ExitCode::from(128 + SIGPIPE);
    }
    let refusal = faults::refusal(error);
    eprintln!("{refusal}");
    for line in refusal.0.iter().filter_map(github::annotation) {
        eprintln!("{line}");
    }
    ExitCode::from(refusal.exit() as u8)
}

/// What ends the programs that write to a reader who has seen enough; Rust's are told by an error instead.
const SIGPIPE: u8 = 13;

fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<std::io::Error>().is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
}
