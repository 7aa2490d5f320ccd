//! `ps --tree`: the processes of each client.

use std::collections::BTreeMap;
use std::fs;

use anyhow::Result;
use prorata_protocol::{ClientReport, Connection, Request, Response};
use prorata_report::text::{cut, printable};
use prorata_user::procfs;
use serde::Serialize;

use super::clients::NO_CLIENTS;
use crate::args::Format;
use crate::caller::{ask, user_name};
use crate::{output, terminal};

/// A client with its processes, parents before their children.
#[derive(Serialize)]
struct ClientTree {
    id: String,
    name: String,
    /// Null if they are another user's, whose client it is.
    processes: Option<Vec<Node>>,
    #[serde(skip)]
    heading: String,
}

/// A process in a tree.
#[derive(Clone, PartialEq, Eq, Serialize, Debug)]
struct Node {
    pid: u32,
    parent: u32,
    command: String,
    /// What is drawn before it.
    #[serde(skip)]
    branch: String,
}

/// Prints the processes of each client that the caller may change.
pub fn print(
    connection: &mut Connection,
    clients: Vec<ClientReport>,
    format: Format,
) -> Result<()> {
    let trees: Vec<ClientTree> = clients
        .into_iter()
        .map(|client| client_tree(connection, client))
        .collect();
    if format.json {
        return output::json(&trees);
    }
    if trees.is_empty() {
        output::remark(NO_CLIENTS);
    }
    let limit = terminal::columns().unwrap_or(usize::MAX);
    for tree in &trees {
        output::line(&cut(&printable(&tree.heading), limit))?;
        for node in tree.processes.iter().flatten() {
            let text = format!("{}{} {}", node.branch, node.pid, printable(&node.command));
            output::line(&cut(&text, limit))?;
        }
    }
    Ok(())
}

fn client_tree(connection: &mut Connection, client: ClientReport) -> ClientTree {
    let request = Request::Processes {
        client: client.id.clone(),
    };
    // The client may be another user's, or may have ended just now.
    let report = match ask(connection, &request) {
        Ok(Response::Processes(report)) => Some(report),
        _ => None,
    };
    let processes = report.map(|report| {
        let pids = report.processes.iter().map(|process| process.pid);
        tree(pids.filter_map(|pid| Some((pid, procfs::stat(pid).ok()?.parent))))
    });
    let owner = match &processes {
        Some(_) => String::new(),
        None => format!("  (of user {})", user_name(client.owner)),
    };
    ClientTree {
        heading: format!(
            "{} {}  {}{owner}",
            client.id,
            client.name,
            output::tickets(&client.tickets)
        ),
        id: client.id,
        name: client.name,
        processes,
    }
}

/// Orders processes, each given with its parent. A process whose parent is not among them is a
/// root.
fn tree(processes: impl Iterator<Item = (u32, u32)>) -> Vec<Node> {
    let parents: BTreeMap<u32, u32> = processes.collect();
    let mut children: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    let mut roots = Vec::new();
    for (&pid, &parent) in &parents {
        match parents.contains_key(&parent) {
            true => children.entry(parent).or_default().push(pid),
            false => roots.push(pid),
        }
    }
    let mut nodes = Vec::new();
    // The next process is the last entry. An entry has what to draw before its descendants'
    // branches, and whether it is its parent's last child.
    let mut waiting = entries(roots, "");
    while let Some((pid, before, is_last)) = waiting.pop() {
        let (branch, below) = match is_last {
            true => ("└─ ", "   "),
            false => ("├─ ", "│  "),
        };
        nodes.push(Node {
            pid,
            parent: parents[&pid],
            command: command(pid),
            branch: format!("{before}{branch}"),
        });
        let children = children.remove(&pid).unwrap_or_default();
        waiting.extend(entries(children, &format!("{before}{below}")));
    }
    nodes
}

/// Siblings, the first one last.
fn entries(pids: Vec<u32>, before: &str) -> Vec<(u32, String, bool)> {
    let siblings = pids.into_iter().rev().enumerate();
    siblings
        .map(|(index, pid)| (pid, before.to_owned(), index == 0))
        .collect()
}

/// The command line of a process, or its name in brackets.
fn command(pid: u32) -> String {
    let read = |file: &str| fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
    let words = read("cmdline");
    let words = words.strip_suffix(b"\0").unwrap_or(&words);
    if words.is_empty() {
        return format!("[{}]", String::from_utf8_lossy(&read("comm")).trim_end());
    }
    String::from_utf8_lossy(words).replace('\0', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn children_follow_their_parents() {
        // No process has such a number.
        let pid = |number: u32| 0x7fff_0000 + number;
        let processes = [(1, 90), (2, 1), (3, 1), (4, 2), (5, 91)];
        let nodes = tree(
            processes
                .map(|(p, parent)| (pid(p), pid(parent)))
                .into_iter(),
        );
        let drawn: Vec<String> = nodes
            .iter()
            .map(|node| format!("{}{}", node.branch, node.pid - pid(0)))
            .collect();
        assert_eq!(drawn, ["├─ 1", "│  ├─ 2", "│  │  └─ 4", "│  └─ 3", "└─ 5"]);
    }
}
