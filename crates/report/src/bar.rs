//! A bar of a received share, with a mark at the specified share.

/// Blocks that are 0 to 8 eighths full.
const EIGHTHS: [char; 9] = [' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉', '█'];

/// A bar of exactly `columns` columns for a part of the whole, 0 to 1, with
/// `│` in the column where `specified` ends. Parts outside 0 to 1, and parts
/// that are no numbers, are drawn as the nearest end.
pub fn share_bar(received: f64, specified: f64, columns: usize) -> String {
    if columns == 0 {
        return String::new();
    }
    let eighths = (part(received) * columns as f64 * 8.0).round() as usize;
    let mark = ((part(specified) * columns as f64).round() as usize).clamp(1, columns) - 1;
    (0..columns)
        .map(|column| {
            let block = EIGHTHS[eighths.saturating_sub(column * 8).min(8)];
            // A full block under the mark stays full on its left, so that a
            // bar which reaches the mark is seen to reach it.
            match (column == mark, block) {
                (true, '█') => '▉',
                (true, _) => '│',
                (false, block) => block,
            }
        })
        .collect()
}

fn part(of_whole: f64) -> f64 {
    if of_whole.is_nan() {
        0.0
    } else {
        of_whole.clamp(0.0, 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn length_follows_the_share() {
        assert_eq!(share_bar(0.5, 1.0, 8), "████   │");
        assert_eq!(share_bar(0.0, 0.5, 8), "   │    ");
        assert_eq!(share_bar(0.5, 0.5, 8), "███▉    ");
        assert_eq!(share_bar(1.0, 0.25, 4), "▉███");
        assert_eq!(share_bar(1.0 / 16.0, 1.0, 8), "▌      │");
    }

    #[test]
    fn any_number_gives_the_asked_length() {
        for received in [-1.0, 0.0, 0.3, 7.0, f64::NAN, f64::INFINITY] {
            for specified in [-1.0, 0.0, 0.999, 2.0, f64::NAN] {
                for columns in [0, 1, 2, 40] {
                    assert_eq!(
                        share_bar(received, specified, columns).chars().count(),
                        columns
                    );
                }
            }
        }
    }
}
