//! The short way for layers into a private engine, whose content store is a folder of this machine.
//!
//! containerd takes a blob that lies there for its own as soon as a client begins to write one of that digest, because what
//! one namespace has is shared with the others (`content_sharing_policy`, `shared` unless configured otherwise). So a
//! build finds nothing left to send: 3.2 GB took 26 to 40 s over buildx's session, and take a link or a copy, and a hash here.
//! containerd does not hash it again. What it does not know yet its collector may remove: then the build sends it.

use super::Engine;
use super::private::Private;
use crate::digest;
use crate::files;
use crate::layout::{self, Layer, blob};
use crate::problem::{Id, refuse};
use anyhow::{Context, Result};
use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::thread;

impl Engine {
    /// Gives a private engine the layers of an image of an OCI layout; another engine is sent them by whoever builds.
    /// Returns the bytes that it did not have.
    ///
    /// Errors: `E_LAYER_DIFFERS` for a layer that is not what its name says; what the disk runs into.
    pub fn give(&self, layout: &Path, manifest: &str) -> Result<u64> {
        match &self.private {
            Some(private) if private.content().is_dir() => private.give(layout, manifest),
            _ => Ok(0),
        }
    }
}

impl Private {
    /// What containerd keeps in blobs.
    fn content(&self) -> PathBuf {
        self.data_root().join("containerd/daemon/io.containerd.content.v1.content")
    }

    /// Leads containerd's blobs out of the daemon's folder, before it starts: the daemon may mount that upon itself, and
    /// no link leads into another mount.
    pub fn lead_content(&self) -> Result<()> {
        let content = self.content();
        if fs::symlink_metadata(&content).is_ok() {
            return Ok(());
        }
        fs::create_dir_all(self.home().join("content"))?;
        fs::create_dir_all(content.parent().unwrap_or(&content))?;
        symlink("../../../content", &content).with_context(|| format!("linking {}", content.display()))
    }

    fn give(&self, layout: &Path, manifest: &str) -> Result<u64> {
        let content = self.content();
        fs::create_dir_all(content.join("blobs/sha256"))?;
        let work = files::work_folder(&content.join("incoming"))?;
        let mut missing = layout::layers(layout, manifest)?;
        missing.retain(|it| !blob(&content, &it.digest).exists());
        thread::scope(|scope| {
            let one = |layer: &Layer| place(layer, work.path(), &blob(&content, &layer.digest));
            let placing: Vec<_> = missing.iter().map(|layer| scope.spawn(move || one(layer))).collect();
            // One that panicked has placed nothing: the build sends it.
            placing.into_iter().try_for_each(|it| it.join().unwrap_or(Ok(())))
        })?;
        Ok(missing.iter().map(|layer| layer.size).sum())
    }
}

/// Puts a blob where it belongs when its bytes are proved, by a link where both places are in one mount.
fn place(Layer { digest, file: from, .. }: &Layer, work: &Path, to: &Path) -> Result<()> {
    let own = work.join(digest.replace(':', "-"));
    if fs::hard_link(from, &own).is_err() {
        fs::copy(from, &own).with_context(|| format!("copying {}", from.display()))?;
        File::open(&own)?.sync_all()?;
    }
    let found = digest::of_file(&own)?;
    if found != *digest {
        return refuse(
            Id::LayerDiffers,
            from.display().to_string(),
            format!("its bytes are {found}"),
            "remove this file: the next build makes it again",
        );
    }
    fs::rename(&own, to).with_context(|| format!("writing {}", to.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::text;
    use serde_json::json;

    #[test]
    fn an_engine_gets_what_it_does_not_have_and_nothing_that_is_damaged() {
        let dir = tempfile::tempdir().unwrap();
        let private = Private::new(&dir.path().join("state"), "trixie").unwrap();
        private.lead_content().unwrap();
        private.lead_content().unwrap();
        let layout = dir.path().join("layout");
        layout::create(&layout).unwrap();
        let layer = |bytes: &str| {
            let digest = digest::of_bytes(bytes.as_bytes());
            fs::write(blob(&layout, &digest), bytes).unwrap();
            json!({"digest": digest, "size": bytes.len()})
        };
        let layers = [layer("one"), layer("another")];
        let manifest = layout::put(&layout, layout::MANIFEST, &json!({"layers": layers})).unwrap();
        let give = || private.give(&layout, text(&manifest, "digest"));
        assert_eq!(give().unwrap(), 10);
        assert_eq!(give().unwrap(), 0);
        let content = private.content();
        let [one, another] = layers.each_ref().map(|it| text(it, "digest"));
        assert_eq!(fs::read(blob(&private.home().join("content"), one)).unwrap(), b"one");
        fs::remove_file(blob(&content, another)).unwrap();
        fs::write(blob(&layout, another), "else").unwrap();
        let refused = format!("{:#}", give().unwrap_err());
        assert!(refused.contains("E_LAYER_DIFFERS") && refused.contains(another.split_at(7).1), "{refused}");
        assert!(!blob(&content, another).exists() && files::names(&content.join("incoming")).is_empty());
    }
}
