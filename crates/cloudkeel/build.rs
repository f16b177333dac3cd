//! How the static program is linked: small.

use std::path::PathBuf;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_ENV").is_ok_and(|it| it == "musl") {
        // A static program that may be loaded anywhere has a relocation for every pointer in its data: 24 bytes each,
        // or a bit in this form, which the musl of the toolchain reads.
        link_with("-Wl,-z,pack-relative-relocs");
        if let Some(folder) = folder_of_lld() {
            link_with("-fuse-ld=lld");
            link_with(&format!("-B{}", folder.display()));
            // Generic code is often the same for several types. Rust compares no functions by their addresses.
            link_with("-Wl,--icf=all,-O2");
        }
    }
}

fn link_with(argument: &str) {
    println!("cargo::rustc-link-arg-bins={argument}");
}

/// Where the toolchain has its own linker. Without it the program is larger, and the same otherwise.
fn folder_of_lld() -> Option<PathBuf> {
    let mut ask = Command::new(std::env::var_os("RUSTC")?);
    let answer = ask.args(["--print", "sysroot"]).output().ok()?;
    let sysroot = String::from_utf8(answer.stdout).ok()?;
    let host = std::env::var("HOST").ok()?;
    let folder = format!("{}/lib/rustlib/{host}/bin/gcc-ld", sysroot.trim_end());
    let folder = PathBuf::from(folder);
    folder.join("ld.lld").is_file().then_some(folder)
}
