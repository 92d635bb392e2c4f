//! A root as an OCI image layout with one layer, compressed here: a build is sent it over a socket that is slow, and its
//! export takes it as it is.

use super::bootstrap::Made;
use super::{RootLayout, RootSpec};
use crate::digest;
use crate::layout::{self, CONFIG, MANIFEST, blob, put, text};
use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

const LAYER: &str = "application/vnd.oci.image.layer.v1.tar+zstd";
/// Of zstd: as small as gzip at its best, in a twentieth of its time.
const LEVEL: i32 = 3;

/// Writes the layout into `dir`, which must not exist, and takes the tar into it.
pub fn write(dir: &Path, spec: &RootSpec, made: &Made) -> Result<RootLayout> {
    layout::create(dir)?;
    let bytes = fs::metadata(&made.tar)?.len();
    let diff_id = digest::of_file(&made.tar)?;
    let packed = dir.join("layer");
    let file = fs::File::create(&packed)?;
    zstd::stream::copy_encode(fs::File::open(&made.tar)?, &file, LEVEL).context("packing a root")?;
    file.sync_all()?;
    fs::remove_file(&made.tar)?;
    let (digest, size) = (digest::of_file(&packed)?, fs::metadata(&packed)?.len());
    fs::rename(&packed, blob(dir, &digest))?;
    let config = put(dir, CONFIG, &config(spec, &diff_id))?;
    let layer = json!({"mediaType": LAYER, "digest": digest, "size": size});
    let manifest = json!({
        "schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": [layer]
    });
    let mut entry = put(dir, MANIFEST, &manifest)?;
    let digest = text(&entry, "digest").to_owned();
    entry["platform"] = layout::platform(spec.platform);
    layout::write_index(dir, &[entry])?;
    Ok(RootLayout {
        dir: dir.to_owned(),
        digest,
        diff_id,
        bytes,
        packages: made.packages.clone(),
        cached: false,
    })
}

/// Writes the layer of a layout as a tar.
pub fn unpack(root: &RootLayout, tar: &Path) -> Result<()> {
    let manifest = layout::read(&root.dir, &root.digest)?;
    let packed = fs::File::open(blob(&root.dir, text(&manifest["layers"][0], "digest")))?;
    zstd::stream::copy_decode(packed, fs::File::create(tar)?).context("unpacking a root")
}

/// The image configuration. It tells nothing that depends on the machine or the hour.
fn config(spec: &RootSpec, diff_id: &str) -> Value {
    let created = layout::created(spec.epoch);
    let mut config = layout::platform(spec.platform);
    config["created"] = json!(created);
    config["config"] = json!({});
    config["rootfs"] = json!({"type": "layers", "diff_ids": [diff_id]});
    config["history"] = json!([{
        "created": created,
        "created_by": created_by(spec),
        "comment": "xtask"
    }]);
    config
}

fn created_by(spec: &RootSpec) -> String {
    match spec.below {
        None => format!("bootstrap debian {}", spec.suite),
        Some(_) => format!("install {}", spec.packages.join(" ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::Platform;
    use crate::layout::verify;
    use std::collections::BTreeMap;

    fn spec(platform: Platform) -> RootSpec {
        RootSpec { platform, epoch: 86_400, exclude: vec![], keep: vec![], ..super::super::tests::spec(&[]) }
    }

    fn layout(dir: &Path, platform: Platform) -> RootLayout {
        fs::create_dir_all(dir).unwrap();
        let tar = dir.join("root.tar");
        fs::write(&tar, [0; 1024]).unwrap();
        write(&dir.join("layout"), &spec(platform), &Made { tar, packages: BTreeMap::new() }).unwrap()
    }

    #[test]
    fn the_same_tar_makes_the_same_layout_and_the_platform_another() {
        let dir = tempfile::tempdir().unwrap();
        let one = layout(&dir.path().join("1"), Platform::Amd64);
        let two = layout(&dir.path().join("2"), Platform::Amd64);
        let arm = layout(&dir.path().join("3"), Platform::Arm64);
        assert_eq!(one.digest, two.digest);
        assert_ne!(one.digest, arm.digest);
        assert_eq!((one.bytes, &one.diff_id), (1024, &digest::of_bytes(&[0; 1024])));
        let index = fs::read_to_string(arm.dir.join("index.json")).unwrap();
        assert!(
            index.contains(r#""platform":{"architecture":"arm64","os":"linux","variant":"v8"}"#),
            "{index}"
        );
        let config = config(&spec(Platform::Amd64), "sha256:x").to_string();
        assert!(config.contains(r#""created":"1970-01-02T00:00:00Z""#), "{config}");
    }

    #[test]
    fn a_torn_layout_is_found() {
        let dir = tempfile::tempdir().unwrap();
        let layout = layout(dir.path(), Platform::Amd64);
        verify(&layout.dir, true).unwrap();
        let blobs = fs::read_dir(layout.dir.join("blobs/sha256")).unwrap().map(|entry| entry.unwrap().path());
        let layer = blobs.min_by_key(|path| fs::metadata(path).unwrap().len()).unwrap();
        let size = fs::metadata(&layer).unwrap().len() as usize;
        fs::write(&layer, vec![1; size]).unwrap();
        verify(&layout.dir, false).unwrap();
        assert!(verify(&layout.dir, true).unwrap_err().to_string().contains("another hash"));
        fs::write(&layer, [0]).unwrap();
        assert!(verify(&layout.dir, false).unwrap_err().to_string().contains("E_CHECK"));
        fs::write(layout.dir.join("index.json"), "{}").unwrap();
        assert!(verify(&layout.dir, false).is_err());
    }
}
