//! The engine as a user chooses it and as the journal keeps it.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::hybrid_choice::HybridChoice;

/// What decides which task runs.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EngineChoice {
    /// The daemon decides, on any Linux.
    #[default]
    User,
    /// A scheduler inside the kernel decides, loaded like this.
    Kernel(KernelChoice),
}

/// What is fixed about the scheduler in the kernel when the daemon loads it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", from = "KeptKernelChoice")]
pub struct KernelChoice {
    /// It schedules all of the machine, and not the clients alone.
    pub all: bool,
    /// Where tasks wait.
    pub queues: QueueChoice,
    /// The mechanisms of hybrid lottery scheduling.
    pub hybrid: HybridChoice,
    /// Its decisions can be traced.
    pub traced: bool,
}

impl Default for KernelChoice {
    fn default() -> Self {
        Self {
            all: true,
            queues: QueueChoice::default(),
            hybrid: HybridChoice::default(),
            traced: false,
        }
    }
}

/// A choice as a journal keeps it. Older ones know one mechanism and not the others.
#[derive(Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
struct KeptKernelChoice {
    all: bool,
    queues: QueueChoice,
    hybrid: Option<HybridChoice>,
    abbreviated: Option<bool>,
    traced: bool,
}

impl From<KeptKernelChoice> for KernelChoice {
    fn from(kept: KeptKernelChoice) -> Self {
        let older = kept.abbreviated.map(|abbreviated_quanta| HybridChoice {
            abbreviated_quanta,
            ..HybridChoice::NONE
        });
        let hybrid = kept.hybrid.or(older);
        Self {
            all: kept.all,
            queues: kept.queues,
            hybrid: hybrid.unwrap_or_default(),
            traced: kept.traced,
        }
    }
}

/// Where tasks wait in the kernel.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum QueueChoice {
    /// In a queue for each CPU; a CPU takes the least pass of all queues.
    #[default]
    Cpu,
    /// The same, with a queue for all CPUs that share a last-level cache.
    Cache,
    /// In one queue.
    One,
}

impl fmt::Display for QueueChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            QueueChoice::Cpu => "cpu",
            QueueChoice::Cache => "cache",
            QueueChoice::One => "one",
        })
    }
}

impl EngineChoice {
    /// Its name, followed by the options of `prorata start` that differ from the
    /// defaults.
    pub fn words(self) -> Vec<String> {
        let EngineChoice::Kernel(KernelChoice {
            all,
            queues,
            hybrid,
            traced,
        }) = self
        else {
            return vec!["user".to_owned()];
        };
        let mut words = vec!["kernel".to_owned()];
        if !all {
            words.push("--clients-only".to_owned());
        }
        if queues != QueueChoice::default() {
            words.push(format!("--queues={queues}"));
        }
        if hybrid != HybridChoice::default() {
            words.push(format!("--hybrid={hybrid}"));
        }
        if traced {
            words.push("--trace".to_owned());
        }
        words
    }
}

impl fmt::Display for EngineChoice {
    /// As it follows `--engine`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words().join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_is_written_as_it_is_given_on_the_command_line() {
        assert_eq!(EngineChoice::User.to_string(), "user");
        let kernel = |choice| EngineChoice::Kernel(choice).to_string();
        assert_eq!(kernel(KernelChoice::default()), "kernel");
        let other = KernelChoice {
            all: false,
            queues: QueueChoice::One,
            hybrid: HybridChoice::NONE,
            traced: true,
        };
        assert_eq!(
            kernel(other),
            "kernel --clients-only --queues=one --hybrid=none --trace"
        );
    }

    #[test]
    fn choices_of_older_journals_keep_their_meaning() {
        let kept = |text: &str| serde_json::from_str::<KernelChoice>(text).unwrap();
        let all = kept(r#"{"all":true,"queues":"cpu","abbreviated":false,"traced":false}"#);
        assert_eq!((all.all, all.hybrid), (true, HybridChoice::NONE));
        let abbreviated = kept(r#"{"abbreviated":true}"#).hybrid;
        assert!(abbreviated.abbreviated_quanta && !abbreviated.ticket_boost);
        assert!(!kept("{}").all);
        let chosen = KernelChoice {
            hybrid: abbreviated,
            traced: true,
            ..KernelChoice::default()
        };
        let text = serde_json::to_string(&chosen).unwrap();
        assert_eq!(kept(&text), chosen);
    }
}
