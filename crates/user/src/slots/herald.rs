//! The herald: a thread that reads the whole timetable after each change, so that no keeper has to.

use std::sync::Arc;
use std::time::Duration;

use prorata_bulletin::{Owners, Reader};

use super::Play;
use crate::decision::DecisionThread;
use crate::events::CommandSender;
use crate::priority;

/// How soon a table that changes too fast is read again.
const PAUSE: Duration = Duration::from_millis(1);

/// Has the decision thread find the processes of all claims, until the play ends.
pub(crate) fn run(play: &Arc<Play>, reader: &Reader, commands: &CommandSender) {
    priority::wake_promptly(priority::ENGINE);
    let mut owners = Owners::default();
    while !play.has_ended() && reader.is_open() {
        let sequence = reader.sequence();
        if !owners.look(reader) {
            std::thread::sleep(PAUSE);
            continue;
        }
        let playbill = Arc::new(owners.playbill(reader.geometry().cells()));
        let play = play.clone();
        // A decision thread that has ended has released everything.
        let cast = move |thread: &mut DecisionThread, _| thread.cast_parts(playbill, &play);
        let _ = commands.send(cast);
        if reader.wait(sequence, None).is_err() {
            std::thread::sleep(PAUSE);
        }
    }
}
