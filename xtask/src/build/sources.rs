//! What apt is told, in secret, while packages are installed into a root that is an image of a registry: the way out, and
//! the host's mirrors of that suite where the host names some. Nothing of it stays in the image.

use super::secrets::Secrets;
use crate::apt::{Archives, Family, Host, Source, host_configuration};
use crate::catalog::{Distribution, Root};
use anyhow::Result;
use std::path::Path;

/// Where the steps find the CA and the sources: templates/parts/install.tera.
const CA: &str = "/run/secrets/ca.crt";
const SOURCES: &str = "/run/secrets/sources.list";

/// What apt is told for one root; `has_ca` tells that the steps are given the host's CA. `state` is the folder for private
/// things.
pub fn apt_secrets(root: &Root, has_ca: bool, state: &Path) -> Result<Secrets> {
    let sources = mirrors(root, state);
    // A host without an apt of its own has nothing to add.
    let inherited = host_configuration().unwrap_or_default();
    let options = options(&inherited, has_ca, sources.is_some());
    Secrets::of_texts([("apt", options)].into_iter().chain(sources.map(|text| ("sources", text))), state)
}

/// The host's mirrors of a root's suite; none where the host names none of that distribution.
fn mirrors(root: &Root, state: &Path) -> Option<String> {
    let family = match root.distribution {
        Distribution::Debian => Family::Debian,
        Distribution::Ubuntu => Family::Ubuntu,
    };
    let archives = Archives::of_host(family, &Host::read().ok()?, &state.join("keys")).ok()?;
    let mut sources = archives.suite(&root.suite, false);
    for source in &mut sources {
        // A keyring of the host's own is not in the image; those of the distribution are.
        let own = format!("/usr/share/keyrings/{}-archive-keyring", family.as_str());
        source.archive.options.retain(|(key, value)| key != "signed-by" || value.starts_with(&own));
    }
    Some(sources.iter().map(|source| Source::line(source) + "\n").collect())
}

/// The host's ways out, with paths that are true inside.
fn options(inherited: &str, has_ca: bool, has_sources: bool) -> String {
    let is_path = |line: &&str| line.contains("CAInfo") || line.contains("CAPath") || line.contains(" \"/");
    let mut lines: Vec<String> = inherited.lines().filter(|line| !is_path(line)).map(str::to_owned).collect();
    if has_ca {
        lines.push(format!("Acquire::https::CAInfo \"{CA}\";"));
    }
    if has_sources {
        lines.push(format!("Dir::Etc::sourcelist \"{SOURCES}\";"));
        lines.push("Dir::Etc::sourceparts \"/dev/null\";".to_owned());
    }
    lines.push("Acquire::Retries \"3\";\n".to_owned());
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_the_host_are_not_taken_inside() {
        let host = "Acquire::http::Proxy \"http://proxy.example.org:3128\";\nAcquire::https::CAInfo \"/etc/ca.pem\";\n";
        let text = options(host, true, true);
        assert!(text.contains("proxy.example.org") && !text.contains("/etc/ca.pem"));
        assert!(
            text.contains("CAInfo \"/run/secrets/ca.crt\"")
                && text.contains("sourcelist \"/run/secrets/sources.list\"")
        );
        let text = options(host, false, false);
        assert!(!text.contains("CAInfo") && !text.contains("sourcelist"));
    }
}
