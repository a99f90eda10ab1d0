//! Drives Chromium over the pipe of its DevTools protocol. Each message is JSON and ends with a zero byte.

use awty_testkit::PATIENCE;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};

/// Chromium reads commands from descriptor 3 and writes answers to descriptor 4.
const START: &str = "exec chromium --headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage --hide-scrollbars --no-first-run \
    --remote-debugging-pipe --user-data-dir=\"$1\" about:blank 3<&0 4>&1 </dev/null >/dev/null 2>&1";

pub struct Chromium {
    child: Child,
    input: ChildStdin,
    messages: Receiver<Value>,
    session: Option<String>,
    last: u64,
    pub errors: Vec<String>,
    loaded: bool,
    profile: PathBuf,
}

impl Chromium {
    pub fn start() -> Self {
        let profile = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("chromium-{:016x}", rand::random::<u64>()));
        let mut command = Command::new("sh");
        command.args(["-c", START, "sh"]).arg(&profile).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let (sender, messages) = channel();
        std::thread::spawn(move || {
            for message in BufReader::new(output).split(0).map_while(Result::ok) {
                if sender.send(serde_json::from_slice(&message).unwrap()).is_err() {
                    return;
                }
            }
        });
        let mut chromium =
            Chromium { child, input, messages, session: None, last: 0, errors: Vec::new(), loaded: false, profile };
        let target = chromium.command("Target.createTarget", json!({"url": "about:blank"}))["targetId"].clone();
        let session = chromium.command("Target.attachToTarget", json!({"targetId": target, "flatten": true}));
        chromium.session = session["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page", "Log", "Network"] {
            chromium.command(&format!("{domain}.enable"), json!({}));
        }
        chromium.command("Emulation.setScriptExecutionDisabled", json!({"value": true}));
        chromium
    }

    fn read(&mut self) -> Value {
        let message = self.messages.recv_timeout(PATIENCE);
        let message = message.expect("Chromium does not answer; is it there? (scripts/setup test)");
        match message["method"].as_str() {
            Some("Page.loadEventFired") => self.loaded = true,
            // Ignores network errors, because Chromium logs a network error when the server refuses a form.
            Some("Log.entryAdded") if message["params"]["entry"]["source"] != "network" => {
                let entry = &message["params"]["entry"];
                if entry["level"] == "error" {
                    self.errors.push(entry["text"].as_str().unwrap_or_default().to_owned());
                }
            }
            _ => {}
        }
        message
    }

    pub fn command(&mut self, method: &str, parameters: Value) -> Value {
        self.last += 1;
        let mut message = json!({"id": self.last, "method": method, "params": parameters});
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        write!(self.input, "{message}\0").unwrap();
        loop {
            let answer = self.read();
            if answer["id"] == self.last {
                assert!(answer["error"].is_null(), "{method}: {answer}");
                return answer["result"].clone();
            }
        }
    }

    pub fn show(&mut self, width: u32, scheme: &str) {
        let screen = json!({"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600});
        self.command("Emulation.setDeviceMetricsOverride", screen);
        let scheme = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
        self.command("Emulation.setEmulatedMedia", scheme);
    }

    fn await_load(&mut self) {
        while !self.loaded {
            self.read();
        }
    }

    pub fn go(&mut self, address: &str) {
        self.loaded = false;
        self.command("Page.navigate", json!({"url": address}));
        self.await_load();
    }

    pub fn value(&mut self, script: &str) -> Value {
        let found = self.command("Runtime.evaluate", json!({"expression": script, "returnByValue": true}));
        assert!(found["exceptionDetails"].is_null(), "{script}: {found}");
        found["result"]["value"].clone()
    }

    pub fn text(&mut self, script: &str) -> String {
        self.value(script).as_str().unwrap_or_default().to_owned()
    }

    pub fn send(&mut self, form: &str, fields: &[(&str, &str)]) {
        for (name, text) in fields {
            self.value(&format!("document.querySelector({form:?}).elements[{name:?}].value = {}", json!(text)));
        }
        self.loaded = false;
        self.value(&format!("document.querySelector({form:?}).requestSubmit()"));
        self.await_load();
    }

    pub fn nameless(&mut self) -> Vec<Value> {
        self.command("Accessibility.enable", json!({}));
        let tree = self.command("Accessibility.getFullAXTree", json!({}));
        let nodes = tree["nodes"].as_array().cloned().unwrap_or_default();
        let roles = ["button", "link", "textbox", "searchbox", "combobox", "checkbox", "table", "image", "navigation"];
        let is_nameless = |node: &Value| {
            let role = node["role"]["value"].as_str().unwrap_or_default();
            node["ignored"] != true
                && roles.contains(&role)
                && node["name"]["value"].as_str().unwrap_or_default().is_empty()
        };
        nodes.into_iter().filter(is_nameless).collect()
    }

    pub fn picture(&mut self, name: &str) {
        let shot = self.command("Page.captureScreenshot", json!({"captureBeyondViewport": true}));
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("page");
        std::fs::create_dir_all(&folder).unwrap();
        let bytes = STANDARD.decode(shot["data"].as_str().unwrap()).unwrap();
        std::fs::write(folder.join(format!("{name}.png")), bytes).unwrap();
    }
}

impl Drop for Chromium {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
        drop(std::fs::remove_dir_all(&self.profile));
    }
}
