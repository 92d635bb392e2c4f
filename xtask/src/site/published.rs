//! What a registry tells of an image, in the words of its page.

use super::history::Change;
use super::{Figures, Report, of_bill};
use crate::out::{gigabytes, size};
use crate::publish::contents::Difference;
use crate::publish::shown::{Before, Shown};
use serde::Serialize;
use std::time::UNIX_EPOCH;

/// Where an image is, and what is proved of it.
#[derive(Clone, Debug, Serialize)]
pub struct Published {
    /// The names that point at it.
    pub names: Vec<String>,
    /// The state of its smoke test.
    pub state: String,
    /// When it was tested, as RFC 3339.
    pub tested: Option<String>,
    /// What is another since the image before.
    pub since: Option<Since>,
}

/// What became of an image since the one before it.
#[derive(Clone, Debug, Serialize)]
pub struct Since {
    /// The name of the one before.
    pub tag: String,
    /// Packages that are another.
    pub packages: Vec<Change>,
    /// Whether both have a bill of materials.
    pub packages_known: bool,
    /// Layers that both have.
    pub shared: usize,
    /// Layers that are new, and their bytes: what is fetched by who has the image before.
    pub new: usize,
    /// As `new`.
    pub fetched: String,
    /// Bytes to pull of both.
    pub sizes: (String, String),
}

impl Report {
    /// What is known of a published image; `built` are the figures of the last build here, which tell more where it is
    /// the same image.
    pub fn of(shown: Shown, built: Option<Figures>) -> Report {
        let contents = shown.contents;
        let built = built.filter(|it| it.digest == shown.digest);
        let tested = shown.published.tested.as_deref().and_then(|it| humantime::parse_rfc3339(it).ok());
        let tested = tested.and_then(|it| Some(it.duration_since(UNIX_EPOCH).ok()?.as_secs()));
        let mut layers: Vec<(u64, String)> =
            contents.layers.iter().map(|it| (it.bytes, it.by.clone())).collect();
        layers.sort_by(|a, b| b.cmp(a));
        let figures = Figures {
            digest: shown.digest.clone(),
            at: tested.unwrap_or_default(),
            seconds: None,
            compressed: Some(contents.bytes),
            unpacked: None,
            layers,
        };
        let names = shown.published.names.iter();
        let names = names.filter(|(_, digest)| digest.as_ref() == Some(&shown.digest));
        Report {
            figures: Some(built.map_or(figures, |it| Figures { compressed: Some(contents.bytes), ..it })),
            record: shown.published.record.clone(),
            packages: contents.packages.map(|versions| of_bill(&versions, &contents.licences)),
            licences: contents.licences,
            published: Some(Published {
                names: names.map(|(tag, _)| tag.clone()).collect(),
                state: shown.published.state.clone(),
                tested: shown.published.tested.clone(),
                since: shown.before.map(since),
            }),
        }
    }
}

fn since(Before { tag, difference }: Before) -> Since {
    Since {
        tag,
        packages: if difference.packages_known { changes(&difference) } else { Vec::new() },
        packages_known: difference.packages_known,
        shared: difference.shared_layers,
        new: difference.new_layers.len(),
        fetched: size(difference.new_layers.iter().map(|it| it.bytes).sum()),
        sizes: (gigabytes(difference.bytes.0), gigabytes(difference.bytes.1)),
    }
}

/// Packages in alphabetical order, whatever became of them.
fn changes(it: &Difference) -> Vec<Change> {
    let change = |package: &String, from: Option<&String>, to: Option<&String>| Change {
        package: package.clone(),
        from: from.cloned(),
        to: to.cloned(),
    };
    let added = it.added.iter().map(|(name, to)| change(name, None, Some(to)));
    let removed = it.removed.iter().map(|(name, from)| change(name, Some(from), None));
    let changed = it.changed.iter().map(|(name, (from, to))| change(name, Some(from), Some(to)));
    let mut all: Vec<Change> = added.chain(removed).chain(changed).collect();
    all.sort_by(|a, b| a.package.cmp(&b.package));
    all
}
