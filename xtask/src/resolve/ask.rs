//! The questions that a release puts to the table, one function each.

use super::{Answer, public};
use crate::catalog::{Catalog, Platform, Release};
use crate::compat::{Compat, Known, Torch, Version};
use crate::problem::Problem;

/// One release beside the facts on its torch.
pub(super) struct Ask<'a> {
    pub catalog: &'a Catalog,
    pub compat: &'a Compat,
    /// The release's name.
    pub name: &'a str,
    pub release: &'a Release,
    /// The public version of its torch.
    pub version: &'a Version,
    pub torch: &'a Torch,
}

/// torchvision or torchaudio of a release.
#[derive(Clone, Copy)]
pub(super) struct Companion<'a> {
    /// The package, which is also the field.
    pub package: &'static str,
    /// The public version that the release names.
    pub wanted: &'a str,
    /// Whether a release may do without it.
    pub optional: bool,
    /// The versions that go with a torch.
    pub of: fn(&Torch) -> &[String],
}

impl<'a> Ask<'a> {
    /// Finds the facts on a release's torch.
    pub fn new(catalog: &'a Catalog, compat: &'a Compat, name: &'a str) -> Result<Ask<'a>, Problem> {
        let release = &catalog.releases[name];
        match compat.torch(public(&release.torch)) {
            Some((version, torch)) => Ok(Ask { catalog, compat, name, release, version, torch }),
            None => Err(super::refusals::unknown_torch(catalog, compat, name, &release.torch)),
        }
    }

    /// The CUDA build that `cuda` names.
    pub fn build(&self) -> Answer<Known<'a>> {
        let Some((name, build)) = self.compat.build(self.torch, &self.release.cuda) else {
            return Answer::Bad(self.no_build());
        };
        match self.compat.known(name, build) {
            Some(known) if build.verified => Answer::Good(known),
            Some(known) => Answer::Unknown {
                taken: known,
                note: self.build_note(name, build),
                problem: self.unverified_build(name, build, true),
            },
            None => Answer::Bad(self.unverified_build(name, build, false)),
        }
    }

    /// torchvision, and torchaudio if the release has one.
    pub fn companions(&self) -> impl Iterator<Item = Companion<'a>> {
        let torchvision = Companion {
            package: "torchvision",
            optional: false,
            wanted: public(&self.release.torchvision),
            of: |torch| &torch.torchvision,
        };
        let torchaudio = self.release.torchaudio.as_deref().map(|text| Companion {
            package: "torchaudio",
            optional: true,
            wanted: public(text),
            of: |torch| &torch.torchaudio,
        });
        [torchvision].into_iter().chain(torchaudio)
    }

    /// Whether a companion goes with the release's torch.
    pub fn companion(&self, companion: Companion) -> Answer<()> {
        let lists = |torch: &Torch| (companion.of)(torch).iter().any(|version| version == companion.wanted);
        if lists(self.torch) {
            return Answer::Good(());
        }
        let others: Vec<&Version> = self
            .compat
            .torch
            .facts
            .iter()
            .filter(|(_, torch)| lists(torch))
            .map(|(version, _)| version)
            .collect();
        match (others.first(), others.last()) {
            (Some(first), Some(last)) => Answer::Bad(self.other_trio(companion, first, last)),
            _ => Answer::Unknown {
                taken: (),
                note: format!("{} {} with torch {}", companion.package, companion.wanted, self.version),
                problem: self.unknown_companion(companion),
            },
        }
    }

    /// The fields that carry a local suffix, and the suffix: `cu128` of `2.9.1+cu128`.
    pub fn suffixes(&self) -> impl Iterator<Item = (&'static str, &'a str)> {
        let fields = [
            ("torch", Some(&self.release.torch)),
            ("torchvision", Some(&self.release.torchvision)),
            ("torchaudio", self.release.torchaudio.as_ref()),
        ];
        fields.into_iter().filter_map(|(field, text)| Some((field, text?.split_once('+')?.1)))
    }

    /// Whether a local suffix agrees with `cuda`.
    pub fn suffix(&self, field: &str, suffix: &str, known: Known) -> Answer<()> {
        match suffix == known.name {
            true => Answer::Good(()),
            false => Answer::Bad(self.other_suffix(field, suffix, known)),
        }
    }

    /// Whether the cuDNN that a person believes in is the one of the build; without a build, of any build.
    pub fn cudnn(&self, known: Option<Known>) -> Answer<()> {
        let Some(wanted) = self.release.cudnn.as_deref() else {
            return Answer::Good(());
        };
        let is = |known: Known| known.cudnn == wanted || known.cudnn_major == wanted;
        let fits = match known {
            Some(known) => is(known),
            None => self.torch.verified().any(|(name, build)| self.compat.known(name, build).is_some_and(is)),
        };
        match fits {
            true => Answer::Good(()),
            false => Answer::Bad(self.other_cudnn(wanted, known)),
        }
    }

    /// Whether the root's interpreter has wheels on every platform of the catalog.
    pub fn python(&self) -> Answer<()> {
        let (_, root) = self.catalog.root_of(self.release);
        let lacks = |platform: &&Platform| !self.torch.pythons(**platform).contains(&root.python);
        match self.catalog.defaults.platforms.iter().find(lacks) {
            None => Answer::Good(()),
            Some(platform) => Answer::Bad(self.no_python(&root.python, *platform)),
        }
    }

    /// The architectures of the build on one platform, the `i`th of the catalog.
    pub fn platform(&self, i: usize, platform: Platform, known: Known) -> Answer<Vec<String>> {
        if let Some(arch_list) = known.arch.get(&platform) {
            return Answer::Good(arch_list.clone());
        }
        let problem = |allowable| self.no_platform(i, platform, known, allowable);
        // One channel serves a whole release: where PyPI serves it for another platform, it must do so for this one.
        match Platform::ALL.iter().any(|other| self.torch.on_pypi(*other) == Some(known.name)) {
            true => Answer::Bad(problem(false)),
            false => Answer::Unknown {
                taken: Vec::new(),
                note: format!("wheels of torch {} {} for {platform}", self.version, known.name),
                problem: problem(true),
            },
        }
    }
}
