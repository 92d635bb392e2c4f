//! What users get now: where the names of each image point, and what is proved of that.

use super::report::{Report, proof};
use crate::catalog::Catalog;
use crate::out::{columns, word};
use crate::problem::{Id, Problem};
use crate::registry::{Registry, Repository};
use crate::resolve::Resolved;
use crate::smoke::Record;
use crate::tags::{Truth, moving};
use anyhow::Result;
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

/// One image as a registry has it.
#[derive(Clone, Debug, Serialize)]
pub struct Published {
    /// The release's name.
    pub release: String,
    /// The variant's name.
    pub variant: String,
    /// The names that move, and what each points at.
    pub names: BTreeMap<String, Option<String>>,
    /// The state of what the first of them points at: `gpu-tested`, `not-gpu-tested`, or why there is none.
    pub state: String,
    /// When that was proved, as RFC 3339.
    pub tested: Option<String>,
    /// What its smoke test left behind.
    #[serde(skip)]
    pub record: Option<Record>,
    #[serde(skip)]
    first: String,
}

impl Published {
    /// Asks for one image.
    pub fn ask(
        registry: &Registry,
        at: &Repository,
        catalog: &Catalog,
        facts: &Resolved,
        variant: &str,
    ) -> Result<Published> {
        let mut names = BTreeMap::new();
        let moving = moving(catalog, &Truth::planned(facts, variant))?;
        for tag in &moving {
            names.insert(tag.clone(), registry.resolve(&at.at(tag))?.map(|found| found.digest));
        }
        let first = moving.first().cloned().unwrap_or_default();
        let (mut state, mut tested, mut record) = ("not published".to_owned(), None, None);
        if let Some(Some(digest)) = names.get(&first) {
            let reports = of_platforms(registry, at, catalog, digest)?;
            // Of several platforms the one that was proved least and longest ago counts.
            let proofs: Result<Vec<&Report>, Problem> =
                reports.iter().map(|reports| proof(digest, reports, false)).collect();
            match proofs {
                Ok(proofs) => {
                    let least = proofs.iter().min_by_key(|it| (it.strength(), &it.created));
                    state = least.map(|it| word(it.state)).unwrap_or_default();
                    record = least.and_then(|it| it.record.clone());
                    tested = proofs.iter().map(|it| it.created.clone()).min();
                }
                Err(_) => state = "not proved".to_owned(),
            }
        }
        let (release, variant) = (facts.release.clone(), variant.to_owned());
        Ok(Published { release, variant, names, state, tested, record, first })
    }

    /// What its most precise name points at; none where it is not published.
    pub fn digest(&self) -> Option<&str> {
        self.names.get(&self.first)?.as_deref()
    }

    /// What is wrong where a name is missing, points elsewhere than the others, or was proved too long ago.
    pub fn stale(&self, at: &Repository, max_age: Duration, now: SystemTime) -> Vec<Problem> {
        let problem = |tag: &str, what: String| {
            let cure =
                "look why the build, the smoke test or the publishing of this image did not run or failed";
            Problem::new(Id::StaleTag, at.at(tag).to_string(), what, cure)
        };
        let Some(Some(digest)) = self.names.get(&self.first) else {
            return vec![problem(&self.first, "there is no such tag".to_owned())];
        };
        let elsewhere = self.names.iter().filter(|(_, found)| found.as_ref() != Some(digest));
        let mut problems: Vec<Problem> = elsewhere
            .map(|(tag, _)| problem(tag, format!("it does not point at what {} points at", self.first)))
            .collect();
        let Some(tested) = &self.tested else {
            problems.push(problem(&self.first, format!("{digest} has no smoke report that passed")));
            return problems;
        };
        let since = humantime::parse_rfc3339(tested).ok().and_then(|tested| now.duration_since(tested).ok());
        // A report from the future is as fresh as can be.
        let age = Duration::from_secs(since.unwrap_or_default().as_secs());
        if age > max_age {
            let (age, limit) = (humantime::format_duration(age), humantime::format_duration(max_age));
            problems.push(problem(
                &self.first,
                format!("it was proved {age} ago ({tested}), the limit is {limit}"),
            ));
        }
        problems
    }
}

/// The reports of an image, or of each manifest of an index.
fn of_platforms(
    registry: &Registry,
    at: &Repository,
    catalog: &Catalog,
    digest: &str,
) -> Result<Vec<Vec<Report>>> {
    let Some(manifest) = registry.manifest(&at.at(digest))? else {
        return Ok(vec![Vec::new()]);
    };
    let images = match manifest.document()?.manifests {
        Some(entries) => {
            entries.into_iter().filter(|it| it.platform().is_some()).map(|it| it.digest).collect()
        }
        None => vec![digest.to_owned()],
    };
    images.iter().map(|image| Report::all(registry, at, image, catalog)).collect()
}

/// A line an image.
pub fn table(images: &[Published]) -> String {
    let mut rows = vec![["RELEASE", "VARIANT", "TAG", "STATE", "TESTED", "DIGEST"].map(str::to_owned)];
    rows.extend(images.iter().map(|it| {
        let digest = it.names.get(&it.first).cloned().flatten().unwrap_or_default();
        let tested = it.tested.clone().unwrap_or_default();
        [it.release.clone(), it.variant.clone(), it.first.clone(), it.state.clone(), tested, digest]
    }));
    columns(&rows)
}
