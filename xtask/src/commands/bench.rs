//! `bench`: ours against the plain Dockerfile, side by side on one engine.

use super::App;
use crate::bench::{self, Bed, Case, Meter, Ours, Plain, Rates, Registry, Sample, Way};
use crate::build::{Roots, Secrets, disk, indexes_or_default};
use crate::catalog::Platform;
use crate::cli::Bench as Args;
use crate::engine::{Choice, Engine};
use crate::files;
use crate::github;
use crate::interrupt;
use crate::lock::{Lock, Uv, Wheel, other_wheel};
use crate::out::{columns, word};
use crate::problem::{Id, refuse};
use crate::project::Project;
use crate::root::RootLayout;
use crate::runner::Step;
use crate::tiers::Stacks;
use crate::wheels;
use anyhow::Result;
use clap::ValueEnum;
use serde_json::json;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Peak bytes on disk for each byte of wheels: two images of the plain Dockerfile, each unpacked, compressed and in the
/// registry, beside what pip keeps.
const PEAK: f64 = 10.0;

/// Measures every case that was asked for, as often as was asked for, and tells the medians.
pub fn run(app: &App, args: &Args) -> Result<()> {
    let project = app.project()?;
    let (lock, _) = project.proved()?;
    let release = args.release.as_ref().unwrap_or(&project.catalog.defaults.release);
    let (root, it) = project.catalog.root_of(project.catalog.release(release)?);
    if let Some(image) = &it.image {
        let cure = "measure a release whose root is bootstrapped";
        return refuse(Id::Usage, "--release", format!("{release} stands on the image {image}"), cure);
    }
    let plan = bench::plan(&args.against, &args.case, args.wheel.is_some());
    if app.dry_run {
        let lines: Vec<String> =
            plan.iter().map(|(way, case)| format!("{} {}", word(way), word(case))).collect();
        return app.out.result(&lines.join("\n"), &plan);
    }
    if app.choice() == Choice::Docker {
        let cure = "leave --engine away: a private engine of its own is started and removed";
        return refuse(
            Id::Usage,
            "--engine docker",
            "the engine is emptied between builds: never yours",
            cure,
        );
    }
    let _alone = app.alone()?;
    let folder = app.state().join("bench");
    let ground = Grounds { app, project: &project, lock: &lock, release, root, args, folder: &folder };
    ground.clear()?;
    interrupt::leaves("what the bench made stays on disk until the next one");
    let measured = ground.measure(&plan);
    let cleared = ground.clear();
    let (rates, samples) = measured?;
    cleared?;
    tell(app, &rates, &bench::cells(&samples, &rates))
}

/// Everything that a measurement stands on.
struct Grounds<'a> {
    app: &'a App,
    project: &'a Project,
    lock: &'a Lock,
    release: &'a str,
    root: &'a str,
    args: &'a Args,
    /// Holds an engine, a cache, a registry and a copy of the project, of this run alone.
    folder: &'a Path,
}

type Samples = BTreeMap<(Case, Way), Vec<Sample>>;

impl Grounds<'_> {
    fn state(&self) -> PathBuf {
        self.folder.join("state")
    }

    fn cache(&self) -> PathBuf {
        self.folder.join("cache")
    }

    /// Takes everything away that this run or one that was killed has made; who does not want to wait has the engine
    /// stopped alone.
    fn clear(&self) -> Result<()> {
        if interrupt::check().is_err() {
            self.engine("down")?.taking_back().read()?;
        } else if self.folder.exists() {
            self.engine("prune")?.read()?;
            std::fs::remove_dir_all(self.folder)?;
        }
        Ok(())
    }

    fn measure(&self, plan: &[(Way, Case)]) -> Result<(Rates, Samples)> {
        let platform = Platform::host();
        let wheels = self.lock.releases[self.release].wheels(platform)?;
        let bytes = wheels.iter().map(|wheel| wheel.bytes).sum::<u64>() as f64;
        std::fs::create_dir_all(self.state())?;
        disk::check(self.folder, (bytes * PEAK) as u64)?;
        let say = |line: &str| self.app.out.say(line);
        let engine = Engine::find(Choice::Private, &self.state(), self.project.suite())?;
        let uv = Uv::find(self.app.state(), &say)?;
        let indexes = indexes_or_default(|| uv.default_index())?;
        self.app.out.say("how fast are network and disk?");
        // The wheel in the middle of the bytes: neither a page of text nor a minute.
        let mut sizes: Vec<&Wheel> = wheels.iter().collect();
        sizes.sort_unstable_by_key(|wheel| wheel.bytes.abs_diff(200_000_000));
        let rates = Rates::measure(sizes[0], &indexes, self.folder, &say)?;
        let other = self.args.wheel.as_ref();
        let other = other.map(|(name, version)| {
            other_wheel(&uv, &self.lock.releases[self.release], platform, name, version)
        });
        let other = other.transpose()?;
        let mut samples = Samples::new();
        for number in 1..=self.args.runs {
            for way in Way::value_variants() {
                let cases: Vec<Case> = plan.iter().filter(|it| it.0 == *way).map(|it| it.1).collect();
                if !cases.is_empty() {
                    self.app.out.say(&format!("── run {number} of {}: {}", self.args.runs, word(way)));
                    self.one(*way, &cases, &engine, other.as_ref(), &mut samples)?;
                }
            }
        }
        Ok((rates, samples))
    }

    /// All cases of one way, from an empty engine and an empty cache on.
    fn one(
        &self,
        way: Way,
        cases: &[Case],
        engine: &Engine,
        other: Option<&Wheel>,
        samples: &mut Samples,
    ) -> Result<()> {
        let (state, cache) = (self.state(), self.cache());
        let bed = Bed::make(&self.project.catalog, &self.folder.join("project"))?;
        let registry = Registry::start(
            self.app.state(),
            self.project.suite(),
            &self.folder.join("registry"),
            &|line| self.app.out.say(line),
        )?;
        self.empty()?;
        let variants = self.project.catalog.variants_in_order();
        let ours = Ours {
            bed: &bed,
            state: &state,
            cache: &cache,
            registry: &registry.address,
            release: self.release,
            variants: [variants.first(), variants.last()].map(|name| *name.unwrap_or(&"")),
            builder: if way == Way::Dockerfile { "dockerfile" } else { "layers" },
            out: &self.app.out,
        };
        let plain = match way {
            Way::Plain => Some(self.plain(engine, &registry)?),
            Way::Ours | Way::Dockerfile => None,
        };
        let meter = Meter { folder: self.folder, registry: &registry };
        for case in cases {
            let (sample, whole, usage) = match &plain {
                Some(plain) => meter.measure(|| plain.build(*case).map(Plain::sample))?,
                None => {
                    if *case == Case::Wheels {
                        registry.empty()?;
                        self.empty_of_layers()?;
                    }
                    bed.change(*case, self.release, Platform::host(), other)?;
                    ours.render()?;
                    let (times, whole, usage) = meter.measure(|| ours.build(*case))?;
                    (Ours::sample(times, *case, whole), whole, usage)
                }
            };
            self.app.out.say_at(whole, &format!("{} {}", word(way), word(case)));
            samples.entry((*case, way)).or_default().push(Sample { whole, usage, ..sample });
        }
        Ok(())
    }

    /// An engine that holds nothing, and runs.
    fn empty(&self) -> Result<()> {
        files::empty(&self.cache())?;
        self.restart()
    }

    fn restart(&self) -> Result<()> {
        self.engine("prune")?.read()?;
        self.engine("up")?.read().map(drop)
    }

    /// The same, but the wheels stay.
    fn empty_of_layers(&self) -> Result<()> {
        for name in files::names(&self.cache()).iter().filter(|name| *name != wheels::FOLDER) {
            let path = self.cache().join(name);
            if path.is_dir() { std::fs::remove_dir_all(path)? } else { std::fs::remove_file(path)? }
        }
        self.restart()
    }

    /// The plain Dockerfile, ready to be built: its root is made here, and is no part of what is measured.
    fn plain<'e>(&'e self, engine: &'e Engine, registry: &Registry) -> Result<Plain<'e>> {
        let folder = self.folder.join("plain");
        files::empty(&folder)?;
        Ok(Plain {
            engine,
            root: self.root()?,
            trio: self.lock.releases[self.release].facts.trio(),
            secrets: Secrets::gather(None, &self.state())?,
            folder,
            name: format!("{}/plain:{}", registry.address, self.release),
            out: &self.app.out,
        })
    }

    /// The root of the release, as all ways have it.
    fn root(&self) -> Result<RootLayout> {
        let roots = Roots {
            catalog: &self.project.catalog,
            lock: self.lock,
            platform: Platform::host(),
            sources: None,
            state: &self.state(),
            say: &|line| self.app.out.say(line),
        };
        roots.provide(self.root, &Stacks::default(), false)?.bootstrapped()
    }

    /// A command for the engine of the bench.
    fn engine(&self, action: &str) -> Result<Step> {
        bench::command(&self.project.catalog.file, &self.state(), &["engine", action])
    }
}

fn tell(app: &App, rates: &Rates, cells: &[bench::Cell]) -> Result<()> {
    let (ratios, phases, usage) = (bench::ratios(cells), bench::phases(cells), bench::usage(cells));
    let machine = bench::machine(rates);
    github::summarize("Ours against the plain Dockerfile", &ratios);
    github::summarize("Where the time went, in seconds", &phases);
    github::summarize("What was used", &usage);
    let text = [machine.clone(), columns(&ratios), columns(&phases), columns(&usage)].join("\n\n");
    app.out.result(&text, &json!({"machine": machine, "rates": rates, "cells": cells}))
}
