//! Which images, and what is done with them.

use crate::bench::{Case, Way};
use crate::catalog::{Compression, Platform};
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// Which images.
#[derive(Args, Clone, Debug, Default)]
pub struct Select {
    /// The variant; may be given several times
    #[arg(long, short = 'V', value_name = "NAME", required_unless_present = "all")]
    pub variant: Vec<String>,
    /// Every variant, of every release unless --release names some
    #[arg(long, conflicts_with = "variant")]
    pub all: bool,
    /// The release; may be given several times [default: defaults.release of the catalog]
    #[arg(long, value_name = "NAME")]
    pub release: Vec<String>,
    /// The root file system [default: the release's, or defaults.root]
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
    /// Compare with what this registry has [default: with what the engine has]
    #[arg(long, value_name = "REGISTRY")]
    pub registry: Option<String>,
}

/// `matrix`.
#[derive(Args, Debug)]
pub struct Matrix {
    /// Only what this registry does not have [default: everything]
    #[arg(long, value_name = "REGISTRY")]
    pub registry: Option<String>,
}

/// `build`.
#[derive(Args, Debug, Default)]
pub struct Build {
    /// Which images
    #[command(flatten)]
    pub select: Select,
    /// Refuse a root whose Debian packages differ from the lock's
    #[arg(long)]
    pub locked: bool,
    /// Build again although nothing changed
    #[arg(long)]
    pub force: bool,
    /// Build again every step of the variants, whatever is in the engine's cache
    #[arg(long)]
    pub no_cache: bool,
    /// An apt sources file to bootstrap from, e.g. one that names a snapshot mirror [default: the host's mirrors]
    #[arg(long, value_name = "FILE", env = "XTASK_APT_SOURCES")]
    pub apt_sources: Option<PathBuf>,
    /// CA certificates for the build steps (PEM); they do not stay in the image [default: SSL_CERT_FILE, PIP_CERT, …]
    #[arg(long, value_name = "FILE")]
    pub ca_cert: Option<PathBuf>,
    /// A mirror of the registry that images without a host in their name come from, e.g. mirror.example.org/hub
    #[arg(long, value_name = "PREFIX", env = "XTASK_MIRROR")]
    pub mirror: Option<String>,
    /// What the bases are made of
    #[command(flatten)]
    pub base: Base,
    /// Make the bases alone, as OCI layouts; of them, also those for a platform that this machine cannot run
    #[arg(long, conflicts_with_all = ["push", "builder"])]
    pub base_only: bool,
    /// The root as an OCI layout, for a platform that this machine cannot run [default: it is bootstrapped]
    #[arg(long, value_name = "FOLDER", requires = "base_only")]
    pub root_layout: Option<PathBuf>,
    /// The builder instance of buildx
    #[arg(long, value_name = "NAME")]
    pub builder: Option<String>,
    /// Finished steps to take: a repository, or buildx's own words (`type=…`); may be given several times
    #[arg(long, value_name = "CACHE")]
    pub cache_from: Vec<String>,
    /// Where to keep finished steps: a repository, or buildx's own words; may be given several times
    #[arg(long, value_name = "CACHE")]
    pub cache_to: Vec<String>,
    /// Push candidates to the registry, under names that no user takes
    #[arg(long, requires = "registry")]
    pub push: bool,
    /// Where to push
    #[arg(long, value_name = "REGISTRY", requires = "push")]
    pub registry: Option<String>,
    /// How layers are compressed [default: base.layers of the catalog]
    #[arg(long, value_enum, value_name = "NAME")]
    pub compression: Option<Compression>,
    /// Push what is built from no commit, or beside one; its label says so
    #[arg(long)]
    pub allow_dirty: bool,
    /// Go on with the other images when one fails or cannot be built here
    #[arg(long)]
    pub keep_going: bool,
    /// GPUs for the smoke test, as docker takes them
    #[arg(long, value_name = "GPUS")]
    pub gpus: Option<String>,
    /// Fail when the smoke test finds no GPU
    #[arg(long)]
    pub require_gpu: bool,
}

/// `bench`.
#[derive(Args, Debug)]
pub struct Bench {
    /// The release [default: defaults.release of the catalog]
    #[arg(long, value_name = "NAME")]
    pub release: Option<String>,
    /// How often everything is measured; the median counts
    #[arg(long, value_name = "NUMBER", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    pub runs: u32,
    /// What ours is held against; may be given several times [default: both]
    #[arg(long, value_enum, value_name = "WAY")]
    pub against: Vec<Way>,
    /// Only this case and `cold`, which comes before each; may be given several times [default: all]
    #[arg(long, value_enum, value_name = "CASE")]
    pub case: Vec<Case>,
    /// Another version of a small package of the base, for the case `wheel`; without one, that is left out
    #[arg(long, value_name = "NAME==VERSION", value_parser = pin)]
    pub wheel: Option<(String, String)>,
}

/// How bases are made.
#[derive(Args, Clone, Copy, Debug, Default)]
pub struct Base {
    /// What makes the bases: this program, straight from wheels, or their Dockerfiles
    #[arg(long, value_enum, default_value_t, value_name = "WAY", env = "XTASK_BASE_BUILDER")]
    pub base_builder: BaseBuilder,
    /// How layers made from wheels are compressed
    #[arg(long, value_enum, default_value_t, value_name = "CODEC")]
    pub codec: Codec,
}

/// What makes a base.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum BaseBuilder {
    /// Layers straight from wheels; on a root that is an image of a registry, the Dockerfile
    #[default]
    Layers,
    /// The Dockerfile in `images/<release>/base`: the reference, and slower
    Dockerfile,
}

/// How layers made from wheels are compressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Codec {
    /// As the wheels are: nothing is compressed again
    #[default]
    Splice,
    /// zstd, once for every wheel: smaller, for publishing
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
    /// The release of the variant [default: defaults.release of the catalog]
    #[arg(long, value_name = "NAME", conflicts_with = "image")]
    pub release: Option<String>,
    /// GPUs to attach, as docker takes them: all, 0,1, …
    #[arg(long, value_name = "GPUS")]
    pub gpus: Option<String>,
    /// Fail when there is no usable GPU
    #[arg(long)]
    pub require_gpu: bool,
    /// Pull the variant's candidate of this commit from there
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
