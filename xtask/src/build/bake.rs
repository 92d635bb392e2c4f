//! One bake invocation for everything that is to be built.

use super::secrets::Secrets;
use crate::catalog::{Catalog, Platform};
use crate::engine::{Capabilities, Engine, ImageStore};
use crate::plan::Planned;
use crate::render;
use crate::root::RootLayout;
use crate::runner::Step;
use std::path::Path;

/// What a bake is made from.
pub struct Bake<'a> {
    /// The catalog.
    pub catalog: &'a Catalog,
    /// The images to build; never empty.
    pub images: &'a [&'a Planned],
    /// The name of the root they stand on, and where it lies.
    pub root: (&'a str, &'a RootLayout),
    /// What build steps are given in secret.
    pub secrets: &'a Secrets,
    /// The platform.
    pub platform: Platform,
    /// The commit of the project, or `unknown`.
    pub revision: &'a str,
    /// buildx's builder instance.
    pub builder: Option<&'a str>,
}

impl Bake<'_> {
    /// The command, with every choice in it: it can be pasted.
    pub fn step(&self, engine: &Engine, can: &Capabilities) -> Step {
        let file = format!("images/{}", render::BAKE_FILE);
        let mut step = engine
            .docker("build the images", ["buildx", "bake", "--file", &file, "--progress", "plain"])
            .args(["--provenance=false"])
            .env(render::root_variable(self.root.0), self.root_address())
            .env("REVISION", self.revision)
            .env("BUILD_NETWORK", engine.build_network().unwrap_or("default"));
        step = step.args(self.permissions(engine, can)).args(self.settings(can));
        if let Some(builder) = self.builder {
            step = step.args(["--builder", builder]);
        }
        step.args(self.images.iter().map(|image| image.target.as_str()))
    }

    fn root_address(&self) -> String {
        let layout = self.root.1;
        format!("oci-layout://{}@{}", layout.dir.display(), layout.digest)
    }

    /// A bake of its own accord reads nothing outside its folder and gives no step the host's network.
    fn permissions(&self, engine: &Engine, can: &Capabilities) -> Vec<String> {
        if !can.bake_allow {
            return Vec::new();
        }
        let network = engine.build_network().map(|network| format!("network.{network}"));
        let outside = self.secrets.files().map(|(_, path)| path).chain([self.root.1.dir.as_path()]);
        let read = outside.map(|path| format!("fs.read={}", path.display()));
        network.into_iter().chain(read).flat_map(|what| ["--allow".to_owned(), what]).collect()
    }

    fn settings(&self, can: &Capabilities) -> Vec<String> {
        let mut settings = vec![format!("*.platform={}", self.platform)];
        let mut bases: Vec<String> = self.images.iter().map(|i| render::target("base", &i.release)).collect();
        bases.dedup();
        for base in bases {
            let secret = |(id, path): (&str, &Path)| format!("{base}.secrets=id={id},src={}", path.display());
            settings.extend(self.secrets.files().map(secret));
        }
        for image in self.images {
            let target = &image.target;
            let label =
                |key: &str, value: &str| format!("{target}.labels.{}={value}", self.catalog.label(key));
            settings.push(format!("{target}.tags={}", candidate(self.catalog, image)));
            settings.push(label("input", &image.input));
            settings.push(label("base-input", &image.base_input));
            settings.push(label("root", &self.root.1.digest));
            // Docker's own media types know no zstd: an image with them runs, and is in no list of images.
            if can.image_store == ImageStore::Containerd {
                let layers = &self.catalog.base.layers;
                let (compression, level) = (layers.compression.as_str(), layers.level);
                settings.push(format!(
                    "{target}.output=type=image,oci-mediatypes=true,compression={compression},compression-level={level}"
                ));
            }
        }
        settings.into_iter().flat_map(|setting| ["--set".to_owned(), setting]).collect()
    }
}

/// The name of an image until it has proved what it is.
pub fn candidate(catalog: &Catalog, image: &Planned) -> String {
    format!("{}:candidate-{}-{}", catalog.repository, image.release, image.variant)
}
