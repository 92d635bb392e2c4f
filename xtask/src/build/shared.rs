//! Bases in a registry: one machine makes each, and every other finds it there, under a name that no user takes.

use super::bases::Maker;
use crate::layout::{MANIFEST, text};
use crate::plan::Planned;
use crate::registry::{Manifest, Reference, Registry, Repository};
use crate::root::RootLayout;
use crate::wheels::Image;
use anyhow::Result;
use serde::Deserialize;

/// What the tag of every base begins with.
const PREFIX: &str = "base-";
/// Letters of the checksum in a tag.
const CHECKSUM: usize = 16;

/// The bases of a repository.
pub struct Shared<'a> {
    /// Who is asked.
    pub registry: &'a Registry<'a>,
    /// Where.
    pub at: &'a Repository,
}

/// The tag of a base: the release, and a checksum of all that it is made from.
pub fn tag(release: &str, base_input: &str) -> String {
    let checksum: String = base_input.trim_start_matches("sha256:").chars().take(CHECKSUM).collect();
    format!("{PREFIX}{release}-{checksum}")
}

/// Whether a tag is that of a base.
pub fn is_base(tag: &str) -> bool {
    let checksum = tag.strip_prefix(PREFIX).and_then(|rest| rest.rsplit_once('-'));
    checksum.is_some_and(|(_, it)| it.len() == CHECKSUM && it.bytes().all(|b| b.is_ascii_hexdigit()))
}

impl Shared<'_> {
    /// The base that an image stands on, by its digest, where the registry has one that was made from the same. One that
    /// is not as it must be is not taken: that is said, and it has to be made here.
    pub fn find(&self, maker: &Maker, plan: &Planned, root: &RootLayout) -> Result<Option<Reference>> {
        let name = self.at.at(tag(&plan.release, &plan.base_input));
        let Some(found) = self.registry.manifest(&name)? else {
            return Ok(None);
        };
        let is_right = match maker.image(&plan.release, root, root)? {
            Some(image) => image.digest()? == found.digest,
            // Layers that nobody recorded: it must stand on this very root at least.
            None => self.lowest(&found)? == Some(root.diff_id.clone()),
        };
        if !is_right {
            maker.out.say(&format!("{name} is another base than the one that is recorded, and is not taken"));
            return Ok(None);
        }
        Ok(Some(self.at.at(found.digest)))
    }

    /// Names the base of an image that the registry has: the layers are there with the image, so a configuration and a
    /// manifest are all that is sent.
    pub fn share(&self, maker: &Maker, plan: &Planned, root: &RootLayout, image: &Manifest) -> Result<()> {
        let Some(base) = maker.image(&plan.release, root, root)? else {
            return Ok(());
        };
        let name = self.at.at(tag(&plan.release, &plan.base_input));
        let (config, manifest) = base.documents()?;
        let manifest = Manifest::of_bytes(manifest, MANIFEST.to_owned());
        if !stands_on(image, &base)? {
            maker.out.say(&format!("{name} is not shared: its layers were packed anew in the image"));
            return Ok(());
        }
        if self.registry.resolve(&name)?.is_some_and(|found| found.digest == manifest.digest) {
            return Ok(());
        }
        self.registry.push_blob(self.at, &config)?;
        self.registry.put(&name, &manifest)?;
        maker.out.say(&format!("shared {name}"));
        Ok(())
    }

    /// Digest of the lowest layer of an image as a tar.
    fn lowest(&self, image: &Manifest) -> Result<Option<String>> {
        #[derive(Deserialize)]
        struct Configuration {
            rootfs: Layers,
        }
        #[derive(Deserialize)]
        struct Layers {
            diff_ids: Vec<String>,
        }
        let Some(config) = image.document()?.config else {
            return Ok(None);
        };
        let config: Configuration = serde_json::from_slice(&self.registry.blob(self.at, &config.digest)?)?;
        Ok(config.rootfs.diff_ids.into_iter().next())
    }
}

/// Whether the layers of an image begin with all of a base, in the form that they have there.
fn stands_on(image: &Manifest, base: &Image) -> Result<bool> {
    let layers = image.document()?.layers;
    let is_same = |(layer, below): (&crate::registry::Descriptor, _)| layer.digest == text(below, "digest");
    Ok(layers.len() >= base.layers.len() && layers.iter().zip(&base.layers).all(is_same))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::Document;
    use serde_json::json;

    #[test]
    fn the_name_of_a_base_is_none_that_a_user_takes() {
        let name = tag("2.15", &format!("sha256:{}", "0123456789abcdef".repeat(4)));
        assert_eq!(name, "base-2.15-0123456789abcdef");
        assert!(is_base(&name));
        for other in ["base-2.15-runtime", "base", "2.15-runtime", "candidate-0123-2.15-runtime-amd64"] {
            assert!(!is_base(other), "{other}");
        }
    }

    #[test]
    fn an_image_stands_on_a_base_whose_layers_it_has_as_they_are() {
        let layer = |digest: &str| json!({"mediaType": "m", "digest": digest, "size": 1});
        let of = |digests: &[&str]| digests.iter().map(|digest| layer(digest)).collect::<Vec<_>>();
        let base = Image { config: json!({}), layers: of(&["a", "b"]), platform: json!({}) };
        let image = |digests: &[&str]| {
            let document = json!({"schemaVersion": 2, "layers": of(digests)});
            Manifest::of(&serde_json::from_value::<Document>(document).unwrap()).unwrap()
        };
        assert!(stands_on(&image(&["a", "b", "c"]), &base).unwrap());
        for other in [&["a"][..], &["a", "x", "c"], &["b", "a", "c"]] {
            assert!(!stands_on(&image(other), &base).unwrap(), "{other:?}");
        }
    }
}
