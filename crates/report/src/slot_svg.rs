//! The table of slots as a drawing (2005, Figure 2.1): slots of one name have one colour.

use std::collections::BTreeMap;

use crate::slot_table::SlotTable;
use crate::svg::{Anchor, SERIES_COLOURS, Svg, text_width};

/// The least width of a slot that shows its name.
const NAMED_WIDTH: f64 = 26.0;
const ROW_HEIGHT: f64 = 26.0;
const HEAD: f64 = 92.0;
const LEFT: f64 = 84.0;
const RIGHT: f64 = 24.0;
/// A drawing is not wider than this unless its slots would vanish.
const WIDEST: f64 = 1_200.0;
const NARROWEST_SLOT: f64 = 4.0;

/// Draws a table under a title.
pub fn slot_svg(table: &SlotTable, title: &str, caption: &str) -> String {
    let slots = table.rows.iter().map(|(_, row)| row.len()).max();
    let slots = slots.unwrap_or(0).max(1);
    let longest = table.rows.iter().flat_map(|(_, row)| row.iter().flatten());
    let longest = longest.map(|name| text_width(name)).fold(0.0, f64::max);
    let fits = (WIDEST - LEFT - RIGHT) / slots as f64;
    let slot_width = (longest + 10.0).clamp(NAMED_WIDTH, fits.max(NAMED_WIDTH));
    let slot_width = slot_width.min(fits).max(NARROWEST_SLOT);
    let width = LEFT + RIGHT + slot_width * slots as f64;
    let height = HEAD + ROW_HEIGHT * table.rows.len() as f64 + 24.0;
    let mut svg = Svg::headed(width.max(420.0), height, title, caption);
    number_slots(&mut svg, table.first, slots, slot_width);
    let mut colours: BTreeMap<&str, usize> = BTreeMap::new();
    for (place, (cpu, row)) in table.rows.iter().enumerate() {
        let top = HEAD + ROW_HEIGHT * place as f64;
        let label = format!("CPU {cpu}");
        svg.text("", (LEFT - 12.0, top + 17.0), Anchor::End, &label);
        for (slot, name) in row.iter().enumerate() {
            let left = LEFT + slot_width * slot as f64;
            let colour = name.as_deref().map(|name| {
                let next = colours.len() % SERIES_COLOURS;
                *colours.entry(name).or_insert(next)
            });
            draw_slot(&mut svg, (left, top), slot_width, name.as_deref(), colour);
        }
    }
    svg.finish()
}

fn number_slots(svg: &mut Svg, first: u32, slots: usize, slot_width: f64) {
    // As many numbers as there is room for.
    let step = (40.0 / slot_width).ceil().max(1.0) as usize;
    for slot in (0..slots).step_by(step) {
        let middle = LEFT + slot_width * (slot as f64 + 0.5);
        let number = (first as usize + slot).to_string();
        svg.text("faint", (middle, HEAD - 8.0), Anchor::Middle, &number);
    }
}

fn draw_slot(
    svg: &mut Svg,
    (left, top): (f64, f64),
    width: f64,
    name: Option<&str>,
    colour: Option<usize>,
) {
    let size = ((width - 1.0).max(1.0), ROW_HEIGHT - 4.0);
    let Some((name, colour)) = name.zip(colour) else {
        svg.rect("grid", (left, top), size, 2.0);
        return;
    };
    svg.begin_group(name);
    svg.rect(&format!("f{colour}"), (left, top), size, 2.0);
    if text_width(name) + 6.0 <= width {
        let middle = (left + width / 2.0, top + 16.0);
        svg.text("on", middle, Anchor::Middle, name);
    }
    svg.end_group();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::svg::texts_of;

    fn table(slots: usize) -> SlotTable {
        let name = |slot: usize| slot.is_multiple_of(3).then(|| format!("<b>{}", slot % 2));
        SlotTable {
            first: 33,
            rows: vec![(1, (0..slots).map(name).collect()), (2, vec![None; slots])],
        }
    }

    #[test]
    fn every_claimed_slot_tells_its_name() {
        let document = slot_svg(&table(6), "slots", "");
        let texts = texts_of(&document);
        for name in ["<b>0", "<b>1"] {
            // Under the pointer, and in the slot.
            assert_eq!(
                texts.iter().filter(|text| *text == name).count(),
                2,
                "{texts:?}"
            );
        }
        assert!(texts.iter().any(|text| text == "33"));
        assert!(texts.iter().any(|text| text == "CPU 2"));
    }

    #[test]
    fn any_number_of_slots_is_drawn() {
        for slots in [0, 1, 120, 4_096] {
            texts_of(&slot_svg(&table(slots), "slots", "a caption"));
        }
    }
}
