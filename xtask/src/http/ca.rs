//! The CA certificates that this host trusts.

use crate::problem::{Id, refuse};
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};
use ureq::tls::{Certificate, PemItem, RootCerts, parse_pem};

/// Variables that name a bundle of CA certificates, the most deliberate first.
const VARIABLES: &[&str] = &["SSL_CERT_FILE", "PIP_CERT", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"];

/// Where distributions keep theirs: Debian and Arch, Fedora, openSUSE and Alpine.
const SYSTEM: &[&str] =
    &["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem"];

/// The CA bundle that was named by an option or by the environment; none where nobody named one.
///
/// Errors: `E_TLS` when it is not there.
pub fn bundle(option: Option<&Path>) -> Result<Option<PathBuf>> {
    named(option, |name| std::env::var_os(name).map(PathBuf::from))
}

fn named(option: Option<&Path>, variable: impl Fn(&str) -> Option<PathBuf>) -> Result<Option<PathBuf>> {
    let named = option.map(|path| ("--ca-cert", path.to_owned())).or_else(|| {
        let set = VARIABLES.iter().map(|name| (*name, variable(name)));
        set.filter_map(|(name, path)| Some((name, path?))).find(|(_, path)| !path.as_os_str().is_empty())
    });
    match named {
        None => Ok(None),
        Some((_, path)) if path.is_file() => Ok(Some(std::path::absolute(path)?)),
        Some((name, path)) => refuse(
            Id::Tls,
            name,
            format!("there is no file `{}`", path.display()),
            "give the PEM file of your CA, or unset it if no proxy needs one",
        ),
    }
}

/// What this program itself trusts: the named bundle, the system's, or Mozilla's list where there is neither.
pub(super) fn roots() -> Result<RootCerts> {
    let system = || SYSTEM.iter().map(PathBuf::from).find(|path| path.is_file());
    let Some(path) = bundle(None)?.or_else(system) else {
        return Ok(RootCerts::WebPki);
    };
    let pem = std::fs::read(&path).with_context(|| format!("reading {}", path.display()))?;
    let certificates: Vec<Certificate<'static>> = parse_pem(&pem)
        .filter_map(|item| match item {
            Ok(PemItem::Certificate(certificate)) => Some(certificate),
            _ => None,
        })
        .collect();
    Ok(RootCerts::new_with_certs(&certificates))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_named_ca_must_be_there() {
        let error = named(Some(Path::new("/no/such/ca.pem")), |_| None).unwrap_err().to_string();
        assert!(error.contains("E_TLS") && error.contains("--ca-cert") && error.contains("/no/such/ca.pem"));
        let from_variable = |name: &str| (name == "PIP_CERT").then(|| PathBuf::from("/dev/null/x"));
        assert!(named(None, from_variable).unwrap_err().to_string().contains("PIP_CERT"));
        assert_eq!(named(None, |_| None).unwrap(), None);
    }
}
