//! Finds which of many names a user means by a name or a part of a name. All commands and options that take the name of
//! a function or of a lock use this module.
//!
//! The rules are tried in this order, and the first rule by which any name fits decides. `typed` fits a name if it is
//! 1. the exact name; a pattern with a wildcard may match with or without parameters;
//! 2. the name without the suffix that a report adds to distinguish equal names (` (shop.c:7)`, `#2`);
//! 3. the name without parameters and return type (`update` for `update(int)`);
//! 4. the name without template arguments, too;
//! 5. the name without the namespaces, classes or packages before it (`insert` for `shop::Cart::insert(int)`);
//! 6. the beginning of the name;
//! 7. the beginning of a part after a namespace, class or package.
//!
//! From rule 2 on, if several different names fit by the same rule, the result is [`NameMatch::Several`]: longpole does
//! not guess.

use engine::glob;

/// The matching names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NameMatch {
    /// No name fits.
    Nothing,
    /// Indices of the names in the list. There are several if the user gave a pattern, or if several functions or locks
    /// have the same name.
    These(Vec<usize>),
    /// Different names fit equally well. The list has one index for each of them.
    Several(Vec<usize>),
}

/// Finds the names that the user means by `typed`. For each name, the number of steps is at most the product of both
/// lengths.
pub fn match_name<N: AsRef<str>>(typed: &str, names: impl Iterator<Item = N>) -> NameMatch {
    match_within(typed, names, Fit::BeginningOfPart)
}

/// Like `match_name`, but only complete names fit, with or without parameters and template arguments. For long lists,
/// in which beginnings of names would often fit by chance.
pub fn match_whole_name<N: AsRef<str>>(typed: &str, names: impl Iterator<Item = N>) -> NameMatch {
    match_within(typed, names, Fit::WithoutTemplate)
}

fn match_within<N: AsRef<str>>(typed: &str, names: impl Iterator<Item = N>, worst: Fit) -> NameMatch {
    let typed = typed.trim();
    let mut best: Option<Fit> = None;
    let mut found: Vec<(usize, N)> = Vec::new();
    for (place, name) in names.enumerate() {
        let Some(fit) = fit(typed, name.as_ref()).filter(|fit| *fit <= worst) else { continue };
        match best {
            Some(best) if fit > best => continue,
            Some(best) if fit == best => {}
            _ => {
                best = Some(fit);
                found.clear();
            }
        }
        found.push((place, name));
    }
    let Some(best) = best else { return NameMatch::Nothing };
    if best > Fit::Pattern {
        let mut different: Vec<(&str, usize)> =
            found.iter().map(|(place, name)| (name.as_ref(), *place)).collect();
        different.sort_unstable();
        different.dedup_by_key(|(name, _)| *name);
        if different.len() > 1 {
            return NameMatch::Several(different.into_iter().map(|(_, place)| place).collect());
        }
    }
    NameMatch::These(found.into_iter().map(|(place, _)| place).collect())
}

/// Whether `typed` is a pattern with a wildcard.
pub fn is_pattern(typed: &str) -> bool {
    typed.contains(['*', '?'])
}

/// A list of names for an error message: the first few names, and the number of all others. Long names lose their
/// middle.
pub fn listed<N: AsRef<str>>(names: &[N]) -> String {
    const SHOWN: usize = 8;
    const LETTERS: usize = 80;
    let short = |name: &N| {
        let name: Vec<char> = name.as_ref().chars().collect();
        let (Some(start), Some(end)) =
            (name.get(..LETTERS / 2), name.get(name.len().saturating_sub(LETTERS / 2)..))
        else {
            return name.iter().collect();
        };
        if name.len() <= LETTERS {
            return name.iter().collect();
        }
        format!("{}…{}", start.iter().collect::<String>(), end.iter().collect::<String>())
    };
    let shown: Vec<String> = names.iter().take(SHOWN).map(short).collect();
    match names.len().saturating_sub(SHOWN) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

/// How well a name fits; the best variant first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Fit {
    Same,
    Pattern,
    WithoutPlace,
    WithoutParameters,
    WithoutTemplate,
    LastParts,
    Beginning,
    BeginningOfPart,
}

fn fit(typed: &str, name: &str) -> Option<Fit> {
    if typed.is_empty() {
        return None;
    }
    if typed == name {
        return Some(Fit::Same);
    }
    let plain = without_place(name);
    if is_pattern(typed) {
        let matches = glob::matches(typed, name) || glob::matches(typed, without_parameters(plain));
        return matches.then_some(Fit::Pattern);
    }
    // No rule changes the first letters of `typed`. So a name that does not contain these letters cannot fit, and is
    // skipped.
    let first = typed.trim_start_matches(['<', '*', '&']);
    let head = first.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(first.len());
    if !name.contains(first.get(..head)?) {
        return None;
    }
    if typed == plain {
        return Some(Fit::WithoutPlace);
    }
    let short = without_parameters(plain);
    if typed == short {
        return Some(Fit::WithoutParameters);
    }
    let bare = without_template(short);
    if typed == bare {
        return Some(Fit::WithoutTemplate);
    }
    let forms = [plain, short, &bare];
    if forms[1..].iter().any(|form| form.strip_suffix(typed).is_some_and(ends_a_part)) {
        return Some(Fit::LastParts);
    }
    if forms.iter().any(|form| form.starts_with(typed)) {
        return Some(Fit::Beginning);
    }
    let mut beginnings = bare.match_indices(typed).map(|(at, _)| ends_a_part(&bare[..at]));
    beginnings.any(|is_one| is_one).then_some(Fit::BeginningOfPart)
}

/// Whether a name can begin after this text, because the text ends as a namespace, class, package or file does.
fn ends_a_part(before: &str) -> bool {
    before.ends_with([':', '.', '/', '*', '~', '^', ' '])
}

/// The name without the suffix that a report adds to distinguish equal names: a number, a line, or a place in a file.
fn without_place(name: &str) -> &str {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let name = match name.rsplit_once('#') {
        Some((before, number)) if digits(number) && !before.is_empty() => before,
        _ => name,
    };
    let Some((before, place)) = name.strip_suffix(')').and_then(|name| name.rsplit_once(" (")) else {
        return name;
    };
    let is_line = place.rsplit_once(':').is_some_and(|(_, line)| digits(line));
    let is_offset =
        place.rsplit_once("+0x").is_some_and(|(_, at)| at.bytes().all(|byte| byte.is_ascii_hexdigit()));
    if is_line || is_offset { before } else { name }
}

/// The name without parameters, without text after them, and without the return type that templates have. Names of
/// JavaScript and Python functions also lose the text that their compilers add.
fn without_parameters(name: &str) -> &str {
    if let Some(script) = of_script(name) {
        return script;
    }
    let mut text = name;
    loop {
        let copy =
            text.strip_suffix(']').and_then(|text| text.rsplit_once(" [clone .")).map(|(text, _)| text);
        let ends = [" const", " volatile", " &", " &&"];
        let shorter = copy.or_else(|| ends.iter().find_map(|end| text.strip_suffix(end)));
        let Some(shorter) = shorter else { break };
        text = shorter.trim_end();
    }
    // `operator()` and `{lambda()#1}` are names: their parentheses are no parameters.
    let before = text.strip_suffix(')').and_then(|_| opening(text)).and_then(|at| text.get(..at));
    let text = match before {
        Some(before)
            if !before.is_empty() && !before.ends_with([' ', ':', '(']) && !before.ends_with("operator") =>
        {
            before
        }
        _ => text,
    };
    let head = text.find("operator").unwrap_or(text.len());
    let mut depth = 0i32;
    let mut last = None;
    for (at, byte) in text.bytes().enumerate().take(head) {
        match byte {
            // The `>` of an arrow (`->`, `=>`) closes no bracket.
            b'>' if at > 0 && matches!(text.as_bytes()[at - 1], b'-' | b'=') => {}
            b'<' | b'(' | b'[' | b'{' => depth += 1,
            b'>' | b')' | b']' | b'}' => depth -= 1,
            b' ' if depth == 0 => last = Some(at),
            _ => {}
        }
    }
    last.and_then(|at| text.get(at + 1..)).filter(|rest| !rest.is_empty()).unwrap_or(text)
}

/// The position of the opening parenthesis that belongs to the closing one at the end of the text.
fn opening(text: &str) -> Option<usize> {
    let mut depth = 0i32;
    for (at, byte) in text.bytes().enumerate().rev() {
        match byte {
            b')' => depth += 1,
            b'(' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(at);
        }
    }
    None
}

/// The function's name in a script: `add` in `JS:*add /srv/shop.js:3:9`, `work` in `py::work:/srv/shop.py`.
fn of_script(name: &str) -> Option<&str> {
    if let Some(rest) = name.strip_prefix("py::") {
        return rest.split(":/").next().and_then(|name| name.split(":<").next());
    }
    let tags = ["JS:", "LazyCompile:", "Function:", "Script:", "Eval:", "Builtin:"];
    let rest = tags.iter().find_map(|tag| name.strip_prefix(tag))?;
    rest.trim_start_matches(['*', '~', '^', '+']).split(' ').next().filter(|name| !name.is_empty())
}

/// The name without template arguments. `<A as B>::f` becomes `A::f`.
fn without_template(name: &str) -> String {
    let head = name.find("operator").unwrap_or(name.len());
    let (before, operator) = name.split_at(head);
    let mut text = String::with_capacity(name.len());
    let mut depth = 0i32;
    // In a name that begins with `<Type as Trait>`, the type stays.
    let mut inside = before.starts_with('<');
    let from = usize::from(inside);
    for (at, c) in before.char_indices().skip(from) {
        match c {
            // The `>` of an arrow (`->`, `=>`) closes no bracket.
            '>' if before.get(..at).is_some_and(|before| before.ends_with(['-', '='])) => {}
            '>' if depth == 0 => {
                inside = false;
                // Removes the trait.
                if let Some(at) = text.find(" as ") {
                    text.truncate(at);
                }
                continue;
            }
            '<' => depth += 1,
            '>' => {
                depth -= 1;
                continue;
            }
            _ => {}
        }
        if depth == 0 {
            text.push(c);
        }
    }
    if inside {
        return name.to_owned();
    }
    while let Some(at) = text.find("::::") {
        text.replace_range(at..at + 2, "");
    }
    if text.ends_with("::") && operator.is_empty() {
        text.truncate(text.len() - 2);
    }
    text + operator
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(typed: &str, names: &[&str]) -> Result<Vec<String>, Vec<String>> {
        let told = |places: Vec<usize>| places.into_iter().map(|place| names[place].to_owned()).collect();
        match match_name(typed, names.iter().copied()) {
            NameMatch::Nothing => Ok(Vec::new()),
            NameMatch::These(places) => Ok(told(places)),
            NameMatch::Several(places) => Err(told(places)),
        }
    }

    #[track_caller]
    fn one(typed: &str, names: &[&str], wanted: &str) {
        assert_eq!(of(typed, names), Ok(vec![wanted.to_owned()]), "{typed}");
    }

    #[test]
    fn a_name_is_matched_by_its_unique_part() {
        let names = [
            "update_table(int)",
            "update_index(int) const",
            "shop::Cart::insert(unsigned long, std::vector<int>&)",
            "<shop::Cart as shop::Total>::sum",
            "core::iter::Iterator::fold::<u64, fn(u64) -> u64>",
            "std::map<int, std::pair<int, int> >::find(int const&)",
            "int parse<int, (anonymous namespace)::Kind>(char const*)",
            "shop::operator()(int)",
            "Table::operator<(Table const&) const",
            "main.(*Shop).total",
            "JS:*expensive /srv/shop.js:3:9",
            "py::work:/srv/shop.py",
            "void Main.hash(int)",
            "clean (shop.c:7)",
            "Grid<std::hatch<int>, std::hatch<long> >::reset() const [clone .isra.0] [clone .constprop.1]",
        ];
        for (typed, wanted) in [
            ("update_table", 0),
            ("update_t", 0),
            ("update_index", 1),
            ("shop::Cart::insert", 2),
            ("Cart::insert", 2),
            ("insert", 2),
            ("ins", 2),
            ("shop::Cart::sum", 3),
            ("sum", 3),
            ("core::iter::Iterator::fold", 4),
            ("fold", 4),
            ("std::map::find", 5),
            ("find", 5),
            ("parse", 6),
            ("parse<int, (anonymous namespace)::Kind>", 6),
            ("shop::operator()", 7),
            ("Table::operator<", 8),
            ("total", 9),
            ("expensive", 10),
            ("exp", 10),
            ("work", 11),
            ("Main.hash", 12),
            ("hash", 12),
            ("clean", 13),
            ("ha", 12),
            ("Grid::reset", 14),
        ] {
            one(typed, &names, names[wanted]);
        }
        for typed in ["", "pdate_table", "able", "table", "CART", "gone", "inserted"] {
            assert_eq!(of(typed, &names), Ok(Vec::new()), "{typed}");
        }
    }

    #[test]
    fn an_ambiguous_part_of_a_name_matches_none() {
        let overloads = ["hash(int)", "hash(char const*)", "hash_all(int)"];
        let both = Err(vec!["hash(char const*)".to_owned(), "hash(int)".to_owned()]);
        assert_eq!(of("hash", &overloads), both, "the longer one has another name");
        assert_eq!(listed(&overloads), "hash(int), hash(char const*), hash_all(int)");
        assert_eq!(listed(&["x".repeat(500)]).chars().count(), 81);
        one("hash(int)", &overloads, "hash(int)");
        one("hash_", &overloads, "hash_all(int)");
        assert_eq!(of("ha", &overloads).map_err(|several| several.len()), Err(3));
        assert_eq!(of("hash*", &overloads).map(|found| found.len()), Ok(3));
        assert_eq!(of("hash(*)", &overloads).map(|found| found.len()), Ok(2));
        // Two equal names both match.
        assert_eq!(of("work", &["work", "work", "worker"]).map(|found| found.len()), Ok(2));
        assert_eq!(of("work", &["work (a.c:1)", "work (b.c:1)"]).map_err(|several| several.len()), Err(2));
    }

    #[test]
    fn a_better_match_of_a_name_hides_worse_ones() {
        one("a", &["ab", "a(int)", "x::a", "a"], "a");
        one("a", &["ab", "a(int)", "x::a"], "a(int)");
        one("a", &["ab", "x::a"], "x::a");
        one("a", &["x::ab", "ab"], "ab");
    }

    #[test]
    fn matching_malformed_names_never_panics() {
        let odd = [
            "",
            "(",
            ")",
            "<",
            ">",
            "<<",
            "a<",
            "::",
            "operator",
            "operator<",
            "#1",
            " (:1)",
            "py::",
            "JS:",
            "ä<ö>",
            "<ä",
        ];
        for name in odd {
            for typed in odd {
                let _ = match_name(typed, [name].into_iter());
            }
            let _ = (without_parameters(name), without_template(name), without_place(name));
        }
    }
}
