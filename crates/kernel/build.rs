//! Compiles the schedulers in BPF, where the feature `bpf` asks for them.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    #[cfg(feature = "bpf")]
    schedulers();
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
    let built = scx_cargo::BpfBuilder::new().and_then(|mut builder| {
        builder.enable_skel("bpf/floor.bpf.c", "floor");
        builder.build()
    });
    if let Err(error) = built {
        panic!(
            "cannot compile the schedulers: {error:#}\nscripts/vm-setup installs what is needed"
        );
    }
}
