//! What is told of a registry and taken out of it: the real registry.

use crate::proxy::{Fault, Proxy};
use crate::publish::Market;
use crate::registry::Registry;
use crate::support::{Outcome, docker, project, xtask_in};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

const ONE: [&str; 2] = ["--variant", "runtime"];

fn run(market: &Market, args: &[&str]) -> Outcome {
    let at = market.direct();
    market.doubles.run(&[&args[..1], &["--registry", &at], &args[1..]].concat(), &[])
}

/// A market whose runtime image is published.
fn published() -> (Market, String) {
    let market = Market::new();
    let digest = market.push("runtime", "a");
    market.smoke("runtime", &[]).expect(0, &[]);
    market.publish(&ONE, "5s").expect(0, &[]);
    (market, digest)
}

/// R9: an alarm of its own, for names that are missing, apart, or old.
#[test]
#[ignore = "needs Debian's docker-registry"]
fn names_that_stopped_moving_are_told() {
    let (market, digest) = published();
    let fresh = |age: &str| run(&market, &["freshness", "--variant", "runtime", "--max-age", age]);
    fresh("1h").expect(0, &["not-gpu-tested", &digest]);
    std::thread::sleep(Duration::from_secs(3));
    fresh("1s").expect(1, &["error[E_STALE_TAG]", "the limit is 1s"]);
    let all = run(&market, &["freshness", "--max-age", "1h"]);
    all.expect(1, &["error[E_STALE_TAG]", "2.15.0-cuda13.2-cudnn9-devel: there is no such tag"]);
    let other = market.push("runtime", "b");
    let (_, bytes, _) = market.ask("GET", &format!("manifests/{other}"), crate::publish::MANIFEST, b"");
    assert_eq!(market.ask("PUT", "manifests/2.15-runtime", crate::publish::MANIFEST, &bytes).0, 201);
    fresh("1h")
        .expect(1, &["2.15-runtime: it does not point at what 2.15.0-cuda13.2-cudnn9-runtime points at"]);
    let list = run(&market, &["list"]);
    list.expect(0, &["2.15     runtime", "not-gpu-tested", "not published"]);
}

/// What a moving name points at stays whatever its age; what goes takes its reports along.
#[test]
#[ignore = "needs Debian's docker-registry"]
fn old_names_go_and_what_is_used_stays() {
    let (mut market, first) = published();
    let bases = ["a", "c"].map(|content| market.push_base(content));
    let mut digests = vec![first];
    for content in ["b", "c"] {
        market.commit();
        digests.push(market.push("runtime", content));
        market.smoke("runtime", &[]).expect(0, &[]);
        market.publish(&ONE, "5s").expect(0, &[]);
    }
    let before = market.tags();
    let is_there = |digest: &str| {
        market.ask("GET", &format!("manifests/{digest}"), crate::publish::MANIFEST, b"").0 == 200
    };
    let report = |digest: &str| is_there(&digest.replace(':', "-"));
    run(&market, &["prune", "--keep", "1"]).expect(0, &["3 manifests would go; give --delete", "goes"]);
    assert_eq!(market.tags(), before);
    assert!(report(&digests[0]));
    run(&market, &["prune", "--keep", "1", "--delete"]).expect(0, &["removed "]);
    let there: Vec<bool> = digests.iter().map(|digest| is_there(digest)).collect();
    let reports: Vec<bool> = digests.iter().map(|digest| report(digest)).collect();
    assert_eq!(bases.map(|digest| is_there(&digest)), [false, true], "the base of what stays stays");
    assert_eq!((there, reports), (vec![false, false, true], vec![false, false, true]));
    let left: BTreeMap<String, String> = before.into_iter().filter(|(_, it)| *it == digests[2]).collect();
    assert_eq!(market.tags(), left);
    run(&market, &["prune", "--keep", "1"]).expect(0, &["stays"]);
    run(&market, &["prune", "--keep", "0"]).expect(2, &["error[E_SCHEMA]: --keep"]);
}

/// The contract of every command: with `--quiet --json` nothing but a value, and a dry run changes nothing.
#[test]
#[ignore = "needs Debian's docker-registry"]
fn commands_of_registries_keep_the_contract() {
    let (market, digest) = published();
    let at = market.direct();
    let image = format!("{at}/pytorch-cuda@{digest}");
    let lines = [
        format!("publish --registry {at} --variant runtime --release-date 2026-12-24"),
        format!("freshness --registry {at} --variant runtime --max-age 1h"),
        format!("prune --registry {at} --keep 1 --delete"),
        format!("list --registry {at}"),
        format!("diff {image} {image}"),
        format!("size {image}"),
        format!("smoke --registry {at} --variant runtime"),
    ];
    for line in lines {
        let run = |options: &[&str]| {
            let args: Vec<&str> = line.split(' ').chain(options.iter().copied()).collect();
            market.doubles.run(&args, &[])
        };
        let before = market.tags();
        run(&["--dry-run"]).expect(0, &[]);
        assert_eq!(market.tags(), before, "{line} --dry-run");
        let outcome = run(&["--quiet", "--json"]);
        outcome.expect(0, &[]);
        assert_eq!(outcome.stderr, "", "{line} says something with --quiet");
        let json: Result<Value, _> = serde_json::from_str(&outcome.stdout);
        assert!(json.is_ok_and(|it| !it.is_null()), "{line} --json: {}", outcome.stdout);
    }
}

/// What an image with these packages tells of itself.
fn inventory(torch: &str) -> String {
    json!({
        "distribution": {"id": "debian", "version": "13"},
        "debian": [{"name": "libc6", "version": "2.41-12", "architecture": "amd64"}],
        "wheels": [{"name": "torch", "version": torch, "expression": "BSD-3-Clause", "license": null}],
    })
    .to_string()
}

/// R9, the whole way: built, tested, pushed under no name of a user's; pulled and tested by digest; published.
#[test]
#[ignore = "needs Debian's docker-registry"]
fn an_image_goes_its_whole_way_by_digest() {
    let market = Market::new();
    // What the double does not push is there already.
    let digest = market.push("runtime", "a");
    market.doubles.tell("id", &digest);
    market.doubles.tell("inventory", &inventory("2.15.0+cu132"));
    let at = market.through();
    let build = || {
        let args = ["build", "--variant", "runtime", "--push", "--registry", &at, "--retry-budget", "20s"];
        market.doubles.run(&args, &[])
    };
    // Refused for good: nothing is tried again, nothing is told of it.
    market.doubles.tell("push.fails", "9");
    market.doubles.tell("push.err", "denied: requested access to the resource is denied");
    build().expect(3, &["error[E_REGISTRY_AUTH]", "candidate-"]);
    let pushes = || market.doubles.calls().iter().filter(|it| it.starts_with("push ")).count();
    assert_eq!(pushes(), 1);
    // Busy twice.
    market.doubles.tell("push.fails", "2");
    market.doubles.tell("push.err", "received unexpected HTTP status: 503 Service Unavailable");
    let outcome = build();
    outcome.expect(0, &["once more in", "pushing "]);
    assert_eq!((outcome.stdout.trim(), pushes()), (digest.as_str(), 4));
    let calls = market.doubles.calls();
    let first = |what: &str| calls.iter().position(|it| it.starts_with(what)).unwrap();
    assert!(first("bake") < first("smoke") && first("smoke") < first("push"), "{calls:#?}");
    // Put together, it is sent: it need not be unpacked for that.
    let early = format!("tags={at}/pytorch-cuda:candidate-");
    let all = market.doubles.all_calls();
    assert!(all.lines().any(|it| it.contains(&early) && it.contains("push=true,store=false")), "{all}");
    assert_eq!(market.tags(), BTreeMap::new());
    // The registry has something else than the engine.
    market.doubles.tell("id", "sha256:other");
    build().expect(3, &["error[E_DIGEST]", "the registry has sha256:", "the engine sha256:other"]);
    market.doubles.tell("id", &digest);

    market.publish(&ONE, "5s").expect(1, &["error[E_SMOKE]", "no smoke report"]);
    market.smoke("runtime", &[]).expect(0, &["attached the report"]);
    let pulled = format!("image pull --quiet {}/pytorch-cuda@{digest}", market.direct());
    assert!(market.doubles.all_calls().contains(&pulled));
    market.publish(&ONE, "5s").expect(0, &["moved"]);
    assert!(market.tags().values().all(|it| *it == digest));
    bills(&market, &digest);
}

/// A candidate is there before its proof. One whose build ended in between is no reason to leave anything out.
#[test]
#[ignore = "needs Debian's docker-registry"]
fn only_what_was_proved_is_not_built_again() {
    let market = Market::new();
    market.doubles.tell("inventory", &inventory("2.15.0+cu132"));
    let build = |digest: &str| {
        market.doubles.tell("id", digest);
        let args = ["build", "--variant", "runtime", "--push", "--cache-to", "r.example.org/cache"];
        run(&market, &args).expect(0, &[]).stderr.clone()
    };
    build(&market.push("runtime", "a"));
    let calls = market.doubles.all_calls();
    // Of the two bakes, one keeps the image and its steps.
    assert_eq!(calls.matches(".cache-to=").count(), 1, "{calls}");
    let input = calls.split("labels.pytorch-cuda-images.input=").nth(1).unwrap().split(' ').next().unwrap();
    let digest = market.push_of(input);
    assert!(!build(&digest).contains("the registry has it"));
    assert!(build(&digest).contains("the registry has it"));
}

/// R9 with the real image and engine, through the proxy: the second push sends no layer, every blob that came is what its
/// digest says, what is attached is found, and what is published runs.
#[test]
#[ignore = "needs the image"]
fn the_real_image_goes_the_whole_way() {
    let registry = Registry::start();
    let proxy = Proxy::start(registry.port);
    let at = format!("127.0.0.1:{}", proxy.port);
    let run = |args: &[&str], said: &[&str]| {
        let outcome =
            xtask_in(&project(), &[args, &["--registry", &at, "--variant", "runtime"]].concat(), &[]);
        outcome.expect(0, said);
        outcome.stdout.trim().to_owned()
    };
    // A layer is refused once: docker gives up, and the next try sends what was not complete, not all of it again.
    proxy.fail("PUT", "blobs/uploads/", (3, 1), Fault::Status(503, "".to_owned()));
    let push = ["build", "--push", "--allow-dirty"];
    let digest = run(&push, &["nothing changed", "pushing ", "once more in"]);
    let sent = |of: &str| proxy.seen(of, "blobs/uploads/").iter().map(|it| it.bytes).sum::<u64>();
    let layers = sent("PATCH") + sent("PUT");
    // Several layers are under way when one is refused, and each of those is sent again.
    assert!((2_800_000_000..6_300_000_000).contains(&layers), "{layers} bytes were sent");
    proxy.reset();
    assert_eq!(run(&push, &["the registry has it"]), digest);
    assert_eq!((sent("PATCH") + sent("PUT"), proxy.seen("PUT", "").len()), (0, 0));

    run(&["smoke", "--attach"], &["not-gpu-tested", "attached the report", &digest]);
    run(&["publish", "--allow-dirty"], &["2.15-runtime", "not-gpu-tested"]);
    let direct = Direct(registry.port);
    let manifest = direct.json(&format!("manifests/{digest}"));
    assert_eq!(direct.digest("manifests/runtime"), digest);
    let blobs = manifest["layers"].as_array().unwrap();
    assert!(
        (8..=20).contains(&blobs.len()) && blobs.iter().all(|it| it["size"].as_u64() < Some(700_000_000))
    );
    for blob in blobs {
        let promised = blob["digest"].as_str().unwrap();
        assert_eq!(direct.digest(&format!("blobs/{promised}")), promised);
    }
    let list = direct.json(&format!("manifests/{}", digest.replace(':', "-")));
    let bill = list["manifests"].as_array().unwrap().iter().find(|it| it["artifactType"] == BILL).unwrap();
    let bill = direct.json(&format!("manifests/{}", bill["digest"].as_str().unwrap()));
    let bill = direct.json(&format!("blobs/{}", bill["layers"][0]["digest"].as_str().unwrap()));
    cyclonedx(&bill);
    let told: Vec<&str> =
        bill["components"].as_array().unwrap().iter().filter_map(|it| it["name"].as_str()).collect();
    assert!(["torch", "numpy", "libc6", "gcc"].iter().all(|name| told.contains(name)), "{told:?}");
    let image = format!("{at}/pytorch-cuda@{digest}");
    docker(&project(), &[], &project(), &format!("image rm {image}")).expect(0, &[]);
}

/// The registry itself, read without the proxy.
struct Direct(u16);

impl Direct {
    fn get(&self, path: &str) -> impl std::io::Read {
        let url = format!("http://127.0.0.1:{}/v2/pytorch-cuda/{path}", self.0);
        let agent = ureq::Agent::config_builder().proxy(None).build().new_agent();
        let any = "application/vnd.oci.image.manifest.v1+json, application/vnd.oci.image.index.v1+json, */*";
        agent.get(url).header("accept", any).call().unwrap().into_body().into_reader()
    }

    fn json(&self, path: &str) -> Value {
        serde_json::from_reader(self.get(path)).unwrap()
    }

    /// Of whatever size.
    fn digest(&self, path: &str) -> String {
        let mut hash = sha2::Sha256::default();
        std::io::copy(&mut self.get(path), &mut Hashing(&mut hash)).unwrap();
        let hex: String = sha2::Digest::finalize(hash).iter().map(|byte| format!("{byte:02x}")).collect();
        format!("sha256:{hex}")
    }
}

/// What is written is hashed.
struct Hashing<'a>(&'a mut sha2::Sha256);

impl std::io::Write for Hashing<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        sha2::Digest::update(self.0, bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// The media type of a bill of materials.
const BILL: &str = "application/vnd.cyclonedx+json";

/// What is attached: the bill and the statement, both of this digest; and what is made of two bills.
fn bills(market: &Market, digest: &str) {
    let attached = |kind: &str, of: &str| -> Value {
        let (_, list, _) = market.ask("GET", &format!("manifests/{}", of.replace(':', "-")), "*/*", b"");
        let list: Value = serde_json::from_slice(&list).unwrap();
        let is = |it: &&Value| it["artifactType"] == kind;
        let entry = list["manifests"].as_array().unwrap().iter().find(is).unwrap();
        let path = format!("manifests/{}", entry["digest"].as_str().unwrap());
        let (_, manifest, _) = market.ask("GET", &path, crate::publish::MANIFEST, b"");
        let manifest: Value = serde_json::from_slice(&manifest).unwrap();
        assert_eq!(manifest["subject"]["digest"], of);
        let (_, blob, _) = market.ask(
            "GET",
            &format!("blobs/{}", manifest["layers"][0]["digest"].as_str().unwrap()),
            "*/*",
            b"",
        );
        serde_json::from_slice(&blob).unwrap()
    };
    let bill = attached(BILL, digest);
    assert_eq!(bill["metadata"]["component"]["version"], digest);
    assert_eq!(bill["components"][1]["purl"], "pkg:pypi/torch@2.15.0%2Bcu132");
    let statement = attached("application/vnd.in-toto+json", digest);
    assert_eq!(statement["subject"][0]["digest"]["sha256"], digest.trim_start_matches("sha256:"));
    let materials = statement["predicate"]["buildDefinition"]["resolvedDependencies"].as_array().unwrap();
    assert!(materials.len() > 30 && materials[0]["digest"]["gitCommit"].as_str().unwrap().len() == 40);
    assert!(
        materials.iter().any(|it| it["uri"].as_str().is_some_and(|it| it.starts_with("pkg:pypi/torch@")))
    );
    let image = format!("{}/pytorch-cuda@{digest}", market.direct());
    let other = market.push("runtime", "another layer");
    let run = |args: &[&str]| market.doubles.run(args, &[]);
    run(&["size", &image]).expect(0, &["in 1 layers"]);
    let other = format!("{}/pytorch-cuda@{other}", market.direct());
    run(&["diff", &image, &other]).expect(0, &["packages: not known", "layers: 0 shared, 1 new"]);
    run(&["diff", &image, &image]).expect(0, &["0 added, 0 removed, 0 changed", "layers: 1 shared, 0 new"]);
    run(&["diff", &image, "pytorch-cuda:2.15-runtime"]).expect(2, &["error[E_NAME]"]);
    run(&["size", &format!("{}/pytorch-cuda:none", market.direct())]).expect(3, &["error[E_BASE_GONE]"]);
    cyclonedx(&bill);
}

/// The format's own schema has nothing against a bill.
fn cyclonedx(bill: &Value) {
    let python = crate::support::pinned("cyclonedx.txt").join("bin/python");
    let folder = tempfile::tempdir().unwrap();
    let validate = |bill: &Value| {
        let file = folder.path().join("bill.json");
        std::fs::write(&file, bill.to_string()).unwrap();
        validated(&python, &file)
    };
    validate(bill).expect(0, &["valid"]);
    let mut spoilt = bill.clone();
    spoilt["components"][0]["type"] = json!("nonsense");
    assert_eq!(validate(&spoilt).code, Some(1));
}

pub fn validated(python: &Path, file: &Path) -> Outcome {
    let script = "import sys\nfrom cyclonedx.schema import SchemaVersion\n\
                  from cyclonedx.validation.json import JsonStrictValidator\n\
                  problem = JsonStrictValidator(SchemaVersion.V1_6).validate_str(open(sys.argv[1]).read())\n\
                  print(problem or 'valid')\nsys.exit(1 if problem else 0)\n";
    Outcome::of(Command::new(python).args(["-c", script]).arg(file).output().unwrap())
}

/// The whole of a night as one command; the same night again moves nothing.
#[test]
#[ignore = "needs Debian's docker-registry"]
fn a_night_is_one_command() {
    let market = Market::new();
    let digest = market.push("runtime", "a");
    market.doubles.tell("id", &digest);
    market.doubles.tell("inventory", &inventory("2.15.0+cu132"));
    // The plan is made with docker's own client.
    market.doubles.tell("imagetools", "not found");
    market.doubles.tell("imagetools.rc", "1");
    let night = || run(&market, &["nightly", "--variant", "runtime", "--max-age", "1h"]);
    night().expect(0, &["all 6 steps passed", "moved", "not-gpu-tested", "1 of 16 images are published"]);
    let tags = market.tags();
    assert!(!tags.is_empty() && tags.values().all(|it| *it == digest), "{tags:?}");
    let history = || std::fs::read_to_string(market.doubles.copy.path("target/site/history.jsonl")).unwrap();
    let before = history();
    assert!(before.lines().count() == 1 && before.contains(&digest), "{before}");
    night().expect(0, &["all 6 steps passed"]);
    assert_eq!((market.tags(), history()), (tags, before), "the same again moves nothing");
    // Without a GPU, nothing moves where one is demanded.
    let gpu = run(&market, &["nightly", "--variant", "runtime", "--gpus", "all"]);
    gpu.expect(1, &["E_NOT_GPU_TESTED", "error[E_CHECK]: smoke test of 2.15 runtime"]);
}
