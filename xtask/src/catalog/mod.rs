//! `variants.yaml` as checked types: the only hand-written choices of the project.

mod check;
mod containers;
mod outline;
mod parse;
mod root;
mod variant;

pub use check::{TAG_FIELDS, tag_fields};
pub use containers::{Companion, Containers, Service};
pub use root::{Distribution, Root, mirrored, names_registry};
pub use variant::{Budget, Toolkit, Tools, Variant};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

/// Everything `variants.yaml` says, checked.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Catalog {
    /// Where it was read from.
    #[serde(skip)]
    pub file: PathBuf,
    /// Positions of every field, for problems that are found later.
    #[serde(skip)]
    pub(crate) outline: outline::Outline,
    /// The project's name.
    pub project: String,
    /// The image repository, without a registry.
    pub repository: String,
    /// `org.opencontainers.image.title`.
    pub title: String,
    /// SPDX expression of the project's own files.
    pub licenses: String,
    /// What commands use when nothing else is named.
    pub defaults: Defaults,
    /// Root file systems by name.
    pub roots: BTreeMap<String, Root>,
    /// What every base holds besides the trio.
    pub base: Base,
    /// nvcc and headers by CUDA build, e.g. `cu132`.
    pub toolkits: BTreeMap<String, Toolkit>,
    /// PyTorch lines by name, e.g. `2.15`.
    pub releases: BTreeMap<String, Release>,
    /// What images are for, by name.
    pub variants: BTreeMap<String, Variant>,
    /// What listens inside containers, by name.
    pub services: BTreeMap<String, Service>,
    /// How containers are started.
    pub containers: Containers,
    /// Third-party images used beside ours, by name.
    pub companions: BTreeMap<String, Companion>,
    /// Templates of the tags, the most precise first.
    pub tags: Vec<String>,
    /// Names that only publishing creates.
    pub publish: Publish,
    /// The user inside the images.
    pub user: User,
}

/// What commands use when nothing else is named.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Defaults {
    /// A key of `releases`.
    pub release: String,
    /// A key of `roots`.
    pub root: String,
    /// Platforms to lock and build.
    pub platforms: Vec<Platform>,
}

/// A platform that images exist for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub enum Platform {
    /// 64-bit x86.
    #[serde(rename = "linux/amd64")]
    Amd64,
    /// 64-bit Arm.
    #[serde(rename = "linux/arm64")]
    Arm64,
}

impl Platform {
    /// Every platform, for messages.
    pub const ALL: &[Platform] = &[Platform::Amd64, Platform::Arm64];

    /// The name that the OCI specification and docker use.
    pub fn as_str(self) -> &'static str {
        match self {
            Platform::Amd64 => "linux/amd64",
            Platform::Arm64 => "linux/arm64",
        }
    }

    /// Debian's and OCI's name of the architecture.
    pub fn debian(self) -> &'static str {
        match self {
            Platform::Amd64 => "amd64",
            Platform::Arm64 => "arm64",
        }
    }

    /// The kernel's name of the architecture, as wheels use it.
    pub fn machine(self) -> &'static str {
        match self {
            Platform::Amd64 => "x86_64",
            Platform::Arm64 => "aarch64",
        }
    }

    /// The platform that this program runs on.
    pub fn host() -> Platform {
        if cfg!(target_arch = "aarch64") { Platform::Arm64 } else { Platform::Amd64 }
    }
}

impl fmt::Display for Platform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What every base holds besides the trio.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Base {
    /// Packages from the root's package manager.
    pub packages: Vec<String>,
    /// Python packages besides the trio.
    pub requirements: Vec<String>,
    /// How wheels are spread over layers.
    pub layers: Layers,
}

/// How wheels are spread over layers.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Layers {
    /// A wheel bigger than this, in megabytes (10^6 bytes), gets a layer of its own, if it is not NVIDIA's.
    pub own_above_mb: u64,
    /// The same for NVIDIA's wheels.
    pub nvidia_own_above_mb: u64,
    /// NVIDIA's other wheels share layers up to this size, in megabytes.
    pub nvidia_shared_mb: u64,
    /// A layer above this size, in megabytes, is reported with its biggest wheel.
    pub budget_mb: u64,
    /// How layers are compressed, where the engine offers a choice.
    pub compression: Compression,
    /// The compression level.
    pub level: u32,
}

/// Compression of layers, by BuildKit's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum Compression {
    Gzip,
    Zstd,
}

impl Compression {
    /// BuildKit's name.
    pub fn as_str(self) -> &'static str {
        match self {
            Compression::Gzip => "gzip",
            Compression::Zstd => "zstd",
        }
    }
}

/// A PyTorch line: the trio and the CUDA build of its wheels.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Release {
    /// Version of torch.
    pub torch: String,
    /// Version of torchvision.
    pub torchvision: String,
    /// Version of torchaudio, if the line has one.
    #[serde(default)]
    pub torchaudio: Option<String>,
    /// The wheel channel: `cu132`, or the CUDA version it stands for, `13.2`.
    pub cuda: String,
    /// The cuDNN major version you expect; optional, only checked.
    #[serde(default)]
    pub cudnn: Option<String>,
    /// A key of `roots`, if not the default.
    #[serde(default)]
    pub root: Option<String>,
    /// Its platforms, if not the default ones.
    #[serde(default)]
    pub platforms: Vec<Platform>,
    /// The size budget of its base.
    #[serde(default)]
    pub budget: Option<Budget>,
}

/// Names that only publishing creates, besides the tags.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Publish {
    /// Template of the immutable tag; it contains `{date}`.
    pub immutable: String,
    /// Templates of additional tags for the default release.
    #[serde(default)]
    pub default: Vec<String>,
}

/// The user inside the images.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct User {
    /// Login name.
    pub name: String,
    /// Numeric id; the group is 0, so that any other uid of group 0 can write the same places.
    pub uid: u32,
    /// The work folder.
    pub workdir: String,
}

impl Catalog {
    /// Reads and checks a file.
    ///
    /// Errors: a [`crate::problem::Refusal`] with every problem found, each with its line and column.
    pub fn read(file: &Path) -> anyhow::Result<Catalog> {
        parse::read(file)
    }

    /// Parses and checks a text; `file` is its name in messages.
    #[cfg(test)]
    pub fn parse(file: &str, text: &str) -> anyhow::Result<Catalog> {
        parse::parse(Path::new(file), text)
    }

    /// The folder of the catalog, which every path of the project is relative to; empty for the current one.
    pub fn folder(&self) -> PathBuf {
        self.file.parent().unwrap_or(Path::new("")).to_owned()
    }

    /// Names of the releases by their numbers, so that 2.15 comes before 2.9.
    pub fn releases_newest_first(&self) -> Vec<&str> {
        let numbers = |name: &str| name.split('.').map_while(|part| part.parse().ok()).collect::<Vec<u32>>();
        let mut names: Vec<&str> = self.releases.keys().map(String::as_str).collect();
        names.sort_by_key(|name| std::cmp::Reverse(numbers(name)));
        names
    }

    /// Names of the variants as the file has them: what stands on another comes after it there, for people.
    pub fn variants_in_order(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.variants.keys().map(String::as_str).collect();
        names.sort_by_key(|name| self.outline.at(&["variants", name]).line);
        names
    }

    /// The name of a label of the project's own: `pytorch-cuda-images.torch`.
    pub fn label(&self, key: &str) -> String {
        format!("{}.{key}", self.project)
    }

    /// The platform whose facts stand in files that exist once for all platforms.
    pub fn first_platform(&self) -> Platform {
        self.defaults.platforms.first().copied().unwrap_or(Platform::Amd64)
    }

    /// `variants.yaml:12:11: releases."2.9".cuda`, for a problem with that field.
    pub fn place(&self, path: &[&str]) -> String {
        self.outline.place(&self.file, path)
    }

    /// The release with that name, or a refusal that lists the known ones.
    pub fn release(&self, name: &str) -> anyhow::Result<&Release> {
        self.releases.get(name).ok_or_else(|| {
            let known = self.releases.keys().map(String::as_str);
            let problem = crate::problem::unknown_name("--release", "release", name, known);
            crate::problem::Refusal::from(problem).into()
        })
    }

    /// The variant with that name, or a refusal that lists the known ones.
    pub fn variant(&self, name: &str) -> anyhow::Result<&Variant> {
        self.variants.get(name).ok_or_else(|| {
            let known = self.variants.keys().map(String::as_str);
            let problem = crate::problem::unknown_name("--variant", "variant", name, known);
            crate::problem::Refusal::from(problem).into()
        })
    }

    /// The tiers of a variant above its base, the lowest first.
    pub fn tiers<'a>(&'a self, variant: &'a str) -> Vec<(&'a str, &'a Variant)> {
        let step = |name: &'a str| self.variants.get_key_value(name).map(|(name, it)| (name.as_str(), it));
        // `check` refused a catalog in which a variant stands on itself.
        let mut tiers: Vec<_> = std::iter::successors(step(variant), |(_, it)| step(&it.from)).collect();
        tiers.reverse();
        tiers
    }

    /// The platforms of a release.
    pub fn platforms<'a>(&'a self, release: &'a Release) -> &'a [Platform] {
        if release.platforms.is_empty() { &self.defaults.platforms } else { &release.platforms }
    }

    /// The root that a release stands on: its name and what it is.
    pub fn root_of<'a>(&'a self, release: &'a Release) -> (&'a str, &'a Root) {
        let name = release.root.as_ref().unwrap_or(&self.defaults.root);
        // `check` refused a catalog whose releases name an unknown root.
        (name, &self.roots[name])
    }
}
