//! The pages as people see them: headless Chromium, in a container that shares nothing but loopback with the server.

use crate::containers::{Container, docker};
use crate::debian;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// What Chromium needs of Debian, and a font.
const PACKAGES: [&str; 3] = ["chromium-headless-shell", "dash", "fonts-dejavu-core"];

/// Chromium, which is spoken to over a pipe: messages in JSON with a zero byte after each.
pub struct Browser {
    process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    messages: u64,
    session: Value,
    /// What happened meanwhile, of the domains that were enabled.
    pub events: Vec<Value>,
}

/// How Chromium is started, wherever it runs; a shell connects its pipe with standard input and output.
const START: &str = "--no-sandbox --disable-gpu --disable-dev-shm-usage --window-size=1280,900 \
    --remote-debugging-pipe 3<&0 4>&1 </dev/null >/dev/null 2>&1";

impl Browser {
    fn beside(server: &Container) -> Browser {
        let image = debian::image("chromium", &PACKAGES);
        let start = format!("exec chromium-headless-shell --user-data-dir=/tmp/profile {START}");
        let network = format!("container:{}", server.id);
        let words = [
            "run",
            "--rm",
            "--interactive",
            "--network",
            &network,
            "--user=1000",
            &image,
            "sh",
            "-c",
            &start,
        ];
        Browser::start(&mut crate::containers::client(&words))
    }

    /// Chromium on this machine, without a container, for pages that are files.
    pub fn here() -> Browser {
        let root = debian::tree("chromium", &PACKAGES);
        let profile = root.with_file_name("profile");
        let libraries = root.join("usr/lib").join(format!("{}-linux-gnu", std::env::consts::ARCH));
        let fonts = root.with_file_name("fonts.conf");
        let text = format!("<fontconfig><dir>{}</dir></fontconfig>", root.join("usr/share/fonts").display());
        std::fs::write(&fonts, text).unwrap();
        let mut sh = Command::new("sh");
        sh.args(["-c", &format!("exec \"$0\" --user-data-dir=\"$HOME\" {START}")])
            .arg(root.join("usr/lib/chromium/chromium-headless-shell"))
            .env("LD_LIBRARY_PATH", std::env::join_paths([libraries.join("pulseaudio"), libraries]).unwrap())
            .env("FONTCONFIG_FILE", fonts)
            .env("HOME", profile);
        Browser::start(&mut sh)
    }

    fn start(command: &mut Command) -> Browser {
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (input, output) = (process.stdin.take().unwrap(), BufReader::new(process.stdout.take().unwrap()));
        let mut browser =
            Browser { process, input, output, messages: 0, session: Value::Null, events: Vec::new() };
        let target = browser.call("Target.createTarget", &json!({"url": "about:blank"}))["targetId"].clone();
        let attach = json!({"targetId": target, "flatten": true});
        browser.session = browser.call("Target.attachToTarget", &attach)["sessionId"].clone();
        browser
    }

    /// A method of Chromium's protocol, and what it answers.
    #[track_caller]
    pub fn call(&mut self, method: &str, parameters: &Value) -> Value {
        self.messages += 1;
        let mut message = json!({"id": self.messages, "method": method, "params": parameters});
        if !self.session.is_null() {
            message["sessionId"] = self.session.clone();
        }
        self.input.write_all(format!("{message}\0").as_bytes()).unwrap();
        loop {
            let mut bytes = Vec::new();
            assert!(self.output.read_until(0, &mut bytes).unwrap() > 0, "the browser has ended");
            let answer: Value = serde_json::from_slice(&bytes[..bytes.len() - 1]).unwrap();
            if answer["id"] == self.messages {
                assert!(answer["error"].is_null(), "{method}: {answer}");
                return answer["result"].clone();
            }
            self.events.push(answer);
        }
    }

    /// What an expression of the page is; a promise is waited for.
    #[track_caller]
    pub fn value(&mut self, expression: &str) -> Value {
        let ask = json!({"expression": expression, "returnByValue": true, "awaitPromise": true});
        let asked = self.call("Runtime.evaluate", &ask);
        asked["result"]["value"].clone()
    }

    /// Whether an expression of the page becomes true in time.
    #[track_caller]
    fn becomes(&mut self, expression: &str, seconds: u64) -> bool {
        let start = Instant::now();
        while self.value(expression) != Value::Bool(true) {
            if start.elapsed() > Duration::from_secs(seconds) {
                return false;
            }
            std::thread::sleep(Duration::from_millis(200));
        }
        true
    }

    #[track_caller]
    pub fn wait(&mut self, expression: &str) {
        if !self.becomes(expression, 60) {
            self.picture("failed");
            let text = self.value("document.body.innerText");
            panic!("not within 60 s: {expression}; see failed.png; the page says {text}");
        }
    }

    /// Clicks in the middle of an element, once it is there and has stopped moving.
    #[track_caller]
    fn click(&mut self, selector: &str) {
        let bounds = format!("document.querySelector(`{selector}`)?.getBoundingClientRect()");
        let middle = format!(
            "(() => {{ const box = {bounds}; return [box.x + box.width / 2, box.y + box.height / 2]; }})()"
        );
        self.wait(&format!(
            "(() => {{ const now = JSON.stringify({bounds} ?? 0), before = window.before; window.before = now; \
             return document.readyState === 'complete' && now !== '0' && now === before; }})()"
        ));
        let at = self.value(&middle);
        for kind in ["mousePressed", "mouseReleased"] {
            let event = json!({"type": kind, "x": at[0], "y": at[1], "button": "left", "clickCount": 1});
            self.call("Input.dispatchMouseEvent", &event);
        }
    }

    #[track_caller]
    fn write(&mut self, text: &str) {
        self.call("Input.insertText", &json!({"text": text}));
    }

    /// Enter, with the keys that are held meanwhile: 8 is shift.
    #[track_caller]
    fn enter(&mut self, held: u8) {
        for kind in ["keyDown", "keyUp"] {
            let event = json!({"type": kind, "key": "Enter", "code": "Enter", "windowsVirtualKeyCode": 13, "modifiers": held, "text": "\r"});
            self.call("Input.dispatchKeyEvent", &event);
        }
    }

    /// What the page looks like, kept for people below `target/screenshots`.
    #[track_caller]
    pub fn picture(&mut self, name: &str) {
        let data = self.call("Page.captureScreenshot", &json!({}))["data"].clone();
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("screenshots");
        std::fs::create_dir_all(&folder).unwrap();
        let file = std::fs::File::create(folder.join(format!("{name}.png"))).unwrap();
        let mut decode =
            Command::new("base64").arg("--decode").stdin(Stdio::piped()).stdout(file).spawn().unwrap();
        decode.stdin.take().unwrap().write_all(data.as_str().unwrap().as_bytes()).unwrap();
        assert!(decode.wait().unwrap().success());
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

/// R12: the token in the form of the login, a new notebook, a cell that imports torch, its output.
#[test]
#[ignore = "fetches Chromium"]
fn a_notebook_is_opened_and_a_cell_runs() {
    let lab = Container::start(&[], "devel", &[]).serving("jupyter");
    let logs = lab.logs();
    let token = logs.split("lab?token=").nth(1).unwrap().split_whitespace().next().unwrap();
    let mut browser = Browser::beside(&lab);
    browser.call("Page.navigate", &json!({"url": "http://127.0.0.1:8888/lab"}));
    browser.click("#password_input");
    browser.write("not the token");
    browser.enter(0);
    browser.wait("document.body.innerText.includes('Invalid credentials')");
    browser.picture("jupyter-refused");
    browser.click("#password_input");
    browser.write(token);
    browser.enter(0);
    browser.click(".jp-LauncherCard[data-category='Notebook']");
    browser.wait("!!document.querySelector('.jp-Notebook .cm-content')");
    browser.wait("document.querySelector('#jp-main-statusbar').innerText.includes('| Idle')");
    browser.click(".jp-Notebook .cm-content");
    browser.write("import sys, torch; print(sys.prefix, torch.__version__, int(torch.ones(2, 3).sum()))");
    browser.enter(8);
    browser.wait(
        "(document.querySelector('.jp-OutputArea-output')?.innerText ?? '').startsWith('/opt/venv 2.15.0')",
    );
    let said = browser.value("document.querySelector('.jp-OutputArea-output').innerText");
    browser.picture("jupyter-cell");
    assert!(said.as_str().unwrap().trim_end().ends_with(" 6"), "{said}");
    // Nobody asks for news, and nothing stands in the way.
    assert_eq!(browser.value("document.querySelectorAll('.jp-Dialog, .jp-toast-button').length"), 0);
    assert_eq!(lab.output(&["sh", "-c", "ls /workspace/notebooks"]), "Untitled.ipynb\n");
}

/// R13: a run that a client in another container has logged is on the page.
#[test]
#[ignore = "fetches Chromium"]
fn a_run_that_was_logged_is_seen() {
    let mlflow = Container::start(&[], "mlflow", &[]).serving("mlflow");
    let log = "import mlflow; mlflow.set_experiment('seen'); mlflow.start_run(run_name='a-run-to-see'); mlflow.log_metric('loss', 0.25)";
    let (network, image) = (format!("container:{}", mlflow.id), crate::containers::image("mlflow"));
    let address = "--env=MLFLOW_TRACKING_URI=http://127.0.0.1:5000";
    docker(&["run", "--rm", "--network", &network, address, &image, "python", "-c", log]).expect(0, &[]);
    let mut browser = Browser::beside(&mlflow);
    browser.call("Page.navigate", &json!({"url": "http://127.0.0.1:5000/#/experiments/1/runs"}));
    browser.wait("document.body.innerText.includes('a-run-to-see')");
    browser.picture("mlflow-run");
}
