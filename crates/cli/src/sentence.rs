//! Errors as a user reads them.

/// An error and its causes, each of them once: many errors name their cause themselves.
pub fn sentence(error: &anyhow::Error) -> String {
    let mut told = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if told.is_empty() {
            told = cause;
        } else if !told.contains(&cause) {
            told = format!("{told}: {cause}");
        }
    }
    told
}

#[cfg(test)]
mod tests {
    use std::io;

    use anyhow::Context as _;
    use prorata_protocol::PathError;

    use super::*;

    #[test]
    fn each_cause_of_an_error_is_told_once() {
        let denied = || io::Error::from(io::ErrorKind::PermissionDenied);
        let named = PathError::Io {
            path: "/a".into(),
            source: denied(),
        };
        let known = "directory /a cannot be used: permission denied";
        assert_eq!(sentence(&named.into()), known);
        let unnamed = Err::<(), _>(denied()).context("cannot write /a");
        let known = "cannot write /a: permission denied";
        assert_eq!(sentence(&unnamed.unwrap_err()), known);
    }
}
