//! A root that was made elsewhere, on a machine that can run it, and is here as an OCI image layout.

use super::RootLayout;
use crate::catalog::Platform;
use crate::layout::{self, blob, text};
use crate::problem::{Id, refuse};
use anyhow::{Context, Result};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

/// The image for a platform in an OCI image layout, as a root whose interpreter is Python `python`: `3.13`. Its packages
/// are not known.
///
/// Errors: `E_CHECK` where the layout is not whole; `E_PLATFORM` where it has no image for the platform; `E_PYTHON` where
/// the interpreter is not in it.
pub fn given(dir: &Path, platform: Platform, python: &str) -> Result<RootLayout> {
    let dir = dir.canonicalize().with_context(|| format!("reading {}", dir.display()))?;
    layout::verify(&dir, true)?;
    let Some((digest, manifest)) = find(&dir, platform)? else {
        return refuse(
            Id::Platform,
            format!("--root-layout {}", dir.display()),
            format!("it holds no image for {platform}"),
            "give the layout of a root for that platform",
        );
    };
    let interpreter = format!("usr/bin/python{python}");
    if !holds(&dir, &manifest, Path::new(&interpreter))? {
        return refuse(
            Id::Python,
            format!("--root-layout {}", dir.display()),
            format!("there is no /{interpreter} in it, and that is what the base's environment starts"),
            "give a root with the packages below `base:` in variants.yaml",
        );
    }
    let (diff_id, bytes, packages) = (String::new(), 0, BTreeMap::new());
    Ok(RootLayout { dir, digest, diff_id, bytes, packages, cached: true })
}

fn find(dir: &Path, platform: Platform) -> Result<Option<(String, Value)>> {
    let wanted = layout::platform(platform);
    for entry in layout::manifests(dir)? {
        let digest = text(&entry, "digest");
        let manifest = layout::read(dir, digest)?;
        let config = layout::read(dir, text(&manifest["config"], "digest"))?;
        if ["os", "architecture"].iter().all(|field| config[*field] == wanted[*field]) {
            return Ok(Some((digest.to_owned(), manifest)));
        }
    }
    Ok(None)
}

/// Whether a path is in one of an image's layers. What a higher layer may have removed is not asked.
fn holds(dir: &Path, manifest: &Value, path: &Path) -> Result<bool> {
    for layer in manifest["layers"].as_array().into_iter().flatten() {
        let file = BufReader::new(File::open(blob(dir, text(layer, "digest")))?);
        let kind = text(layer, "mediaType");
        let tar: Box<dyn Read> = match kind.rsplit(['+', '.']).next() {
            Some("zstd") => Box::new(zstd::Decoder::with_buffer(file)?),
            Some("gzip") => Box::new(flate2::bufread::MultiGzDecoder::new(file)),
            _ => Box::new(file),
        };
        for entry in tar::Archive::new(tar).entries()? {
            let entry = entry?;
            let found = entry.path()?;
            if found.strip_prefix(".").unwrap_or(&found) == path {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::{CONFIG, MANIFEST, put, write_index};
    use serde_json::json;

    type Pack = fn(&[u8]) -> Vec<u8>;

    /// A layout with one image for arm64, whose only layer holds one file.
    fn root(dir: &Path, kind: &str, pack: Pack) {
        layout::create(dir).unwrap();
        let mut tar = tar::Builder::new(Vec::new());
        let mut header = tar::Header::new_gnu();
        header.set_size(0);
        tar.append_data(&mut header, "./usr/bin/python3.13", &b""[..]).unwrap();
        let layer = pack(&tar.into_inner().unwrap());
        let digest = crate::digest::of_bytes(&layer);
        std::fs::write(blob(dir, &digest), &layer).unwrap();
        let layer = json!({"mediaType": kind, "digest": digest, "size": layer.len()});
        let config = put(dir, CONFIG, &layout::platform(Platform::Arm64)).unwrap();
        let manifest = json!({"schemaVersion": 2, "config": config, "layers": [layer]});
        write_index(dir, &[put(dir, MANIFEST, &manifest).unwrap()]).unwrap();
    }

    #[test]
    fn the_image_for_the_platform_is_taken_if_its_interpreter_is_there() {
        let gzip = |tar: &[u8]| {
            let mut packed = Vec::new();
            let mut encoder = flate2::bufread::GzEncoder::new(tar, flate2::Compression::fast());
            encoder.read_to_end(&mut packed).unwrap();
            packed
        };
        let kinds: [(&str, Pack); 4] = [
            ("application/vnd.oci.image.layer.v1.tar", <[u8]>::to_vec),
            ("application/vnd.oci.image.layer.v1.tar+zstd", |tar| zstd::encode_all(tar, 1).unwrap()),
            ("application/vnd.oci.image.layer.v1.tar+gzip", gzip),
            ("application/vnd.docker.image.rootfs.diff.tar.gzip", gzip),
        ];
        for (kind, pack) in kinds {
            let dir = tempfile::tempdir().unwrap();
            root(dir.path(), kind, pack);
            let found = given(dir.path(), Platform::Arm64, "3.13").unwrap();
            assert_eq!(found.blobs().unwrap().len(), 1, "{kind}");
            let refused = |platform, python| given(dir.path(), platform, python).unwrap_err().to_string();
            let error = refused(Platform::Amd64, "3.13");
            assert!(error.contains("E_PLATFORM") && error.contains("linux/amd64"), "{error}");
            let error = refused(Platform::Arm64, "3.12");
            assert!(error.contains("E_PYTHON") && error.contains("/usr/bin/python3.12"), "{error}");
        }
    }
}
