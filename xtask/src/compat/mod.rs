//! Which versions go together, on what: the facts of `data/compat.yaml` as types, and questions about them.

mod gpu;
mod query;
#[cfg(test)]
mod tests;
mod version;

pub use gpu::{Gpu, Sm};
pub use query::Known;
pub use version::Version;

use crate::catalog::Platform;
use anyhow::{Context, Result, anyhow};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::LazyLock;

const TEXT: &str = include_str!("../../data/compat.yaml");

static BUNDLED: LazyLock<Result<Compat, String>> =
    LazyLock::new(|| Compat::parse(TEXT).map_err(|error| format!("{error:#}")));

/// Every fact.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Compat {
    /// What the facts were read from, by the short name that groups use.
    pub sources: BTreeMap<String, String>,
    /// The CUDA builds by PyTorch's name: `cu132`.
    pub cuda: Group<Cuda>,
    /// Versions of cuDNN by their major.
    pub cudnn: Group<Vec<String>>,
    /// Which driver is needed.
    pub drivers: Drivers,
    /// GPUs by name.
    pub gpus: Group<Gpu>,
    /// Words in names of GPUs that do not tell them apart.
    pub gpu_words: Vec<String>,
    /// Forms of tags by repository.
    pub image_tags: Group<ImageTags>,
    /// The month in which standard support of a release of Ubuntu ended.
    pub ubuntu_ended: Group<String>,
    /// The nvidia/cuda images by toolkit.
    pub nvidia_cuda_images: Group<CudaImage>,
    /// Every version of torch.
    pub torch: Group<Torch, Version>,
}

/// Facts of one kind, and what they were read from.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, bound(deserialize = "K: Ord + Deserialize<'de>, T: Deserialize<'de>"))]
pub struct Group<T, K: Ord = String> {
    /// Keys of [`Compat::sources`].
    pub source: Vec<String>,
    /// The facts by name.
    pub facts: BTreeMap<K, T>,
}

/// What the name of a CUDA build stands for.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cuda {
    /// `13.2`, as `torch.version.cuda` tells it.
    pub version: String,
    /// `13`
    pub major: String,
}

/// Which driver is needed, Linux x86_64.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Drivers {
    /// The lowest driver for any CUDA of a major, by the major.
    pub minor_version_compatibility: Group<String>,
    /// The lowest driver that knows GPUs of a generation at all, by the generation.
    pub gpu: Group<String>,
    /// The driver that came with a toolkit, by the toolkit.
    pub toolkit: Group<String>,
    /// Older driver branches that an nvidia/cuda image starts on, by its toolkit.
    pub image_require: Group<Vec<String>>,
}

/// The nvidia/cuda images of one toolkit.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CudaImage {
    /// NVIDIA's word for the images with cuDNN, where there are any.
    pub flavor: Option<String>,
    /// The cuDNN in them.
    pub cudnn: Option<String>,
    /// Releases of Ubuntu that they exist for.
    pub ubuntu: Vec<String>,
}

/// How the tags of a repository are read.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImageTags {
    /// The flavors that there are.
    pub flavors: Vec<String>,
    /// Forms with fields in braces, `{toolkit}-{flavor}`, the first that fits.
    pub tags: Vec<String>,
}

/// One version of torch.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Torch {
    /// The day of its release, ISO 8601.
    pub released: String,
    /// Versions of torchvision that go with it.
    pub torchvision: Vec<String>,
    /// Versions of torchaudio that go with it.
    pub torchaudio: Vec<String>,
    /// What it asks of triton: `~=3.9.0`.
    pub triton: String,
    /// The NCCL that the build on PyPI pins.
    pub nccl: String,
    /// What PyPI has.
    pub wheels: BTreeMap<Platform, Wheels>,
    /// The CUDA builds by name.
    pub builds: BTreeMap<String, Build>,
}

/// What PyPI has of one version of torch for one platform.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wheels {
    /// A key of [`Torch::builds`], or `cpu`.
    pub pypi: String,
    /// The lowest glibc that the wheels load on.
    pub glibc: String,
    /// The interpreters they are built for: `3.13`, `3.13t` without the lock.
    pub python: Vec<String>,
}

/// One CUDA build of one version of torch.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Build {
    /// The CUDA toolkit its libraries are of: `13.2.2`.
    pub toolkit: Option<String>,
    /// The cuDNN it pins.
    pub cudnn: Option<String>,
    /// Keys of [`Compat::sources`].
    pub source: Vec<String>,
    /// Whether a primary source tells that it exists.
    #[serde(default = "yes")]
    pub verified: bool,
    /// Why it is not verified.
    pub note: Option<String>,
    /// What its kernels are compiled for: `sm_75` and so on. A platform that is missing is not known.
    pub arch: BTreeMap<Platform, Vec<String>>,
}

fn yes() -> bool {
    true
}

impl Compat {
    /// The facts that this program was built with, parsed once.
    ///
    /// Errors: the file does not fit the types; a test sees to it that it does.
    pub fn bundled() -> Result<&'static Compat> {
        BUNDLED.as_ref().map_err(|error| anyhow!("{error}"))
    }

    fn parse(text: &str) -> Result<Compat> {
        serde_yaml::from_str(text).context("reading the bundled data/compat.yaml")
    }
}
