//! Catalog to facts: what each release is made of, or why it cannot be. Pure: the bundled table is the only source.

mod ask;
mod refusals;
#[cfg(test)]
mod tests;

use crate::catalog::{Catalog, Platform};
use crate::compat::{Compat, Known};
use crate::problem::{Problem, all_or_nothing};
use anyhow::Result;
use ask::Ask;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Everything that follows from a release's few words. Every version is text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Resolved {
    /// The release's name: `2.15`.
    pub release: String,
    /// The public version of torch: `2.15.0`.
    pub torch: String,
    /// The public version of torchvision.
    pub torchvision: String,
    /// The public version of torchaudio, where the release has one.
    pub torchaudio: Option<String>,
    /// The CUDA build: `cu132`.
    pub cuda_build: String,
    /// major.minor of CUDA, as `torch.version.cuda` tells it: `13.2`.
    pub cuda: String,
    /// The CUDA toolkit: `13.2.2`.
    pub cuda_toolkit: String,
    /// cuDNN: `9.26.0.51`.
    pub cudnn: String,
    /// The major of cuDNN: `9`.
    pub cudnn_major: String,
    /// major.minor of the root's interpreter: `3.13`.
    pub python: String,
    /// Where the wheels of the trio come from.
    pub channel: Channel,
    /// What torch asks of triton: `~=3.9.0`.
    pub triton: String,
    /// The lowest driver, by the minor version compatibility of the CUDA major: `580.65.06`.
    pub driver_floor: String,
    /// The catalog's platforms.
    pub platforms: BTreeMap<Platform, PlatformFacts>,
    /// Facts that nobody verified and that were allowed all the same; the labels of the image tell them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unverified: Vec<String>,
}

impl Resolved {
    /// The trio as exact requirements: `torch==2.15.0`.
    pub fn trio(&self) -> Vec<String> {
        let two = [("torch", Some(&self.torch)), ("torchvision", Some(&self.torchvision))];
        let all = two.into_iter().chain([("torchaudio", self.torchaudio.as_ref())]);
        all.filter_map(|(name, version)| Some(format!("{name}=={}", version?))).collect()
    }

    /// What the kernels are compiled for on a platform; empty where nobody knows.
    pub fn arch_list(&self, platform: Platform) -> &[String] {
        self.platforms.get(&platform).map_or(&[], |facts| &facts.arch_list)
    }

    /// cuDNN as `torch.backends.cudnn.version()` tells it, which is three numbers of the wheel's four: `9.26.0`.
    pub fn cudnn_at_run_time(&self) -> String {
        self.cudnn.split('.').take(3).collect::<Vec<_>>().join(".")
    }
}

/// Where the wheels of the trio come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Channel {
    /// PyPI serves this very build for every platform.
    Pypi,
    /// Only the PyTorch index has it.
    Index,
}

/// What differs from platform to platform.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlatformFacts {
    /// What the kernels are compiled for, ascending: `sm_75`. Empty where nobody knows.
    pub arch_list: Vec<String>,
}

/// Resolves every release of the catalog.
///
/// `allow_unverified` takes what the table holds for possible but nobody verified; it is noted in the result.
///
/// Errors: one [`crate::problem::Refusal`] with every problem of every release, each at its field:
/// `E_NO_WHEEL_CHANNEL`, `E_TRIO_MISMATCH`, `E_PYTHON`, `E_PLATFORM`.
pub fn resolve(
    catalog: &Catalog,
    compat: &Compat,
    allow_unverified: bool,
) -> Result<BTreeMap<String, Resolved>> {
    let mut resolved = BTreeMap::new();
    let mut problems = Vec::new();
    for name in catalog.releases.keys() {
        let mut judge = Judge::new(allow_unverified);
        match Ask::new(catalog, compat, name) {
            Ok(ask) => resolved.extend(one(&ask, &mut judge).map(|facts| (name.clone(), facts))),
            Err(problem) => judge.problems.push(problem),
        }
        problems.append(&mut judge.problems);
    }
    all_or_nothing(problems)?;
    Ok(resolved)
}

/// One release; the judge has heard of every problem when it is `None`.
fn one(ask: &Ask, judge: &mut Judge) -> Option<Resolved> {
    let known = judge.hear(ask.build());
    for package in ask.companions() {
        judge.hear(ask.companion(package));
    }
    judge.hear(ask.python());
    judge.hear(ask.cudnn(known));
    let known = known?;
    for (field, suffix) in ask.suffixes() {
        judge.hear(ask.suffix(field, suffix, known));
    }
    let mut platforms = BTreeMap::new();
    for (i, platform) in ask.catalog.platforms(ask.release).iter().enumerate() {
        if let Some(arch_list) = judge.hear(ask.platform(i, *platform, known)) {
            platforms.insert(*platform, PlatformFacts { arch_list });
        }
    }
    judge.problems.is_empty().then(|| assemble(ask, known, platforms, std::mem::take(&mut judge.unverified)))
}

fn assemble(
    ask: &Ask,
    known: Known,
    platforms: BTreeMap<Platform, PlatformFacts>,
    unverified: Vec<String>,
) -> Resolved {
    let pypi = platforms.keys().all(|platform| ask.torch.on_pypi(*platform) == Some(known.name));
    let (_, root) = ask.catalog.root_of(ask.release);
    Resolved {
        release: ask.name.to_owned(),
        torch: ask.version.to_string(),
        torchvision: public(&ask.release.torchvision).to_owned(),
        torchaudio: ask.release.torchaudio.as_deref().map(|text| public(text).to_owned()),
        cuda_build: known.name.to_owned(),
        cuda: known.cuda.to_owned(),
        cuda_toolkit: known.toolkit.to_owned(),
        cudnn: known.cudnn.to_owned(),
        cudnn_major: known.cudnn_major.to_owned(),
        python: root.python.clone(),
        channel: if pypi { Channel::Pypi } else { Channel::Index },
        triton: ask.torch.triton.clone(),
        driver_floor: known.driver_floor.to_owned(),
        platforms,
        unverified,
    }
}

/// A version without its local suffix: `2.9.1` of `2.9.1+cu128`.
fn public(version: &str) -> &str {
    version.split_once('+').map_or(version, |(public, _)| public)
}

/// The three answers to "does this go together?".
enum Answer<T> {
    /// Known to be good.
    Good(T),
    /// Known to be bad.
    Bad(Problem),
    /// Not known: taken with a note where that is allowed, a problem otherwise.
    Unknown { taken: T, note: String, problem: Problem },
}

/// Hears every answer on one release.
struct Judge {
    allow_unverified: bool,
    problems: Vec<Problem>,
    unverified: Vec<String>,
}

impl Judge {
    fn new(allow_unverified: bool) -> Judge {
        Judge { allow_unverified, problems: Vec::new(), unverified: Vec::new() }
    }

    /// What may be taken; every problem is kept.
    fn hear<T>(&mut self, answer: Answer<T>) -> Option<T> {
        match answer {
            Answer::Good(taken) => Some(taken),
            Answer::Unknown { taken, note, .. } if self.allow_unverified => {
                self.unverified.push(note);
                Some(taken)
            }
            Answer::Bad(problem) | Answer::Unknown { problem, .. } => {
                self.problems.push(problem);
                None
            }
        }
    }
}
