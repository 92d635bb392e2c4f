//! References of well-known images, taken apart by the forms in the table, and what is known of such tags.

use super::Verdict;
use crate::compat::{Compat, CudaImage, ImageTags, Version};
use crate::problem::{Id, Problem};
use serde::Serialize;
use std::collections::BTreeMap;

/// A reference, taken apart.
#[derive(Debug)]
pub(super) struct Tag {
    reference: String,
    /// A key of [`Compat::image_tags`].
    repository: String,
    /// The form that fits.
    form: String,
    /// What stands in the form's fields, by field.
    pub parts: BTreeMap<String, String>,
}

/// What is known of an image.
#[derive(Debug, Serialize)]
pub(super) struct ImageAnswer {
    pub verdict: Verdict,
    pub reference: String,
    pub parts: BTreeMap<String, String>,
    pub remarks: Vec<Remark>,
    /// The nearest tag of the table, where this one is not good.
    pub nearest: Option<String>,
    /// Whether an nvidia/cuda image starts on the given driver; `None` where nobody knows.
    pub starts: Option<bool>,
}

/// Something to know about a tag.
#[derive(Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Remark {
    /// Fewer than the three numbers that such tags begin with.
    ShortToolkit { toolkit: String },
    /// A toolkit whose images the table does not have.
    ToolkitNotKnown { toolkit: String },
    /// A flavor that never existed; those that do.
    NoFlavor { flavor: String, known: Vec<String> },
    /// Images of this toolkit have another word for cuDNN, or none.
    NoCudnnFlavor { flavor: String, right: Option<String> },
    /// Images of this toolkit are for other releases of Ubuntu.
    NoUbuntu { ubuntu: String, known: Vec<String> },
    /// A system other than Ubuntu, on which the table says nothing.
    SystemNotKnown { system: String },
    /// Standard support of the release of Ubuntu has ended.
    UbuntuEnded { ubuntu: String, month: String },
}

impl Remark {
    fn verdict(&self) -> Verdict {
        match self {
            Remark::UbuntuEnded { .. } => Verdict::KnownGood,
            Remark::ToolkitNotKnown { .. } | Remark::SystemNotKnown { .. } => Verdict::Unknown,
            _ => Verdict::KnownBad,
        }
    }
}

impl Tag {
    /// Takes a reference apart.
    ///
    /// Errors: `E_SCHEMA` for a reference without a tag or with a tag of no known form, `E_UNKNOWN_NAME` for a
    /// repository that the table does not have.
    pub fn read(reference: &str, compat: &Compat) -> Result<Tag, Problem> {
        let problem =
            |id, what: &str, cure| Problem::new(id, "--image", format!("`{reference}`{what}"), cure);
        let known = &compat.image_tags.facts;
        let named = reference.split('@').next().unwrap_or_default();
        let tagged = named.rsplit_once(':').filter(|(_, tag)| !tag.contains('/'));
        let Some((path, tag)) = tagged else {
            return Err(problem(Id::Schema, " has no tag", "write repository:tag".to_owned()));
        };
        let is = |repository: &String| path == repository || path.ends_with(&format!("/{repository}"));
        let Some((repository, ImageTags { tags, .. })) = known.iter().find(|(it, _)| is(it)) else {
            let names = known.keys().cloned().collect::<Vec<_>>().join(", ");
            let cure = format!("known: {names}; or ask with --torch and --cuda");
            return Err(problem(Id::UnknownName, ": nothing is known about this repository", cure));
        };
        let mut fitting = tags.iter().filter_map(|form| Some((form, fields(form, tag)?)));
        let Some((form, parts)) = fitting.next() else {
            let cure = format!("tags of {repository} read {}", tags.join(" or "));
            return Err(problem(Id::Schema, ": the tag says no version", cure));
        };
        let (reference, repository) = (reference.to_owned(), repository.clone());
        Ok(Tag { reference, repository, form: form.clone(), parts })
    }

    fn part(&self, field: &str) -> Option<&str> {
        self.parts.get(field).map(String::as_str)
    }
}

/// What stands in the fields of a form, `{toolkit}-{flavor}`, in a text; `None` where it does not fit.
fn fields(form: &str, text: &str) -> Option<BTreeMap<String, String>> {
    let (mut form, mut text, mut parts) = (form, text, BTreeMap::new());
    while let Some((before, rest)) = form.split_once('{') {
        text = text.strip_prefix(before)?;
        let (name, after) = rest.split_once('}')?;
        let literal = after.split('{').next().unwrap_or_default();
        let end = if literal.is_empty() { text.len() } else { text.find(literal)? };
        let value = text.get(..end).filter(|value| !value.is_empty() && !value.contains('-'))?;
        parts.insert(name.to_owned(), value.to_owned());
        (form, text) = (after, text.get(end..)?);
    }
    (form == text).then_some(parts)
}

impl ImageAnswer {
    /// What is known of a tag, and of a given driver under it.
    pub fn new(tag: &Tag, driver: Option<&Version>, compat: &Compat) -> ImageAnswer {
        let mut remarks = Vec::new();
        let flavors = &compat.image_tags.facts[&tag.repository].flavors;
        let flavor = tag.part("flavor").unwrap_or_default();
        if !flavors.iter().any(|it| it == flavor) {
            remarks.push(Remark::NoFlavor { flavor: flavor.to_owned(), known: flavors.clone() });
        }
        let toolkit = tag.part("toolkit");
        let near = toolkit.and_then(|toolkit| nearest(toolkit, compat));
        if let (Some(toolkit), Some(near)) = (toolkit, near) {
            remarks.extend(remarks_on(tag, toolkit, near, compat));
        }
        let verdict = remarks.iter().map(Remark::verdict).max().unwrap_or(Verdict::KnownGood);
        let good = verdict == Verdict::KnownGood;
        ImageAnswer {
            verdict,
            reference: tag.reference.clone(),
            parts: tag.parts.clone(),
            remarks,
            nearest: near.filter(|_| !good).map(|near| rewritten(tag, near, flavors)),
            starts: driver.and_then(|driver| starts(toolkit?, driver, compat)),
        }
    }
}

/// The toolkit of the table that is meant, or the nearest below or above it.
fn nearest<'a>(toolkit: &str, compat: &'a Compat) -> Option<(&'a str, &'a CudaImage)> {
    let known = || compat.nvidia_cuda_images.facts.iter().map(|(name, image)| (name.as_str(), image));
    let build = compat.build_of_toolkit(toolkit);
    let same_cuda = known().find(|(name, _)| build.is_some() && compat.build_of_toolkit(name) == build);
    let wanted = Version::parse(toolkit);
    let below = || known().rfind(|(name, _)| Version::parse(name) <= wanted);
    known().find(|(name, _)| *name == toolkit).or(same_cuda).or_else(below).or_else(|| known().next())
}

/// What is to be said about a tag of nvidia/cuda; `near` is the image of its toolkit, or the nearest.
fn remarks_on(tag: &Tag, toolkit: &str, near: (&str, &CudaImage), compat: &Compat) -> Vec<Remark> {
    let mut remarks = Vec::new();
    let (near, image) = near;
    match near == toolkit {
        true => {}
        false if toolkit.matches('.').count() < 2 => {
            remarks.push(Remark::ShortToolkit { toolkit: toolkit.to_owned() });
        }
        false => remarks.push(Remark::ToolkitNotKnown { toolkit: toolkit.to_owned() }),
    }
    let wrong_cudnn = tag.part("cudnn_flavor").filter(|it| image.flavor.as_deref() != Some(it));
    if let (Some(flavor), true) = (wrong_cudnn, near == toolkit) {
        remarks.push(Remark::NoCudnnFlavor { flavor: flavor.to_owned(), right: image.flavor.clone() });
    }
    if let Some(ubuntu) = tag.part("ubuntu") {
        let ubuntu = ubuntu.to_owned();
        if near == toolkit && !image.ubuntu.contains(&ubuntu) {
            remarks.push(Remark::NoUbuntu { ubuntu: ubuntu.clone(), known: image.ubuntu.clone() });
        }
        let ended = compat.ubuntu_ended.facts.get(&ubuntu).cloned();
        remarks.extend(ended.map(|month| Remark::UbuntuEnded { ubuntu, month }));
    }
    let system = tag.part("system").map(str::to_owned);
    remarks.extend(system.map(|system| Remark::SystemNotKnown { system }));
    remarks
}

/// The reference with what the table has in place of what it has not.
fn rewritten(tag: &Tag, (toolkit, image): (&str, &CudaImage), flavors: &[String]) -> String {
    let newest = image.ubuntu.last().map(String::as_str).unwrap_or_default();
    let flavor = tag.part("flavor").filter(|it| flavors.iter().any(|known| known == it));
    let ubuntu = tag.part("ubuntu").filter(|it| image.ubuntu.iter().any(|known| known == it));
    let form = tag.form.replace("{system}", "ubuntu{ubuntu}");
    let form = match &image.flavor {
        Some(cudnn) => form.replace("{cudnn_flavor}", cudnn),
        None => form.replace("{cudnn_flavor}-", ""),
    };
    let flavor = flavor.or(flavors.last().map(String::as_str)).unwrap_or_default();
    let form = form.replace("{toolkit}", toolkit).replace("{flavor}", flavor);
    format!("{}:{}", tag.repository, form.replace("{ubuntu}", ubuntu.unwrap_or(newest)))
}

/// Whether an nvidia/cuda image starts on a driver: the toolkit's own or a newer one, or one of the older branches.
fn starts(toolkit: &str, driver: &Version, compat: &Compat) -> Option<bool> {
    let own = Version::parse(compat.drivers.toolkit.facts.get(toolkit)?)?;
    let branches = compat.drivers.image_require.facts.get(toolkit)?;
    let text = driver.to_string();
    let branch = text.split('.').next().unwrap_or_default();
    Some(*driver >= own || branches.iter().any(|it| it == branch))
}
