//! Rows in aligned columns, as wide as the terminal; whole where there is none.

use std::io::{self, IsTerminal as _, Write};

use serde::Serialize;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use super::find::line;
use super::pager::Pager;
use crate::exit::CommandResult;
use crate::paint::Paint;

/// What stands between columns.
const GAP: &str = "  ";

/// How wide and how high a terminal is that does not say so.
const USUAL: usize = 80;
const USUAL_HEIGHT: usize = 24;

/// How much of a text is looked at, in characters; the terminal may show less.
const LOOKED_AT: usize = 200;

/// A column.
pub(crate) struct Column {
    pub(crate) name: &'static str,
    /// The fewest cells that are worth showing; 0 if it is never cut.
    pub(crate) least: usize,
    /// The most cells that it takes of a terminal, however wide that is.
    pub(crate) most: usize,
    /// Which columns are left out first where there is no room: that with the lowest number. `None` is never left out.
    pub(crate) spared: Option<u8>,
    /// Which end is cut off.
    pub(crate) cut: Cut,
    pub(crate) look: fn(Paint, &str) -> String,
}

impl Column {
    /// A column that is never cut and never left out, and looks like its text.
    pub(crate) const fn new(name: &'static str) -> Self {
        Self {
            name,
            least: 0,
            most: usize::MAX,
            spared: None,
            cut: Cut::Tail,
            look: |_, text| text.to_owned(),
        }
    }
}

/// Which end of a text goes where there is no room for all of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cut {
    /// The beginning, as of a path.
    Head,
    /// The end.
    Tail,
}

/// Shows each thing in a row, through the pager of a person; with `json` as a line of JSON.
pub(crate) fn show<T: Serialize>(
    things: &[T],
    json: bool,
    no_pager: bool,
    columns: &[Column],
    row: impl Fn(&T) -> Vec<String>,
) -> CommandResult {
    Pager::show(no_pager || json, |out, paint| {
        if json {
            for thing in things {
                serde_json::to_writer(&mut *out, thing).map_err(io::Error::from)?;
                writeln!(out)?;
            }
            return Ok(());
        }
        let rows: Vec<_> = things.iter().map(row).collect();
        Ok(write(columns, &rows, width(), out, paint)?)
    })
}

/// What stands in a cell: a text from a transcript, in one line and harmless to a terminal; nothing if there is none.
pub(crate) fn cell(text: Option<&str>) -> String {
    line(text.unwrap_or_default(), LOOKED_AT)
}

/// How many cells a line has; `None` where standard output is no terminal.
pub(super) fn width() -> Option<usize> {
    if !io::stdout().is_terminal() {
        return None;
    }
    #[cfg(unix)]
    if let Ok(size) = rustix::termios::tcgetwinsize(io::stdout())
        && size.ws_col > 0
    {
        return Some(usize::from(size.ws_col));
    }
    Some(USUAL)
}

/// How many lines a terminal has.
pub(super) fn height() -> usize {
    #[cfg(unix)]
    if let Ok(size) = rustix::termios::tcgetwinsize(io::stdout())
        && size.ws_row > 0
    {
        return usize::from(size.ws_row);
    }
    USUAL_HEIGHT
}

/// Writes the rows, below the columns' names where a person reads them. The texts have no line breaks. A column in which nothing
/// stands is left out.
pub(super) fn write(
    columns: &[Column],
    rows: &[Vec<String>],
    width: Option<usize>,
    out: &mut dyn Write,
    paint: Paint,
) -> io::Result<()> {
    let widths = widths(columns, rows, width);
    let mut row = |cells: &mut dyn Iterator<Item = &str>, look: &dyn Fn(&Column, &str) -> String| {
        let shown = columns.iter().zip(&widths).zip(cells);
        let shown: Vec<_> = shown.filter(|((_, width), _)| **width > 0).collect();
        let mut written = String::new();
        // Spaces are written only once something stands behind them.
        let mut owed = String::new();
        for ((column, width), cell) in shown {
            let cell = fitted(cell, *width, column.cut);
            let space = width.saturating_sub(cell.width());
            if !cell.is_empty() {
                written.push_str(&owed);
                owed.clear();
                written.push_str(&look(column, &cell));
            }
            owed.push_str(&" ".repeat(space));
            owed.push_str(GAP);
        }
        writeln!(out, "{written}")
    };
    if width.is_some() {
        let mut names = columns.iter().map(|column| column.name);
        row(&mut names, &|_, name| paint.dim(name))?;
    }
    for cells in rows {
        let mut cells = cells.iter().map(String::as_str);
        row(&mut cells, &|column, cell| (column.look)(paint, cell))?;
    }
    Ok(())
}

/// How wide each column is; 0 if it is left out.
fn widths(columns: &[Column], rows: &[Vec<String>], width: Option<usize>) -> Vec<usize> {
    let natural = |shown: &dyn Fn(usize) -> bool| -> Vec<usize> {
        let cells = |nth: usize| rows.iter().filter_map(move |row| row.get(nth));
        let of = |nth: usize, column: &Column| match cells(nth).map(|cell| cell.width()).max() {
            None | Some(0) => 0,
            Some(_) if !shown(nth) => 0,
            Some(widest) if width.is_some() => widest.min(column.most).max(column.name.width()),
            Some(widest) => widest,
        };
        columns
            .iter()
            .enumerate()
            .map(|(nth, column)| of(nth, column))
            .collect()
    };
    let mut widths = natural(&|_| true);
    let Some(most) = width else { return widths };
    loop {
        let shown = widths.iter().filter(|width| **width > 0);
        let total = shown.clone().sum::<usize>() + GAP.len() * shown.count().saturating_sub(1);
        if total <= most {
            return widths;
        }
        // The widest gives way first, but none gives all.
        let can_shrink = |nth: &usize| columns[*nth].least > 0 && widths[*nth] > columns[*nth].least;
        let widest = (0..widths.len())
            .filter(can_shrink)
            .max_by_key(|nth| widths[*nth]);
        if let Some(nth) = widest {
            widths[nth] -= 1;
            continue;
        }
        let can_go = |nth: &usize| columns[*nth].spared.is_some() && widths[*nth] > 0;
        let Some(nth) = (0..widths.len())
            .filter(can_go)
            .min_by_key(|nth| columns[*nth].spared)
        else {
            return widths;
        };
        widths[nth] = 0;
        // What was taken from the others for nothing is given back.
        widths = natural(&|nth| widths[nth] > 0);
    }
}

/// A text in so many cells at most.
fn fitted(text: &str, most: usize, cut: Cut) -> String {
    if text.width() <= most {
        return text.to_owned();
    }
    let (mut left, mut kept) = (most.saturating_sub(1), String::new());
    let mut takes = |c: &char| {
        let width = c.width().unwrap_or(0);
        let fits = width <= left;
        left = if fits { left - width } else { 0 };
        fits
    };
    match cut {
        Cut::Tail => {
            kept.extend(text.chars().take_while(&mut takes));
            kept.push('…');
            kept
        }
        Cut::Head => {
            kept.extend(text.chars().rev().take_while(&mut takes));
            kept.push('…');
            kept.chars().rev().collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_cut_by_cells() {
        assert_eq!(fitted("abc", 3, Cut::Tail), "abc");
        assert_eq!(fitted("abcd", 3, Cut::Tail), "ab…");
        assert_eq!(fitted("abcd", 3, Cut::Head), "…cd");
        // Two cells each.
        assert_eq!(fitted("日本語", 5, Cut::Tail), "日本…");
        assert_eq!(fitted("日本語", 4, Cut::Tail), "日…");
        assert_eq!(fitted("日本語", 4, Cut::Head), "…語");
        assert_eq!(fitted("abc", 0, Cut::Tail), "…");
    }

    #[test]
    fn no_line_is_wider_than_the_terminal_as_long_as_there_is_room_at_all() {
        let column = |name, least, spared| Column {
            least,
            most: 40,
            spared,
            ..Column::new(name)
        };
        let columns = [
            column("when", 0, Some(3)),
            column("id", 0, None),
            column("branch", 8, Some(1)),
            column("none", 8, Some(2)),
            column("title", 10, None),
        ];
        let row = [
            "3 h ago",
            "1111",
            "a-branch-of-many-words",
            "",
            "a title of many words 日本語 日本語",
        ];
        let rows = vec![row.map(str::to_owned).to_vec()];
        let paint = Paint::on(&std::fs::File::open(env!("CARGO_MANIFEST_DIR")).unwrap());
        for width in 16..120 {
            let mut out = Vec::new();
            write(&columns, &rows, Some(width), &mut out, paint).unwrap();
            let text = String::from_utf8(out).unwrap();
            for line in text.lines() {
                assert!(line.width() <= width, "{width}: {line:?}");
                assert!(!line.contains("none") && !line.ends_with(' '), "{line:?}");
            }
        }
    }
}
