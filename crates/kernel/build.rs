//! Compiles the schedulers in BPF if the feature `bpf` is on.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    #[cfg(feature = "bpf")]
    {
        schedulers();
        arithmetic();
    }
}

/// The schedulers' arithmetic as a library, only for tests.
#[cfg(feature = "bpf")]
fn arithmetic() {
    println!("cargo:rerun-if-changed=tests/arithmetic/native.c");
    println!("cargo:rerun-if-changed=bpf");
    let mut build = cc::Build::new();
    build
        .cargo_metadata(false)
        // The tests do not use all functions of the headers.
        .flag("-Wno-unused-function")
        .file("tests/arithmetic/native.c");
    build.compile("arithmetic");
    let directory = std::env::var("OUT_DIR").expect("cargo sets it");
    println!("cargo:rustc-link-arg-tests={directory}/libarithmetic.a");
}

#[cfg(feature = "bpf")]
fn schedulers() {
    if std::env::var_os("BPF_CLANG").is_none() {
        let clang = ["clang", "clang-19"].into_iter().find(|clang| {
            let version = std::process::Command::new(clang).arg("--version").output();
            version.is_ok_and(|output| output.status.success())
        });
        let Some(clang) = clang else {
            panic!("there is no clang for the feature `bpf`: run scripts/vm-setup");
        };
        // SAFETY: no other thread is running.
        unsafe { std::env::set_var("BPF_CLANG", clang) };
    }
    // A builder makes one skeleton.
    let built = ["floor", "observe", "prorata"]
        .into_iter()
        .try_for_each(|name| {
            let mut builder = scx_cargo::BpfBuilder::new()?;
            builder.enable_skel(&format!("bpf/{name}.bpf.c"), name);
            builder.build()
        });
    if let Err(error) = built {
        panic!(
            "cannot compile the schedulers: {error:#}\nscripts/vm-setup installs what is needed"
        );
    }
}
