//! The bake file as the rules see it: what each target gives its Dockerfile, and on which line.

use super::bases::pinned;
use super::dockerfile::Dockerfile;
use super::{Finding, arguments, secrets};
use crate::problem::Id;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A target of the bake file.
pub struct Target {
    name: String,
    /// Its Dockerfile.
    pub dockerfile: PathBuf,
    /// Addresses by the names under which its Dockerfile knows them.
    pub contexts: BTreeMap<String, String>,
    args: Vec<String>,
    labels: Vec<String>,
}

/// The targets of a bake file; none where it is not one, which other checks tell.
pub fn targets(text: &str) -> Vec<Target> {
    let bake: Value = serde_json::from_str(text).unwrap_or_default();
    let all = bake["target"].as_object().into_iter().flatten();
    all.map(|(name, target)| Target::new(name, target)).collect()
}

impl Target {
    fn new(name: &str, target: &Value) -> Target {
        let keys = |field: &str| -> Vec<String> {
            target[field].as_object().into_iter().flatten().map(|(key, _)| key.clone()).collect()
        };
        let contexts = target["contexts"].as_object().into_iter().flatten();
        let context = target["context"].as_str().unwrap_or_default();
        Target {
            name: name.to_owned(),
            dockerfile: Path::new(context).join(target["dockerfile"].as_str().unwrap_or("Dockerfile")),
            contexts: contexts
                .map(|(name, address)| (name.clone(), address.as_str().unwrap_or_default().to_owned()))
                .collect(),
            args: keys("args"),
            labels: keys("labels"),
        }
    }

    /// What is wrong with what this target gives; its Dockerfile is at hand unless that could not be parsed.
    pub fn findings(&self, text: &str, dockerfile: Option<&Dockerfile>) -> Vec<Finding> {
        let line = |section: &str, key: &str| line_of(text, &["target", &self.name, section, key]);
        let mut found = Vec::new();
        for arg in &self.args {
            let declared = dockerfile.is_none_or(|file| arguments::declares(file, arg));
            if !declared && !arguments::is_predefined(arg) {
                found.push(Finding {
                    id: Id::Lint,
                    line: line("args", arg),
                    what: format!("`{}` gives `{arg}`, which no stage of its Dockerfile declares", self.name),
                    cure: format!("write `ARG {arg}` in the stage that needs it, or give it no longer"),
                });
            }
        }
        for (section, keys) in [("args", &self.args), ("labels", &self.labels)] {
            for key in keys.iter().filter(|key| secrets::is_secret(key)) {
                found.push(secrets::finding(line(section, key), section, key));
            }
        }
        for (name, address) in &self.contexts {
            // A mirror may stand before the name; an address that is a variable as a whole is the caller's.
            let image = address.strip_prefix("docker-image://").map(|image| match image.strip_prefix("${") {
                Some(rest) => rest.split_once('}').map_or("", |(_, image)| image),
                None => image,
            });
            let image = image.filter(|image| !image.is_empty());
            if let Some(Err(what)) = image.map(pinned) {
                let cure = "write tag and digest: `docker-image://NAME:TAG@sha256:…`".to_owned();
                found.push(Finding { id: Id::BaseUnpinned, line: line("contexts", name), what, cure });
            }
        }
        found
    }
}

/// The line of a key, found by the keys that it stands in; every key of a rendered file has a line of its own.
fn line_of(text: &str, path: &[&str]) -> usize {
    let mut keys = path.iter().map(|key| format!("\"{key}\":"));
    let mut wanted = keys.next();
    for (number, line) in (1..).zip(text.lines()) {
        if wanted.as_ref().is_some_and(|key| line.trim_start().starts_with(key)) {
            wanted = keys.next();
            if wanted.is_none() {
                return number;
            }
        }
    }
    1
}
