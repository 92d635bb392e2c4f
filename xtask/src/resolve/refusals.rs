//! What is said when a release is refused: both values, and the nearest good choice on either side.

use super::ask::{Ask, Companion};
use crate::catalog::{Catalog, Platform};
use crate::compat::{Build, Compat, Known, Torch, Version};
use crate::problem::{Id, Problem};
use std::collections::BTreeSet;

/// How unverified facts are allowed.
const ALLOW: &str = "; or allow it with --allow-unverified, which the labels of the image will tell";

/// A problem with a torch that the table does not have.
pub(super) fn unknown_torch(catalog: &Catalog, compat: &Compat, name: &str, written: &str) -> Problem {
    let version = Version::parse(super::public(written));
    let cure = match version.map(|version| compat.around(&version, |_| true)) {
        Some((Some(old), Some(new))) => format!("take torch {old} or {new}, the nearest known"),
        Some((Some(newest), None)) => format!("take torch {newest}, the newest known"),
        Some((None, Some(oldest))) => format!("take torch {oldest}, the oldest known"),
        _ => format!("take a torch {}", range(compat)),
    };
    let place = catalog.place(&["releases", name, "torch"]);
    let what = format!("nothing is known about torch `{written}`");
    Problem::new(Id::NoWheelChannel, place, what, cure)
}

impl Ask<'_> {
    /// A problem with a field of the release.
    fn problem(&self, id: Id, field: &str, what: String, cure: String) -> Problem {
        let place = self.catalog.place(&["releases", self.name, field]);
        Problem::new(id, place, what, cure)
    }

    pub(super) fn no_build(&self) -> Problem {
        let (version, written) = (self.version, &self.release.cuda);
        let cuda = self.cuda(written);
        let what = format!("`{written}`: torch {version} has no wheels for {cuda}");
        let sides = self.sides(&cuda, |torch| self.compat.has_build(torch, written));
        let cure = format!("{}; {sides}", self.builds());
        self.problem(Id::NoWheelChannel, "cuda", what, cure)
    }

    /// Why a build is not verified.
    pub(super) fn build_note(&self, name: &str, build: &Build) -> String {
        let (version, cuda) = (self.version, self.cuda(name));
        let note = build.note.as_deref().unwrap_or("something is missing");
        format!("torch {version} for {cuda} ({name}): {note}")
    }

    pub(super) fn unverified_build(&self, name: &str, build: &Build, allowable: bool) -> Problem {
        let (written, note) = (&self.release.cuda, self.build_note(name, build));
        let what = format!("`{written}` is not verified: {note}");
        let has = |torch: &Torch| self.compat.has_build(torch, name);
        let sides = self.sides(&self.cuda(name), has);
        let cure = format!("{}; {sides}{}", self.builds(), allow(allowable));
        self.problem(Id::NoWheelChannel, "cuda", what, cure)
    }

    /// torchvision or torchaudio of another torch: of `first`, or of every torch from `first` to `last`.
    pub(super) fn other_trio(&self, it: Companion, first: &Version, last: &Version) -> Problem {
        let (package, wanted, version) = (it.package, it.wanted, self.version);
        let of = match first == last {
            true => format!("torch {first}"),
            false => format!("torch {first} to {last}"),
        };
        let what = format!("{package} `{wanted}` is not of torch {version}, it is of {of}");
        self.problem(Id::TrioMismatch, package, what, self.right_trio(it))
    }

    pub(super) fn unknown_companion(&self, it: Companion) -> Problem {
        let (package, wanted, version) = (it.package, it.wanted, self.version);
        let what = format!("{package} `{wanted}` is not known to go with torch {version}");
        let cure = format!("{}{ALLOW}", self.right_trio(it));
        self.problem(Id::TrioMismatch, package, what, cure)
    }

    fn right_trio(&self, it: Companion) -> String {
        let right = (it.of)(self.torch).join(" or ");
        let without = if it.optional { ", or leave the line out" } else { "" };
        format!("{} of torch {}: {right}{without}", it.package, self.version)
    }

    pub(super) fn other_suffix(&self, field: &str, suffix: &str, known: Known) -> Problem {
        let id = match field {
            "torch" => Id::NoWheelChannel,
            _ => Id::TrioMismatch,
        };
        let build = known.name;
        let what = format!("the suffix `+{suffix}` is not the CUDA build `{build}` of `cuda`");
        let cure = "leave the suffix out; the build follows from `cuda`".to_owned();
        self.problem(id, field, what, cure)
    }

    pub(super) fn other_cudnn(&self, wanted: &str, known: Option<Known>) -> Problem {
        let torch = format!("torch {}", self.version);
        let what = match known {
            Some(it) => {
                format!("{torch} for CUDA {} ({}) has cuDNN {}, not `{wanted}`", it.cuda, it.name, it.cudnn)
            }
            None => format!("no CUDA build of {torch} has cuDNN `{wanted}`"),
        };
        let right = match known {
            Some(it) => it.cudnn_major.to_owned(),
            None => Vec::from_iter(self.cudnn_majors(self.torch)).join("\" or \""),
        };
        let has = |torch: &Torch| {
            let mut builds = torch.verified().filter_map(|(_, build)| build.cudnn.as_deref());
            builds.any(|it| it == wanted) || self.cudnn_majors(torch).contains(wanted)
        };
        let sides = self.sides(&format!("cuDNN {wanted}"), has);
        let cure = format!("write \"{right}\", or leave the line out; {sides}");
        self.problem(Id::NoWheelChannel, "cudnn", what, cure)
    }

    pub(super) fn no_python(&self, python: &str, platform: Platform) -> Problem {
        let (version, release) = (self.version, self.name);
        let what =
            format!("torch {version} (release {release}) has no wheels for Python `{python}` on {platform}");
        let has = |torch: &Torch| torch.pythons(platform).iter().any(|it| it == python);
        let sides = self.sides(&format!("wheels for Python {python}"), has);
        let pythons = self.torch.pythons(platform).join(", ");
        let cure = format!("Python versions with wheels of torch {version}: {pythons}; {sides}");
        let (root, _) = self.catalog.root_of(self.release);
        let place = self.catalog.place(&["roots", root, "python"]);
        Problem::new(Id::Python, place, what, cure)
    }

    /// `i` is the platform's index in the catalog.
    pub(super) fn no_platform(&self, i: usize, platform: Platform, it: Known, allowable: bool) -> Problem {
        let (version, release) = (self.version, self.name);
        let pypi = self.torch.on_pypi(platform).unwrap_or("nothing");
        let build = format!("CUDA {} ({})", it.cuda, it.name);
        let what = format!(
            "`{platform}`: no wheels of torch {version} (release {release}) for {build} are known; \
             what PyPI has there: {pypi}"
        );
        let there = |build: &Build| build.arch.contains_key(&platform);
        let has = |torch: &Torch| torch.verified().any(|(_, build)| there(build));
        let other = match has(self.torch) {
            true => format!("for {platform} there is: {}", self.listed(there)),
            false => self.sides(&format!("CUDA wheels for {platform}"), has),
        };
        let on = Vec::from_iter(it.arch.keys().map(|platform| platform.as_str())).join(", ");
        let cure = format!("keep to {on} with this build; {other}{}", allow(allowable));
        let i = i.to_string();
        let own = ["releases", release, "platforms", &i];
        let path = if self.release.platforms.is_empty() { &["defaults", "platforms", &i][..] } else { &own };
        Problem::new(Id::Platform, self.catalog.place(path), what, cure)
    }

    /// `CUDA builds that exist for torch 2.9.1: 12.6 (cu126), 12.8 (cu128), 13.0 (cu130)`
    fn builds(&self) -> String {
        let listed = self.listed(|_| true);
        format!("CUDA builds that exist for torch {}: {listed}", self.version)
    }

    /// `12.6 (cu126), 12.8 (cu128)`: the verified builds that fit.
    fn listed(&self, fits: impl Fn(&Build) -> bool) -> String {
        let one = |(name, _)| format!("{} ({name})", self.compat.version_of(name).unwrap_or(name));
        let builds = self.torch.verified().filter(|(_, build)| fits(build));
        Vec::from_iter(builds.map(one)).join(", ")
    }

    /// The cuDNN majors of a torch's verified builds.
    fn cudnn_majors(&self, torch: &Torch) -> BTreeSet<&str> {
        let versions = torch.verified().filter_map(|(_, build)| build.cudnn.as_deref());
        versions.filter_map(|version| self.compat.cudnn_major(version)).collect()
    }

    /// What a text in `cuda` means: `CUDA 12.1` for `cu121` and for `12.1`.
    fn cuda(&self, text: &str) -> String {
        format!("CUDA {}", self.compat.version_of(text).unwrap_or(text))
    }

    /// The nearest torch on either side that has it: `the newest torch with CUDA 11.8 is 2.7.1`.
    fn sides(&self, it: &str, has: impl Fn(&Torch) -> bool) -> String {
        match self.compat.around(self.version, has) {
            (Some(old), Some(new)) => format!("the nearest torch with {it} are {old} and {new}"),
            (Some(newest), None) => format!("the newest torch with {it} is {newest}"),
            (None, Some(oldest)) => format!("the oldest torch with {it} is {oldest}"),
            (None, None) => format!("no other torch {} has {it}", range(self.compat)),
        }
    }
}

fn allow(allowable: bool) -> &'static str {
    if allowable { ALLOW } else { "" }
}

/// `from 2.0.0 to 2.15.0`
fn range(compat: &Compat) -> String {
    let text = |(oldest, newest)| format!("from {oldest} to {newest}");
    compat.range().map(text).unwrap_or_default()
}
