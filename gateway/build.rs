//! How the program is linked.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // Where its code lies is fixed, as in a program in Go: else the loader writes 27,000 addresses into a hundred pages before `main`,
    // which takes half a millisecond and 450 KiB of each process, and each child is started by way of a process of this program.
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("linux") {
        println!("cargo:rustc-link-arg-bins=-no-pie");
    }
}
