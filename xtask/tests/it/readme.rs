//! The README tells what is there.

use crate::support::{project, xtask_in};

#[test]
fn the_readme_names_every_tag_and_no_command_that_is_not_there() {
    let readme = std::fs::read_to_string(project().join("README.md")).unwrap();
    let list = xtask_in(&project(), &["list", "--json"], &[]);
    let rows: serde_json::Value = serde_json::from_str(&list.expect(0, &[]).stdout).unwrap();
    for row in rows.as_array().unwrap() {
        let variant = row["variant"].as_str().unwrap();
        assert!(readme.contains(&format!("`{variant}`")), "{variant}");
        for tag in row["tags"].as_array().unwrap() {
            let tag = tag.as_str().unwrap().replace(variant, "VARIANT");
            assert!(readme.contains(&format!("`{tag}`")), "{tag}");
        }
    }
    let commands =
        readme.split("cargo xtask ").skip(1).filter_map(|rest| rest.split([' ', '`', '\n']).next());
    for command in commands.filter(|command| command.chars().all(|c| c.is_ascii_lowercase())) {
        let help = xtask_in(&project(), &["help", command], &[]);
        let about = help.expect(0, &[]).stdout.lines().next().unwrap();
        assert!(!about.contains("[not built yet]"), "{command} is advertised");
    }
}
