//! Bytes in both directions, each ending on its own.

use std::io;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::net::tcp::{ReadHalf, WriteHalf};

use super::counters::{Counter, Traffic};
use super::tcp::prepare;

/// What is under way in one direction of one connection.
const BUFFER: usize = 16 * 1024;

/// Copies bytes until both sides have ended. When one side closes its half, the other half is closed too, and may
/// still answer.
pub(super) async fn splice(
    client: &mut TcpStream,
    server: &mut TcpStream,
    traffic: &Traffic,
) -> io::Result<()> {
    prepare(client);
    prepare(server);
    let (from_client, to_client) = client.split();
    let (from_server, to_server) = server.split();
    tokio::try_join!(
        pump(from_client, to_server, &traffic.bytes_in),
        pump(from_server, to_client, &traffic.bytes_out),
    )?;
    Ok(())
}

async fn pump(mut from: ReadHalf<'_>, mut to: WriteHalf<'_>, carried: &Counter) -> io::Result<()> {
    let mut buffer = vec![0; BUFFER];
    loop {
        let read = from.read(&mut buffer).await?;
        let Some(bytes) = buffer.get(..read).filter(|bytes| !bytes.is_empty()) else {
            return finish(&mut to).await;
        };
        to.write_all(bytes).await?;
        carried.add(read);
    }
}

/// Passes the end on. A peer that has already closed is skipped.
async fn finish(to: &mut WriteHalf<'_>) -> io::Result<()> {
    match to.shutdown().await {
        Err(error) if error.kind() == io::ErrorKind::NotConnected => Ok(()),
        ended => ended,
    }
}
