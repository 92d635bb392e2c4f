//! Questions about the facts. All of them are look-ups: no answer is made by taking a version apart.

use super::{Build, Compat, Torch, Version};
use crate::catalog::Platform;
use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Unbounded};

/// A CUDA build of which everything is known that an image needs.
#[derive(Clone, Copy, Debug)]
pub struct Known<'a> {
    /// `cu132`
    pub name: &'a str,
    /// `13.2`
    pub cuda: &'a str,
    /// `13.2.2`
    pub toolkit: &'a str,
    /// `9.26.0.51`
    pub cudnn: &'a str,
    /// `9`
    pub cudnn_major: &'a str,
    /// The lowest driver, by the minor version compatibility of its CUDA major.
    pub driver_floor: &'a str,
    /// Architectures by platform.
    pub arch: &'a BTreeMap<Platform, Vec<String>>,
}

impl Compat {
    /// The facts on one version of torch.
    pub fn torch(&self, text: &str) -> Option<(&Version, &Torch)> {
        self.torch.facts.get_key_value(&Version::parse(text)?)
    }

    /// The newest torch of a line: 2.9.1 for `2.9`; a whole version means itself.
    pub fn newest_of(&self, line: &str) -> Option<(&Version, &Torch)> {
        let mut newest_first = self.torch.facts.iter().rev();
        self.torch(line).or_else(|| newest_first.find(|(version, _)| is_in_line(&version.to_string(), line)))
    }

    /// The oldest and the newest torch that there are facts on.
    pub fn range(&self) -> Option<(&Version, &Version)> {
        let versions = &self.torch.facts;
        Some((versions.first_key_value()?.0, versions.last_key_value()?.0))
    }

    /// The nearest versions of torch below and above one that have something.
    pub fn around<'a>(
        &'a self,
        version: &Version,
        has: impl Fn(&'a Torch) -> bool,
    ) -> (Option<&'a Version>, Option<&'a Version>) {
        let fits = |(version, torch): (&'a Version, &'a Torch)| has(torch).then_some(version);
        let below = self.torch.facts.range(..version).rev().find_map(fits);
        let above = self.torch.facts.range((Excluded(version), Unbounded)).find_map(fits);
        (below, above)
    }

    /// The build of a torch that a text means: its name `cu132`, its CUDA `13.2`, or its toolkit `13.2.2`.
    pub fn build<'a>(&'a self, torch: &'a Torch, text: &str) -> Option<(&'a str, &'a Build)> {
        let means = |name: &str, build: &Build| {
            name == text || self.version_of(name) == Some(text) || build.toolkit.as_deref() == Some(text)
        };
        let mut builds = torch.builds.iter();
        builds.find(|(name, build)| means(name, build)).map(|(name, build)| (name.as_str(), build))
    }

    /// Whether a torch has a verified build that the text means.
    pub fn has_build(&self, torch: &Torch, text: &str) -> bool {
        self.build(torch, text).is_some_and(|(_, build)| build.verified)
    }

    /// The CUDA version that the name of a build stands for.
    pub fn version_of(&self, build: &str) -> Option<&str> {
        Some(self.cuda.facts.get(build)?.version.as_str())
    }

    /// The major that a version of cuDNN belongs to.
    pub fn cudnn_major(&self, version: &str) -> Option<&str> {
        let mut majors = self.cudnn.facts.iter();
        majors.find(|(_, versions)| versions.iter().any(|v| v == version)).map(|(major, _)| major.as_str())
    }

    /// The lowest driver that runs a CUDA build: the floor of its CUDA major (minor version compatibility).
    pub fn driver_floor(&self, build: &str) -> Option<&str> {
        let major = &self.cuda.facts.get(build)?.major;
        Some(self.drivers.minor_version_compatibility.facts.get(major)?.as_str())
    }

    /// The CUDA build that a toolkit belongs to: `cu121` for `12.1.0`; also for `12.1` and `cu121`.
    pub fn build_of_toolkit(&self, text: &str) -> Option<&str> {
        let mut builds = self.cuda.facts.iter();
        let means = |name: &str, version: &str| name == text || is_in_line(text, version);
        builds.find(|(name, cuda)| means(name, &cuda.version)).map(|(name, _)| name.as_str())
    }

    /// The lowest driver for any toolkit of the major that a toolkit or CUDA version belongs to, and that major.
    pub fn floor_of_toolkit(&self, text: &str) -> Option<(&str, &str)> {
        let mut floors = self.drivers.minor_version_compatibility.facts.iter();
        floors
            .find(|(major, _)| is_in_line(text, major))
            .map(|(major, floor)| (major.as_str(), floor.as_str()))
    }

    /// The toolkit, or the newest of the CUDA version, whose own driver is known, and that driver.
    pub fn toolkit_driver(&self, text: &str, cuda: &str) -> Option<(&str, &str)> {
        let drivers = &self.drivers.toolkit.facts;
        let own = drivers.get_key_value(text);
        let near = || drivers.iter().rev().find(|(toolkit, _)| is_in_line(toolkit, cuda));
        own.or_else(near).map(|(toolkit, driver)| (toolkit.as_str(), driver.as_str()))
    }

    /// The driver that came with the first toolkit of a CUDA version: 570.26 for `12.8`.
    pub fn lowest_driver_of(&self, cuda: &str) -> Option<&str> {
        let mut drivers = self.drivers.toolkit.facts.iter();
        drivers.find(|(toolkit, _)| is_in_line(toolkit, cuda)).map(|(_, driver)| driver.as_str())
    }

    /// Everything about a build, or `None` if any of it is missing.
    pub fn known<'a>(&'a self, name: &'a str, build: &'a Build) -> Option<Known<'a>> {
        let cudnn = build.cudnn.as_deref()?;
        Some(Known {
            name,
            cuda: self.version_of(name)?,
            toolkit: build.toolkit.as_deref()?,
            cudnn,
            cudnn_major: self.cudnn_major(cudnn)?,
            driver_floor: self.driver_floor(name)?,
            arch: &build.arch,
        })
    }
}

impl Torch {
    /// The interpreters with a wheel for a platform.
    pub fn pythons(&self, platform: Platform) -> &[String] {
        self.wheels.get(&platform).map_or(&[], |wheels| &wheels.python)
    }

    /// What PyPI serves for a platform: the name of a CUDA build, or `cpu`.
    pub fn on_pypi(&self, platform: Platform) -> Option<&str> {
        Some(self.wheels.get(&platform)?.pypi.as_str())
    }

    /// The verified builds.
    pub fn verified(&self) -> impl Iterator<Item = (&str, &Build)> {
        self.builds.iter().filter(|(_, build)| build.verified).map(|(name, build)| (name.as_str(), build))
    }
}

/// Whether a version is a line or belongs to it: `12.1.1` to `12.1`.
fn is_in_line(version: &str, line: &str) -> bool {
    version.strip_prefix(line).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}
