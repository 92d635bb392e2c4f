//! The bases that images stand on, as OCI layouts made straight from wheels: what is there, and what has to be made.

use super::interpreter::python_step;
use crate::catalog::{Catalog, Platform};
use crate::engine::Engine;
use crate::hold::Hold;
use crate::layout;
use crate::lock::Lock;
use crate::lock::layers::{self, Layers, Recorded};
use crate::out::{Out, gigabytes};
use crate::registry::Reference;
use crate::render::{self, Files as Rendered, VENV};
use crate::root::RootLayout;
use crate::wheels::{self, Base, Codec, Image, Layer, PYTHON, Store, Venv};
use crate::{faults, files};
use anyhow::{Context, Result};
use serde_json::json;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Bases by release.
pub type Bases = BTreeMap<String, BaseImage>;

/// A base, and where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BaseImage {
    /// On this machine.
    Layout(BaseLayout),
    /// In a registry, by its digest.
    Registry(Reference),
}

/// A base as an OCI layout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BaseLayout {
    /// The folder.
    pub dir: PathBuf,
    /// Digest of its manifest; none where its layers are not made yet and not recorded.
    pub digest: Option<String>,
}

/// What bases are made from, and where.
pub struct Maker<'a> {
    /// The catalog.
    pub catalog: &'a Catalog,
    /// The lock.
    pub lock: &'a Lock,
    /// The rendered files.
    pub files: &'a Rendered,
    /// The platform.
    pub platform: Platform,
    /// How layers are compressed.
    pub codec: Codec,
    /// The folder of wheels and layers.
    pub cache: &'a Path,
    /// The folder for private tools.
    pub state: &'a Path,
    /// Where words go.
    pub out: &'a Out,
}

/// A base that is wanted, with the keys of its layers.
struct Wanted {
    base: Base,
    keys: Vec<String>,
    python: String,
    constraints: String,
}

impl BaseImage {
    /// The address under which a build takes it.
    pub fn address(&self) -> String {
        match self {
            BaseImage::Registry(image) => format!("docker-image://{image}"),
            BaseImage::Layout(base) => {
                let digest = base.digest.as_ref().map(|digest| format!("@{digest}")).unwrap_or_default();
                format!("oci-layout://{}{digest}", base.dir.display())
            }
        }
    }

    /// Where it is on this machine, and the digest of its manifest; none while its layers are not made.
    pub fn made(&self) -> Option<(&Path, &str)> {
        match self {
            BaseImage::Layout(base) => Some((&base.dir, base.digest.as_deref()?)),
            BaseImage::Registry(_) => None,
        }
    }

    /// The folder on this machine, if it is in one.
    pub fn dir(&self) -> Option<&Path> {
        match self {
            BaseImage::Layout(base) => Some(&base.dir),
            BaseImage::Registry(_) => None,
        }
    }
}

impl Maker<'_> {
    /// A base without making anything: what is here, or else what was recorded. The roots are those of [`Maker::provide`].
    pub fn known(&self, release: &str, root: &RootLayout, python: &RootLayout) -> Result<BaseLayout> {
        let digest = self.image(release, root, python)?.map(|image| image.digest()).transpose()?;
        Ok(BaseLayout { dir: Store::at(self.cache).dir, digest })
    }

    /// Whether every layer of a base is here.
    pub fn has(&self, release: &str, python: &RootLayout) -> Result<bool> {
        let (wanted, store) = (self.wanted(release, python)?, Store::at(self.cache));
        Ok(wanted.names().all(|(_, key)| store.take(key).is_some()))
    }

    /// The image that a base is, of layers that are here or else were recorded; none where one is neither.
    pub fn image(&self, release: &str, root: &RootLayout, python: &RootLayout) -> Result<Option<Image>> {
        let wanted = self.wanted(release, python)?;
        let store = Store::at(self.cache);
        let record = layers::read(&self.catalog.folder())?;
        let recorded = record.layers(release, self.platform, &self.codec.to_string());
        let layer = |(name, key): (&str, &str)| {
            let of_record = || Some(self.recalled(name, recorded?.get(name).filter(|it| it.key == key)?));
            store.take(key).or_else(of_record)
        };
        let all: Option<Vec<Layer>> = wanted.names().map(layer).collect();
        let all = all.filter(|_| root.dir.exists());
        all.map(|all| self.compose(&wanted, root, &all)).transpose()
    }

    fn recalled(&self, name: &str, it: &Recorded) -> Layer {
        let (digest, diff_id) = (it.digest.clone(), it.diff_id.clone());
        let written = wheels::Written { digest, diff_id, size: it.size, unpacked: 0 };
        Layer { name: name.to_owned(), codec: self.codec, written }
    }

    /// A base, made as far as it is not there, and proved against the record. `python` is the root whose interpreter runs
    /// on this machine: byte code is the same on every platform. `there` is told of each layer as soon as it is there.
    ///
    /// Errors: what fetching runs into; `E_WHEEL` for a wheel that is none; `E_LAYER_DIFFERS`; `E_BUILD` for the step.
    pub fn provide(
        &self,
        release: &str,
        root: &RootLayout,
        python: &RootLayout,
        engine: &Engine,
        there: &(dyn Fn(layout::Layer) + Sync),
    ) -> Result<BaseLayout> {
        let wanted = self.wanted(release, python)?;
        let _alone = Hold::wait(self.cache, wheels::HOLD, &|line| self.out.say(line))?;
        let store = Store::open(self.cache)?;
        let there = |layer: &Layer| there(store.file(layer));
        let mut missing = Vec::new();
        for (group, key) in wanted.base.groups.iter().zip(&wanted.keys) {
            match store.take(key) {
                Some(layer) => there(&layer),
                None => missing.push(group),
            }
        }
        let needs_python = store.take(&wanted.python).is_none();
        if needs_python || !missing.is_empty() {
            // The sources of all packages are compiled together.
            let fetched = if needs_python { wanted.base.groups.iter().collect() } else { missing.clone() };
            let files = self.layers(&wanted.base, &store, &missing, &fetched, &there)?;
            if needs_python {
                self.compile(&wanted, &store, &files, python, engine)?;
            }
        }
        let all: Option<Vec<Layer>> = wanted.names().map(|(_, key)| store.take(key)).collect();
        let all = all.context("a layer that was just made is gone")?;
        self.prove(release, &wanted, &all)?;
        let image = self.compose(&wanted, root, &all)?;
        for blob in root.blobs()? {
            store.adopt(&root.dir, &blob)?;
        }
        let digest = store.image(&image)?;
        Ok(BaseLayout { dir: store.dir, digest: Some(digest) })
    }

    fn wanted(&self, release: &str, python: &RootLayout) -> Result<Wanted> {
        let locked = &self.lock.releases[release];
        let environment = render::environment(self.files, release);
        let folder = environment.iter().find_map(|it| it.strip_prefix("VIRTUAL_ENV="));
        let venv = Venv {
            folder: PathBuf::from(folder.context("the base's Dockerfile sets no VIRTUAL_ENV")?),
            python: locked.facts.python.clone(),
        };
        let groups = Base::groups(locked.wheels(self.platform)?, &self.catalog.base.layers);
        let base =
            Base { release: release.to_owned(), platform: self.platform, groups, venv, codec: self.codec };
        let keys = base.groups.iter().map(|group| base.key(group)).collect::<Result<_>>()?;
        let text = |path: &Path| self.files.get(path).cloned().unwrap_or_default();
        let constraints = text(&Path::new("images").join(release).join("base/constraints.txt"));
        let python = base.python_key(python, &[&text(Path::new(VENV)), &constraints])?;
        Ok(Wanted { base, keys, python, constraints })
    }

    fn compose(&self, wanted: &Wanted, root: &RootLayout, layers: &[Layer]) -> Result<Image> {
        let environment = render::environment(self.files, &wanted.base.release);
        let settings = json!({"Env": environment, "WorkingDir": self.catalog.user.workdir});
        wanted.base.image(root, layers, settings, self.lock.epoch)
    }

    /// The layer that the interpreter makes, in a container of the root that has it.
    fn compile(
        &self,
        wanted: &Wanted,
        store: &Store,
        wheels: &wheels::Files,
        python: &RootLayout,
        engine: &Engine,
    ) -> Result<()> {
        let start = Instant::now();
        let work = files::work_folder(&self.cache.join("work"))?;
        let [context, out] = ["context", "out"].map(|name| work.path().join(name));
        [&context, &out].into_iter().try_for_each(std::fs::create_dir)?;
        let time = wanted.base.sources(wheels, &context.join("sources.tar.gz"))?;
        std::fs::write(context.join("constraints.txt"), &wanted.constraints)?;
        std::fs::write(context.join("time"), time.to_string())?;
        let step = python_step(engine, python, &context, &out)?;
        let said = step.output()?;
        if !said.status.success() {
            return Err(faults::error("byte code of the base", &said.stderr, crate::problem::Id::Build));
        }
        let tar = std::fs::File::open(out.join("layer.tar"))?;
        let codec = wanted.base.codec;
        let layer = store.make(&wanted.python, PYTHON, codec, |to| wheels::pack(tar, codec, to))?;
        let size = gigabytes(layer.written.size);
        self.out.say_at(start.elapsed().as_secs_f64(), &format!("layer {}, {size}", layer.name));
        Ok(())
    }

    /// Holds the layers against the record, and takes those in that it does not have.
    fn prove(&self, release: &str, wanted: &Wanted, all: &[Layer]) -> Result<()> {
        let folder = self.catalog.folder();
        let mut record = layers::read(&folder)?;
        let entry = |((name, key), layer): ((&str, &str), &Layer)| {
            let it = &layer.written;
            let (key, digest, diff_id) = (key.to_owned(), it.digest.clone(), it.diff_id.clone());
            (name.to_owned(), Recorded { key, digest, diff_id, size: it.size })
        };
        let made: Layers = wanted.names().zip(all).map(entry).collect();
        if record.prove(release, self.platform, &self.codec.to_string(), made)? {
            layers::write(&folder, &record)?;
            self.out.say(&format!("the layers of {release} are recorded in {}", layers::FILE));
        }
        Ok(())
    }
}

impl Wanted {
    /// Name and key of every layer, the lowest first.
    fn names(&self) -> impl Iterator<Item = (&str, &str)> {
        let groups = self.base.groups.iter().map(|group| group.name.as_str());
        groups.zip(self.keys.iter().map(String::as_str)).chain([(PYTHON, self.python.as_str())])
    }
}
