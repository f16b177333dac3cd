//! What a node does: it answers on the node port.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::time::Duration;

pub(crate) const NODE_PORT: u16 = 30_080;

/// Returns its name to every HTTP client, for ever.
pub(crate) fn serve(name: &str) {
    let at = (Ipv4Addr::UNSPECIFIED, NODE_PORT);
    let listener = TcpListener::bind(at).expect("the node port");
    while let Ok((stream, _)) = listener.accept() {
        let name = name.to_owned();
        // A connection without a request was a health check.
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
