//! JupyterLab as its image starts it: who gets in, and what nobody gets to see.

use crate::containers::{Container, Volume, docker, image, run, until};
use crate::support::Outcome;
use serde_json::{Value, json};
use std::collections::BTreeMap;

const PORT: &str = "8888";

/// Asks inside, and keeps what cookies it is given: `$jar` and `$xsrf` in a header stand for them.
const ASK: &str = r#"
import http.client, http.cookies, json, ssl, sys
wishes, tls, jar, answers = json.loads(sys.argv[1]), sys.argv[2] == "https", http.cookies.SimpleCookie(), []
for method, path, headers in wishes:
    if tls:
        connection = http.client.HTTPSConnection("127.0.0.1", 8888, context=ssl._create_unverified_context())
    else:
        connection = http.client.HTTPConnection("127.0.0.1", 8888)
    kept = {"$jar": "; ".join(f"{m.key}={m.value}" for m in jar.values()), "$xsrf": jar["_xsrf"].value if "_xsrf" in jar else ""}
    body = headers.pop("body", None)
    connection.request(method, path, body, {name: kept.get(value, value) for name, value in headers.items()})
    answer = connection.getresponse()
    for line in answer.headers.get_all("Set-Cookie") or ():
        jar.load(line)
    allowed = answer.headers.get("Access-Control-Allow-Origin")
    answers.append({"status": answer.status, "body": answer.read().decode(errors="replace"), "allowed": allowed})
print(json.dumps(answers))
"#;

/// A command for a terminal, or code for a kernel, as the page in a browser sends it; prints what they print.
const WORK: &str = r#"
import json, sys, urllib.request, uuid, websocket
token, what, code = sys.argv[1:]
head = {"Authorization": f"token {token}"}
def post(path, body):
    request = urllib.request.Request(f"http://127.0.0.1:8888{path}", json.dumps(body).encode(), head)
    return json.load(urllib.request.urlopen(request))
def connect(path):
    return websocket.create_connection(f"ws://127.0.0.1:8888{path}", header=head, timeout=60)
if what == "terminal":
    socket = connect(f"/terminals/websocket/{post('/api/terminals', {})['name']}")
    socket.send(json.dumps(["stdin", code + "; echo en''ded\n"]))
    said = ""
    while "ended" not in said:
        kind, *text = json.loads(socket.recv())
        said += text[0] if kind == "stdout" else ""
else:
    socket = connect(f"/api/kernels/{post('/api/kernels', {'name': 'python3'})['id']}/channels")
    header = {"msg_id": uuid.uuid4().hex, "session": "test", "username": "", "msg_type": "execute_request", "version": "5.3"}
    content = {"code": code, "silent": False, "store_history": False, "user_expressions": {}, "allow_stdin": False}
    socket.send(json.dumps({"channel": "shell", "header": header, "parent_header": {}, "metadata": {}, "content": content}))
    done = set()
    while not {"execute_reply", "idle"} <= done:
        message = json.loads(socket.recv())
        if message["parent_header"].get("msg_id") == header["msg_id"]:
            content = message["content"]
            done |= {message["msg_type"], content.get("execution_state")}
            print(content.get("text", "") + "\n".join(content.get("traceback", ())), end="")
"#;

#[track_caller]
fn started(options: &[&str]) -> Container {
    Container::start(options, "devel", &[]).serving("jupyter")
}

#[track_caller]
fn ask(container: &Container, scheme: &str, wishes: &Value) -> Vec<Value> {
    let answers = container.output(&["python", "-c", ASK, &wishes.to_string(), scheme]);
    serde_json::from_str(&answers).unwrap()
}

#[track_caller]
fn statuses(container: &Container, wishes: &Value) -> Vec<u64> {
    ask(container, "http", wishes).iter().map(|answer| answer["status"].as_u64().unwrap()).collect()
}

/// The token that was printed with the address.
#[track_caller]
fn printed(container: &Container) -> String {
    let logs = container.logs();
    let token = logs.split("lab?token=").nth(1).unwrap_or_else(|| panic!("{logs}"));
    token.split_whitespace().next().unwrap().to_owned()
}

fn bearer(token: &str) -> Value {
    json!({ "Authorization": format!("token {token}") })
}

/// R12: 403 without the token, 200 with it; a page of somebody else cannot act for a user who is logged in.
#[test]
#[ignore = "needs the image"]
fn only_the_token_opens_it() {
    let lab = started(&["--env=JUPYTER_ALLOW_ORIGIN=https://friend.example"]);
    let token = printed(&lab);
    let login = format!("/lab?token={token}");
    let new = |headers: Value| {
        let mut headers = headers;
        headers["body"] = json!(r#"{"type": "notebook"}"#);
        headers
    };
    let own = json!("http://127.0.0.1:8888");
    let wishes = json!([
        ["GET", "/api/status", {}],
        ["GET", "/api/status", bearer(&token)],
        ["GET", "/api/status", bearer(&token.chars().rev().collect::<String>())],
        ["GET", "/api/status?token=", {}],
        ["GET", "/lab", {}],
        ["GET", "/files/x", {}],
        ["POST", "/api/terminals", {}],
        // As a browser does: the address that was printed, then its cookies.
        ["GET", login, {}],
        ["GET", "/api/status", {"Cookie": "$jar"}],
        ["POST", "/api/contents", new(json!({"Cookie": "$jar"}))],
        ["POST", "/api/contents", new(json!({"Cookie": "$jar", "X-XSRFToken": "wrong"}))],
        ["POST", "/api/contents", new(json!({"Cookie": "$jar", "X-XSRFToken": "$xsrf", "Origin": own}))],
        ["POST", "/api/contents", new(json!({"Cookie": "$jar", "X-XSRFToken": "$xsrf", "Origin": "https://stranger.example"}))],
    ]);
    let wanted = [403, 200, 403, 403, 302, 302, 403, 200, 200, 403, 403, 201, 404];
    assert_eq!(statuses(&lab, &wishes), wanted);
    let from = |origin: &str| {
        let mut headers = bearer(&token);
        headers["Origin"] = json!(origin);
        ask(&lab, "http", &json!([["GET", "/api/status", headers]]))[0]["allowed"].clone()
    };
    assert_eq!(from("https://friend.example"), "https://friend.example");
    assert_eq!(from("https://stranger.example"), Value::Null);
    assert_eq!(from("https://friend.example.stranger.example"), Value::Null);

    assert_eq!(lab.logs().matches(&token).count(), 1, "it is printed once: {}", lab.logs());
    // A process that looks at all others has its own arguments in what it sees: none of them is the token.
    let lines = lab.output(&["sh", "-c", "cat /proc/[0-9]*/cmdline | tr '\\0' ' '"]);
    assert!(lines.contains("jupyter-lab") && !lines.contains(&token), "{lines}");
    let kept = lab.output(&[
        "stat",
        "-c",
        "%a %u",
        "/workspace/.jupyter-server",
        "/workspace/.jupyter-server/token",
    ]);
    assert_eq!(kept, "700 1000\n600 1000\n");
    assert!(lab.stop().as_secs() < 5);
}

/// R12: no default in the image opens it, or is the same for two.
#[test]
#[ignore = "needs the image"]
fn the_image_holds_no_token() {
    for variant in ["devel", "debug", "mlflow"] {
        let config = docker(&["image", "inspect", "--format", "{{json .Config}}", &image(variant)]);
        let config = config.expect(0, &["entrypoint"]).stdout.to_lowercase();
        for word in ["token", "password", "secret"] {
            assert!(!config.contains(word), "{variant}: {config}");
        }
    }
    let find = "find / -xdev ( -name token -o -name jupyter_cookie_secret -o -name .jupyter-server ) -not -path /proc/* -size -2k";
    let found = run(&["--user=0"], "devel", &find.split(' ').collect::<Vec<_>>());
    assert_eq!(found.expect(0, &[]).stdout, "");
}

/// R12: the same volume, the same token; another volume, another.
#[test]
#[ignore = "needs the image"]
fn the_token_stays_with_the_volume() {
    let volume = Volume::new();
    let at = volume.at("/workspace");
    let first = started(&[&at]);
    let token = printed(&first);
    drop(first);
    let again = started(&[&at]);
    assert_eq!(printed(&again), token);
    docker(&["restart", "--time=5", &again.id]).expect(0, &[]);
    until("answering again", 30, || (statuses_or_none(&again, &token) == Some(200)).then_some(()));
    let fresh = started(&[]);
    assert_ne!(printed(&fresh), token);
    assert_eq!(token.len(), 48);
}

fn statuses_or_none(container: &Container, token: &str) -> Option<u64> {
    let wish = json!([["GET", "/api/status", bearer(token)]]).to_string();
    let asked = container.exec(&["python", "-c", ASK, &wish, "http"]);
    serde_json::from_str::<Value>(&asked.stdout).ok()?[0]["status"].as_u64()
}

/// One line that says why and what to do, and nothing is started.
#[track_caller]
fn refused(options: &[&str], error: &str, words: &[&str]) {
    let outcome: Outcome = run(&[&["--env=ENTRYPOINT_QUIET=1"], options].concat(), "devel", &[]);
    outcome.expect(2, &[error]).expect(2, words);
    let lines: Vec<&str> = outcome.stderr.lines().filter(|line| line.starts_with("jupyter: ")).collect();
    assert_eq!(lines.len(), 1, "{outcome:#?}");
}

/// R12: what would leave it open, or is not what it seems, is refused.
#[test]
#[ignore = "needs the image"]
fn what_would_leave_it_open_is_refused() {
    let insecure = "--env=JUPYTER_INSECURE_NO_TOKEN=1";
    refused(&["--env=JUPYTER_TOKEN="], "error[E_JUPYTER_OPEN]: the token is empty", &[]);
    refused(&["--env=JUPYTER_TOKEN=", insecure], "error[E_JUPYTER_OPEN]", &["JUPYTER_IP=127.0.0.1"]);
    refused(&["--env=JUPYTER_TOKEN=", "--env=JUPYTER_IP=127.0.0.1"], "error[E_JUPYTER_OPEN]", &[]);
    refused(&["--env=JUPYTER_TOKEN_FILE=/nowhere"], "error[E_SECRET_FILE]", &["/nowhere", "No such file"]);
    refused(&["--env=JUPYTER_TOKEN_FILE=/dev/null"], "error[E_JUPYTER_OPEN]", &[]);
    refused(&["--env=JUPYTER_TOKEN=two words"], "error[E_JUPYTER_TOKEN]", &[]);
    refused(&["--env=JUPYTER_PASSWORD_HASH=hunter2"], "error[E_JUPYTER_PASSWORD]", &["passwd()"]);
    refused(&["--env=JUPYTER_ALLOW_ORIGIN=*"], "error[E_JUPYTER_ORIGIN]", &[]);
    refused(&["--env=JUPYTER_PORT=eighty"], "error[E_PORT]: JUPYTER_PORT=eighty", &[]);
    refused(&["--user=0"], "error[E_JUPYTER_ROOT]", &["--user 0"]);
    let open = started(&[insecure, "--env=JUPYTER_IP=127.0.0.1"]);
    assert_eq!(statuses(&open, &json!([["GET", "/api/status", {}]])), [200]);
    assert!(open.logs().contains("warning: no token"));
}

/// R12: its own certificate, one that is given, and one that is wrong.
#[test]
#[ignore = "needs the image"]
fn it_speaks_https_when_it_is_told_to() {
    let lab = started(&["--env=JUPYTER_TLS=generate"]);
    let token = printed(&lab);
    assert!(lab.logs().contains("https://127.0.0.1:8888/lab?token="), "{}", lab.logs());
    let answers =
        ask(&lab, "https", &json!([["GET", "/api/status", {}], ["GET", "/api/status", bearer(&token)]]));
    assert_eq!((&answers[0]["status"], &answers[1]["status"]), (&json!(403), &json!(200)));
    let shown = lab.output(&["sh", "-c", "openssl s_client -connect 127.0.0.1:8888 </dev/null 2>/dev/null | openssl x509 -noout -fingerprint -sha256 -ext subjectAltName"]);
    let fingerprint =
        shown.lines().next().unwrap().split('=').nth(1).unwrap().replace(':', "").to_lowercase();
    assert!(lab.logs().contains(&fingerprint), "{shown} {}", lab.logs());
    assert!(shown.contains("DNS:localhost, IP Address:127.0.0.1"), "{shown}");
    drop(lab);

    let volume = Volume::new();
    let tls = volume.at("/tls");
    let make = "cd /tls; for name in one other; do openssl req -x509 -newkey rsa:2048 -nodes -days 9 -subj /CN=$name -keyout $name.key -out $name.crt; done; chmod 644 *";
    run(&["--user=0", &tls], "devel", &["sh", "-c", make]).expect(0, &[]);
    let certificate = "--env=JUPYTER_CERT_FILE=/tls/one.crt";
    let own = started(&[&tls, certificate, "--env=JUPYTER_KEY_FILE=/tls/one.key"]);
    let shown = own.output(&["sh", "-c", "openssl s_client -connect 127.0.0.1:8888 </dev/null 2>/dev/null"]);
    assert!(shown.contains("CN=one"), "{shown}");
    drop(own);
    let error = "error[E_JUPYTER_TLS]";
    refused(&[&tls, certificate, "--env=JUPYTER_KEY_FILE=/tls/other.key"], error, &["KEY_VALUES_MISMATCH"]);
    refused(
        &[&tls, certificate, "--env=JUPYTER_KEY_FILE=/tls/none.key"],
        error,
        &["/tls/none.key: No such file"],
    );
    refused(&["--env=JUPYTER_CERT_FILE=/etc/hostname"], error, &["/etc/hostname with its own key"]);
    refused(&["--env=JUPYTER_TLS=yes"], error, &["`generate`"]);
}

/// R12: a password, of which it is only told the hash, opens it, and no token does.
#[test]
#[ignore = "needs the image"]
fn a_password_opens_it() {
    let make = "import jupyter_server.auth as a; print(a.passwd('correct horse'), end='')";
    let hash = run(&[], "devel", &["python", "-c", make]).expect(0, &[]).stdout.clone();
    let lab = started(&[&format!("--env=JUPYTER_PASSWORD_HASH={hash}")]);
    let form = |password: &str| {
        let kind = "application/x-www-form-urlencoded";
        json!({"Cookie": "$jar", "X-XSRFToken": "$xsrf", "Content-Type": kind, "body": format!("password={password}")})
    };
    let wishes = json!([
        ["GET", "/login", {}],
        ["GET", "/api/status?token=", {}],
        ["POST", "/login", form("wrong")],
        ["POST", "/login", form("correct+horse")],
        ["GET", "/api/status", {"Cookie": "$jar"}],
    ]);
    assert_eq!(statuses(&lab, &wishes), [200, 403, 401, 302, 200]);
    let lines = lab.output(&["sh", "-c", "cat /proc/[0-9]*/cmdline"]);
    assert!(lines.contains("jupyter-lab") && !lines.contains(&hash), "{lines}");
}

/// R14, R10: any user with nothing but /tmp; a terminal has the environment of the container, without what is for the server.
#[test]
#[ignore = "needs the image"]
fn its_kernel_and_its_terminal_are_those_of_the_container() {
    let value = "x \"y\" $z\nsecond line";
    let options = [
        "--user=4242:4242",
        "--read-only",
        "--tmpfs=/tmp",
        "--cap-drop=ALL",
        "--security-opt=no-new-privileges",
        "--env=JUPYTER_TOKEN=given-by-the-test",
        &format!("--env=A={value}"),
    ];
    let lab = started(&options);
    let logs = lab.logs();
    assert!(logs.contains("jupyter: opens /tmp/home-4242, not /workspace/notebooks"), "{logs}");
    assert!(!logs.contains("given-by-the-test"), "{logs}");
    let work = |what: &str, code: &str| lab.output(&["python", "-c", WORK, "given-by-the-test", what, code]);
    let code =
        "import os, sys, torch; print(sys.prefix, int(torch.ones(2).sum()), os.environ.get('JUPYTER_TOKEN'))";
    assert_eq!(work("kernel", code), "/opt/venv 2 None\n");

    work("terminal", "env -0 > /tmp/env");
    let entries = |text: &str| -> BTreeMap<String, String> {
        text.split('\0')
            .filter_map(|entry| entry.split_once('='))
            .map(|(n, v)| (n.to_owned(), v.to_owned()))
            .collect()
    };
    let terminal = entries(&lab.output(&["cat", "/tmp/env"]));
    let mut exec = entries(&lab.output(&["env", "-0"]));
    assert_eq!(exec.remove("JUPYTER_TOKEN").as_deref(), Some("given-by-the-test"));
    // The entry point gave it one that can be written; `docker exec` does not go through it.
    assert_eq!(exec.remove("HOME").as_deref(), Some("/home/user"));
    for (name, value) in &exec {
        assert_eq!(terminal.get(name), Some(value), "{name}");
    }
    assert_eq!((terminal["A"].as_str(), terminal["HOME"].as_str()), (value, "/tmp/home-4242"));
    assert!(
        !terminal.contains_key("JUPYTER_TOKEN") && !terminal.contains_key("JUPYTER_CONFIG_PATH"),
        "{terminal:?}"
    );
    assert_eq!(lab.output(&["sh", "-c", "command -v python"]), "/opt/venv/bin/python\n");
}

/// R13: an image without it says so, and a server that is gone does not answer.
#[test]
#[ignore = "needs the image"]
fn where_it_is_not_it_does_not_answer() {
    let jupyter = "/opt/services/jupyter";
    run(&[], "runtime", &[jupyter, "--available"]).expect(1, &[]);
    run(&[], "devel", &[jupyter, "--available"]).expect(0, &[]);
    run(&[], "runtime", &[jupyter]).expect(2, &["jupyter: error[E_NOT_INSTALLED]"]);
    let check = format!("time {jupyter} --check");
    let outcome = run(&[], "devel", &["bash", "-c", &check]);
    outcome.expect(1, &[&format!("jupyter: nothing answers on 127.0.0.1:{PORT}")]);
}
