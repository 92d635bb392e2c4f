//! The READMEs tell what is there, in two languages, and their commands work in a fresh checkout.

use crate::order::Doubles;
use crate::support::{Outcome, project, xtask_in};
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

const READMES: [&str; 2] = ["README.md", "README.zh-CN.md"];

fn read(name: &str) -> String {
    std::fs::read_to_string(project().join(name)).unwrap()
}

#[test]
fn the_readme_names_every_tag_and_no_command_that_is_not_there() {
    let list = xtask_in(&project(), &["list", "--json"], &[]);
    let rows: serde_json::Value = serde_json::from_str(&list.expect(0, &[]).stdout).unwrap();
    for name in READMES {
        let readme = read(name);
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
        for command in commands
            .filter(|it| !it.is_empty() && it.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit()))
        {
            xtask_in(&project(), &["help", command], &[]).expect(0, &[]);
        }
    }
}

/// A fenced block of a page: what stands behind the fence, and its lines.
struct Block {
    kind: String,
    lines: Vec<String>,
}

fn blocks(page: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        if let Some(kind) = line.strip_prefix("```") {
            let body = lines.by_ref().take_while(|line| *line != "```").map(str::to_owned).collect();
            blocks.push(Block { kind: kind.to_owned(), lines: body });
        }
    }
    blocks
}

/// A line without the comment behind it.
fn command(line: &str) -> &str {
    line.split(" # ").next().unwrap_or_default().trim_end()
}

/// The headings' levels, the blocks, the tables' first columns: what must be the same in every language.
fn outline(page: &str) -> Vec<String> {
    let mut outline = Vec::new();
    for line in page.lines() {
        if line.starts_with('#') {
            outline.push(line.split(' ').next().unwrap().to_owned());
        } else if let Some(cell) = line.strip_prefix("| ").and_then(|row| row.split('|').next()) {
            // Code is the same in all languages; the words around it are not.
            let code: Vec<&str> = cell.split('`').skip(1).step_by(2).collect();
            outline.push(format!("| {}", code.join(" ")));
        }
    }
    for block in blocks(page).iter().filter(|block| block.kind != "mermaid") {
        outline.push(block.kind.clone());
        outline.extend(block.lines.iter().map(|line| command(line).to_owned()));
    }
    outline
}

#[test]
fn both_languages_have_the_same_sections_tables_and_commands() {
    let [english, chinese] = READMES.map(|name| outline(&read(name)));
    for (ours, theirs) in english.iter().zip(&chinese) {
        assert_eq!(ours, theirs);
    }
    assert_eq!(english.len(), chinese.len());
}

#[test]
fn the_commands_of_the_readme_work_in_a_fresh_checkout() {
    let doubles = Doubles::new();
    // Where root has checked it out, the user of a container could not write there.
    std::fs::set_permissions(doubles.copy.dir.path(), Permissions::from_mode(0o777)).unwrap();
    let (mut ran, mut dry, mut parsed) = (0, 0, 0);
    for block in blocks(&read("README.md")).iter().filter(|block| block.kind != "mermaid") {
        let bash = Command::new("bash").args(["-n", "-c", &block.lines.join("\n")]).output().unwrap();
        Outcome::of(bash).expect(0, &[]);
        let (options, count): (&[&str], _) = match block.kind.as_str() {
            "sh run" => (&[], &mut ran),
            "sh dry-run" => (&["--dry-run"], &mut dry),
            "sh parse" => {
                parsed += 1;
                // What needs a GPU, a key or a container does not get far here; it is understood all the same.
                for line in block.lines.iter().filter_map(|line| command(line).strip_prefix("cargo xtask ")) {
                    let line = line.split(" > ").next().unwrap();
                    let outcome = doubles.run(&line.split_whitespace().collect::<Vec<_>>(), &[]);
                    assert!(!outcome.stderr.contains("E_USAGE"), "{line}: {outcome:#?}");
                }
                continue;
            }
            other => panic!("a block must say how it is tested: ```sh run, dry-run or parse, not `{other}`"),
        };
        for line in &block.lines {
            let words = command(line).strip_prefix("cargo xtask ").unwrap_or_else(|| panic!("{line}"));
            let words: Vec<&str> = words.split_whitespace().chain(options.iter().copied()).collect();
            doubles.run(&words, &[]).expect(0, &[]);
            *count += 1;
        }
    }
    assert!(ran >= 3 && dry >= 4 && parsed >= 4, "{ran} run, {dry} dry, {parsed} parsed");
}

/// What a page points at inside the repository is there.
#[test]
fn links_into_the_repository_lead_somewhere() {
    for name in [
        "README.md",
        "README.zh-CN.md",
        "CONTRIBUTING.md",
        "SECURITY.md",
        "CHANGELOG.md",
        "examples/team/README.md",
    ] {
        let page = read(name);
        let folder = project().join(name).parent().unwrap().to_owned();
        let links = page.split("](").skip(1).filter_map(|rest| rest.split([')', '#']).next());
        for link in links.filter(|link| !link.contains("://") && !link.is_empty()) {
            assert!(folder.join(link).exists(), "{name} links to {link}");
        }
    }
}
