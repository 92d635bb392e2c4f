//! Sizes and times of every image that there has been: a line of JSON each, which lies beside the pages.

use super::{Figures, Package};
use crate::problem::{Id, Problem, Refusal};
use anyhow::Result;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Its name in the folder of the site.
pub const FILE: &str = "history.jsonl";

/// One image of the past.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// The release's name.
    pub release: String,
    /// The variant's name.
    pub variant: String,
    /// Its digest.
    pub digest: String,
    /// When it was built or proved, in seconds since 1970.
    pub built: u64,
    /// How long the command took that built it.
    pub seconds: Option<f64>,
    /// Bytes as it is sent.
    pub compressed: Option<u64>,
    /// Bytes as it lies in an engine.
    pub unpacked: Option<u64>,
    /// Packages that are not what they were in the image before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<Change>,
    /// Its packages by name and origin; only the newest line of an image has them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub packages: BTreeMap<String, String>,
}

/// A package that is another, new or gone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// Name and origin.
    pub package: String,
    /// Its version before; none where it is new.
    pub from: Option<String>,
    /// Its version now; none where it is gone.
    pub to: Option<String>,
}

/// Every image that there has been, the oldest first.
#[derive(Clone, Debug, Default)]
pub struct History(Vec<Point>);

impl History {
    /// Reads the lines of a file.
    ///
    /// Errors: `E_SCHEMA` for a line that is not a point, with its number.
    pub fn parse(text: &str) -> Result<History> {
        let point = |(i, line): (usize, &str)| {
            let cure = "remove the line, or restore the file";
            let refused = |error: serde_json::Error| {
                Problem::new(Id::Schema, format!("{FILE}:{}", i + 1), error.to_string(), cure)
            };
            serde_json::from_str(line).map_err(|error| Refusal::from(refused(error)))
        };
        Ok(History(text.lines().enumerate().map(point).collect::<Result<_, Refusal>>()?))
    }

    /// The file's text.
    pub fn text(&self) -> Result<String> {
        let line = |point| Ok(serde_json::to_string(point)? + "\n");
        self.0.iter().map(line).collect()
    }

    /// The points of one image, the oldest first.
    pub fn of(&self, release: &str, variant: &str) -> Vec<&Point> {
        self.0.iter().filter(|it| it.release == release && it.variant == variant).collect()
    }

    /// Adds an image, unless it is the newest already.
    pub fn add(&mut self, (release, variant): (&str, &str), image: &Figures, packages: &[Package]) {
        let packages: BTreeMap<String, String> =
            packages.iter().map(|it| (format!("{} ({})", it.name, it.origin), it.version.clone())).collect();
        let is_before = |it: &&mut Point| it.release == release && it.variant == variant;
        let mut changes = Vec::new();
        if let Some(before) = self.0.iter_mut().rfind(is_before) {
            if before.digest == image.digest {
                return;
            }
            changes = differences(&std::mem::take(&mut before.packages), &packages);
        }
        self.0.push(Point {
            release: release.to_owned(),
            variant: variant.to_owned(),
            digest: image.digest.clone(),
            built: image.at,
            seconds: image.seconds,
            compressed: image.compressed,
            unpacked: image.unpacked,
            changes,
            packages,
        });
    }
}

fn differences(before: &BTreeMap<String, String>, now: &BTreeMap<String, String>) -> Vec<Change> {
    let mut names: Vec<&String> = before.keys().chain(now.keys()).collect();
    names.sort_unstable();
    names.dedup();
    let change = |name: &String| Change {
        package: name.clone(),
        from: before.get(name).cloned(),
        to: now.get(name).cloned(),
    };
    names.into_iter().map(change).filter(|change| change.from != change.to).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(digest: &str) -> Figures {
        let (digest, layers) = (digest.to_owned(), Vec::new());
        Figures { digest, at: 1, seconds: Some(2.5), compressed: Some(3), unpacked: None, layers }
    }

    fn package(name: &str, version: &str) -> Package {
        Package { origin: "PyPI", name: name.to_owned(), version: version.to_owned(), licence: None }
    }

    #[test]
    fn an_image_tells_what_changed_since_the_one_before() {
        let mut history = History::default();
        history.add(("2.15", "runtime"), &image("sha256:1"), &[package("a", "1"), package("gone", "1")]);
        history.add(("2.15", "runtime"), &image("sha256:1"), &[package("a", "1")]);
        history.add(("2.15", "runtime"), &image("sha256:2"), &[package("a", "2"), package("new", "1")]);
        let history = History::parse(&history.text().unwrap()).unwrap();
        let points = history.of("2.15", "runtime");
        assert_eq!(points.len(), 2, "the same image is there once");
        let changes: Vec<_> = points[1].changes.iter().map(|it| it.package.as_str()).collect();
        assert_eq!(changes, ["a (PyPI)", "gone (PyPI)", "new (PyPI)"]);
        assert!(points[0].packages.is_empty() && points[1].packages.len() == 2);
        assert!(history.of("2.15", "devel").is_empty());
        assert!(History::parse("{}\n").unwrap_err().to_string().contains("history.jsonl:1"));
    }
}
