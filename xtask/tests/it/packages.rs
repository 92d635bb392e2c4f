//! What Python's own tools see in the image: the packages that an installer would have left.

use crate::containers::run;
use crate::support::{Outcome, project};
use serde_json::Value;
use std::collections::BTreeMap;

/// What a command in a container says; a warning of the entry point is none of it.
fn inside(command: &[&str]) -> Outcome {
    run(&["--env=ENTRYPOINT_QUIET=1"], "runtime", command)
}

fn shell(script: &str) -> Outcome {
    inside(&["sh", "-c", script])
}

/// Names and versions of the wheels in the lock.
fn locked() -> BTreeMap<String, String> {
    let text = std::fs::read_to_string(project().join("images/lock.json")).unwrap();
    let lock: Value = serde_json::from_str(&text).unwrap();
    let wheels = lock["releases"]["2.15"]["wheels"]["linux/amd64"].as_array().unwrap();
    let text = |wheel: &Value, field: &str| wheel[field].as_str().unwrap().to_owned();
    wheels
        .iter()
        .map(|wheel| (text(wheel, "name"), text(wheel, "version").split('+').next().unwrap().to_owned()))
        .collect()
}

#[test]
#[ignore = "needs the image"]
fn uv_and_pip_see_what_is_locked_and_nothing_to_mend() {
    shell("uv pip check && pip check").expect(0, &["All installed packages are compatible"]);
    for list in ["uv pip list --format json", "pip list --format json"] {
        let said: Value = serde_json::from_str(&shell(list).expect(0, &[]).stdout).unwrap();
        let found: BTreeMap<String, String> = said
            .as_array()
            .unwrap()
            .iter()
            .map(|it| (it["name"].as_str().unwrap().to_owned(), it["version"].as_str().unwrap().to_owned()))
            .map(|(name, version)| {
                (name.replace('_', "-").to_lowercase(), version.split('+').next().unwrap().to_owned())
            })
            .collect();
        assert_eq!(found, locked(), "{list}");
    }
    // Nothing is fetched, since nothing is missing: the network is not there.
    let again =
        "uv pip install --offline torch==2.15.0 torchvision numpy && pip install --no-index torch numpy";
    shell(again).expect(0, &["Checked 3 packages"]);
}

/// `RECORD` tells the files: an installer removes all of them, and their hashes are true but for what the base leaves out.
#[test]
#[ignore = "needs the image"]
fn records_are_true() {
    let script = r#"
import base64, hashlib, importlib.metadata as m, pathlib, sys
seen = wrong = 0
for d in m.distributions():
    assert d.read_text("INSTALLER").strip() == "uv" and d.read_text("REQUESTED") == "", d.name
    for f in d.files:
        p = pathlib.Path(f.locate())
        if not p.exists():
            wrong += p.suffix != ".a"
            continue
        if f.hash:
            seen += 1
            h = hashlib.file_digest(p.open("rb"), f.hash.mode).digest()
            if base64.urlsafe_b64encode(h).decode().rstrip("=") != f.hash.value or p.stat().st_size != f.size:
                wrong += 1
                print(p)
print(seen > 20000, wrong)
"#;
    let told = inside(&["python", "-c", script]);
    assert_eq!(told.expect(0, &[]).stdout, "True 0\n");
    // Byte code of theirs may be left: no installer has written it.
    let removed = "uv pip uninstall --quiet sympy && pip uninstall --quiet --yes networkx && \
        test ! -e /opt/venv/bin/isympy && cd /opt/venv/lib/python3*/site-packages && echo gone && \
        find . -path './sympy*' -type f -not -name '*.pyc' -o -path './networkx*' -type f -not -name '*.pyc'";
    assert_eq!(shell(removed).expect(0, &[]).stdout, "gone\n");
}
