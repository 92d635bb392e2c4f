//! One bake invocation for everything that is to be built.

use super::bases::{BaseImage, Bases};
use super::cache::Cache;
use super::secrets::Secrets;
use crate::catalog::{Catalog, Platform};
use crate::engine::{Capabilities, Engine, ImageStore};
use crate::plan::Planned;
use crate::render;
use crate::root::{Ground, RootLayout};
use crate::runner::Step;
use std::collections::BTreeSet;
use std::path::Path;

/// What a bake is made from.
pub struct Bake<'a> {
    /// The catalog.
    pub catalog: &'a Catalog,
    /// The images to build; never empty.
    pub images: &'a [&'a Planned],
    /// The name of the root they stand on, and what it is.
    pub root: (&'a str, &'a Ground),
    /// The bases that are there; those of other releases are built.
    pub bases: &'a Bases,
    /// What build steps are given in secret.
    pub secrets: &'a Secrets,
    /// What apt is given in secret, where a root is an image.
    pub apt: Option<&'a Secrets>,
    /// The platform.
    pub platform: Platform,
    /// The commit of the project, or `unknown`.
    pub revision: &'a str,
    /// Whether every step of the images is built again.
    pub no_cache: bool,
    /// buildx's builder instance.
    pub builder: Option<&'a str>,
    /// Whether what is built is in the engine by itself; otherwise it is loaded.
    pub in_engine: bool,
    /// Where each is sent as soon as it is put together, instead of being kept by the engine.
    pub sent_to: Option<&'a dyn Fn(&Planned) -> String>,
    /// Caches of steps.
    pub cache: Cache<'a>,
    /// A mirror of the registry that references without a host mean.
    pub mirror: Option<&'a str>,
    /// The compression was asked for: layers that are there in another are not taken.
    pub recompress: bool,
}

impl Bake<'_> {
    /// The command, with every choice in it: it can be pasted.
    pub fn step(&self, engine: &Engine, can: &Capabilities) -> Step {
        let file = format!("images/{}", render::BAKE_FILE);
        let reason = if self.sent_to.is_some() { "send the images" } else { "build the images" };
        let mut step = engine
            .docker(reason, ["buildx", "bake", "--file", &file, "--progress", "plain"])
            .args(["--provenance=false"])
            .env(
                "MIRROR",
                self.mirror.map(|mirror| format!("{}/", mirror.trim_end_matches('/'))).unwrap_or_default(),
            )
            .env("REVISION", self.revision)
            .env("BUILD_NETWORK", engine.build_network().unwrap_or("default"));
        for (variable, layout) in self.layouts() {
            step = step.env(variable, format!("oci-layout://{}@{}", layout.dir.display(), layout.digest));
        }
        step = step.args(self.permissions(engine, can)).args(self.settings(can));
        if let Some(builder) = self.builder {
            step = step.args(["--builder", builder]);
        }
        step.args(self.images.iter().map(|image| image.target.as_str()))
    }

    /// The layouts that the images need, by the variable that names each in the bake file.
    fn layouts(&self) -> Vec<(String, &RootLayout)> {
        let (name, Ground::Made { root, packages }) = self.root else {
            return Vec::new();
        };
        let needed =
            packages.iter().filter(|(layer, _)| self.images.iter().any(|it| it.packages.contains(layer)));
        let packages = needed.map(|(layer, layout)| (render::packages_variable(name, layer), layout));
        std::iter::once((render::root_variable(name), root)).chain(packages).collect()
    }

    /// A bake of its own accord reads nothing outside its folder and gives no step the host's network.
    fn permissions(&self, engine: &Engine, can: &Capabilities) -> Vec<String> {
        if !can.bake_allow {
            return Vec::new();
        }
        let network = engine.build_network().map(|network| format!("network.{network}"));
        let bases = self.bases.values().filter_map(BaseImage::dir);
        let layouts = self.layouts().into_iter().map(|(_, layout)| layout.dir.as_path()).chain(bases);
        let outside = self.secret_files().map(|(_, path)| path).chain(layouts);
        let read = outside.map(|path| format!("fs.read={}", path.display()));
        network.into_iter().chain(read).flat_map(|what| ["--allow".to_owned(), what]).collect()
    }

    fn settings(&self, can: &Capabilities) -> Vec<String> {
        let mut settings = vec![format!("*.platform={}", self.platform)];
        if self.no_cache {
            settings.extend(self.tiers().iter().map(|target| format!("{target}.no-cache=true")));
        }
        settings.extend(self.base_contexts());
        settings.extend(self.cache.settings(&self.tiers()));
        for target in self.targets_with_secrets() {
            let secret =
                |(id, path): (&str, &Path)| format!("{target}.secrets=id={id},src={}", path.display());
            settings.extend(self.secret_files().map(secret));
        }
        for image in self.images {
            let target = &image.target;
            let label =
                |key: &str, value: &str| format!("{target}.labels.{}={value}", self.catalog.label(key));
            let name = self.sent_to.map_or_else(|| candidate(self.catalog, image), |to| to(image));
            settings.push(format!("{target}.tags={name}"));
            settings.push(label("input", &image.input));
            settings.push(label("base-input", &image.base_input));
            settings.push(label("packages-input", &image.packages_input));
            // The rendered label is the first platform's.
            settings.push(label("arch-list", &image.arch_list.join(" ")));
            settings.push(label("root", self.root.1.digest()));
            settings.extend(self.output(can).map(|output| format!("{target}.output={output}")));
        }
        settings.into_iter().flat_map(|setting| ["--set".to_owned(), setting]).collect()
    }

    /// How an image gets into the engine; none where buildx's own way is right.
    fn output(&self, can: &Capabilities) -> Option<String> {
        let kind = if self.in_engine { "image" } else { "docker" };
        // Docker's own media types know no zstd: an image with them runs, and is in no list of images.
        if can.image_store != ImageStore::Containerd {
            return (!self.in_engine).then(|| format!("type={kind}"));
        }
        let layers = &self.catalog.base.layers;
        let (compression, level) = (layers.compression.as_str(), layers.level);
        // A layer that is there in the other form would be taken as it is.
        let force = if self.recompress { ",force-compression=true" } else { "" };
        let packed = format!("compression={compression},compression-level={level}{force}");
        // An engine unpacks what it keeps.
        let sent = if self.sent_to.is_some() { ",push=true,store=false" } else { "" };
        Some(format!("type={kind},oci-mediatypes=true,{packed}{sent}"))
    }

    /// What the targets that stand on a base take in its place.
    fn base_contexts(&self) -> BTreeSet<String> {
        let of = |image: &&Planned| {
            let base = self.bases.get(&image.release)?;
            let (tier, _) = *self.catalog.tiers(&image.variant).first()?;
            let target = render::target(tier, &image.release);
            Some(format!("{target}.contexts.base={}", base.address()))
        };
        self.images.iter().filter_map(of).collect()
    }

    fn secret_files(&self) -> impl Iterator<Item = (&'static str, &Path)> {
        self.secrets.files().chain(self.apt.into_iter().flat_map(Secrets::files))
    }

    /// Targets whose steps reach for something outside: the root, the bases, and the tiers of the images.
    fn targets_with_secrets(&self) -> BTreeSet<String> {
        let (root, ground) = self.root;
        let mut targets = BTreeSet::new();
        if matches!(ground, Ground::Image(_)) {
            targets.insert(render::target("root", root));
        }
        let built = self.images.iter().filter(|image| !self.bases.contains_key(&image.release));
        targets.extend(built.map(|image| render::target("base", &image.release)));
        targets.extend(self.tiers());
        targets
    }

    /// The images' targets and those that they are made from, down to the base.
    fn tiers(&self) -> BTreeSet<String> {
        let of = |image: &&Planned| {
            let tiers = self.catalog.tiers(&image.variant);
            tiers.iter().map(|(tier, _)| render::target(tier, &image.release)).collect::<Vec<_>>()
        };
        self.images.iter().flat_map(of).collect()
    }
}

/// What tags of images begin with that have not proved yet what they are.
pub const CANDIDATE: &str = "candidate-";

/// The name of an image until it has proved what it is.
pub fn candidate(catalog: &Catalog, image: &Planned) -> String {
    format!("{}:{CANDIDATE}{}-{}", catalog.repository, image.release, image.variant)
}
