//! The base of a release as an image: the root's layer, the wheels' layers, and on top what the interpreter makes of them.

use super::arrivals::Arrivals;
use super::install::{Venv, install};
use super::layer::{self, Codec};
use super::store::{Image, Layer, Store};
use super::tree::{self, Tree};
use super::zip::Archive;
use crate::catalog::{Layers as Sizes, Platform};
use crate::digest;
use crate::layout;
use crate::lock::Wheel;
use crate::render;
use crate::root::RootLayout;
use anyhow::Result;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Raised whenever the code of this module writes other bytes for the same wheels.
pub const RECIPE: u32 = 1;

/// The name of the layer that the interpreter makes.
pub const PYTHON: &str = "venv";

/// Everything that decides the layers of a base.
#[derive(Clone, Debug)]
pub struct Base {
    /// The release's name.
    pub release: String,
    /// The platform.
    pub platform: Platform,
    /// Wheels that share a layer, the lowest first.
    pub groups: Vec<Group>,
    /// The environment that they are installed into.
    pub venv: Venv,
    /// How their layers are compressed.
    pub codec: Codec,
}

/// Wheels that share a layer.
#[derive(Clone, Debug)]
pub struct Group {
    /// The layer's name.
    pub name: String,
    /// The wheels, by name.
    pub wheels: Vec<Wheel>,
    /// Wheels of another layer whose libraries these may hold copies of.
    pub others: Vec<Wheel>,
}

/// Where wheels are: paths by SHA-256.
pub type Files = BTreeMap<String, PathBuf>;

impl Base {
    /// The layers that wheels of a platform are spread over.
    pub fn groups(wheels: &[Wheel], sizes: &Sizes) -> Vec<Group> {
        let wheels = one_file_each(wheels);
        let layers = render::layers(&wheels, sizes);
        let of =
            |layer: &render::Layer| layer.wheels.iter().map(|wheel| (*wheel).clone()).collect::<Vec<_>>();
        let shared: Vec<Wheel> = layers.iter().filter(|it| it.is_shared()).flat_map(of).collect();
        let group = |layer: &render::Layer| Group {
            name: layer.name.clone(),
            wheels: of(layer),
            others: if layer.shares() { shared.clone() } else { Vec::new() },
        };
        layers.iter().map(group).collect()
    }

    /// What decides the bytes of a group's layer.
    pub fn key(&self, group: &Group) -> Result<String> {
        let hashes = |wheels: &[Wheel]| wheels.iter().map(|wheel| wheel.sha256.clone()).collect::<Vec<_>>();
        let venv = (&self.venv.folder, &self.venv.python);
        digest::of_json(&(RECIPE, self.codec, venv, hashes(&group.wheels), hashes(&group.others)))
    }

    /// What decides the bytes of the interpreter's layer: its versions in the root, the wheels, and the recipe of the step.
    pub fn python_key(&self, root: &RootLayout, recipe: &[&str]) -> Result<String> {
        let interpreter: BTreeMap<_, _> =
            root.packages.iter().filter(|(name, _)| name.contains("python3")).collect();
        let wheels: Vec<&String> =
            self.groups.iter().flat_map(|group| &group.wheels).map(|wheel| &wheel.sha256).collect();
        digest::of_json(&(RECIPE, self.codec, &self.venv.folder, interpreter, wheels, recipe))
    }

    /// Makes the layers of the groups that wait for wheels, several at once, each as soon as its wheels are here. `done` is
    /// told of each. A failure is told to the arrivals, and so is one of those who fetch.
    pub fn convert(&self, store: &Store, arrivals: &Arrivals, done: &(dyn Fn(&Layer) + Sync)) {
        let work = || {
            while let Some((group, files)) = arrivals.next() {
                match self.convert_one(store, group, &files) {
                    Ok(layer) => done(&layer),
                    Err(error) => arrivals.fail(error),
                }
            }
        };
        let workers = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        std::thread::scope(|scope| {
            (0..workers.min(arrivals.waiting())).for_each(|_| drop(scope.spawn(work)));
        });
    }

    fn convert_one(&self, store: &Store, group: &Group, files: &Files) -> Result<Layer> {
        let (own, others) = (open(&group.wheels, files)?, open(&group.others, files)?);
        let installed = |archives| -> Result<Tree> { tree::join(trees(archives, &self.venv)?) };
        // The folders first: one whose only file goes stays.
        let (own, others) = (installed(&own)?, installed(&others)?);
        let mut own = tree::with_folders(own, &top(&self.venv));
        tree::slim(&mut own, &others)?;
        store.make(&self.key(group)?, &group.name, self.codec, |to| layer::write(&own, self.codec, to))
    }

    /// Writes the sources of every package to an archive that is a gzipped tar, and gives the time of the newest file.
    pub fn sources(&self, files: &Files, to: &Path) -> Result<u64> {
        let mut sources = Vec::new();
        for group in &self.groups {
            sources.extend(open(&group.wheels, files)?);
        }
        let mut tree = tree::join(trees(&sources, &self.venv)?)?;
        let newest = tree.values().map(|node| node.time).max().unwrap_or_default();
        let packages = self.venv.site_packages();
        let is_source =
            |path: &Path| path.extension().is_some_and(|it| it == "py") && path.starts_with(&packages);
        tree.retain(|path, _| is_source(path));
        layer::write(&tree::with_folders(tree, &top(&self.venv)), Codec::Splice, to)?;
        Ok(newest)
    }

    /// The base of finished layers, on a root; `settings` are what its configuration says of containers.
    pub fn image(&self, root: &RootLayout, layers: &[Layer], settings: Value, epoch: u64) -> Result<Image> {
        let below = layout::read(&root.dir, &root.digest)?;
        let mut descriptors: Vec<Value> = below["layers"].as_array().cloned().unwrap_or_default();
        let mut config = layout::read(&root.dir, layout::text(&below["config"], "digest"))?;
        let created = layout::created(epoch);
        config["created"] = json!(created);
        config["config"] = settings;
        for layer in layers {
            descriptors.push(layer.descriptor());
            append(&mut config["rootfs"]["diff_ids"], json!(layer.written.diff_id));
            let by = format!("wheels of {}", layer.name);
            append(&mut config["history"], json!({"created": created, "created_by": by, "comment": "xtask"}));
        }
        Ok(Image { config, layers: descriptors, platform: layout::platform(self.platform) })
    }
}

fn append(list: &mut Value, value: Value) {
    if let Value::Array(list) = list {
        list.push(value);
    }
}

/// The folder of an environment that is in the root already.
fn top(venv: &Venv) -> PathBuf {
    let inside = venv.folder.strip_prefix("/").unwrap_or(&venv.folder);
    inside.parent().unwrap_or(Path::new("")).to_owned()
}

fn open(wheels: &[Wheel], files: &Files) -> Result<Vec<Archive>> {
    let path = |wheel: &Wheel| {
        let path = files.get(&wheel.sha256);
        path.ok_or_else(|| anyhow::anyhow!("{} is not in the cache", wheel.file))
    };
    wheels.iter().map(|wheel| Archive::open(path(wheel)?)).collect()
}

fn trees<'a>(archives: &'a [Archive], venv: &Venv) -> Result<Vec<Tree<'a>>> {
    archives.iter().map(|archive| install(archive, venv)).collect()
}

/// One file of every package: of several that fit, the one for the newest C library, as installers take it (PEP 600).
fn one_file_each(wheels: &[Wheel]) -> Vec<Wheel> {
    let mut chosen: BTreeMap<&str, &Wheel> = BTreeMap::new();
    for wheel in wheels {
        let best = chosen.entry(&wheel.name).or_insert(wheel);
        if glibc(wheel) > glibc(best) {
            *best = wheel;
        }
    }
    chosen.into_values().cloned().collect()
}

/// The minor version of the newest C library in a wheel's tags.
fn glibc(wheel: &Wheel) -> u32 {
    let minor = |rest: &str| rest.split('_').next()?.parse().ok();
    wheel.file.split("manylinux_2_").skip(1).filter_map(minor).max().unwrap_or_default()
}

#[cfg(test)]
mod tests;
