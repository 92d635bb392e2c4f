//! The catalogue site as people see it: no script, no dead link, readable by everyone on every screen.

use crate::browser::Browser;
use crate::order::Doubles;
use crate::publish::Market;
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
    let written = doubles.copy.xtask(&["site", "--out", "pages"]);
    assert_eq!(written.expect(0, &["1 of 16 images"]).stdout, "pages/index.html\n");
    (doubles, folder)
}

#[test]
fn a_page_tells_what_was_measured_and_what_changed() {
    let (doubles, folder) = site();
    let page = std::fs::read_to_string(folder.join("2.15-runtime.html")).unwrap();
    let told = [
        "cargo xtask build --release 2.15 --variant runtime",
        "python /opt/smoke",
        "<code>sha256:1</code>",
        "not-gpu-tested",
        "<title>files: 250 kB</title>",
        "<title>constraints.txt: 5 MB</title>",
        "bootstrap &lt;root&gt;",
        "<th scope=\"row\">numpy (PyPI)</th><td>0.0.1</td>",
        "<polyline class=\"line\"",
        "<title>2023-11-14: 2.90 GB</title>",
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
    copy.xtask(&["site", "--out", "pages"]).expect(2, &["error[E_SCHEMA]: history.jsonl:1: "]);
}

/// The site of a registry that has a second image of `runtime`, built here as the first was; and the digest of that.
fn site_of_registry() -> (Market, PathBuf, String) {
    let mut market = Market::new();
    let at = market.direct();
    let mut digest = String::new();
    for (content, numpy) in [("a", "2.3"), ("b, and longer", "2.4")] {
        market.commit();
        digest = market.push("runtime", content);
        market.doubles.tell("id", &digest);
        market.doubles.tell("inventory", &inventory(numpy));
        let build = ["build", "--variant", "runtime", "--no-cache", "--push", "--registry", &at];
        market.doubles.run(&build, &[]).expect(0, &[]);
        market.smoke("runtime", &[]).expect(0, &[]);
        market.publish(&["--variant", "runtime"], "5s").expect(0, &[]);
    }
    let folder = market.doubles.copy.path("published");
    market
        .doubles
        .run(&["site", "--out", "published", "--registry", &at], &[])
        .expect(0, &["1 of 16 images are"]);
    (market, folder, digest)
}

/// What an image with this numpy tells of itself.
fn inventory(numpy: &str) -> String {
    json!({
        "distribution": {"id": "debian", "version": "13"},
        "debian": [{"name": "libc6", "version": "2.41-12", "architecture": "amd64"}],
        "wheels": [{"name": "numpy", "version": numpy, "expression": "BSD-3-Clause", "license": null}],
    })
    .to_string()
}

/// What is published is told from the registry, whatever was built here since; what became of it, by two names that stay.
#[test]
#[ignore = "needs Debian's docker-registry"]
fn the_pages_of_a_registry_tell_what_it_has() {
    let (market, folder, digest) = site_of_registry();
    let at = market.direct();
    let page = || std::fs::read_to_string(folder.join("2.15-runtime.html")).unwrap();
    let first = page();
    let told = [
        &format!("docker pull {at}/pytorch-cuda:2.15-runtime"),
        &format!("<code>{digest}</code>"),
        &format!("docker pull {at}/pytorch-cuda@{digest}"),
        "<code>2.15.0-cuda13.2-cudnn9-runtime</code>",
        "<span class=\"state not-gpu-tested\">not-gpu-tested</span>",
        "1 passed",
        "2 packages,",
        "<td>2.4</td><td>PyPI</td><td>BSD-3-Clause</td>",
        "The previous one was <code>2.15.0-cuda13.2-cudnn9-runtime-20261130</code>. Layers: 0 shared, 1 new",
        "<th scope=\"row\">pypi numpy</th><td>2.3</td><td>2.4</td>",
        "<dt>built</dt>",
        "Unpacked size of every layer",
    ];
    for text in told {
        assert!(first.contains(text), "{text}\n{first}");
    }
    let other = std::fs::read_to_string(folder.join("2.15-devel.html")).unwrap();
    assert!(other.contains("<dd>not published</dd>") && !other.contains("sha256:"), "{other}");
    let history = || std::fs::read_to_string(folder.join("history.jsonl")).unwrap();
    let before = history();
    assert!(before.lines().count() == 1 && before.contains(&digest), "{before}");
    // Who did not build it knows what the registry tells, and nothing is in the history twice.
    std::fs::remove_dir_all(market.doubles.copy.path("target")).unwrap();
    let again = ["site", "--out", "published", "--registry", &at];
    market.doubles.run(&again, &[]).expect(0, &[]);
    let second = page();
    assert!(second.contains("Size to pull of every layer") && !second.contains("<dt>built</dt>"), "{second}");
    assert!(second.contains(&digest) && history() == before);
    // A registry that is away is told, and the pages stay.
    let gone = ["site", "--out", "published", "--registry", "127.0.0.1:1", "--retry-budget", "0s"];
    market.doubles.run(&gone, &[]).expect(3, &["error[E_NETWORK]"]);
    assert_eq!(page(), second);
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
    let name: Vec<&str> = address.trim_end_matches(".html").rsplit('/').take(2).collect();
    browser.picture(&format!("site-{}-{}-{width}-{scheme}", name[1], name[0]));
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

/// "My GPU is a T4 and my driver 535": the table shows these alone, by its style sheet.
fn choose(browser: &mut Browser, overview: &str) {
    browser.call("Page.navigate", &json!({"url": overview}));
    browser.wait(&format!("location.href === '{overview}' && document.readyState === 'complete'"));
    let shown = "[...document.querySelectorAll('.finder tbody td')].filter(it => it.checkVisibility())\
        .map(it => it.innerText.trim())";
    let all = browser.value(shown).as_array().unwrap().len();
    for (field, wanted) in [("gpu", "T4"), ("driver", "535")] {
        browser.value(&format!(
            "(it => it.selectedIndex = [...it.options].findIndex(one => one.text === '{wanted}'))\
             (document.getElementById('{field}'))"
        ));
    }
    assert_eq!(browser.value(shown), json!(["2.9 2.8 2.6"]));
    browser.value("document.querySelector('.ask button').click()");
    assert_eq!(browser.value(shown).as_array().unwrap().len(), all);
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
    let (_market, published, _) = site_of_registry();
    let address = |page: &str| format!("file://{}/{page}", folder.display());
    let mut pages = ["index.html", "2.15-runtime.html", "2.6-debug.html"].map(address).to_vec();
    pages.extend(
        ["index.html", "2.15-runtime.html"].map(|page| format!("file://{}/{page}", published.display())),
    );
    let mut seen = BTreeMap::new();
    for page in &pages {
        for (width, scheme) in [(390, "light"), (390, "dark"), (1280, "light"), (1280, "dark")] {
            seen.insert(page.clone(), look(&mut browser, page, width, scheme, &axe));
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
    choose(&mut browser, &pages[0]);
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
