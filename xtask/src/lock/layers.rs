//! The record of finished layers: what a base's layers were when they were first made, and must be ever after.

use crate::catalog::Platform;
use crate::problem::{Id, Problem, all_or_nothing};
use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// Where the record lives, relative to the catalog's folder.
pub const FILE: &str = "images/layers.json";

/// Layers by release, platform, codec, and their name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Record(BTreeMap<String, BTreeMap<Platform, BTreeMap<String, Layers>>>);

/// The layers of one base by their name.
pub type Layers = BTreeMap<String, Recorded>;

/// A layer as it was made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recorded {
    /// Digest of everything that it was made from: the record holds for that and nothing else.
    pub key: String,
    /// Digest of the compressed layer.
    pub digest: String,
    /// Digest of the tar.
    pub diff_id: String,
    /// Bytes of the compressed layer.
    pub size: u64,
}

/// Reads the record that lies beside the catalog; an empty one where there is none.
pub fn read(folder: &Path) -> Result<Record> {
    let path = folder.join(FILE);
    match std::fs::read_to_string(&path) {
        Ok(text) => serde_json::from_str(&text).with_context(|| format!("reading {}", path.display())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Record::default()),
        Err(error) => Err(error).with_context(|| format!("reading {}", path.display())),
    }
}

/// Writes the record so that a reader sees the old one or the new one.
pub fn write(folder: &Path, record: &Record) -> Result<()> {
    let text = serde_json::to_string_pretty(record)? + "\n";
    crate::files::write(&folder.join(FILE), text.as_bytes())
}

impl Record {
    /// The layers of a base, as far as they are recorded.
    pub fn layers(&self, release: &str, platform: Platform, codec: &str) -> Option<&Layers> {
        self.0.get(release)?.get(&platform)?.get(codec)
    }

    /// Takes the layers of a base in; the record of a layer that is made from something else now is replaced. Gives
    /// whether anything changed.
    ///
    /// Errors: `E_LAYER_DIFFERS`, a problem a layer, where the same input gave other bytes.
    pub fn prove(&mut self, release: &str, platform: Platform, codec: &str, made: Layers) -> Result<bool> {
        let known = self.layers(release, platform, codec);
        let differs = |name: &String, layer: &Recorded| {
            known
                .and_then(|known| known.get(name))
                .filter(|known| known.key == layer.key && *known != layer)
                .cloned()
        };
        let problem = |(name, layer): (&String, &Recorded)| {
            let known = differs(name, layer)?;
            let place = format!("{FILE}: release {release}, {platform}, layer {name}");
            let what =
                format!("it is {} now, {} is recorded for the same wheels", layer.digest, known.digest);
            let cure = "find out what makes it differ; if the program's own recipe changed, raise its number";
            Some(Problem::new(Id::LayerDiffers, place, what, cure))
        };
        all_or_nothing(made.iter().filter_map(problem).collect())?;
        if known == Some(&made) {
            return Ok(false);
        }
        let platforms = self.0.entry(release.to_owned()).or_default();
        platforms.entry(platform).or_default().insert(codec.to_owned(), made);
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_input_must_give_the_same_layer() {
        let layer = |key: &str, digest: &str| Recorded {
            key: key.to_owned(),
            digest: digest.to_owned(),
            diff_id: "d".to_owned(),
            size: 1,
        };
        let layers = |key: &str, digest: &str| Layers::from([("torch".to_owned(), layer(key, digest))]);
        let mut record = Record::default();
        let mut prove = |made| record.prove("2.15", Platform::Amd64, "splice", made);
        assert!(prove(layers("k", "a")).unwrap());
        assert!(!prove(layers("k", "a")).unwrap());
        let error = prove(layers("k", "b")).unwrap_err().to_string();
        assert!(error.contains("E_LAYER_DIFFERS") && error.contains("layer torch"), "{error}");
        assert!(prove(layers("l", "b")).unwrap());
        assert_eq!(record.layers("2.15", Platform::Amd64, "splice"), Some(&layers("l", "b")));
        assert_eq!(record.layers("2.15", Platform::Arm64, "splice"), None);
    }
}
