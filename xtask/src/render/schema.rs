//! `images/variants.schema.json`: the types of the catalog as a JSON Schema, for editors.

use crate::catalog::Catalog;
use anyhow::Result;
use schemars::generate::SchemaSettings;

/// Its name below `images/`, which the first line of the catalog refers to.
pub const FILE: &str = "variants.schema.json";

/// The schema as text. Draft 7 is what every editor's YAML support reads.
pub fn schema() -> Result<String> {
    let schema = SchemaSettings::draft07().into_generator().into_root_schema_for::<Catalog>();
    Ok(serde_json::to_string_pretty(&schema)? + "\n")
}
