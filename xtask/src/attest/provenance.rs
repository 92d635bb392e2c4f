//! Where an image comes from: an in-toto statement with SLSA's provenance (v1), its materials taken from the lock.
//!
//! BuildKit could write one too, into an index around the image. It tells the time of the build, and the digest that
//! users pull would be another one each time; so the statement is ours, and stands beside the image.

use super::sbom::purl_of_wheel;
use crate::catalog::{Catalog, Platform};
use crate::lock::Lock;
use crate::plan::Planned;
use crate::root::Ground;
use serde_json::{Value, json};

/// The media type of an in-toto statement.
pub const MEDIA_TYPE: &str = "application/vnd.in-toto+json";

/// What a statement is made from.
pub struct Origin<'a> {
    /// The catalog.
    pub catalog: &'a Catalog,
    /// The lock that was built from.
    pub lock: &'a Lock,
    /// The image as it was planned.
    pub plan: &'a Planned,
    /// The name of its root, and what that was.
    pub root: (&'a str, &'a Ground),
    /// Its platform.
    pub platform: Platform,
    /// The commit in its labels.
    pub revision: &'a str,
    /// What built it.
    pub builder: &'a str,
}

/// The statement of an image with this digest.
pub fn statement(origin: &Origin, digest: &str) -> Value {
    let Origin { catalog, plan, root: (root, _), platform, builder, .. } = origin;
    json!({
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"name": catalog.repository, "digest": {"sha256": hex(digest)}}],
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": {
                "buildType": format!("urn:{}:bake:v1", catalog.project),
                "externalParameters": {
                    "release": plan.release, "variant": plan.variant, "platform": platform, "root": root,
                },
                "internalParameters": {"input": plan.input, "baseInput": plan.base_input},
                "resolvedDependencies": materials(origin),
            },
            "runDetails": {"builder": {"id": format!("urn:{}:{builder}", catalog.project)}},
        },
    })
}

/// The commit, the root, the layers of packages, and every wheel, each by its digest.
fn materials(origin: &Origin) -> Vec<Value> {
    let Origin { catalog, lock, plan, root: (root, ground), platform, revision, .. } = origin;
    let commit = revision.trim_end_matches("-dirty");
    let source = json!({"name": "source", "digest": {"gitCommit": commit}});
    let root = json!({"name": format!("root {root}"), "digest": {"sha256": hex(ground.digest())}});
    let packages = plan.packages.iter().filter_map(|layer| Some((layer, ground.packages(layer)?)));
    let packages = packages.map(
        |(layer, digest)| json!({"name": format!("packages {layer}"), "digest": {"sha256": hex(digest)}}),
    );
    let tiers = catalog.tiers(&plan.variant);
    let wheels = lock.releases[&plan.release].all(tiers.iter().map(|(tier, _)| *tier), *platform);
    let wheels = wheels.into_iter().map(|wheel| {
        json!({"name": wheel.file, "uri": purl_of_wheel(&wheel.name, &wheel.version), "digest": {"sha256": wheel.sha256}})
    });
    [source, root].into_iter().chain(packages).chain(wheels).collect()
}

/// The digest alone; a root that is an image is named by its reference.
fn hex(digest: &str) -> &str {
    digest.rsplit("sha256:").next().unwrap_or_default()
}
