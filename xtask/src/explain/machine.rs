//! The machine in question, as far as it was described: which builds run on its GPU, driver, platform and Python.

use super::Verdict;
use super::asked::{Card, Question};
use super::combination::Combination;
use crate::catalog::{Catalog, Platform};
use crate::compat::{Build, Compat, Sm, Torch, Version};
use crate::resolve::Resolved;
use serde::Serialize;
use std::collections::BTreeMap;

/// The machine in question.
pub(super) struct Machine<'a> {
    catalog: &'a Catalog,
    compat: &'a Compat,
    pub platform: Platform,
    card: Option<&'a Card>,
    driver: Option<&'a Version>,
    python: Option<&'a str>,
}

/// A torch and one of its builds.
#[derive(Debug, Serialize)]
pub(super) struct Pair {
    pub torch: String,
    pub cuda_build: String,
}

/// What keeps a build from running here.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Lack {
    /// It is not for this platform, as far as is known.
    Platform,
    /// It has no code for this GPU.
    Code,
    /// The driver must be at least this.
    Driver(String),
}

/// A release of the catalog, and what keeps it from running here.
#[derive(Debug, Serialize)]
pub struct Ours {
    /// Its name.
    pub release: String,
    /// `cu132`
    pub cuda_build: String,
    /// Nothing where it runs.
    pub lacks: Vec<Lack>,
}

/// Which driver is needed.
#[derive(Debug, Serialize)]
pub(super) struct DriverAnswer {
    /// Of the given driver; `None` where none was given.
    pub verdict: Option<Verdict>,
    pub given: Option<String>,
    pub cuda_major: Option<String>,
    /// The lowest for any CUDA of the major.
    pub floor: Option<String>,
    /// A toolkit, and the driver that came with it.
    pub toolkit: Option<(String, String)>,
    /// Whether the given driver is older than the toolkit's and is enough all the same.
    pub by_minor_version: bool,
    /// The lowest that knows the generation of the GPU, where there is one.
    pub gpu_floor: Option<String>,
}

/// Whether the build runs on the GPU.
#[derive(Debug, Serialize)]
pub(super) struct GpuAnswer {
    pub verdict: Verdict,
    pub name: Option<String>,
    pub sm: Sm,
    pub generation: Option<String>,
    pub fit: Fit,
    /// What the build is compiled for on this platform.
    pub arch_list: Vec<String>,
    /// The one of them that this GPU runs.
    pub runs: Option<String>,
}

/// How a GPU and the code of a build go together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Fit {
    /// There is code for it.
    Runs,
    /// Older than everything the build is compiled for.
    TooOld,
    /// Newer than everything the build is compiled for.
    TooNew,
    /// In between, and no code for it.
    NotAmong,
    /// Machines of this platform do not have this GPU.
    OtherPlatform,
    /// There is no such build, or nobody knows what it is compiled for.
    NotKnown,
}

impl<'a> Machine<'a> {
    /// The platform is the one that was given, else the GPU's only one, else the catalog's first.
    pub fn new(question: &'a Question, catalog: &'a Catalog, compat: &'a Compat) -> Machine<'a> {
        let card = question.card.as_ref();
        let platform = question.platform.or_else(|| card?.platform).unwrap_or(catalog.first_platform());
        let (driver, python) = (question.driver.as_ref(), question.python.as_deref());
        Machine { catalog, compat, platform, card, driver, python }
    }

    /// Whether anything was said that a build may fail on.
    pub fn is_given(&self) -> bool {
        self.card.is_some() || self.driver.is_some()
    }

    /// The verdict on the driver: the floor of the CUDA major, and that of the GPU's generation.
    pub fn driver(&self, it: &Combination) -> DriverAnswer {
        let toolkit = it.toolkit.as_deref().unwrap_or_default();
        let cuda = it.cuda.as_deref().and_then(|text| self.compat.build_of_toolkit(text));
        let cuda = cuda.and_then(|name| self.compat.version_of(name)).unwrap_or(toolkit);
        let floor = self.compat.floor_of_toolkit(toolkit);
        let enough = match (floor, self.gpu_floor()) {
            (None, _) => Verdict::Unknown,
            (Some((_, floor)), gpu) => match self.too_low(Some(floor)).or(self.too_low(gpu)) {
                Some(_) => Verdict::KnownBad,
                None => Verdict::KnownGood,
            },
        };
        let of_toolkit = self.compat.toolkit_driver(toolkit, cuda);
        let older = of_toolkit.is_some_and(|(_, own)| self.too_low(Some(own)).is_some());
        DriverAnswer {
            by_minor_version: older && enough == Verdict::KnownGood,
            verdict: self.driver.map(|_| enough),
            given: self.driver.map(Version::to_string),
            cuda_major: floor.map(|(major, _)| major.to_owned()),
            floor: floor.map(|(_, floor)| floor.to_owned()),
            toolkit: of_toolkit.map(|(toolkit, driver)| (toolkit.to_owned(), driver.to_owned())),
            gpu_floor: self.gpu_floor().map(str::to_owned),
        }
    }

    /// The verdict on the GPU, where one was given.
    pub fn gpu(&self, torch: Option<(&Version, &Torch)>, it: &Combination) -> Option<GpuAnswer> {
        let card = self.card?;
        let build = torch.and_then(|(_, torch)| torch.builds.get(it.cuda_build.as_deref()?));
        let arch_list = build.and_then(|build| build.arch.get(&self.platform)).cloned().unwrap_or_default();
        let runs = card.sm.runs(&arch_list, card.exact).map(str::to_owned);
        let fit = self.fit(card, &arch_list, runs.is_some());
        let verdict = match fit {
            Fit::Runs => Verdict::KnownGood,
            Fit::NotKnown => Verdict::Unknown,
            _ => Verdict::KnownBad,
        };
        let (name, generation) = (card.name.clone(), card.generation.clone());
        Some(GpuAnswer { verdict, name, sm: card.sm, generation, fit, arch_list, runs })
    }

    fn fit(&self, card: &Card, arch_list: &[String], runs: bool) -> Fit {
        let mut sms = arch_list.iter().filter_map(|arch| Sm::of_arch(arch));
        match (sms.clone().min(), sms.next_back()) {
            _ if card.platform.is_some_and(|platform| platform != self.platform) => Fit::OtherPlatform,
            (None, _) | (_, None) => Fit::NotKnown,
            _ if runs => Fit::Runs,
            (Some(oldest), _) if card.sm < oldest => Fit::TooOld,
            (_, Some(newest)) if card.sm > newest => Fit::TooNew,
            _ => Fit::NotAmong,
        }
    }

    /// The lowest driver for the GPU's generation, where there is one.
    pub fn gpu_floor(&self) -> Option<&'a str> {
        let generation = self.card?.generation.as_ref()?;
        self.compat.drivers.gpu.facts.get(generation).map(String::as_str)
    }

    /// The floor, where the given driver is below it.
    fn too_low<'f>(&self, floor: Option<&'f str>) -> Option<&'f str> {
        let driver = self.driver?;
        floor.filter(|floor| Version::parse(floor).is_some_and(|floor| *driver < floor))
    }

    /// What keeps something compiled for `arch_list` with a driver floor from running here.
    fn lacks(&self, arch_list: Option<&[String]>, floor: Option<&str>) -> Vec<Lack> {
        let Some(arch_list) = arch_list else {
            return vec![Lack::Platform];
        };
        let code = self.card.filter(|card| !self.fit_is_good(card, arch_list)).map(|_| Lack::Code);
        let too_low = [self.too_low(floor), self.too_low(self.gpu_floor())];
        let highest = too_low.into_iter().flatten().max_by_key(|floor| Version::parse(floor));
        code.into_iter().chain(highest.map(|floor| Lack::Driver(floor.to_owned()))).collect()
    }

    fn fit_is_good(&self, card: &Card, arch_list: &[String]) -> bool {
        self.fit(card, arch_list, card.sm.runs(arch_list, card.exact).is_some()) == Fit::Runs
    }

    /// The verified builds of a torch that run here.
    pub fn builds<'t>(&self, torch: &'t Torch) -> impl Iterator<Item = &'t str> {
        let python = self.python.is_none_or(|it| torch.pythons(self.platform).iter().any(|p| p == it));
        let runs = move |name: &str, build: &Build| {
            let arch_list = build.arch.get(&self.platform).map(Vec::as_slice);
            python && self.lacks(arch_list, self.compat.driver_floor(name)).is_empty()
        };
        torch.verified().filter(move |(name, build)| runs(name, build)).map(|(name, _)| name)
    }

    /// The newest torch that runs here, with its newest build that does.
    pub fn newest(&self) -> Option<Pair> {
        self.compat.torch.facts.iter().rev().find_map(|it| self.pair(it))
    }

    /// The oldest torch that runs here, with its newest build that does.
    pub fn oldest(&self) -> Option<Pair> {
        self.compat.torch.facts.iter().find_map(|it| self.pair(it))
    }

    fn pair(&self, (version, torch): (&Version, &Torch)) -> Option<Pair> {
        let cuda_build = self.builds(torch).last()?.to_owned();
        Some(Pair { torch: version.to_string(), cuda_build })
    }

    /// The catalog's releases, the newest first, and what each lacks here.
    pub fn ours(&self, ours: &BTreeMap<String, Resolved>) -> Vec<Ours> {
        let one = |name: &str| {
            let it = ours.get(name)?;
            let arch_list = it.platforms.get(&self.platform).map(|facts| facts.arch_list.as_slice());
            let lacks = self.lacks(arch_list, Some(&it.driver_floor));
            Some(Ours { release: name.to_owned(), cuda_build: it.cuda_build.clone(), lacks })
        };
        self.catalog.releases_newest_first().into_iter().filter_map(one).collect()
    }
}
