//! The table of releases in the project's READMEs, between two markers; the rest of them is written by hand.

use super::{Files, Templates};
use crate::catalog::Catalog;
use crate::lock::Lock;
use crate::resolve::Resolved;
use crate::tags::planned;
use anyhow::{Context as _, Result};
use serde::Serialize;
use std::path::{Path, PathBuf};
use tera::Context;

/// Every README with the template of its table.
const READMES: [(&str, &str); 2] =
    [("README.md", "readme/en.md.tera"), ("README.zh-CN.md", "readme/zh-CN.md.tera")];

/// What the table stands between.
const BEGIN: &str = "<!-- rendered by `cargo xtask render`: releases -->\n";
const END: &str = "<!-- end of what is rendered -->\n";

#[derive(Serialize)]
struct Row<'a> {
    name: &'a str,
    facts: &'a Resolved,
    /// major.minor of cuDNN, which is all that a reader looks for.
    cudnn: String,
    tags: Vec<String>,
}

/// The READMEs that lie in a folder, with their tables as the lock has it. One without the markers is its owner's own.
pub fn readmes(folder: &Path, catalog: &Catalog, lock: &Lock, templates: &Templates) -> Result<Files> {
    let mut files = Files::new();
    for (name, template) in READMES {
        let path = folder.join(name);
        if !path.exists() || !templates.has(template) {
            continue;
        }
        let text = std::fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
        if let Some(text) = replaced(&text, &table(catalog, lock, templates, template)?) {
            files.insert(PathBuf::from(name), text);
        }
    }
    Ok(files)
}

fn table(catalog: &Catalog, lock: &Lock, templates: &Templates, template: &str) -> Result<String> {
    let row = |name| {
        let facts = &lock.releases[name].facts;
        let cudnn = facts.cudnn.split('.').take(2).collect::<Vec<_>>().join(".");
        Ok(Row { name, facts, cudnn, tags: planned(catalog, facts, "VARIANT")? })
    };
    let rows: Result<Vec<Row>> = catalog.releases_newest_first().into_iter().map(row).collect();
    let mut context = Context::new();
    context.insert("default", &catalog.defaults.release);
    context.insert("rows", &rows?);
    templates.render(template, &context)
}

/// A text with something else between its markers; `None` where it has none.
fn replaced(text: &str, table: &str) -> Option<String> {
    let (before, rest) = text.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{BEGIN}{table}{END}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_between_the_markers_changes() {
        let text = format!("a\n{BEGIN}old\n{END}b\n");
        assert_eq!(replaced(&text, "new\n"), Some(format!("a\n{BEGIN}new\n{END}b\n")));
        assert_eq!(replaced("no markers", "new\n"), None);
    }
}
