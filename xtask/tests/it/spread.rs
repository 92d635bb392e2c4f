//! How images are spread over layers: neither few nor many, and none heavier than it need be without a word.

use crate::order::Doubles;
use crate::support::project;

/// Instructions of a Dockerfile's last stage that make a layer, and what that stage stands on.
fn last_stage(release: &str, tier: &str) -> (usize, String) {
    let path = project().join("images").join(release).join(tier).join("Dockerfile");
    let text = std::fs::read_to_string(path).unwrap();
    let stage = text.rsplit("\nFROM ").next().unwrap();
    let makes = |line: &&str| ["COPY ", "RUN ", "WORKDIR "].iter().any(|word| line.starts_with(word));
    (stage.lines().filter(makes).count(), stage.lines().next().unwrap().to_owned())
}

/// Pullers fetch a few layers at once: fewer are slow, more are a burden. The fast base has a layer for each of its
/// Dockerfile's: where that copies the constraints, the interpreter's stands.
#[test]
fn every_image_is_pulled_in_eight_to_twenty_layers() {
    for release in ["2.15", "2.9", "2.8", "2.6"] {
        for variant in ["runtime", "devel", "debug", "mlflow"] {
            let (mut layers, mut tier) = (0, variant.to_owned());
            while tier != "root" {
                let (own, below) = last_stage(release, &tier);
                (layers, tier) = (layers + own, below);
            }
            assert!((7..20).contains(&layers), "{release} {variant}: {layers} layers and the root's");
        }
    }
}

#[test]
fn a_layer_that_is_heavier_than_pulls_well_is_told_with_its_wheel() {
    let doubles = Doubles::new();
    let told = ["2.9: the layer torch has ", " MB, more than the 700 that pull well: torch 2.9.1 alone has "];
    for command in [&["plan"][..], &["build"]] {
        let run = |release| {
            doubles.run(&[command, &["--variant", "runtime", "--release", release]].concat(), &[]).stderr
        };
        let said = run("2.9");
        assert!(told.iter().all(|part| said.contains(part)), "{said}");
        assert!(!run("2.15").contains("that pull well"));
    }
}
