//! Lock to files: Dockerfiles, requirements, the bake file. Pure but for the two functions at the end.

mod bake;
mod layers;
mod page;

pub use bake::{FILE as BAKE_FILE, root_variable, target};

use crate::catalog::{Catalog, Variant};
use crate::files;
use crate::lock::{Lock, LockedRelease, Wheel};
use crate::problem::{Id, Problem};
use crate::resolve::Resolved;
use anyhow::{Context as _, Result};
use layers::layers;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use tera::{Context, Tera};

/// Rendered files by path, relative to the catalog's folder.
pub type Files = BTreeMap<PathBuf, String>;

/// The folder of everything that is rendered.
const IMAGES: &str = "images";

/// The command that repairs stale files.
const REPAIR: &str = "cargo xtask render";

/// What the templates see of a release.
#[derive(Serialize)]
struct ReleaseView<'a> {
    name: &'a str,
    #[serde(flatten)]
    facts: &'a Resolved,
}

/// What the templates see of a variant.
#[derive(Serialize)]
struct VariantView<'a> {
    name: &'a str,
    #[serde(flatten)]
    variant: &'a Variant,
}

/// What the templates see of a layer.
#[derive(Serialize)]
struct LayerView<'a> {
    name: &'a str,
    /// The layer of NVIDIA's small libraries, which other wheels hold copies of.
    shares: Option<&'a str>,
}

/// Templates by name, read once.
pub struct Templates(Tera);

impl Templates {
    /// Reads every `*.tera` file of a folder.
    pub fn read(folder: &Path) -> Result<Templates> {
        let mut sources = Vec::new();
        for path in files::walk(folder)?.into_iter().filter(|p| p.extension().is_some_and(|e| e == "tera")) {
            sources.push((path.display().to_string(), std::fs::read_to_string(folder.join(&path))?));
        }
        let mut tera = Tera::default();
        tera.add_raw_templates(sources).context("reading the templates")?;
        Ok(Templates(tera))
    }

    fn has(&self, name: &str) -> bool {
        self.0.contains_template(name)
    }

    fn render(&self, name: &str, context: &Context) -> Result<String> {
        self.0.render(name, context).with_context(|| format!("rendering templates/{name}"))
    }
}

/// Everything below `images/` but the lock. The same lock and templates give the same bytes.
pub fn render(catalog: &Catalog, lock: &Lock, templates: &Templates) -> Result<Files> {
    let mut out = Files::new();
    for (name, release) in &lock.releases {
        let folder = Path::new(IMAGES).join(name);
        base(catalog, name, release, templates, &folder.join("base"), &mut out)?;
        for (variant_name, variant) in &catalog.variants {
            let view = VariantView { name: variant_name, variant };
            let folder = folder.join(variant_name);
            out.insert(folder.join("Dockerfile"), dockerfile(catalog, name, release, &view, templates)?);
            out.insert(folder.join("expect.json"), expectation(catalog, &release.facts)?);
        }
    }
    out.insert(Path::new(IMAGES).join(BAKE_FILE), bake::file(catalog, lock)?);
    out.insert(Path::new(IMAGES).join("README.md"), page::page(catalog, lock, templates)?);
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
    let wheels = release.wheels(catalog.first_platform())?;
    let layers = layers(wheels, catalog.base.layers.own_above_mb);
    let mut context = Context::new();
    let facts = &release.facts;
    context.insert("release", &ReleaseView { name, facts });
    let views: Vec<LayerView> =
        layers.iter().map(|layer| LayerView { name: &layer.name, shares: layer.shares() }).collect();
    context.insert("layers", &views);
    out.insert(folder.join("Dockerfile"), templates.render("base.Dockerfile.tera", &context)?);
    out.insert(folder.join("constraints.txt"), constraints(facts));
    let mut all =
        "# Everything in the base: `pip install --no-deps --require-hashes -r requirements.txt`\n".to_owned();
    for layer in &layers {
        let file = format!("requirements/{}.txt", layer.name);
        all.push_str(&format!("-r {file}\n"));
        out.insert(folder.join(file), requirements(layer.wheels.iter().copied()));
    }
    out.insert(folder.join("requirements.txt"), all);
    let uv = wheels.iter().filter(|wheel| wheel.name == "uv");
    out.insert(folder.join("requirements/uv.txt"), requirements(uv));
    Ok(())
}

fn dockerfile(
    catalog: &Catalog,
    name: &str,
    release: &LockedRelease,
    variant: &VariantView,
    templates: &Templates,
) -> Result<String> {
    let mut context = Context::new();
    let facts = &release.facts;
    context.insert("release", &ReleaseView { name, facts });
    context.insert("variant", variant);
    context.insert("user", &catalog.user);
    // An include must be named in the template itself, so a variant's own part comes in as text.
    let own = format!("variants/{}.tera", variant.name);
    let own = if templates.has(&own) { templates.render(&own, &context)? } else { String::new() };
    context.insert("own", own.trim_end());
    templates.render("variant.Dockerfile.tera", &context)
}

/// Requirements with the hash of every file that may be installed.
fn requirements<'a>(wheels: impl Iterator<Item = &'a Wheel>) -> String {
    let mut by_package: BTreeMap<(&str, &str), Vec<&str>> = BTreeMap::new();
    for wheel in wheels {
        by_package.entry((&wheel.name, &wheel.version)).or_default().push(&wheel.sha256);
    }
    by_package.iter().fold(String::new(), |mut text, ((name, version), hashes)| {
        text.push_str(&format!("{name}=={version}"));
        for hash in hashes {
            text.push_str(&format!(" \\\n    --hash=sha256:{hash}"));
        }
        text.push('\n');
        text
    })
}

/// The trio that nothing installed later may move.
fn constraints(facts: &Resolved) -> String {
    let head = "# The trio of this image. pip and uv hold every later installation to it.";
    format!("{head}\n{}\n", facts.trio().join("\n"))
}

/// What the smoke checks of the image compare with.
fn expectation(catalog: &Catalog, facts: &Resolved) -> Result<String> {
    let arch_list = facts.arch_list(catalog.first_platform());
    let expect = serde_json::json!({
        "python": facts.python,
        "torch": facts.torch,
        "torchvision": facts.torchvision,
        "torchaudio": facts.torchaudio,
        "cuda": facts.cuda,
        "cuda_build": facts.cuda_build,
        "cudnn": facts.cudnn_at_run_time(),
        "arch_list": arch_list,
    });
    Ok(serde_json::to_string_pretty(&expect)? + "\n")
}

/// The definition of one bake target in the rendered files.
pub fn definition(files: &Files, target: &str) -> Result<serde_json::Value> {
    let text = files.get(&Path::new(IMAGES).join(BAKE_FILE)).context("there is no bake file")?;
    let bake: serde_json::Value = serde_json::from_str(text)?;
    Ok(bake["target"][target].clone())
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
        let known = |path: &PathBuf| files.contains_key(path) || path == Path::new(crate::lock::FILE);
        let there = crate::files::walk(&images)?.into_iter().map(|path| Path::new(IMAGES).join(path));
        stale.extend(there.filter(|path| !known(path)));
    }
    Ok(stale)
}
