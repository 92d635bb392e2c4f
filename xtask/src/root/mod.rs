//! The `debian` root: a root file system bootstrapped from Debian packages into an OCI layout; and, on top of one, the
//! layers of further packages that variants bring.
//!
//! Same packages in, same bytes out: whatever would differ between two runs or two hosts is taken out.

mod bootstrap;
mod cache;
mod given;
mod layout;
mod recipe;
#[cfg(test)]
mod tests;
mod tool;

pub use bootstrap::can_run;
pub use given::given;

use crate::apt::{Archives, Family, Host, Source};
use crate::catalog::{Catalog, Platform, User};
use crate::digest;
use crate::files;
use crate::tiers::PackageLayer;
use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Raised whenever the code below writes other bytes for the same wish, so that no cached root is taken for the new one.
const RECIPE: u32 = 3;

/// What a root is made from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RootSpec {
    /// Debian's name of the suite.
    pub suite: String,
    /// Packages beside the minimal system, or beside what is below.
    pub packages: Vec<String>,
    /// Packages that are only unpacked, without what they depend on.
    pub unpack: Vec<String>,
    /// Components of the distribution that these are in, beside `main`.
    pub components: Vec<String>,
    /// The user of the images, who is made with the root.
    pub user: User,
    /// What these packages are added to: the result is then only the layer that they make.
    pub below: Option<Box<RootSpec>>,
    /// dpkg path patterns left out.
    pub exclude: Vec<String>,
    /// dpkg path patterns kept although `exclude` matches them.
    pub keep: Vec<String>,
    /// The platform.
    pub platform: Platform,
    /// Seconds since 1970: no file is newer, and the image was "created" then.
    pub epoch: u64,
    /// An apt sources file of the user's to bootstrap from, taken as it is; none takes the host's mirrors.
    pub sources: Option<PathBuf>,
}

/// A finished root.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RootLayout {
    /// The folder of the OCI layout.
    #[serde(skip)]
    pub dir: PathBuf,
    /// Digest of the manifest: `sha256:…`.
    pub digest: String,
    /// Digest of the layer as a tar: the same whatever compresses it.
    pub diff_id: String,
    /// Size of the layer as a tar.
    pub bytes: u64,
    /// Versions by package; a package of a foreign architecture is `name:arch`.
    pub packages: BTreeMap<String, String>,
    /// Whether it was there already.
    #[serde(skip)]
    pub cached: bool,
}

impl RootLayout {
    /// Digests of its layers' files.
    pub fn blobs(&self) -> Result<Vec<String>> {
        let layers = crate::layout::layers(&self.dir, &self.digest)?;
        Ok(layers.into_iter().map(|layer| layer.digest).collect())
    }
}

/// What images of one root are made from, beside wheels and files.
#[derive(Clone, Debug)]
pub enum Ground {
    /// A bootstrapped root, and layers of packages on it by name.
    Made {
        /// The root.
        root: RootLayout,
        /// The layers.
        packages: BTreeMap<String, RootLayout>,
    },
    /// An image of a registry, by this reference; packages are installed in the build.
    Image(String),
}

impl Ground {
    /// What identifies the root.
    pub fn digest(&self) -> &str {
        match self {
            Ground::Made { root, .. } => &root.digest,
            Ground::Image(reference) => reference,
        }
    }

    /// What identifies a layer of packages; of a root that is an image, the rendered files tell it all.
    pub fn packages(&self, layer: &str) -> Option<&str> {
        match self {
            Ground::Made { packages, .. } => packages.get(layer).map(|layout| layout.digest.as_str()),
            Ground::Image(_) => None,
        }
    }

    /// The root, where it is a bootstrapped one.
    ///
    /// Errors: one without an id for an image, which callers refuse before.
    pub fn bootstrapped(self) -> Result<RootLayout> {
        match self {
            Ground::Made { root, .. } => Ok(root),
            Ground::Image(reference) => anyhow::bail!("{reference} is not bootstrapped"),
        }
    }
}

impl RootSpec {
    /// The wish of a catalog: one of its roots with the packages of its base.
    pub fn new(
        catalog: &Catalog,
        root: &str,
        platform: Platform,
        epoch: u64,
        sources: Option<PathBuf>,
    ) -> RootSpec {
        let root = &catalog.roots[root];
        RootSpec {
            suite: root.suite.clone(),
            packages: catalog.base.packages.clone(),
            unpack: Vec::new(),
            components: Vec::new(),
            user: catalog.user.clone(),
            below: None,
            exclude: root.exclude.clone(),
            keep: root.keep.clone(),
            platform,
            epoch,
            sources,
        }
    }

    /// The wish for a layer of packages on top of this one.
    pub fn with(self, layer: &PackageLayer) -> RootSpec {
        RootSpec {
            packages: layer.packages.clone(),
            unpack: layer.unpack.clone(),
            components: layer.components.clone(),
            below: Some(Box::new(self.clone())),
            ..self
        }
    }

    /// What decides about the bytes, as far as it is known before the packages are: a name for the cache.
    fn key(&self, sources: &Sources, below: Option<&RootLayout>) -> Result<String> {
        let mut packages = self.packages.clone();
        packages.sort_unstable();
        packages.dedup();
        let parts = (
            (RECIPE, &self.suite, packages, self.platform, self.epoch),
            (&self.exclude, &self.keep, &sources.text, &sources.staying().text),
            (&self.unpack, &self.components, &self.user, below.map(|below| &below.digest)),
        );
        let digest = digest::of_json(&parts)?;
        Ok(digest.trim_start_matches("sha256:")[..16].to_owned())
    }
}

/// Where packages come from, as the text of an apt sources file.
struct Sources {
    text: String,
    /// `list` or `sources`: the form of the text and the extension of its file.
    form: &'static str,
    /// Keyrings that the text names and that are files of this host.
    keys: Vec<PathBuf>,
    /// What stays in the image, where that is something else.
    image: Option<Box<Sources>>,
}

impl Sources {
    fn of(spec: &RootSpec, state: &Path) -> Result<Sources> {
        match &spec.sources {
            Some(file) => {
                let text = std::fs::read_to_string(file)
                    .with_context(|| format!("reading the apt sources {}", file.display()))?;
                // A snapshot gives the packages of a day; what stays in the image is what always does, so that the same
                // packages give the same bytes.
                let image = Sources::of_host(spec, &[], state).ok().map(Box::new);
                Ok(Sources { image, ..Sources::of_text(text) })
            }
            None if spec.components.is_empty() => Sources::of_host(spec, &[], state),
            None => {
                // What a layer needs beside `main` is not added to what stays: the files of the root stay as they are.
                let image = Some(Box::new(Sources::of_host(spec, &[], state)?));
                Ok(Sources { image, ..Sources::of_host(spec, &spec.components, state)? })
            }
        }
    }

    /// The host's own mirrors, with the suite and the further components that are wanted.
    fn of_host(spec: &RootSpec, components: &[String], state: &Path) -> Result<Sources> {
        let host = Host::read()?;
        let archives = Archives::of_host(Family::Debian, &host, &state.join("keys"))?;
        let mut sources = archives.suite(&spec.suite, false);
        sources.iter_mut().for_each(|source| source.components.extend_from_slice(components));
        let lines: Vec<String> = sources.iter().map(Source::line).collect();
        Ok(Sources::of_text(lines.join("\n") + "\n"))
    }

    /// What stays in the image.
    fn staying(&self) -> &Sources {
        self.image.as_deref().unwrap_or(self)
    }

    fn of_text(text: String) -> Sources {
        let is_deb822 = text.lines().any(|line| line.to_lowercase().starts_with("types:"));
        let words = text.split(|c: char| c.is_whitespace() || "=,[]".contains(c));
        let mut keys: Vec<PathBuf> = words
            .map(Path::new)
            .filter(|path| path.is_absolute() && path.is_file())
            .map(Path::to_owned)
            .collect();
        keys.sort_unstable();
        keys.dedup();
        let form = if is_deb822 { "sources" } else { "list" };
        Sources { text, form, keys, image: None }
    }
}

/// The root for a wish if it is in the cache; nothing is made. A host that cannot make one has none.
pub fn cached(spec: &RootSpec, state: &Path) -> Result<Option<RootLayout>> {
    let Ok(state) = state.canonicalize() else {
        return Ok(None);
    };
    let below = match &spec.below {
        None => None,
        Some(below) => match cached(below, &state)? {
            None => return Ok(None),
            some => some,
        },
    };
    match Sources::of(spec, &state) {
        Ok(sources) => Ok(cache::take(&state.join("roots").join(spec.key(&sources, below.as_ref())?))),
        Err(_) => Ok(None),
    }
}

/// The root, or the layer of packages, for a wish: from the cache, unless `fresh` wants the packages as they are now.
///
/// `state` is the folder for everything private; `say` is told what goes on. Errors: `E_HOST`, `E_NETWORK`, `E_TLS`,
/// `E_DISK`, `E_TOOL`, by what mmdebstrap and apt say; `E_PLATFORM` where this machine cannot run the platform.
pub fn provide(spec: &RootSpec, state: &Path, fresh: bool, say: &dyn Fn(&str)) -> Result<RootLayout> {
    std::fs::create_dir_all(state).with_context(|| format!("creating {}", state.display()))?;
    let state = &state.canonicalize()?;
    provide_stack(spec, state, fresh, say)?.pop().context("a stack of roots that is empty")
}

/// A wish with everything below it, the lowest first; only what is wished for itself is ever `fresh`.
fn provide_stack(spec: &RootSpec, state: &Path, fresh: bool, say: &dyn Fn(&str)) -> Result<Vec<RootLayout>> {
    let mut stack = match &spec.below {
        Some(below) => provide_stack(below, state, false, say)?,
        None => Vec::new(),
    };
    let sources = Sources::of(spec, state)?;
    let place = state.join("roots").join(spec.key(&sources, stack.last())?);
    let there = if fresh { None } else { cache::take(&place) };
    let own = there.map_or_else(|| make(spec, &sources, &stack, &place, state, say), Ok)?;
    stack.push(own);
    Ok(stack)
}

/// Makes what a wish adds to the stack below it, and puts it in its place.
fn make(
    spec: &RootSpec,
    sources: &Sources,
    stack: &[RootLayout],
    place: &Path,
    state: &Path,
    say: &dyn Fn(&str),
) -> Result<RootLayout> {
    bootstrap::can_run(spec.platform)?;
    let tool = tool::find(spec, state, sources, say)?;
    let work = files::work_folder(&state.join("roots"))?;
    let made = bootstrap::run(spec, sources, &tool, stack, work.path(), say)?;
    say(&format!("root {}: writing the OCI layout", spec.suite));
    let layout = layout::write(&work.path().join("layout"), spec, &made)?;
    cache::put(layout, place, work.path())
}
