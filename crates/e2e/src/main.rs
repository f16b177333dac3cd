//! `cargo xtask e2e`: the checks on the cluster of a kubeconfig.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, Result};
use clap::Parser;
use cloudkeel_e2e::{Options, run};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};

/// Checks Nodes and Services of any cluster on any cloud, and writes a report for CI systems.
#[derive(Parser)]
#[command(name = "cargo xtask e2e", bin_name = "cargo xtask e2e")]
struct Args {
    /// The cluster, as an administrator.
    #[arg(long, value_name = "FILE")]
    kubeconfig: PathBuf,
    /// Where the report is written.
    #[arg(long, value_name = "FILE", default_value = "target/e2e.xml")]
    junit: PathBuf,
    /// The image of the Pod behind the Service, which serves HTTP on port 8080; `none` if the cluster answers node ports
    /// by itself.
    #[arg(long, default_value = "registry.k8s.io/e2e-test-images/agnhost:2.53")]
    image: String,
    /// How many seconds each wait may take. Some clouds take minutes for a load balancer.
    #[arg(long, value_name = "SECONDS", default_value_t = 600)]
    timeout: u64,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match check(&Args::parse()).await {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn check(args: &Args) -> Result<bool> {
    let named = || format!("--kubeconfig {}", args.kubeconfig.display());
    let kubeconfig = Kubeconfig::read_from(&args.kubeconfig).with_context(named)?;
    let choice = KubeConfigOptions::default();
    let config = Config::from_custom_kubeconfig(kubeconfig, &choice).await;
    let client = Client::try_from(config.with_context(named)?)?;
    let options = Options {
        image: (args.image != "none").then(|| args.image.clone()),
        timeout: Duration::from_secs(args.timeout),
    };
    let report = run(&client, &options).await;
    print!("{}", report.text());
    let junit = std::fs::write(&args.junit, report.junit());
    junit.with_context(|| format!("cannot write {}", args.junit.display()))?;
    Ok(report.passed())
}
