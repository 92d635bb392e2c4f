//! Finished layers and the bases made of them: one OCI image layout, in which a layer lies once however many images have it.

use super::layer::{Codec, Written};
use crate::digest;
use crate::files;
use crate::layout::{self, CONFIG, MANIFEST, blob, text};
use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The folder of the layers.
#[derive(Clone, Debug)]
pub struct Store {
    /// An OCI image layout.
    pub dir: PathBuf,
}

/// A layer in the store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Layer {
    /// What it is called.
    pub name: String,
    /// How it is compressed.
    pub codec: Codec,
    /// Digests and sizes.
    #[serde(flatten)]
    pub written: Written,
}

impl Layer {
    /// As a manifest names it.
    pub fn descriptor(&self) -> Value {
        serde_json::json!({
            "mediaType": self.codec.media_type(),
            "digest": self.written.digest,
            "size": self.written.size,
        })
    }
}

/// The folder of the store in a cache.
pub const FOLDER: &str = "layers";
/// Where the notes are: what a layer is made from is a key, and tells its digest.
const NOTES: &str = "notes";
/// Where a layer lies until it is whole.
const WORK: &str = "work";

impl Store {
    /// The store in a cache folder, made where it is not there.
    pub fn open(cache: &Path) -> Result<Store> {
        let dir = cache.join(FOLDER);
        if !dir.join("index.json").exists() {
            layout::create(&dir)?;
            layout::write_index(&dir, &[])?;
        }
        Ok(Store { dir })
    }

    /// The store where it would be; nothing is made.
    pub fn at(cache: &Path) -> Store {
        Store { dir: cache.join(FOLDER) }
    }

    fn note(&self, key: &str) -> PathBuf {
        self.dir.join(NOTES).join(format!("{}.json", key.trim_start_matches("sha256:")))
    }

    /// The layer that was made for a key, if it is whole. Sizes are compared: hashes take a second for every gigabyte.
    pub fn take(&self, key: &str) -> Option<Layer> {
        let note = self.note(key);
        let layer: Layer = serde_json::from_slice(&fs::read(&note).ok()?).ok()?;
        let file = fs::metadata(blob(&self.dir, &layer.written.digest)).ok()?;
        if file.len() != layer.written.size {
            return None;
        }
        // The time tells which layers are in use.
        let touch = fs::File::options().append(true).open(&note);
        touch.and_then(|file| file.set_modified(SystemTime::now())).ok();
        Some(layer)
    }

    /// A layer as the layout has it.
    pub fn file(&self, layer: &Layer) -> layout::Layer {
        let Written { digest, size, .. } = &layer.written;
        layout::Layer { digest: digest.clone(), size: *size, file: blob(&self.dir, digest) }
    }

    /// Makes the layer of a key: `write` is given a path and syncs what it writes there. It is in the store when it is
    /// whole, whatever happens on the way.
    pub fn make(
        &self,
        key: &str,
        name: &str,
        codec: Codec,
        write: impl FnOnce(&Path) -> Result<Written>,
    ) -> Result<Layer> {
        let work = files::work_folder(&self.dir.join(WORK))?;
        let file = work.path().join("layer");
        let written = write(&file).with_context(|| format!("writing the layer {name}"))?;
        fs::rename(&file, blob(&self.dir, &written.digest)).context("moving a layer to its place")?;
        let layer = Layer { name: name.to_owned(), codec, written };
        files::write(&self.note(key), &serde_json::to_vec_pretty(&layer)?)?;
        Ok(layer)
    }

    /// Takes a blob of another layout in: by a link where both lie on one file system.
    pub fn adopt(&self, from: &Path, digest: &str) -> Result<()> {
        let (own, other) = (blob(&self.dir, digest), blob(from, digest));
        if own.exists() || fs::hard_link(&other, &own).is_ok() {
            return Ok(());
        }
        let work = files::work_folder(&self.dir.join(WORK))?;
        let copy = work.path().join("blob");
        fs::copy(&other, &copy).with_context(|| format!("copying {}", other.display()))?;
        fs::File::open(&copy)?.sync_all()?;
        Ok(fs::rename(&copy, own)?)
    }

    /// Stores an image of layers that are here, and gives the digest of its manifest.
    pub fn image(&self, image: &Image) -> Result<String> {
        layout::put(&self.dir, CONFIG, &image.config)?;
        let mut entry = layout::put(&self.dir, MANIFEST, &image.manifest()?)?;
        let digest = text(&entry, "digest").to_owned();
        entry["platform"] = image.platform.clone();
        let mut manifests = layout::manifests(&self.dir)?;
        manifests.retain(|it| text(it, "digest") != digest);
        manifests.push(entry);
        layout::write_index(&self.dir, &manifests)?;
        Ok(digest)
    }

    /// Removes what was used last before `since`, and every blob that nothing names any more; gives the bytes.
    pub fn prune(&self, since: SystemTime) -> Result<u64> {
        let (mut named, mut gone) = (BTreeSet::new(), BTreeSet::new());
        for name in files::names(&self.dir.join(NOTES)) {
            let note = self.dir.join(NOTES).join(name);
            let layer = fs::read(&note).ok().and_then(|text| serde_json::from_slice::<Layer>(&text).ok());
            let is_used = fs::metadata(&note)?.modified()? >= since;
            if !is_used {
                fs::remove_file(&note)?;
            }
            let list = if is_used { &mut named } else { &mut gone };
            list.extend(layer.map(|layer| layer.written.digest));
        }
        gone.retain(|digest| !named.contains(digest));
        // An image goes with the first of its layers. Those that no note made are its root's.
        let mut manifests = layout::manifests(&self.dir)?;
        manifests.retain(|entry| {
            let manifest = layout::read(&self.dir, text(entry, "digest")).unwrap_or_default();
            let blobs: Vec<String> = descriptors(&manifest).map(|it| text(it, "digest").to_owned()).collect();
            let is_whole = !blobs.is_empty() && !blobs.iter().any(|blob| gone.contains(blob));
            if is_whole {
                named.extend(blobs);
                named.insert(text(entry, "digest").to_owned());
            }
            is_whole
        });
        layout::write_index(&self.dir, &manifests)?;
        self.remove_but(&named)
    }

    fn remove_but(&self, named: &BTreeSet<String>) -> Result<u64> {
        let mut bytes = 0;
        let folder = self.dir.join("blobs/sha256");
        for name in files::walk(&folder)? {
            if !named.contains(&format!("sha256:{}", name.display())) {
                bytes += fs::metadata(folder.join(&name))?.len();
                fs::remove_file(folder.join(name))?;
            }
        }
        Ok(bytes)
    }
}

/// The configuration of a manifest, and its layers.
fn descriptors(manifest: &Value) -> impl Iterator<Item = &Value> {
    manifest["config"]
        .as_object()
        .map(|_| &manifest["config"])
        .into_iter()
        .chain(manifest["layers"].as_array().into_iter().flatten())
}

/// An image that is made of finished layers.
#[derive(Clone, Debug)]
pub struct Image {
    /// Its configuration.
    pub config: Value,
    /// The descriptors of its layers, the lowest first.
    pub layers: Vec<Value>,
    /// Its platform.
    pub platform: Value,
}

impl Image {
    /// Its configuration and its manifest, as they are stored.
    pub fn documents(&self) -> Result<(Vec<u8>, Vec<u8>)> {
        Ok((serde_json::to_vec(&self.config)?, serde_json::to_vec(&self.manifest()?)?))
    }

    fn manifest(&self) -> Result<Value> {
        let (_, config) = layout::describe(CONFIG, &self.config)?;
        Ok(serde_json::json!({
            "schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": self.layers
        }))
    }

    /// Digest of its manifest, whether it is stored or not.
    pub fn digest(&self) -> Result<String> {
        digest::of_json(&self.manifest()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn layer(store: &Store, key: &str) -> Layer {
        let write = |to: &Path| {
            fs::write(to, key)?;
            let digest = digest::of_bytes(key.as_bytes());
            Ok(Written { digest: digest.clone(), diff_id: digest, size: key.len() as u64, unpacked: 0 })
        };
        store.make(key, key, Codec::Splice, write).unwrap()
    }

    #[test]
    fn what_was_not_used_goes_and_takes_its_images_along() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path()).unwrap();
        let [old, new] = ["old", "new"].map(|key| layer(&store, key));
        let image = |layers: &[&Layer]| {
            let layers = layers.iter().map(|layer| layer.descriptor()).collect::<Vec<_>>();
            let config = json!({"layers": layers.len()});
            store.image(&Image { config, layers, platform: json!({}) }).unwrap()
        };
        let (_, kept) = (image(&[&old, &new]), image(&[&new]));
        let note = fs::File::options().append(true).open(store.note("old")).unwrap();
        note.set_modified(SystemTime::UNIX_EPOCH).unwrap();
        let since = SystemTime::now() - std::time::Duration::from_secs(60);
        assert!(store.prune(since).unwrap() > 3);
        assert!(store.take("old").is_none() && store.take("new") == Some(new));
        let left = layout::manifests(&store.dir).unwrap();
        assert_eq!(left.iter().map(|it| text(it, "digest")).collect::<Vec<_>>(), [kept]);
        layout::verify(&store.dir, true).unwrap();
    }

    #[test]
    fn a_torn_layer_is_none() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path()).unwrap();
        let made = layer(&store, "key");
        assert_eq!(store.take("key"), Some(made.clone()));
        fs::write(blob(&store.dir, &made.written.digest), "ke").unwrap();
        assert_eq!(store.take("key"), None);
        let failed = store.make("other", "other", Codec::Splice, |to| {
            fs::write(to, "half")?;
            anyhow::bail!("killed")
        });
        assert!(failed.is_err() && store.take("other").is_none());
        assert_eq!(files::names(&store.dir.join("blobs/sha256")).len(), 1);
    }
}
