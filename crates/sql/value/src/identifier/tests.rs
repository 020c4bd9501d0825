use super::keyword::KEYWORDS;
use super::*;

/// PostgreSQL 15's `pg_get_keywords()` with `quote_ident(word)` behind: word, catcode, barelabel, catdesc, baredesc, quoted.
const POSTGRES: &str = include_str!("../../../tests/golden/keywords.tsv");

#[test]
fn key_words_and_their_quotes_are_those_of_postgres() {
    let ours: Vec<String> = KEYWORDS
        .iter()
        .map(|keyword| {
            let (category, label) = (keyword.category, keyword.label());
            let bare_label = if keyword.bare_label { "t" } else { "f" };
            let quoted = quote_identifier(keyword.word);
            [keyword.word, category.code(), bare_label, category.description(), label, &quoted].join("\t")
        })
        .collect();
    let theirs: Vec<&str> = POSTGRES.lines().collect();
    assert_eq!(theirs.len(), 460, "the list of PostgreSQL 15 is whole");
    assert_eq!(ours, theirs);
}

#[test]
fn names_are_quoted_as_in_postgres() {
    let plain = ["abc", "_1", "a1_", "abort", "day"];
    for name in plain {
        assert_eq!(quote_identifier(name), name);
    }
    for name in ["", "Abc", "a b", "1a", "a$b", "é", "user", "normalize", "between", "a.b"] {
        assert_eq!(quote_identifier(name), format!("\"{name}\""));
    }
    assert_eq!(quote_identifier("a\"b"), "\"a\"\"b\"");
    assert_eq!(quote_qualified(Some("S"), "t"), "\"S\".t");
    assert_eq!(quote_qualified(None, "table"), "\"table\"");
}

#[test]
fn names_are_split_as_in_postgres() {
    let split = |text: &str| split_name(text).map_err(|error| error.state.as_str().to_owned());
    for (text, parts) in [
        ("Public.T", vec!["public", "t"]),
        (" public . \"A.\"\"b\" ", vec!["public", "A.\"b"]),
        ("public.\"\"", vec!["public", ""]),
        ("a.b.c.d", vec!["a", "b", "c", "d"]),
    ] {
        assert_eq!(split(text), Ok(parts.into_iter().map(str::to_owned).collect()));
    }
    for text in ["", ".", "public.", "public.t.", "\"a\"b", "a b", "\"a"] {
        assert_eq!(split(text), Err("42602".into()), "{text}");
    }
}

#[test]
fn long_names_are_cut_in_whole_characters() {
    let long = "é".repeat(40);
    assert_eq!(fold(&Ident::new(long.clone())), "é".repeat(31));
    assert_eq!(split_name(&long).unwrap(), ["é".repeat(31)]);
}
