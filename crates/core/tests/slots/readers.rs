//! What follows a table by its news: a copy of its words, and the image that outlives the daemon.

use std::collections::BTreeSet;

use prorata_core::slots::account::Tokens;
use prorata_core::slots::claim::Account;
use prorata_core::slots::image::Image;
use prorata_core::slots::level::LEVELS;
use prorata_core::slots::timetable::Timetable;

pub struct Readers {
    words: [Vec<u64>; 2],
    image: Image,
}

impl Readers {
    pub fn of(table: &Timetable) -> Self {
        let words = vec![0; table.geometry().cells()];
        Self {
            words: [words.clone(), words],
            image: Image::empty(*table.geometry()),
        }
    }

    /// Takes the news and compares all that follows from them with the table.
    pub fn follow(&mut self, table: &mut Timetable, now: u64) {
        let news = table.take_news();
        for (buffer, index) in news.words {
            self.words[buffer][index] = table.staging().word(buffer, index);
        }
        for (buffer, words) in self.words.iter().enumerate() {
            for (index, &word) in words.iter().enumerate() {
                assert_eq!(word, table.staging().word(buffer, index));
            }
        }
        let cells: BTreeSet<usize> = news.claims.into_iter().collect();
        for deed in self.image.behind(table, &cells, 0) {
            self.image.apply(&deed);
        }
        let all = (0..table.geometry().cells()).collect();
        assert_eq!(self.image.behind(table, &all, 0), [], "the image is behind");
        let restored = Timetable::restore(&self.image, now).unwrap();
        assert!(restored.audit());
        assert!(restored.table().claims().eq(table.table().claims()));
        assert_eq!(holdings(&restored), holdings(table));
        for row in 0..table.geometry().rows() {
            assert_eq!(restored.reservation(row), table.reservation(row));
        }
    }
}

/// Accounts that have something; one that has only given something away is left out.
fn holdings(table: &Timetable) -> Vec<(Account, [Tokens; LEVELS])> {
    let accounts = table.bank().accounts();
    let full = accounts.filter(|(_, tokens)| **tokens != <[Tokens; LEVELS]>::default());
    full.map(|(&account, &tokens)| (account, tokens)).collect()
}

#[cfg(feature = "serde")]
#[test]
fn an_image_in_writing_is_the_same_image() {
    use prorata_core::slots::geometry::Geometry;
    use prorata_core::slots::image::{Deed, Gift, Holding};
    use prorata_core::slots::level::Level;
    use prorata_core::slots::reservation::Reservation;

    let mut image = Image::empty(Geometry::new(2, 12, 1_000_000, 77).unwrap());
    let reservation = Reservation {
        numerator: 1,
        denominator: 10,
    };
    let holding = Holding {
        tokens: 3,
        weight: 1,
    };
    let gift = Gift {
        recipient: Account::User(1),
        donor: Account::User(2),
        level: Level::Gang,
    };
    for deed in [
        Deed::Reservation(1, reservation),
        Deed::Tokens(Account::User(1), Level::Hard, holding),
        Deed::Gift(gift, 2),
    ] {
        image.apply(&deed);
    }
    let text = serde_json::to_string(&image).unwrap();
    assert_eq!(serde_json::from_str::<Image>(&text).unwrap(), image);
    let without_columns = text.replace("\"columns\":12", "\"columns\":0");
    assert!(serde_json::from_str::<Image>(&without_columns).is_err());
}
