//! Variants of the catalog, and what they bring: packages, a toolkit, a weight.

use super::root::reference;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What an image is for.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Variant {
    /// One sentence for lists and labels.
    pub about: String,
    /// The tier it builds on: `base` or another variant.
    pub from: String,
    /// Whether it has nvcc and headers for its release's CUDA.
    #[serde(default)]
    pub toolkit: bool,
    /// Whether it also has that CUDA's debuggers and profilers.
    #[serde(default)]
    pub cuda_tools: bool,
    /// Distribution packages that it adds.
    #[serde(default)]
    pub packages: Vec<String>,
    /// Python packages that it adds.
    #[serde(default)]
    pub requirements: Vec<String>,
    /// The default command; if empty, that of the tier below.
    #[serde(default)]
    pub command: Vec<String>,
    /// Its services, keys of `services`; if empty, those of the tier below.
    #[serde(default)]
    pub services: Vec<String>,
    /// Whether it gets GPUs by default.
    #[serde(default = "yes")]
    pub gpus: bool,
    /// Linux capabilities that its containers keep; all others are dropped.
    #[serde(default)]
    pub capabilities: Vec<String>,
    /// Programs that must start, in this variant and in those that stand on it, and with which argument.
    #[serde(default)]
    pub programs: BTreeMap<String, String>,
    /// Groups of smoke checks that it must pass beside those of every image, as must those that stand on it.
    #[serde(default)]
    pub smoke: Vec<String>,
    /// Programs that must not be in it.
    #[serde(default)]
    pub absent: Vec<String>,
    /// How much it may add to the tier below.
    #[serde(default)]
    pub budget: Option<Budget>,
}

fn yes() -> bool {
    true
}

/// nvcc and the headers of one CUDA build: from wheels and packages of the root's distribution, or from an image.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Toolkit {
    /// Python packages; torch's own pins decide the versions of those that are in the base.
    #[serde(default)]
    pub requirements: Vec<String>,
    /// Distribution packages to install.
    #[serde(default)]
    pub packages: Vec<String>,
    /// Packages of the distribution that are only unpacked, beside the image, without what they depend on.
    #[serde(default)]
    pub unpack: Vec<String>,
    /// Components of the distribution that these packages are in, beside `main`.
    #[serde(default)]
    pub components: Vec<String>,
    /// Repository and tag of an image to copy the folder `home` from.
    #[serde(default)]
    pub image: Option<String>,
    /// Digest of the image.
    #[serde(default)]
    #[schemars(regex(pattern = "^sha256:[0-9a-f]{64}$"))]
    pub digest: Option<String>,
    /// `CUDA_HOME`; `{python}` stands for the interpreter's major.minor.
    pub home: String,
    /// Environment variables that builds with it need.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// What is there for looking at programs while they run, for the variants with `cuda_tools: true`.
    #[serde(default)]
    pub tools: Tools,
}

/// Debuggers and profilers of one CUDA build.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tools {
    /// Python packages.
    #[serde(default)]
    pub requirements: Vec<String>,
    /// Packages of the distribution, in the toolkit's components.
    #[serde(default)]
    pub packages: Vec<String>,
    /// Programs that must start where they are installed, and with which argument.
    #[serde(default)]
    pub programs: BTreeMap<String, String>,
}

impl Toolkit {
    /// `repository:tag@digest`, where it comes from an image.
    pub fn reference(&self) -> Option<String> {
        reference(self.image.as_ref(), self.digest.as_ref())
    }
}

/// The size budget of a tier, in megabytes (10^6 bytes).
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Budget {
    /// Compressed, as it is pulled.
    pub compressed_mb: u64,
    /// Unpacked, as the engine stores it.
    pub unpacked_mb: u64,
}
