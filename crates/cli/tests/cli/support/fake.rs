//! A fake daemon: it records requests, and the test decides its answers.

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread;

use prorata_protocol::{
    ClientReport, ClientState, EngineChoice, Envelope, PolicyName, Request, Response, StatusReport,
};
use tempfile::TempDir;

/// The test's answer to a request; `None` for the usual answer.
type Answer = Box<dyn Fn(&Request) -> Option<Response> + Send + Sync>;

/// A listening socket in a directory of its own. Its threads end with the
/// test's process.
pub struct Fake {
    directory: TempDir,
    heard: Arc<Mutex<Vec<Request>>>,
}

impl Fake {
    /// Starts a fake daemon with the usual answers.
    pub fn start() -> Self {
        Self::answering(|_| None)
    }

    /// Starts a fake daemon that answers by `answer`, or as usual.
    pub fn answering(
        answer: impl Fn(&Request) -> Option<Response> + Send + Sync + 'static,
    ) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(directory.path().join("socket")).unwrap();
        let heard = Arc::new(Mutex::new(Vec::new()));
        let (shared, answer): (_, Arc<Answer>) = (Arc::clone(&heard), Arc::new(Box::new(answer)));
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (heard, answer) = (Arc::clone(&shared), Arc::clone(&answer));
                thread::spawn(move || converse(stream.unwrap(), &heard, &answer));
            }
        });
        Self { directory, heard }
    }

    pub fn socket(&self) -> PathBuf {
        self.directory.path().join("socket")
    }

    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// All requests so far, without requests for the status and without those of wrappers whose
    /// command has ended.
    pub fn heard(&self) -> Vec<Request> {
        self.heard
            .lock()
            .unwrap()
            .iter()
            .filter(|request| !matches!(request, Request::Status))
            .filter(|request| !matches!(request, Request::Release { client } if client == "c7"))
            .cloned()
            .collect()
    }

    /// The pids registered so far.
    pub fn registered(&self) -> Vec<u32> {
        let pid = |request: Request| match request {
            Request::Register { pid, .. } => Some(pid),
            _ => None,
        };
        self.heard().into_iter().filter_map(pid).collect()
    }
}

fn converse(mut stream: UnixStream, heard: &Mutex<Vec<Request>>, answer: &Answer) {
    let mut length = [0; 4];
    while stream.read_exact(&mut length).is_ok() {
        let mut body = vec![0; u32::from_le_bytes(length) as usize];
        stream.read_exact(&mut body).unwrap();
        let envelope: Envelope = serde_json::from_slice(&body).unwrap();
        heard.lock().unwrap().push(envelope.request.clone());
        let response = answer(&envelope.request).unwrap_or_else(|| usual(&envelope.request));
        let body = serde_json::to_vec(&response).unwrap();
        let length = u32::try_from(body.len()).unwrap().to_le_bytes();
        // The caller may be gone.
        let _ = stream.write_all(&[&length[..], &body].concat());
    }
}

fn usual(request: &Request) -> Response {
    match request {
        Request::Status | Request::Configure { .. } => Response::Status(status()),
        Request::Register {
            pid, name, funding, ..
        } => Response::Client(ClientReport {
            name: name.clone().unwrap_or_default(),
            pid: *pid,
            tickets: vec![(funding.amount, "me".to_owned())],
            ..client("c7")
        }),
        Request::Suspend { .. } => Response::Suspended { was_stopped: false },
        Request::Clients => Response::Clients(vec![client("c7")]),
        Request::Currencies => Response::Currencies(Vec::new()),
        Request::Tickets { .. } => Response::Tickets(Vec::new()),
        Request::Transfers => Response::Transfers(Vec::new()),
        Request::CreateCurrency { .. } => Response::Created("u1".to_owned()),
        Request::Issue { .. } => Response::Created("t1".to_owned()),
        Request::Transfer { .. } => Response::Created("x1".to_owned()),
        _ => Response::Done,
    }
}

/// A status with the test's own pid, a process that does not end too early.
pub fn status() -> StatusReport {
    StatusReport {
        version: "0".to_owned(),
        pid: std::process::id(),
        engine: "fake".to_owned(),
        engine_choice: EngineChoice::User,
        stays: false,
        users: None,
        mechanism: "idle".to_owned(),
        policy: PolicyName::Stride,
        quantum_ns: 20_000_000,
        cpus: allowed_cpus(),
        uptime_ns: 1,
        own_cpu_ns: 0,
        decisions: 0,
        clients: 0,
        queues: None,
        hybrid: None,
        traced: false,
        outside: Vec::new(),
        advice: None,
        trouble: None,
    }
}

/// CPUs that this process may use.
pub fn allowed_cpus() -> Vec<u32> {
    let set = rustix::thread::sched_getaffinity(None).unwrap();
    (0..1024_u32)
        .filter(|&cpu| set.is_set(cpu as usize))
        .collect()
}

/// A client that idles.
pub fn client(id: &str) -> ClientReport {
    ClientReport {
        id: id.to_owned(),
        name: "program".to_owned(),
        owner: 0,
        pid: 1,
        processes: 1,
        state: ClientState::Running,
        tickets: vec![(100, "me".to_owned())],
        value: 100.0,
        quantum_ns: None,
        max: None,
        share: 1.0,
        specified_ns: 0,
        received_ns: 0,
        error_quanta: 0.0,
        turns: None,
        hybrid: None,
        nice: None,
    }
}
