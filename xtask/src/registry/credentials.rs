//! Who one is at a registry: what `docker login` left in docker's own configuration.

use crate::problem::{Id, refuse};
use crate::runner::{Step, tail};
use anyhow::{Context, Result};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

/// A user with a password, or what an identity provider gave instead.
#[derive(Clone, PartialEq, Eq)]
pub enum Credentials {
    /// A name and its password.
    Basic(String, String),
    /// A token that buys others.
    Refresh(String),
}

/// docker's `config.json`, as far as it tells who one is.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Config {
    auths: BTreeMap<String, Auth>,
    creds_store: Option<String>,
    cred_helpers: BTreeMap<String, String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "lowercase", default)]
struct Auth {
    auth: String,
    username: String,
    password: String,
    identitytoken: String,
}

/// What a credential helper answers.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Helped {
    username: String,
    secret: String,
}

impl Config {
    /// docker's configuration of this user; without one nobody is logged in.
    pub fn read() -> Result<Config> {
        let folder = std::env::var_os("DOCKER_CONFIG").map(PathBuf::from);
        let folder = folder.unwrap_or_else(|| std::env::home_dir().unwrap_or_default().join(".docker"));
        let path = folder.join("config.json");
        match std::fs::read_to_string(&path) {
            Ok(text) => serde_json::from_str(&text).with_context(|| format!("reading {}", path.display())),
            Err(_) => Ok(Config::default()),
        }
    }

    /// Who one is at a registry: a helper for that host, then the store, then the file itself, as docker asks.
    ///
    /// Errors: `E_REGISTRY_AUTH` where a helper is named and fails.
    pub fn of(&self, host: &str) -> Result<Option<Credentials>> {
        let helper = self.cred_helpers.get(host).or(self.creds_store.as_ref());
        match helper {
            Some(helper) => match ask(helper, host)? {
                Some(found) => Ok(Some(found)),
                None => self.in_file(host),
            },
            None => self.in_file(host),
        }
    }

    fn in_file(&self, host: &str) -> Result<Option<Credentials>> {
        let named = |key: &&String| {
            let bare = key.trim_start_matches("https://").trim_start_matches("http://");
            bare.trim_end_matches('/').trim_end_matches("/v1").trim_end_matches("/v2") == host
        };
        let Some((key, auth)) = self.auths.iter().find(|(key, _)| named(key)) else {
            return Ok(None);
        };
        if !auth.identitytoken.is_empty() {
            return Ok(Some(Credentials::Refresh(auth.identitytoken.clone())));
        }
        if !auth.username.is_empty() {
            return Ok(Some(Credentials::Basic(auth.username.clone(), auth.password.clone())));
        }
        if auth.auth.is_empty() {
            return Ok(None);
        }
        let decoded = STANDARD.decode(&auth.auth).ok().and_then(|bytes| String::from_utf8(bytes).ok());
        match decoded.as_deref().and_then(|text| text.split_once(':')) {
            Some((user, password)) => Ok(Some(Credentials::Basic(user.to_owned(), password.to_owned()))),
            None => refuse(
                Id::RegistryAuth,
                format!("docker's configuration: auths.{key:?}"),
                "it is no base64 of user:password",
                format!("run `docker login {host}`"),
            ),
        }
    }
}

/// Asks a helper as docker does: the host on its standard input, JSON on its standard output.
fn ask(helper: &str, host: &str) -> Result<Option<Credentials>> {
    let step =
        Step::new("who one is at the registry", [format!("docker-credential-{helper}").as_str(), "get"]);
    let out = step.feed(host)?;
    if !out.status.success() {
        // That is how helpers say that they know nothing of a host.
        if out.stdout.contains("credentials not found") {
            return Ok(None);
        }
        let said = tail(&format!("{}{}", out.stderr.trim(), out.stdout.trim()), 2);
        return refuse(Id::RegistryAuth, step.program(), said, format!("run `docker login {host}`"));
    }
    let found: Helped = serde_json::from_str(&out.stdout).context("reading what a credential helper says")?;
    Ok(Some(match found.username.as_str() {
        "<token>" => Credentials::Refresh(found.secret),
        _ => Credentials::Basic(found.username, found.secret),
    }))
}

impl Credentials {
    /// The value of an `Authorization` header, where it is a name and a password.
    pub(super) fn basic(&self) -> Option<String> {
        match self {
            Credentials::Basic(user, password) => {
                Some(format!("Basic {}", STANDARD.encode(format!("{user}:{password}"))))
            }
            Credentials::Refresh(_) => None,
        }
    }
}

/// A password is printed nowhere.
impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credentials(…)")
    }
}

impl fmt::Debug for Auth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Auth(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dockers_file_is_read_in_each_of_its_forms() {
        let config: Config = serde_json::from_str(
            r#"{"auths":{"r.example.org":{"auth":"dTpwOnE="},"https://i.example.org/v1/":{"auth":"dTpw"},
                "t.example.org:5000":{"identitytoken":"i"},"n.example.org":{"username":"u","password":"p"},
                "empty.example.org":{},"bad.example.org":{"auth":"?"}},"HttpHeaders":{"a":"b"}}"#,
        )
        .unwrap();
        let basic =
            |user: &str, password: &str| Some(Credentials::Basic(user.to_owned(), password.to_owned()));
        let cases = [
            ("r.example.org", basic("u", "p:q")),
            ("i.example.org", basic("u", "p")),
            ("n.example.org", basic("u", "p")),
            ("t.example.org:5000", Some(Credentials::Refresh("i".to_owned()))),
            ("t.example.org", None),
            ("empty.example.org", None),
        ];
        for (host, expected) in cases {
            assert!(config.of(host).unwrap() == expected, "{host}");
        }
        assert!(config.of("bad.example.org").unwrap_err().to_string().contains("error[E_REGISTRY_AUTH]"));
        assert_eq!(format!("{:?}", basic("u", "p")), "Some(Credentials(…))");
        assert!(!format!("{config:?}").contains("dTpw"));
    }
}
