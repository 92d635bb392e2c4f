//! Whether the versions go together: the question is put to `resolve` as a release, so both always say the same.

use super::Verdict;
use super::asked::Question;
use crate::catalog::{Catalog, Platform, Release};
use crate::compat::{Compat, Torch, Version};
use crate::problem::{Problem, Refusal};
use crate::resolve::{Resolved, resolve};
use serde::Serialize;

/// Whether the versions go together.
#[derive(Debug, Serialize)]
pub(super) struct Combination {
    pub verdict: Verdict,
    /// The torch, as far as it is known: `2.9.1`.
    pub torch: Option<String>,
    /// Otherwise it is the newest that has the CUDA.
    pub torch_was_named: bool,
    /// The version of CUDA, or what was asked for where that means none: `11.8`.
    pub cuda: Option<String>,
    /// The build that this means, where the torch has it: `cu128`.
    pub cuda_build: Option<String>,
    /// The version of CUDA or, better, the toolkit of the build.
    pub toolkit: Option<String>,
    /// The Python that was asked for.
    pub python: Option<String>,
    pub why: Vec<String>,
    pub instead: Vec<String>,
    /// The nearest torch on either side that has this CUDA.
    pub older_torch: Option<String>,
    /// As `older_torch`.
    pub newer_torch: Option<String>,
}

impl Combination {
    /// The verdict on a question about `torch`, which is `None` where nothing is known about it.
    pub fn new(
        question: &Question,
        platform: Platform,
        torch: Option<(&Version, &Torch)>,
        catalog: &Catalog,
        compat: &Compat,
    ) -> Combination {
        let cuda = question.cuda.clone().or_else(|| served(torch?.1, platform));
        let wanted = cuda.as_deref().unwrap_or_default();
        let (verdict, problems) = judge(question, wanted, platform, torch, catalog, compat);
        let build = torch.and_then(|(_, torch)| compat.build(torch, wanted));
        let sides = torch.map(|(version, _)| compat.around(version, |torch| compat.has_build(torch, wanted)));
        let (older, newer) = sides.unwrap_or_default();
        let version = compat.build_of_toolkit(wanted).and_then(|name| compat.version_of(name));
        let toolkit = build.and_then(|(_, build)| build.toolkit.as_deref()).or(version);
        Combination {
            verdict,
            torch: torch.map(|(version, _)| version.to_string()).or_else(|| question.torch.clone()),
            cuda_build: build.map(|(name, _)| name.to_owned()),
            toolkit: toolkit.map(str::to_owned).or_else(|| cuda.clone()),
            python: question.python.clone(),
            why: problems.iter().map(|problem| problem.what.clone()).collect(),
            instead: problems.into_iter().map(|problem| problem.cure).collect(),
            older_torch: older.map(Version::to_string),
            newer_torch: newer.map(Version::to_string),
            torch_was_named: question.torch.is_some(),
            cuda: cuda.as_deref().map(|text| compat.version_of(text).unwrap_or(text).to_owned()),
        }
    }
}

/// The CUDA build that PyPI serves for a platform, or for another where it serves none there.
fn served(torch: &Torch, platform: Platform) -> Option<String> {
    let platforms = [platform].into_iter().chain(Platform::ALL.iter().copied());
    let mut served = platforms.filter_map(|platform| torch.on_pypi(platform));
    served.find(|name| torch.builds.contains_key(*name)).map(str::to_owned)
}

/// What `resolve` says of it: good, or the problems; unknown where it could be allowed, or nothing is known of the torch.
fn judge(
    question: &Question,
    cuda: &str,
    platform: Platform,
    torch: Option<(&Version, &Torch)>,
    catalog: &Catalog,
    compat: &Compat,
) -> (Verdict, Vec<Problem>) {
    let release = Release {
        torch: torch.map(|(it, _)| it.to_string()).or_else(|| question.torch.clone()).unwrap_or_default(),
        torchvision: torch.and_then(|(_, torch)| torch.torchvision.last().cloned()).unwrap_or_default(),
        torchaudio: None,
        cuda: cuda.to_owned(),
        cudnn: question.cudnn.clone(),
        root: None,
        platforms: Vec::new(),
        budget: None,
    };
    let pythons = torch.map(|(_, torch)| torch.pythons(platform)).unwrap_or_default();
    let python = question.python.clone().or_else(|| pythons.last().cloned()).unwrap_or_default();
    let resolved = |allow_unverified| one(&release, &python, platform, catalog, compat, allow_unverified);
    match (resolved(false), torch) {
        (Ok(_), _) => (Verdict::KnownGood, Vec::new()),
        (Err(problems), None) => (Verdict::Unknown, problems),
        (Err(problems), Some(_)) if resolved(true).is_ok() => (Verdict::Unknown, problems),
        (Err(problems), Some(_)) => (Verdict::KnownBad, problems),
    }
}

/// One release in place of the catalog's, for one platform and one Python.
fn one(
    release: &Release,
    python: &str,
    platform: Platform,
    catalog: &Catalog,
    compat: &Compat,
    allow_unverified: bool,
) -> Result<Vec<Resolved>, Vec<Problem>> {
    let mut catalog = catalog.clone();
    catalog.releases = [(release.torch.clone(), release.clone())].into();
    catalog.defaults.platforms = vec![platform];
    catalog.roots.values_mut().for_each(|root| root.python = python.to_owned());
    match resolve(&catalog, compat, allow_unverified) {
        Ok(resolved) => Ok(resolved.into_values().collect()),
        Err(error) => Err(error.downcast::<Refusal>().map(|refusal| refusal.0).unwrap_or_default()),
    }
}
