//! `/proc/PID/environ`: the environment that a process was started with.

/// Longest environment that is searched for a marker.
const MAX_ENVIRONMENT_BYTES: u64 = 256 << 10;

/// The value of environment variable `name` that a process was started with,
/// if this user may read it.
pub fn environment_variable(pid: u32, name: &str) -> Option<String> {
    use std::io::Read;
    let mut environment = Vec::new();
    let file = std::fs::File::open(format!("/proc/{pid}/environ")).ok()?;
    file.take(MAX_ENVIRONMENT_BYTES)
        .read_to_end(&mut environment)
        .ok()?;
    environment
        .split(|&b| b == 0)
        .find_map(|variable| variable.strip_prefix(name.as_bytes())?.strip_prefix(b"="))
        .and_then(|value| String::from_utf8(value.to_vec()).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_is_found_by_its_whole_name() {
        let me = std::process::id();
        assert_eq!(environment_variable(me, "NO SUCH VARIABLE"), None);
        let path = std::env::var("PATH").expect("cargo sets it");
        assert_eq!(environment_variable(me, "PATH"), Some(path));
        assert_eq!(environment_variable(me, "PAT"), None);
    }
}
