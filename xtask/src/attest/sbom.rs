//! The bill of materials: CycloneDX 1.6, made from what is in the image. The same content gives the same bytes.

use super::inventory::{Inventory, Package, Wheel};
use crate::digest;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::{Duration, UNIX_EPOCH};

/// The media type that CycloneDX is registered under.
pub const MEDIA_TYPE: &str = "application/vnd.cyclonedx+json";

/// What a bill is about.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// The repository.
    pub name: &'a str,
    /// The digest of the image's manifest.
    pub digest: &'a str,
    /// Seconds since 1970 that the image tells as its time.
    pub epoch: u64,
}

/// The bill of an image. `hashes` has the SHA-256 of the wheels that are locked, by name and version.
pub fn bill(subject: Subject, inventory: &Inventory, hashes: &BTreeMap<(String, String), String>) -> Value {
    let distribution = &inventory.distribution;
    let mut packages: Vec<&Package> = inventory.debian.iter().collect();
    packages.sort_unstable();
    let mut wheels: Vec<&Wheel> = inventory.wheels.iter().collect();
    wheels.sort_unstable();
    wheels.dedup_by_key(|wheel| (&wheel.name, &wheel.version));
    let of_distribution = packages.into_iter().map(|it| {
        let Package { name, version, architecture } = it;
        let release = format!("{}-{}", distribution.id, distribution.version);
        let purl = format!(
            "pkg:deb/{}/{}@{}?arch={architecture}&distro={release}",
            distribution.id,
            escape(name),
            escape(version)
        );
        component(name, version, purl)
    });
    let of_python = wheels.into_iter().map(|it| {
        let mut one = component(&it.name, &it.version, purl_of_wheel(&it.name, &it.version));
        if let Some(hash) = hashes.get(&(it.name.clone(), it.version.clone())) {
            one["hashes"] = json!([{"alg": "SHA-256", "content": hash}]);
        }
        match (&it.expression, &it.license) {
            (Some(expression), _) => one["licenses"] = json!([{"expression": expression}]),
            (None, Some(name)) => one["licenses"] = json!([{"license": {"name": name}}]),
            (None, None) => {}
        }
        one
    });
    let time = humantime::format_rfc3339_seconds(UNIX_EPOCH + Duration::from_secs(subject.epoch));
    let tool =
        json!({"type": "application", "name": env!("CARGO_PKG_NAME"), "version": env!("CARGO_PKG_VERSION")});
    let purl = format!("pkg:oci/{}@{}", escape(subject.name), escape(subject.digest));
    json!({
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": serial(subject.digest),
        "version": 1,
        "metadata": {
            "timestamp": time.to_string(),
            "tools": {"components": [tool]},
            "component": {"type": "container", "bom-ref": purl, "name": subject.name, "version": subject.digest, "purl": purl},
        },
        "components": of_distribution.chain(of_python).collect::<Vec<Value>>(),
    })
}

/// The package URL of a wheel.
pub fn purl_of_wheel(name: &str, version: &str) -> String {
    format!("pkg:pypi/{}@{}", escape(name), escape(version))
}

/// Names and versions in a bill, by package URL without its version: what two bills are compared by.
pub fn versions(bill: &Value) -> BTreeMap<String, String> {
    let one = |component: &Value| {
        let (purl, version) = (component["purl"].as_str()?, component["version"].as_str()?);
        let kind = purl.strip_prefix("pkg:")?.split('/').next()?;
        Some((format!("{kind} {}", component["name"].as_str()?), version.to_owned()))
    };
    bill["components"].as_array().into_iter().flatten().filter_map(one).collect()
}

/// Licences in a bill of what PyPI has, by name: an SPDX expression, or what older metadata calls it.
pub fn licences(bill: &Value) -> BTreeMap<String, String> {
    let one = |component: &Value| {
        component["purl"].as_str()?.strip_prefix("pkg:pypi/")?;
        let licence = &component["licenses"][0];
        let text = licence["expression"].as_str().or_else(|| licence["license"]["name"].as_str())?;
        Some((component["name"].as_str()?.to_owned(), text.to_owned()))
    };
    bill["components"].as_array().into_iter().flatten().filter_map(one).collect()
}

fn component(name: &str, version: &str, purl: String) -> Value {
    json!({"type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl})
}

/// What may not stand in a part of a package URL is encoded; see the package URL specification.
fn escape(text: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-._~".contains(&b);
    text.bytes().map(|b| if plain(b) { (b as char).to_string() } else { format!("%{b:02X}") }).collect()
}

/// A UUID that is the image's: of its digest, marked as made by a rule of one's own (version 8 of RFC 9562).
fn serial(image: &str) -> String {
    let hex = digest::of_bytes(image.as_bytes()).replace("sha256:", "");
    format!("urn:uuid:{}-{}-8{}-8{}-{}", &hex[..8], &hex[8..12], &hex[13..16], &hex[17..20], &hex[20..32])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inventory(shuffled: bool) -> Inventory {
        let text = r#"{"distribution":{"id":"debian","version":"13"},
            "debian":[{"name":"libc6","version":"2.41-12","architecture":"amd64"},
                      {"name":"g++","version":"4:14.2.0-1","architecture":"amd64"}],
            "wheels":[{"name":"torch","version":"2.15.0+cu132","expression":"BSD-3-Clause","license":null},
                      {"name":"numpy","version":"2.3","expression":null,"license":"BSD"}]}"#;
        let mut inventory: Inventory = serde_json::from_str(text).unwrap();
        if shuffled {
            inventory.debian.reverse();
            inventory.wheels.reverse();
        }
        inventory
    }

    #[test]
    fn the_same_content_gives_the_same_bill() {
        let subject = Subject { name: "pytorch-cuda", digest: "sha256:00", epoch: 1_764_460_800 };
        let hashes = BTreeMap::from([(("numpy".to_owned(), "2.3".to_owned()), "ab".repeat(32))]);
        let bill = |shuffled| bill(subject, &inventory(shuffled), &hashes);
        assert_eq!(bill(false), bill(true));
        let it = bill(false);
        let purls: Vec<&str> =
            it["components"].as_array().unwrap().iter().map(|it| it["purl"].as_str().unwrap()).collect();
        let expected = [
            "pkg:deb/debian/g%2B%2B@4%3A14.2.0-1?arch=amd64&distro=debian-13",
            "pkg:deb/debian/libc6@2.41-12?arch=amd64&distro=debian-13",
            "pkg:pypi/numpy@2.3",
            "pkg:pypi/torch@2.15.0%2Bcu132",
        ];
        assert_eq!(purls, expected);
        assert_eq!(it["components"][2]["hashes"][0]["content"], "ab".repeat(32));
        assert_eq!(it["components"][3]["licenses"][0]["expression"], "BSD-3-Clause");
        assert_eq!(it["metadata"]["timestamp"], "2025-11-30T00:00:00Z");
        assert_eq!(versions(&it)["deb g++"], "4:14.2.0-1");
        let licences = licences(&it);
        assert_eq!((licences["torch"].as_str(), licences["numpy"].as_str()), ("BSD-3-Clause", "BSD"));
        assert_eq!(it["serialNumber"].as_str().unwrap().len(), "urn:uuid:".len() + 36);
    }
}
