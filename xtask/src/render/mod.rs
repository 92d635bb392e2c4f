//! Lock to files: Dockerfiles, requirements, the bake file. Pure but for the two functions at the end.

mod bake;
mod layers;
mod page;
mod readme;
mod requirements;
mod schema;
mod variant;

pub use bake::{FILE as BAKE_FILE, VENV_TARGET, packages_variable, root_variable, target};
pub use layers::{Layer, above_budget, layers};
pub use readme::readmes;

use crate::catalog::{Catalog, Root};
use crate::files;
use crate::lock::{Lock, LockedRelease, Wheel};
use crate::problem::{Id, Problem, refuse};
use crate::resolve::Resolved;
use anyhow::{Context as _, Result};
use requirements::{ByPlatform, requirements};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use tera::{Context, Tera};

/// Rendered files by path, relative to the catalog's folder.
pub type Files = BTreeMap<PathBuf, String>;

/// The folder of everything that is rendered.
const IMAGES: &str = "images";

/// The step in which the interpreter makes its layer of a base.
pub const VENV: &str = "images/venv/Dockerfile";

/// The command that repairs stale files.
const REPAIR: &str = "cargo xtask render";

/// What the templates see of a release.
#[derive(Serialize)]
struct ReleaseView<'a> {
    name: &'a str,
    #[serde(flatten)]
    facts: &'a Resolved,
}

/// What the templates see of a layer.
#[derive(Serialize)]
struct LayerView<'a> {
    name: &'a str,
    /// The layers of NVIDIA's libraries that it may hold copies of.
    shares: Vec<&'a str>,
}

/// Templates by name, read once.
pub struct Templates {
    tera: Tera,
    /// Variants that bring files of their own.
    with_files: BTreeSet<String>,
}

/// Whether a path below the templates is a file that one variant brings: `variants/<name>/…`.
pub fn is_own_file(path: &Path) -> bool {
    path.starts_with("variants") && path.components().count() > 2
}

impl Templates {
    /// Reads every `*.tera` file of a folder.
    ///
    /// Errors: `E_HOST` where there is no such folder.
    pub fn read(folder: &Path) -> Result<Templates> {
        if !folder.is_dir() {
            let cure =
                "copy this repository's templates/ beside the catalog, or give another one with --file";
            return refuse(Id::Host, folder.display().to_string(), "there is no such folder", cure);
        }
        let paths = files::walk(folder)?;
        let mut sources = Vec::new();
        for path in paths.iter().filter(|p| p.extension().is_some_and(|e| e == "tera")) {
            sources.push((path.display().to_string(), std::fs::read_to_string(folder.join(path))?));
        }
        let mut tera = Tera::default();
        tera.autoescape_on([".html.tera"]);
        tera.add_raw_templates(sources).context("reading the templates")?;
        let owner =
            |path: &PathBuf| path.components().nth(1).map(|it| it.as_os_str().to_string_lossy().into_owned());
        let with_files = paths.iter().filter(|path| is_own_file(path)).filter_map(owner).collect();
        Ok(Templates { tera, with_files })
    }

    fn has(&self, name: &str) -> bool {
        self.tera.contains_template(name)
    }

    /// Renders one template; what goes into a page is escaped.
    pub fn render(&self, name: &str, context: &Context) -> Result<String> {
        self.tera.render(name, context).with_context(|| format!("rendering templates/{name}"))
    }
}

/// Everything below `images/` but the lock. The same lock and templates give the same bytes.
pub fn render(catalog: &Catalog, lock: &Lock, templates: &Templates) -> Result<Files> {
    let mut out = Files::new();
    for (name, release) in &lock.releases {
        let folder = Path::new(IMAGES).join(name);
        base(catalog, name, release, templates, &folder.join("base"), &mut out)?;
        for variant in catalog.variants.keys() {
            variant::variant(catalog, release, variant, templates, &folder.join(variant), &mut out)?;
        }
    }
    for (name, root) in &catalog.roots {
        if let Some(reference) = root.reference() {
            let file = Path::new(IMAGES).join("roots").join(name).join("Dockerfile");
            out.insert(file, root_dockerfile(catalog, name, root, &reference, templates)?);
        }
    }
    out.insert(PathBuf::from(VENV), templates.render("venv.Dockerfile.tera", &Context::new())?);
    out.insert(Path::new(IMAGES).join(BAKE_FILE), bake::file(catalog, lock, &templates.with_files)?);
    out.insert(Path::new(IMAGES).join("README.md"), page::page(catalog, lock, templates)?);
    out.insert(Path::new(IMAGES).join(schema::FILE), schema::schema()?);
    Ok(out)
}

fn base(
    catalog: &Catalog,
    name: &str,
    release: &LockedRelease,
    templates: &Templates,
    folder: &Path,
    out: &mut Files,
) -> Result<()> {
    // The layers of all platforms have the same names; their wheels differ by the markers of the requirements.
    let wheels = one_of_each(&release.wheels);
    let layers = layers(&wheels, &catalog.base.layers);
    let mut context = Context::new();
    let facts = &release.facts;
    context.insert("release", &ReleaseView { name, facts });
    context.insert("user", &catalog.user);
    let shared: Vec<&str> = layers.iter().filter(|it| it.is_shared()).map(|it| it.name.as_str()).collect();
    let shares = |layer: &Layer| if layer.shares() { shared.clone() } else { Vec::new() };
    let views: Vec<LayerView> =
        layers.iter().map(|layer| LayerView { name: &layer.name, shares: shares(layer) }).collect();
    context.insert("layers", &views);
    out.insert(folder.join("Dockerfile"), templates.render("base.Dockerfile.tera", &context)?);
    out.insert(folder.join("constraints.txt"), constraints(facts));
    let mut all =
        "# Everything in the base: `pip install --no-deps --require-hashes -r requirements.txt`\n".to_owned();
    for layer in &layers {
        let file = format!("requirements/{}.txt", layer.name);
        all.push_str(&format!("-r {file}\n"));
        let is_here = |wheel: &Wheel| layer.wheels.iter().any(|it| it.name == wheel.name);
        out.insert(folder.join(file), requirements(&release.wheels, is_here));
    }
    out.insert(folder.join("requirements.txt"), all);
    let uv = requirements(&release.wheels, |wheel| wheel.name == "uv");
    out.insert(folder.join("requirements/uv.txt"), uv);
    Ok(())
}

/// Every package once: that of the first platform that has it.
fn one_of_each(wheels: &ByPlatform) -> Vec<Wheel> {
    let mut names = BTreeSet::new();
    let mut all = Vec::new();
    for wheels in wheels.values() {
        let new: Vec<Wheel> = wheels.iter().filter(|wheel| !names.contains(&wheel.name)).cloned().collect();
        names.extend(new.iter().map(|wheel| wheel.name.clone()));
        all.extend(new);
    }
    all
}

fn root_dockerfile(
    catalog: &Catalog,
    name: &str,
    root: &Root,
    reference: &str,
    templates: &Templates,
) -> Result<String> {
    let mut context = Context::new();
    context.insert("packages", &catalog.base.packages);
    let install = templates.render("parts/install.tera", &context)?;
    context.insert("install", install.trim_end());
    context.insert("name", name);
    context.insert("root", root);
    context.insert("reference", reference);
    context.insert("user", &catalog.user);
    templates.render("root.Dockerfile.tera", &context)
}

/// The trio that nothing installed later may move.
fn constraints(facts: &Resolved) -> String {
    let head = "# The trio of this image. pip and uv hold every later installation to it.";
    format!("{head}\n{}\n", facts.trio().join("\n"))
}

/// The environment that the base of a release has, as its Dockerfile sets it: `NAME=value`.
pub fn environment(files: &Files, release: &str) -> Vec<String> {
    let file = files.get(&Path::new(IMAGES).join(release).join("base/Dockerfile"));
    let last = file.and_then(|text| text.rsplit_once("\nENV ")).map(|(_, last)| last).unwrap_or_default();
    last.split_whitespace().filter(|word| word.contains('=')).map(str::to_owned).collect()
}

/// The definition of one bake target in the rendered files.
pub fn definition(files: &Files, target: &str) -> Result<serde_json::Value> {
    let text = files.get(&Path::new(IMAGES).join(BAKE_FILE)).context("there is no bake file")?;
    let bake: serde_json::Value = serde_json::from_str(text)?;
    Ok(bake["target"][target].clone())
}

/// The rendered Dockerfile of a tier: `base` or a variant.
pub fn dockerfile<'a>(files: &'a Files, release: &str, tier: &str) -> Option<&'a str> {
    files.get(&Path::new(IMAGES).join(release).join(tier).join("Dockerfile")).map(String::as_str)
}

/// Writes what differs, removes what is rendered no longer, and returns both.
pub fn write(folder: &Path, files: &Files) -> Result<Vec<PathBuf>> {
    let stale = stale(folder, files)?;
    for path in &stale {
        match files.get(path) {
            Some(text) => crate::files::write(&folder.join(path), text.as_bytes())?,
            None => std::fs::remove_file(folder.join(path))?,
        }
    }
    Ok(stale)
}

/// `Ok` when the files on disk are what would be rendered.
///
/// Errors: `E_RENDER_STALE`, one problem a file.
pub fn check(folder: &Path, files: &Files) -> Result<()> {
    let problems = stale(folder, files)?
        .into_iter()
        .map(|path| {
            let what = match (files.contains_key(&path), folder.join(&path).exists()) {
                (true, true) => "it is not what the lock and the templates give",
                (true, false) => "it is missing",
                _ => "nothing renders it",
            };
            Problem::new(Id::RenderStale, path.display().to_string(), what, format!("run `{REPAIR}`"))
        })
        .collect();
    crate::problem::all_or_nothing(problems)
}

/// Paths whose content on disk differs, and those below `images/` that nothing renders.
fn stale(folder: &Path, files: &Files) -> Result<Vec<PathBuf>> {
    let mut stale: Vec<PathBuf> = files
        .iter()
        .filter(|(path, text)| std::fs::read(folder.join(path)).ok().as_deref() != Some(text.as_bytes()))
        .map(|(path, _)| path.clone())
        .collect();
    let images = folder.join(IMAGES);
    if images.exists() {
        let kept = [crate::lock::FILE, crate::lock::layers::FILE].map(Path::new);
        let known = |path: &PathBuf| files.contains_key(path) || kept.contains(&path.as_path());
        let there = crate::files::walk(&images)?.into_iter().map(|path| Path::new(IMAGES).join(path));
        stale.extend(there.filter(|path| !known(path)));
    }
    Ok(stale)
}
