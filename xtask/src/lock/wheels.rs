//! What uv answers: a `pylock.toml` (PEP 751) of one release on one platform, read into wheels.

use super::Wheel;
use anyhow::{Context, Result, bail};
use serde::Deserialize;
use std::collections::BTreeMap;

#[derive(Deserialize)]
struct Pylock {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    version: Option<String>,
    #[serde(default)]
    wheels: Vec<File>,
}

#[derive(Deserialize)]
struct File {
    url: Option<String>,
    path: Option<String>,
    name: Option<String>,
    #[serde(default)]
    size: u64,
    hashes: BTreeMap<String, String>,
}

/// Reads the wheels of a pylock, ordered by name and file.
///
/// Errors: a package without a wheel or without a SHA-256.
pub(super) fn parse(text: &str) -> Result<Vec<Wheel>> {
    let pylock: Pylock = toml::from_str(text).context("reading uv's pylock")?;
    let mut wheels = Vec::new();
    for package in pylock.packages {
        let version = package.version.unwrap_or_default();
        if package.wheels.is_empty() {
            bail!("{} {version} has no wheel for this platform", package.name);
        }
        for file in package.wheels {
            let name = file.name().with_context(|| format!("a wheel of {} has no name", package.name))?;
            let sha256 = file.hashes.get("sha256").cloned();
            wheels.push(Wheel {
                name: package.name.clone(),
                version: version.clone(),
                bytes: file.size,
                sha256: sha256.with_context(|| format!("{name} has no SHA-256"))?,
                file: name,
            });
        }
    }
    wheels.sort_unstable_by(|a, b| (&a.name, &a.file).cmp(&(&b.name, &b.file)));
    Ok(wheels)
}

impl File {
    /// The file's name; the address is not kept, the host's configuration gives it anew.
    fn name(&self) -> Option<String> {
        let last = |address: &String| address.rsplit('/').next().map(str::to_owned);
        self.name
            .clone()
            .or_else(|| self.url.as_ref().and_then(last))
            .or_else(|| self.path.as_ref().and_then(last))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wheels_lose_their_address_and_keep_their_hash() {
        let text = r#"
lock-version = "1.0"
[[packages]]
name = "b"
version = "2.10"
wheels = [{ url = "https://index.example.org/x/b-2.10-py3-none-any.whl", size = 5, hashes = { sha256 = "bb" } }]
[[packages]]
name = "a"
version = "1"
sdist = { url = "https://index.example.org/a-1.tar.gz", hashes = { sha256 = "00" } }
wheels = [{ url = "https://index.example.org/a-1-py3-none-any.whl", hashes = { sha256 = "aa" } }]
"#;
        let wheels = parse(text).unwrap();
        let shown: Vec<_> = wheels.iter().map(|w| (w.file.as_str(), w.bytes, w.sha256.as_str())).collect();
        assert_eq!(shown, [("a-1-py3-none-any.whl", 0, "aa"), ("b-2.10-py3-none-any.whl", 5, "bb")]);
        assert_eq!(wheels[1].version, "2.10");
    }

    #[test]
    fn a_package_without_a_wheel_is_an_error() {
        let text = "[[packages]]\nname = \"a\"\nversion = \"1\"\n";
        assert!(parse(text).unwrap_err().to_string().contains("no wheel"));
    }
}
