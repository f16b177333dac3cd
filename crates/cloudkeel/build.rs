//! How the static program is linked.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_ENV").is_ok_and(|it| it == "musl") {
        // A static program that may be loaded anywhere has a relocation for every pointer in its data: 24 bytes each,
        // or a bit in this form, which the musl of the toolchain reads.
        println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
}
