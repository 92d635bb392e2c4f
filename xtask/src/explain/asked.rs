//! The words of the command line as a question: every value is read once, and refused at its flag.

use super::image::Tag;
use crate::catalog::Platform;
use crate::compat::{Compat, Sm, Version};
use crate::problem::{Id, Problem, all_or_nothing};
use anyhow::Result;

/// What was asked, as it was written.
#[derive(Clone, Debug, Default)]
#[allow(missing_docs)] // The flags of the same names say what each is.
pub struct Asked {
    pub torch: Option<String>,
    pub cuda: Option<String>,
    pub python: Option<String>,
    pub platform: Option<Platform>,
    pub gpu: Option<String>,
    pub sm: Option<String>,
    pub driver: Option<String>,
    pub image: Option<String>,
}

/// What was asked, read.
#[derive(Debug)]
pub(super) struct Question {
    /// A version or a line of torch, without a local suffix.
    pub torch: Option<String>,
    /// A CUDA build, a CUDA version or a toolkit.
    pub cuda: Option<String>,
    /// The cuDNN that the tag of an image promises.
    pub cudnn: Option<String>,
    pub python: Option<String>,
    pub platform: Option<Platform>,
    pub card: Option<Card>,
    pub driver: Option<Version>,
    pub image: Option<Tag>,
    /// Whether a torch or a CUDA build was named; the toolkit of an image alone asks for none.
    pub is_about_versions: bool,
}

/// The GPU in question.
#[derive(Debug)]
pub(super) struct Card {
    /// Its name, where one was given.
    pub name: Option<String>,
    pub sm: Sm,
    pub generation: Option<String>,
    /// The one platform that has it.
    pub platform: Option<Platform>,
    /// Whether it runs only code for exactly its own compute capability.
    pub exact: bool,
}

type Read<T> = Result<T, Problem>;

impl Question {
    /// Reads every value.
    ///
    /// Errors: a refusal with every value that is malformed, `E_SCHEMA`, or names nothing known, `E_UNKNOWN_NAME`.
    pub fn read(asked: &Asked, compat: &Compat) -> Result<Question> {
        let mut problems = Vec::new();
        let image = keep(asked.image.as_deref().map(|text| Tag::read(text, compat)), &mut problems);
        let torch = keep(asked.torch.as_deref().map(torch), &mut problems);
        let (torch, suffix) = torch.map_or((None, None), |(torch, suffix)| (Some(torch), suffix));
        let cuda = keep(asked.cuda.as_deref().map(|text| cuda(text, compat)), &mut problems);
        let named = |field: &str| image.as_ref().and_then(|tag| tag.parts.get(field)).cloned();
        let of_toolkit = |toolkit: String| match compat.build_of_toolkit(&toolkit) {
            Some(name) => name.to_owned(),
            None => toolkit,
        };
        let cuda = keep(one("--torch", suffix, "--cuda", cuda).transpose(), &mut problems);
        let is_about_versions = torch.is_some() || cuda.is_some() || named("torch").is_some();
        let of_image = named("cuda").or_else(|| named("toolkit").map(of_toolkit));
        let question = Question {
            torch: keep(one("--torch", torch, "--image", named("torch")).transpose(), &mut problems),
            cuda: keep(one("--cuda", cuda, "--image", of_image).transpose(), &mut problems),
            cudnn: named("cudnn"),
            python: keep(asked.python.as_deref().map(python), &mut problems),
            platform: asked.platform,
            card: keep(card(asked, compat), &mut problems),
            driver: keep(asked.driver.as_deref().map(|text| driver(text, asked, compat)), &mut problems),
            image,
            is_about_versions,
        };
        all_or_nothing(problems)?;
        Ok(question)
    }
}

/// What was read; a problem goes to the others.
fn keep<T>(read: Option<Read<T>>, problems: &mut Vec<Problem>) -> Option<T> {
    read?.map_err(|problem| problems.push(problem)).ok()
}

/// The value that one of two places names; both may name the same.
fn one(place: &str, value: Option<String>, other: &str, of_other: Option<String>) -> Read<Option<String>> {
    match (value, of_other) {
        (Some(value), Some(of_other)) if value != of_other => Err(Problem::new(
            Id::Schema,
            place,
            format!("`{value}` is not the `{of_other}` of {other}"),
            format!("leave one of them out of {place} and {other}"),
        )),
        (value, of_other) => Ok(value.or(of_other)),
    }
}

fn malformed(flag: &str, text: &str, kind: &str, cure: &str) -> Problem {
    Problem::new(Id::Schema, flag, format!("`{text}` is not {kind}"), cure)
}

/// A version or line, and the local suffix: `2.9.1` and `cu128` of `2.9.1+cu128`.
fn torch(text: &str) -> Read<(String, Option<String>)> {
    let (version, suffix) = text.split_once('+').map_or((text, None), |(it, suffix)| (it, Some(suffix)));
    match Version::parse(version) {
        Some(_) => Ok((version.to_owned(), suffix.map(str::to_owned))),
        None => {
            Err(malformed("--torch", text, "a version of torch", "write 2.9.1, or 2.9 for its newest patch"))
        }
    }
}

fn cuda(text: &str, compat: &Compat) -> Read<String> {
    let is_number = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_digit());
    let is_build = compat.version_of(text).is_some() || text.strip_prefix("cu").is_some_and(is_number);
    match is_build || (text.contains('.') && Version::parse(text).is_some()) {
        true => Ok(text.to_owned()),
        false => Err(malformed("--cuda", text, "a CUDA version", "write 12.8, or cu128 as PyTorch names it")),
    }
}

fn python(text: &str) -> Read<String> {
    let version = text.strip_suffix('t').unwrap_or(text);
    match Version::parse(version).is_some() && version.matches('.').count() == 1 {
        true => Ok(text.to_owned()),
        false => {
            Err(malformed("--python", text, "major.minor of Python", "write 3.13, or 3.13t without the lock"))
        }
    }
}

/// A driver's version; its branch alone where no limit lies within that. An image starts by the whole version.
fn driver(text: &str, asked: &Asked, compat: &Compat) -> Read<Version> {
    let refused = |kind: &str| {
        malformed("--driver", text, kind, "write the whole number that `nvidia-smi` shows, e.g. 535.104.05")
    };
    let version = Version::parse(text).ok_or_else(|| refused("the version of a driver"))?;
    if text.contains('.') {
        return Ok(version);
    }
    let (majors, gpus) = (&compat.drivers.minor_version_compatibility.facts, &compat.drivers.gpu.facts);
    let mut limits = majors.values().chain(gpus.values());
    match limits.find(|limit| limit.split('.').next() == Some(text)) {
        Some(limit) => Err(refused(&format!("enough of a driver's version: {limit} is a limit within it"))),
        None if asked.image.is_some() => Err(refused("enough of a driver's version for an image")),
        None => Ok(version),
    }
}

/// The GPU that `--gpu` or `--sm` names.
fn card(asked: &Asked, compat: &Compat) -> Option<Read<Card>> {
    if let Some(text) = &asked.sm {
        let sm = Sm::parse(text).or_else(|| Sm::of_arch(text));
        let cure = "write 8.6; `nvidia-smi --query-gpu=compute_cap --format=csv` shows it";
        return Some(match sm {
            Some(sm) => {
                let generation = compat.generation(sm).map(str::to_owned);
                Ok(Card { name: None, sm, generation, platform: None, exact: false })
            }
            None => Err(malformed("--sm", text, "a compute capability", cure)),
        });
    }
    let text = asked.gpu.as_deref()?;
    let Some((name, gpu)) = compat.gpu(text) else {
        let near = compat.nearest_gpu(text).map(|near| format!("did you mean `{near}`? Or "));
        let cure = format!("{}give its compute capability: --sm 8.6", near.unwrap_or_default());
        return Some(Err(Problem::new(Id::UnknownName, "--gpu", format!("there is no GPU `{text}`"), cure)));
    };
    Some(Ok(Card {
        name: Some(name.to_owned()),
        sm: gpu.sm,
        generation: Some(gpu.generation.clone()),
        platform: gpu.platform,
        exact: gpu.tegra,
    }))
}
