//! The command line: every command with its help, and nothing that decides.

mod container;
mod examples;
mod host;
mod images;
mod registry;
mod usage;

pub use container::{Container, K8s, Network, Run, Slurm};
pub use host::Doctor;
pub use images::{Base, BaseBuilder, Bench, Build, Codec, Matrix, Plan, Select, Smoke};
pub use registry::{Diff, Freshness, List, Nightly, Prune, Publish, Published, Require, Sign, Site, Size};

use crate::catalog::Platform;
use crate::problem::Refusal;
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use images::platform;
use std::path::PathBuf;

/// Builds, proves and publishes a family of PyTorch + CUDA container images.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", version, max_term_width = 110)]
pub struct Cli {
    /// What all commands understand.
    #[command(flatten)]
    pub global: Global,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// Options of every command.
#[derive(Debug, Args)]
#[command(next_help_heading = "Options of every command")]
pub struct Global {
    /// The catalog: releases, variants, roots, tags
    #[arg(long, global = true, default_value = "variants.yaml", value_name = "FILE")]
    pub file: PathBuf,
    /// Print the result as JSON
    #[arg(long, global = true)]
    pub json: bool,
    /// Print the commands without running them
    #[arg(long, global = true)]
    pub dry_run: bool,
    /// Show every line that the programs print
    #[arg(long, short, global = true)]
    pub verbose: bool,
    /// Only results and errors
    #[arg(long, short, global = true, conflicts_with = "verbose")]
    pub quiet: bool,
    /// Which engine builds and runs: yours, or a private one (Debian and Ubuntu, as root)
    #[arg(long, global = true, value_enum, default_value = "auto", env = "XTASK_ENGINE")]
    pub engine: EngineChoice,
    /// Allow combinations the compatibility table does not know; the image's labels say so
    #[arg(long, global = true)]
    pub allow_unverified: bool,
    /// Folder for logs and the private engine; 25 GB while a base is built [default: target/xtask]
    #[arg(long, global = true, value_name = "FOLDER", env = "XTASK_STATE")]
    pub state: Option<PathBuf>,
    /// How long to retry each request to a busy or unreachable registry
    #[arg(long, global = true, value_name = "DURATION", value_parser = duration, env = "XTASK_RETRY_BUDGET", default_value = "3m")]
    pub retry_budget: humantime::Duration,
    /// Wheels and finished layers, shared by all checkouts; 6 GB per release [default: the user's cache folder]
    #[arg(long, global = true, value_name = "FOLDER", env = "XTASK_CACHE")]
    pub cache_dir: Option<PathBuf>,
}

/// Which engine to take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum EngineChoice {
    /// Your docker if its daemon answers and it has buildx, otherwise a private one
    Auto,
    /// Your docker
    Docker,
    /// The private engine below `target/`
    Private,
}

/// The commands, in the order in which one meets them.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Do variants.yaml, the lock and the rendered files agree? Offline, under a second
    Check,
    /// List releases and variants: CUDA, Python, driver floor, tags, sizes
    List(List),
    /// Do these versions, GPU and driver work together? If not, why, and what does? Given only a GPU: what runs on it?
    Explain(Explain),
    /// Show what would be built or skipped, and why
    Plan(Plan),
    /// Pin every input: digests, wheel hashes, tool versions
    Lock(Lock),
    /// Write the Dockerfiles and the bake file from templates and lock
    Render(Check),
    /// Build images, smoke-test and tag them, print their digests
    Build(Build),
    /// Run the smoke checks in an image
    Smoke(Smoke),
    /// Write the catalogue as a static site: a page per image, what runs on which GPU, what was measured
    Site(Site),
    /// Point the user-visible tags at images that passed
    Publish(Publish),
    /// Fail if a moving tag is missing, or its image was last tested too long ago
    Freshness(Freshness),
    /// List what the registry no longer needs; --delete removes it
    Prune(Prune),
    /// Compare two images: packages, versions, layers, sizes
    Diff(Diff),
    /// Show the size of an image, layer by layer
    Size(Size),
    /// Start a variant with all the docker options that the README recommends
    Run(Run),
    /// Print a compose file for one variant
    Compose(Container),
    /// Print Kubernetes manifests for one variant
    K8s(K8s),
    /// Print a Slurm batch script for one variant
    Slurm(Slurm),
    /// Find out why a GPU does not work
    Doctor(Doctor),
    /// Build, test and publish what changed: the whole nightly pipeline
    Nightly(Nightly),
    /// Print the CI matrix as JSON: one job per base
    Matrix(Matrix),
    /// Manage the engine: status, up, down, prune
    #[command(subcommand)]
    Engine(Engine),
    /// Manage the wheels and layers kept for the next build: status, prune
    #[command(subcommand)]
    Cache(Cache),
    /// Measure ours against a plain Dockerfile, side by side; needs an hour and 40 GB of disk
    Bench(Bench),
    /// Run everything that continuous integration checks
    Ci(Ci),
    /// Print a completion script for `cargo xtask …` and `xtask …`
    Completions(Completions),
}

/// `explain`.
#[derive(Args, Debug)]
#[command(group(clap::ArgGroup::new("about").args(["torch", "cuda", "image", "gpu", "sm", "driver"]).required(true).multiple(true)))]
pub struct Explain {
    /// The torch version; 2.9 means its newest patch [default: the newest with that CUDA]
    #[arg(long, value_name = "VERSION")]
    pub torch: Option<String>,
    /// The CUDA version: 12.8, 12.8.1 or cu128 [default: what PyPI serves]
    #[arg(long, value_name = "VERSION")]
    pub cuda: Option<String>,
    /// The Python version: 3.13, or 3.13t (free-threaded)
    #[arg(long, value_name = "VERSION")]
    pub python: Option<String>,
    /// The platform [default: the GPU's if it has only one, else the catalog's first]
    #[arg(long, value_name = "OS/ARCH", value_parser = platform)]
    pub platform: Option<Platform>,
    /// The GPU as `nvidia-smi` names it, e.g. "GTX 1080 Ti"
    #[arg(long, value_name = "NAME", conflicts_with = "sm")]
    pub gpu: Option<String>,
    /// The GPU's compute capability: 6.1
    #[arg(long, value_name = "X.Y")]
    pub sm: Option<String>,
    /// The driver version: 535.104.05, or its branch: 535
    #[arg(long, value_name = "VERSION")]
    pub driver: Option<String>,
    /// An image to explain: pytorch/pytorch:TAG or nvidia/cuda:TAG
    #[arg(long, value_name = "REFERENCE")]
    pub image: Option<String>,
}

/// `lock`: say whether the lock fits, or make it anew.
#[derive(Args, Debug)]
#[command(group(clap::ArgGroup::new("mode").args(["check", "update"]).required(true)))]
pub struct Lock {
    /// Fail if the lock was not made from this variants.yaml; offline
    #[arg(long)]
    pub check: bool,
    /// Query the indexes and write the lock
    #[arg(long)]
    pub update: bool,
    /// Update only this release
    #[arg(long, value_name = "NAME", conflicts_with = "check")]
    pub release: Option<String>,
    /// An apt sources file to bootstrap from, e.g. of a snapshot mirror [default: the host's mirrors]
    #[arg(long, value_name = "FILE", env = "XTASK_APT_SOURCES")]
    pub apt_sources: Option<PathBuf>,
}

/// A writer's `--check`.
#[derive(Args, Debug)]
pub struct Check {
    /// Write nothing; fail if a file would change
    #[arg(long)]
    pub check: bool,
}

/// `cache`.
#[derive(Clone, Copy, Debug, Subcommand)]
pub enum Cache {
    /// Show where the cache is and how big it is
    Status,
    /// Remove what was not used lately
    Prune {
        /// Remove what was unused for this long; `0s` removes everything
        #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "30d")]
        unused_for: humantime::Duration,
    },
}

/// `engine`.
#[derive(Clone, Copy, Debug, Subcommand)]
pub enum Engine {
    /// Show which engine is used and what it can do
    Status,
    /// Fetch and start the private engine
    Up,
    /// Stop the private engine
    Down,
    /// Stop the private engine and remove everything it put on disk
    Prune,
}

/// `ci`.
#[derive(Args, Debug)]
pub struct Ci {
    /// Skip what takes long: building and testing the images
    #[arg(long)]
    pub fast: bool,
}

/// `completions`.
#[derive(Args, Debug)]
pub struct Completions {
    /// The shell
    #[arg(value_name = "SHELL", value_enum)]
    pub shell: Shell,
}

/// A shell that there is a completion script for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Shell {
    /// `source <(cargo xtask completions bash)` in ~/.bashrc
    Bash,
    /// `cargo xtask completions zsh > ~/.xtask.zsh`, and `source ~/.xtask.zsh` in ~/.zshrc
    Zsh,
    /// `cargo xtask completions fish > ~/.config/fish/conf.d/xtask.fish`
    Fish,
}

/// A length of time as people write it.
fn duration(text: &str) -> Result<humantime::Duration, String> {
    text.parse().map_err(|_| format!("`{text}` is no duration; write 30m, 12h or 2d"))
}

/// The command line as the program reads it, with the examples of every command in its help.
pub fn command() -> clap::Command {
    examples::add(Cli::command())
}

/// What was asked for; a question for help or the version is answered, and the program ends.
///
/// Errors: `E_USAGE`, with what clap says of it.
pub fn parse() -> anyhow::Result<Cli> {
    match command().try_get_matches().and_then(|matches| Cli::from_arg_matches(&matches)) {
        Ok(cli) => Ok(cli),
        // A command alone is a question for help too.
        Err(error) if !error.use_stderr() || usage::is_question(&error) => error.exit(),
        Err(error) => {
            let words: Vec<String> = std::env::args().skip(1).collect();
            Err(Refusal::from(usage::problem(&error, &words)).into())
        }
    }
}
