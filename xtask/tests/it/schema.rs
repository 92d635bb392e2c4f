//! The schema of the catalog, held against files by a validator that knows nothing of this program.

use crate::support::{Copy, Outcome, pinned, project};
use std::process::Command;

/// Prints where a file does not fit a schema, a line each.
const VALIDATE: &str = r#"
import json, sys, jsonschema_rs
from ruamel.yaml import YAML
validator = jsonschema_rs.validator_for(json.load(open(sys.argv[1])))
for error in validator.iter_errors(YAML(typ="safe").load(open(sys.argv[2]))):
    print("/".join(map(str, error.instance_path)) + ":", error.message)
"#;

/// What the validator finds in the catalog of a copy, by the schema that the catalog itself names.
fn found(copy: &Copy) -> String {
    let file = copy.path("variants.yaml");
    let text = std::fs::read_to_string(&file).unwrap();
    let schema = text.lines().next().unwrap().strip_prefix("# yaml-language-server: $schema=").unwrap();
    let mut python = Command::new(pinned("jsonschema.txt").join("bin/python"));
    python.args(["-c", VALIDATE]).arg(copy.path(schema)).arg(file);
    Outcome::of(python.output().unwrap()).expect(0, &[]).stdout.clone()
}

#[test]
#[ignore = "fetches a validator"]
fn the_catalog_fits_its_schema_and_what_the_program_refuses_does_not() {
    assert_eq!(found(&Copy::new()), "");
    // Each is refused by the program, and an editor must underline it where it stands.
    let cases = [
        ("    torchvision:", "    torchvison:", "releases/2.15: Additional properties"),
        ("    torch: \"2.15.0\"\n", "", "releases/2.15: \"torch\" is a required property"),
        ("torch: \"2.9.1\"", "torch: 2.9", "releases/2.9/torch: 2.9 is not of type \"string\""),
        ("uid: 1000", "uid: many", "user/uid: \"many\" is not of type \"integer\""),
        ("platforms: [linux/amd64]", "platforms: [linux/s390x]", "defaults/platforms/0: "),
        ("    toolkit: true\n", "    toolkit: \"yes\"\n", "variants/devel/toolkit: "),
        ("digest: sha256:a29", "digest: sha256:xyz", "roots/debian-slim/digest: "),
        ("\nvariants:\n", "\nvariant:\n", "variant"),
        ("compression: zstd", "compression: estargz", "base/layers/compression: "),
    ];
    for (from, to, expected) in cases {
        let copy = Copy::new();
        copy.edit(from, to).xtask(&["check"]).expect(2, &["error[E_"]);
        let found = found(&copy);
        assert!(found.lines().any(|line| line.contains(expected)), "{to}: {found}");
    }
}

/// An editor explains a field by the comment of its type.
#[test]
fn every_field_of_the_schema_is_explained() {
    let text = std::fs::read_to_string(project().join("images/variants.schema.json")).unwrap();
    let schema: serde_json::Value = serde_json::from_str(&text).unwrap();
    let types = schema["definitions"].as_object().unwrap();
    let mut seen = 0;
    for (name, it) in types.iter().chain([(&"Catalog".to_owned(), &schema)]) {
        for (field, it) in it["properties"].as_object().into_iter().flatten() {
            assert!(it["description"].is_string(), "{name}.{field}");
            seen += 1;
        }
    }
    assert!(seen > 50, "{seen} fields");
}
