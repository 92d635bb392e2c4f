//! The `debian` root: a root file system bootstrapped from Debian packages into an OCI layout.
//!
//! Same packages in, same bytes out: whatever would differ between two runs or two hosts is taken out.

mod bootstrap;
mod cache;
mod layout;
mod recipe;
#[cfg(test)]
mod tests;
mod tool;

use crate::apt::{Archives, Family, Host, Source};
use crate::catalog::{Catalog, Platform};
use crate::digest;
use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Raised whenever the code below writes other bytes for the same wish, so that no cached root is taken for the new one.
const RECIPE: u32 = 2;

/// What a root is made from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RootSpec {
    /// Debian's name of the suite.
    pub suite: String,
    /// Packages beside the minimal system.
    pub packages: Vec<String>,
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
            exclude: root.exclude.clone(),
            keep: root.keep.clone(),
            platform,
            epoch,
            sources,
        }
    }

    /// What decides about the bytes, as far as it is known before the packages are: a name for the cache.
    fn key(&self, sources: &Sources) -> Result<String> {
        let mut packages = self.packages.clone();
        packages.sort_unstable();
        packages.dedup();
        let parts = (
            (RECIPE, &self.suite, packages, self.platform, self.epoch),
            (&self.exclude, &self.keep, &sources.text, &sources.staying().text),
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
                let image = Sources::of_host(spec, state).ok().map(Box::new);
                Ok(Sources { image, ..Sources::of_text(text) })
            }
            None => Sources::of_host(spec, state),
        }
    }

    /// The host's own mirrors, with the suite that is wanted.
    fn of_host(spec: &RootSpec, state: &Path) -> Result<Sources> {
        let host = Host::read()?;
        let archives = Archives::of_host(Family::Debian, &host, &state.join("keys"))?;
        let lines: Vec<String> = archives.suite(&spec.suite, false).iter().map(Source::line).collect();
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
    match Sources::of(spec, &state) {
        Ok(sources) => Ok(cache::take(&state.join("roots").join(spec.key(&sources)?))),
        Err(_) => Ok(None),
    }
}

/// The root for a wish: from the cache, unless `fresh` wants the packages as they are now.
///
/// `state` is the folder for everything private; `say` is told what goes on. Errors: `E_HOST`, `E_NETWORK`, `E_TLS`,
/// `E_DISK`, `E_TOOL`, by what mmdebstrap and apt say; `E_PLATFORM` where this machine cannot run the platform.
pub fn provide(spec: &RootSpec, state: &Path, fresh: bool, say: &dyn Fn(&str)) -> Result<RootLayout> {
    std::fs::create_dir_all(state).with_context(|| format!("creating {}", state.display()))?;
    let state = &state.canonicalize()?;
    let sources = Sources::of(spec, state)?;
    let roots = state.join("roots");
    let place = roots.join(spec.key(&sources)?);
    if !fresh && let Some(layout) = cache::take(&place) {
        return Ok(layout);
    }
    bootstrap::can_run(spec.platform)?;
    let tool = tool::find(spec, state, &sources, say)?;
    let work = cache::work_folder(&roots)?;
    let made = bootstrap::run(spec, &sources, &tool, work.path(), say)?;
    say(&format!("root {}: writing the OCI layout", spec.suite));
    let layout = layout::write(&work.path().join("layout"), spec, &made)?;
    cache::put(layout, &place, work.path())
}
