//! `cloudkeel emulate`, as a user and a script see it.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

/// An emulator that ends with the test.
struct Emulator(Child);

impl Drop for Emulator {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn emulate(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cloudkeel"));
    command.arg("emulate").args(arguments);
    command
}

/// The answer to a `GET`, status line and all.
fn get(address: &str, path: &str, token: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("it listens");
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n\
         Connection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).expect("it reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers");
    answer
}

#[test]
fn an_emulator_says_how_to_reach_it_and_has_servers() {
    let mut command = emulate(&["hetzner", "--token=secret", "--servers=2"]);
    let child = command.stdout(Stdio::piped()).spawn();
    let mut emulator = Emulator(child.expect("the program runs"));
    let stdout = emulator.0.stdout.take().expect("it is piped");
    let lines: Vec<String> = BufReader::new(stdout)
        .lines()
        .take(5)
        .map(|line| line.expect("it is text"))
        .collect();
    let endpoint = lines[0].strip_prefix("HCLOUD_ENDPOINT=http://").unwrap();
    let address = endpoint.strip_suffix("/v1").unwrap();
    assert_eq!(lines[1..3], ["HCLOUD_TOKEN=secret", "HCLOUD_NETWORK=kube"]);
    assert_eq!(lines[3], format!("# Robot: http://{address}/robot"));
    let servers = get(address, "/v1/servers", "secret");
    assert!(servers.starts_with("HTTP/1.1 200 "), "{servers}");
    assert!(servers.contains("\"node-2\"") && !servers.contains("\"node-3\""));
    let stranger = get(address, "/v1/servers", "guess");
    assert!(stranger.starts_with("HTTP/1.1 401 "), "{stranger}");
}

#[test]
fn mistakes_say_what_would_be_right() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = format!("--port={}", taken.local_addr().unwrap().port());
    for (case, arguments, expected) in [
        ("no cloud", vec![], "hetzner"),
        ("unknown cloud", vec!["hetzer"], "hetzner"),
        (
            "bad duration",
            vec!["hetzner", "--action-duration=1"],
            "such as 500ms",
        ),
        (
            "port in use",
            vec!["hetzner", &port],
            "--port=0 takes a free port",
        ),
        (
            "no room",
            vec!["hetzner", "--network=10.0.0.0/30"],
            "no_subnet_available",
        ),
    ] {
        let output = emulate(&arguments).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success(), "{case}");
        assert!(said.contains(expected), "{case}: {said}");
    }
}
