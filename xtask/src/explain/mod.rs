//! What a combination of versions, GPU and driver comes to, and what to take instead. Pure: asked and facts in,
//! an [`Answer`] out; [`words`] says it to a person.

mod asked;
mod combination;
mod here;
mod image;
mod machine;
#[cfg(test)]
mod tests;
mod words;

pub use asked::Asked;
pub use here::here;
pub use machine::Ours;
pub use words::{ours_words, words};

use crate::catalog::{Catalog, Platform};
use crate::compat::{Compat, Torch, Version};
use crate::resolve::Resolved;
use anyhow::Result;
use asked::Question;
use combination::Combination;
use image::ImageAnswer;
use machine::{DriverAnswer, GpuAnswer, Machine, Pair};
use serde::Serialize;
use std::collections::BTreeMap;

/// The three answers, the best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// A primary source tells that it is there and fits.
    KnownGood,
    /// Nobody verified it.
    Unknown,
    /// It is not there, or does not fit.
    KnownBad,
}

/// Everything that is known about what was asked.
#[derive(Debug, Serialize)]
pub struct Answer {
    /// The worst of the verdicts below; that on the combination counts only where a torch or a CUDA was named.
    pub verdict: Verdict,
    platform: Platform,
    combination: Combination,
    torch: Option<TorchAnswer>,
    driver: DriverAnswer,
    gpu: Option<GpuAnswer>,
    image: Option<ImageAnswer>,
    runs_here: Option<RunsHere>,
    /// Releases of this catalog, where a GPU or a driver was given.
    pub ours: Vec<Ours>,
}

/// What is known about the torch in question.
#[derive(Debug, Serialize)]
struct TorchAnswer {
    version: String,
    builds: Vec<BuildAnswer>,
    /// By platform: a CUDA build, or `cpu`.
    pypi: BTreeMap<Platform, String>,
    python: Vec<String>,
    glibc: Option<String>,
    torchvision: Vec<String>,
    torchaudio: Vec<String>,
    triton: String,
}

/// One CUDA build of it.
#[derive(Debug, Serialize)]
struct BuildAnswer {
    name: String,
    cuda: Option<String>,
    toolkit: Option<String>,
    cudnn: Option<String>,
    verified: bool,
    note: Option<String>,
}

/// What runs on the GPU, driver, platform and Python that were given.
#[derive(Debug, Serialize)]
struct RunsHere {
    /// Builds of the torch in question.
    same_torch: Vec<String>,
    newest: Option<Pair>,
    oldest: Option<Pair>,
}

/// Answers a question; `ours` are the catalog's own releases.
///
/// Errors: a [`crate::problem::Refusal`] with every value that cannot be read, each at its flag.
pub fn explain(
    asked: &Asked,
    catalog: &Catalog,
    ours: &BTreeMap<String, Resolved>,
    compat: &Compat,
) -> Result<Answer> {
    let question = Question::read(asked, compat)?;
    let machine = Machine::new(&question, catalog, compat);
    let torch = torch_of(&question, compat);
    let combination = Combination::new(&question, machine.platform, torch, catalog, compat);
    let driver = machine.driver(&combination);
    let gpu = machine.gpu(torch, &combination);
    let image = question.image.as_ref().map(|tag| ImageAnswer::new(tag, question.driver.as_ref(), compat));
    let verdicts = [
        question.is_about_versions.then_some(combination.verdict),
        driver.verdict,
        gpu.as_ref().map(|it| it.verdict),
        image.as_ref().map(|it| it.verdict),
    ];
    Ok(Answer {
        verdict: verdicts.into_iter().flatten().max().unwrap_or(Verdict::Unknown),
        platform: machine.platform,
        torch: torch.map(|(version, torch)| TorchAnswer::new(version, torch, machine.platform, compat)),
        runs_here: machine.is_given().then(|| RunsHere::new(&machine, torch)),
        ours: if machine.is_given() { machine.ours(ours) } else { Vec::new() },
        combination,
        driver,
        gpu,
        image,
    })
}

/// The torch that is meant; where none is named the newest that has the CUDA, else the newest.
fn torch_of<'a>(question: &Question, compat: &'a Compat) -> Option<(&'a Version, &'a Torch)> {
    if let Some(torch) = &question.torch {
        return compat.newest_of(torch);
    }
    let cuda = question.cuda.as_deref()?;
    let mut newest_first = compat.torch.facts.iter().rev();
    newest_first
        .find(|(_, torch)| compat.has_build(torch, cuda))
        .or_else(|| compat.torch.facts.last_key_value())
}

impl TorchAnswer {
    fn new(version: &Version, torch: &Torch, platform: Platform, compat: &Compat) -> TorchAnswer {
        let build = |(name, build): (&String, &crate::compat::Build)| BuildAnswer {
            name: name.clone(),
            cuda: compat.version_of(name).map(str::to_owned),
            toolkit: build.toolkit.clone(),
            cudnn: build.cudnn.clone(),
            verified: build.verified,
            note: build.note.clone(),
        };
        TorchAnswer {
            version: version.to_string(),
            builds: torch.builds.iter().map(build).collect(),
            pypi: torch.wheels.iter().map(|(platform, wheels)| (*platform, wheels.pypi.clone())).collect(),
            python: torch.pythons(platform).to_vec(),
            glibc: torch.wheels.get(&platform).map(|wheels| wheels.glibc.clone()),
            torchvision: torch.torchvision.clone(),
            torchaudio: torch.torchaudio.clone(),
            triton: torch.triton.clone(),
        }
    }
}

impl RunsHere {
    fn new(machine: &Machine, torch: Option<(&Version, &Torch)>) -> RunsHere {
        let same = torch.map(|(_, torch)| machine.builds(torch).map(str::to_owned).collect());
        RunsHere { same_torch: same.unwrap_or_default(), newest: machine.newest(), oldest: machine.oldest() }
    }
}
