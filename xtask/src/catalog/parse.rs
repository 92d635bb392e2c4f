//! Text to [`Catalog`]: every entry is read on its own, so that one mistake does not hide the next.

use super::outline::{Outline, place};
use super::{
    Base, Catalog, Companion, Containers, Defaults, Publish, Release, Root, Service, Toolkit, User, Variant,
    check,
};
use crate::problem::{Id, Problem, Refusal, nearest};
use serde::de::DeserializeOwned;
use serde_yaml::{Mapping, Value};
use std::collections::BTreeMap;
use std::path::Path;

/// The sections of the file; anything else at the top is a misspelling.
const SECTIONS: &[&str] = &[
    "project",
    "repository",
    "title",
    "licenses",
    "defaults",
    "roots",
    "base",
    "toolkits",
    "releases",
    "variants",
    "services",
    "containers",
    "companions",
    "tags",
    "publish",
    "user",
];

pub(super) fn read(file: &Path) -> anyhow::Result<Catalog> {
    match std::fs::read_to_string(file) {
        Ok(text) => parse(file, &text),
        Err(error) => crate::problem::refuse(
            Id::Schema,
            file.display().to_string(),
            error.to_string(),
            "give the catalog with --file, or run from the folder that holds variants.yaml",
        ),
    }
}

pub(super) fn parse(file: &Path, text: &str) -> anyhow::Result<Catalog> {
    let outline = Outline::read(text).map_err(|(at, message)| {
        let cure = "correct the YAML at this position";
        Refusal::from(Problem::new(Id::Schema, place(file, at, &[]), message, cure))
    })?;
    let mut problems = Vec::new();
    duplicates(file, &outline, &mut problems);
    let numbers = versions_as_numbers(file, &outline);
    // serde would call the same places a wrong type, or end at the first duplicate: say it once, in our words.
    let broken = !problems.is_empty() || !numbers.is_empty();
    problems.extend(numbers);
    if broken {
        return Err(Refusal(problems).into());
    }
    let root: Value = serde_yaml::from_str(text).map_err(|error| {
        let cure = "correct the YAML at this position";
        Refusal::from(Problem::new(Id::Schema, file.display().to_string(), error.to_string(), cure))
    })?;
    let mut reader =
        Reader { file, outline: &outline, root: root.as_mapping().cloned().unwrap_or_default(), problems };
    let catalog = reader.catalog();
    let mut problems = reader.problems;
    match catalog {
        Some(catalog) => {
            problems.extend(check::check(&catalog));
            crate::problem::all_or_nothing(problems)?;
            Ok(catalog)
        }
        None => Err(Refusal(problems).into()),
    }
}

fn duplicates(file: &Path, outline: &Outline, problems: &mut Vec<Problem>) {
    for (path, at) in &outline.duplicates {
        let path: Vec<&str> = path.iter().map(String::as_str).collect();
        let key = path.last().copied().unwrap_or_default();
        problems.push(Problem::new(
            Id::Schema,
            place(file, *at, &path),
            format!("`{key}` appears here a second time"),
            "keep one of the two",
        ));
    }
}

/// Versions that YAML reads as numbers: `2.10` would become 2.1. A field that is meant to be a number is an integer.
fn versions_as_numbers(file: &Path, outline: &Outline) -> Vec<Problem> {
    let mut problems = Vec::new();
    let is_float = |text: &str| text.contains('.') && text.parse::<f64>().is_ok();
    for (path, field) in outline.fields() {
        let path: Vec<&str> = path.iter().map(String::as_str).collect();
        let mut report = |text: &str, what: &str| {
            problems.push(Problem::new(
                Id::VersionNotText,
                place(file, field.at, &path),
                format!("the {what} `{text}` is a number without quotes; YAML reads it as {}", float(text)),
                format!("write \"{text}\""),
            ));
        };
        match (&field.scalar, path.last()) {
            (Some((text, true)), _) if is_float(text) => report(text, "version"),
            (_, Some(key)) if field.plain_key && is_float(key) => report(key, "name"),
            (
                Some((text, true)),
                Some(&("torch" | "torchvision" | "torchaudio" | "cuda" | "cudnn" | "python")),
            ) if text.parse::<i64>().is_ok() => {
                report(text, "version");
            }
            _ => {}
        }
    }
    problems
}

fn float(text: &str) -> String {
    text.parse::<f64>().map_or_else(|_| text.to_owned(), |number| number.to_string())
}

struct Reader<'a> {
    file: &'a Path,
    outline: &'a Outline,
    root: Mapping,
    problems: Vec<Problem>,
}

impl Reader<'_> {
    fn catalog(&mut self) -> Option<Catalog> {
        self.unknown_sections();
        let project = self.section("project");
        let repository = self.section("repository");
        let title = self.section("title");
        let licenses = self.section("licenses");
        let defaults = self.section::<Defaults>("defaults");
        let roots = self.entries::<Root>("roots");
        let base = self.section::<Base>("base");
        let toolkits = self.entries::<Toolkit>("toolkits");
        let releases = self.entries::<Release>("releases");
        let variants = self.entries::<Variant>("variants");
        let services = self.entries::<Service>("services");
        let containers = self.section::<Containers>("containers");
        let companions = self.entries::<Companion>("companions");
        let tags = self.section("tags");
        let publish = self.section::<Publish>("publish");
        let user = self.section::<User>("user");
        Some(Catalog {
            file: self.file.to_owned(),
            outline: self.outline.clone(),
            project: project?,
            repository: repository?,
            title: title?,
            licenses: licenses?,
            defaults: defaults?,
            roots: roots?,
            base: base?,
            toolkits: toolkits?,
            releases: releases?,
            variants: variants?,
            services: services?,
            containers: containers?,
            companions: companions?,
            tags: tags?,
            publish: publish?,
            user: user?,
        })
    }

    fn unknown_sections(&mut self) {
        let keys: Vec<String> = self.root.keys().filter_map(|key| key.as_str().map(str::to_owned)).collect();
        for key in keys.iter().filter(|key| !SECTIONS.contains(&key.as_str())) {
            self.unknown_key(&[key], key, SECTIONS);
        }
    }

    fn unknown_key(&mut self, path: &[&str], key: &str, known: &[&str]) {
        let cure = match nearest(key, known.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("known here: {}", known.join(", ")),
        };
        let place = self.key_place(path);
        self.problems.push(Problem::new(Id::Schema, place, format!("there is no field `{key}`"), cure));
    }

    fn key_place(&self, path: &[&str]) -> String {
        self.outline.place(self.file, path)
    }

    fn section<T: DeserializeOwned>(&mut self, name: &str) -> Option<T> {
        match self.root.get(name).cloned() {
            Some(value) => self.entry(&[name], value),
            None => {
                self.problems.push(Problem::new(
                    Id::Schema,
                    self.file.display().to_string(),
                    format!("the section `{name}` is missing"),
                    format!("add `{name}:`"),
                ));
                None
            }
        }
    }

    /// A section of named entries; `None` if any of them is wrong, after all of them were read.
    fn entries<T: DeserializeOwned>(&mut self, name: &str) -> Option<BTreeMap<String, T>> {
        let section: BTreeMap<String, Value> = self.section(name)?;
        let read: Vec<(String, Option<T>)> = section
            .into_iter()
            .map(|(key, value)| {
                let entry = self.entry(&[name, &key], value);
                (key, entry)
            })
            .collect();
        read.into_iter().map(|(key, entry)| Some((key, entry?))).collect()
    }

    fn entry<T: DeserializeOwned>(&mut self, path: &[&str], value: Value) -> Option<T> {
        let error = match serde_path_to_error::deserialize::<_, T>(value) {
            Ok(entry) => return Some(entry),
            Err(error) => error,
        };
        let inner: Vec<String> = error
            .path()
            .iter()
            .filter_map(|segment| match segment {
                serde_path_to_error::Segment::Map { key } => Some(key.clone()),
                serde_path_to_error::Segment::Seq { index } => Some(index.to_string()),
                _ => None,
            })
            .collect();
        let full: Vec<&str> = path.iter().copied().chain(inner.iter().map(String::as_str)).collect();
        let message = error.inner().to_string();
        match unknown_field(&message) {
            Some((key, known)) => {
                self.unknown_key(&full, &key, &known.iter().map(String::as_str).collect::<Vec<_>>())
            }
            None => {
                let place = self.key_place(&full);
                let cure = cure_of(&message);
                self.problems.push(Problem::new(Id::Schema, place, message, cure));
            }
        }
        None
    }
}

/// serde's own sentence on an unknown field, taken apart: the field and the known ones.
fn unknown_field(message: &str) -> Option<(String, Vec<String>)> {
    let mut quoted = message.strip_prefix("unknown field ")?.split('`').skip(1).step_by(2).map(str::to_owned);
    Some((quoted.next()?, quoted.collect()))
}

fn cure_of(message: &str) -> String {
    match message.strip_prefix("missing field `").and_then(|rest| rest.split('`').next()) {
        Some(field) => format!("add `{field}:`"),
        None => "write a value of the kind that is expected here".to_owned(),
    }
}
