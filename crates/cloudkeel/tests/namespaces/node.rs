//! A node: a namespace with a cable to ours, and a program in it that answers on the node port.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{IpAddr, Ipv4Addr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::ROLE;

pub(crate) const NODE_PORT: u16 = 30_080;

/// A node that runs until this is dropped.
pub(crate) struct Machine {
    pub(crate) name: String,
    pub(crate) number: u8,
    child: Child,
}

impl Machine {
    /// Starts it, with an address of the node and one of a pod.
    pub(crate) fn start(number: u8) -> Self {
        let name = format!("node-{number}");
        for line in [
            format!("netns add {name}"),
            format!("link add v{number} type veth peer name eth0 netns {name}"),
            format!("addr add 10.9.{number}.1/24 dev v{number}"),
            format!("link set v{number} up"),
            format!("-n {name} addr add 10.9.{number}.2/24 dev eth0"),
            format!("-n {name} link set eth0 up"),
            format!("-n {name} link set lo up"),
            format!("-n {name} addr add 10.244.{number}.5/32 dev lo"),
        ] {
            ip(&line);
        }
        let child = Command::new("ip")
            .args(["netns", "exec", &name])
            .arg(std::env::current_exe().expect("this program"))
            .env(ROLE, &name)
            .stdin(Stdio::null())
            .spawn()
            .expect("the node starts");
        Self {
            name,
            number,
            child,
        }
    }

    pub(crate) fn address(&self) -> IpAddr {
        [10, 9, self.number, 2].into()
    }

    pub(crate) fn pods(&self) -> String {
        format!("10.244.{}.0/24", self.number)
    }

    /// Pulls the cable out, or puts it in again.
    pub(crate) fn plug(&self, is_in: bool) {
        let state = if is_in { "up" } else { "down" };
        ip(&format!("-n {} link set eth0 {state}", self.name));
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What `ip` says.
pub(crate) fn ip(line: &str) -> String {
    let output = Command::new("ip")
        .args(line.split_whitespace())
        .output()
        .expect("ip starts");
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "ip {line}: {told}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Says its name to everybody who asks by HTTP, for ever.
pub(crate) fn serve(name: &str) {
    let at = (Ipv4Addr::UNSPECIFIED, NODE_PORT);
    let listener = TcpListener::bind(at).expect("the node port");
    while let Ok((stream, _)) = listener.accept() {
        let name = name.to_owned();
        // Whoever goes away without a question was a health check.
        std::thread::spawn(move || answer(stream, &name).ok());
    }
}

fn answer(mut stream: TcpStream, name: &str) -> std::io::Result<()> {
    stream.set_read_timeout(Some(Duration::from_secs(5)))?;
    let mut asked = false;
    for line in BufReader::new(stream.try_clone()?).lines() {
        let line = line?;
        asked |= line.starts_with("GET ");
        if line.is_empty() {
            break;
        }
    }
    if asked {
        let length = name.len();
        write!(
            stream,
            "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{name}"
        )?;
    }
    Ok(())
}
