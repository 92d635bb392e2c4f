//! What the types cannot say: names that must exist, and names that must be legal.

use super::{Catalog, Distribution, User};
use crate::problem::{Id, Problem, nearest};
use std::collections::BTreeSet;

/// What a tag template may hold between braces.
pub const TAG_FIELDS: &[&str] = &["torch", "release", "cuda", "cudnn", "variant"];

/// The names between braces in a template.
pub fn tag_fields(template: &str) -> impl Iterator<Item = &str> {
    template.split('{').skip(1).filter_map(|rest| rest.split('}').next())
}

pub(super) fn check(catalog: &Catalog) -> Vec<Problem> {
    let mut problems = Vec::new();
    references(catalog, &mut problems);
    origins(catalog, &mut problems);
    names(catalog, &mut problems);
    user(catalog, &mut problems);
    tags(catalog, &mut problems);
    problems
}

/// Every name that points at an entry points at one that is there.
fn references(catalog: &Catalog, problems: &mut Vec<Problem>) {
    let roots: Vec<&str> = catalog.roots.keys().map(String::as_str).collect();
    let releases: Vec<&str> = catalog.releases.keys().map(String::as_str).collect();
    let mut tiers: Vec<&str> = catalog.variants.keys().map(String::as_str).collect();
    tiers.push("base");
    let mut expect = |path: &[&str], name: &str, known: &[&str], kind: &str| {
        if !known.contains(&name) {
            problems.push(crate::problem::unknown_name(
                catalog.place(path),
                kind,
                name,
                known.iter().copied(),
            ));
        }
    };
    let defaults = &catalog.defaults;
    expect(&["defaults", "release"], &defaults.release, &releases, "release");
    expect(&["defaults", "root"], &defaults.root, &roots, "root");
    for (name, release) in &catalog.releases {
        if let Some(root) = &release.root {
            expect(&["releases", name, "root"], root, &roots, "root");
        }
    }
    let services: Vec<&str> = catalog.services.keys().map(String::as_str).collect();
    for (name, variant) in &catalog.variants {
        expect(&["variants", name, "from"], &variant.from, &tiers, "tier");
        for (i, service) in variant.services.iter().enumerate() {
            expect(&["variants", name, "services", &i.to_string()], service, &services, "service");
        }
    }
    for (name, variant) in &catalog.variants {
        if !reaches_base(catalog, name) && tiers.contains(&variant.from.as_str()) {
            problems.push(Problem::new(
                Id::Schema,
                catalog.place(&["variants", name, "from"]),
                format!("`{name}` stands on itself through `{}`", variant.from),
                "write `from: base`",
            ));
        }
    }
}

/// Roots and toolkits come from one place each, and what comes from a registry is pinned.
fn origins(catalog: &Catalog, problems: &mut Vec<Problem>) {
    for (name, root) in &catalog.roots {
        let path = ["roots", name.as_str()];
        if let (Distribution::Ubuntu, None) = (root.distribution, &root.image) {
            problems.push(Problem::new(
                Id::Schema,
                catalog.place(&path),
                format!("`{name}` would have to be bootstrapped, which is done with Debian's packages only"),
                "give the `image:` and `digest:` of an Ubuntu image",
            ));
        }
        pinned(catalog, &path, root.image.as_deref(), root.digest.as_deref(), problems);
    }
    for (name, toolkit) in &catalog.toolkits {
        let path = ["toolkits", name.as_str()];
        let has_packages =
            [&toolkit.requirements, &toolkit.packages, &toolkit.unpack].iter().any(|it| !it.is_empty());
        if has_packages == toolkit.image.is_some() {
            problems.push(Problem::new(
                Id::Schema,
                catalog.place(&path),
                format!("`{name}` must come from packages or from an image, and not from both"),
                "write `requirements`, `packages` or `unpack`; or `image` and `digest`",
            ));
        }
        pinned(catalog, &path, toolkit.image.as_deref(), toolkit.digest.as_deref(), problems);
    }
    for (name, it) in &catalog.companions {
        pinned(catalog, &["companions", name], Some(&it.image), Some(&it.digest), problems);
    }
}

/// An image is named by a tag that people know, and by the digest that is taken.
fn pinned(
    catalog: &Catalog,
    path: &[&str],
    image: Option<&str>,
    digest: Option<&str>,
    problems: &mut Vec<Problem>,
) {
    let Some(image) = image else {
        return;
    };
    let tag = image.rsplit('/').next().and_then(|last| last.split_once(':')).map(|(_, tag)| tag);
    let hex = digest.and_then(|digest| digest.strip_prefix("sha256:")).unwrap_or_default();
    let is_digest = hex.len() == 64 && hex.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
    let (field, what, cure) = match tag {
        None | Some("latest") => (
            "image",
            format!("`{image}` names no version"),
            "write repository:tag, and no `latest`".to_owned(),
        ),
        _ if !is_digest => (
            "digest",
            format!(
                "`{image}` is not pinned: its digest is {}",
                digest.map_or("missing".to_owned(), |d| format!("`{d}`"))
            ),
            format!("write `digest: sha256:…`; `docker buildx imagetools inspect {image}` tells it"),
        ),
        _ => return,
    };
    let path: Vec<&str> = path.iter().copied().chain([field]).collect();
    problems.push(Problem::new(Id::BaseUnpinned, catalog.place(&path), what, cure));
}

fn reaches_base(catalog: &Catalog, name: &str) -> bool {
    let mut seen = BTreeSet::new();
    let mut tier = name;
    while tier != "base" {
        match catalog.variants.get(tier) {
            Some(variant) if seen.insert(tier) => tier = &variant.from,
            _ => return false,
        }
    }
    true
}

/// Names become parts of tags, stages and folders: lower case letters, digits, `.`, `_` and `-`.
fn names(catalog: &Catalog, problems: &mut Vec<Problem>) {
    let sections = [
        ("releases", catalog.releases.keys().collect::<Vec<_>>()),
        ("variants", catalog.variants.keys().collect()),
        ("roots", catalog.roots.keys().collect()),
    ];
    for (section, keys) in sections {
        for key in keys.into_iter().filter(|key| !is_name(key)) {
            problems.push(Problem::new(
                Id::Name,
                catalog.place(&[section, key]),
                format!("`{key}` cannot be part of a tag"),
                "use lower case letters, digits, `.`, `_` and `-`, a letter or digit first",
            ));
        }
    }
    if !catalog.repository.split('/').all(is_name) {
        problems.push(Problem::new(
            Id::Name,
            catalog.place(&["repository"]),
            format!("`{}` is not a legal repository name", catalog.repository),
            "use lower case letters, digits, `.`, `_`, `-` and `/`",
        ));
    }
    if catalog.variants.contains_key("base") {
        problems.push(Problem::new(
            Id::Name,
            catalog.place(&["variants", "base"]),
            "`base` is the tier that variants stand on".to_owned(),
            "give the variant another name",
        ));
    }
}

/// Who the user is and where they work become words of commands.
fn user(catalog: &Catalog, problems: &mut Vec<Problem>) {
    let User { name, workdir, .. } = &catalog.user;
    let is_path = workdir.starts_with('/') && workdir[1..].split('/').all(is_name);
    for (field, value, good, cure) in [
        ("name", name, is_name(name), "use lower case letters, digits, `.`, `_` and `-`"),
        ("workdir", workdir, is_path, "write an absolute path of such words: /workspace"),
    ] {
        if !good {
            let what = format!("`{value}` cannot be used");
            problems.push(Problem::new(Id::Name, catalog.place(&["user", field]), what, cure));
        }
    }
}

fn is_name(name: &str) -> bool {
    let mut chars = name.chars();
    let word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    chars.next().is_some_and(word) && chars.all(|c| word(c) || "._-".contains(c)) && name.len() <= 100
}

/// Tag templates use known fields only, and every tag names its variant: two images must never share one. The date
/// belongs into the name that never moves, and into no other.
fn tags(catalog: &Catalog, problems: &mut Vec<Problem>) {
    let number = |i: usize| i.to_string();
    let list = |path: &[&str], templates: &[String]| -> Vec<(Vec<String>, String)> {
        let path = |i: usize| path.iter().map(|part| (*part).to_owned()).chain([number(i)]).collect();
        templates.iter().enumerate().map(|(i, template)| (path(i), template.clone())).collect()
    };
    let mut all = list(&["tags"], &catalog.tags);
    all.extend(list(&["publish", "default"], &catalog.publish.default));
    let immutable = vec!["publish".to_owned(), "immutable".to_owned()];
    if !catalog.publish.immutable.ends_with("-{date}") {
        problems.push(Problem::new(
            Id::Tag,
            catalog.place(&["publish", "immutable"]),
            format!("`{}` does not end with the day", catalog.publish.immutable),
            "end it with `-{date}`",
        ));
    }
    all.push((immutable, catalog.publish.immutable.trim_end_matches("-{date}").to_owned()));
    for (path, template) in &all {
        let path: Vec<&str> = path.iter().map(String::as_str).collect();
        let place = || catalog.place(&path);
        for field in tag_fields(template) {
            if !TAG_FIELDS.contains(&field) {
                let near = nearest(field, TAG_FIELDS.iter().copied());
                problems.push(Problem::new(
                    Id::Tag,
                    place(),
                    format!("`{{{field}}}` is not a field of a tag"),
                    near.map_or_else(
                        || format!("known: {}", TAG_FIELDS.join(", ")),
                        |near| format!("did you mean `{{{near}}}`?"),
                    ),
                ));
            }
        }
        if !template.contains("{variant}") {
            problems.push(Problem::new(
                Id::TagCollision,
                place(),
                format!("`{template}` would be the same for every variant"),
                "put `{variant}` into it",
            ));
        }
    }
}
