//! Starts a control plane for several test programs, prints the value of `CLOUDKEEL_CONTROL_PLANE` by which
//! they find it, and keeps it until standard input ends.

use std::error::Error;
use std::io::{self, Read as _};

use cloudkeel_testkit::control_plane::ControlPlane;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let plane = ControlPlane::start().await?;
    println!("{}", plane.publish()?.display());
    io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}
