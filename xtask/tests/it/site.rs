//! The catalogue site as people see it: no script, no dead link, readable by everyone on every screen.

use crate::browser::Browser;
use crate::order::Doubles;
use crate::support::{Copy, npm};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// An image that was here before the one that is built.
const BEFORE: &str = r#"{"release":"2.15","variant":"runtime","digest":"sha256:0","built":1700000000,"seconds":300.0,
    "compressed":2900000000,"unpacked":5900000000,"packages":{"numpy (PyPI)":"0.0.1"}}"#;

/// A site after a build of one image, whose engine tells layers and whose smoke test left a record.
fn site() -> (Doubles, PathBuf) {
    let layers = "{\"Size\":\"0\",\"CreatedBy\":\"CMD x\"}\n{\"Size\":\"250000\",\"CreatedBy\":\"COPY e / #\"}\n\
        {\"Size\":\"5000000\",\"CreatedBy\":\"COPY / / #\"}\n{\"Size\":\"3000000\",\"CreatedBy\":\"bootstrap <root>\"}";
    let doubles = Doubles::new().say("history", layers);
    doubles.run(&["build", "--variant", "runtime"], &[]).expect(0, &[]);
    let bill = r#"{"components":[{"name":"numpy","purl":"pkg:pypi/numpy@2","licenses":[{"expression":"BSD-3-Clause"}]}]}"#;
    std::fs::write(doubles.copy.path("target/xtask/reports/2.15-runtime.cdx.json"), bill).unwrap();
    let folder = doubles.copy.path("pages");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("history.jsonl"), BEFORE.replace('\n', "") + "\n").unwrap();
    let args = ["site", "--out", "pages", "--registry", "registry.example.org/team/"];
    let written = doubles.copy.xtask(&args);
    assert_eq!(written.expect(0, &["1 of 16 images"]).stdout, "pages/index.html\n");
    (doubles, folder)
}

#[test]
fn a_page_tells_what_was_measured_and_what_changed() {
    let (doubles, folder) = site();
    let page = std::fs::read_to_string(folder.join("2.15-runtime.html")).unwrap();
    let told = [
        "docker pull registry.example.org/team/pytorch-cuda:2.15-runtime",
        "<code>sha256:1</code>",
        "not-gpu-tested",
        "<title>files: 0 MB</title>",
        "<title>constraints.txt: 5 MB</title>",
        "bootstrap &lt;root&gt;",
        "<th scope=\"row\">numpy (PyPI)</th><td>0.0.1</td>",
        "<polyline class=\"line\"",
        "2.15.0-cuda13.2-cudnn9-runtime",
        "<td>PyPI</td><td>BSD-3-Clause</td>",
        "≥ 580.65.06",
    ];
    for text in told {
        assert!(page.contains(text), "{text}\n{page}");
    }
    let other = std::fs::read_to_string(folder.join("2.6-mlflow.html")).unwrap();
    assert!(!other.contains("sha256:") && !other.contains("Smoke test"), "what was not built has no figures");
    // The same again changes nothing: the image is in the history.
    let before = std::fs::read_to_string(folder.join("history.jsonl")).unwrap();
    assert_eq!(before.lines().count(), 2);
    doubles.copy.xtask(&["site", "--out", "pages"]).expect(0, &[]);
    assert_eq!(std::fs::read_to_string(folder.join("history.jsonl")).unwrap(), before);
}

#[test]
fn a_dry_run_writes_nothing_and_a_spoilt_history_is_told_by_its_line() {
    let copy = Copy::new();
    copy.xtask(&["site", "--out", "pages", "--dry-run"]).expect(0, &["19 files"]);
    assert!(!copy.path("pages").exists());
    std::fs::create_dir(copy.path("pages")).unwrap();
    std::fs::write(copy.path("pages/history.jsonl"), "{}\n").unwrap();
    copy.xtask(&["site", "--out", "pages"]).expect(1, &["history.jsonl:1"]);
}

/// Everything that a browser says of a page.
struct Seen {
    ids: BTreeSet<String>,
    links: Vec<String>,
}

/// Opens a page on a screen of this width, in this scheme, and holds it against all that is promised of every page.
fn look(browser: &mut Browser, address: &str, width: u32, scheme: &str, axe: &str) -> Seen {
    let screen = json!({"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 800});
    browser.call("Emulation.setDeviceMetricsOverride", &screen);
    let media = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
    browser.call("Emulation.setEmulatedMedia", &media);
    browser.call("Page.navigate", &json!({"url": address}));
    browser.wait(&format!("location.href === '{address}' && document.readyState === 'complete'"));
    let name = address.rsplit('/').next().unwrap().replace(".html", "");
    browser.picture(&format!("site-{name}-{width}-{scheme}"));
    assert_eq!(browser.value("document.scripts.length"), 0, "{address} has a script");
    let wide = browser.value("document.documentElement.scrollWidth - innerWidth");
    assert!(wide.as_i64().unwrap() <= 0, "{address} is {wide} wider than a screen of {width}");
    let links = browser.value("[...document.links].map(link => link.href)");
    let ids = browser.value("[...document.querySelectorAll('[id]')].map(it => it.id)");
    // What is folded is looked at too.
    browser.value("document.querySelectorAll('details').forEach(it => it.open = true)");
    browser.value(axe);
    let found = browser.value(
        "axe.run(document, {preload: false}).then(it => it.violations.map(v => [v.impact, v.id, v.nodes.map(n => n.html)]))",
    );
    assert_eq!(found, json!([]), "{address} at {width}, {scheme}");
    let texts = |value: Value| serde_json::from_value::<Vec<String>>(value).unwrap();
    Seen { ids: texts(ids).into_iter().collect(), links: texts(links) }
}

#[test]
#[ignore = "fetches Chromium and axe-core"]
fn every_page_is_readable_by_everyone_and_every_link_leads_somewhere() {
    let (_doubles, folder) = site();
    let axe = std::fs::read_to_string(npm("axe").join("axe-core/axe.min.js")).unwrap();
    let mut browser = Browser::here();
    for domain in ["Runtime.enable", "Log.enable", "Page.enable", "Network.enable"] {
        browser.call(domain, &json!({}));
    }
    let address = |page: &str| format!("file://{}/{page}", folder.display());
    let pages = ["index.html", "2.15-runtime.html", "2.6-debug.html"];
    let mut seen = BTreeMap::new();
    for page in pages {
        for (width, scheme) in [(390, "light"), (390, "dark"), (1280, "light"), (1280, "dark")] {
            seen.insert(address(page), look(&mut browser, &address(page), width, scheme, &axe));
        }
    }
    for (page, it) in &seen {
        assert!(!it.links.is_empty());
        for link in &it.links {
            let (file, id) = link.split_once('#').unwrap_or((link, ""));
            let path = file.strip_prefix("file://").unwrap_or_else(|| panic!("{page} links to {link}"));
            assert!(std::path::Path::new(path).exists(), "{page} links to {link}");
            let there = seen.get(file).is_none_or(|it| id.is_empty() || it.ids.contains(id));
            assert!(there, "{page} links to {link}, and nothing there has that id");
        }
    }
    let loud =
        ["Runtime.exceptionThrown", "Log.entryAdded", "Runtime.consoleAPICalled", "Network.loadingFailed"];
    let said: Vec<&Value> = browser
        .events
        .iter()
        .filter(|it| loud.contains(&it["method"].as_str().unwrap_or_default()))
        .collect();
    assert!(said.is_empty(), "{said:#?}");
    // A page that is no good does not pass for one that is.
    std::fs::write(folder.join("bad.html"), "<html><img src=gone.png><button></button></html>").unwrap();
    browser.call("Page.navigate", &json!({"url": address("bad.html")}));
    browser.wait("document.readyState === 'complete' && location.href.endsWith('bad.html')");
    browser.value(&axe);
    let found = browser
        .value("axe.run(document, {preload: false}).then(it => it.violations.map(v => v.id))")
        .to_string();
    assert!(found.contains("image-alt") && found.contains("button-name"), "{found}");
    assert!(browser.events.iter().any(|it| it["method"] == "Network.loadingFailed"));
}
