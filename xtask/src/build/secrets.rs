//! What build steps need from the host and what must not stay in the image: the CA, and the addresses of the indexes.
//!
//! All of it reaches the steps as BuildKit secrets: in no layer, no history and no argument list.

use crate::files;
use crate::http::ca_bundle;
use anyhow::Result;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Files given to build steps as secrets. The folder that holds the written ones goes when this is dropped.
#[derive(Debug)]
pub struct Secrets {
    files: BTreeMap<&'static str, PathBuf>,
    _folder: tempfile::TempDir,
}

impl Secrets {
    /// Gathers them from the command line, the environment, and pip's and uv's own configuration.
    ///
    /// Errors: `E_TLS` when a named CA file is not there.
    /// They are kept below `state` while they are needed.
    pub fn gather(ca_cert: Option<&Path>, state: &Path) -> Result<Secrets> {
        let ca = ca_bundle(ca_cert)?;
        let index = Index::of(|name| std::env::var(name).ok(), &pip_configuration());
        let texts = index.into_iter().flat_map(|index| [("pip", index.pip()), ("uv", index.uv())]);
        let mut secrets = Secrets::of_texts(texts, state)?;
        secrets.files.extend(ca.map(|ca| ("ca", ca)));
        Ok(secrets)
    }

    /// Texts by their ids, each in a file of its own.
    pub fn of_texts(
        texts: impl IntoIterator<Item = (&'static str, String)>,
        state: &Path,
    ) -> Result<Secrets> {
        let folder = files::work_folder(&state.join("secrets"))?;
        let mut files = BTreeMap::new();
        for (id, text) in texts {
            let path = folder.path().join(id);
            files::write_private(&path, text.as_bytes())?;
            files.insert(id, path);
        }
        Ok(Secrets { files, _folder: folder })
    }

    /// Whether the steps are given a CA.
    pub fn has_ca(&self) -> bool {
        self.files.contains_key("ca")
    }

    /// Id and file of each.
    pub fn files(&self) -> impl Iterator<Item = (&'static str, &Path)> {
        self.files.iter().map(|(id, path)| (*id, path.as_path()))
    }
}

/// The addresses of the indexes that this host's variables and pip's files name, the main one first; none where they name
/// none. They may hold credentials.
pub fn indexes() -> Vec<String> {
    let index = Index::of(|name| std::env::var(name).ok(), &pip_configuration());
    index.map(|index| std::iter::once(index.url).chain(index.extra).collect()).unwrap_or_default()
}

/// The same, or else the one that the tools take of their own accord, which is asked for only then.
///
/// Errors: those of `default`.
pub fn indexes_or_default(default: impl FnOnce() -> Result<String>) -> Result<Vec<String>> {
    let named = indexes();
    if named.is_empty() { Ok(vec![default()?]) } else { Ok(named) }
}

/// Where packages come from, if the host says so: the tools' own default otherwise.
#[derive(Debug, PartialEq, Eq)]
struct Index {
    url: String,
    extra: Vec<String>,
}

impl Index {
    /// uv's variables first, then pip's variables, then pip's configuration files.
    fn of(variable: impl Fn(&str) -> Option<String>, pip: &BTreeMap<String, String>) -> Option<Index> {
        let set = |name: &str| variable(name).filter(|value| !value.trim().is_empty());
        let url = set("UV_DEFAULT_INDEX")
            .or_else(|| set("UV_INDEX_URL"))
            .or_else(|| set("PIP_INDEX_URL"))
            .or_else(|| pip.get("index-url").cloned())?;
        let extra = set("UV_EXTRA_INDEX_URL")
            .or_else(|| set("PIP_EXTRA_INDEX_URL"))
            .or_else(|| pip.get("extra-index-url").cloned())
            .unwrap_or_default();
        Some(Index { url, extra: extra.split_whitespace().map(str::to_owned).collect() })
    }

    fn pip(&self) -> String {
        let mut text = format!("[global]\nindex-url = {}\n", self.url);
        if !self.extra.is_empty() {
            text.push_str(&format!("extra-index-url =\n    {}\n", self.extra.join("\n    ")));
        }
        text
    }

    fn uv(&self) -> String {
        let mut text = String::new();
        for url in &self.extra {
            text.push_str(&format!("[[index]]\nurl = {url:?}\n"));
        }
        text.push_str(&format!("[[index]]\nurl = {:?}\ndefault = true\n", self.url));
        text
    }
}

/// `[global]` of pip's configuration files: system, user, and the one that `PIP_CONFIG_FILE` names.
fn pip_configuration() -> BTreeMap<String, String> {
    let home = std::env::home_dir().unwrap_or_default();
    let mut paths =
        vec![PathBuf::from("/etc/pip.conf"), home.join(".pip/pip.conf"), home.join(".config/pip/pip.conf")];
    paths.extend(std::env::var_os("PIP_CONFIG_FILE").map(PathBuf::from));
    let texts = paths.iter().filter_map(|path| std::fs::read_to_string(path).ok());
    texts.flat_map(|text| pip_settings(&text)).collect()
}

/// The settings of `[global]` and `[install]` in a pip.conf; a value may go on in indented lines.
fn pip_settings(text: &str) -> BTreeMap<String, String> {
    let mut settings = BTreeMap::<String, String>::new();
    let (mut wanted, mut last) = (false, None::<String>);
    for line in text.lines() {
        let trimmed = line.trim();
        if trimmed.is_empty() || trimmed.starts_with(['#', ';']) {
            continue;
        }
        if let Some(section) = trimmed.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            wanted = matches!(section, "global" | "install");
            last = None;
        } else if let (true, Some(key)) = (line.starts_with([' ', '\t']), &last) {
            let value = settings.entry(key.clone()).or_default();
            value.push(' ');
            value.push_str(trimmed);
        } else if let (true, Some((key, value))) = (wanted, trimmed.split_once(['=', ':'])) {
            let key = key.trim().replace('_', "-");
            settings.insert(key.clone(), value.trim().to_owned());
            last = Some(key);
        }
    }
    settings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_index_comes_from_the_host() {
        let conf = pip_settings(
            "[global]\n# c\nindex_url = https://a.example/simple\nextra-index-url =\n  https://b.example\n  https://c.example\n[freeze]\ntimeout = 1\n",
        );
        let index = Index::of(|_| None, &conf).unwrap();
        assert_eq!(index.url, "https://a.example/simple");
        assert_eq!(index.extra, ["https://b.example", "https://c.example"]);
        assert!(index.uv().ends_with("[[index]]\nurl = \"https://a.example/simple\"\ndefault = true\n"));
        let variable = |name: &str| (name == "UV_DEFAULT_INDEX").then(|| "https://u.example".to_owned());
        assert_eq!(Index::of(variable, &conf).unwrap().url, "https://u.example");
        assert_eq!(Index::of(|_| None, &BTreeMap::new()), None);
    }
}
