//! Complete Markdown as text with colours.

use std::ops::Range;

use pulldown_cmark::{Alignment, Event, Options, Parser, Tag, TagEnd};
use unicode_width::UnicodeWidthStr as _;

use crate::plain::plain;

pub(super) const EXTENSIONS: Options = Options::ENABLE_TABLES
    .union(Options::ENABLE_STRIKETHROUGH)
    .union(Options::ENABLE_TASKLISTS);

const BOLD: &str = "1";
const DIM: &str = "2";
const ITALIC: &str = "3";
const UNDERLINED: &str = "4";
const STRUCK: &str = "9";
const CODE: &str = "36";

/// Stands before text that goes on in the middle of a paragraph, so that it is not taken for the begin of something else.
const BEFORE: &str = "x";

/// A piece of a paragraph.
#[derive(Debug)]
pub(super) struct Inline {
    pub(super) shown: String,
    /// What comes behind it cannot change what it means.
    pub(super) is_closed: bool,
}

impl Inline {
    /// The begin of a paragraph.
    pub(super) fn begins(source: &str) -> Self {
        let mut writer = Writer::new(usize::MAX, None);
        let is_closed = writer.write(source);
        Self {
            shown: writer.out.trim_end_matches('\n').to_owned(),
            is_closed,
        }
    }

    /// A piece that begins with the space between two words.
    pub(super) fn goes_on(source: &str) -> Self {
        let mut inline = Self::begins(&format!("{BEFORE}{source}"));
        if let Some(rest) = inline.shown.strip_prefix(BEFORE) {
            inline.shown = rest.to_owned();
        }
        inline
    }
}

/// Renders whole blocks. `number`: of the first item, if the text is the rest of a list.
pub(super) fn render(source: &str, width: usize, number: Option<u64>) -> String {
    let mut writer = Writer::new(width, number);
    writer.write(source);
    let mut out = writer.out;
    while out.ends_with("\n\n") {
        out.pop();
    }
    out
}

/// Renders a line of code.
pub(super) fn code_line(line: &str, out: &mut String) {
    paint(&[CODE], &plain(line), out);
    out.push('\n');
}

fn paint(styles: &[&str], text: &str, out: &mut String) {
    if styles.is_empty() || text.trim().is_empty() {
        out.push_str(text);
    } else {
        out.push_str(&format!("\x1b[{}m{text}\x1b[0m", styles.join(";")));
    }
}

struct Writer {
    out: String,
    width: usize,
    /// The number with which the first list begins, whatever it says.
    number: Option<u64>,
    at_line_start: bool,
    /// The next block is set apart from the one before.
    apart: bool,
    /// What stands before each line.
    before: Vec<LinePrefix>,
    /// The numbers of the items of the lists around.
    lists: Vec<Option<u64>>,
    styles: Vec<&'static str>,
    links: Vec<OpenLink>,
    table: Option<Table>,
    in_code_block: bool,
}

enum LinePrefix {
    Quote,
    /// The mark of an item, for its first line.
    Item {
        mark: String,
        is_written: bool,
    },
}

struct OpenLink {
    url: String,
    /// Where the text of the block begins.
    from: usize,
    text: String,
}

#[derive(Default)]
struct Table {
    alignments: Vec<Alignment>,
    rows: Vec<Vec<String>>,
    cell: String,
}

impl Writer {
    fn new(width: usize, number: Option<u64>) -> Self {
        Self {
            out: String::new(),
            width,
            number,
            at_line_start: true,
            apart: false,
            before: Vec::new(),
            lists: Vec::new(),
            styles: Vec::new(),
            links: Vec::new(),
            table: None,
            in_code_block: false,
        }
    }

    /// Writes all of it. Whether nothing in it is open.
    fn write(&mut self, source: &str) -> bool {
        let mut is_closed = !source.contains('|');
        for (event, range) in Parser::new_ext(source, EXTENSIONS).into_offset_iter() {
            match event {
                Event::Start(tag) => self.start(tag),
                Event::End(tag) => self.end(tag),
                Event::Text(text) => {
                    is_closed &= self.in_code_block || !may_open(source, range);
                    self.text(&text);
                }
                Event::Code(code) => {
                    let styles = [self.styles.as_slice(), &[CODE]].concat();
                    self.put(&styles, &code);
                }
                Event::Html(text) | Event::InlineHtml(text) => self.text(&text),
                Event::SoftBreak | Event::HardBreak => self.newline(),
                Event::Rule => {
                    self.begin_block();
                    self.put(&[DIM], "---");
                    self.newline();
                    self.apart = true;
                }
                Event::TaskListMarker(done) => self.put(&[], if done { "[x] " } else { "[ ] " }),
                Event::FootnoteReference(name) => self.put(&[], &format!("[{name}]")),
                Event::InlineMath(text) | Event::DisplayMath(text) => self.text(&text),
            }
        }
        if !self.at_line_start {
            self.newline();
        }
        is_closed
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Paragraph | Tag::HtmlBlock => self.begin_block(),
            Tag::Heading { level, .. } => {
                self.begin_block();
                self.styles.push(BOLD);
                if level == pulldown_cmark::HeadingLevel::H1 {
                    self.styles.push(UNDERLINED);
                }
            }
            Tag::BlockQuote(_) => {
                self.begin_block();
                self.before.push(LinePrefix::Quote);
            }
            Tag::CodeBlock(_) => {
                self.begin_block();
                self.in_code_block = true;
            }
            Tag::List(start) => {
                if self.lists.is_empty() {
                    self.begin_block();
                } else if !self.at_line_start {
                    self.newline();
                }
                let start = start.map(|start| self.number.take().unwrap_or(start));
                self.lists.push(start);
            }
            Tag::Item => {
                self.begin_block();
                let mark = match self.lists.last_mut() {
                    Some(Some(number)) => {
                        *number += 1;
                        format!("{}. ", *number - 1)
                    }
                    _ => "- ".to_owned(),
                };
                self.before.push(LinePrefix::Item {
                    mark,
                    is_written: false,
                });
            }
            Tag::Table(alignments) => {
                self.begin_block();
                self.table = Some(Table {
                    alignments,
                    ..Table::default()
                });
            }
            Tag::TableHead | Tag::TableRow => {
                if let Some(table) = &mut self.table {
                    table.rows.push(Vec::new());
                }
            }
            Tag::Emphasis => self.styles.push(ITALIC),
            Tag::Strong => self.styles.push(BOLD),
            Tag::Strikethrough => self.styles.push(STRUCK),
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => {
                self.styles.push(UNDERLINED);
                self.links.push(OpenLink {
                    url: dest_url.into_string(),
                    from: self.out.len(),
                    text: String::new(),
                });
            }
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph | TagEnd::HtmlBlock => self.end_block(),
            TagEnd::Heading(level) => {
                self.styles.pop();
                if level == pulldown_cmark::HeadingLevel::H1 {
                    self.styles.pop();
                }
                self.end_block();
            }
            TagEnd::BlockQuote(_) => {
                self.before.pop();
                self.end_block();
            }
            TagEnd::CodeBlock => {
                self.in_code_block = false;
                self.end_block();
            }
            TagEnd::List(_) => {
                self.lists.pop();
                if self.lists.is_empty() {
                    self.apart = true;
                }
            }
            TagEnd::Item => {
                if !self.at_line_start
                    || matches!(
                        self.before.last(),
                        Some(LinePrefix::Item {
                            is_written: false,
                            ..
                        })
                    )
                {
                    self.put(&[], "");
                    self.newline();
                }
                self.before.pop();
            }
            TagEnd::Table => {
                if let Some(table) = self.table.take() {
                    self.table(&table);
                }
                self.apart = true;
            }
            TagEnd::TableCell => {
                if let Some(table) = &mut self.table {
                    let cell = std::mem::take(&mut table.cell);
                    if let Some(row) = table.rows.last_mut() {
                        row.push(cell.trim().to_owned());
                    }
                }
            }
            TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough => {
                self.styles.pop();
            }
            TagEnd::Link | TagEnd::Image => {
                self.styles.pop();
                if let Some(link) = self.links.pop() {
                    self.address(&link);
                }
            }
            _ => {}
        }
    }

    /// Where a link leads, unless its text says so.
    fn address(&mut self, link: &OpenLink) {
        let url = link.url.strip_prefix("mailto:").unwrap_or(&link.url);
        if !url.is_empty() && link.text != url && link.from <= self.out.len() {
            self.put(&[], " (");
            self.put(&[DIM], url);
            self.put(&[], ")");
        }
    }

    fn begin_block(&mut self) {
        if std::mem::take(&mut self.apart) {
            if !self.at_line_start {
                self.newline();
            }
            let written = !self.out.is_empty();
            // Behind the mark of an item comes its text, not a blank line.
            if written
                && !matches!(
                    self.before.last(),
                    Some(LinePrefix::Item {
                        is_written: false,
                        ..
                    })
                )
            {
                self.prefix();
                let kept = self.out.trim_end_matches(' ').len();
                self.out.truncate(kept);
                self.newline();
            }
        } else if !self.at_line_start
            && !matches!(
                self.before.last(),
                Some(LinePrefix::Item {
                    is_written: false,
                    ..
                })
            )
        {
            self.newline();
        }
    }

    fn end_block(&mut self) {
        if !self.at_line_start {
            self.newline();
        }
        self.apart = true;
    }

    fn text(&mut self, text: &str) {
        for link in &mut self.links {
            link.text.push_str(text);
        }
        let styles = if self.in_code_block {
            vec![CODE]
        } else {
            self.styles.clone()
        };
        let mut lines = text.split('\n');
        if let Some(first) = lines.next() {
            self.put(&styles, first);
        }
        for line in lines {
            if self.at_line_start && !self.in_code_block {
                continue;
            }
            self.newline();
            self.put(&styles, line);
        }
    }

    fn newline(&mut self) {
        if let Some(table) = &mut self.table {
            table.cell.push(' ');
            return;
        }
        self.out.push('\n');
        self.at_line_start = true;
    }

    fn put(&mut self, styles: &[&str], text: &str) {
        let text = plain(text);
        if let Some(table) = &mut self.table {
            table.cell.push_str(&text);
            return;
        }
        if self.at_line_start {
            let marks = matches!(
                self.before.last(),
                Some(LinePrefix::Item {
                    is_written: false,
                    ..
                })
            );
            if text.is_empty() && !marks {
                return;
            }
            self.prefix();
            self.at_line_start = false;
        }
        paint(styles, &text, &mut self.out);
    }

    /// What stands before a line.
    fn prefix(&mut self) {
        for before in &mut self.before {
            match before {
                LinePrefix::Quote => paint(&[DIM], "| ", &mut self.out),
                LinePrefix::Item { mark, is_written } => {
                    if std::mem::replace(is_written, true) {
                        self.out.extend(std::iter::repeat_n(' ', mark.len()));
                    } else {
                        self.out.push_str(mark);
                    }
                }
            }
        }
    }

    /// A table in columns, or where those do not fit, a line for each cell.
    fn table(&mut self, table: &Table) {
        let Some((head, rows)) = table.rows.split_first() else {
            return;
        };
        let widths: Vec<usize> = (0..head.len())
            .map(|column| {
                let cells = table.rows.iter().filter_map(|row| row.get(column));
                cells.map(|cell| cell.width()).max().unwrap_or_default()
            })
            .collect();
        let whole = widths.iter().sum::<usize>() + 2 * widths.len().saturating_sub(1);
        if whole > self.width {
            for row in rows {
                for (name, cell) in head.iter().zip(row) {
                    self.put(&[BOLD], name);
                    self.put(&[], &format!(": {cell}"));
                    self.newline();
                }
                self.newline();
            }
            return;
        }
        self.row(head, &widths, &table.alignments, &[BOLD]);
        let rules: Vec<String> = widths.iter().map(|width| "-".repeat(*width)).collect();
        self.row(&rules, &widths, &table.alignments, &[DIM]);
        for row in rows {
            self.row(row, &widths, &table.alignments, &[]);
        }
    }

    fn row(&mut self, row: &[String], widths: &[usize], alignments: &[Alignment], styles: &[&str]) {
        let mut line = String::new();
        for (column, (cell, width)) in row.iter().zip(widths).enumerate() {
            let free = width.saturating_sub(cell.width());
            let left = match alignments.get(column) {
                Some(Alignment::Right) => free,
                Some(Alignment::Center) => free / 2,
                _ => 0,
            };
            let last = column + 1 == widths.len();
            let right = if last { 0 } else { free - left + 2 };
            line.push_str(&format!("{:left$}{cell}{:right$}", "", ""));
        }
        self.put(styles, line.trim_end());
        self.newline();
    }
}

/// Whether this text, which stands for itself so far, may turn out to be the begin of emphasis, code or a link.
fn may_open(source: &str, range: Range<usize>) -> bool {
    let text = &source[range.clone()];
    text.char_indices().any(|(at, char)| {
        let at = range.start + at;
        let before = source[..at].chars().next_back();
        let behind = &source[at + char.len_utf8()..];
        let next = behind.chars().next();
        if before == Some('\\') {
            return false;
        }
        let touches = next.is_some_and(|next| !next.is_whitespace());
        match char {
            '*' => touches,
            '_' => touches && !before.is_some_and(char::is_alphanumeric),
            '~' => next == Some('~'),
            '`' => true,
            '[' => match behind.find(']') {
                None => true,
                Some(end) => behind[end + 1..].starts_with(['(', '[']),
            },
            '<' => next.is_some_and(|next| next.is_alphabetic() || matches!(next, '/' | '!')),
            _ => false,
        }
    })
}
