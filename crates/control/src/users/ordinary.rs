//! Which users have a client without a request, and for whom a process counts.
//!
//! The paper has a currency for each user of a machine where people log in. Today's machines run
//! their services under users of their own, which is no reason to give a service as much as a person.
//! So users below `UID_MIN` of login.defs(5) are left alone, and so are those that systemd makes
//! for services, and nobody. Subordinate users of subuid(5), as containers without root have them,
//! count for their owner: otherwise a user could have 65,536 shares.

use std::ops::RangeInclusive;

use crate::host::{Host, Stamp};

const LOGIN_DEFS: &str = "/etc/login.defs";
const SUBUID: &str = "/etc/subuid";
const PASSWD: &str = "/etc/passwd";

/// The least ordinary user where login.defs does not tell.
const UID_MIN: u32 = 1_000;

/// Users that systemd makes for services (`DynamicUser=`), the kernel's overflow user nobody, and
/// the last number of 16 bits.
const OF_SERVICES: RangeInclusive<u32> = 61_184..=65_535;

/// Not a user: "unchanged" to the kernel.
const NO_USER: u32 = u32::MAX;

/// The users of a machine.
#[derive(Debug)]
pub(super) struct Ordinary {
    least: u32,
    /// Subordinate users, each range with its owner.
    subordinate: Vec<(RangeInclusive<u32>, u32)>,
    /// Of the files that tell this.
    stamps: [Option<Stamp>; 3],
}

impl Default for Ordinary {
    fn default() -> Self {
        Self {
            least: UID_MIN,
            subordinate: Vec::new(),
            stamps: [None; 3],
        }
    }
}

impl Ordinary {
    /// Reads the files again if any has changed: to look for the owners in the user database may
    /// take long.
    pub fn renew(&mut self, host: &dyn Host) {
        if self.stamps != stamps(host) {
            *self = Self::read(host);
        }
    }

    pub fn read(host: &dyn Host) -> Self {
        // Files that change meanwhile are read again.
        let stamps = stamps(host);
        let text = host.text(LOGIN_DEFS);
        let least = text.lines().find_map(|line| {
            let mut words = line.split_whitespace();
            words.next().filter(|name| *name == "UID_MIN")?;
            words.next()?.parse().ok()
        });
        let text = host.text(SUBUID);
        let subordinate = text.lines().filter_map(|line| range(host, line));
        Self {
            // Root is none.
            least: least.unwrap_or(UID_MIN).max(1),
            subordinate: subordinate.collect(),
            stamps,
        }
    }

    /// The ordinary user for whom a process counts that has this real user.
    pub fn user_of(&self, uid: u32) -> Option<u32> {
        let mut ranges = self.subordinate.iter();
        let owner = ranges.find(|(range, _)| range.contains(&uid));
        let user = owner.map_or(uid, |(_, owner)| *owner);
        let is_ordinary = user >= self.least && !OF_SERVICES.contains(&user) && user != NO_USER;
        is_ordinary.then_some(user)
    }
}

fn stamps(host: &dyn Host) -> [Option<Stamp>; 3] {
    [LOGIN_DEFS, SUBUID, PASSWD].map(|path| host.stamp(path))
}

/// A line `owner:first:count`. Ranges never make a root out of a user, nor another ordinary user.
fn range(host: &dyn Host, line: &str) -> Option<(RangeInclusive<u32>, u32)> {
    let mut fields = line.split(':');
    let owner = fields.next()?;
    let account = host.account_named(owner).map(|account| account.uid);
    let owner = account.or_else(|| owner.parse().ok())?;
    let first: u32 = fields.next()?.parse().ok()?;
    let count: u32 = fields.next()?.trim().parse().ok()?;
    let last = first.checked_add(count.checked_sub(1)?)?;
    (!(first..=last).contains(&owner)).then_some((first..=last, owner))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{ALICE, BOB, FakeHost};

    fn users(ordinary: &Ordinary, uids: &[u32]) -> Vec<Option<u32>> {
        uids.iter().map(|uid| ordinary.user_of(*uid)).collect()
    }

    #[test]
    fn services_and_nobody_are_not_swept() {
        let ordinary = Ordinary::read(&FakeHost::new(0));
        let none = [0, 1, 999, 61_184, 65_534, 65_535, u32::MAX];
        assert_eq!(users(&ordinary, &none), [None; 7]);
        for user in [1_000, 61_183, 65_536, u32::MAX - 1] {
            assert_eq!(ordinary.user_of(user), Some(user));
        }
    }

    #[test]
    fn login_defs_tells_the_least_user() {
        let mut host = FakeHost::new(0);
        let text = "# UID_MIN 1\nUID_MAX 60000\nUID_MIN\t\t  500\nSYS_UID_MIN 100\n";
        host.texts.insert("/etc/login.defs", text.to_owned());
        let ordinary = Ordinary::read(&host);
        assert_eq!(users(&ordinary, &[499, 500]), [None, Some(500)]);
        host.texts.insert("/etc/login.defs", "UID_MIN 0\n".into());
        assert_eq!(Ordinary::read(&host).user_of(0), None);
    }

    #[test]
    fn files_are_read_again_when_they_change() {
        let mut host = FakeHost::new(0);
        host.texts
            .insert("/etc/subuid", "alice:100000:10\nbob:200000:10\n".into());
        let mut ordinary = Ordinary::default();
        for _ in 0..3 {
            ordinary.renew(&host);
        }
        assert_eq!(
            users(&ordinary, &[100_000, 200_000]),
            [Some(ALICE), Some(BOB)]
        );
        assert_eq!(host.look_ups.get(), 2);
        host.texts.insert("/etc/subuid", "alice:300000:10\n".into());
        ordinary.renew(&host);
        assert_eq!(
            users(&ordinary, &[100_000, 300_000]),
            [Some(100_000), Some(ALICE)]
        );
        assert_eq!(host.look_ups.get(), 3);
        // An owner may have got an account.
        host.texts.insert("/etc/passwd", "any".into());
        ordinary.renew(&host);
        assert_eq!(host.look_ups.get(), 4);
    }

    #[test]
    fn subordinate_users_count_for_their_owner() {
        let mut host = FakeHost::new(0);
        let text = "alice:100000:65536\n1001:200000:1\nnobody-knows:300000:10\nbob:7\nbob:900:200\n\
                    bob:4294967295:2\nbob:400000:0\n";
        host.texts.insert("/etc/subuid", text.to_owned());
        let ordinary = Ordinary::read(&host);
        for (uid, user) in [
            (99_999, 99_999),
            (100_000, ALICE),
            (165_535, ALICE),
            (165_536, 165_536),
            (200_000, 1_001),
            (200_001, 200_001),
            (300_000, 300_000),
            (400_000, 400_000),
            // A range with its owner in it says nothing.
            (1_050, 1_050),
        ] {
            assert_eq!(ordinary.user_of(uid), Some(user), "{uid}");
        }
    }
}
