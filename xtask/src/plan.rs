//! What would be built or skipped, and why. Pure: what is there already is given.

use crate::catalog::{Catalog, Platform};
use crate::digest;
use crate::lock::Lock;
use crate::render::{self, Files};
use crate::root::Ground;
use crate::tags::{planned, references};
use crate::tiers::stacks;
use anyhow::Result;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Raised when this program exports other bytes for the same input, so that no image is taken for the new one.
const RECIPE: u32 = 3;

/// Releases with variants, in the order in which they were named.
pub type Chosen = Vec<(String, String)>;

/// One image of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Planned {
    /// The release's name.
    pub release: String,
    /// The variant's name.
    pub variant: String,
    /// Its bake target.
    pub target: String,
    /// The tags it will have if it holds what was planned, repository included.
    pub references: Vec<String>,
    /// GPU architectures that torch is compiled for on the platform.
    pub arch_list: Vec<String>,
    /// The layers of packages that it is made from.
    pub packages: Vec<String>,
    /// Digest of everything that decides its content.
    pub input: String,
    /// Digest of everything that decides its base's content.
    pub base_input: String,
    /// Digest of the layers of packages that it is made from.
    pub packages_input: String,
    /// What is done about it.
    pub action: Action,
    /// Why.
    pub reason: Reason,
    /// Bytes of the wheels of its base, fetched where that is not there yet.
    pub base_bytes: u64,
    /// Bytes of the wheels that its own tiers add.
    pub own_bytes: u64,
}

/// What is done about an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum Action {
    Build,
    Skip,
}

/// Why it is built or skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// The engine has no such image.
    New,
    /// What its base is made from changed: root, wheels or the base's template.
    BaseMoved,
    /// The distribution has other packages for it than when it was built.
    PackagesMoved,
    /// Its own template, wheels or files changed.
    TemplateChanged,
    /// Asked for with `--force`.
    Forced,
    /// Every input is the same.
    Unchanged,
}

/// The images that exist: the digests in their labels, by reference.
pub type Existing = BTreeMap<String, Inputs>;

/// What an image was made from, as its labels tell.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inputs {
    /// See [`Planned::input`].
    pub input: String,
    /// See [`Planned::base_input`].
    pub base_input: String,
    /// See [`Planned::packages_input`].
    pub packages_input: String,
}

impl Inputs {
    /// From the labels of an image.
    pub fn of(catalog: &Catalog, labels: &BTreeMap<String, String>) -> Inputs {
        let label = |key: &str| labels.get(&catalog.label(key)).cloned().unwrap_or_default();
        let (input, base_input) = (label("input"), label("base-input"));
        Inputs { input, base_input, packages_input: label("packages-input") }
    }
}

/// What decides the content of an image, beside the root.
pub struct Sources<'a> {
    /// The catalog.
    pub catalog: &'a Catalog,
    /// The lock.
    pub lock: &'a Lock,
    /// The rendered files.
    pub files: &'a Files,
    /// Digests of the files that are copied into images as they are, by path.
    pub copied: &'a BTreeMap<PathBuf, String>,
    /// The platform.
    pub platform: Platform,
    /// What makes the layers of the bases: two ways give the same files and other layers.
    pub builder: &'a str,
}

impl Sources<'_> {
    /// Plans one image on a root by name, and what that is.
    pub fn plan(
        &self,
        release: &str,
        variant: &str,
        (root, ground): (&str, &Ground),
        existing: &Existing,
        force: bool,
    ) -> Result<Planned> {
        let folder = Path::new("images").join(release);
        let base_input = digest::of_json(&(
            RECIPE,
            ground.digest(),
            (&self.catalog.base.layers, self.builder),
            self.below(&folder.join("base")),
            self.below(&Path::new("images/roots").join(root)),
        ))?;
        let locked = &self.lock.releases[release];
        let tiers = self.catalog.tiers(variant);
        let files: Vec<_> = tiers.iter().map(|(tier, _)| self.below(&folder.join(tier))).collect();
        let layers: Vec<String> = stacks(self.catalog, &locked.facts, variant).into_keys().collect();
        let digests: Vec<Option<&str>> = layers.iter().map(|layer| ground.packages(layer)).collect();
        let target = render::target(variant, release);
        let definition = render::definition(self.files, &target)?;
        let is_copied = |path: &Path| {
            path.starts_with("rootfs")
                || tiers.iter().any(|(tier, _)| path.starts_with(Path::new("variants").join(tier)))
        };
        let copied: BTreeMap<_, _> = self.copied.iter().filter(|(path, _)| is_copied(path)).collect();
        let now = Inputs {
            input: digest::of_json(&(&base_input, files, &digests, copied, definition))?,
            packages_input: digest::of_json(&digests)?,
            base_input,
        };
        let references = references(self.catalog, planned(self.catalog, &locked.facts, variant)?);
        // An image that lost one of its names is built again: that is quick, and gives it all of them.
        let there: Option<Vec<&Inputs>> = references.iter().map(|name| existing.get(name)).collect();
        let there = there.and_then(|all| {
            all.into_iter().find(|inputs| inputs.input != now.input).or(existing.get(&references[0]))
        });
        let (action, reason) = decide(there, &now, force);
        Ok(Planned {
            release: release.to_owned(),
            variant: variant.to_owned(),
            target,
            references,
            arch_list: locked.facts.arch_list(self.platform).to_vec(),
            packages: layers,
            input: now.input,
            base_input: now.base_input,
            packages_input: now.packages_input,
            action,
            reason,
            base_bytes: locked.bytes(self.platform)?,
            own_bytes: locked.bytes_above(tiers.iter().map(|(tier, _)| *tier), self.platform),
        })
    }

    fn below(&self, folder: &Path) -> Vec<(&PathBuf, &String)> {
        self.files.iter().filter(|(path, _)| path.starts_with(folder)).collect()
    }
}

/// Bytes of wheels that must be fetched: those of bases of which no image is there yet, and what images add to them.
pub fn bytes_to_fetch(plans: &[&Planned], existing: &Existing) -> u64 {
    let is_there = |plan: &Planned| existing.values().any(|there| there.base_input == plan.base_input);
    let new = plans.iter().filter(|plan| !is_there(plan));
    let bases: BTreeMap<&str, u64> = new.map(|plan| (plan.base_input.as_str(), plan.base_bytes)).collect();
    bases.values().sum::<u64>() + plans.iter().map(|plan| plan.own_bytes).sum::<u64>()
}

fn decide(there: Option<&Inputs>, now: &Inputs, force: bool) -> (Action, Reason) {
    match there {
        _ if force => (Action::Build, Reason::Forced),
        None => (Action::Build, Reason::New),
        Some(there) if there.input == now.input => (Action::Skip, Reason::Unchanged),
        Some(there) if there.base_input != now.base_input => (Action::Build, Reason::BaseMoved),
        Some(there) if there.packages_input != now.packages_input => (Action::Build, Reason::PackagesMoved),
        Some(_) => (Action::Build, Reason::TemplateChanged),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_decision_has_its_reason() {
        let inputs = |input: &str, base: &str, packages: &str| {
            let [input, base_input, packages_input] = [input, base, packages].map(str::to_owned);
            Inputs { input, base_input, packages_input }
        };
        let cases = [
            (None, false, (Action::Build, Reason::New)),
            (Some(inputs("i", "b", "p")), false, (Action::Skip, Reason::Unchanged)),
            (Some(inputs("i", "b", "p")), true, (Action::Build, Reason::Forced)),
            (Some(inputs("x", "b", "p")), false, (Action::Build, Reason::TemplateChanged)),
            (Some(inputs("x", "b", "z")), false, (Action::Build, Reason::PackagesMoved)),
            (Some(inputs("x", "y", "z")), false, (Action::Build, Reason::BaseMoved)),
        ];
        for (existing, force, expected) in cases {
            assert_eq!(decide(existing.as_ref(), &inputs("i", "b", "p"), force), expected);
        }
    }
}
