//! Makes tables in Markdown.

/// Makes a table. Heads and rows are cells separated by ` | `. The first head may be empty.
pub fn table(heads: &str, rows: impl IntoIterator<Item = impl AsRef<str>>) -> String {
    let heads = heads.trim();
    let mut text = format!("| {heads} |\n|{}\n", "---|".repeat(heads.split('|').count()));
    for row in rows {
        text.push_str(&format!("| {} |\n", row.as_ref()));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::table;

    #[test]
    fn a_table_has_a_line_below_its_heads() {
        assert_eq!(table("  | ms", ["a | 1", "b | 2"]), "| | ms |\n|---|---|\n| a | 1 |\n| b | 2 |\n");
        assert_eq!(table("ms", [] as [&str; 0]), "| ms |\n|---|\n");
    }
}
