//! A static site of what there is: an overview and a page an image, from the catalog, the lock and what was measured.
//! Pure: the same input gives the same bytes.

mod chart;
mod contents;
mod finder;
mod history;
mod page;
mod published;

pub use contents::{Package, of_bill, packages};
pub use history::{FILE as HISTORY, History};
pub use published::Published;

use crate::build::{Measured, size::allowed};
use crate::catalog::Catalog;
use crate::compat::Compat;
use crate::lock::Lock;
use crate::out::gigabytes;
use crate::render::{Files, Templates};
use crate::smoke::Record;
use crate::tags::planned;
use anyhow::Result;
use chart::{Bar, bars};
use finder::Finder;
use page::Page;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::PathBuf;
use tera::Context;

/// What is known of the images, by release and variant.
pub type Reports = BTreeMap<(String, String), Report>;

/// What is known of one image; nothing where it was not built, or is not published.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// What it weighs.
    pub figures: Option<Figures>,
    /// Its smoke test.
    pub record: Option<Record>,
    /// What it holds, by its bill of materials; none where only the lock tells.
    pub packages: Option<Vec<Package>>,
    /// Licences of its wheels, by name.
    pub licences: BTreeMap<String, String>,
    /// What its registry tells beside that.
    pub published: Option<Published>,
}

/// What was measured of an image.
#[derive(Clone, Debug)]
pub struct Figures {
    /// Its digest.
    pub digest: String,
    /// When it was built or, where that is not known, proved: seconds since 1970.
    pub at: u64,
    /// How long the command took that built it.
    pub seconds: Option<f64>,
    /// Bytes as it is sent.
    pub compressed: Option<u64>,
    /// Bytes as it lies in an engine.
    pub unpacked: Option<u64>,
    /// Bytes of every layer and what it was made by, the biggest first; unpacked, where that is known of the image.
    pub layers: Vec<(u64, String)>,
}

impl From<Measured> for Figures {
    fn from(it: Measured) -> Figures {
        let (seconds, unpacked) = (Some(it.seconds), Some(it.unpacked));
        Figures {
            digest: it.digest,
            at: it.built,
            seconds,
            compressed: it.compressed,
            unpacked,
            layers: it.layers,
        }
    }
}

/// What a site is made from.
pub struct Input<'a> {
    /// What there is.
    pub catalog: &'a Catalog,
    /// What it is made of.
    pub lock: &'a Lock,
    /// On what it runs.
    pub compat: &'a Compat,
    /// How pages look.
    pub templates: &'a Templates,
    /// Where images are pulled from; none where they are only here.
    pub registry: Option<&'a str>,
    /// How they turned out.
    pub reports: &'a Reports,
    /// How they were before.
    pub history: &'a History,
}

/// A release on the overview.
#[derive(Serialize)]
struct Release<'a> {
    name: &'a str,
    facts: &'a crate::resolve::Resolved,
    images: Vec<Summary<'a>>,
    bars: Vec<Bar>,
}

/// An image on the overview.
#[derive(Serialize)]
struct Summary<'a> {
    variant: &'a str,
    about: &'a str,
    page: String,
    tag: String,
    size: Option<String>,
    state: Option<String>,
}

impl Input<'_> {
    /// Every file of the site by its path in the site's folder.
    pub fn pages(&self) -> Result<Files> {
        let mut files = Files::new();
        let mut add = |path: String, text: String| files.insert(PathBuf::from(path), text);
        add("style.css".to_owned(), self.templates.render("site/style.css.tera", &Context::new())?);
        add("index.html".to_owned(), self.overview()?);
        for release in self.catalog.releases_newest_first() {
            for variant in self.catalog.variants_in_order() {
                let mut context = self.context();
                context.insert("page", &Page::new(self, release, variant)?);
                let text = self.templates.render("site/image.html.tera", &context)?;
                add(page_of(release, variant), text);
            }
        }
        add(HISTORY.to_owned(), self.history.text()?);
        Ok(files)
    }

    fn context(&self) -> Context {
        let mut context = Context::new();
        context.insert("catalog", self.catalog);
        context.insert("registry", &self.registry);
        context
    }

    fn overview(&self) -> Result<String> {
        let resolved = self.lock.releases.iter().map(|(name, it)| (name.clone(), it.facts.clone())).collect();
        let mut context = self.context();
        context.insert("finder", &Finder::new(self.catalog, &resolved, self.compat));
        let releases = self.catalog.releases_newest_first().into_iter().map(|name| self.release(name));
        context.insert("releases", &releases.collect::<Result<Vec<_>>>()?);
        self.templates.render("site/index.html.tera", &context)
    }

    fn release<'a>(&'a self, name: &'a str) -> Result<Release<'a>> {
        let facts = &self.lock.releases[name].facts;
        let (mut images, mut weights) = (Vec::new(), Vec::new());
        for variant in self.catalog.variants_in_order() {
            let Report { figures, record, published, .. } = self.report(name, variant);
            let sent = figures.and_then(|it| it.compressed);
            let budget = allowed(self.catalog, name, variant).map(|it| it.compressed);
            weights.extend(sent.map(|bytes| (variant.to_owned(), bytes, budget)));
            images.push(Summary {
                variant,
                about: &self.catalog.variants[variant].about,
                page: page_of(name, variant),
                tag: planned(self.catalog, facts, variant)?.pop().unwrap_or_default(),
                size: sent.map(gigabytes),
                state: published.map(|it| it.state).or(record.map(|it| crate::out::word(it.state))),
            });
        }
        Ok(Release { name, facts, images, bars: bars(&weights) })
    }

    fn report(&self, release: &str, variant: &str) -> Report {
        self.reports.get(&(release.to_owned(), variant.to_owned())).cloned().unwrap_or_default()
    }
}

/// The file of an image's page.
fn page_of(release: &str, variant: &str) -> String {
    format!("{release}-{variant}.html")
}
