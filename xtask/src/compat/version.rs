//! Versions that can be compared by their numbers: `2.9.1` stands before `2.10.0`.

use serde::{Deserialize, Serialize};
use std::fmt;

/// A version of numbers and dots. Its text is kept as it was written.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Version {
    parts: Vec<u64>,
    text: String,
}

impl Version {
    /// Reads `2.9.1`; `None` if a part between dots is not a number.
    pub fn parse(text: &str) -> Option<Version> {
        let parts: Option<Vec<u64>> = text.split('.').map(|part| part.parse().ok()).collect();
        Some(Version { parts: parts?, text: text.to_owned() })
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl From<Version> for String {
    fn from(version: Version) -> String {
        version.text
    }
}

impl TryFrom<String> for Version {
    type Error = String;

    fn try_from(text: String) -> Result<Version, String> {
        Version::parse(&text).ok_or_else(|| format!("`{text}` is not a version of numbers and dots"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_ordered_by_their_numbers() {
        let versions = ["2.2.9", "2.9", "2.9.1", "2.10.0", "10.0"];
        let parsed: Vec<Version> = versions.iter().map(|text| Version::parse(text).unwrap()).collect();
        assert!(parsed.is_sorted());
        assert_ne!(Version::parse("2.9"), Version::parse("2.09"));
    }

    #[test]
    fn what_is_not_numbers_is_no_version() {
        for text in ["", "2.", "2.9.1rc1", "v2.9", "2.9.1+cu128", "cu128"] {
            assert_eq!(Version::parse(text), None, "{text}");
        }
    }
}
