//! A variant is data: what CONTRIBUTING tells in five steps, done here.

use crate::order::Doubles;
use crate::support::Copy;

const ENTRY: &str = r#"variants:
  teaching:
    about: "devel with a course's settings"
    from: devel
    smoke: []
    budget: {compressed_mb: 1, unpacked_mb: 1}
"#;

#[test]
fn a_variant_is_an_entry_and_a_partial() {
    let doubles = Doubles::new();
    let copy = &doubles.copy;
    copy.edit("variants:\n", ENTRY);
    std::fs::create_dir_all(copy.path("templates/variants")).unwrap();
    std::fs::write(copy.path("templates/variants/teaching.tera"), "ENV COURSE=\"{{ release.name }}\"\n")
        .unwrap();
    copy.xtask(&["check"]).expect(1, &["E_RENDER_STALE", "images/2.15/teaching/Dockerfile: it is missing"]);
    copy.xtask(&["render"]).expect(0, &[]);
    copy.xtask(&["check"]).expect(0, &[]);
    let dockerfile = std::fs::read_to_string(copy.path("images/2.9/teaching/Dockerfile")).unwrap();
    assert!(
        dockerfile.contains("\nFROM devel\n") && dockerfile.contains("\nENV COURSE=\"2.9\"\n"),
        "{dockerfile}"
    );
    copy.xtask(&["list"]).expect(0, &["teaching", "2.15.0-cuda13.2-cudnn9-teaching"]);
    doubles.run(&["plan", "--variant", "teaching"], &[]).expect(0, &["teaching", "build", "new"]);
    let smoke = crate::order::PASSED;
    doubles
        .say("smoke", smoke)
        .run(&["build", "--variant", "teaching"], &[])
        .expect(0, &["tagged pytorch-cuda:2.15-teaching"]);
}

#[test]
fn what_it_installs_is_locked_first() {
    let copy = Copy::new();
    copy.edit("variants:\n", &ENTRY.replace("    smoke: []\n", "    requirements: [rich]\n"));
    copy.xtask(&["check"]).expect(1, &["E_LOCK_STALE", "releases.2.15 changed", "cargo xtask lock --update"]);
}

#[test]
fn the_five_steps_are_told() {
    let text = std::fs::read_to_string(crate::support::project().join("CONTRIBUTING.md")).unwrap();
    let section = text.split("## Add a variant").nth(1).unwrap().split("\n## ").next().unwrap();
    let steps: Vec<&str> =
        section.lines().filter(|line| line.starts_with(|c: char| c.is_ascii_digit())).collect();
    assert_eq!(steps.len(), 5, "{steps:#?}");
    for told in
        ["variants.yaml", "templates/variants/", "lock --update", "cargo xtask render", "build --variant"]
    {
        assert!(section.contains(told), "{told}");
    }
}

/// The same wheels in the same stage are the same bytes: releases that pin the same libraries share their layers.
#[test]
fn the_same_wheels_make_the_same_stage_in_every_release() {
    let images = crate::support::project().join("images");
    let mut stages = std::collections::BTreeMap::<String, Vec<(&str, String)>>::new();
    for release in ["2.15", "2.9", "2.8", "2.6"] {
        let base = images.join(release).join("base");
        let dockerfile = std::fs::read_to_string(base.join("Dockerfile")).unwrap();
        for stage in dockerfile.split("\nFROM builder AS ").skip(1) {
            let name = stage.split_whitespace().next().unwrap();
            let wheels = std::fs::read_to_string(base.join(format!("requirements/{name}.txt"))).unwrap();
            let steps = stage.split("\n\n").next().unwrap().to_owned();
            stages.entry(wheels).or_default().push((release, steps));
        }
    }
    let shared: Vec<_> = stages.values().filter(|them| them.len() > 1).collect();
    assert!(shared.iter().all(|them| them.iter().all(|(_, steps)| *steps == them[0].1)), "{shared:#?}");
    let both = |them: &&Vec<(&str, String)>| them.iter().map(|it| it.0).eq(["2.9", "2.8"]);
    assert!(
        stages.values().filter(both).count() >= 4,
        "{:?}",
        stages.values().map(Vec::len).collect::<Vec<_>>()
    );
}
