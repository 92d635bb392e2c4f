//! Which images, and what is done with them.

use crate::bench::{Case, Way};
use crate::catalog::{Compression, Platform};
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// Which images.
#[derive(Args, Clone, Debug, Default)]
pub struct Select {
    /// A variant; repeatable
    #[arg(long, short = 'V', value_name = "NAME", required_unless_present = "all")]
    pub variant: Vec<String>,
    /// Every variant, of every release unless --release names some
    #[arg(long, conflicts_with = "variant")]
    pub all: bool,
    /// A release; repeatable [default: the catalog's defaults.release]
    #[arg(long, value_name = "NAME")]
    pub release: Vec<String>,
    /// The root file system [default: the release's own, or defaults.root]
    #[arg(long, value_name = "NAME")]
    pub root: Option<String>,
    /// The platform [default: this machine's]
    #[arg(long, value_name = "OS/ARCH", value_parser = platform)]
    pub platform: Option<Platform>,
}

/// `plan`.
#[derive(Args, Debug)]
pub struct Plan {
    /// Which images
    #[command(flatten)]
    pub select: Select,
    /// What the bases are made of
    #[command(flatten)]
    pub base: Base,
    /// Compare with this registry [default: with the engine]
    #[arg(long, value_name = "REGISTRY")]
    pub registry: Option<String>,
}

/// `matrix`.
#[derive(Args, Debug)]
pub struct Matrix {
    /// Only what this registry lacks [default: everything]
    #[arg(long, value_name = "REGISTRY")]
    pub registry: Option<String>,
}

/// `build`.
#[derive(Args, Debug, Default)]
#[command(mut_arg("variant", |variant| variant.required_unless_present("base_only")))]
pub struct Build {
    /// Which images
    #[command(flatten)]
    pub select: Select,
    /// Refuse a root whose Debian packages differ from the lock
    #[arg(long)]
    pub locked: bool,
    /// Build even if nothing changed
    #[arg(long)]
    pub force: bool,
    /// Rebuild every step of the variants, ignoring the engine's cache
    #[arg(long)]
    pub no_cache: bool,
    /// An apt sources file to bootstrap from, e.g. of a snapshot mirror [default: the host's mirrors]
    #[arg(long, value_name = "FILE", env = "XTASK_APT_SOURCES")]
    pub apt_sources: Option<PathBuf>,
    /// CA certificates for the build steps (PEM); never left in the image [default: SSL_CERT_FILE, PIP_CERT, …]
    #[arg(long, value_name = "FILE")]
    pub ca_cert: Option<PathBuf>,
    /// A mirror for images whose name has no host, e.g. mirror.example.org/hub
    #[arg(long, value_name = "PREFIX", env = "XTASK_MIRROR")]
    pub mirror: Option<String>,
    /// What the bases are made of
    #[command(flatten)]
    pub base: Base,
    /// Make only the bases of the releases, as OCI layouts; works for platforms this machine cannot run, too
    #[arg(long, conflicts_with_all = ["push", "builder"])]
    pub base_only: bool,
    /// The root as an OCI layout, for a platform this machine cannot run [default: bootstrap it]
    #[arg(long, value_name = "FOLDER", requires = "base_only")]
    pub root_layout: Option<PathBuf>,
    /// The buildx builder to use
    #[arg(long, value_name = "NAME")]
    pub builder: Option<String>,
    /// Import build cache: a repository, or a buildx spec (`type=…`); repeatable
    #[arg(long, value_name = "CACHE")]
    pub cache_from: Vec<String>,
    /// Export build cache: a repository, or a buildx spec (`type=…`); repeatable
    #[arg(long, value_name = "CACHE")]
    pub cache_to: Vec<String>,
    /// Push candidates to the registry, under names that users never pull
    #[arg(long, requires = "registry")]
    pub push: bool,
    /// Where to push
    #[arg(long, value_name = "REGISTRY", requires = "push")]
    pub registry: Option<String>,
    /// How layers are compressed [default: the catalog's base.layers]
    #[arg(long, value_enum, value_name = "NAME")]
    pub compression: Option<Compression>,
    /// Push even without a clean commit; a label says so
    #[arg(long)]
    pub allow_dirty: bool,
    /// Carry on with the other images when one fails or cannot be built here
    #[arg(long)]
    pub keep_going: bool,
    /// GPUs for the smoke test, in docker syntax: all, 0,1, …
    #[arg(long, value_name = "GPUS")]
    pub gpus: Option<String>,
    /// Fail if the smoke test finds no GPU
    #[arg(long)]
    pub require_gpu: bool,
}

/// `bench`.
#[derive(Args, Debug)]
pub struct Bench {
    /// The release [default: the catalog's defaults.release]
    #[arg(long, value_name = "NAME")]
    pub release: Option<String>,
    /// How many times to measure; the median counts
    #[arg(long, value_name = "NUMBER", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    pub runs: u32,
    /// What to compare ours with; repeatable [default: both]
    #[arg(long, value_enum, value_name = "WAY")]
    pub against: Vec<Way>,
    /// Only this case, and `cold`, which every case needs first; repeatable [default: all]
    #[arg(long, value_enum, value_name = "CASE")]
    pub case: Vec<Case>,
    /// Another version of a small package in the base, for the case `wheel`; without it, that case is skipped
    #[arg(long, value_name = "NAME==VERSION", value_parser = pin)]
    pub wheel: Option<(String, String)>,
}

/// How bases are made.
#[derive(Args, Clone, Copy, Debug, Default)]
pub struct Base {
    /// How bases are made: by this program straight from wheels, or from their Dockerfiles
    #[arg(long, value_enum, default_value_t, value_name = "WAY", env = "XTASK_BASE_BUILDER")]
    pub base_builder: BaseBuilder,
    /// How layers made from wheels are compressed
    #[arg(long, value_enum, default_value_t, value_name = "CODEC")]
    pub codec: Codec,
}

/// What makes a base.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum BaseBuilder {
    /// Layers straight from wheels; the Dockerfile where the root is a registry image
    #[default]
    Layers,
    /// The Dockerfile in `images/<release>/base`: slower; the reference
    Dockerfile,
}

/// How layers made from wheels are compressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Codec {
    /// Reuse the compressed bytes of the wheels: nothing is compressed again
    #[default]
    Splice,
    /// zstd, once per wheel: smaller, for publishing
    Zstd,
}

/// `smoke`.
#[derive(Args, Debug)]
#[command(group(clap::ArgGroup::new("what").args(["variant", "image"]).required(true)))]
pub struct Smoke {
    /// A variant of the default release, as built here
    #[arg(long, short = 'V', value_name = "NAME")]
    pub variant: Option<String>,
    /// Any image
    #[arg(long, value_name = "REFERENCE")]
    pub image: Option<String>,
    /// The variant's release [default: the catalog's defaults.release]
    #[arg(long, value_name = "NAME", conflicts_with = "image")]
    pub release: Option<String>,
    /// GPUs to attach, in docker syntax: all, 0,1, …
    #[arg(long, value_name = "GPUS")]
    pub gpus: Option<String>,
    /// Fail if there is no usable GPU
    #[arg(long)]
    pub require_gpu: bool,
    /// Pull this commit's candidate from this registry
    #[arg(long, value_name = "REGISTRY", conflicts_with = "image")]
    pub registry: Option<String>,
    /// Attach the report to the image in its registry
    #[arg(long)]
    pub attach: bool,
}

/// A requirement of one version.
fn pin(text: &str) -> Result<(String, String), String> {
    match text.split_once("==") {
        Some((name, version)) if !name.is_empty() && !version.is_empty() => {
            Ok((name.to_owned(), version.to_owned()))
        }
        _ => Err("write it as numpy==2.4.6".to_owned()),
    }
}

/// A platform as the catalog names it.
pub(super) fn platform(text: &str) -> Result<Platform, String> {
    let known = || Platform::ALL.iter().map(|p| p.as_str()).collect::<Vec<_>>().join(", ");
    Platform::ALL
        .iter()
        .copied()
        .find(|p| p.as_str() == text)
        .ok_or_else(|| format!("known platforms: {}", known()))
}
