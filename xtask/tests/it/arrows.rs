//! The flow goes one way: a module uses only modules that stand before it.

/// From what everything stands on to what stands on everything.
const ORDER: &[&str] = &[
    "problem",
    "github",
    "files",
    "digest",
    "out",
    "interrupt",
    "runner",
    "faults",
    "http",
    "hold",
    "processes",
    "catalog",
    "registry",
    "compat",
    "resolve",
    "tiers",
    "explain",
    "layout",
    "apt",
    "root",
    "lock",
    "tags",
    "render",
    "lint",
    "wheels",
    "plan",
    "engine",
    "smoke",
    "attest",
    "build",
    "bench",
    "publish",
    "site",
    "doctor",
    "recipe",
    "launch",
    "cli",
    "project",
    "commands",
];

#[test]
fn an_arrow_never_points_back() {
    let source = crate::support::project().join("xtask/src");
    let mut wrong = Vec::new();
    let mut left = vec![source.clone()];
    while let Some(folder) = left.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                left.push(path);
                continue;
            }
            let relative = path.strip_prefix(&source).unwrap();
            let module = relative.components().next().unwrap().as_os_str().to_str().unwrap();
            let module = module.trim_end_matches(".rs");
            if module == "main" {
                continue;
            }
            let rank = |name: &str| ORDER.iter().position(|m| *m == name);
            let own = rank(module).unwrap_or_else(|| panic!("`{module}` has no place in the order"));
            for used in uses(&std::fs::read_to_string(&path).unwrap()) {
                match rank(&used) {
                    Some(other) if other <= own => {}
                    _ => wrong.push(format!("{} uses crate::{used}", relative.display())),
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn the_map_for_contributors_names_every_module() {
    let map = std::fs::read_to_string(crate::support::project().join("CONTRIBUTING.md")).unwrap();
    let missing: Vec<_> = ORDER.iter().filter(|module| !map.contains(&format!("`{module}`"))).collect();
    assert!(missing.is_empty(), "the map in CONTRIBUTING.md lacks {missing:?}");
}

/// The modules named after `crate::`, those in braces too.
fn uses(text: &str) -> Vec<String> {
    let word = |text: &str| text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>();
    let mut found = Vec::new();
    for after in text.split("crate::").skip(1) {
        match after.strip_prefix('{') {
            Some(list) => {
                found.extend(list.split('}').next().unwrap().split(',').map(|part| word(part.trim())))
            }
            None => found.push(word(after)),
        }
    }
    found.retain(|name| !name.is_empty());
    found
}
